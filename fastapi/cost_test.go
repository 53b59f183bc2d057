package fastapi

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// costs is how many bytes a request may allocate for each byte of its body, whatever comes of it. Routes that are not listed
// may allocate defaultCost, so what is new is bounded, too. Answers come on top, which are bounded by themselves.
var costs = map[string]int{
	// A value of IN is two bytes, and a string, a number and a key to look for.
	"POST /indexes/{index_uid}/search":          200,
	"POST /indexes/{index_uid}/documents/fetch": 200,
	// Settings are parsed into the forms that all their settings have, and compared, stored and applied by a task.
	"PATCH /indexes/{index_uid}/settings":        600,
	"PUT /indexes/{index_uid}/settings/synonyms": 600,
}

const (
	defaultCost = 120
	fixedCost   = 4 << 20

	// A request may take this much time of processors for each byte of its body, whatever it asks for, and so much in any case.
	// That is ten times what the dearest takes, for slow machines; what grows with the square of a body takes hundreds of times as much.
	timeCost  = 5 * time.Microsecond
	fixedTime = 250 * time.Millisecond
)

// growing makes bodies of about n bytes that are large in one dimension each.
var growing = map[string]func(n int) string{
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
}

// TestWhatRequestsCost sends every route bodies that grow in each dimension, and counts what is allocated and how long processors work.
func TestWhatRequestsCost(t *testing.T) {
	c, _ := newInstance(t, Options{PayloadLimit: 1 << 20})
	c.wait(c.json("POST", "/indexes/films/documents", `[{"id": 1, "a": "1"}]`))
	c.wait(c.json("PATCH", "/indexes/films/settings", `{"filterableAttributes":["a"]}`))
	const n = 120 << 10
	var dearest time.Duration
	for _, r := range routes() {
		name := r.method + " " + r.path
		most, listed := costs[name]
		// Single settings are read as all of them are.
		single := strings.Contains(r.path, "/settings/") && !listed
		if r.method == methodGet || r.method == methodDelete || strings.HasPrefix(r.path, "/logs") || single {
			continue
		}
		if !listed {
			most = defaultCost
		}
		for dimension, body := range growing {
			sent := body(n)
			allowed := most*len(sent) + fixedCost
			allowedTime := timeCost*time.Duration(len(sent)) + fixedTime
			var spent int
			var took time.Duration
			var got reply
			// What else the process does at the same moment counts, too: tasks of requests before, above all. So the least of some tries.
			for range 5 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				began := cpuTime()
				got = c.send(r.method, samplePath(r.path), bytes.NewReader([]byte(sent)), "Content-Type", contentJSON)
				took = cpuTime() - began
				runtime.ReadMemStats(&after)
				if spent = int(after.TotalAlloc - before.TotalAlloc); spent <= allowed && took <= allowedTime {
					break
				}
			}
			dearest = max(dearest, took)
			if took > allowedTime {
				t.Errorf("%s: %s: %v of processors for %d bytes, and %v is allowed for each and %v in any case (%d %s)",
					name, dimension, took, len(sent), timeCost, fixedTime, got.status, fmt.Sprintf("%.80s", got.body))
			}
			if spent > allowed {
				t.Errorf("%s: %s: %d bytes are allocated for %d, and %d is allowed for each and %d in any case (%d %s)",
					name, dimension, spent, len(sent), most, fixedCost, got.status, fmt.Sprintf("%.80s", got.body))
			}
		}
	}
	t.Logf("the dearest request took %v", dearest)
}
