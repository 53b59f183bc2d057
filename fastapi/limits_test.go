package fastapi

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unsafe"

	"svc/internal/budget"
	"svc/internal/monotonic"
)

func repeated(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

// TestParameterLimits sends each kind of parameter at its limit and above.
func TestParameterLimits(t *testing.T) {
	c, _ := newInstance(t, Options{})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "title": "Metropolis"}]`))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["title"],"sortableAttributes":["title"]}`))
	text := func(n int) string { return `"` + strings.Repeat("x", n) + `"` }
	list := func(item string) func(int) string {
		return func(n int) string { return "[" + repeated(item, n) + "]" }
	}
	for _, test := range []struct {
		path, name string
		value      func(n int) string
		most       int
		code       string
	}{
		{"search", "highlightPreTag", text, maxTagBytes, "invalid_search_highlight_pre_tag"},
		{"search", "highlightPostTag", text, maxTagBytes, "invalid_search_highlight_post_tag"},
		{"search", "cropMarker", text, maxTagBytes, "invalid_search_crop_marker"},
		{"search", "attributesToRetrieve", list(`"a"`), maxListEntries, "invalid_search_attributes_to_retrieve"},
		{"search", "attributesToHighlight", list(`"a"`), maxListEntries, "invalid_search_attributes_to_highlight"},
		{"search", "facets", list(`"title"`), maxListEntries, "invalid_search_facets"},
		{"search", "sort", list(`"title:asc"`), maxSortRules, "invalid_search_sort"},
		{"search", "filter", func(n int) string { return `"` + strings.Repeat("title = a OR ", n-1) + `title = b"` }, 10000, "invalid_search_filter"},
		{"search", "filter", list(`"title = a"`), 10000, "invalid_search_filter"},
		{"facet-search", "facetQuery", text, maxTextBytes, "invalid_facet_search_query"},
		{"documents/fetch", "fields", list(`"a"`), maxListEntries, "invalid_document_fields"},
		{"documents/fetch", "ids", list("1"), maxIDs, "invalid_document_ids"},
	} {
		body := func(n int) string {
			if test.path == "facet-search" {
				return fmt.Sprintf(`{"facetName":"title","%s":%s}`, test.name, test.value(n))
			}
			return fmt.Sprintf(`{"%s":%s}`, test.name, test.value(n))
		}
		if r := c.json("POST", "/indexes/films/"+test.path, body(test.most)); r.status != 200 {
			t.Errorf("%s: %s of %d: %d %.200s", test.path, test.name, test.most, r.status, r.body)
		}
		if r := c.json("POST", "/indexes/films/"+test.path, body(test.most+1)); r.status != 400 || r.code() != test.code {
			t.Errorf("%s: %s of %d: %d %.200s", test.path, test.name, test.most+1, r.status, r.body)
		}
	}
	if r := c.json("POST", "/indexes/films/search", `{"q":"`+strings.Repeat("metropolis ", 20000)+`"}`); r.status != 200 {
		t.Errorf("a long query: %d %.200s", r.status, r.body)
	}
	queries := func(n int) string { return `{"queries":[` + repeated(`{"indexUid":"films","limit":0}`, n) + "]}" }
	if r := c.json("POST", "/multi-search", queries(DefaultMultiQueries)); r.status != 200 {
		t.Errorf("many queries: %d %.200s", r.status, r.body)
	}
	if r := c.json("POST", "/multi-search", queries(DefaultMultiQueries+1)); r.status != 400 || r.code() != "bad_request" {
		t.Errorf("too many queries: %d %.200s", r.status, r.body)
	}
}

