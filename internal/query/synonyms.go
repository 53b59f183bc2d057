package query

import (
	"encoding/binary"
	"math"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"

	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment/synonym"
)

// synonymRevision changes with the words that Synonyms makes from equal settings with the same version of the analysis. Directories
// store it.
const synonymRevision = 3

// Synonyms returns the table of synonyms that queries use, or nil if there are none.
func Synonyms(s *settings.Settings, a *text.Analyzer) *synonym.Table {
	return synonym.Make(readSynonyms(s, a))
}

// SynonymStamp returns a number that changes when Synonyms may make other words of equal synonyms: with the version of the analysis, and
// with the other settings that it depends on.
func SynonymStamp(s *settings.Settings, a *text.Analyzer) uint64 {
	b := []byte{synonymRevision}
	for _, l := range localesOf(s) {
		b = binary.LittleEndian.AppendUint64(b, a.Fingerprint(l))
	}
	return xxhash.Sum64(b)
}

// readSynonyms reads the setting: keys as lists of words, and values as phrases, including stop words. Keys are read in every way in
// which queries may be read. A key of more than maxGram words counts only if it is an abbreviation such as S.W.A.T., as one word. Values
// are read as the words of fields are: once for the locales of each rule, which may segment and normalise them differently.
func readSynonyms(s *settings.Settings, a *text.Analyzer) map[string][][]string {
	locales := localesOf(s)
	synonyms := s.Synonyms.Map()
	m := make(map[string][][]string, len(synonyms))
	var readings [][]string
	for key, values := range synonyms {
		readings = readings[:0]
		for _, v := range values {
			readings = appendReadings(readings, a, v, locales)
		}
		for _, words := range appendReadings(nil, a, key, locales) {
			words = keyOf(words)
			k := synonymKey(words)
			if len(words) > maxGram {
				if k = strings.Join(words, ""); !isAbbreviation(words) || !strings.Contains(key, ".") {
					continue
				}
			}
			m[k] = append(m[k], readings...)
		}
	}
	for k, values := range m {
		slices.SortFunc(values, slices.Compare[[]string])
		m[k] = slices.CompactFunc(values, slices.Equal[[]string])
	}
	return m
}

// keyOf returns the words of a key for the lookup: those that are not stop words, or all if it has no others.
func keyOf(words []string) []string {
	plain := plainForms(words)
	if words = slices.DeleteFunc(slices.Clone(words), text.IsStopEntry); len(words) == 0 {
		return plain
	}
	return words
}

// synonymKey is the key of some words in a table of synonyms.
func synonymKey(words []string) string { return strings.Join(words, "\x00") }

// localesOf returns the sets of locales for the analysis of fields and queries: none, those of each rule, and those of all rules
// together.
func localesOf(s *settings.Settings) []text.Locales {
	locales := []text.Locales{nil}
	var all text.Locales
	for _, rule := range s.LocalizedAttributes {
		locales = append(locales, append(text.Locales{}, rule.Locales...))
		all = append(all, rule.Locales...)
	}
	if len(s.LocalizedAttributes) > 1 {
		slices.Sort(all)
		locales = append(locales, slices.Compact(all))
	}
	return locales
}

// appendReadings appends the different lists of words that a text is under some locales, none of them empty.
func appendReadings(dst [][]string, a *text.Analyzer, s string, locales []text.Locales) [][]string {
	begin := len(dst)
	for _, l := range locales {
		words := entriesOf(a, s, l)
		if len(words) > 0 && !slices.ContainsFunc(dst[begin:], func(have []string) bool { return slices.Equal(have, words) }) {
			dst = append(dst, words)
		}
	}
	return dst
}

// entriesOf returns the words of a text, stop words as their entries.
func entriesOf(a *text.Analyzer, s string, l text.Locales) []string {
	var words []string
	for _, t := range a.Tokens(nil, s, l, true) {
		switch {
		case t.Form == "":
		case t.Kind == text.Word:
			words = append(words, t.Form)
		case t.Kind == text.StopWord:
			words = append(words, text.StopEntry(t.Form))
		}
	}
	return words
}

// synonyms returns the synonyms of a word, or of the words of an n-gram.
func (ix *Index) synonyms(words []string) [][]string {
	if ix.Synonyms == nil {
		return nil
	}
	var out [][]string
	n := 0
	for _, s := range ix.Synonyms.Lookup(strings.Join(words, ""), maxSynonyms) {
		if n+len(s) <= maxSynonymWords {
			out = append(out, s)
			n += len(s)
		}
	}
	if len(words) > 1 {
		out = append(out, ix.Synonyms.Lookup(synonymKey(words), math.MaxInt)...)
	}
	return out
}
