package task

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestEveryContentRuns checks each type with a method Kind: it must be in exampleContents, and exactly one way must run its tasks.
func TestEveryContentRuns(t *testing.T) {
	examples := map[string]Content{"UpdateSettings": UpdateSettings{}}
	for _, c := range exampleContents() {
		examples[strings.TrimPrefix(fmt.Sprintf("%T", c), "task.")] = c
	}
	files, err := filepath.Glob("content*.go")
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			m, ok := d.(*ast.FuncDecl)
			if !ok || m.Recv == nil || m.Name.Name != "Kind" {
				continue
			}
			n++
			name := m.Recv.List[0].Type.(*ast.Ident).Name
			c := examples[name]
			if c == nil {
				t.Errorf("exampleContents has no %s", name)
				continue
			}
			_, operates := c.(operator)
			_, runs := c.(runner)
			queues := c.Kind() == TaskCancelation || c.Kind() == TaskDeletion // see Queue.run
			removes := classOf(c) == indexDeletion                            // see executeRemoval
			ways := 0
			for _, way := range []bool{operates, runs, queues, removes, kinds[c.Kind()].outside} {
				if way {
					ways++
				}
			}
			if ways != 1 {
				t.Errorf("%s has %d of operation, run and an external executor, want exactly one", name, ways)
			}
			if operates && classOf(c) == unbatched {
				t.Errorf("%s is an operation of a batch, and has no class", name)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d types of content found", n)
	}
}
