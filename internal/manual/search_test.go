package manual

import (
	"html"
	"math/rand/v2"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

var (
	whole         = sync.OnceValues(func() (*Manual, error) { return New(nil) })
	wholeSearcher = sync.OnceValues(func() (*searcher, error) {
		m, err := whole()
		if err != nil {
			return nil, err
		}
		return m.found()
	})
)

// TestSearch checks queries as people type them, with typos and names of parameters: a right page must be among the first three.
func TestSearch(t *testing.T) {
	found, err := wholeSearcher()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		query string
		first string // pages, one of which is among the first three
	}{
		{"filters", "/docs/FILTERS"},
		{"filter", "/docs/FILTERS"},
		{"typo tolerance", "/docs/SETTINGS /docs/RELEVANCE"},
		{"facets", "/docs/TUTORIAL /docs/SETTINGS"},
		{"ranking rules", "/docs/RELEVANCE /docs/RANKING /docs/SETTINGS"},
		{"api key", "/docs/keys-and-secrets /docs/SECURITY"},
		{"geo", "/docs/FILTERS"},
		{"algolia", "/docs/MIGRATION"},
		{"how do I restore a backup", "/docs/backup"},
		{"restroe bakcup", "/docs/backup"},
		{"synonyms", "/docs/SETTINGS /docs/RELEVANCE /docs/LANGUAGES"},
		{"master key", "/docs/SECURITY /docs/keys-and-secrets /docs/command-line"},
		{"meilisearch", "/docs/MIGRATION /docs/differences-from-meilisearch"},
		{"max total hits", "/docs/PAGING /docs/SETTINGS /docs/API"},
		{"maxTotalHits", "/docs/PAGING /docs/SETTINGS /docs/API"},
		{"pin a product", "/docs/RULES /docs/TUTORIAL"},
		{"invalid_search_limit", "/docs/errors"},
		{"docker", "/docs /docs/install"},
		{"full disk", "/docs/failures"},
		{"embedder", "/docs/VECTORS /docs/SETTINGS"},
		{"prometheus", "/docs/logs-and-metrics"},
	} {
		hits, _ := found.find(test.query)
		firsts := ""
		for _, h := range hits[:min(len(hits), 3)] {
			firsts += " " + h.at
		}
		ok := false
		for _, page := range strings.Fields(test.first) {
			ok = ok || strings.Contains(firsts+" ", " "+page+" ") || strings.Contains(firsts, " "+page+"#")
		}
		if !ok {
			t.Errorf("%q finds%s, want one of %s", test.query, firsts, test.first)
		}
	}
	if hits, _ := found.find("xyzzyq qqqq"); len(hits) > 0 {
		t.Errorf("nonsense finds %s", hits[0].at)
	}
}

// TestEveryHeadingIsFound checks that the words of a heading find it, unless several headings have the same words.
func TestEveryHeadingIsFound(t *testing.T) {
	whole, err := wholeSearcher()
	if err != nil {
		t.Fatal(err)
	}
	all, found := 0, 0
	for i := 0; i < len(whole.sections); i += 7 { // every 7th, because searches take time
		s := &whole.sections[i]
		all++
		hits, _ := whole.find(s.title + " " + s.parents)
		for _, h := range hits {
			if h.section == s {
				found++
			}
		}
	}
	if all < 100 || found*10 < all*9 {
		t.Errorf("%d of %d headings are found by their words", found, all)
	}
}

// slowDistance is the reference implementation of distance.
func slowDistance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		for j := range rows[i] {
			switch {
			case i == 0 || j == 0:
				rows[i][j] = i + j
			default:
				d := rows[i-1][j-1]
				if a[i-1] != b[j-1] {
					d++
				}
				rows[i][j] = min(d, rows[i-1][j]+1, rows[i][j-1]+1)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					rows[i][j] = min(rows[i][j], rows[i-2][j-2]+1)
				}
			}
		}
	}
	return rows[len(a)][len(b)]
}

func TestDistance(t *testing.T) {
	word := func() string {
		b := make([]byte, rand.IntN(9))
		for i := range b {
			b[i] = "abc"[rand.IntN(3)]
		}
		return string(b)
	}
	near := 0
	for range 20000 {
		a, b, most := word(), word(), rand.IntN(3)
		want := min(slowDistance(a, b), most+1)
		if got := distance(a, b, most); got != want {
			t.Fatalf("%q and %q, at most %d: %d, want %d", a, b, most, got, want)
		}
		if want > 0 && want <= most {
			near++
		}
	}
	if near < 100 {
		t.Errorf("only %d pairs are near", near)
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// FuzzSearch checks that any query gives a page that shows the query as text.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"", "filters", `"><script>x()</script>`, "\xff\xfe", "İ ß ﬁ", strings.Repeat("a ", 300), "é\u0301", "日本語 の 検索", "<mark>", strings.Repeat("ü", 101)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		m, err := whole()
		if err != nil {
			t.Fatal(err)
		}
		page, err := m.Search(query)
		if err != nil {
			t.Fatal(err)
		}
		body := string(page.Body)
		if !utf8.ValidString(body) || strings.Contains(body, "<script") || strings.Count(body, "<form") != 1 || strings.Count(body, "<main") != 1 {
			t.Errorf("%q gives %.300s", query, body)
		}
		_, found, _ := strings.Cut(body, `<ol class="found">`)
		found, _, _ = strings.Cut(found, "</ol>")
		if strings.Count(found, "<mark>") != strings.Count(found, "</mark>") || strings.ContainsAny(html.EscapeString(tags.ReplaceAllString(found, "")), "<>") {
			t.Errorf("%q finds %.300s", query, found)
		}
	})
}
