package lint

import (
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"
)

// longestSentence is the maximum number of words of a sentence. Readers read a longer one twice.
const longestSentence = 35

// meanSentence is the maximum mean length of the sentences of a page, in words.
const meanSentence = 18

var (
	fenced    = regexp.MustCompile("(?s)```.*?```")
	codeSpan  = regexp.MustCompile("`[^`]*`")
	target    = regexp.MustCompile(`\]\([^)]*\)`)
	listItem  = regexp.MustCompile(`(?m)^\s*(?:[-*]|\d+\.) `)
	paragraph = regexp.MustCompile(`\n\s*\n`)
	sentence  = regexp.MustCompile(`[.!?:;][*")]*\s+`)
	proseWord = regexp.MustCompile(`[\pL\pN'’_-]+`)
)

// sentencesOf returns the sentences of a Markdown page, without tables, headings and code blocks. Inline code counts as a word.
func sentencesOf(markdown string) (sentences []string) {
	text := fenced.ReplaceAllString(markdown, "")
	var kept strings.Builder
	for line := range strings.Lines(text) {
		if start := strings.TrimSpace(line); !strings.HasPrefix(start, "|") && !strings.HasPrefix(start, "#") {
			kept.WriteString(line)
		}
	}
	text = listItem.ReplaceAllString(kept.String(), "\n\n")
	for _, p := range paragraph.Split(text, -1) {
		p = codeSpan.ReplaceAllString(p, "X")
		p = target.ReplaceAllString(p, "]")
		for _, s := range sentence.Split(p, -1) {
			if s = strings.Join(strings.Fields(s), " "); s != "" {
				sentences = append(sentences, s)
			}
		}
	}
	return sentences
}

// pages returns the README and all other pages.
func pages(t *testing.T) []string {
	t.Helper()
	all := []string{filepath.Join(root, "README.md"), filepath.Join(root, "CONTRIBUTING.md"), filepath.Join(root, "CHANGELOG.md")}
	for _, pattern := range []string{"docs/*.md", "docs/*/*.md"} {
		more, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, more...)
	}
	if len(all) < 15 {
		t.Errorf("only %d pages", len(all))
	}
	return all
}

func TestSentencesOfPagesAreShort(t *testing.T) {
	for _, page := range pages(t) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		words, sentences := 0, 0
		for _, s := range sentencesOf(string(b)) {
			n := len(proseWord.FindAllString(s, -1))
			if n > longestSentence {
				t.Errorf("%s: %d words: %s", page, n, s)
			}
			words, sentences = words+n, sentences+1
		}
		if words > meanSentence*sentences {
			t.Errorf("%s: %d sentences have %d words, more than %d each", page, sentences, words, meanSentence)
		}
	}
}

// TestSentencesOfMessagesAreShort checks the string literals of the program: errors, log messages, help of options,
// descriptions of metrics.
func TestSentencesOfMessagesAreShort(t *testing.T) {
	read := 0
	eachFile(t, func(_, path string, f *ast.File) {
		if path == "internal/text/language.go" || path == "internal/text/tables.go" {
			return // lists of languages and characters
		}
		ast.Inspect(f, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range sentencesOf(text) {
				if words := len(proseWord.FindAllString(s, -1)); words > longestSentence {
					t.Errorf("%s: %d words: %s", path, words, s)
				} else if words > 5 {
					read++
				}
			}
			return true
		})
	})
	if read < 1000 {
		t.Errorf("only %d sentences were read", read)
	}
}

// exampleInComment matches a preformatted line of a comment: code, a grammar, a format.
var exampleInComment = regexp.MustCompile(`(?m)^\t.*$`)

// TestSentencesOfPackageCommentsAreShort applies the limits for pages to package comments.
func TestSentencesOfPackageCommentsAreShort(t *testing.T) {
	read := 0
	eachFile(t, func(_, path string, f *ast.File) {
		words, sentences := 0, 0
		for _, s := range sentencesOf(exampleInComment.ReplaceAllString(f.Doc.Text(), "\n")) {
			n := len(proseWord.FindAllString(s, -1))
			if n > longestSentence {
				t.Errorf("%s: %d words: %s", path, n, s)
			}
			words, sentences = words+n, sentences+1
		}
		if words > meanSentence*sentences {
			t.Errorf("%s: %d sentences have %d words, more than %d each", path, sentences, words, meanSentence)
		}
		read += sentences
	})
	if read < 500 {
		t.Errorf("only %d sentences were read", read)
	}
}

// oldWords are words and phrases from before docs/GLOSSARY.md that have no other meaning, with their replacements.
var oldWords = map[string]string{
	"sieve": "pruner", "fewtypos": "lazy typo expansion", "unsought": "unexpanded", "shelf": "cache scope", "set aside": "quarantined", "made again": "rebuilt",
	"second wish": "second-hit admission", "for want of": "without", "be it": "whether", "of which none": "none of which", "as well as it can": "as far as possible",
	"simply": "nothing", "be that": "whether", "whosoever": "who",
}

// TestOldWords finds oldWords in pages and in package comments.
func TestOldWords(t *testing.T) {
	find := func(where, text string) {
		text = strings.ToLower(strings.Join(strings.Fields(codeSpan.ReplaceAllString(text, "X")), " "))
		for word, term := range oldWords {
			if regexp.MustCompile(`\b` + word + `\b`).MatchString(text) {
				t.Errorf("%s has %q: say %s", where, word, term)
			}
		}
	}
	for _, page := range pages(t) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		find(page, fenced.ReplaceAllString(string(b), ""))
	}
	eachFile(t, func(_, path string, f *ast.File) { find(path, f.Doc.Text()) })
}

// TestSentencesAreFound tests sentencesOf.
func TestSentencesAreFound(t *testing.T) {
	const page = "# A heading of a page.\n\nOne `code span.` here. Two\nlines: three!\n\n| a | table. |\n\n- an item\n  of a list\n- [a link](https://a.b/c.d?e=f) 1.5 ms\n1. one\n\n```\ncode. code.\n```\nLast"
	got := strings.Join(sentencesOf(page), "|")
	if want := "One X here|Two lines|three!|an item of a list|[a link] 1.5 ms|one|Last"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// longestLine is in characters. Tables, code blocks, and lines that cannot be broken, such as long links, may be longer.
const longestLine = 100

func TestLinesOfPagesAreShort(t *testing.T) {
	for _, page := range pages(t) {
		b, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		code := false
		for line := range strings.Lines(string(b)) {
			line = strings.TrimSuffix(line, "\n")
			start := strings.TrimSpace(line)
			if strings.HasPrefix(start, "```") {
				code = !code
			}
			if code || strings.HasPrefix(start, "|") || strings.HasPrefix(start, "![") || strings.HasPrefix(start, "<!--") || utf8.RuneCountInString(line) <= longestLine {
				continue
			}
			if words := strings.Fields(codeSpan.ReplaceAllString(listItem.ReplaceAllString(line, ""), "X")); len(words) > 2 {
				t.Errorf("%s: longer than %d characters: %s", page, longestLine, line)
			}
		}
	}
}
