package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// TestExactWordsDecideThePage searches words with a small limit on totals, for hits only and with all data: hits and totals are equal in
// either order of the searches.
func TestExactWordsDecideThePage(t *testing.T) {
	defer func(c, l, stop, rows int) { classRows, listRows, stopRows, largeRows = c, l, stop, rows }(classRows, listRows, stopRows, largeRows)
	var short [2]int // queries of one word and of several
	for seed := range uint64(150) {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 11))}
		m.vocabulary()
		if classRows, listRows, stopRows, largeRows = 48, 512, 4096, 1<<10; m.chance(50) {
			classRows, listRows, stopRows, largeRows = m.IntN(3), m.IntN(3), 1+m.IntN(10), 1+m.IntN(20)
		}
		docs := m.documents(20 + m.IntN(60))
		parts := make([][]*document, 1+m.IntN(4))
		deleted := map[segment.DocID]bool{}
		for _, d := range docs {
			at := m.IntN(len(parts))
			parts[at] = append(parts[at], d)
			if m.chance(15) {
				deleted[d.id] = true
			}
		}
		body := m.settings()
		ix := build(t, parseSettings(t, body), parts, deleted)
		sorts := slices.ContainsFunc(ix.Settings.RankingRules, func(r settings.RankingRule) bool { return r.Kind == settings.Sort })
		for range 40 {
			r := m.request(sorts)
			r.Scores, r.Details, r.Threshold, r.Distinct = false, false, nil, ""
			several := m.IntN(2)
			if several == 0 {
				r.Query = m.word()
				if m.chance(30) {
					r.Query = r.Query[:1+m.IntN(len(r.Query))]
				}
				if m.chance(30) {
					r.Query += " "
				}
			}
			if r.MaxTotal = 1 + m.IntN(8); m.chance(30) {
				r.Limit = 1 + m.IntN(3)
			}
			r.SearchOn = slices.DeleteFunc(r.SearchOn, func(f string) bool { return !ix.Fields.InfoOf(f).Searchable })
			if len(r.SearchOn) == 0 {
				r.SearchOn = nil
			}
			if m.chance(50) {
				r.Universe = universe(ix)
			}
			var answers [2]string
			var counted [2]int
			first := m.IntN(2)
			for i := range 2 * (1 + m.IntN(2)) {
				k := (first + i) % 2
				ask := *r
				ask.HitsOnly = k == 1
				got, err := Search(context.Background(), ix, &ask)
				if err != nil {
					t.Fatal(err)
				}
				answers[k] = fmt.Sprint(found(got), got.Total)
				counted[k] = rows(got.Candidates).count()
			}
			if answers[1] != answers[0] {
				t.Fatalf("seed %d, settings %s, %+v: %s, want %s", seed, body, r, answers[1], answers[0])
			}
			if counted[1] < counted[0] {
				short[several]++
			}
		}
	}
	if short[0] < 25 || short[1] < 50 {
		t.Errorf("typos were skipped in %d searches for one word, and in %d for several", short[0], short[1])
	}
}

