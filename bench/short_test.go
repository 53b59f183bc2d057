package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestGenerateShort(t *testing.T) {
	const n = 6000
	d := generateShort(n)
	if again := generateShort(n); !bytes.Equal(d.payload, again.payload) {
		t.Error("two runs generate different documents")
	}
	var lengths []int
	distinct, languages, with := map[string]bool{}, map[string]bool{}, map[string]int{}
	id := 0
	for line := range bytes.Lines(d.payload) {
		var doc map[string]any
		if err := json.Unmarshal(line, &doc); err != nil || doc["id"] != float64(id) {
			t.Fatalf("document %d: %s: %v", id, line, err)
		}
		id++
		words := strings.Fields(fmt.Sprint(doc["name"], " ", doc["summary"]))
		lengths = append(lengths, len(words))
		for _, w := range words {
			distinct[w] = true
		}
		languages[doc["language"].(string)] = true
		for key := range doc {
			with[key]++
		}
	}
	slices.Sort(lengths)
	if median := lengths[n/2]; id != n || median < 8 || median > 10 {
		t.Errorf("%d documents of %d words in the median", id, median)
	}
	if len(distinct) < 2*n || len(distinct) > 6*n || len(languages) != len(tongues) {
		t.Errorf("%d distinct words in %d languages", len(distinct), len(languages))
	}
	for key, few := range map[string]bool{"kind": false, "language": false, "rank": false, "country": true, "license": true, "topic": true} {
		if share := float64(with[key]) / n; few && (share < .05 || share > .2) || !few && share != 1 {
			t.Errorf("%.2f of the documents have %s", share, key)
		}
	}
}

func TestDrawShortQueries(t *testing.T) {
	d := generateShort(3000)
	kinds, err := drawQueries(d, 60, true)
	if err != nil {
		t.Fatal(err)
	}
	again, _ := drawQueries(d, 60, true)
	words := func(n int) func(request) bool {
		return func(r request) bool { return len(strings.Fields(r.Q)) == n }
	}
	letters := func(from, to int) func(request) bool {
		return func(r request) bool { n := utf8.RuneCountInString(r.Q); return n >= 1 && n <= to && from > 0 }
	}
	shape := map[string]func(request) bool{
		"one word": words(1), "two words": words(2), "three words": words(3), "twelve words": words(12), "a typo and a word": words(2),
		"a whole name":                func(r request) bool { return bytes.Contains(d.payload, []byte(r.Q)) },
		"prefix of 1–3 letters":       letters(1, 3),
		"prefix of 4–9 letters":       letters(4, 9),
		"two-word phrase":             func(r request) bool { return words(2)(r) && strings.Count(r.Q, `"`) == 2 },
		"word + filter":               func(r request) bool { return words(1)(r) && r.Filter != nil },
		"word + facets":               func(r request) bool { return words(1)(r) && len(r.Facets) == 2 },
		"word + sort":                 func(r request) bool { return words(1)(r) && len(r.Sort) == 1 && r.Offset == 0 },
		"word + sort, offset 900":     func(r request) bool { return words(1)(r) && len(r.Sort) == 1 && r.Offset == 900 },
		"placeholder + filter + sort": func(r request) bool { return r.Q == "" && r.Filter != nil && len(r.Sort) == 1 },
	}
	for i, k := range kinds {
		if !slices.EqualFunc(k.bodies, again[i].bodies, bytes.Equal) || len(k.bodies) < 50 {
			t.Errorf("%s: %d queries, or the second run differs", k.name, len(k.bodies))
		}
		seen := map[string]bool{}
		for _, body := range k.bodies {
			var r request
			if err := json.Unmarshal(body, &r); err != nil || shape[k.name] == nil || !shape[k.name](r) || seen[string(body)] {
				t.Errorf("%s: %s (%v)", k.name, body, err)
			}
			seen[string(body)] = true
		}
	}
	if len(kinds) != len(shape) {
		t.Errorf("%d kinds", len(kinds))
	}
}

func TestFreshTables(t *testing.T) {
	two := asked{first: latencies{time.Millisecond, 3 * time.Millisecond}, turns: []float64{1, 2}, worst: []byte("slow")}
	f := &fresh{
		data: &dataset{title: "Texts", documents: 2, payload: make([]byte, 3<<20)}, indexing: indexing{seconds: 4, cpuSeconds: 5, peak: 6 << 20, disk: 7 << 20}, disk: 8 << 20,
		windows: []freshWindow{{until: time.Second, segments: 9, took: latencies{2 * time.Millisecond}}},
		kinds:   []queryKind{{name: "one word"}}, fresh: []asked{two}, merged: []asked{two}, start: 10 * time.Millisecond,
	}
	table := string(f.tables())
	for _, row := range []string{"Texts: 2 documents, 3 MiB.", "| import, CPU s | 5.0 |", "| once merged, MiB | 8 |", "| start, ms | 10 |", "| 1.0 | 9 | 1 | 2.0 | 2.0 | 2.0 |",
		"| one word | 3.0 | 3.0 | 3.0 | 1.50 | 3.0 | 3.0 | 3.0 | `slow` |"} {
		if !strings.Contains(table, row+"\n") {
			t.Errorf("no row %s in\n%s", row, table)
		}
	}
}

func TestSegmentFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"0.seg", "1.seg", "MANIFEST"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := segmentFiles(dir); n != 2 || err != nil {
		t.Errorf("%d segments, %v", n, err)
	}
}
