package network

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svc/internal/outbound"
	"svc/internal/search"
	"svc/internal/task"
)

// messageAttacked says how a test attacks this instance by answers to a message: a remote may be hostile or have bugs. Each
// message needs a row.
type messageAttacked struct {
	ask     func(n *Node, remote *Remote) // sends the message to the remote far, and reads what it answers
	answers map[string]func(n int) string // answers of length n, by what grows
	perByte int                           // bytes that may be allocated for each byte of the answer; 0: defaultAnswerCost
	form    string                        // the content type of the answers; "": JSON
}

// readFar reads from the remote far.
func readFar(n *Node, m *Message) *ReadAnswer {
	q := &ReadRequest{Message: m, Shards: []string{""}, Body: func([]int) []byte { return []byte(`{}`) }}
	return n.Read(context.Background(), q, map[string][]int{"far": {0}})[0]
}

func uvarint(n int) string { return string(binary.AppendUvarint(nil, uint64(n))) }

const (
	defaultAnswerCost = 60
	fixedAnswerCost   = 1 << 20
)

var messageRows = map[*Message]messageAttacked{
	searchMessage: { // internal/search attacks each member of an answer, in both forms
		ask: func(n *Node, _ *Remote) {
			n.Search(context.Background(), []RemoteSearch{{Remote: "far", Federation: []byte(`{}`), Queries: []RemoteQuery{{Body: []byte(`{"indexUid":"films"}`)}}, Asked: search.Asked{
				Hits: 1000, Queries: 1, Metadata: true, Vectors: true, Hidden: true, Facets: []search.AskedFacets{{UID: "films", Names: []string{"*"}}}}}}, nil)
		},
		answers: texts(map[string]func(n int) string{
			"hits":          func(n int) string { return searchAnswer(listed(`{}`, n/3), "") },
			"score values":  func(n int) string { return searchAnswer(hitWith(n/20)+","+listed(hitWith(0), 900), "") },
			"query vectors": func(n int) string { return searchAnswer("", `,"queryVectors":{`+numbered(n/12, `"%d":[1]`)+`}`) },
			"metadata":      func(n int) string { return searchAnswer("", `,"metadata":[`+listed(`{}`, n/3)+`]`) },
			"facets": func(n int) string {
				return searchAnswer("", `,"facetsByIndex":{"films":{"distribution":{"g":{`+numbered(n/12, `"%d":1`)+`}},"stats":{}}}`)
			},
		}),
		perByte: 80,
	},
	documentsMessage: {
		ask: func(n *Node, _ *Remote) {
			if a := readFar(n, Documents); a.Err == nil {
				_, _ = search.ParseDocuments(a.Body, []int{1 << 30}, false, nil, &search.Reading{})
				_, _ = search.ParseDocuments(a.Body, []int{1 << 30}, true, nil, &search.Reading{})
			}
		},
		answers: texts(map[string]func(n int) string{
			"documents": func(n int) string { return "\x00" + strings.Repeat("\x01\x02{}\x00", n/5) + "\x00" },
			"values":    func(n int) string { return "\x00\x01\x00" + uvarint(n/2) + strings.Repeat("\x02\x00", n/2) + "\x00" },
			"bare":      func(n int) string { return "\x00" + strings.Repeat("\x01\x00\x00", n/3) + "\x00" },
		}),
		perByte: 120, // a document, of a few bytes, has two lists
		form:    search.ReadType,
	},
	wordsMessage: {
		ask: func(n *Node, _ *Remote) {
			if a := readFar(n, Words); a.Err == nil {
				_, _ = search.ParseMisspelt(a.Body, &search.Reading{})
			}
		},
		answers: texts(map[string]func(n int) string{
			"words": func(n int) string { return strings.Repeat("\x01\x00\x01\x00\x00", n/5) + "\x00" },
			"near":  func(n int) string { return strings.Repeat("\x01\x00\x01\x00\x01\x01x\x01\x01", n/9) + "\x00" },
		}),
		form: search.ReadType,
	},
	facetsMessage: {
		ask: func(n *Node, _ *Remote) {
			if a := readFar(n, Facets); a.Err == nil {
				_, _ = search.ParseFacets(a.Body, 1<<20, &search.Reading{})
			}
		},
		answers: texts(map[string]func(n int) string{
			"values": func(n int) string { return strings.Repeat("\x01\x01x\x00\x01", n/5) + "\x00" },
		}),
		perByte: 150, // a value, of a few bytes, becomes an object
		form:    search.ReadType,
	},
	foreignMessage: {
		ask: func(n *Node, _ *Remote) {
			if a := readFar(n, Foreign); a.Err == nil {
				_, _ = search.ParseIDs(a.Body, &search.Reading{})
				_, _ = search.ParseForeign(a.Body, 1000, &search.Reading{})
			}
		},
		answers: texts(map[string]func(n int) string{
			"ids":       func(n int) string { return strings.Repeat("\x01\x01x", n/3) + "\x00" },
			"documents": func(n int) string { return strings.Repeat("\x01\x02{}", n/4) },
		}),
		form: search.ReadType,
	},
	writeMessage: {
		ask: func(n *Node, r *Remote) {
			n.sender.deliver("far", r, &task.Outgoing{Forward: task.Forward{Method: "POST", Path: "/indexes"}})
		},
		answers: texts(nil),
	},
	announcementMessage: {
		ask: func(n *Node, r *Remote) {
			n.sender.deliver("far", r, &task.Outgoing{Forward: task.Forward{Method: "PATCH", Path: "/network"}})
		},
		answers: texts(nil),
	},
	networkMessage: {
		ask: func(n *Node, r *Remote) { _, _ = n.networkAt(context.Background(), "far", r) },
		answers: texts(map[string]func(n int) string{
			"remotes": func(n int) string { return `{"remotes":{` + numbered(n/20, `"%d":{"url":"x"}`) + `}}` },
			"shards":  func(n int) string { return `{"shards":{` + numbered(n/10, `"%d":{}`) + `}}` },
		}),
		perByte: 100, // a remote, of a few bytes, becomes an object
	},
	changeMessage: {
		ask:     func(n *Node, r *Remote) { _, _ = n.changeAt(context.Background(), "far", r, uuid.Nil) },
		answers: texts(nil),
	},
	transferMessage: {
		ask: func(n *Node, r *Remote) {
			_, _ = (&changing{n: n, ctx: context.Background()}).indexesOf("far", r, &Transfer{Version: uuid.New()})
		},
		answers: texts(map[string]func(n int) string{
			"indexes": func(n int) string { return `[` + listed(`{}`, n/3) + `]` },
		}),
		perByte: 240, // an index, which may be a digit, becomes an object
	},
	featuresMessage: {
		ask:     func(n *Node, r *Remote) { _, _ = n.checkRemote(context.Background(), "far", r) },
		answers: texts(nil),
	},
	healthMessage: {
		ask:     func(n *Node, r *Remote) { n.answers("far", r) },
		answers: texts(nil),
	},
	tasksMessage: {
		ask: func(n *Node, r *Remote) { _, _ = n.checkRemote(context.Background(), "far", r) },
		answers: texts(map[string]func(n int) string{
			"tasks": func(n int) string { return `{"results":[` + listed(`1`, n/2) + `]}` },
		}),
		perByte: 90,
	},
}

