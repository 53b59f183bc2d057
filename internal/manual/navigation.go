package manual

import (
	_ "embed"
	"encoding/base64"
	"fmt"
	"html"
	"path"
	"strconv"
	"strings"
)

// group is a part of the navigation: its pages in the order in which they are read.
type group struct {
	title string
	files []string
	inner bool // for developers of svc: ranked last in searches
}

// groups is the navigation of all pages. The decisions are reached from their list.
var groups = []group{
	{title: "Start", files: []string{readme, "docs/TUTORIAL.md", "docs/operations/install.md", "docs/CLIENTS.md", "docs/FRAMEWORKS.md", "docs/demo/README.md", "docs/MIGRATION.md"}},
	{title: "Search", files: []string{"docs/RELEVANCE.md", "docs/RANKING.md", "docs/SCORE-FUNCTIONS.md", "docs/FILTERS.md", "docs/AGGREGATIONS.md", "docs/GROUPS-OF-HITS.md", "docs/PAGING.md",
		"docs/MULTI_SEARCH.md", "docs/RULES.md", "docs/SUGGESTIONS.md", "docs/VECTORS.md", "docs/PERSONALIZATION.md", "docs/LANGUAGES.md", "docs/ANALYTICS.md"}},
	{title: "Data", files: []string{"docs/DOCUMENTS.md", "docs/SETTINGS.md", "docs/ALIASES.md"}},
	{title: "Language models", files: []string{"docs/CHAT.md", "docs/MCP.md"}},
	{title: "Operate", files: []string{"docs/OPERATIONS.md", "docs/operations/start-and-stop.md", "docs/operations/data-directory.md", "docs/operations/command-line.md", "docs/SECURITY.md", "docs/operations/keys-and-secrets.md", "docs/operations/sizing.md", "docs/SIZING.md", "docs/operations/limits.md",
		"docs/operations/logs-and-metrics.md", "docs/operations/backup.md", "docs/operations/failures.md", "docs/operations/webhooks.md", "docs/NETWORK.md", "docs/GROUP.md"}},
	{title: "Reference", files: []string{"docs/API.md", errorsFile, "docs/operations/differences-from-meilisearch.md", "docs/GLOSSARY.md", "BENCHMARKS.md", "CHANGELOG.md"}},
	{title: "Inside svc", inner: true, files: []string{"docs/ARCHITECTURE.md", "docs/architecture/packages.md", "docs/architecture/writes.md", "docs/architecture/searches.md", "docs/architecture/text-analysis.md", "docs/architecture/caching.md", "docs/architecture/load.md",
		"docs/architecture/durability.md", "docs/architecture/ownership.md", "docs/architecture/groups.md", "docs/architecture/network.md", "docs/SEGMENT.md", decisions, "CONTRIBUTING.md"}},
}

// decisions is the document that lists the pages of its folder. The navigation shows it instead of them.
const decisions = "docs/decisions/README.md"

// listed is the page of the navigation that a document belongs to.
func listed(file string) string {
	if path.Dir(file) == path.Dir(decisions) {
		return decisions
	}
	return file
}

// innerOf reports whether a document is for developers of svc, or has long lists: searches rank it after others.
func innerOf(file string) bool {
	for _, g := range groups {
		for _, f := range g.files {
			if f == listed(file) {
				return g.inner || f == errorsFile || f == "CHANGELOG.md" || f == "BENCHMARKS.md"
			}
		}
	}
	return true
}

// pagesList is the navigation, seen from a document.
func (m *Manual) pagesList(file string) string {
	var b strings.Builder
	b.WriteString("<nav id=\"pages\" aria-label=\"Pages\">\n")
	for _, g := range groups {
		fmt.Fprintf(&b, "<h2>%s</h2>\n<ul>\n", g.title)
		for _, f := range g.files {
			fmt.Fprintf(&b, "<li>%s</li>\n", m.link(f, file))
		}
		if g.title == "Reference" {
			b.WriteString("<li><a href=\"/openapi.json\">OpenAPI</a></li>\n")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("</nav>\n")
	return b.String()
}

// link leads to a document by its title. The one that is shown is marked.
func (m *Manual) link(file, shown string) string {
	current := ""
	switch {
	case file == shown:
		current = ` aria-current="page"`
	case file == listed(shown):
		current = ` aria-current="true"`
	}
	title := m.titles[file]
	if file == readme {
		title = "Overview"
	}
	return fmt.Sprintf(`<a href="%s"%s>%s</a>`, pathOf(file), current, html.EscapeString(title))
}

// contents lists the headings of a document below its title; "" where there are fewer than two.
func contents(headings []heading) string {
	var b strings.Builder
	n := 0
	for _, h := range headings {
		if h.level < 2 || h.level > 3 || h.row {
			continue
		}
		n++
		fmt.Fprintf(&b, "<li class=\"h%d\"><a href=\"#%s\">%s</a></li>\n", h.level, html.EscapeString(h.id), html.EscapeString(h.title))
	}
	if n < 2 {
		return ""
	}
	return "<nav class=\"contents\" aria-label=\"On this page\">\n<h2>On this page</h2>\n<ul>\n" + b.String() + "</ul>\n</nav>\n"
}

// around leads to the pages before and after a document.
func (m *Manual) around(file string) string {
	var order []string
	for _, g := range groups {
		order = append(order, g.files...)
	}
	for i, f := range order {
		if f != file {
			continue
		}
		var b strings.Builder
		b.WriteString("<nav class=\"around\" aria-label=\"Page before and after\">")
		if i > 0 {
			b.WriteString("<span>← " + m.link(order[i-1], file) + "</span>")
		}
		if i+1 < len(order) {
			b.WriteString("<span class=\"next\">" + m.link(order[i+1], file) + " →</span>")
		}
		b.WriteString("</nav>\n")
		return b.String()
	}
	return ""
}

// frame assembles a page: main is HTML, aside is the content beside it. A page without a file is the search page.
func (m *Manual) frame(title, file, query, aside, main string) []byte {
	focus := ""
	if file == "" {
		focus = "autofocus"
	}
	return []byte(strings.NewReplacer("{{style}}", style, "{{icon}}", icon, "{{title}}", html.EscapeString(title), "{{root}}", Root, "{{search}}", SearchPath, "{{most}}", strconv.Itoa(maxQuery),
		"{{query}}", html.EscapeString(query), "{{focus}}", focus, "{{aside}}", aside, "{{main}}", main+m.around(file), "{{pages}}", m.pagesList(file)).Replace(page))
}

//go:embed page.html
var page string

//go:embed page.css
var style string

//go:embed icon.svg
var iconFile []byte

// icon is the icon of the pages, which is that of the dashboard.
var icon = base64.StdEncoding.EncodeToString(iconFile)
