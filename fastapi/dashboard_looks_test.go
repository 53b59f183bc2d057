package fastapi

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	flags "flag"
	"fmt"
	"io"
	neturl "net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	everyLook     = flags.Bool("dashboard.every", false, "look at each part of the page in each size and color, with each kind of key, over many, no and hostile documents")
	onlyLooks     = flags.String("dashboard.only", "", "a regular expression: -dashboard.every looks at those alone whose name (as many-search-admin-1440) it finds")
	lookDocuments = flags.String("dashboard.file", "", "documents (NDJSON, gzipped if its name ends with .gz) to look at and to type over, instead of generated ones")
)

// lookFaults finds visible faults of a page: code of a document that ran or became an element, unreported failures, and texts that overlap
// or cannot be reached. It checks the visible part and then the whole page, because parts below the screen are laid out only when drawn.
const lookFaults = `(async () => {
	const found = [...window.unheard ?? []], all = new CSSStyleSheet();
	all.replaceSync("* { content-visibility: visible !important; }");
	if ("ran" in window || ({}).polluted !== undefined) found.push("something of a document ran");
	if (document.title !== "svc" || document.querySelector("main img:not(.thumb), main script, main iframe, main object")) found.push("something of a document became part of the page");
	const scrolled = node => {
		for (let at = node.parentElement; at; at = at.parentElement) if (/auto|scroll/.test(getComputedStyle(at).overflowX) || getComputedStyle(at).webkitLineClamp !== "none") return at;
		return document.documentElement;
	};
	const judge = drawn => {
		for (const node of drawn ? document.querySelectorAll(".hit .brief .value") : []) {
			if (node.checkVisibility({contentVisibilityAuto: true}) && node.scrollHeight > node.clientHeight + 1 && !/Show all|more field/.test(node.closest(".hit").querySelector(".foot").textContent)) found.push("cannot be opened: " + node.textContent.slice(0, 60));
		}
		const over = document.documentElement.scrollWidth - innerWidth;
		if (over > 0) found.push(over + " pixels wider than the screen");
		const boxes = [], walker = document.createTreeWalker(document.querySelector("dialog[open]") ?? document.body, NodeFilter.SHOW_TEXT);
		for (let node; (node = walker.nextNode()) && boxes.length < 5000;) {
			const parent = node.parentElement;
			if (!node.data.trim() || parent.closest(".hidden, .skip, option, textarea, noscript, script") || !parent.checkVisibility({contentVisibilityAuto: drawn})) continue;
			const range = document.createRange(), frame = scrolled(node), around = frame.getBoundingClientRect();
			range.selectNodeContents(node);
			for (const r of range.getClientRects()) {
				if (r.width < 1 || r.height < 1) continue;
				if (r.right > around.left + frame.scrollWidth - frame.scrollLeft + 1) found.push("cannot be reached: " + node.data.slice(0, 60));
				const seen = frame === document.documentElement ? r : new DOMRect(Math.max(r.left, around.left), Math.max(r.top, around.top), Math.min(r.right, around.right) - Math.max(r.left, around.left), Math.min(r.bottom, around.bottom) - Math.max(r.top, around.top));
				if (frame === document.documentElement || Math.min(r.right, around.right) > seen.left && Math.min(r.bottom, around.bottom) > seen.top) boxes.push([seen, node]); // otherwise it is scrolled out of view
			}
		}
		boxes.sort(([a], [b]) => a.top - b.top);
		for (const [i, [a, one]] of boxes.entries()) {
			for (let j = i + 1; j < boxes.length && boxes[j][0].top < a.bottom - 3; j++) {
				const [b, other] = boxes[j];
				if (one !== other && Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 && Math.min(a.bottom, b.bottom) - b.top > 3) found.push("on each other: " + one.data.slice(0, 40) + " | " + other.data.slice(0, 40));
			}
		}
		for (const control of document.querySelectorAll("button, .button, select, th, summary")) {
			if (control.checkVisibility({contentVisibilityAuto: drawn}) && control.scrollWidth > control.clientWidth + 1 && getComputedStyle(control).display !== "inline") found.push("is cut: " + control.textContent.slice(0, 60));
		}
		return boxes.length;
	};
	for (let i = 0; i < 4; i++) await new Promise(requestAnimationFrame);
	if (judge(true) === 0) found.push("nothing is seen");
	document.adoptedStyleSheets = [all];
	judge(false);
	document.adoptedStyleSheets = [];
	return [...new Set(found)].slice(0, 10);
})()`

