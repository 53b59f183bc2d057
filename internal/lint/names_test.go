package lint

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// oldNames are words that names had before docs/GLOSSARY.md, with the terms that replaced them.
var oldNames = map[string]string{
	"sieve": "pruner", "unsought": "unexpanded", "untold": "inconclusive", "shelf": "scope", "wish": "missed", "wishes": "missed", "wished": "missed",
	"worth": "benefit", "twin": "a name for what it does; in tests, reference", "circles": "rings", "placing": "exact-position check", "leaders": "top hits",
	"aside": "quarantined, or what is done",
}

// oldNamesAllowed are old names that other formats have, by package.
var oldNamesAllowed = map[string][]string{"internal/manual": {"aside"}}

// wordsOf splits a name in camel case into its words, in lower case.
func wordsOf(name string) (words []string) {
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || r == '_') {
			words = append(words, strings.ToLower(strings.Trim(name[start:i], "_")))
			start = i
		}
	}
	return append(words, strings.ToLower(strings.Trim(name[start:], "_")))
}

// TestOldNames checks every name that the program declares: functions, types, fields, variables, constants and parameters.
func TestOldNames(t *testing.T) {
	names := 0
	eachFile(t, func(pkg, file string, f *ast.File) {
		check := func(idents ...*ast.Ident) {
			for _, ident := range idents {
				names++
				for _, word := range wordsOf(ident.Name) {
					if term, old := oldNames[word]; old && !slices.Contains(oldNamesAllowed[pkg], word) {
						t.Errorf("%s: %s has the old name %q: use %s", file, ident.Name, word, term)
					}
				}
			}
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				check(n.Name)
			case *ast.TypeSpec:
				check(n.Name)
			case *ast.ValueSpec:
				check(n.Names...)
			case *ast.Field:
				check(n.Names...)
			case *ast.AssignStmt:
				if n.Tok.String() == ":=" {
					for _, left := range n.Lhs {
						if ident, ok := left.(*ast.Ident); ok {
							check(ident)
						}
					}
				}
			}
			return true
		})
	})
	if names < 10_000 {
		t.Errorf("only %d names", names)
	}
}

// TestWordsOfNames tests wordsOf.
func TestWordsOfNames(t *testing.T) {
	for name, want := range map[string]string{"wishList": "wish list", "a": "a", "ofCircles": "of circles", "Worth": "worth", "missed_keys": "missed keys", "swish": "swish"} {
		if got := strings.Join(wordsOf(name), " "); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}
