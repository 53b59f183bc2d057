package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"unicode/utf8"
)

// shortSample is a document of short texts that queries are drawn from.
type shortSample struct {
	Name     string `json:"name"`
	Summary  string `json:"summary"`
	Language string `json:"language"`
	Kind     string `json:"kind"`
}

// drawShortQueries is drawQueries for short texts.
func drawShortQueries(d *dataset, n int, distinct bool) ([]queryKind, error) {
	g := rand.New(rand.NewPCG(11, 11))
	var failed error
	document := func() (s shortSample) {
		if err := json.Unmarshal(d.lineAt(g.IntN(len(d.payload))), &s); err != nil {
			failed = fmt.Errorf("cannot read a document: %w", err)
		}
		return s
	}
	// draw returns the given number of consecutive words, and the document of the first.
	draw := func(n int) (s shortSample, list []string) {
		for tries := 0; len(list) < n && failed == nil; tries++ {
			next := document()
			words := strings.Fields(next.Name + " " + next.Summary)
			if tries < 20 && len(words) < n {
				continue // a longer one
			}
			if s = next; len(list) == 0 && len(words) > n {
				words = words[g.IntN(len(words)-n+1):]
			}
			list = append(list, words...)
		}
		for len(list) < n { // a document could not be read
			list = append(list, "word")
		}
		return s, list[:n]
	}
	text := func(n int) string {
		_, list := draw(n)
		return strings.Join(list, " ")
	}
	list := []struct {
		name string
		make func() request
	}{
		{"one word", func() request { return request{Q: text(1)} }},
		{"a whole name", func() request { return request{Q: document().Name} }},
		{"two words", func() request { return request{Q: text(2)} }},
		{"three words", func() request { return request{Q: text(3)} }},
		{"twelve words", func() request { return request{Q: text(12)} }},
		{"prefix of 1–3 letters", func() request { return request{Q: firstLetters(text(1), 1+g.IntN(3))} }},
		{"prefix of 4–9 letters", func() request { return request{Q: firstLetters(text(1), 4+g.IntN(6))} }},
		{"a typo and a word", func() request {
			_, two := draw(2)
			longest := 0
			if len(two[1]) > len(two[0]) {
				longest = 1
			}
			two[longest] = misspell(g, two[longest])
			return request{Q: strings.Join(two, " ")}
		}},
		{"two-word phrase", func() request { return request{Q: `"` + text(2) + `"`} }},
		{"word + filter", func() request {
			s, word := draw(1)
			return request{Q: word[0], Filter: fmt.Sprintf("kind = %q", s.Kind)}
		}},
		{"word + facets", func() request { return request{Q: text(1), Facets: []string{"kind", "topic"}} }},
		{"word + sort", func() request { return request{Q: text(1), Sort: []string{"rank:asc"}} }},
		{"word + sort, offset 900", func() request { return request{Q: text(1), Sort: []string{"rank:asc"}, Offset: 900} }},
		{"placeholder + filter + sort", func() request {
			s := document()
			return request{Filter: fmt.Sprintf("language = %q AND topic = t%d", s.Language, g.IntN(400)), Sort: []string{"rank:desc"}}
		}},
	}
	var out []queryKind
	for _, k := range list {
		kind, err := drawKind(k.name, n, distinct, k.make)
		if err = cmp.Or(err, failed); err != nil {
			return nil, err
		}
		out = append(out, kind)
	}
	return out, nil
}

// firstLetters returns up to n letters of a word.
func firstLetters(word string, n int) string {
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(word[at:])
		at += size
	}
	return word[:at]
}

// lineAt returns the document that a byte of the payload belongs to.
func (d *dataset) lineAt(at int) []byte {
	from := bytes.LastIndexByte(d.payload[:at], '\n') + 1
	line, _, _ := bytes.Cut(d.payload[from:], []byte{'\n'})
	return line
}
