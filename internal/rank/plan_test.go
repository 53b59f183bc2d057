package rank

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// taken counts the access paths of the searches of a test.
type taken map[accessPath]int

func (k taken) add(p *Plan) {
	for _, s := range p.Steps {
		k[accessPath(s.Path)] += s.Calls
	}
}

// search searches and counts the access paths.
func (k taken) search(ix *Index, r *Request) (*Result, error) {
	ask := *r
	ask.Plan = new(Plan)
	got, err := Search(context.Background(), ix, &ask)
	k.add(ask.Plan)
	return got, err
}

// lacks reports whether a path was not taken.
func (k taken) lacks(paths ...accessPath) bool {
	return slices.ContainsFunc(paths, func(p accessPath) bool { return k[p] == 0 })
}

// wants fails the test if a path was not taken.
func (k taken) wants(t *testing.T, paths ...accessPath) {
	t.Helper()
	for _, p := range paths {
		if k[p] == 0 {
			t.Errorf("no search took the path %q: %v", p, k)
		}
	}
}

// everyPath parses the constants of the package.
func everyPath(t *testing.T) (paths []accessPath) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok {
				if id, ok := s.Type.(*ast.Ident); ok && id.Name == "accessPath" && len(s.Values) == 1 {
					name, err := strconv.Unquote(s.Values[0].(*ast.BasicLit).Value)
					if err != nil {
						t.Fatal(err)
					}
					paths = append(paths, accessPath(name))
				}
			}
			return true
		})
	}
	if len(paths) < 30 {
		t.Fatalf("only %d paths found", len(paths))
	}
	return paths
}

// TestPlanTimes nests a path in another: each has its own time, and rows are summed.
func TestPlanTimes(t *testing.T) {
	p := new(Plan)
	began := time.Now()
	outer := p.begin("typo", levelSets, 10)
	time.Sleep(2 * time.Millisecond)
	p.begin("proximity", rowByRow, 4)
	time.Sleep(4 * time.Millisecond)
	p.end(4)
	p.end(6)
	p.resume(outer)
	p.end(4)
	p.note("", cachedHits)
	p.begin("proximity", rowByRow, 3)
	p.end(3)
	all := time.Since(began)
	if len(p.Steps) != 3 || len(p.open) != 0 {
		t.Fatalf("%+v", p)
	}
	levels, rows := p.Steps[0], p.Steps[1]
	if levels.Calls != 1 || levels.In != 10 || levels.Out != 10 || rows.Calls != 2 || rows.In != 7 || rows.Out != 7 || p.Steps[2].Calls != 1 {
		t.Errorf("%+v", p.Steps)
	}
	if levels.Took < 2*time.Millisecond || rows.Took < 4*time.Millisecond || levels.Took+rows.Took > all {
		t.Errorf("%v and %v of %v", levels.Took, rows.Took, all)
	}
}
