package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/pprof/profile"
)

func TestGenerate(t *testing.T) {
	d := generate(500)
	if again := generate(500); !bytes.Equal(d.payload, again.payload) {
		t.Error("two runs generate different documents")
	}
	id := 0
	for line := range bytes.Lines(d.payload) {
		var doc map[string]any
		if err := json.Unmarshal(line, &doc); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if doc["id"] != float64(id) || len(doc) != 23 {
			t.Fatalf("document %d has the id %v and %d fields", id, doc["id"], len(doc))
		}
		id++
	}
	if mean := len(d.payload) / 500; id != 500 || mean < 800 || mean > 1400 {
		t.Errorf("%d documents of %d bytes", id, mean)
	}
	if first := d.first(20); bytes.Count(first.payload, []byte{'\n'}) != 20 || !bytes.HasPrefix(d.payload, first.payload) {
		t.Error("the first 20 are not")
	}
}

func TestReadDataset(t *testing.T) {
	name := filepath.Join(t.TempDir(), "d.ndjson")
	if err := os.WriteFile(name, []byte("{\"id\":1}\n{\"id\":2}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if d, err := readDataset(name); err != nil || d.documents != 2 || d.name != "d.ndjson" {
		t.Errorf("%v, %v", d, err)
	}
}

func TestDrawQueries(t *testing.T) {
	d := generate(2000)
	kinds, err := drawQueries(d, queriesOfKind, false)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := drawQueries(d, queriesOfKind, false)
	shape := map[string]func(request) bool{
		"one word":                      func(r request) bool { return len(strings.Fields(r.Q)) == 1 },
		"three words":                   func(r request) bool { return len(strings.Fields(r.Q)) == 3 },
		"prefix of 1–4 letters":         func(r request) bool { return len(r.Q) >= 1 && len(r.Q) <= 4 },
		"a typo and a word":             func(r request) bool { return len(strings.Fields(r.Q)) == 2 },
		"two-word phrase":               func(r request) bool { return len(strings.Fields(r.Q)) == 2 && strings.Count(r.Q, `"`) == 2 },
		"word + filter + facets + sort": func(r request) bool { return r.Q != "" && r.Filter != nil && len(r.Facets) == 2 && len(r.Sort) == 1 },
		"placeholder + filter + facet":  func(r request) bool { return r.Q == "" && r.Filter != nil && len(r.Facets) == 1 },
		"placeholder + range + facet": func(r request) bool {
			bound, ranged := strings.CutPrefix(fmt.Sprint(r.Filter), "installedSize > ")
			return r.Q == "" && ranged && bound != "" && slices.Equal(r.Facets, []string{"section"})
		},
		"typed words, marked": func(r request) bool { return len(strings.Fields(r.Q)) == 2 && slices.Equal(r.Marked, []string{"*"}) },
	}
	for i, k := range kinds {
		if len(k.bodies) != queriesOfKind || !slices.EqualFunc(k.bodies, again[i].bodies, bytes.Equal) {
			t.Errorf("%s: %d queries, or the second run differs", k.name, len(k.bodies))
		}
		for _, body := range k.bodies {
			var r request
			if err := json.Unmarshal(body, &r); err != nil || shape[k.name] == nil || !shape[k.name](r) {
				t.Errorf("%s: %s (%v)", k.name, body, err)
			}
		}
	}
	if len(kinds) != len(shape) {
		t.Errorf("%d kinds", len(kinds))
	}
}

func TestWords(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"Real-time strategy game", []string{"time", "strategy", "game"}},
		{"a of it", nil},
		{"one two x three", []string{"one", "two"}},
		{"été brings flowers. And", []string{"brings", "flowers"}},
	}
	for _, test := range tests {
		if got := words(test.text); !slices.Equal(got, test.want) {
			t.Errorf("%q: got %q, want %q", test.text, got, test.want)
		}
	}
}

func TestMisspell(t *testing.T) {
	g := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		if got := misspell(g, "strategy"); len(got) < 7 || len(got) > 9 || got[0] != 's' {
			t.Errorf("strategy became %q", got)
		}
	}
}