// searchAnswer returns an answer to a search.
func searchAnswer(hits, more string) string {
	return `{"hits":[` + hits + `],"estimatedTotalHits":1,"processingTimeMs":1` + more + `}`
}

// hitWith returns a hit with n score values.
func hitWith(n int) string {
	return `{"_federation":{"indexUid":"films","queriesPosition":0,"weightedRankingScore":1,"weightedScoreValues":[` + listed(`{"weightedScore":1}`, n) + `],"extra_document":{}}}`
}

// texts returns answers that every message may get, and those in more.
func texts(more map[string]func(n int) string) map[string]func(n int) string {
	all := map[string]func(n int) string{
		"a string": func(n int) string { return `"` + strings.Repeat("x", n) + `"` },
		"a name":   func(n int) string { return `{"` + strings.Repeat("x", n) + `":1}` },
		"nesting":  func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
		"numbers":  func(n int) string { return `[` + listed("1", n/2) + `]` },
		"members":  func(n int) string { return `{` + numbered(n/8, `"%d":1`) + `}` },
		"no JSON":  func(n int) string { return strings.Repeat("\x00", n) },
	}
	maps.Copy(all, more)
	return all
}

func listed(item string, n int) string { return strings.TrimSuffix(strings.Repeat(item+",", n), ",") }

