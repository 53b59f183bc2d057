package lint

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// sourceFile is a path of a Go file, from the root, in a code span of a page.
var sourceFile = regexp.MustCompile("`((?:[a-z][\\w.-]*/)+[a-z0-9_]+\\.go)`")

// exampleFiles are files that pages tell readers to write.
var exampleFiles = map[string]bool{"internal/rank/rule_recency.go": true}

// headings returns the anchors of a page, as forges and the server make them.
func headings(t *testing.T, name string) map[string]bool {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	anchors := map[string]bool{}
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	err = ast.Walk(markdown.Parser().Parse(text.NewReader(b)), func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if heading, ok := n.(*ast.Heading); ok && entering {
			if id, ok := heading.AttributeString("id"); ok {
				anchors[string(id.([]byte))] = true
			}
		}
		return ast.WalkContinue, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return anchors
}

// TestLinksOfPages checks that every link of a page into the repository leads to an existing file and heading, and that the Go files that
// pages name exist.
func TestLinksOfPages(t *testing.T) {
	links, files := 0, 0
	anchors := map[string]map[string]bool{}
	for _, page := range pages(t) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		prose := fenced.ReplaceAllString(string(b), "")
		for _, m := range sourceFile.FindAllStringSubmatch(prose, -1) {
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil && !exampleFiles[m[1]] {
				t.Errorf("%s names %s, which does not exist", page, m[1])
			}
			files++
		}
		for _, m := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(codeSpan.ReplaceAllString(prose, "X"), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, ":") {
				continue
			}
			target := page
			if to != "" {
				target = path.Join(path.Dir(filepath.ToSlash(page)), to)
			}
			links++
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, m[1])
				continue
			}
			if anchor == "" || path.Ext(target) != ".md" {
				continue
			}
			if anchors[target] == nil {
				anchors[target] = headings(t, target)
			}
			if !anchors[target][anchor] {
				t.Errorf("%s links to %s: %s has no such heading", page, m[1], target)
			}
		}
	}
	if links < 150 || files < 20 {
		t.Errorf("only %d links and %d files", links, files)
	}
}

// TestDecisions checks the form of decision records: numbered without gaps, dated, with four parts, and listed.
func TestDecisions(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "docs/decisions/*.md"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := os.ReadFile(filepath.Join(root, "docs/decisions/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	form := regexp.MustCompile(`(?s)^# (.+?)\n\n(\d{4}-\d\d-\d\d)\n\n## Context\n.+\n## Decision\n.+\n## Consequences\n.+\n## Alternatives\n.+$`)
	number := regexp.MustCompile(`^(\d{4})-[a-z0-9-]+\.md$`)
	last := "0000"
	for _, name := range names {
		base := filepath.Base(name)
		if base == "README.md" {
			continue
		}
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		m, parts := number.FindStringSubmatch(base), form.FindStringSubmatch(string(b))
		if m == nil || parts == nil {
			t.Errorf("%s: want a name like 0001-a-title.md, and a heading, a date, and the parts Context, Decision, Consequences and Alternatives", base)
			continue
		}
		if m[1] <= last {
			t.Errorf("%s has the number of another decision", base)
		}
		last = m[1]
		if row := "| [" + m[1] + "](" + base + ") | " + parts[2] + " | " + parts[1] + " |\n"; !strings.Contains(string(list), row) {
			t.Errorf("docs/decisions/README.md lacks the row %s", row)
		}
	}
	if last < "0019" {
		t.Errorf("the last decision found is %s", last)
	}
}
