package query

import (
	"slices"

	"svc/internal/text"
	"svc/segment"
)

// maxSpellings is the most spellings of words with a prefix that a segment is read for. If there are more, the prefix says little, and only
// spellings of the prefix as a word count.
const maxSpellings = 100

// Spelling is how a word is written in some documents of a segment, if that is not its form. The posting has all such places.
type Spelling struct {
	Text    string
	Posting segment.Posting
}

// HasSpellings reports whether a segment has spellings of any word.
func (ix *Index) HasSpellings(seg int) bool { return ix.prepared().spelt[seg] }

// Spellings returns the spellings that a segment has of a word of the query or, if it is a prefix, of words that begin with it.
func (ix *Index) Spellings(seg int, word string, prefix bool) []Spelling {
	out, whole := spellingsOf(ix.Segments[seg], word, prefix, maxSpellings)
	if !whole {
		out, _ = spellingsOf(ix.Segments[seg], word, false, maxSpellings)
	}
	return out
}

// spellingsOf returns the first spellings of a range, and whether these are all.
func spellingsOf(s segment.Live, word string, prefix bool, most int) (out []Spelling, all bool) {
	start := text.AppendSpellingRange(nil, word, prefix)
	it := s.Terms(start, after(start), nil)
	defer it.Close()
	for it.Next() {
		if len(out) == most {
			return out, false
		}
		_, spelling := text.CutSpelling(it.Word())
		out = append(out, Spelling{string(spelling), it.Posting()})
	}
	if err := it.Err(); err != nil {
		panic(err) // damage: the fence of the request makes an error of it
	}
	return out, true
}

func hasSpellings(s segment.Live, word string, prefix bool) bool {
	var buf [64]byte
	some, err := s.Begins(text.AppendSpellingRange(buf[:0], word, prefix))
	if err != nil {
		panic(err) // damage: the fence of the request makes an error of it
	}
	return some
}

// spelt reports whether a segment has spellings of some of the words.
func (ix *Index) spelt(words []string) bool {
	for seg, some := range ix.prepared().spelt {
		if some && slices.ContainsFunc(words, func(w string) bool { return hasSpellings(ix.Segments[seg], w, false) }) {
			return true
		}
	}
	return false
}

// Agrees reports whether a spelling is as a word of the query is typed, or begins so.
func (s *Spelling) Agrees(typed string, prefix bool) bool {
	if prefix {
		return text.BeginsAs([]byte(s.Text), typed)
	}
	return s.Text == typed
}