// unheard makes a page record unreported failures and violations of its policy.
const unheard = `
	window.unheard = [];
	addEventListener("error", event => unheard.push("failed: " + event.message));
	addEventListener("unhandledrejection", event => unheard.push("failed: " + event.reason));
	addEventListener("securitypolicyviolation", event => unheard.push("stopped: " + event.blockedURI + " by " + event.violatedDirective));`

// faults returns what lookFaults finds.
func (p *tab) faults() []string {
	p.t.Helper()
	var found []string
	p.eval(lookFaults, &found)
	return found
}

// manyLines returns the documents of -dashboard.file, or generated ones, and the fields for facets and sorting.
func manyLines(t *testing.T) (lines []byte, facets, sorts string) {
	t.Helper()
	if *lookDocuments == "" {
		return manyDocuments(*dashboardDocuments), `["tags","size","year"]`, `["year","size"]`
	}
	f, err := os.Open(*lookDocuments)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := io.Reader(f)
	if strings.HasSuffix(*lookDocuments, ".gz") {
		if r, err = gzip.NewReader(f); err != nil {
			t.Fatal(err)
		}
	}
	if lines, err = io.ReadAll(r); err != nil {
		t.Fatal(err)
	}
	var first map[string]any
	if err := json.NewDecoder(bytes.NewReader(lines)).Decode(&first); err != nil {
		t.Fatal(err)
	}
	names, numbers := []string{}, []string{}
	for name, value := range first {
		switch v := value.(type) {
		case float64:
			numbers = append(numbers, name)
			names = append(names, name)
		case []any:
			names = append(names, name)
		case string:
			if len(v) < 20 && name != "name" && name != "version" {
				names = append(names, name)
			}
		}
	}
	all, _ := json.Marshal(names)
	counted, _ := json.Marshal(numbers)
	return lines, string(all), string(counted)
}

// fillIndex adds documents to an index and waits for them.
func fillIndex(t *testing.T, c *client, index, settings string, lines []byte) {
	t.Helper()
	c.wait(c.json("PATCH", "/indexes/"+index+"/settings", settings))
	if end := c.wait(c.send("POST", "/indexes/"+index+"/documents", bytes.NewReader(lines), "Content-Type", "application/x-ndjson")); !strings.Contains(end, `"status":"succeeded"`) {
		t.Fatalf("%.500s", end)
	}
}

// look is a view of the page: its address, a selector that must match before open is run, and one that must match afterwards.
type look struct{ name, address, ready, open, shows string }

