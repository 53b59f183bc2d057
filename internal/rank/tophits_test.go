package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/segment"
)

// everyNth is a filter for documents whose ids have a given remainder.
type everyNth struct {
	ix      *Index
	n, rest segment.DocID
	unnamed bool // has no key
	asked   []int
}

func (f *everyNth) all(seg int) *roaring.Bitmap {
	rows := roaring.New()
	for row := range f.ix.Segments[seg].Rows() {
		if f.ix.Segments[seg].DocID(segment.Row(row))%f.n == f.rest {
			rows.Add(uint32(row))
		}
	}
	return rows
}

func (f *everyNth) Rows(seg int) *roaring.Bitmap {
	f.asked = append(f.asked, seg)
	return roaring.And(f.all(seg), f.ix.Segments[seg].LiveRows())
}

func (f *everyNth) Among(seg int, rows *roaring.Bitmap, _ bool) *roaring.Bitmap {
	return roaring.And(f.all(seg), rows)
}

func (f *everyNth) Key() []byte {
	if f.unnamed {
		return nil
	}
	return fmt.Append(nil, f.n, " ", f.rest)
}

// variants are settings under which the same segments are searched.
var variants = []string{
	`{}`,
	`{"searchableAttributes":["tags","body","title"]}`,
	`{"rankingRules":["words","price:desc","typo","proximity"]}`,
	`{"rankingRules":["words","price:asc","typo","proximity"]}`,
	`{"rankingRules":["words","size:desc","typo","proximity"]}`,
	`{"rankingRules":["sort","words","typo","proximity"]}`,
	`{"rankingRules":["sort","words","proximity","typo"]}`,
	`{"rankingRules":["words","typo","proximity"]}`,
	`{"typoTolerance":{"enabled":false}}`,
	`{"typoTolerance":{"disableOnAttributes":["title"]}}`,
	`{"proximityPrecision":"byAttribute"}`,
}