// numbered lists an item n times, each with another number.
func numbered(n int, format string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(items, ",")
}

// TestAnswersCostLittleMemory sends each message to a remote whose answers grow, and compares the bytes allocated with a limit per
// byte of the answer.
func TestAnswersCostLittleMemory(t *testing.T) {
	const size = 256 << 10
	var path, answer, form string // of the current request
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", cmp.Or(form, "application/json"))
		said := answer
		if r.URL.Path != path {
			said = map[string]string{"/experimental-features": `{"network":true}`, "/tasks": `{"results":[]}`}[r.URL.Path]
		}
		_, _ = w.Write([]byte(said))
	}))
	defer remote.Close()
	n := nodeOf(t, Options{Allowed: outbound.Any()}, remote.URL, nil)
	asked := 0
	for _, m := range Messages {
		row, ok := messageRows[m]
		if !ok || row.ask == nil || len(row.answers) == 0 {
			t.Errorf("the message %q has no row in messageRows, or an empty one", m.Name)
			continue
		}
		path, _, _ = strings.Cut(cmp.Or(m.Path, "/indexes"), "?")
		for _, what := range slices.Sorted(maps.Keys(row.answers)) {
			answer, form = row.answers[what](size), row.form
			allowed := len(answer)*cmp.Or(row.perByte, defaultAnswerCost) + fixedAnswerCost
			spent := 0
			for range 3 { // other goroutines allocate, too
				before := allocated()
				row.ask(n, n.Network().Remotes["far"])
				if spent = int(allocated() - before); spent <= allowed {
					break
				}
			}
			asked++
			if spent > allowed {
				t.Errorf("%s: %s: %d bytes allocated for an answer of %d, want at most %d", m.Name, what, spent, len(answer), allowed)
			}
		}
	}
	if len(messageRows) != len(Messages) {
		t.Error("messageRows has messages that do not exist")
	}
	t.Logf("%d answers", asked)
}

func allocated() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// TestRequestsAreMessages checks the source: each request to a remote must name one of Messages, so that it has a row.
func TestRequestsAreMessages(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	requests, declared := 0, 0
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		p, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(p, func(node ast.Node) bool {
			l, ok := node.(*ast.CompositeLit)
			if !ok {
				return true
			}
			switch name, _ := l.Type.(*ast.Ident); {
			case name == nil:
			case name.Name == "Message":
				declared++
			case name.Name == "request":
				requests++
				if !slices.ContainsFunc(l.Elts, func(e ast.Expr) bool {
					kv, ok := e.(*ast.KeyValueExpr)
					return ok && kv.Key.(*ast.Ident).Name == "Message"
				}) {
					t.Error("a request names no message")
				}
			}
			return true
		})
	}
	if want := len(Messages) + 1; declared != want { // one more for forwarded writes
		t.Errorf("%d messages are declared, Messages has %d", declared, len(Messages))
	}
	if requests < len(Messages)-4 { // announcements are sent as writes, and one request serves the four reads
		t.Errorf("only %d requests are found", requests)
	}
}
