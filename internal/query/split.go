package query

import (
	"slices"
	"unicode"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/segment"
)

// split splits a word at the place where most documents of the index have the two parts one after the other in one of the given
// fields (nil: all). Among equals, the leftmost place wins. It returns nil if no document has any, or if the place is where the query
// itself splits the word, because those parts match anyway. That place is checked last: its parts are often frequent, and mostly
// there is no other to compare it with.
func (d *derivation) split(fields FieldSet) *PhraseMatch {
	between := 0
	if len(d.pattern.words) == 2 {
		between = len(d.pattern.words[0])
	}
	var cuts []cut // of all segments together
	for _, f := range d.lookups {
		for _, c := range f.cuts {
			i, ok := slices.BinarySearchFunc(cuts, c.at, func(o cut, at int) int { return o.at - at })
			if !ok {
				cuts = slices.Insert(cuts, i, cut{at: c.at})
			}
			cuts[i].bound += c.bound
		}
	}
	var typed uint64
	if i := slices.IndexFunc(cuts, func(c cut) bool { return c.at == between }); i >= 0 && between > 0 {
		typed = cuts[i].bound
		cuts = slices.Delete(cuts, i, i+1)
	}
	// The most promising places first, so that most others need not be counted.
	slices.SortStableFunc(cuts, func(a, b cut) int { return int(b.bound) - int(a.bound) })
	var best *PhraseMatch
	var most uint64
	at := 0
	for _, c := range cuts {
		if c.bound < most || d.over {
			break
		}
		m := d.phrase([]string{d.word[:c.at], d.word[c.at:]}, fields)
		n := d.liveRows(m)
		if n > most || n == most && n > 0 && c.at < at {
			best, most, at = m, n, c.at
		}
	}
	if best != nil && between > 0 && typed >= most {
		if n := d.liveRows(d.phrase(d.pattern.words, fields)); n > most || n == most && between < at {
			return nil
		}
	}
	if d.over { // the counts may be incomplete
		return nil
	}
	return best
}

// initials returns the phrase of the letters of a word: texts with U.S.A. have it for usa. It returns nil if no document has it, and for a
// word of two letters, which split finds. With the precision byAttribute, letters anywhere in a field would count.
func (d *derivation) initials(fields FieldSet) *PhraseMatch {
	n := utf8.RuneCountInString(d.word)
	if d.pattern.gram() || n < 3 || n > maxLetters || d.Settings.ProximityPrecision == settings.ByAttribute {
		return nil
	}
	letters := make([]string, 0, maxLetters)
	for _, r := range d.word {
		if !unicode.IsLower(r) {
			return nil
		}
		letters = append(letters, string(r))
	}
	m := d.phrase(letters, fields)
	if d.liveRows(m) == 0 || d.over { // the count may be incomplete
		return nil
	}
	return m
}

// cut is a place where a word may be split in two.
type cut struct {
	at    int
	bound uint64 // documents at most
}

// cutsOf returns the places where a word splits into two that a document of the segment may have as a phrase, in ascending order. Of
// frequent words the segment knows how many have them so; of others those that have both count. inRow: the parts have to follow each
// other.
func cutsOf(s segment.Live, word string, inRow bool) []cut {
	var cuts []cut
	for at, parts := range s.Splits(word) {
		var n uint64
		known := false
		if inRow {
			n, known = s.CountNeighbours(parts[0], parts[1])
		}
		if !known {
			n = parts[0].CountCommon(parts[1])
		}
		if n > 0 {
			cuts = append(cuts, cut{at, n})
		}
	}
	return cuts
}

// liveRows counts the documents of a phrase.
func (ix *Index) liveRows(m *PhraseMatch) uint64 {
	var n uint64
	for i, s := range ix.Segments {
		n += countLive(s, m.Segments[i].Rows)
	}
	return n
}

func countLive(s segment.Live, rows *roaring.Bitmap) uint64 {
	n := rows.GetCardinality()
	if s.Deleted != nil {
		n -= rows.AndCardinality(s.Deleted)
	}
	return n
}

// firstLetter returns the first character of a word.
func firstLetter(word string) string {
	_, n := utf8.DecodeRuneInString(word)
	return word[:n]
}
