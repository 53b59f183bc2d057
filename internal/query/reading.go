package query

import (
	"slices"

	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// reading is another reading of some terms of a query: that of an older version of the analysis, which made the words of some
// segments, or that of other locales, with which the texts of some fields are segmented.
type reading struct {
	term, n int
	words   []string // one after another
}

// Read parses the tokens that the current analyzer made of a query, and adds the readings of the older ones. It also reads phrases
// and excluded words with the other locales of the searched fields: they match without typos, so they would not be found in a field
// that is segmented differently.
func (ix *Index) Read(tokens []text.Token, query string, locales text.Locales, fields FieldSet) *Terms {
	prefix := ix.Settings.PrefixSearch != settings.PrefixDisabled
	t := Read(tokens, query, prefix)
	t.addVariants(ix.Analyzer, query)
	for _, a := range ix.Older {
		t.addReading(Read(a.Tokens(nil, query, locales, true), query, prefix), false)
	}
	if t.verbatim() {
		for _, l := range ix.otherLocales(tokens, locales, fields) {
			t.addReading(Read(ix.Analyzer.Tokens(nil, query, l, true), query, prefix), true)
		}
	}
	return t
}

// verbatim reports whether the query has a phrase or excludes something. Such words are found only if a text is segmented like the
// query.
func (t *Terms) verbatim() bool {
	return len(t.NegativeWords)+len(t.NegativePhrases) > 0 || slices.ContainsFunc(t.Terms, func(t Term) bool { return t.IsPhrase() })
}

// otherLocales returns the locales with which searched fields are segmented, without those of the query. Without a single locale, texts
// in ideographs are segmented as Chinese or as Japanese, whatever language the query is in.
func (ix *Index) otherLocales(tokens []text.Token, locales text.Locales, fields FieldSet) []text.Locales {
	ideographs := slices.ContainsFunc(tokens, text.Token.IsIdeographic)
	var others []text.Locales
	add := func(l text.Locales) {
		if !slices.Equal(l, locales) && !slices.ContainsFunc(others, func(o text.Locales) bool { return slices.Equal(o, l) }) {
			others = append(others, l)
		}
	}
	of := func(l text.Locales) {
		if ideographs && len(l) != 1 {
			add(text.Locales{"cmn"})
			add(text.Locales{"jpn"})
		} else {
			add(l)
		}
	}
	if len(ix.Settings.LocalizedAttributes) == 0 {
		of(nil)
		return others
	}
	for i := range ix.Fields.Len() {
		f := ix.Fields.Info(segment.FieldID(i))
		if f.Searchable && fields.Has(segment.FieldID(i)) && len(others) < maxReadings {
			of(f.Locales)
		}
	}
	return others
}

// addReading adds another reading of the query. With verbatim, it only adds its phrases and excluded words. Terms of the two readings
// correspond if both begin and end at the same bytes of the query.
func (t *Terms) addReading(other *Terms, verbatim bool) {
	a, b := t.Terms, other.Terms
	for i, j := 0, 0; i < len(a) && j < len(b); {
		m, n := aligned(a[i:], b[j:])
		if m == 0 || n == 0 {
			i, j = i+max(m, 1-n), j+max(n, 1-m) // what the other one does not read
			continue
		}
		if words := wordsOfTerms(a[i:i+m], b[j:j+n]); words != nil && (!verbatim || a[i].IsPhrase()) && !t.reads(i, m, words) {
			t.readings = append(t.readings, reading{i, m, words})
		}
		i, j = i+m, j+n
	}
	for _, w := range other.NegativeWords {
		if !slices.Contains(t.NegativeWords, w) {
			t.NegativeWords = append(t.NegativeWords, w)
		}
	}
	for _, p := range other.NegativePhrases {
		if !slices.ContainsFunc(t.NegativePhrases, func(have []string) bool { return slices.Equal(p, have) }) {
			t.NegativePhrases = append(t.NegativePhrases, p)
		}
	}
}

// reads reports whether n terms from term i on have this reading.
func (t *Terms) reads(i, n int, words []string) bool {
	return slices.ContainsFunc(t.readings, func(r reading) bool { return r.term == i && r.n == n && slices.Equal(r.words, words) })
}

// aligned returns how many terms of two readings, from the first ones on, have the same bytes. One number is 0 if the first term of
// the other reading has bytes of its own. Both are 0 if the terms have no end in common.
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

// wordsOfTerms returns the words of another reading of some terms. It returns nil if they are the same, or if one reading has a
// phrase among other terms.
func wordsOfTerms(terms, other []Term) []string {
	if terms[0].IsPhrase() || other[0].IsPhrase() {
		if len(terms) > 1 || len(other) > 1 || !terms[0].IsPhrase() || !other[0].IsPhrase() || slices.Equal(terms[0].Phrase, other[0].Phrase) {
			return nil
		}
		return other[0].Phrase
	}
	words := make([]string, len(other))
	for i := range other {
		if other[i].IsPhrase() {
			return nil
		}
		words[i] = other[i].Word
	}
	if slices.EqualFunc(words, terms, func(w string, t Term) bool { return w == t.Word }) {
		return nil
	}
	return words
}

// readingsOf returns the words of the other readings of n terms from term i on.
func (t *Terms) readingsOf(i, n int) (words [][]string) {
	for _, r := range t.readings {
		if r.term == i && r.n == n {
			words = append(words, r.words)
		}
	}
	return words
}

// longestReading returns the maximum number of terms from term i on that have another reading, or 0 if none have one.
func (t *Terms) longestReading(i int) (n int) {
	for _, r := range t.readings {
		if r.term == i {
			n = max(n, r.n)
		}
	}
	return n
}