func TestBodyLimits(t *testing.T) {
	c, _ := newInstance(t, Options{JSONLimit: 1000, PayloadLimit: 20000})
	padded := func(n int, body string) string { return body + strings.Repeat(" ", n-len(body)) }
	for _, test := range []struct {
		method, path, body string
		limit              int
	}{
		{"POST", "/indexes/a/search", `{}`, 1000},
		{"POST", "/multi-search", `{"queries":[]}`, 1000},
		{"POST", "/indexes/a/documents/fetch", `{}`, 1000},
		{"POST", "/swap-indexes", `[]`, 1000},
		{"PATCH", "/indexes/a/settings", `{}`, 10000},
		{"PUT", "/indexes/a/settings/stop-words", `[]`, 10000},
		{"POST", "/indexes/a/documents", `[]`, 20000},
		{"POST", "/indexes/a/documents/delete-batch", `[]`, 20000},
	} {
		for _, packed := range []bool{false, true} {
			send := func(n int) reply {
				if !packed {
					return c.json(test.method, test.path, padded(n, test.body))
				}
				var b bytes.Buffer
				w := gzip.NewWriter(&b)
				fmt.Fprint(w, padded(n, test.body))
				w.Close()
				return c.send(test.method, test.path, &b, "Content-Type", "application/json", "Content-Encoding", "gzip")
			}
			if r := send(test.limit); r.status == 413 {
				t.Errorf("%s %s with %d bytes (packed: %t): %s", test.method, test.path, test.limit, packed, r.body)
			}
			if r := send(test.limit + 1); r.status != 413 || r.code() != "payload_too_large" {
				t.Errorf("%s %s with %d bytes (packed: %t): %d %s", test.method, test.path, test.limit+1, packed, r.status, r.body)
			}
		}
	}
}

// TestPackedBodiesEnd sends compressed bodies with many parts that decompress to nothing.
func TestPackedBodiesEnd(t *testing.T) {
	const limit = 100_000
	c := newClient(t, Options{JSONLimit: limit})
	for encoding, part := range map[string][]byte{
		"gzip": compressed(t, "gzip", ""),
		"zstd": append([]byte("\x50\x2a\x4d\x18\x10\x00\x00\x00"), make([]byte, 16)...), // a skippable frame (RFC 8878, 3.1.2)
	} {
		body := compressed(t, encoding, `{"metrics": true}`)
		for _, tt := range []struct{ bytes, status int }{{limit, 200}, {packedShare*limit + packedBytes - 100, 200}, {packedShare*limit + packedBytes + 100, 413}} {
			parts := (tt.bytes - len(body)) / len(part)
			sent := append(slices.Clone(body), bytes.Repeat(part, parts)...)
			for _, r := range []io.Reader{bytes.NewReader(sent), chunked{bytes.NewReader(sent)}} {
				got := c.send("PATCH", "/experimental-features", r, "Content-Type", "application/json", "Content-Encoding", encoding)
				if got.status != tt.status || tt.status == 413 && (got.code() != "payload_too_large" || !strings.Contains(got.body, "265536 bytes")) {
					t.Errorf("%s with %d bytes in %d empty parts: %d %s", encoding, len(sent), parts, got.status, got.body)
				}
			}
		}
	}
}

