package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/powercut"
)

var mutate = flag.String("mutate-syncs", "", "which syncs TestEverySyncIsNeeded removes: all, or those whose place contains the text")

// syncing describes a package whose syncs are needed.
type syncing struct {
	// without lists files whose syncs are not removed. They sync copies for others (dumps, snapshots, models), imports, or what is undone
	// after an error, which no recorded run reaches.
	without []string
	// alone matches the tests that detect a missing sync by themselves; "": ownSyncTests, and power cuts as well.
	alone string
}

// synced lists the packages whose syncs are removed. The recorded server is in no group: only tests of the packages detect missing syncs
// of group members. Package boltfile is an exception, because its files are not on a file system in memory.
var synced = map[string]syncing{
	"internal/vfs":       {without: []string{"mem.go", "hook.go", "crash.go"}},
	"internal/index":     {},
	"internal/task":      {without: []string{"transfer.go"}},
	"internal/boltfile":  {without: []string{"revert.go"}},
	"internal/auth":      {},
	"segment":            {},
	"internal/logstore":  {alone: "ACrashAnywhere|AreDurable"},
	"internal/consensus": {alone: "AreDurable"},
	"internal/group":     {alone: "AreDurable", without: []string{"writer.go"}},
	"internal/standby":   {alone: "ACrashWhileAChangeIsApplied"},
}

// ownSyncTests matches the tests of other packages that crash a file system in memory at every moment.
const ownSyncTests = "AllOrNothing|ComesAfter|AreDurable"

// mutant is a source file without one of its syncs.
type mutant struct{ place, file, source string }

// mutants returns one mutant for each call of Sync or SyncDir, and for each NoSync.
func mutants(t *testing.T, root string) []mutant {
	t.Helper()
	var all []mutant
	for dir, syncs := range synced {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
	next:
		for _, file := range files {
			for _, name := range append(syncs.without, "_test.go") {
				if strings.HasSuffix(file, name) {
					continue next
				}
			}
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			set := token.NewFileSet()
			parsed, err := parser.ParseFile(set, file, src, 0)
			if err != nil {
				t.Fatal(err)
			}
			replace := func(from, to token.Pos, text string) {
				at := set.Position(from)
				place := fmt.Sprintf("%s/%s:%d", dir, filepath.Base(file), at.Line)
				all = append(all, mutant{place, file, string(src[:at.Offset]) + text + string(src[set.Position(to).Offset:])})
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.CallExpr:
					s, ok := n.Fun.(*ast.SelectorExpr)
					if !ok || s.Sel.Name != "Sync" && s.Sel.Name != "SyncDir" {
						return true
					}
					args := []string{string(src[set.Position(s.X.Pos()).Offset:set.Position(s.X.End()).Offset])}
					for _, a := range n.Args {
						args = append(args, string(src[set.Position(a.Pos()).Offset:set.Position(a.End()).Offset]))
					}
					replace(n.Pos(), n.End(), "func(...any) error { return nil }("+strings.Join(args, ", ")+")")
				case *ast.KeyValueExpr:
					key, ok := n.Key.(*ast.Ident)
					if value, is := n.Value.(*ast.Ident); ok && key.Name == "NoSync" && syncs.alone == "" && !(is && value.Name == "true") {
						replace(n.Pos(), n.End(), "NoSync: true")
					}
				}
				return true
			})
		}
	}
	return all
}

// TestEverySyncIsNeeded removes each sync of the program in turn: the tests of its package or power cuts must detect it. Power cuts take
// minutes per sync.
func TestEverySyncIsNeeded(t *testing.T) {
	if *mutate == "" {
		t.Skip("only with -mutate-syncs")
	}
	if !powercut.Supported() {
		t.Skip("this system cannot record programs")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tried := 0
	for _, m := range mutants(t, root) {
		if *mutate != "all" && !strings.Contains(m.place, *mutate) {
			continue
		}
		tried++
		dir := t.TempDir()
		mutated, overlay, binary := filepath.Join(dir, "mutated.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "svc")
		content, err := json.Marshal(map[string]map[string]string{"Replace": {m.file: mutated}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(overlay, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(mutated, []byte(m.source), 0o600); err != nil {
			t.Fatal(err)
		}
		// If the tests of the package detect it by themselves, they always do.
		alone := synced[filepath.ToSlash(filepath.Dir(m.place))].alone
		own := exec.Command("go", "test", "-overlay", overlay, "-count", "1", "-run", cmp.Or(alone, ownSyncTests), "./"+filepath.Dir(m.place))
		own.Dir = root
		if out, err := own.CombinedOutput(); err != nil && strings.Contains(string(out), "--- FAIL: ") {
			_, test, _ := strings.Cut(string(out), "--- FAIL: ")
			test, _, _ = strings.Cut(test, " ")
			t.Logf("%s: detected by %s", m.place, test)
			continue
		} else if err != nil {
			t.Errorf("%s: cannot test without it: %v\n%s", m.place, err, out)
			continue
		}
		if alone != "" {
			t.Errorf("%s: no test detects that it is missing", m.place)
			continue
		}
		if out, err := exec.Command("go", "build", "-pgo=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
			t.Errorf("%s: cannot build without it: %v\n%s", m.place, err, out)
			continue
		}
		seed, began, states := uint64(time.Now().UnixNano()), time.Now(), 0
		var bad []string
		for round := 0; len(bad) == 0 && states < *cutStates; round++ {
			at := filepath.Join(dir, fmt.Sprint(round))
			if err := os.Mkdir(at, 0o700); err != nil {
				t.Fatal(err)
			}
			var n int
			bad, n = powerCuts(t, binary, at, seed+uint64(round), *cutWrites, min(*cutStates, 100), true)
			states += n
		}
		if len(bad) == 0 {
			t.Errorf("%s: not detected in %d states (%v)", m.place, states, time.Since(began).Round(time.Second))
			continue
		}
		first, _, _ := strings.Cut(bad[0], "\n")
		t.Logf("%s: detected after %d states (%v): %.200s", m.place, states, time.Since(began).Round(time.Second), first)
	}
	if tried == 0 {
		t.Error("no such sync")
	}
}
