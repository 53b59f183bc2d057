package dump

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"testing"
)

// TestEveryContentIsDumped checks that each content of tasks, which is a type with a method Kind in internal/task, has a row, and that a
// row can read the name that it writes.
func TestEveryContentIsDumped(t *testing.T) {
	files, err := filepath.Glob("../task/content*.go")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if m, ok := d.(*ast.FuncDecl); ok && m.Recv != nil && m.Name.Name == "Kind" {
				missing[m.Recv.List[0].Type.(*ast.Ident).Name] = true
			}
		}
	}
	if len(missing) < 20 {
		t.Fatalf("only %d types of content found", len(missing))
	}
	for _, r := range contents {
		delete(missing, r.key.of.Name())
		if contentsByName[r.name] == nil {
			t.Errorf("no row of %q reads it", r.name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		t.Errorf("contents has no row for task.%s: a dump loses such tasks", name)
	}
}
