package query

import (
	"slices"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// split cuts a word in two where most documents of the index have the
// parts one behind the other; the leftmost place wins among equals. It returns nil when no document has any, and when
// the place is between typed, the words that the query has for this one: they match without it. That place is looked
// at last: its parts are often frequent, and mostly there is no other to compare it with.
func (ix *resolver) split(word string, typed []string) *PhraseMatch {
	type cut struct {
		at    int
		bound uint64 // documents at most
	}
	between := 0
	if len(typed) == 2 {
		between = len(typed[0])
	}
	var cuts []cut
	for at := range word {
		if at == 0 || at == between {
			continue
		}
		if n := ix.together(word[:at], word[at:]); n > 0 {
			cuts = append(cuts, cut{at, n})
		}
	}
	// The most promising first, so that most others need not be counted.
	slices.SortStableFunc(cuts, func(a, b cut) int { return int(b.bound) - int(a.bound) })
	var best *PhraseMatch
	var most uint64
	at := 0
	for _, c := range cuts {
		if c.bound < most || ix.over {
			break
		}
		m := ix.phrase([]string{word[:c.at], word[c.at:]})
		n := ix.liveRows(m)
		if n > most || n == most && n > 0 && c.at < at {
			best, most, at = m, n, c.at
		}
	}
	if best == nil || between == 0 || ix.together(typed[0], typed[1]) < most {
		return best
	}
	if n := ix.liveRows(ix.phrase(typed)); n > most || n == most && between < at {
		return nil
	}
	return best
}

// together returns how many documents have two words, deleted ones included.
func (ix *Index) together(a, b string) uint64 {
	var n uint64
	for _, s := range ix.Segments {
		if l, ok := s.Term([]byte(a)); ok {
			if r, ok := s.Term([]byte(b)); ok {
				n += l.Rows().AndCardinality(r.Rows())
			}
		}
	}
	return n
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
