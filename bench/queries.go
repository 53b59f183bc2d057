package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// queriesOfKind is how many different queries a kind has.
const queriesOfKind = 400

// A queryKind is a kind of search with its requests.
type queryKind struct {
	name   string
	bodies [][]byte
}

type request struct {
	Q      string   `json:"q"`
	Filter any      `json:"filter,omitempty"`
	Facets []string `json:"facets,omitempty"`
	Sort   []string `json:"sort,omitempty"`
	Offset int      `json:"offset,omitempty"`
	Marked []string `json:"attributesToHighlight,omitempty"`
}

// A sample is a document that queries are drawn from.
type sample struct {
	Summary       string `json:"summary"`
	Description   string `json:"description"`
	Section       string `json:"section"`
	Architecture  string `json:"architecture"`
	InstalledSize int64  `json:"installedSize"`
}

// drawQueries draws n queries of every kind from the documents. With distinct, no query of a kind repeats, and there may be fewer if
// the documents do not yield so many.
func drawQueries(d *dataset, n int, distinct bool) ([]queryKind, error) {
	if d.short {
		return drawShortQueries(d, n, distinct)
	}
	samples, err := drawSamples(d, max(2000, 3*n))
	if err != nil {
		return nil, err
	}
	g := rand.New(rand.NewPCG(7, 7))
	next := 0
	// draw gives the next document with at least n words of three letters and more in a row.
	draw := func(n int) (sample, []string) {
		for tries := 0; ; tries++ {
			s := samples[next%len(samples)]
			next++
			text := s.Summary
			if g.IntN(2) == 0 {
				text = s.Description
			}
			if list := words(text); len(list) >= n || tries > len(samples) {
				for len(list) < n {
					list = append(list, "package")
				}
				return s, list
			}
		}
	}
	phrase := func(list []string, n int) []string {
		at := g.IntN(len(list) - n + 1)
		return list[at : at+n]
	}
	kinds := []struct {
		name string
		make func() request
	}{
		{"one word", func() request {
			_, list := draw(1)
			return request{Q: phrase(list, 1)[0]}
		}},
		{"three words", func() request {
			_, list := draw(3)
			g.Shuffle(len(list), func(i, j int) { list[i], list[j] = list[j], list[i] })
			return request{Q: strings.Join(list[:3], " ")}
		}},
		{"prefix of 1–4 letters", func() request {
			_, list := draw(1)
			word := phrase(list, 1)[0]
			return request{Q: word[:min(1+g.IntN(4), len(word))]}
		}},
		{"a typo and a word", func() request {
			_, list := draw(2)
			two := slices.Clone(phrase(list, 2))
			longest := 0
			if len(two[1]) > len(two[0]) {
				longest = 1
			}
			two[longest] = misspell(g, two[longest])
			return request{Q: strings.Join(two, " ")}
		}},
		{"two-word phrase", func() request {
			_, list := draw(2)
			return request{Q: `"` + strings.Join(phrase(list, 2), " ") + `"`}
		}},
		{"word + filter + facets + sort", func() request {
			s, list := draw(1)
			return request{
				Q:      phrase(list, 1)[0],
				Filter: fmt.Sprintf("architecture = %q AND installedSize > %d", s.Architecture, s.InstalledSize/4),
				Facets: []string{"section", "tags"},
				Sort:   []string{"installedSize:desc"},
			}
		}},
		{"placeholder + filter + facet", func() request {
			s, _ := draw(1)
			return request{Filter: fmt.Sprintf("section = %q", s.Section), Facets: []string{"architecture"}}
		}},
		// a section is kept with its counts, and met by few; a bound of sizes is met by half of the documents, and there are many
		{"placeholder + range + facet", func() request {
			s, _ := draw(1)
			return request{Filter: fmt.Sprintf("installedSize > %d", s.InstalledSize), Facets: []string{"section"}}
		}},
		// as InstantSearch asks at each key
		{"typed words, marked", func() request {
			_, list := draw(2)
			two := phrase(list, 2)
			return request{Q: two[0] + " " + two[1][:min(1+g.IntN(4), len(two[1]))], Marked: []string{"*"}}
		}},
	}
	var out []queryKind
	for _, k := range kinds {
		kind, err := drawKind(k.name, n, distinct, k.make)
		if err != nil {
			return nil, err
		}
		out = append(out, kind)
	}
	return out, nil
}

// drawKind calls make for the queries of a kind. n and distinct are as in drawQueries.
func drawKind(name string, n int, distinct bool, make func() request) (queryKind, error) {
	kind := queryKind{name: name}
	seen := map[string]bool{}
	for tries := 0; len(kind.bodies) < n && tries < 10*n; tries++ {
		body, err := json.Marshal(make())
		if err != nil {
			return kind, fmt.Errorf("cannot encode a query: %w", err)
		}
		if distinct && seen[string(body)] {
			continue
		}
		seen[string(body)] = true
		kind.bodies = append(kind.bodies, body)
	}
	return kind, nil
}

// drawSamples picks n documents from all over the data.
func drawSamples(d *dataset, n int) ([]sample, error) {
	lines := bytes.Split(bytes.TrimSuffix(d.payload, []byte{'\n'}), []byte{'\n'})
	g := rand.New(rand.NewPCG(5, 5))
	var list []sample
	for range n {
		var s sample
		if err := json.Unmarshal(lines[g.IntN(len(lines))], &s); err != nil {
			return nil, fmt.Errorf("cannot read a document: %w", err)
		}
		list = append(list, s)
	}
	return list, nil
}

// words returns the longest run of consecutive words of three and more ASCII letters in lower case;
// anything else but single blanks ends a run, so that a phrase of them is found.
func words(text string) []string {
	var best []string
	for run := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && r != ' ' }) {
		var list []string
		for word := range strings.SplitSeq(run, " ") {
			if len(word) >= 3 {
				list = append(list, word)
				continue
			}
			if len(list) > len(best) {
				best = list
			}
			list = nil
		}
		if len(list) > len(best) {
			best = list
		}
	}
	return best
}

// misspell makes one mistake in a word, after its first letter.
func misspell(g *rand.Rand, text string) string {
	word := []rune(text)
	if len(word) < 5 {
		word = append(word, 'i', 'n', 'g') // short words take no typo
	}
	at := 1 + g.IntN(len(word)-2)
	letter := rune('a' + g.IntN(26))
	switch g.IntN(4) {
	case 0:
		word = slices.Delete(word, at, at+1)
	case 1:
		word = slices.Insert(word, at, letter)
	case 2:
		word[at] = letter
	case 3:
		word[at], word[at+1] = word[at+1], word[at]
	}
	return string(word)
}
