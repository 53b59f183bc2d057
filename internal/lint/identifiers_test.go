package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	// inCode is code in a line of a page.
	inCode = regexp.MustCompile("`([^`\n]+)`")
	// identifierForm is a name of Go, also qualified, or a file of Go, also with its directory.
	identifierForm = regexp.MustCompile(`^[\w/*-]+\.go$|^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$`)
	wordForm       = regexp.MustCompile(`\w+`)
)

// TestIdentifiersOfPages finds files and names in the pages for engineers that the code lacks. A name counts if any Go file has it as a
// word, such as a JSON field.
func TestIdentifiersOfPages(t *testing.T) {
	words, files := map[string]bool{}, map[string]bool{}
	err := filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && (strings.HasPrefix(e.Name(), ".") && name != root || e.Name() == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(name) != ".go" {
			return nil
		}
		b, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		path, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		files[e.Name()], files[filepath.ToSlash(path)] = true, true
		for _, word := range wordForm.FindAllString(string(b), -1) {
			if strings.HasSuffix(name, "_test.go") == strings.HasPrefix(word, "Test") { // names of tests only from test files
				words[word] = true
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	pages, err := filepath.Glob(filepath.Join(root, "docs", "architecture", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, filepath.Join(root, "docs", "ARCHITECTURE.md"), filepath.Join(root, "docs", "operations", "failures.md")) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range inCode.FindAllStringSubmatch(string(b), -1) {
			name := strings.TrimPrefix(m[1], "svc_") // of metrics
			if !identifierForm.MatchString(name) {
				continue
			}
			checked++
			if strings.HasSuffix(name, ".go") {
				if !files[name] && !strings.Contains(name, "*") {
					t.Errorf("%s names the file %s, which does not exist", page, name)
				}
				continue
			}
			for part := range strings.SplitSeq(name, ".") {
				if !words[part] {
					t.Errorf("%s names %s: no code has the word %s", page, name, part)
					break
				}
			}
		}
	}
	if checked < 300 {
		t.Errorf("only %d names found", checked)
	}
}
