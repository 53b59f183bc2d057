package fastapi

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	runtimemetrics "runtime/metrics"
	"slices"
	"strings"
	"testing"
	"time"
)

// Routes may allocate so many bytes per byte sent, whatever the result. Answers come on top; they have their own limits. Rows of routes
// may raise the limits.
const (
	defaultCost = 120
	// A value of IN has two bytes, and becomes a string, a number and a lookup key.
	filterCost = 200
	// Settings are parsed into the forms of all settings, and compared, stored and applied by a task.
	settingsCost = 600
	fixedCost    = 4 << 20

	// A request may take this much processor time per byte of its body, plus a fixed amount. That is ten times the most expensive request,
	// for slow machines. A cost that grows with the square of the body exceeds it hundreds of times.
	timeCost  = 5 * time.Microsecond
	fixedTime = 250 * time.Millisecond
)

// growth makes requests that grow in one dimension.
type growth struct {
	name string
	make func(r *route, n int) []grown // of about n bytes
}

// grown is a request to a route.
type grown struct {
	what       string // what grows, unless the name of the growth says it
	path, body string
	kind       string // content type of the body; "": no body
}

// lineBytes is the size that a growth may add to a request line, so that the head fits into headerBytes.
const lineBytes = 28 << 10

// bodies are JSON bodies.
var bodies = asBodies(contentJSON, map[string]func(n int) string{
	"a long string":   func(n int) string { return `"` + strings.Repeat("x", n) + `"` },
	"a long name":     func(n int) string { return `{"` + strings.Repeat("x", n) + `":1}` },
	"nesting":         func(n int) string { return strings.Repeat("[", n/2) + strings.Repeat("]", n/2) },
	"many strings":    func(n int) string { return "[" + repeated(`"a"`, n/4) + "]" },
	"many numbers":    func(n int) string { return "[" + repeated(`1`, n/2) + "]" },
	"many objects":    func(n int) string { return "[" + repeated(`{}`, n/3) + "]" },
	"many queries":    func(n int) string { return `{"queries":[` + repeated(`{"indexUid":"a"}`, n/17) + "]}" },
	"many conditions": func(n int) string { return `{"filter":"` + strings.Repeat("a=1 OR ", n/7) + `a=1"}` },
	"many filters":    func(n int) string { return `{"filter":[` + repeated(`"a=1"`, n/6) + `]}` },
	"deep filter":     func(n int) string { return `{"filter":"` + strings.Repeat("(", n) + `"}` },
	"many values":     func(n int) string { return `{"filter":"a IN [` + repeated("1", n/2) + `]"}` },
	"a long query":    func(n int) string { return `{"q":"` + strings.Repeat("ab ", n/3) + `"}` },
	"a vector":        func(n int) string { return `{"vector":[` + repeated("1", n/2) + `]}` },
	"attributes":      func(n int) string { return `{"attributesToRetrieve":[` + repeated(`"a"`, n/4) + `]}` },
	"the same member": func(n int) string { return "{" + repeated(`"filter":"a=1"`, n/15) + "}" },
	"a function":      func(n int) string { return `{"function":"` + strings.Repeat("(", n) + `"}` },
	"many remotes": func(n int) string {
		return `{"remotes":{` + numbered(n/40, `"r%d":{"url":"http://127.0.0.1:1"}`) + `}}`
	},
	"many shards": func(n int) string { return `{"shards":{` + numbered(n/24, `"s%d":{"remotes":["a"]}`) + `}}` },
})

// ofSetting are the bodies that a single setting may be.
var ofSetting = slices.DeleteFunc(slices.Clone(bodies), func(g growth) bool {
	return !slices.Contains([]string{"a long string", "a long name", "nesting", "many strings", "many numbers", "many objects"}, g.name)
})

// networkBodies are changes of the network.
var networkBodies = asBodies(contentJSON, map[string]func(n int) string{
	"many remotes": func(n int) string {
		return `{"remotes":{` + numbered(n/40, `"r%d":{"url":"http://127.0.0.1:1"}`) + `}}`
	},
	"many shards": func(n int) string {
		return `{"remotes":null,"shards":{` + numbered(n/24, `"s%d":{"remotes":["a"]}`) + `}}`
	},
	"none again": func(int) string { return `{"remotes":null,"shards":null}` },
})

// documentBodies are documents in the other formats.
var documentBodies = slices.Concat(
	asBodies(contentNDJSON, map[string]func(n int) string{
		"many lines": func(n int) string { return strings.Repeat("{\"id\":1}\n", n/9) },
		"empty ones": func(n int) string { return strings.Repeat("\n", n) },
	}),
	asBodies("text/csv", map[string]func(n int) string{
		"many columns": func(n int) string { return "id" + strings.Repeat(",a", n/2) + "\n1" },
		"many rows":    func(n int) string { return "id\n" + strings.Repeat("1\n", n/2) },
		"open quotes":  func(n int) string { return "id\n" + strings.Repeat(`"`, n) },
	}))