// TestCachedPagesAcrossViews repeats a few queries in many ways in a series of views: each one has lost a listed document and some others,
// and most have another small segment. Hits, totals and candidates must equal those of a view without caches, and different sets of
// candidates must have different keys. Sometimes an older view is searched again.
func TestCachedPagesAcrossViews(t *testing.T) {
	defer func(rows, hits int) { largeRows, maxTopHits = rows, hits }(largeRows, maxTopHits)
	largeRows, maxTopHits = 50, 6
	defer func(c, l, few int) { classRows, listRows, fewOf = c, l, few }(classRows, listRows, fewOf)
	defer func(rows, hits int) { retryRows, retryHits = rows, hits }(retryRows, retryHits)
	ran, later := taken{}, taken{} // later counts paths of pages with an offset
	for seed := range uint64(3) {
		if seed > 0 {
			classRows, listRows, fewOf = 2, 3, 1
			retryRows, retryHits = 4, 2
		}
		m := &maker{Rand: rand.New(rand.NewPCG(seed, 3))}
		m.vocabulary()
		m.accents = seed > 0
		docs := m.documents(300)
		for _, d := range docs {
			d.values["size"] = []any{float64(m.IntN(5))}
			d.at = &point{float64(m.IntN(3)), float64(m.IntN(3))}
		}
		m.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
		parts := [][]*document{docs[:150], docs[150:250]}
		for rest := docs[250:]; len(rest) > 0; rest = rest[5:] {
			parts = append(parts, rest[:5])
		}
		const attributes = `{"searchableAttributes":["title","body","tags"],"sortableAttributes":["price","size","_geo"]}`
		c := build(t, parseSettings(t, attributes), parts, nil)
		memory := resultcache.New(16 << 20)
		scopes := make([]*resultcache.Scope, len(c.Segments))
		for i := range scopes {
			scopes[i] = memory.Scope()
		}
		names := []string{"body", "price", "size", "tags", "title"}
		under := make([]*settings.Settings, len(variants))
		for i, body := range variants {
			var err error
			update, err := settings.ParseUpdate([]byte(body), settings.Features{})
			if err != nil {
				t.Fatal(err)
			}
			if under[i], err = c.Settings.Apply(update); err != nil {
				t.Fatal(err)
			}
		}
		queries := []string{"", m.word(), m.word(), m.query(), m.query()}
		sorts := [][]SortKey{{{Field: "price"}}, {{Field: "price", Desc: true}}, {{Field: "size"}}, {{Field: "size", Desc: true}},
			{{Geo: true, Lat: 1, Lng: 2}}, {{Geo: true, Lat: 2, Lng: 2}}, {{Geo: true, Lat: 1, Lng: 0}}, {{Geo: true, Lat: 1, Lng: 2, Desc: true}}}
		type question struct {
			Request
			filter  *everyNth
			variant int
		}
		// The questions of a family differ from the first in one property each, to detect a key without that property.
		things := []func(q *question){
			func(q *question) { q.variant = m.IntN(len(variants)) },
			func(q *question) { q.Query = queries[m.IntN(len(queries))] },
			func(q *question) { q.Strategy = query.Strategy(m.IntN(3)) },
			func(q *question) { q.Limit = m.IntN(8) },
			func(q *question) { q.SearchOn = [][]string{nil, {"title"}, {"body"}, {"title", "tags"}}[m.IntN(4)] },
			func(q *question) { q.Sort = sorts[m.IntN(len(sorts))] },
			func(q *question) {
				n := 2 + m.IntN(2)
				q.filter = &everyNth{n: segment.DocID(n), rest: segment.DocID(m.IntN(n)), unnamed: m.chance(10)}
			},
			func(q *question) { q.Brief = !q.Brief },
			func(q *question) { q.Exhaustive = m.chance(50) },
			func(q *question) { q.MaxTotal = 1 + m.IntN(6) },
			func(q *question) { q.Offset = []int{1, 2, 3, 20, 400}[m.IntN(5)] },
			func(q *question) { q.Scores = true },
			func(q *question) { q.Distinct = "size" },
			func(q *question) { q.Query = m.written(q.Query) },
		}
		var questions []question
		for range 8 {
			q := question{Request: Request{MaxTotal: 1000, Limit: 5, Query: queries[m.IntN(len(queries))], Brief: true}}
			if m.chance(70) {
				q.Sort = sorts[m.IntN(len(sorts))]
			}
			questions = append(questions, q)
			for i, change := range things {
				for range []int{1, 1, 2, 1, 2, 3, 2, 1, 1, 1, 4, 1, 1, 2}[i] {
					sibling := q
					change(&sibling)
					questions = append(questions, sibling)
				}
			}
			for variant := range variants {
				sibling := q
				sibling.variant = variant
				questions = append(questions, sibling)
			}
		}
		sortable := func(q *question) bool {
			return slices.ContainsFunc(under[q.variant].RankingRules, func(r settings.RankingRule) bool { return r.Kind == settings.Sort })
		}
		for i := range questions {
			if !sortable(&questions[i]) {
				questions[i].Sort = nil
			}
		}
		type place struct {
			segment int
			key     string
		}
		keys := map[place]*roaring.Bitmap{} // results by key, with deleted rows
		var before [][]segment.Live
		for round := range 14 {
			n := max(2, min(round-4, len(c.Segments))) // at first without small segments
			lives := slices.Clone(c.Segments[:n])
			if m.chance(20) && len(before) > 1 {
				lives = before[m.IntN(len(before)-1)]
			} else {
				before = append(before, lives)
			}
			var shown []Hit
			caches := make([]*query.Cache, len(variants)) // one for each variant, as for separate views
			for i := range caches {
				caches[i] = query.NewCache(memory, scopes[:len(lives)]...)
			}
			for _, q := range append(questions, questions[:len(questions)/2]...) { // repeated queries may be cached with the view
				view := *c
				view.Segments, view.Settings, view.Cache = lives, under[q.variant], caches[q.variant]
				view.Fields = settings.Resolve(names, view.Settings, "id")
				fresh := view
				fresh.Cache = query.NewCache(resultcache.New(16 << 20))
				ask, plain := q.Request, q.Request
				if q.filter != nil {
					q.filter.ix = &view
					ask.Filter = q.filter
					plain.Universe = make([]*roaring.Bitmap, len(lives))
					for seg := range lives {
						plain.Universe[seg] = q.filter.Rows(seg)
					}
				}
				paths := ran
				if q.Offset > 0 {
					paths = later
				}
				got, err := paths.search(&view, &ask)
				if err != nil {
					t.Fatal(err)
				}
				want, err := Search(context.Background(), &fresh, &plain)
				if err != nil {
					t.Fatal(err)
				}
				name := fmt.Sprintf("seed %d, round %d, settings %s, filter %v, %+v", seed, round, variants[q.variant], q.filter, q.Request)
				if a, b := fmt.Sprint(found(got), got.Total), fmt.Sprint(found(want), want.Total); a != b {
					t.Fatalf("%s: %s, want %s", name, a, b)
				}
				for seg := range lives {
					if n := got.Count(seg); n != want.Count(seg) || !got.In(seg).Equals(want.In(seg)) {
						t.Fatalf("%s: segment %d: %d candidates, %v, want %v", name, seg, n, got.In(seg), want.In(seg))
					}
					if got.AppendKey == nil {
						continue
					}
					p := place{seg, string(got.AppendKey(nil, seg))}
					if other := keys[p]; other == nil {
						keys[p] = got.In(seg)
					} else if live := c.Segments[seg].LiveRows(); !roaring.And(other, live).Equals(roaring.And(got.In(seg), live)) {
						t.Fatalf("%s: segment %d: %v has the key of %v", name, seg, got.In(seg), other)
					}
				}
				ask.HitsOnly = true
				hits, err := Search(context.Background(), &view, &ask)
				if err != nil {
					t.Fatal(err)
				}
				if a, b := fmt.Sprint(found(hits), hits.Total), fmt.Sprint(found(want), want.Total); a != b {
					t.Fatalf("%s: of hits alone %s, want %s", name, a, b)
				}
				for i := range got.Hits {
					if got.Hits[i].Score != want.Hits[i].Score {
						t.Fatalf("%s: score %v, want %v", name, got.Hits[i].Score, want.Hits[i].Score)
					}
				}
				shown = append(shown, got.Hits...)
			}
			for _, cache := range caches {
				cache.Close()
			}
			gone := make([]*roaring.Bitmap, len(c.Segments))
			for seg := range gone {
				gone[seg] = roaring.New()
				if round%3 > 0 && m.chance(50) {
					gone[seg].Add(m.Uint32N(uint32(c.Segments[seg].Rows())))
				}
			}
			if len(shown) > 0 && m.chance(70) {
				h := shown[m.IntN(len(shown))]
				gone[h.Segment].Add(uint32(h.Row))
			}
			for seg := range gone {
				if s := &c.Segments[seg]; !gone[seg].IsEmpty() {
					if s.Deleted != nil {
						gone[seg].Or(s.Deleted)
					}
					s.Deleted = gone[seg]
				}
			}
		}
	}
	ran.wants(t, cachedHits, filteredMatches, allowedRows, matchedRows)
	later.wants(t, cachedHits)
}

