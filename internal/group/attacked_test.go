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

// attackedRoutes lists the parameters of each request that a writer and a voter serve; bodyOf stands for the body. The sender may be an
// impostor that knows the master key, or a member with a bug.
var attackedRoutes = map[Role]map[string][]string{
	RoleWriter: {
		"GET " + pathLog:    {"after", "wait"},
		"GET " + pathState:  {},
		"GET " + pathFile:   {"name", "from"},
		"GET " + pathSum:    {"name"},
		"POST " + pathYield: {"step", "at", "term"},
	},
	RoleVoter: {
		"POST " + pathJoin:   {bodyOf},
		"POST " + pathLacks:  {bodyOf},
		"PUT " + pathSpool:   {"key", "index", bodyOf},
		"GET " + pathLatest:  {},
		"POST " + pathLapsed: {"member", "term", "index"},
		"GET " + pathState:   {},
		"GET " + pathFile:    {"name", "from", "key"},
		"GET " + pathSum:     {"name"},
		"GET " + pathLog:     {"after", "wait"},
	},
}

const bodyOf = "body"

// attackedValues are the values that parameters get; ID stands for the id of the member that asks. "end" is never the position of the
// writer, because the writer keeps writing.
var attackedValues = map[string][]string{
	"after": {"", "x", "0.0.0", "1.1.0", "1.1.1", "1.1.18446744073709551615", "9.9.9", "-1.1.1", "1.1.1.1"},
	"wait":  {"", "0", "-1", "1", "x", "99999999999999999999"},
	"name": {"", ".", "/", "..", "../x", "auth.db", "GROUP", "LOCK", "tasks/queue.db", "tasks/running", "indexes/CATALOG", "indexes/1", "indexes/1/MANIFEST",
		"indexes/1/1.seg", "indexes/1/999.seg", "indexes/../auth.db", "indexes/1/a\x00.seg", "indexes/1/" + strings.Repeat("a", 300), "tasks/payloads/../queue.db", "tasks/payloads/x", "group/state/x/queue.db", "group/state/ID/queue.db", "group/state/ID/pinned", "group/state/ID/a\x00",
		"group/state/ID/" + strings.Repeat("a", 300), "features.json"},
	"from": {"", "0", "1", "-1", "x", "9223372036854775807", "99999999999999999999"},
	"step": {"", "stand", "end", "x"},
	"at":   {"", "x", "9.9.9"},
	"term": {"", "0", "1", "4294967295", "4294967296", "x"},
	"key": {"", "x", "../x", "99aa06d3014798d86001c324468d497f-0", "99aa06d3014798d86001c324468d497f-1", "99aa06d3014798d86001c324468d497f--1",
		"99aa06d3014798d86001c324468d497f-9223372036854775807"},
	"member": {"", "x", "ID"},
	"index":  {"", "0", "1", "-1", "x", "18446744073709551615"},
	bodyOf: {"", "x", "{}", "null", "[]", `{"a":1}`, `{"a":-1}`, `{"member":"x","address":"127.0.0.1:1"}`, `{"member":"ID"}`, `{"member":"ID","address":"127.0.0.1:1"}`,
		`{"member":"ID","address":"LEADER"}`},
}

// privateNames are files that no member may fetch by name. Members get copies of the parts that they need.
var privateNames = []string{"auth.db", "GROUP", "LOCK", "tasks/queue.db", "tasks/running", "indexes/CATALOG", "features.json", "group/state/x/queue.db"}

// TestAttackedRoutes sends random requests of a member to a writer and to a voter. No request may cause an internal error, return a
// private file, or cost much more memory than its length. The writer and the voter must keep working.
func TestAttackedRoutes(t *testing.T) {
	t.Parallel()
	h := newHost(t, func(o *WriterOptions) { o.standTime = 20 * time.Millisecond })
	h.add("a", 1, 2, 3)
	h.idle()
	s := h.w.serving
	attack(t, RoleWriter, s.routes(), "", s.answer)
	f := newFollower(t, h, nil)
	h.add("a", 4)
	f.reach(h) // not compared with same: the writer holds files for the member that asked for a state

	all := newElectors(t, 1)
	e := leaderOf(t, all)
	attack(t, RoleVoter, e.v.routes(), e.o.Addr, func(rw http.ResponseWriter, r *http.Request, h func(http.ResponseWriter, *http.Request) error) {
		e.v.asked.answer(rw, r, func(*guest) error { return h(rw, r) })
	})
	accept(t, all, "a.json", []byte("1"))
}

// attack sends random requests to a member.
func attack[H any](t *testing.T, role Role, routes map[string]H, leader string, answer func(http.ResponseWriter, *http.Request, H)) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("%s: seed %d", role, seed)
	r := rand.New(rand.NewPCG(seed, 0))
	attacked := attackedRoutes[role]
	if got, want := slices.Sorted(maps.Keys(routes)), slices.Sorted(maps.Keys(attacked)); !slices.Equal(got, want) {
		t.Fatalf("the table has the routes %q, and a %s answers %q", want, role, got)
	}
	who := newGuest(t)
	ask := func(route string, q url.Values) *httptest.ResponseRecorder {
		method, path, _ := strings.Cut(route, " ")
		body := q.Get(bodyOf)
		q.Del(bodyOf)
		req := httptest.NewRequest(method, path+"?"+q.Encode(), strings.NewReader(body))
		req = req.WithContext(requestOf(who).Context())
		rw := httptest.NewRecorder()
		answer(unhurried{rw}, req, routes[route])
		return rw
	}
	statuses := map[int]int{}
	for range 150 {
		route := slices.Sorted(maps.Keys(attacked))[r.IntN(len(attacked))]
		q := url.Values{}
		for _, name := range attacked[route] {
			values := attackedValues[name]
			q.Set(name, strings.NewReplacer("ID", who.hello.Member, "LEADER", leader).Replace(values[r.IntN(len(values))]))
		}
		text := q.Encode()
		rw := ask(route, q)
		statuses[rw.Code]++
		switch rw.Code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound, http.StatusConflict, http.StatusGone, http.StatusServiceUnavailable:
		default:
			t.Errorf("%s?%s: %d %s", route, text, rw.Code, rw.Body)
		}
		// The spool may have a file without content: an attack has put it there, and asks for it by its key.
		if rw.Code == http.StatusOK && slices.Contains(privateNames, q.Get("name")) && rw.Body.Len() > 0 {
			t.Errorf("%s?%s: %d bytes", route, text, rw.Body.Len())
		}
	}
	if statuses[http.StatusOK] == 0 || statuses[http.StatusNotFound] == 0 || statuses[http.StatusBadRequest] == 0 {
		t.Errorf("statuses %v", statuses)
	}
	for route, parameters := range attacked {
		for _, name := range parameters {
			short, long := allocated(func() { ask(route, url.Values{name: {strings.Repeat("a", 1<<10)}}) }), allocated(func() { ask(route, url.Values{name: {strings.Repeat("a", 16<<10)}}) })
			if long > 64*short+1<<20 {
				t.Errorf("%s: 1 KiB of %s costs %d bytes, and 16 KiB %d", route, name, short, long)
			}
		}
	}
}

// unhurried is a response writer that ignores deadlines.
type unhurried struct{ *httptest.ResponseRecorder }

func (unhurried) SetReadDeadline(time.Time) error  { return nil }
func (unhurried) SetWriteDeadline(time.Time) error { return nil }

// allocated returns the fewest bytes that one of several calls allocates: other goroutines allocate at the same time.
func allocated(f func()) uint64 {
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