func TestQuantile(t *testing.T) {
	var l latencies
	for i := 100; i > 0; i-- {
		l = append(l, time.Duration(i)*time.Millisecond)
	}
	if p50, p99, all := l.quantile(0.5), l.quantile(0.99), l.quantile(1); p50 != 51 || p99 != 100 || all != 100 {
		t.Errorf("got %v, %v, %v", p50, p99, all)
	}
}

func TestRewrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "B.md")
	for _, step := range []struct{ dataset, tables, want string }{
		{"x", "| 1 |\n", "\n<!-- bench: x -->\n| 1 |\n<!-- bench: end -->\n"},
		{"y", "| 2 |", "\n<!-- bench: x -->\n| 1 |\n<!-- bench: end -->\n\n<!-- bench: y -->\n| 2 |\n<!-- bench: end -->\n"},
		{"x", "| 3 |\n| 4 |\n", "\n<!-- bench: x -->\n| 3 |\n| 4 |\n<!-- bench: end -->\n\n<!-- bench: y -->\n| 2 |\n<!-- bench: end -->\n"},
	} {
		if err := rewrite(name, step.dataset, []byte(step.tables)); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != page+step.want {
			t.Errorf("%v:\n%s", err, got)
		}
	}
	if _, err := place([]byte("<!-- bench: x -->"), "x", nil); err == nil {
		t.Error("a section without an end is rewritten")
	}
}

