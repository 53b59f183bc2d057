package fastapi

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// browser returns the program of a Chromium, or skips the test and says so.
func browser(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium is installed: the page is not opened in a browser")
	return ""
}

// dom opens a page in a browser without a window, which keeps what it must in the directory profile, and returns the page's
// elements as text after a while.
func dom(t *testing.T, program, profile, url string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, program, append(headless(profile), "--dump-dom", url)...).Output()
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return string(out)
}

// headless are the arguments of a browser without a window that asks nobody for anything.
func headless(profile string) []string {
	return []string{"--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--user-data-dir=" + profile, "--virtual-time-budget=5000"}
}

// pictures is the directory into which TestPictures writes.
const pictures = "SVC_PICTURES"

// TestPictures makes the picture that README opens with, when it is told where to: a search over the films of the first start.
func TestPictures(t *testing.T) {
	dir := os.Getenv(pictures)
	if dir == "" {
		t.Skip(pictures + " names no directory for pictures")
	}
	program := browser(t)
	o := Options{Version: Version{Program: "0.2.0", Package: "1.42.1"}}
	openInstance(t, &o)
	c := newTCPClient(t, o)
	sample, err := dashboardFiles.ReadFile("dashboard/sample.js")
	if err != nil {
		t.Fatal(err)
	}
	films := sample[bytes.IndexByte(sample, '['):bytes.LastIndexByte(sample, ';')]
	films = regexp.MustCompile(`,\s*\]\s*$`).ReplaceAll(films, []byte("]"))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes": ["year", "genres", "country"], "sortableAttributes": ["year"], "searchableAttributes": ["title", "director", "genres", "text"]}`))
	if end := c.wait(c.json("POST", "/indexes/films/documents", string(films))); !strings.Contains(end, "succeeded") {
		t.Fatal(end)
	}
	url := "http://" + c.server.serving.listener.Addr().String() + "/#/search?index=films&q=love%20citty"
	out := filepath.Join(dir, "search.png")
	if err := exec.Command(program, append(headless(t.TempDir()), "--hide-scrollbars", "--window-size=1100,640", "--screenshot="+out, url)...).Run(); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(out); err != nil || info.Size() > 150<<10 {
		t.Errorf("%v %v", info, err)
	}
}

// TestDashboardInABrowser opens each part of the page on an empty server and on one whose documents, fields, facets and
// uid of an index are hostile: what they hold is shown, and nothing of it runs.
func TestDashboardInABrowser(t *testing.T) {
	program, profile := browser(t), t.TempDir()
	o := Options{PayloadLimit: 10 << 20}
	openInstance(t, &o)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	url := "http://" + l.Addr().String()
	c := connect(t, o, l, func() (net.Conn, error) { return net.Dial("tcp", l.Addr().String()) })
	c.server.recent.began = time.Now().Add(-time.Minute)
	if page := dom(t, program, profile, url+"/#/search"); !strings.Contains(page, "There is nothing to search yet") || !strings.Contains(page, "Try it with a sample") {
		t.Errorf("an empty server: %.2000s", page)
	}

	const hostile = `<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>`
	c.wait(c.send("PATCH", "/indexes/films/settings", strings.NewReader(`{"filterableAttributes":["tag","__proto__","year"]}`), "Content-Type", "application/json"))
	c.wait(c.send("POST", "/indexes/films/documents", strings.NewReader(`[
		{"id": 1, "title": "metropolis `+hostile+`", "tag": "`+hostile+`", "year": 1927, "__proto__": "x", "constructor": "y", "`+hostile+`": 1, "\u202Eltr": "\u202Egnirts"},
		{"id": 2, "title": "metropolis again", "tag": ["1", "2"], "year": 1930, "poster": "http://127.0.0.1:1/a.png", "long": "`+strings.Repeat("w", 1<<20)+`"}]`), "Content-Type", "application/json"))
	for part, wants := range map[string][]string{
		"search?index=films&q=metropolis": {"2 found in", "<mark>metropolis</mark>", "&lt;img src=x onerror=", "Why here", "show picture", `aria-label="year: min"`, "__proto__"},
		"search?index=films&q=metropolis&facets=%5B%5B%22year%22%2C%5B%221927%22%5D%2C%22%22%2C%22%22%5D%5D": {"1 found in"},
		"search?index=films&q=metropolis&compare=%7B%22settings%22%3A%7B%22rankingRules%22%3A%5B%22year%3Adesc%22%5D%2C%22stopWords%22%3A%5B%22x%22%5D%7D%7D": {
			"The other way", "▲ 1", "▼ 1", "2 found", "is not compared", "The words of every document."},
		"search?index=none":     {"none"},
		"documents?index=films": {"2 documents", "New document", "&lt;img src=x onerror="},
		"settings?index=films":  {"searchableAttributes", "rankingRules", "On a change"},
		"tasks":                 {"documentAdditionOrUpdate", "succeeded", "indexedDocuments: 2"},
		"keys":                  {"master key"},
		"system":                {"available", "films", "containsFilter", "Time of a search", `<path d="M`, "held by requests", `class="segment"`, "2 documents"},
	} {
		page := dom(t, program, profile, url+"/#/"+part)
		for _, want := range wants {
			if !strings.Contains(page, want) {
				t.Errorf("%s lacks %q: %.3000s", part, want, page)
			}
		}
		if !strings.Contains(page, "<title>svc</title>") || strings.Contains(page, "<img") {
			t.Errorf("%s: something of a document became part of the page", part)
		}
	}
}
