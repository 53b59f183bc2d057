package group

import (
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// attackedRoutes has the parameters of each request that a writer answers. A member may be an impostor that knows the master key, or be
// broken.
var attackedRoutes = map[string][]string{
	"GET " + pathLog:    {"after", "wait"},
	"GET " + pathState:  {},
	"GET " + pathFile:   {"name", "from"},
	"GET " + pathSum:    {"name"},
	"POST " + pathYield: {"step", "at", "term"},
}

// attackedValues are what parameters are given. A position of "end" is never that of the writer, which goes on.
var attackedValues = map[string][]string{
	"after": {"", "x", "0.0.0", "1.1.0", "1.1.1", "1.1.18446744073709551615", "9.9.9", "-1.1.1", "1.1.1.1"},
	"wait":  {"", "0", "-1", "1", "x", "99999999999999999999"},
	"name": {"", ".", "/", "..", "../x", "auth.db", "GROUP", "LOCK", "tasks/queue.db", "tasks/running", "indexes/CATALOG", "indexes/1", "indexes/1/MANIFEST",
		"indexes/1/1.seg", "indexes/1/999.seg", "indexes/../auth.db", "indexes/1/a\x00.seg", "indexes/1/" + strings.Repeat("a", 300), "tasks/payloads/../queue.db", "tasks/payloads/x", "group/state/x/queue.db", "features.json"},
	"from": {"", "0", "1", "-1", "x", "9223372036854775807", "99999999999999999999"},
	"step": {"", "stand", "end", "x"},
	"at":   {"", "x", "9.9.9"},
	"term": {"", "0", "1", "4294967295", "4294967296", "x"},
}

// privateNames are files that no member gets by name: it gets copies of what it needs of them.
var privateNames = []string{"auth.db", "GROUP", "LOCK", "tasks/queue.db", "tasks/running", "indexes/CATALOG", "features.json", "group/state/x/queue.db"}

// TestAttackedRoutes sends random requests of a member to a writer: none fails inside it, none gets a private file, none costs much more
// than it is long, and the writer goes on.
func TestAttackedRoutes(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	h := newHost(t, func(o *WriterOptions) { o.standTime = 20 * time.Millisecond })
	h.add("a", 1, 2, 3)
	h.idle()
	s := h.w.serving
	if got, want := slices.Sorted(maps.Keys(s.routes())), slices.Sorted(maps.Keys(attackedRoutes)); !slices.Equal(got, want) {
		t.Fatalf("the table has the routes %q, and a writer answers %q", want, got)
	}
	who := newGuest(t)
	ask := func(route string, q url.Values) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(route, " ")
		req := httptest.NewRequest(method, path+"?"+q.Encode(), nil)
		req = req.WithContext(requestOf(who).Context())
		rw := httptest.NewRecorder()
		s.answer(rw, req, s.routes()[route])
		return rw
	}
	statuses := map[int]int{}
	for range 150 {
		route := slices.Sorted(maps.Keys(attackedRoutes))[r.IntN(len(attackedRoutes))]
		q := url.Values{}
		for _, name := range attackedRoutes[route] {
			values := attackedValues[name]
			q.Set(name, values[r.IntN(len(values))])
		}
		rw := ask(route, q)
		statuses[rw.Code]++
		switch rw.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusServiceUnavailable:
		default:
			t.Errorf("%s?%s: %d %s", route, q.Encode(), rw.Code, rw.Body)
		}
		if rw.Code == http.StatusOK && slices.Contains(privateNames, q.Get("name")) {
			t.Errorf("%s?%s: %d bytes", route, q.Encode(), rw.Body.Len())
		}
	}
	if statuses[http.StatusOK] == 0 || statuses[http.StatusNotFound] == 0 || statuses[http.StatusBadRequest] == 0 {
		t.Errorf("statuses %v", statuses)
	}
	for route, parameters := range attackedRoutes {
		for _, name := range parameters {
			short, long := h.allocated(func() { ask(route, url.Values{name: {strings.Repeat("a", 1<<10)}}) }), h.allocated(func() { ask(route, url.Values{name: {strings.Repeat("a", 16<<10)}}) })
			if long > 64*short+1<<20 {
				t.Errorf("%s: 1 KiB of %s costs %d bytes, and 16 KiB %d", route, name, short, long)
			}
		}
	}
	f := newFollower(t, h, nil)
	h.add("a", 4)
	f.reach(h) // it is not compared: the writer holds files for the member that asked for a state
}

// allocated returns how many bytes a call takes at least, of some: others take memory meanwhile.
func (h *host) allocated(f func()) uint64 {
	least := ^uint64(0)
	for range 5 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
