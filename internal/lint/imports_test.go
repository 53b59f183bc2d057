package lint

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// layers lists the packages from top to bottom. A package may import those on lines below its own; packages on one line do not
// import each other.
var layers = [][]string{
	{"cmd/svc", "bench", "hostile", "release"},
	{"bench/syncdelay"},
	{"fastapi", "internal/client"},
	{"docs/demo"},
	{"internal/network", "internal/suggest"},
	{"internal/search"},
	{"internal/format"},
	{"internal/selection"},
	{"internal/rule"},
	{"internal/dump"},
	{"internal/audit"},
	{"internal/webhook", "internal/chat"},
	{"internal/task"},
	{"internal/auth"},
	{"internal/publish"},
	{"internal/group"},
	{"internal/standby", "internal/consensus"},
	{"internal/index"},
	{"internal/index/mergeplan"},
	{"internal/rank"},
	{"internal/rank/positions"},
	{"internal/query"},
	{"internal/filter"},
	{"internal/aggregate"},
	{"internal/embed", "internal/rerank"},
	{"internal/transformer"},
	{"internal/settings"},
	{"internal/template", "internal/restform"},
	{"internal/script"},
	{"internal/document", "internal/text"},
	{"internal/numbering", "internal/scroll"},
	{"segment"},
	{"segment/rowlist", "segment/fst", "segment/synonym"},
	{"ann"},
	{"simd"},
	{"internal/analytics"},
	{"internal/boltfile", "internal/sealedjson"},
	{"internal/commit", "internal/logstore", "internal/bucket"},
	{"internal/mapped"},
	{"internal/vfs", "internal/powercut", "internal/resultcache", "internal/trace", "internal/manual"},
	{"internal/turns", "internal/pace"},
	{"internal/apierr", "internal/binfmt", "internal/budget", "internal/invariant", "internal/logs", "internal/logs/logstest", "internal/outbound", "internal/socket", "internal/socket/sockettest", "internal/shard", "internal/geo", "internal/monotonic", "internal/stall", "internal/jsontext", "internal/history"},
	{"internal/numeric"},
}

// only lists packages that only one or a few packages may import, and the alternative for others.
var only = map[string]struct {
	packages []string
	instead  string
}{
	"github.com/edsrzf/mmap-go":          {[]string{"internal/mapped"}, "map files through internal/mapped, which counts and checks them"},
	"unsafe":                             {[]string{"segment", "segment/rowlist", "simd", "ann", "internal/mapped", "internal/socket", "bench/syncdelay"}, "keep unsafe where mapped memory, kernels and raw calls live"},
	"C":                                  {nil, "svc is built without cgo"},
	"go.opentelemetry.io/otel/sdk/trace": {[]string{"internal/trace"}, "begin spans with internal/trace"},
	"go.etcd.io/bbolt":                   {[]string{"internal/boltfile", "internal/task", "internal/auth"}, "only the queue and the keys live in bbolt"},
	"github.com/blevesearch/vellum": {[]string{"segment", "segment/fst", "internal/query", "internal/text"},
		"ask the segment reader for terms"},
	"github.com/klauspost/compress/zstd": {[]string{"segment", "internal/dump", "fastapi", "internal/client"}, "documents are compressed by segment, dictionaries by programs of their own"},
}

// writers may change the file system through package os; all others write through internal/vfs.
var writers = []string{"cmd/svc", "internal/powercut", "bench", "hostile", "release", "internal/vfs", "internal/boltfile", "internal/mapped", "fastapi", "internal/transformer/transformertest"}

var writing = []string{"Create", "CreateTemp", "OpenFile", "WriteFile", "Mkdir", "MkdirAll", "MkdirTemp", "Remove", "RemoveAll", "Rename", "Link", "Symlink", "Truncate"}

const root = "../.."

func TestImportsGoDown(t *testing.T) {
	layerOf := map[string]int{}
	for i, names := range layers {
		for _, name := range names {
			layerOf[name] = i
		}
	}
	eachFile(t, func(pkg, file string, f *ast.File) {
		if strings.Contains(pkg, "_generate") { // generators are modules of their own
			return
		}
		own, known := layerOf[pkg]
		for _, spec := range f.Imports {
			name, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if rule, ok := only[name]; ok && !slices.Contains(rule.packages, pkg) {
				t.Errorf("%s imports %s: %s", file, name, rule.instead)
			}
			name, ours := strings.CutPrefix(name, "svc/")
			if !ours {
				continue
			}
			if !known {
				t.Errorf("%s: package %s has no place in the table of layers: give it one", file, pkg)
				return
			}
			if below, ok := layerOf[name]; !ok || below <= own {
				t.Errorf("%s imports svc/%s, which is not below svc/%s: move what is shared further down, or declare the interface you need", file, name, pkg)
			}
		}
	})
}

func TestFilesAreWrittenThroughVFS(t *testing.T) {
	eachFile(t, func(pkg, file string, f *ast.File) {
		if slices.Contains(writers, pkg) {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "os" && slices.Contains(writing, s.Sel.Name) {
					t.Errorf("%s calls os.%s: write through internal/vfs, so that crashes and errors can be tested", file, s.Sel.Name)
				}
			}
			return true
		})
	})
}

// eachFile parses every Go file of the product except tests, and calls f with its package's path inside the module.
func eachFile(t *testing.T, f func(pkg, file string, parsed *ast.File)) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if base := d.Name(); base == "testdata" || name != root && strings.HasPrefix(base, ".") {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		parsed, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution|parser.ParseComments)
		if err != nil {
			return err
		}
		if ignored(parsed) {
			return nil
		}
		files++
		f(path.Dir(rel), rel, parsed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if files < 20 {
		t.Fatalf("only %d files found: is the root wrong?", files)
	}
}

// ignored reports whether a file is a program for go generate and not part of its package.
func ignored(f *ast.File) bool {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if group.Pos() < f.Package && c.Text == "//go:build ignore" {
				return true
			}
		}
	}
	return false
}
