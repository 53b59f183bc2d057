package lint

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// commentColumns is the maximum width of a line of a comment, with tabs of 4. New ones are wrapped at about 130.
const commentColumns = 140

// TestCommentsAreWrapped checks comments on lines of their own, including those of tests.
func TestCommentsAreWrapped(t *testing.T) {
	files := 0
	for _, depth := range []string{"*", "*/*", "*/*/*", "*/*/*/*"} {
		names, err := filepath.Glob(filepath.Join(root, depth+".go"))
		if err != nil {
			t.Fatal(err)
		}
		files += len(names)
		for _, name := range names {
			b, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(strings.NewReader(string(b)))
			lines.Buffer(nil, len(b)+1)
			for n := 1; lines.Scan(); n++ {
				text := strings.TrimLeft(lines.Text(), "\t")
				indent := len(lines.Text()) - len(text)
				if !strings.HasPrefix(text, "// ") && !strings.HasPrefix(text, "//\t") {
					continue
				}
				if columns := 4*indent + 3*strings.Count(text, "\t") + utf8.RuneCountInString(text); columns > commentColumns {
					t.Errorf("%s:%d: a comment of %d columns: wrap it", name, n, columns)
				}
			}
			if err := lines.Err(); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}
	if files < 100 {
		t.Fatalf("only %d files found: is the root wrong?", files)
	}
}
