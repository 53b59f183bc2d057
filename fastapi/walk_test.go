package fastapi

import (
	"encoding/json"
	flags "flag"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/segment"
)

var (
	walkRequests = flags.Int("walk.requests", 1000, "requests of TestWalk")
	walkSeed     = flags.Uint64("walk.seed", 0, "seed of TestWalk; 0: another one each time")
)

// walkRun is the number of requests that one index gets; then a new index starts with another seed.
const walkRun = 500

// TestWalk changes settings and documents at random like a client, and compares searches, lists and statistics with a model that checks
// the documents one by one. In between, the server is restarted and segments are merged.
func TestWalk(t *testing.T) {
	defer func(bytes, block int) { segment.MinInfixBytes, segment.InfixBlockBytes = bytes, block }(segment.MinInfixBytes, segment.InfixBlockBytes)
	segment.MinInfixBytes, segment.InfixBlockBytes = 1, 8
	seed := *walkSeed
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	for n := 0; n < *walkRequests; n += walkRun {
		if !t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) { walkOnce(t, seed) }) {
			return
		}
		seed++
	}
}

// walk is a walk over one index.
type walk struct {
	walkRandom
	t     *testing.T
	dir   string
	c     *client
	model *walkModel
	all   map[string]any // settings
	spare *walk          // another index, swapped with this one now and then; only its model and settings are used
	asked []*walkSearch  // recent searches, repeated after changes
	ids   int            // number of ids: few, so that writes collide
	left  int            // requests left
	path  []string       // writes so far
}

func walkOnce(t *testing.T, seed uint64) {
	w := &walk{walkRandom: walkRandom{Rand: rand.New(rand.NewPCG(seed, 1))}, t: t, dir: t.TempDir(), left: walkRun, ids: 50,
		all: maps.Clone(walkDefaults), model: &walkModel{known: map[string]bool{}, set: parseWalkSettings(walkDefaults)}}
	if w.many = w.chance(5); w.many {
		w.ids = 700
	}
	for first := true; w.left > 0; first = false {
		life := func(t *testing.T) {
			w.c = w.open(t)
			r := w.c.json("PATCH", "/experimental-features", `{"containsFilter": true, "editDocumentsByFunction": true}`)
			if r.status != 200 {
				t.Fatal(r.body)
			}
			if first {
				w.spare = &walk{}
				w.create("spare")
				w.swap()
				w.create("walk")
			}
			for stop := max(0, w.left-100-w.IntN(200)); w.left > stop; w.left-- {
				w.step()
			}
		}
		if !t.Run("life", life) {
			t.Logf("on the way:\n%s", strings.Join(w.path[max(0, len(w.path)-12):], "\n"))
			return
		}
		w.path = append(w.path, "close and open")
	}
}

// open starts a server on the files of the walk, which ends with t.
func (w *walk) open(t *testing.T) *client {
	o := Options{Logger: slog.New(slog.DiscardHandler)}
	catalog, err := index.OpenCatalog(filepath.Join(w.dir, "indexes"), index.Options{
		FS: vfs.OS, Logger: o.Logger, Now: time.Now, MaxIndexingMemory: 64 << 20, MaxIndexingThreads: 1 + w.IntN(2),
	})
	if err != nil {
		t.Fatal(err)
	}
	queue, err := task.Open(task.Options{
		Dir: filepath.Join(w.dir, "tasks"), Catalog: catalog, Logger: o.Logger, Now: time.Now, MaxBatchTasks: -1, MaxBatchBytes: -1,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := queue.Close(); err != nil {
			t.Error(err)
		}
		if err := catalog.Close(); err != nil {
			t.Error(err)
		}
	})
	o.Catalog, o.Queue = catalog, queue
	return newClient(t, o)
}

// done waits for a task, which must succeed, and returns its details.
func (w *walk) done(r reply) map[string]any {
	w.c.t.Helper()
	var ended struct {
		Status  string
		Details map[string]any
	}
	if body := w.c.wait(r); json.Unmarshal([]byte(body), &ended) != nil || ended.Status != "succeeded" {
		w.c.t.Fatalf("task: %s", body)
	}
	return ended.Details
}

func (w *walk) write(method, path, body string) reply {
	w.path = append(w.path, fmt.Sprintf("%s %s %.500s", method, path, body))
	return w.c.json(method, w.named()+path, body)
}

// named returns the path of the index, by its uid or by its alias.
func (w *walk) named() string {
	return pick(w.walkRandom, "/indexes/walk", "/indexes/walk", "/indexes/also-walk")
}