// TestMisspeltWordsComeAfterFrequentOnes searches several words that some documents have misspelt, joined or split. Hits, totals and
// highlights are those of searches that expand everything, also in later views that use cached results.
func TestMisspeltWordsComeAfterFrequentOnes(t *testing.T) {
	defer func(rows int) { largeRows = rows }(largeRows)
	words := [][]string{
		{"orange", "orange", "orangs", "orang", "borange", "orrangee", "or ange"},
		{"strawberry", "strawberry", "strawbery", "strwbery", "ztrawberry", "strawberrrys", "straw berry", "strawberryx"},
		{"banana", "banana", "bananna", "ba nana", "banan", "bananas"},
		{"orangebanana", "orangebananas", "bananacherry", "orangebananacherry"},
		{"cherry", "cherry", "chery", "cherri", "cherrry", "che rry"},
		{"pear", "pea", "pear", "peer"},
	}
	var told, all int
	ran := taken{}
	for seed := range uint64(700) {
		m := rand.New(rand.NewPCG(seed, 17))
		largeRows = []int{1, 4, 1 << 10}[m.IntN(3)]
		kinds := 2 + m.IntN(len(words)-1)
		text := func() string {
			var b []string
			for range 1 + m.IntN(4) {
				kind := words[m.IntN(kinds)]
				w := kind[m.IntN(len(kind))]
				if m.IntN(3) > 0 {
					w = kind[0]
				}
				b = append(b, w)
			}
			return strings.Join(b, " ")
		}
		var parts [][]*document
		id := 0
		for range 1 + m.IntN(3) {
			var part []*document
			for range 1 + m.IntN(25) {
				part = append(part, doc(id, "title", text(), "price", float64(m.IntN(3))))
				id++
			}
			parts = append(parts, part)
		}
		body := []string{`{}`, `{}`, `{"rankingRules":["words","typo","proximity"]}`, `{"rankingRules":["typo","words"]}`, `{"rankingRules":["typo","proximity"]}`,
			`{"rankingRules":["words","price:asc","typo"]}`, `{"rankingRules":["words","typo","price:asc","exactness"]}`,
			`{"typoTolerance":{"disableOnWords":["orange"]}}`, `{"synonyms":{"orange":["pear"]}}`}[m.IntN(9)]
		whole := build(t, parseSettings(t, body), parts, nil)
		memory := resultcache.New(16 << 20)
		scopes := make([]*resultcache.Scope, len(whole.Segments))
		for i := range scopes {
			scopes[i] = memory.Scope()
		}
		var asked []Request
		for range 12 {
			var b []string
			for range 1 + m.IntN(3) {
				kind := words[m.IntN(kinds)]
				w := kind[max(0, m.IntN(2*len(kind))-len(kind))]
				switch m.IntN(12) {
				case 0:
					w = "qqqqqq"
				case 1:
					w = `"` + w + `"`
				}
				b = append(b, w)
			}
			r := Request{Query: strings.Join(b, " "), Limit: 1 + m.IntN(3), MaxTotal: 1 + m.IntN(4), HitsOnly: true, Marks: m.IntN(2) == 0,
				Strategy: query.Strategy(m.IntN(3))}
			if m.IntN(3) > 0 {
				r.Query, r.Strategy = r.Query+" ", query.Last
			}
			if m.IntN(4) == 0 {
				r.Offset = m.IntN(4)
			}
			if m.IntN(4) == 0 {
				r.SearchOn = []string{"title"}
			}
			asked = append(asked, r)
		}
		view := *whole
		for n := 1; n <= len(whole.Segments); n++ { // each view has one more segment and one more deleted document
			view.Segments = slices.Clone(whole.Segments[:n])
			if s := &view.Segments[m.IntN(n)]; n > 1 {
				deleted := roaring.BitmapOf(uint32(m.IntN(s.Rows())))
				if s.Deleted != nil {
					deleted.Or(s.Deleted)
				}
				s.Deleted = deleted
				whole.Segments = append(slices.Clone(view.Segments), whole.Segments[n:]...)
			}
			view.Cache = query.NewCache(memory, scopes[:n]...)
			for k := range 2 * len(asked) {
				ask := asked[k%len(asked)]
				got, err := ran.search(&view, &ask)
				if err != nil {
					t.Fatal(err)
				}
				fresh := view
				fresh.Cache = query.NewCache(resultcache.New(16 << 20))
				full := ask
				full.HitsOnly = false
				want, err := Search(context.Background(), &fresh, &full)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := fmt.Sprint(found(got), " of ", got.Total), fmt.Sprint(found(want), " of ", want.Total); a != b {
					t.Fatalf("seed %d, %d segments, settings %s, %+v: %s, want %s", seed, n, body, ask, a, b)
				}
				if ask.Marks && !reflect.DeepEqual(got.Highlights(), want.Highlights()) {
					t.Fatalf("seed %d, %d segments, settings %s, %+v: marks %+v, want %+v", seed, n, body, ask, got.Highlights(), want.Highlights())
				}
				if all++; k < len(asked) && strings.Contains(strings.TrimSpace(ask.Query), " ") && fewer(got, want) {
					told++
				}
			}
		}
	}
	ran.wants(t, lazyTypos, cachedHits)
	if told < all/40 {
		t.Errorf("%d of %d searches skipped expansions", told, all)
	}
}

