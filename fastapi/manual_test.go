package fastapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualInABrowser reads pages of documents and searches in them by keys alone, on a small dark screen and a large light one. No text
// lies on another, nothing is loaded from elsewhere, and axe-core finds nothing.
func TestManualInABrowser(t *testing.T) {
	axe, dir := axe(t), os.Getenv(pictures)
	tab := startChromium(t).open()
	_, url := openPage(t, Options{Keys: openKeys(t, masterKey)})
	tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard}, nil)
	for _, look := range []struct {
		width, height int
		dark          bool
	}{{390, 844, true}, {1440, 900, false}} {
		tab.look(look.width, look.height, look.dark)
		for _, page := range []string{"", "/FILTERS", "/search?q=typos"} {
			tab.goTo(url + "/docs" + page)
			tab.until(`document.querySelector("main h1") && document.readyState === "complete"`)
			for _, line := range append(tab.faults(), tab.complaints(axe)...) {
				if line != "something of a document became part of the page" { // a title and a picture of its own
					t.Errorf("%s, %d pixels: %s", page, look.width, line)
				}
			}
			if dir != "" {
				tab.picture(filepath.Join(dir, "docs"+strings.NewReplacer("/", "-", "?", "-").Replace(page)+map[bool]string{true: "-390", false: "-1440"}[look.dark]+".png"))
			}
		}
	}
	tab.goTo(url + "/docs")
	tab.until(`document.querySelector("main h1")`)
	key := func(key, text string) {
		for _, kind := range []string{"keyDown", "keyUp"} {
			tab.do("Input.dispatchKeyEvent", values{"type": kind, "key": key, "text": map[bool]string{true: text}[kind == "keyDown"], "windowsVirtualKeyCode": map[string]int{"Tab": 9, "Enter": 13}[key]}, nil)
		}
	}
	key("Tab", "") // past the link to the content, and the name
	key("Tab", "")
	key("Tab", "")
	tab.until(`document.activeElement.name === "q"`)
	tab.do("Input.insertText", values{"text": "restroe bakcup"}, nil)
	key("Enter", "\r")
	tab.until(`location.pathname === "/docs/search" && document.querySelector(".found a")?.textContent === "Backup and restore" && document.querySelector("input").value === "restroe bakcup"`)
	key("Tab", "")
	tab.until(`document.activeElement.tagName === "BUTTON"`)
	for range 2 {
		key("Tab", "")
	}
	tab.until(`document.activeElement.matches(".found a")`)
	key("Enter", "\r")
	tab.until(`location.pathname === "/docs/backup" && document.querySelector("#pages [aria-current]").textContent === "Backup and restore"`)
}
