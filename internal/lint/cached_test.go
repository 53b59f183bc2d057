package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"
)

// cachedRow is a row of the table of kinds of cached results: kind, scope, package.
var cachedRow = regexp.MustCompile("(?m)^\\| ([^|]+) \\| (?:view|segment) \\| `([^`]+)` \\|$")

// TestCachedKindsAreDocumented compares the kinds of cached results with the table of docs/architecture/caching.md.
func TestCachedKindsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture", "caching.md"))
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]string{}
	for _, row := range cachedRow.FindAllStringSubmatch(string(text), -1) {
		documented[row[1]] = row[2]
	}
	kinds := 0
	eachFile(t, func(pkg, file string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok {
				return true
			}
			index, ok := call.Fun.(*ast.IndexExpr)
			if !ok || spelled(index.X) != "resultcache.NewKind" {
				return true
			}
			kinds++
			literal, ok := call.Args[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the name of a kind of cached results is not a literal", file)
				return true
			}
			name, _ := strconv.Unquote(literal.Value)
			if in, ok := documented[name]; !ok {
				t.Errorf("%s: the table of docs/architecture/caching.md has no row for %q", file, name)
			} else if in != pkg {
				t.Errorf("docs/architecture/caching.md has %q in %s: it is in %s", name, in, pkg)
			}
			delete(documented, name)
			return true
		})
	})
	for name := range documented {
		t.Errorf("docs/architecture/caching.md has an unknown kind of cached results: %q", name)
	}
	if kinds < 20 {
		t.Errorf("only %d kinds found", kinds)
	}
}
