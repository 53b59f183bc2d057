package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMemberBodies checks that all kinds of a part search for the same, each with its own members, and that the bodies of a
// kind are distinct.
func TestMemberBodies(t *testing.T) {
	names := map[string]bool{}
	for at, part := range memberParts {
		bodies := memberWords
		if at == len(memberParts)-1 {
			bodies *= memberPages
		}
		for _, k := range part {
			if names[k.name] {
				t.Errorf("%s stands twice", k.name)
			}
			names[k.name] = true
			seen := map[string]bool{}
			for i := range bodies {
				word := fmt.Sprintf("%d\"", i)
				body := k.make(word, i)
				var r struct {
					request
					Limit          int
					Aggregations   map[string]any
					GroupBy        map[string]any
					ScoreFunctions []any
				}
				d := json.NewDecoder(strings.NewReader(body))
				d.DisallowUnknownFields()
				if err := d.Decode(&r); err != nil || r.Q != word && r.Q != "" || seen[body] {
					t.Errorf("%s: %s (%v)", k.name, body, err)
				}
				seen[body] = true
			}
		}
	}
}

func TestWithObjects(t *testing.T) {
	plain := generate(300)
	d := withObjects(plain)
	if d.documents != plain.documents || bytes.Count(d.payload, []byte{'\n'}) != plain.documents || !bytes.Equal(d.payload, withObjects(plain).payload) {
		t.Fatalf("%d lines, or other ones the second time", bytes.Count(d.payload, []byte{'\n'}))
	}
	counts := map[int]int{}
	for line := range bytes.Lines(d.payload) {
		var doc struct {
			ID       *int
			Variants []struct {
				Color       string
				Size, Price float64
			}
		}
		if err := json.Unmarshal(line, &doc); err != nil || doc.ID == nil {
			t.Fatalf("%s: %v", line, err)
		}
		counts[len(doc.Variants)]++
		for _, v := range doc.Variants {
			if v.Color == "" || v.Size < 36 || v.Price < 0 || v.Price >= 100 {
				t.Errorf("%+v", v)
			}
		}
	}
	if len(counts) != 3 || counts[0] > 0 {
		t.Errorf("numbers of objects: %v", counts)
	}
}

func TestMemberTable(t *testing.T) {
	one := &asked{first: latencies{time.Millisecond, 3 * time.Millisecond}, turns: []float64{.5, .25}}
	two := &asked{first: latencies{2 * time.Millisecond, 6 * time.Millisecond}, turns: []float64{1, .75}}
	f := members{parts: [][]memberFigure{{{"plain", one, two}, {"more", two, two}}}}
	for _, want := range []string{"| plain | 0.500 | 0.500 |  | 500 | 250 | 0.50 |\n", "| more | 1.000 | 1.000 | 2.00 | 250 | 250 | 1.00 |\n"} {
		if got := string(f.table()); !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
}

// TestDrawFigures checks that the words are those of the one-word searches, and that the queries of a kind are distinct.
func TestDrawFigures(t *testing.T) {
	kinds, err := drawQueries(generate(2000), 50, true)
	if err != nil {
		t.Fatal(err)
	}
	figures, err := drawFigures(kinds)
	if err != nil || len(figures) != len(memberParts[0])+1 {
		t.Fatalf("%d kinds: %v", len(figures), err)
	}
	for _, k := range figures {
		seen := map[string]bool{}
		for i, body := range k.bodies {
			var asked, plain request
			if err := json.Unmarshal(kinds[0].bodies[i], &plain); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(body, &asked); err != nil || asked.Q != plain.Q && asked.Q != "" || seen[string(body)] {
				t.Errorf("%s: %s (%v)", k.name, body, err)
			}
			seen[string(body)] = true
		}
	}
}

// TestLinkData checks that a linked data directory shares the segment files alone: a server may change its other files.
func TestLinkData(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "linked")
	files := map[string]string{"VERSION": "1", "indexes/a/manifest": "old", "indexes/a/1.seg": "rows", "indexes/a/deep/2.seg": "more", "tasks/queue.db": ""}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(from, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(from, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(from, "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := linkData(to, from); err != nil {
		t.Fatal(err)
	}
	for name, content := range files {
		got, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || string(got) != content {
			t.Errorf("%s: %q, %v; want %q", name, got, err, content)
		}
		a, err := os.Stat(filepath.Join(from, name))
		b, err2 := os.Stat(filepath.Join(to, name))
		if err != nil || err2 != nil || os.SameFile(a, b) != strings.HasSuffix(name, ".seg") {
			t.Errorf("%s is the same file: %v (%v, %v)", name, os.SameFile(a, b), err, err2)
		}
	}
	if s, err := os.Stat(filepath.Join(to, "empty")); err != nil || !s.IsDir() {
		t.Errorf("an empty directory was not made: %v", err)
	}
	if err := linkData(to, filepath.Join(from, "none")); err == nil {
		t.Error("a missing directory was linked")
	}
}