// TestAnswersAreBounded requests more than an answer may have, in all ways to get documents.
func TestAnswersAreBounded(t *testing.T) {
	c, _ := newInstance(t, Options{AnswerLimit: 200000, Searches: 4, SearchQueue: 10})
	var docs []string
	for i := range 400 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"text":"%s"}`, i, strings.Repeat("word ", 200)))
	}
	c.wait(c.json("POST", "/indexes/films/documents", "["+strings.Join(docs, ",")+"]"))
	for _, test := range []struct{ path, small, large, code string }{
		{"/indexes/films/search", `{"limit":100}`, `{"limit":400}`, "invalid_search_limit"},
		{"/indexes/films/search", `{"limit":1}`, `{"q":"word","limit":100,"attributesToHighlight":["*"],"highlightPreTag":"` + strings.Repeat("x", 1000) + `"}`, "invalid_search_limit"},
		{"/multi-search", `{"queries":[{"indexUid":"films","limit":50},{"indexUid":"films","limit":50}]}`,
			`{"queries":[{"indexUid":"films","limit":150},{"indexUid":"films","limit":150}]}`, "invalid_search_limit"},
		{"/multi-search", `{"federation":{"limit":100},"queries":[{"indexUid":"films"}]}`, `{"federation":{"limit":400},"queries":[{"indexUid":"films"}]}`, "invalid_search_limit"},
		{"/indexes/films/documents/fetch", `{"limit":100}`, `{"limit":400}`, "invalid_document_limit"},
	} {
		if r := c.json("POST", test.path, test.small); r.status != 200 {
			t.Errorf("%s %s: %d %.200s", test.path, test.small, r.status, r.body)
		}
		if r := c.json("POST", test.path, test.large); r.status != 400 || r.code() != test.code {
			t.Errorf("%s %s: %d %.200s", test.path, test.large, r.status, r.body)
		}
	}
	if used := heldAtEnd(c.server); used != 0 {
		t.Errorf("%d bytes are held although nothing runs", used)
	}
}

// TestSlowestIsCutOff checks which connections that hold memory are closed: the slowest first, and only those for which the server waits.
func TestSlowestIsCutOff(t *testing.T) {
	b := budget.New(1<<30, nil)
	cs := &conns{open: map[*conn]struct{}{}}
	ago := func(d time.Duration) int64 { return monotonic.Nanos(time.Now().Add(-d)) }
	open := func(held, moved int64, since time.Duration, blocked bool) *conn {
		_, server := net.Pipe()
		t.Cleanup(func() { server.Close() })
		c := &conn{Conn: server, in: cs}
		a := b.Open(1 << 30)
		if err := a.Hold(held); err != nil {
			t.Fatal(err)
		}
		c.account.Store(a)
		c.since.Store(ago(since))
		c.moved.Store(moved)
		c.blocked.Store(blocked)
		cs.open[c] = struct{}{}
		return c
	}
	const second = time.Second
	slowest := open(1000, 10, 5*second, true)
	slow := open(1000, 1000, 5*second, true)
	quick := open(1000, 100000, 5*second, true)
	fresh := open(1000, 0, -time.Minute, true) // not slow even if the machine pauses here
	works := open(1000, 0, 50*second, false)
	cs.relieve(1500)
	for name, test := range map[string]struct {
		c    *conn
		want bool
	}{"slowest": {slowest, true}, "slow": {slow, true}, "quick": {quick, false}, "fresh": {fresh, false}, "at work": {works, false}} {
		if test.c.cut.Load() != test.want {
			t.Errorf("%s: cut off is %t", name, test.c.cut.Load())
		}
	}
	if n, err := slow.Read(make([]byte, 1)); n != 0 || err != errCut {
		t.Errorf("a connection that is cut off reads %d bytes: %v", n, err)
	}
	if n, err := slow.Write(make([]byte, 1)); n != 0 || err != errCut {
		t.Errorf("a connection that is cut off writes %d bytes: %v", n, err)
	}
}

// TestLargeBodiesReserveMemoryFirst announces large bodies while there is no memory for them: they must be refused before they are sent.
func TestLargeBodiesReserveMemoryFirst(t *testing.T) {
	c, _ := newInstance(t, Options{Memory: 4 << 20, PayloadLimit: 1 << 30})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id":1}]`))
	other := c.server.budget.Open(1)
	if err := other.Hold(4<<20 - 1000); err != nil {
		t.Fatal(err)
	}
	ask := func(length int, body string) string {
		client, server := net.Pipe()
		defer client.Close()
		go c.server.http.ServeConn(&conn{Conn: server, in: c.server.conns}) // an error means that the client has gone
		go fmt.Fprintf(client, "POST /indexes/films/search HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", length, body)
		client.SetReadDeadline(time.Now().Add(time.Minute))
		status := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(client, status); err != nil {
			t.Errorf("a body of %d bytes: %v", length, err)
		}
		return string(status)
	}
	if got := ask(900_000, strings.Repeat(" ", 10_000)); got != "HTTP/1.1 503" {
		t.Errorf("a body for which there is no room: %s", got)
	}
	if got := ask(2, "{}"); got != "HTTP/1.1 200" {
		t.Errorf("a small body: %s", got)
	}
	other.Close()
	long := `{"q":"` + strings.Repeat("x", 100_000) + `"}`
	if got := ask(len(long), long); got != "HTTP/1.1 200" {
		t.Errorf("a large body, when there is room again: %s", got)
	}
}

