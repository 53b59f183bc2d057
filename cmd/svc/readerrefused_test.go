package main

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestReadersThatAreRefused checks that a refused reader stops with an error that says why, and that the writer keeps working.
func TestReadersThatAreRefused(t *testing.T) {
	p := newPair(t)
	p.reader.ask("POST", "/indexes/a/documents", `[{"id":1,"text":"word"}]`)
	p.settle()
	if err := p.reader.stop(); err != nil {
		t.Fatal(err)
	}
	lone := filepath.Join(t.TempDir(), "lone")
	if err := start(t, lone).stop(); err != nil {
		t.Fatal(err)
	}
	// options returns the options of a reader with one of them changed.
	options := func(name, value string) []string {
		all := append(slices.Clone(p.common), "--group-role", "reader", "--group-join", fmt.Sprintf("127.0.0.1:%d", p.port))
		if i := slices.Index(all, name); i >= 0 {
			all[i+1] = value
		}
		return all
	}
	fresh := func() string { return filepath.Join(t.TempDir(), "fresh") }
	for _, tt := range []struct {
		what, dir string
		options   []string
		want      string
	}{
		{"another master key", fresh(), options("--master-key", "another-master-key-of-a-group"), "another master key"},
		{"another name", fresh(), options("--group-name", "shoes"), `it belongs to the group "shop"`},
		{"data of its own", lone, options("", ""), "is not empty"},
		{"no group", p.home[1], nil, "belongs to a reader of the group"},
		{"a writer with the data of a reader", p.home[1], append(slices.Clone(p.common), "--group-addr", "127.0.0.1:0"), "reader"},
	} {
		if _, err := tryStartFor(t, tt.dir, tt.options...); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.what, err, tt.want)
		}
	}
	if b, _ := p.writer.ask("POST", "/indexes/a/documents", `[{"id":2,"text":"word"}]`); !strings.Contains(b, "taskUid") {
		t.Errorf("the writer answers %s", b)
	}
	p.startReader()
	p.same()
}