// TestEveryLook opens each part of the page in two sizes, light and dark, with a search key, an admin key and a key for every action, on a
// server with many documents, an empty one and one with hostile documents and names. Nothing may run, no texts may overlap, no failure may
// go unreported, and axe-core must find nothing. SVC_PICTURES names a directory for screenshots.
func TestEveryLook(t *testing.T) {
	if !*everyLook {
		t.Skip("needs -dashboard.every")
	}
	axe, dir, only := axe(t), os.Getenv(pictures), regexp.MustCompile(*onlyLooks)
	b := startChromium(t)
	query := "a"
	if *lookDocuments == "" {
		query = "ka" // a generated word begins with it
	}
	for _, server := range []struct {
		name, index, q string
		fill           func(t *testing.T, c *client)
	}{
		{"many", "many", query, func(t *testing.T, c *client) {
			lines, facets, sorts := manyLines(t)
			fillIndex(t, c, "many", `{"filterableAttributes":`+facets+`,"sortableAttributes":`+sorts+`}`, lines)
		}},
		{"empty", "", "", func(*testing.T, *client) {}},
		{"hostile", "films", "metropolis", func(t *testing.T, c *client) {
			c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["tag","__proto__","year","long"],"synonyms":{"__proto__":["x"]},"stopWords":["\u202ega"]}`))
			if end := c.wait(c.json("POST", "/indexes/films/documents", hostileDocuments(t))); !strings.Contains(end, `"status":"succeeded"`) {
				t.Fatal(end)
			}
			for _, uid := range []string{"__proto__", "constructor", "-_-", strings.Repeat("W", 200)} {
				c.wait(c.json("POST", "/indexes/"+uid+"/documents", `[{"id":1}]`))
			}
			c.wait(c.json("POST", "/indexes/films/documents", `[{"id": {"`+strings.Repeat("x", 300)+`": 1}}]`)) // fails with an error that contains its id
			if made := c.json("POST", "/keys", `{"name": `+quoted(hostile+"\u202eeman")+`, "description": "`+strings.Repeat("d", 400)+`", "actions": ["documents.add"], "indexes": ["`+strings.Repeat("W", 200)+`"], "expiresAt": null}`); made.status != 201 {
				t.Fatal(made.body)
			}
		}},
	} {
		t.Run(server.name, func(t *testing.T) {
			c, url := openPage(t, Options{Keys: openKeys(t, masterKey), PayloadLimit: 1 << 30, Version: Version{Program: "0.2.0", Package: "1.42.1", Commit: strings.Repeat("c0ffee", 6)}})
			c.key = masterKey
			server.fill(t, c)
			var listed struct{ Results []struct{ Name, Key string } }
			if err := json.Unmarshal([]byte(c.get("/keys").body), &listed); err != nil {
				t.Fatal(err)
			}
			admin := ""
			for _, key := range listed.Results {
				if key.Name == "Default Admin API Key" {
					admin = key.Key
				}
			}
			every, _ := keyFor(t, c, "*")
			search, _ := keyFor(t, c, "search")
			tab := b.open()
			tab.t = t
			tab.do("Page.addScriptToEvaluateOnNewDocument", values{"source": unheard + presses}, nil)
			found := "index=" + server.index + "&q=" + server.q
			parts := []look{
				{"search", "search?" + found, ".hit mark", "", ".hit mark"},
				{"unfolded", "search?" + found, ".facet", `document.querySelectorAll("details.more, details.fields, details.sidebar, .facet").forEach(node => node.open = true)`, ".hit"},
				{"why", "search?" + found, ".hit details", `[...document.querySelectorAll(".hit details")].slice(0, 3).forEach(node => node.open = true)`, ".why li"},
				{"compare", "search?" + found + "&compare=" + neturl.QueryEscape(`{"settings":{"rankingRules":["words","exactness","typo"],"stopWords":["the"]},"search":{"matchingStrategy":"all"}}`), ".compared li", "", ".compared li"},
				{"json", "search?" + found, ".hit .head button", `document.querySelector(".hit .head button").click()`, "dialog pre"},
				{"documents", "documents?index=" + server.index, ".hit", `document.querySelectorAll("main details").forEach(node => node.open = true)`, ".hit"},
				{"edit", "documents?index=" + server.index, ".hit", `[...document.querySelectorAll(".hit .head button")].find(b => b.textContent === "Edit").click()`, "dialog textarea"},
				{"settings", "settings?index=" + server.index, ".setting", "", ".setting"},
				{"forms", "settings?group=words&index=" + server.index, ".setting", "", ".setting"},
				{"rules", "rules", "main p", "", "main p"},
				{"tasks", "tasks", "td", "", "td"},
				{"keys", "keys", "dd", `document.querySelectorAll("main details").forEach(node => node.open = true)`, "dd"},
				{"token", "keys", "dd", `press("Create tenant token"), press("Make", document.querySelector("dialog"))`, "dialog pre:not(:empty)"},
				{"system", "system", "td a", "", "td a"},
				{"features", "system?view=features", ".choices label", "", ".choices label"},
			}
			if server.index == "" {
				parts = []look{{"search", "search", "pre", "", "pre"}, {"documents", "documents", "form input", "", "h1"}, {"settings", "settings", "h1", "", "h1"},
					{"tasks", "tasks", "table", "", "table"}, {"keys", "keys", "dd", "", "dd"}, {"system", "system", "dd", "", "dd"}}
			}
			for _, key := range []struct{ name, value string }{{"admin", admin}, {"every", every}, {"search", search}} {
				for _, part := range parts {
					ready, open, shows := part.ready, part.open, part.shows
					if key.name == "search" && (server.index == "" || !strings.HasPrefix(part.address, "search")) {
						ready, open, shows = "#said.bad, main select, main .bar input", "", "#said" // without access
					}
					for _, width := range []int{1440, 390} {
						name := fmt.Sprintf("%s-%s-%s-%d", server.name, part.name, key.name, width)
						if !only.MatchString(name) {
							continue
						}
						tab.look(width, 900, false)
						tab.goTo(url + "/#/" + part.address)
						tab.enter(key.value)
						tab.until(fmt.Sprintf("document.querySelector(%q)", ready))
						tab.eval("(() => { "+open+" })()", nil)
						tab.until(fmt.Sprintf("document.querySelector(%q)", shows))
						for _, dark := range []bool{false, true} {
							tab.look(width, 900, dark)
							for _, line := range append(tab.faults(), tab.complaints(axe)...) {
								t.Errorf("%s, dark: %v: %s", name, dark, line)
							}
							if dir != "" {
								tab.look(width, 1800, dark)
								tab.picture(filepath.Join(dir, fmt.Sprintf("%s-%s.png", name, map[bool]string{false: "light", true: "dark"}[dark])))
							}
						}
					}
				}
			}
		})
	}
}
