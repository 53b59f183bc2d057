package query

import (
	"runtime"
	"slices"
	"strings"
	"sync"
	"weak"

	"svc/internal/settings"
	"svc/internal/text"
)

// readings keeps the synonyms of settings that are in use: a view comes with every
// batch of documents, settings seldom change, and there may be very many synonyms.
var readings struct {
	sync.Mutex
	of map[weak.Pointer[settings.Settings]]reading
}

type reading struct {
	analyzer weak.Pointer[text.Analyzer]
	synonyms map[string][][]string // words of the key joined by NUL → values, sorted
}

func synonymsOf(s *settings.Settings, a *text.Analyzer) map[string][][]string {
	if len(s.Synonyms) == 0 {
		return nil
	}
	key, analyzer := weak.Make(s), weak.Make(a)
	readings.Lock()
	r, ok := readings.of[key]
	readings.Unlock()
	if ok && r.analyzer == analyzer {
		return r.synonyms
	}
	r = reading{analyzer, readSynonyms(s, a)}
	readings.Lock()
	defer readings.Unlock()
	if readings.of == nil {
		readings.of = map[weak.Pointer[settings.Settings]]reading{}
	}
	readings.of[key] = r
	if !ok {
		runtime.AddCleanup(s, func(key weak.Pointer[settings.Settings]) {
			readings.Lock()
			defer readings.Unlock()
			delete(readings.of, key)
		}, key)
	}
	return r.synonyms
}

// readSynonyms reads the setting: keys as lists of words, and values as phrases, which stop words belong to. Keys are read as queries may
// be, and values as the words of fields are: once for the locales of each rule, which may cut and fold them in several ways.
func readSynonyms(s *settings.Settings, a *text.Analyzer) map[string][][]string {
	locales := localesOf(s)
	m := make(map[string][][]string, len(s.Synonyms))
	var readings [][]string
	for key, values := range s.Synonyms {
		readings = readings[:0]
		for _, v := range values {
			readings = appendReadings(readings, a, v, locales)
		}
		for _, words := range appendReadings(nil, a, key, locales) {
			words = slices.DeleteFunc(words, text.IsStopEntry)
			if len(words) == 0 || len(words) > maxGram {
				continue
			}
			k := strings.Join(words, "\x00")
			m[k] = append(m[k], readings...)
		}
	}
	for k, values := range m {
		slices.SortFunc(values, slices.Compare[[]string])
		m[k] = slices.CompactFunc(values, slices.Equal[[]string])
	}
	return m
}

// localesOf returns the locales by which fields and queries are read: none, those of each rule, and those of all rules together.
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
	all := ix.prepared().synonyms
	if len(all) == 0 {
		return nil
	}
	var out [][]string
	n := 0
	values := all[strings.Join(words, "")]
	for _, s := range values[:min(maxSynonyms, len(values))] {
		if n+len(s) <= maxSynonymWords {
			out = append(out, s)
			n += len(s)
		}
	}
	if len(words) > 1 {
		out = append(out, all[strings.Join(words, "\x00")]...)
	}
	return out
}