// ask sends a request that is answered at once.
func (w *walk) ask(method, path, body string, into any) string {
	w.c.t.Helper()
	var r reply
	if method == "GET" {
		r = w.c.get(w.named() + path)
	} else {
		r = w.c.json(method, w.named()+path, body)
	}
	if r.status != 200 {
		w.c.t.Fatalf("%s %s %s: %d %s\nsettings %s", method, path, body, r.status, r.body, encode(w.all))
	}
	if into != nil {
		if err := decodeExactly(r.body, into); err != nil {
			w.c.t.Fatalf("%s %s: %v in %s", method, path, err, r.body)
		}
	}
	return r.body
}

func (w *walk) step() {
	switch n := w.IntN(100); {
	case n < 5:
		w.changeSettings()
	case n < 25:
		w.changeDocuments()
	case n < 31:
		w.fetch()
	case n < 34:
		w.stats()
	case n < 38:
		w.facetSearch()
	case n < 40:
		w.other()
	case n < 43:
		w.aggregate()
	default:
		w.search()
	}
}

func (w *walk) search() {
	w.c.t.Helper()
	var s *walkSearch
	if len(w.asked) > 0 && w.chance(25) {
		s = pick(w.walkRandom, w.asked...)
	} else {
		s = w.walkRandom.search(w.model)
		w.asked = append(w.asked, s)
		w.asked = w.asked[max(0, len(w.asked)-10):]
	}
	var body string
	if w.chance(10) {
		w.searchBoth(s)
		return
	}
	if w.chance(10) && w.searchByCursor(s) {
		return
	}
	if w.chance(10) && w.searchForSuggestions(s) {
		return
	}
	if params, ok := s.params(); ok && w.chance(20) {
		body = w.ask("GET", "/search?"+params, "", nil)
	} else {
		body = w.ask("POST", "/search", encode(s.body), nil)
	}
	w.compare(s, body)
}

func (w *walk) compare(s *walkSearch, body string) {
	w.c.t.Helper()
	if why := w.model.compare(s, body); why != "" {
		w.c.t.Fatalf("search %s\n%s\nanswer %s\n%s", encode(s.body), why, body, w.state())
	}
}

// searchBoth sends two searches at once.
func (w *walk) searchBoth(s *walkSearch) {
	w.c.t.Helper()
	both := []*walkSearch{s, w.walkRandom.search(w.model)}
	var queries []map[string]any
	for _, s := range both {
		query := maps.Clone(s.body)
		query["indexUid"] = "walk"
		queries = append(queries, query)
	}
	var got struct{ Results []json.RawMessage }
	r := w.c.json("POST", "/multi-search", encode(map[string]any{"queries": queries}))
	if r.status != 200 || json.Unmarshal([]byte(r.body), &got) != nil || len(got.Results) != len(both) {
		w.c.t.Fatalf("multi-search %s: %d %s", encode(queries), r.status, r.body)
	}
	for i, s := range both {
		w.compare(s, string(got.Results[i]))
	}
}

// readOn reads page after page by cursor, and returns all ids.
func (w *walk) readOn(path string, body map[string]any) (ids []string) {
	w.c.t.Helper()
	body = maps.Clone(body)
	delete(body, "offset")
	body["limit"], body["cursor"] = 1+w.IntN(9), ""
	for range w.ids + 60 { // some documents have large ids
		var page struct {
			Hits, Results []map[string]any
			NextCursor    *string
		}
		w.ask("POST", path, encode(body), &page)
		for _, hit := range append(page.Hits, page.Results...) {
			ids = append(ids, plainID(fmt.Sprint(hit["id"])))
		}
		if page.NextCursor == nil {
			return ids
		}
		body["cursor"] = *page.NextCursor
	}
	w.c.t.Fatalf("%s %s: pages by cursor do not end", path, encode(body))
	return nil
}

// searchByCursor reads all hits of a search, also those beyond maxTotalHits. It returns false for searches that have numbered pages.
func (w *walk) searchByCursor(s *walkSearch) bool {
	w.c.t.Helper()
	if s.paged {
		return false
	}
	all, m := *s, *w.model
	all.offset, all.limit, m.set.Pagination.MaxTotalHits = 0, 1<<30, 1<<30
	var want []string
	for _, h := range m.find(&all).hits {
		want = append(want, h.id)
	}
	if got := w.readOn("/search", s.body); !slices.Equal(got, want) {
		w.c.t.Fatalf("search %s by cursor\n got %v\nwant %v\n%s", encode(s.body), got, want, w.state())
	}
	return true
}

