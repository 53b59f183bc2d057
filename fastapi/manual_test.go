package fastapi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestManualInABrowser reads and searches the manual with the keyboard, on a small dark screen and a large light one. No texts may
// overlap, nothing may be loaded from other servers, and axe-core must find nothing.
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
				if line != "something of a document became part of the page" { // the page has its own title and picture
					t.Errorf("%s, %d pixels: %s", page, look.width, line)
				}
			}
			if dir != "" {
				tab.picture(filepath.Join(dir, "docs"+strings.NewReplacer("/", "-", "?", "-").Replace(page)+map[bool]string{true: "-390", false: "-1440"}[look.dark]+".png"))
			}
		}
	}
	tab.goTo(url + "/docs")
	ready := func() { // for key presses
		t.Helper()
		tab.until(`document.querySelector("main h1") && document.readyState === "complete"`)
		tab.eval(`new Promise(resolve => requestAnimationFrame(() => resolve(0)))`, nil)
	}
	key := func(key, text string) {
		for _, kind := range []string{"keyDown", "keyUp"} {
			tab.do("Input.dispatchKeyEvent", values{"type": kind, "key": key, "text": map[bool]string{true: text}[kind == "keyDown"], "windowsVirtualKeyCode": map[string]int{"Tab": 9, "Enter": 13}[key]}, nil)
		}
	}
	next := func(selector string) { // the next focus by Tab
		t.Helper()
		key("Tab", "")
		tab.until(`document.activeElement.matches("` + selector + `")`)
	}
	ready()
	next(".skip")
	next(".brand")
	next("input[name=q]")
	tab.do("Input.insertText", values{"text": "restroe bakcup"}, nil)
	key("Enter", "\r")
	tab.until(`location.pathname === "/docs/search" && document.querySelector(".found a")?.textContent === "Backup and restore" && document.querySelector("input").value === "restroe bakcup"`)
	ready()
	tab.until(`document.activeElement.name === "q"`)
	next("form button")
	next("header a[href='/']")
	next(".found a")
	key("Enter", "\r")
	tab.until(`location.pathname === "/docs/backup" && document.querySelector("#pages [aria-current]").textContent === "Backup and restore"`)
}