func TestSummary(t *testing.T) {
	f := []*profile.Function{{ID: 1, Name: "leaf"}, {ID: 2, Name: "caller"}}
	l := []*profile.Location{{ID: 1, Line: []profile.Line{{Function: f[0]}}}, {ID: 2, Line: []profile.Line{{Function: f[1]}}}}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}},
		Sample: []*profile.Sample{
			{Location: l, Value: []int64{3, 3e9}},
			{Location: l[1:], Value: []int64{1, 1e9}},
		},
	}
	want := "cpu: 4.00 s in all\n\n    flat  with all  function\n   75.0%     75.0%  leaf\n   25.0%    100.0%  caller\n"
	if got := string(summary(p, 10)); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRelocate(t *testing.T) {
	p := &profile.Profile{Mapping: []*profile.Mapping{{File: "/tmp/x/svc"}}}
	for _, name := range []string{"/src/svc/segment/a.go", "/home/me/go/pkg/mod/github.com/x/y@v1/z.go", "/usr/local/go/src/runtime/proc.go", "z.go"} {
		p.Function = append(p.Function, &profile.Function{Filename: name})
	}
	relocate(p, "/src/svc")
	if p.Mapping[0].File != "svc" {
		t.Errorf("the program is %s", p.Mapping[0].File)
	}
	for i, want := range []string{"segment/a.go", "github.com/x/y@v1/z.go", "runtime/proc.go", "z.go"} {
		if got := p.Function[i].Filename; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestDrawDistinctQueries(t *testing.T) {
	kinds, err := drawQueries(generate(2000), 300, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range kinds {
		seen := map[string]bool{}
		for _, body := range k.bodies {
			if seen[string(body)] {
				t.Errorf("%s: %s comes twice", k.name, body)
			}
			seen[string(body)] = true
		}
		if len(seen) == 0 || len(seen) > 300 || k.name == "placeholder + range + facet" && len(seen) < 200 {
			t.Errorf("%s: %d queries", k.name, len(seen))
		}
	}
}

func TestComparisonTables(t *testing.T) {
	ms := time.Millisecond
	c := &comparison{
		data:     &dataset{title: "Some documents", documents: 7},
		programs: []*program{{name: "svc"}, {name: "old"}},
		kinds:    []queryKind{{name: "one word"}},
		measured: []string{"first", "warm", "updates"},
		figures: [][]asked{{
			{first: latencies{ms, 3 * ms}, worst: []byte(`{"q":"the"}`), cpuPerFirst: 0.5, warm: rate{took: make(latencies, 100), seconds: 1}, updating: rate{updates: latencies{2 * ms}}},
			{first: latencies{ms, 9 * ms}, worst: []byte(`{"q":"a"}`), cpuPerFirst: 2, warm: rate{took: make(latencies, 100), seconds: 2}, updating: rate{updates: latencies{4 * ms}}},
		}},
	}
	got := string(c.tables())
	for _, want := range []string{
		"| first queries, CPU ms | svc | old | svc ⁄ old |\n| --- | ---: | ---: | ---: |\n| one word | 0.5 | 2 | 0.25 |\n",
		"| warm, QPS | svc | old | svc ⁄ old |\n| --- | ---: | ---: | ---: |\n| one word | 100 | 50 | 2.00 |\n",
		"| one word | 2 | 4 | 0.50 |\n",
		"| worst first query | svc | old |\n| --- | --- | --- |\n| one word | `the` 3.0 ms | `a` 9.0 ms |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack\n%s\n%s", want, got)
		}
	}
	if c.measured = c.measured[:1]; strings.Contains(string(c.tables()), "warm") {
		t.Error("the tables have something that was not requested")
	}
}

func TestUpkeepTables(t *testing.T) {
	ms := time.Millisecond
	c := &comparison{
		data:     &dataset{title: "Some documents", documents: 7},
		programs: []*program{{name: "svc"}, {name: "old"}},
		measured: []string{"attribute", "indexes", "queue", "lifecycle"},
		upkeep: []upkeep{
			{attributeCost{took: 50 * ms, cpuSeconds: 0.25, written: 1 << 20}, indexesCost{indexes: 90, asked: 9, start: 4 * ms, started: memory{anonymous: 2 << 20}, first: latencies{ms, 3 * ms}},
				queueCost{tasks: 9000, canceled: partCost{took: 500 * ms, cpuSeconds: 0.75, peak: memory{peak: 3 << 20}, slowest: 7 * ms}, before: 8 << 20, after: 1 << 20},
				lifecycleCost{documents: 80, aliases: 8, incremented: partCost{took: 500 * ms}, first: latencies{4 * ms}}},
			{attributeCost{took: 75 * ms, cpuSeconds: 0.5, written: 1 << 22}, indexesCost{indexes: 90, asked: 9, start: 9 * ms, searched: memory{anonymous: 5 << 20}, first: latencies{ms, 4 * ms}},
				queueCost{deleted: partCost{took: 45000 * ms}}, lifecycleCost{moved: latencies{7 * ms}}},
		},
	}
	got := string(c.tables())
	for _, want := range []string{
		"| one more filterable attribute | svc | old |\n| --- | ---: | ---: |\n| until the task is finished, s | 0.05 | 0.075 |\n",
		"| written meanwhile, MiB | 1 | 4 |\n\n| 90 indexes of 2 documents | svc | old |\n| --- | ---: | ---: |\n| from the start to the first answer, ms | 4 | 9 |\n",
		"| anonymous memory then, MiB | 2 | 0 |\n| first search of an index, median ms | 3 | 4 |\n",
		"| anonymous memory when 9 were searched, MiB | 0 | 5 |\n",
		"| 9000 tasks | svc | old |\n| --- | ---: | ---: |\n| cancel all, s | 0.5 | 0 |\n| cancel all, CPU s | 0.75 | 0 |\n| cancel all, peak RSS, MiB | 3 | 0 |\n| cancel all, slowest enqueue meanwhile, ms | 7 | 0 |\n| delete all, s | 0 | 45 |\n",
		"| data directory before the deletion, MiB | 8 | 0 |\n| data directory afterwards, MiB | 1 | 0 |\n\n| 80 documents that expire | svc | old |\n",
		"in one task, increments a second | 160 | 0 |\n", "by cursor, median ms | 4 | 0 |\n", "| one of 8 aliases is set, median ms | 0 | 7 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack\n%s\n%s", want, got)
		}
	}
	if c.measured = nil; strings.Contains(string(c.tables()), "indexes") {
		t.Error("the tables have something that was not measured")
	}
}