// searchForSuggestions checks the suggestions of a search with a typo. Only a search without hits may have suggestions, and each must find
// as many documents as it says. It returns false for searches with numbered pages or without a query.
func (w *walk) searchForSuggestions(s *walkSearch) bool {
	w.c.t.Helper()
	q, _ := s.body["q"].(string)
	if s.paged || q == "" {
		return false
	}
	type answer struct {
		Hits               []any
		EstimatedTotalHits int
		Suggestions        []struct {
			Query              string
			EstimatedTotalHits int
		}
	}
	body := maps.Clone(s.body)
	delete(body, "facets")
	body["q"], body["suggest"], body["offset"] = q[:len(q)-1]+"zq", true, 0
	var got answer
	w.ask("POST", "/search", encode(body), &got)
	if got.Suggestions == nil || got.EstimatedTotalHits > 0 && len(got.Suggestions) > 0 || len(got.Suggestions) > 3 {
		w.c.t.Fatalf("search %s has %d hits and suggests %v\n%s", encode(body), got.EstimatedTotalHits, got.Suggestions, w.state())
	}
	delete(body, "suggest")
	for _, other := range got.Suggestions {
		var found answer
		body["q"] = other.Query
		w.ask("POST", "/search", encode(body), &found)
		if found.EstimatedTotalHits != other.EstimatedTotalHits || found.EstimatedTotalHits == 0 {
			w.c.t.Fatalf("search %s finds %d, but its suggestion says %d\n%s", encode(body), found.EstimatedTotalHits, other.EstimatedTotalHits, w.state())
		}
	}
	return true
}

// state returns everything that an answer depends on.
func (w *walk) state() string {
	return "settings " + encode(w.all) + "\ndocuments " + encode(w.model.members())
}

// members returns all documents.
func (m *walkModel) members() []any {
	var all []any
	for _, d := range m.docs {
		all = append(all, d.members)
	}
	return all
}

// fetch lists documents by a filter and an order.
func (w *walk) fetch() {
	w.c.t.Helper()
	m := w.model
	body := map[string]any{"offset": w.IntN(6), "limit": w.IntN(20)}
	found := slices.Clone(m.docs)
	if m.canFilter() && w.chance(60) {
		filter, keep := w.filter(m, 2)
		body["filter"] = filter
		found = slices.DeleteFunc(found, func(d *walkDoc) bool { return !keep(d) })
	}
	if w.chance(50) {
		by := w.order(m)
		body["sort"] = sortBody(by)
		slices.SortStableFunc(found, func(a, b *walkDoc) int {
			for _, s := range by {
				if c := s.compare(a, b); c != 0 {
					return c
				}
			}
			return 0
		})
	}
	var fields []string
	if w.chance(40) {
		fields = append(some(w.walkRandom, 3, "t", "o", "o.k", "g"), "id")
		body["fields"] = fields
	}
	var got struct {
		Results []map[string]any
		Total   int
	}
	answer := w.ask("POST", "/documents/fetch", encode(body), &got)
	want := []map[string]any{}
	first := min(body["offset"].(int), len(found))
	for _, d := range found[first:min(first+body["limit"].(int), len(found))] {
		want = append(want, d.shown(fields))
	}
	if got.Total != len(found) || !reflect.DeepEqual(got.Results, want) {
		w.c.t.Fatalf("fetch %s\n got %s\nwant %d, %s", encode(body), answer, len(found), encode(want))
	}
	if w.chance(20) {
		var ids []string
		for _, d := range found {
			ids = append(ids, d.id)
		}
		if got := w.readOn("/documents/fetch", body); !slices.Equal(got, ids) {
			w.c.t.Fatalf("fetch %s by cursor\n got %v\nwant %v", encode(body), got, ids)
		}
	}
}

// stats compares the statistics.
func (w *walk) stats() {
	w.c.t.Helper()
	var got struct {
		NumberOfDocuments int
		FieldDistribution map[string]int
	}
	w.ask("GET", "/stats", "", &got)
	want := map[string]int{}
	for _, d := range w.model.docs {
		for name := range d.members {
			want[name]++
		}
	}
	if got.NumberOfDocuments != len(w.model.docs) || !maps.Equal(got.FieldDistribution, want) {
		w.c.t.Fatalf("statistics %v, want %d, %v", got, len(w.model.docs), want)
	}
}
