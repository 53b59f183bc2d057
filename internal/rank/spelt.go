package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// speltWord is a word of the query with the spellings of it in documents.
type speltWord struct {
	typed bool          // with accents
	in    []spellingsIn // by segment
}

// spellingsIn is what a segment has of a word.
type spellingsIn struct {
	rows      *roaring.Bitmap   // rows that have it as typed or, if it is typed without accents, with some; nil: none
	spellings []segment.Posting // with the accents
	word      segment.Posting   // for a word typed without accents: the word in any spelling
}

// among returns the rows of in for which has returns true, or nil if there are none.
func (w *speltWord) among(s *findings, seg int, in *roaring.Bitmap) *roaring.Bitmap {
	found := and(in, w.in[seg].rows)
	if found == nil || w.typed {
		return found
	}
	out := roaring.New()
	for it := found.Iterator(); it.HasNext(); {
		if row := it.Next(); w.has(s, seg, row) {
			out.Add(row)
		}
	}
	if out.IsEmpty() {
		return nil
	}
	return out
}

// has reports whether a row has the word as typed, if it is typed with accents. If it is typed without, has reports whether all its
// occurrences in the row have accents.
func (w *speltWord) has(s *findings, seg int, row uint32) bool {
	in := &w.in[seg]
	if in.rows == nil || !in.rows.Contains(row) {
		return false
	}
	if w.typed {
		return true
	}
	return !in.plain(s, segment.Row(row))
}

// plain reports whether a row has the word in a searched field without any of the spellings.
func (in *spellingsIn) plain(s *findings, row segment.Row) bool {
	var spelt, at []uint16
	for i := range in.word.Fields() {
		f := in.word.Field(i)
		if !s.searches(f.ID()) {
			continue
		}
		p := f.Positions()
		if at = p.Append(at[:0], row); len(at) == 0 {
			continue
		}
		spelt = spelt[:0]
		for _, posting := range in.spellings {
			if other, ok := posting.Find(f.ID()); ok {
				p := other.Positions()
				spelt = p.Append(spelt, row)
			}
		}
		if slices.ContainsFunc(at, func(position uint16) bool { return !slices.Contains(spelt, position) }) {
			return true
		}
	}
	return false
}

// searches reports whether words of a field count.
func (s *findings) searches(f segment.FieldID) bool {
	return int(f) < len(s.weights) && s.weights[f] >= 0
}

// leads reports whether no document that equals a row under all other rules comes before it because of accents. Among leading
// documents, those with the lowest ids come first.
func (s *findings) leads(seg int, row uint32) bool {
	for i := range s.spelt {
		w := &s.spelt[i]
		if r := w.in[seg].rows; w.typed != (r != nil && r.Contains(row)) {
			return false
		}
	}
	return true
}
