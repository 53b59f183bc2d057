package main

import (
	"context"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestAskEngine talks to a program that follows the protocol, to one that ends early, and to one that sends nonsense.
func TestAskEngine(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("needs a shell")
	}
	f := &engines{data: &dataset{}, kinds: []engineKind{{"one word", "words", []string{"a", "b"}}, {"two-word phrase", "phrase", []string{"a b"}}}}
	const answers = `while read command kind n; do
		if [ $command = build ]; then echo 1.5; continue; fi
		for i in $(seq $n); do read q; echo 2000 3; done
	done`
	c, err := f.askEngine(context.Background(), []string{"sh", "-c", answers})
	if err != nil || c.indexing != 1.5 || len(c.first) != 2 || len(c.again) != 2 || c.first[0] != (engineCost{2, 6}) || c.again[1] != (engineCost{2, 3}) {
		t.Errorf("%+v, %v", c, err)
	}
	for script, want := range map[string]string{"exit 1": "it ended while it indexed", "echo nonsense": `it answered "nonsense"`, "echo no engine >&2; exit 1": "no engine"} {
		if _, err := f.askEngine(context.Background(), []string{"sh", "-c", script}); err == nil || !strings.Contains(err.Error(), want) && !strings.Contains(err.Error(), "pipe") {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
	}
	c.name = "one"
	f.columns, f.missing = []engineColumn{c}, []string{"another: there is none"}
	if table := string(f.tables()); !strings.Contains(table, "| one word | 2.00 / 2.00; 6 |") || !strings.Contains(table, "Not measured: another: there is none") {
		t.Error(table)
	}
	f.columns = []engineColumn{{name: "svc"}, {name: "Lucene"}}
	for i := range f.columns {
		f.columns[i].first, f.columns[i].again = c.first, c.again
	}
	if table := string(f.tables()); !strings.Contains(table, "\n\n- Lucene: ") || strings.Contains(table, "tantivy") {
		t.Errorf("notes are not those of the columns: %s", table)
	}
}

func TestWriteTabbed(t *testing.T) {
	name := filepath.Join(t.TempDir(), "d.tsv")
	if err := writeTabbed(name, &dataset{payload: []byte(`{"id":7,"name":"n","summary":"a\tb","description":"c\nd"}` + "\n" + `{"name":"m"}` + "\n")}); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "0\tn\ta b\tc d\n1\tm\t\t\n" {
		t.Errorf("%q, %v", b, err)
	}
}
