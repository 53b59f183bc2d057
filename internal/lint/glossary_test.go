package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var termRow = regexp.MustCompile("^\\| ([^|`]+) \\| ([^|]+) \\| `([^`]+)` \\|$")

// TestGlossary checks the form of docs/GLOSSARY.md: each term once, in order, in a short line, with an existing package.
func TestGlossary(t *testing.T) {
	b, err := os.ReadFile(filepath.Join(root, "docs/GLOSSARY.md"))
	if err != nil {
		t.Fatal(err)
	}
	last, terms := "", 0
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSuffix(line, "\n")
		if len(line) > 140 {
			t.Errorf("longer than 140 characters: %s", line)
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| term ") || strings.HasPrefix(line, "| ---") {
			continue
		}
		row := termRow.FindStringSubmatch(line)
		if row == nil {
			t.Errorf("no row of a term, its meaning and one package: %s", line)
			continue
		}
		terms++
		if term := strings.ToLower(row[1]); term <= last {
			t.Errorf("%q comes after %q", term, last)
		} else {
			last = term
		}
		if info, err := os.Stat(filepath.Join(root, row[3])); err != nil || !info.IsDir() {
			t.Errorf("%s: there is no package %s", row[1], row[3])
		}
	}
	if terms < 50 {
		t.Errorf("only %d terms", terms)
	}
}
