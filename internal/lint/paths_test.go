package lint

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pathRow is a row of the table of access paths.
var pathRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestAccessPathsAreDocumented compares the access paths of package rank with the table of docs/RANKING.md.
func TestAccessPathsAreDocumented(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "docs", "RANKING.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n## All access paths\n")
	if !found {
		t.Fatal("docs/RANKING.md has no section of all access paths")
	}
	table, _, _ = strings.Cut(table, "\n## ")
	documented := map[string]bool{}
	for _, row := range pathRow.FindAllStringSubmatch(table, -1) {
		documented[row[1]] = true
	}
	paths := 0
	eachFile(t, func(pkg, file string, f *ast.File) {
		if pkg != "internal/rank" {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || typeName(spec.Type) != "accessPath" || len(spec.Values) != 1 {
				return true
			}
			literal, ok := spec.Values[0].(*ast.BasicLit)
			if !ok {
				t.Errorf("%s: the name of an access path is not a literal", file)
				return true
			}
			paths++
			name, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			if !documented[name] {
				t.Errorf("%s: docs/RANKING.md does not list the access path %q", file, name)
			}
			delete(documented, name)
			return true
		})
	})
	for name := range documented {
		t.Errorf("docs/RANKING.md lists the access path %q, which no search takes", name)
	}
	if paths < 30 {
		t.Errorf("only %d access paths found", paths)
	}
}