// TestLaterViewWithABetterTypo: if the index has a word at two typos, a new document has it at one, and has the frequent word at one more
// typo, then that document has as few typos as those on the cached page.
func TestLaterViewWithABetterTypo(t *testing.T) {
	defer func(rows int) { largeRows = rows }(largeRows)
	largeRows = 4
	var docs []*document
	for i := range 8 {
		docs = append(docs, doc(i, "title", "orange strawberry", "price", float64(5)))
	}
	ix := build(t, parseSettings(t, `{"rankingRules":["words","typo","price:asc"]}`), [][]*document{docs, {doc(100, "title", "orangs strawberri", "price", float64(1))}}, nil)
	memory := resultcache.New(16 << 20)
	scopes := []*resultcache.Scope{memory.Scope(), memory.Scope()}
	r := Request{Query: "orange strwberri ", Limit: 3, MaxTotal: 4, HitsOnly: true}
	for n, want := range []string{1: "0 1 2", 2: "100 0 1"} {
		if n == 0 {
			continue
		}
		view := *ix
		view.Segments, view.Cache = ix.Segments[:n], query.NewCache(memory, scopes[:n]...)
		for range 2 {
			if got := mustSearch(t, &view, r); found(got) != want || got.Total != 4 {
				t.Errorf("%d segments: %s of %d, want %s of 4", n, found(got), got.Total, want)
			}
		}
	}
}

// fewer reports whether a found fewer documents than b.
func fewer(a, b *Result) bool {
	n := 0
	for seg := range b.Candidates {
		n += a.Count(seg) - b.Count(seg)
	}
	return n < 0
}

// TestTyposAreExpandedWhereVisible varies everything that makes hits or totals depend on typos.
func TestTyposAreExpandedWhereVisible(t *testing.T) {
	var docs []*document
	for i := range 12 {
		docs = append(docs, doc(i, "title", []string{"orange", "orangs", "pear"}[i%3], "price", float64(i)))
	}
	score := 0.1
	for _, tt := range []struct {
		what, settings string
		r              Request
		want           int
	}{
		{"as many as are counted", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true}, 4},
		{"more are counted", `{}`, Request{Query: "orange", MaxTotal: 5, HitsOnly: true}, 8},
		{"all is asked", `{}`, Request{Query: "orange", MaxTotal: 4}, 8},
		{"two words", `{}`, Request{Query: "orange pear", MaxTotal: 4, HitsOnly: true}, 8},
		{"one is excluded", `{}`, Request{Query: "orange -pear", MaxTotal: 4, HitsOnly: true}, 8},
		{"scores", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Scores: true}, 8},
		{"a threshold", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Threshold: &score}, 8},
		{"distinct", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Distinct: "price"}, 8},
		{"none may be missing", `{}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true, Strategy: query.All}, 4},
		{"another rule comes before", `{"rankingRules":["words","price:desc","typo"]}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true}, 8},
		{"without the rule", `{"rankingRules":["words","proximity"]}`, Request{Query: "orange", MaxTotal: 4, HitsOnly: true}, 8},
	} {
		ix := build(t, parseSettings(t, tt.settings), [][]*document{docs}, nil)
		tt.r.Limit = 20
		got := mustSearch(t, ix, tt.r)
		if n := rows(got.Candidates).count(); n != tt.want || got.Total != min(tt.want, tt.r.MaxTotal) {
			t.Errorf("%s: %d documents, total %d, want %d", tt.what, n, got.Total, tt.want)
		}
	}
}