// TestCachedSegmentsAreNotFiltered searches twice: the results of a large segment are cached the second time, also if a document that does
// not match the query is deleted.
func TestCachedSegmentsAreNotFiltered(t *testing.T) {
	defer func(rows int) { largeRows = rows }(largeRows)
	largeRows = 50
	var docs []*document
	for i := range 110 {
		docs = append(docs, doc(i, "title", []string{"apple", "pear"}[i%2], "price", float64(i)))
	}
	ix := build(t, parseSettings(t, `{"sortableAttributes":["price"]}`), [][]*document{docs[:100], docs[100:]}, nil)
	scopes := []*resultcache.Scope{resultcache.New(16 << 20).Scope(), resultcache.New(16 << 20).Scope()}
	for round, want := range []struct {
		filtered []int
		total    int
	}{{[]int{0, 1}, 37}, {[]int{1}, 37}, {[]int{1}, 37}, {[]int{1}, 36}} {
		f := &everyNth{ix: ix, n: 3, rest: 0}
		switch round {
		case 2:
			ix.Segments[0].Deleted = roaring.BitmapOf(7)
		case 3:
			ix.Segments[0].Deleted = roaring.BitmapOf(7, 60)
		}
		view := *ix
		view.Cache = query.NewCache(resultcache.New(16<<20), scopes...)
		got, err := Search(context.Background(), &view, &Request{Filter: f, Brief: true, Sort: []SortKey{{Field: "price"}}, Limit: 5, MaxTotal: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(f.asked, want.filtered) || got.Total != want.total {
			t.Errorf("round %d: segments %v are filtered, total %d, want %v, %d", round, f.asked, got.Total, want.filtered, want.total)
		}
	}
}

// TestHalfOfACachedSegmentIsDeleted deletes as many documents as it leaves.
func TestHalfOfACachedSegmentIsDeleted(t *testing.T) {
	defer func(rows int) { largeRows = rows }(largeRows)
	largeRows = 50
	var docs []*document
	for i := range 100 {
		docs = append(docs, doc(i, "title", []string{"apple", "pear", "plum"}[min(i%7, 2)]))
	}
	ix := build(t, parseSettings(t, `{}`), [][]*document{docs}, nil)
	scope := resultcache.New(16 << 20).Scope()
	for _, want := range []int{15, 7} { // apples
		view := *ix
		view.Cache = query.NewCache(resultcache.New(16<<20), scope)
		got, err := Search(context.Background(), &view, &Request{Query: "apple", Brief: true, Limit: 20, MaxTotal: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if got.Total != want || len(got.Hits) != want || got.Count(0) != want {
			t.Errorf("%d of %d documents, want %d", len(got.Hits), got.Total, want)
		}
		ix.Segments[0].Deleted = roaring.New()
		ix.Segments[0].Deleted.AddRange(0, 50)
	}
}