func asBodies(kind string, texts map[string]func(n int) string) (list []growth) {
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		list = append(list, growth{name, func(r *route, n int) []grown {
			return []grown{{path: samplePath(r.path), body: texts[name](n), kind: kind}}
		}})
	}
	return list
}

// longTexts are parameters with the longest allowed texts, which are compared with values of documents.
var longTexts = asBodies(contentJSON, map[string]func(n int) string{
	"a facet query": func(n int) string {
		return `{"facetName":"a","facetQuery":"` + strings.Repeat("va", min(n, maxTextBytes)/2) + `"}`
	},
	"a folded facet query": func(n int) string {
		return `{"facetName":"a","facetQuery":"` + strings.Repeat("vä", min(n, maxTextBytes)/3) + `"}`
	},
	"a numeric facet query": func(n int) string {
		return `{"facetName":"a","facetQuery":"` + strings.Repeat("1", min(n, maxTextBytes)) + `"}`
	},
	"a facet": func(n int) string {
		return `{"facetName":"` + strings.Repeat("a", min(n, maxTextBytes)) + `","facetQuery":"a"}`
	},
	"a value": func(n int) string {
		return `{"facetName":"a","filter":"a = ` + strings.Repeat("a", min(n, maxTextBytes)) + `"}`
	},
	"a part of a value": func(n int) string {
		return `{"facetName":"a","filter":"a CONTAINS ` + strings.Repeat("a", min(n, maxTextBytes)) + `"}`
	},
	"a word": func(n int) string { return `{"facetName":"a","q":"` + strings.Repeat("a", min(n, maxTextBytes)) + `"}` },
})

// cursorBodies start or continue reading by cursor. The text of a cursor is authenticated, and its request is described and hashed.
var cursorBodies = asBodies(contentJSON, map[string]func(n int) string{
	"a long cursor":            func(n int) string { return `{"cursor":"` + strings.Repeat("x", n) + `"}` },
	"a cursor of a long query": func(n int) string { return `{"cursor":"","q":"` + strings.Repeat("ab ", n/3) + `"}` },
	"a cursor of a filter":     func(n int) string { return `{"cursor":"","filter":"` + strings.Repeat("a=1 OR ", n/7) + `a=1"}` },
	"a cursor of values":       func(n int) string { return `{"cursor":"","filter":"a IN [` + repeated("1", n/2) + `]"}` },
	"a cursor of ids":          func(n int) string { return `{"cursor":"","ids":[` + repeated("1", n/2) + `]}` },
	"a cursor of a vector":     func(n int) string { return `{"cursor":"","vector":[` + repeated("1", n/2) + `]}` },
	"a cursor of attributes": func(n int) string {
		return `{"cursor":"","attributesToSearchOn":[` + repeated(`"a"`, n/4) + `]}`
	},
})

// eventBodies are click events.
var eventBodies = asBodies(contentJSON, map[string]func(n int) string{
	"many events": func(n int) string {
		return "[" + repeated(`{"requestUid":"`+laterVersion+`","type":"click"}`, n/70) + "]"
	},
	"a long event": func(n int) string { return `[{"requestUid":"` + strings.Repeat("x", n) + `"}]` },
})

// numbered repeats a member or an element, with another number each time.
func numbered(n int, format string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(members, ",")
}

// queries are query strings with unknown parameters, and with each parameter of the route.
var queries = []growth{
	{"many parameters", func(r *route, n int) []grown {
		return []grown{{path: samplePath(r.path) + "?" + strings.Repeat("a=1&", min(n, lineBytes)/4)}}
	}},
	{"a parameter", func(r *route, n int) (list []grown) {
		n = min(n, lineBytes)
		for _, f := range r.op.query {
			for what, text := range map[string]string{"long": strings.Repeat("x", n), "escapes": strings.Repeat("%41", n/3), "a list": strings.Repeat("1,", n/2) + "1",
				"conditions": strings.Repeat("a=1+OR+", n/7) + "a=1", "open": strings.Repeat("(", n), "json": strings.Repeat("[", n)} {
				list = append(list, grown{what: f.name + " " + what, path: samplePath(r.path) + "?" + f.name + "=" + text})
			}
		}
		return list
	}},
}

// segments are variable segments of a path.
var segments = []growth{{"a segment", func(r *route, n int) (list []grown) {
	n = min(n, lineBytes)
	for _, variable := range variables.FindAllString(r.path, -1) {
		for what, text := range map[string]string{"long": strings.Repeat("x", n), "escapes": strings.Repeat("%41", n/3), "numbers": strings.Repeat("1,", n/2)} {
			g := grown{what: variable + " " + what, path: samplePath(strings.Replace(r.path, variable, text, 1))}
			if r.method != methodGet && r.method != methodDelete {
				g.body, g.kind = "{}", contentJSON
			}
			list = append(list, g)
		}
	}
	return list
}}}

var variables = regexp.MustCompile(`\{[a-z_]+\}`)