// ahead returns a time as it would be if the clock of the machine had been ahead by d, and was set right since.
func ahead(t time.Time, d time.Duration) time.Time {
	*(*uint64)(unsafe.Pointer(&t)) += uint64(d/time.Second) << 30 // seconds of the time of day, not of the monotonic clock
	return t
}

// TestSlowClientsAreCutOffAfterTheTimeOfDayIsSetBack has a client that was slow before.
func TestSlowClientsAreCutOffAfterTheTimeOfDayIsSetBack(t *testing.T) {
	if now := time.Now(); ahead(now, time.Hour).Round(0).Sub(now.Round(0)) != time.Hour {
		t.Fatal("the layout of times has changed")
	}
	b := budget.New(1<<30, nil)
	cs := &conns{open: map[*conn]struct{}{}, most: 10}
	c := openConn(t, cs, true, true, 0)
	a := b.Open(1 << 30)
	if err := a.Hold(1 << 20); err != nil {
		t.Fatal(err)
	}
	c.account.Store(a)
	before := ahead(time.Now().Add(-time.Second), time.Hour)
	c.since.Store(monotonic.Nanos(before))
	cs.relieved.Store(monotonic.Nanos(before))
	if cs.relieve(1); !c.cut.Load() {
		t.Error("the slow client is not cut off")
	}
}

// openConn counts a connection that has waited for its client since a given time.
func openConn(t *testing.T, cs *conns, served, busy bool, since time.Duration) *conn {
	t.Helper()
	_, server := net.Pipe()
	t.Cleanup(func() { server.Close() })
	c := &conn{Conn: server, in: cs}
	c.served.Store(served)
	c.busy.Store(busy)
	c.since.Store(monotonic.Nanos(time.Now().Add(-since)))
	c.blocked.Store(true)
	if !cs.take(c) {
		t.Fatal("no room for a connection")
	}
	return c
}

// TestRoomForConnections fills the connections: idle ones make way, first those that never had a request.
func TestRoomForConnections(t *testing.T) {
	cs := &conns{most: 3}
	busy, idle, never := openConn(t, cs, true, true, time.Minute), openConn(t, cs, true, false, time.Minute), openConn(t, cs, false, false, time.Minute)
	for i, want := range []*conn{never, idle, busy} {
		_, server := net.Pipe()
		fresh := &conn{Conn: server, in: cs}
		defer fresh.Close()
		cs.looked = time.Time{}
		for range 3 {
			if cs.take(fresh) {
				t.Fatal("room beyond the limit")
			}
		}
		for _, c := range []*conn{busy, idle, never} {
			if c.cut.Load() != (c == want) {
				t.Errorf("%d: another connection is closed", i)
			}
			c.cut.Store(false)
		}
		want.Close()
		want.Close()
		if !cs.take(fresh) {
			t.Fatal("no room after a connection closed")
		}
	}
	if cs.closing != 0 || cs.count() != 3 {
		t.Errorf("%d connections, %d of them closing, want 3 and none", cs.count(), cs.closing)
	}
}

// TestRoomIsMadeAhead opens idle connections one after the other: each takes the place of a closing one without waiting, as long as those
// close in time. A connection that has had a request in the meantime stays.
func TestRoomIsMadeAhead(t *testing.T) {
	const most = 10 * roomShare
	cs := &conns{most: most}
	var cut, all []*conn
	gather := func() {
		cut = cut[:0]
		for c := range cs.open {
			if c.cut.Load() {
				cut = append(cut, c)
			}
		}
	}
	for i := range most - most/roomShare {
		all = append(all, openConn(t, cs, false, false, time.Hour-time.Duration(i)*time.Second))
	}
	if gather(); len(cut) != 0 {
		t.Fatalf("%d connections are closed although there was room", len(cut))
	}
	for round := range 3 * most {
		cs.looked = time.Time{}
		all = append(all, openConn(t, cs, false, false, time.Second))
		if gather(); len(cut) != 1 || cut[0] != all[round] && round < most/2 {
			t.Fatalf("round %d: %d connections are closed, want the one that waited longest", round, len(cut))
		}
		cut[0].Close()
	}
	// Now the connections do not close.
	cs.looked, cs.next = time.Time{}, nil
	for range most / roomShare {
		openConn(t, cs, false, false, 0)
	}
	_, server := net.Pipe()
	fresh := &conn{Conn: server, in: cs}
	defer fresh.Close()
	if gather(); cs.take(fresh) || len(cut) != most/roomShare || cs.count() != most {
		t.Errorf("%d of %d connections are closed, want %d and no room", len(cut), cs.count(), most/roomShare)
	}
	cut[0].Close()
	if !cs.take(fresh) {
		t.Error("no room after a connection closed")
	}
}

