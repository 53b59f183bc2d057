package query

import (
	"slices"

	"svc/internal/settings"
	"svc/internal/text"
)

// olderReading is what an older version of the analysis makes of some terms of a query. It finds documents in segments whose words that
// version made.
type olderReading struct {
	term, n int
	words   []string // one after another
}

// Read reads the tokens that the current analyzer made of a query, and adds how the older ones read it.
func (ix *Index) Read(tokens []text.Token, query string, locales text.Locales) *Terms {
	prefix := ix.Settings.PrefixSearch != settings.PrefixDisabled
	t := Read(tokens, query, prefix)
	for _, a := range ix.Older {
		t.addOlder(Read(a.Tokens(nil, query, locales, true), query, prefix))
	}
	return t
}

// addOlder adds how an older version of the analysis reads the query. Terms of the two readings belong together where both begin and end
// at the same bytes of the query.
func (t *Terms) addOlder(older *Terms) {
	a, b := t.Terms, older.Terms
	for i, j := 0, 0; i < len(a) && j < len(b); {
		m, n := aligned(a[i:], b[j:])
		if m == 0 || n == 0 {
			i, j = i+max(m, 1-n), j+max(n, 1-m) // what the other one does not read
			continue
		}
		if words := wordsOfTerms(a[i:i+m], b[j:j+n]); words != nil {
			t.older = append(t.older, olderReading{i, m, words})
		}
		i, j = i+m, j+n
	}
	for _, w := range older.NegativeWords {
		if !slices.Contains(t.NegativeWords, w) {
			t.NegativeWords = append(t.NegativeWords, w)
		}
	}
	for _, p := range older.NegativePhrases {
		if !slices.ContainsFunc(t.NegativePhrases, func(other []string) bool { return slices.Equal(p, other) }) {
			t.NegativePhrases = append(t.NegativePhrases, p)
		}
	}
}

// aligned returns how many terms of two readings, from the first ones on, have the same bytes. One number is 0 where the first term of
// the other reading has bytes of its own, and both are where the terms have no end in common.
func aligned(a, b []Term) (m, n int) {
	switch {
	case a[0].to <= b[0].from:
		return 1, 0
	case b[0].to <= a[0].from:
		return 0, 1
	}
	for m, n = 1, 1; a[m-1].to != b[n-1].to; {
		if a[m-1].to < b[n-1].to {
			m++
		} else {
			n++
		}
		if m > len(a) || n > len(b) {
			return 0, 0
		}
	}
	return m, n
}

// wordsOfTerms returns the words of an older reading of some terms. It returns nil when they are the same, or when one reading has a phrase
// among other terms.
func wordsOfTerms(terms, older []Term) []string {
	if terms[0].IsPhrase() || older[0].IsPhrase() {
		if len(terms) > 1 || len(older) > 1 || !terms[0].IsPhrase() || !older[0].IsPhrase() || slices.Equal(terms[0].Phrase, older[0].Phrase) {
			return nil
		}
		return older[0].Phrase
	}
	words := make([]string, len(older))
	for i := range older {
		if older[i].IsPhrase() {
			return nil
		}
		words[i] = older[i].Word
	}
	if slices.EqualFunc(words, terms, func(w string, t Term) bool { return w == t.Word }) {
		return nil
	}
	return words
}

// olderOf returns the words of the older readings of n terms from term i on.
func (t *Terms) olderOf(i, n int) (words [][]string) {
	for _, r := range t.older {
		if r.term == i && r.n == n {
			words = append(words, r.words)
		}
	}
	return words
}

// longestOlder returns the most terms from term i on that have an older reading, 0 when none have one.
func (t *Terms) longestOlder(i int) (n int) {
	for _, r := range t.older {
		if r.term == i {
			n = max(n, r.n)
		}
	}
	return n
}
