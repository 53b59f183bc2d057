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

// Routes may allocate so many bytes for each byte that they are sent, whatever comes of it; answers come on top, which are bounded by
// themselves. Those that may do more say so in their rows.
const (
	defaultCost = 120
	// A value of IN is two bytes, and a string, a number and a key to look for.
	filterCost = 200
	// Settings are parsed into the forms that all their settings have, and compared, stored and applied by a task.
	settingsCost = 600
	fixedCost    = 4 << 20

	// A request may take this much time of processors for each byte of its body, whatever it asks for, and so much in any case.
	// That is ten times what the dearest takes, for slow machines; what grows with the square of a body takes hundreds of times as much.
	timeCost  = 5 * time.Microsecond
	fixedTime = 250 * time.Millisecond
)

// growth makes requests that grow in one dimension.
type growth struct {
	name string
	make func(r *route, n int) []grown // of n bytes or so
}

// grown is a request to a route.
type grown struct {
	what       string // that grows, where it is not said by the name of the growth
	path, body string
	kind       string // of the body; "": none
}

// lineBytes is what a growth may put into a request line: all of it has to fit into headerBytes.
const lineBytes = 28 << 10

// bodies are of JSON.
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

// ofSetting are those of bodies that a single setting may be.
var ofSetting = slices.DeleteFunc(slices.Clone(bodies), func(g growth) bool {
	return !slices.Contains([]string{"a long string", "a long name", "nesting", "many strings", "many numbers", "many objects"}, g.name)
})

// networkBodies are those of changes of the network.
var networkBodies = asBodies(contentJSON, map[string]func(n int) string{
	"many remotes": func(n int) string {
		return `{"remotes":{` + numbered(n/40, `"r%d":{"url":"http://127.0.0.1:1"}`) + `}}`
	},
	"many shards": func(n int) string {
		return `{"remotes":null,"shards":{` + numbered(n/24, `"s%d":{"remotes":["a"]}`) + `}}`
	},
	"none again": func(int) string { return `{"remotes":null,"shards":null}` },
})

// documentBodies are of the other types that documents come in.
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

// longTexts are parameters with texts as long as they may be, which are compared with what documents have.
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

// cursorBodies begin to read by cursor, or go on. The text of a cursor is authenticated, and what it belongs to is described and hashed.
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

// eventBodies are of clicks.
var eventBodies = asBodies(contentJSON, map[string]func(n int) string{
	"many events": func(n int) string {
		return "[" + repeated(`{"requestUid":"`+laterVersion+`","type":"click"}`, n/70) + "]"
	},
	"a long event": func(n int) string { return `[{"requestUid":"` + strings.Repeat("x", n) + `"}]` },
})

// numbered repeats a member of an object, or an element of a list, with another number each time.
func numbered(n int, format string) string {
	members := make([]string, n)
	for i := range members {
		members[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(members, ",")
}

// queries are query strings: of parameters that nobody knows, and of each that the route has.
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

// headerGrowths make values of headers.
var headerGrowths = map[string]func(n int) string{
	"long":       func(n int) string { return strings.Repeat("x", n) },
	"commas":     func(n int) string { return strings.Repeat("a,", n/2) },
	"escapes":    func(n int) string { return strings.Repeat("%41", n/3) },
	"semicolons": func(n int) string { return strings.Repeat("a;q=1,", n/6) },
}

// examiner measures what requests cost.
type examiner struct {
	*client
	dearest time.Duration
	count   int
}

// valuesOfCost is how many documents the index has: what a request takes for each of them is seen, too.
const valuesOfCost = 200

// newExaminer starts a server with all features, one index and the keys that routes need.
func newExaminer(t *testing.T) *examiner {
	c, _ := newInstance(t, Options{PayloadLimit: 1 << 20, Keys: openKeys(t, masterKey), Features: allFeatures(t), Analytics: openAnalytics(t), Demo: true, Replication: true})
	c.key = masterKey
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "a": "1"},`+numbered(valuesOfCost, `{"id": "x%[1]d", "a": ["value%[1]d", "Värde%[1]d"]}`)+`]`))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["a"]}`))
	return &examiner{client: c}
}

// examine sends a request, whose answer may not end by itself, and counts what is allocated and how long processors work.
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
	// What else the process does at the same moment counts, too: tasks of requests before, above all. So the least of some tries.
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
		e.t.Errorf("%s %.60s: %s: %v of processors for %d bytes, and %v is allowed for each and %v in any case (%d %.80s)",
			method, g.path, what, took, sent, timeCost, fixedTime, got.status, got.body)
	}
	if spent > allowed {
		e.t.Errorf("%s %.60s: %s: %d bytes are allocated for %d, and %d is allowed for each and %d in any case (%d %.80s)",
			method, g.path, what, spent, sent, perByte, fixed, got.status, got.body)
	}
}

// allocated returns how many bytes the process has allocated since it began.
func allocated() uint64 {
	sample := []runtimemetrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	runtimemetrics.Read(sample)
	return sample[0].Value.Uint64()
}

// spoils says how much a route that is asked leaves for others to work on: those that leave less are asked later.
func (r route) spoils() int {
	switch {
	case r.path == "/tasks/compact": // nothing is written any more
		return 2
	case r.method == methodDelete:
		return 1
	}
	return 0
}

// TestWhatRequestsCost sends every route what its row says, and every header values that grow.
func TestWhatRequestsCost(t *testing.T) {
	e := newExaminer(t)
	chats := e.as(e.makeKey(`["chatCompletions"]`, `["*"]`))
	const n = 120 << 10
	table := routes()
	slices.SortStableFunc(table, func(a, b route) int { return cmp.Compare(a.spoils(), b.spoils()) })
	for i := range table {
		r := &table[i]
		row := rowOf(r)
		if row == nil {
			continue // TestEverythingIsAttacked says so
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
	t.Logf("%d requests, of which the dearest took %v", e.count, e.dearest)
}
