package lint

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// roomNames matches the packages in the first column of a row of the table.
var roomNames = regexp.MustCompile("`([^`]+)`")

// documentedRooms returns the packages in the table of docs/architecture/packages.md, from top to bottom.
func documentedRooms(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "architecture", "packages.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(text), "\n| package | owns |\n")
	if !found {
		t.Fatal("docs/architecture/packages.md has no table of packages")
	}
	var names []string
	for line := range strings.Lines(table) {
		row, isRow := strings.CutPrefix(line, "| ")
		if !isRow {
			break
		}
		first, _, _ := strings.Cut(row, " | ")
		for _, m := range roomNames.FindAllStringSubmatch(first, -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestPackagesAreDocumented compares the table of the page with that of the imports: both must have the same packages, in an order that
// imports go down.
func TestPackagesAreDocumented(t *testing.T) {
	rooms := documentedRooms(t)
	layerOf := map[string]int{}
	for i, names := range layers {
		for _, name := range names {
			layerOf[name] = i
			if !slices.Contains(rooms, name) {
				t.Errorf("%s is in the table of layers and not in that of docs/architecture/packages.md", name)
			}
		}
	}
	deepest := 0
	for i, name := range rooms {
		layer, known := layerOf[name]
		switch {
		case !known:
			t.Errorf("docs/architecture/packages.md names %s, which the table of layers does not know", name)
		case slices.Contains(rooms[:i], name):
			t.Errorf("docs/architecture/packages.md names %s twice", name)
		case layer < deepest:
			t.Errorf("docs/architecture/packages.md has %s below %s, which the table of layers has below it", name, layers[deepest][0])
		default:
			deepest = layer
		}
	}
}

// TestPackageComments requires that the comment of each package is in doc.go or in the file of its name, or in main.go for a command, and
// that the files it names exist.
func TestPackageComments(t *testing.T) {
	said := map[string]bool{}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if _, ok := said[pkg]; !ok {
			said[pkg] = false
		}
		comment := f.Doc.Text()
		if comment == "" {
			return
		}
		if said[pkg] {
			t.Errorf("%s: package %s has a comment already", file, pkg)
		}
		said[pkg] = true
		base := path.Base(file)
		own := path.Base(pkg)
		if pkg == "." {
			own = f.Name.Name
		}
		if base != own+".go" && base != "doc.go" && (f.Name.Name != "main" || base != "main.go") {
			t.Errorf("%s: the comment of package %s belongs in doc.go or %s.go", file, pkg, own)
		}
		for _, name := range fileNames.FindAllString(comment, -1) {
			if found, err := filepath.Glob(filepath.Join(root, pkg, name)); err != nil || len(found) == 0 {
				t.Errorf("%s: the comment names %s, which does not exist", file, name)
			}
		}
	})
	for pkg, ok := range said {
		if !ok {
			t.Errorf("package %s has no comment", pkg)
		}
	}
}

var fileNames = regexp.MustCompile(`[\w*]+\.go\b`)