// TestActiveConnectionsStay sends a request on one of the connections that were to be closed next.
func TestActiveConnectionsStay(t *testing.T) {
	const most = 2 * roomShare
	cs := &conns{most: most}
	for range most - most/roomShare {
		openConn(t, cs, false, false, time.Minute)
	}
	openConn(t, cs, false, false, 0)
	next := cs.next[0].conn
	next.since.Store(monotonic.Nanos(time.Now()))
	openConn(t, cs, false, false, 0)
	if cs.closing != 2 || next.cut.Load() {
		t.Errorf("%d connections are closing, want 2; including the active one: %t", cs.closing, next.cut.Load())
	}
}

// TestExpectations checks which requests may send a body.
func TestExpectations(t *testing.T) {
	c := newClient(t, Options{Keys: openKeys(t, "a-master-key-of-16+bytes"), PayloadLimit: 1000})
	for _, test := range []struct {
		head, key string
		want      int
	}{
		{"POST /indexes/a/search HTTP/1.1\r\nContent-Length: 2", "", 401},
		{"POST /indexes/a/search HTTP/1.1\r\nContent-Length: 2", "wrong", 403},
		{"POST /indexes/a/search HTTP/1.1\r\nContent-Length: 2000", "a-master-key-of-16+bytes", 413},
		{"POST /nowhere HTTP/1.1\r\nContent-Length: 2", "a-master-key-of-16+bytes", 404},
		{"PUT /indexes/a/search HTTP/1.1\r\nContent-Length: 2", "a-master-key-of-16+bytes", 405},
		{"POST /keys HTTP/1.1\r\nContent-Length: 2", "a-master-key-of-16+bytes", 100},
	} {
		conn, err := c.http.Transport.(*http.Transport).DialContext(t.Context(), "", "")
		if err != nil {
			t.Fatal(err)
		}
		conn.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(conn, "%s\r\nHost: x\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nExpect: 100-continue\r\n\r\n", test.head, test.key)
		if test.key == "" {
			conn.Close()
			if conn, err = c.http.Transport.(*http.Transport).DialContext(t.Context(), "", ""); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(conn, "%s\r\nHost: x\r\nContent-Type: application/json\r\nExpect: 100-continue\r\n\r\n", test.head)
		}
		head := make([]byte, 12)
		if _, err := conn.Read(head); err != nil {
			t.Errorf("%s: %v", test.head, err)
		}
		if got := string(head); got != fmt.Sprintf("HTTP/1.1 %d", test.want) {
			t.Errorf("%s with %q: %s, want %d", test.head, test.key, got, test.want)
		}
		conn.Close()
	}
}

func TestPagesAreProtected(t *testing.T) {
	c := newClient(t, Options{Pprof: true})
	for _, path := range []string{"/", "/debug/pprof"} {
		r := c.get(path)
		if !strings.HasPrefix(r.header.Get("Content-Type"), "text/html") {
			t.Fatalf("%s is not a page: %v", path, r.header)
		}
		if p := r.header.Get("Content-Security-Policy"); !strings.Contains(p, "default-src 'none'") || !strings.Contains(p, "frame-ancestors 'none'") {
			t.Errorf("%s: the policy is %q", path, p)
		}
		if r.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, r.header)
		}
	}
}