func TestSizeTables(t *testing.T) {
	ms := time.Millisecond
	size := func(documents int, cpu float64) *comparison {
		return &comparison{
			data:  &dataset{documents: documents},
			kinds: []queryKind{{name: "one word"}},
			figures: [][]asked{{{
				first: latencies{ms, 3 * ms}, worst: []byte(`{"q":"the"}`), cpuPerFirst: cpu,
				updating: rate{took: latencies{ms, 2 * ms}, seconds: 0.5, cpuSeconds: 0.004, updates: latencies{5 * ms}},
			}}},
		}
	}
	var b bytes.Buffer
	sizeTables(&b, []*comparison{size(7, 0.5)})
	want := "| first queries, limit 20 | CPU ms each | p99 ms | worst |\n| --- | --- | --- | --- |\n| one word | 0.50 | 3.0 | 3.0 ms `the` |\n\n" +
		"| beside 20 updates a second, 8 connections | QPS | p99 ms | CPU ms each | an update, median ms |\n| --- | --- | --- | --- | --- |\n" +
		"| one word | 4 | 2.0 | 2.00 | 5.0 |\n\n"
	if got := b.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	b.Reset()
	sizeTables(&b, []*comparison{size(7, 0.5), size(70, 1)})
	if got := b.String(); !strings.Contains(got, "| CPU ms each, 7 documents |") || !strings.Contains(got, " 1.00 | 3.0 | 3.0 ms `the` | × 2.0 |\n") {
		t.Errorf("growth is not reported\n%s", got)
	}
}

func TestGrowthTables(t *testing.T) {
	ms := time.Millisecond
	of := func(processors int, seconds float64, r rate) step {
		return step{processors: processors, indexing: indexing{seconds: seconds}, first: []rate{r}, warm: []rate{r}, updating: []rate{r}}
	}
	g := &growth{data: &dataset{documents: 100}, kinds: []queryKind{{name: "one word"}}, steps: []step{
		of(1, 2, rate{took: latencies{ms, 3 * ms}, seconds: 0.5, cpuSeconds: 0.004}),
		of(4, 0.5, rate{took: make(latencies, 6), seconds: 0.5, cpuSeconds: 0.018}),
	}}
	got := string(g.tables())
	for _, want := range []string{
		"| processors of the server | 1 | 4 |\n| --- | --- | --- |\n| indexing, documents a second | 50 | 200 (× 4.0) |\n",
		"| first queries, QPS | 1 | 4 |\n| --- | --- | --- |\n| one word | 4 | 12 (× 3.0) |\n",
		"| searches that come again, CPU ms each | 1 | 4 |\n| --- | --- | --- |\n| one word | 2 | 3 (× 1.5) |\n",
		"| beside 20 updates a second, p99 ms | 1 | 4 |\n| --- | --- | --- |\n| one word | 3 | 0 |\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the tables lack\n%s\n%s", want, got)
		}
	}
}

func TestTurnsRotatePrograms(t *testing.T) {
	c := comparison{programs: []*program{{name: "a"}, {name: "b"}, {name: "c"}}}
	for n, want := range []string{"abc", "bca", "cab", "abc"} {
		var names string
		for j, p := range c.turn(n) {
			if p != c.programs[j] {
				t.Errorf("turn %d: %s has place %d", n, p.name, j)
			}
			names += p.name
		}
		if names != want {
			t.Errorf("turn %d: %s, want %s", n, names, want)
		}
	}
}

func TestLayTexts(t *testing.T) {
	d, err := layTexts(generate(300), 3)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range bytes.Lines(d.payload) {
		var doc struct {
			ID   int
			Body string
		}
		if err := json.Unmarshal(line, &doc); err != nil || doc.ID != n || len(doc.Body) < longTextBytes || len(doc.Body) > longTextBytes+20_000 {
			t.Errorf("document %d: %v, id %d, %d bytes", n, err, doc.ID, len(doc.Body))
		}
		n++
	}
	if n != 3 || d.documents != 3 {
		t.Errorf("%d documents, reported %d", n, d.documents)
	}
}