// headerGrowths returns growing header values.
var headerGrowths = map[string]func(n int) string{
	"long":       func(n int) string { return strings.Repeat("x", n) },
	"commas":     func(n int) string { return strings.Repeat("a,", n/2) },
	"escapes":    func(n int) string { return strings.Repeat("%41", n/3) },
	"semicolons": func(n int) string { return strings.Repeat("a;q=1,", n/6) },
}

// examiner measures the cost of requests.
type examiner struct {
	*client
	dearest time.Duration
	count   int
}

// valuesOfCost is the number of documents in the index, so that a cost per document shows.
const valuesOfCost = 200

// newExaminer starts a server with all features, one index and the keys that routes need.
func newExaminer(t *testing.T) *examiner {
	c, _ := newInstance(t, Options{PayloadLimit: 1 << 20, Keys: openKeys(t, masterKey), Features: allFeatures(t), Analytics: openAnalytics(t), Demo: true, Replication: true})
	c.key = masterKey
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "a": "1"},`+numbered(valuesOfCost, `{"id": "x%[1]d", "a": ["value%[1]d", "Värde%[1]d"]}`)+`]`))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["a"]}`))
	return &examiner{client: c}
}

// examine sends a request, whose answer may be endless, and measures allocations and processor time.
func (e *examiner) examine(what, method string, g grown, row *attacked, headers ...string) {
	e.t.Helper()
	sent := len(g.body) + len(g.path)
	for _, text := range headers {
		sent += len(text)
	}
	if g.kind != "" {
		headers = append(headers, "Content-Type", g.kind)
	}
	perByte, fixed := cmp.Or(row.perByte, defaultCost), cmp.Or(row.fixed, fixedCost)
	allowed := perByte*sent + fixed
	allowedTime := timeCost*time.Duration(sent) + fixedTime
	var spent int
	var took time.Duration
	var got reply
	e.count++
	// Other work of the process counts as well, above all tasks of earlier requests, so take the least of several tries.
	for range 5 {
		before, began := allocated(), cpuTime()
		if row.never {
			got = e.sendStream(method, g.path, strings.NewReader(g.body), headers...)
		} else {
			got = e.send(method, g.path, strings.NewReader(g.body), headers...)
		}
		took = cpuTime() - began
		if spent = int(allocated() - before); spent <= allowed && took <= allowedTime {
			break
		}
	}
	e.dearest = max(e.dearest, took)
	if took > allowedTime {
		e.t.Errorf("%s %.60s: %s: %v of processor time for %d bytes, want at most %v per byte plus %v (%d %.80s)",
			method, g.path, what, took, sent, timeCost, fixedTime, got.status, got.body)
	}
	if spent > allowed {
		e.t.Errorf("%s %.60s: %s: %d bytes allocated for %d, want at most %d per byte plus %d (%d %.80s)",
			method, g.path, what, spent, sent, perByte, fixed, got.status, got.body)
	}
}

// allocated returns the bytes that the process has allocated since its start.
func allocated() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// spoils orders routes by how much they leave for later tests: destructive ones run last.
func (r route) spoils() int {
	switch {
	case r.path == "/tasks/compact": // no further writes
		return 2
	case r.method == methodDelete:
		return 1
	}
	return 0
}

// TestRequestsAreCheap sends each route the growing requests of its row, and each header growing values.
func TestRequestsAreCheap(t *testing.T) {
	e := newExaminer(t)
	chats := e.as(e.makeKey(`["chatCompletions"]`, `["*"]`))
	const n = 120 << 10
	table := routes()
	slices.SortStableFunc(table, func(a, b route) int { return cmp.Compare(a.spoils(), b.spoils()) })
	for i := range table {
		r := &table[i]
		row := rowOf(r)
		if row == nil {
			continue // TestEverythingIsAttacked reports it
		}
		c := *e
		if r.action == actionChatCompletions {
			c.client = chats
		}
		for _, growth := range row.costs {
			for _, g := range growth.make(r, n) {
				c.examine(growth.name+" "+g.what, r.method, g, row)
			}
		}
		e.dearest, e.count = max(e.dearest, c.dearest), c.count
	}
	for _, name := range requestHeaders {
		for _, value := range headerRows[name].costs {
			for _, g := range []grown{{path: "/indexes"}, {path: "/multi-search", body: `{"federation":{},"queries":[{"indexUid":"films"}]}`, kind: contentJSON},
				{path: "/indexes/films/documents", body: `[{"id":1}]`, kind: contentJSON}, {path: "/network", body: `{}`, kind: contentJSON}, {path: "/mcp", body: `{}`, kind: contentJSON}} {
				method := methodPost
				switch {
				case g.kind == "":
					method = methodGet
				case g.path == "/network":
					method = methodPatch
				}
				e.examine(string(name)+" "+value, method, g, &attacked{}, string(name), headerGrowths[value](lineBytes))
			}
		}
	}
	t.Logf("%d requests, the most expensive took %v", e.count, e.dearest)
}
