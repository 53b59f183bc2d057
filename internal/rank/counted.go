package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// How many ranks a rule has, by which scores divide, depends on all documents of a bucket. So does where a class of about equal distance
// begins. A search may rank some of the documents that another search ranks, such as those that earlier pages did not return. Both then
// have to count the same documents. So the search ranks all of them, and passes over those that may not be hits. It leaves them out of a
// bucket once the rules to come judge each document by itself.

// Allowed is a set of documents, in the form of a Request.
type Allowed struct {
	Universe []*roaring.Bitmap
	Filter   Filter
}

// countOthers is noted in plans of searches that rank documents which may not be hits.
const countOthers accessPath = "documents that only count"

// leaveOthers removes documents that may not be hits from a bucket, if the rules from i on do not need them. It returns nil if no
// document of the bucket may be a hit.
func leaveOthers(s *search, b *bucket, i int) *bucket {
	if s.chosen == nil || b.chosen {
		return b
	}
	if !b.rows.intersects(s.chosen) {
		return nil
	}
	needs := needsOthers(&s.request, i, b.hasOneInterpretation())
	if needs == needDocuments {
		return b
	}
	counted := b.interpretations
	b = b.part(b.rows.and(s.chosen))
	if b.chosen = true; needs == needInterpretations {
		b.counted = counted
	}
	return b
}

// leaveOtherEntries is leaveOthers for a list. It reports whether a document may be a hit.
func leaveOtherEntries(s *search, l *list, i int) bool {
	switch {
	case s.chosen == nil || l.chosen:
		return true
	case needsOthers(&s.request, i, false) != needNothing:
		return slices.ContainsFunc(l.entries, func(e entry) bool { return s.chosen.has(int(e.segment), e.row) })
	}
	l.entries, l.chosen = chosenEntries(s.chosen, l.entries), true
	return len(l.entries) > 0
}

// chosenEntries returns the entries of documents that may be hits. It overwrites the others.
func chosenEntries(chosen rows, e []entry) []entry {
	return slices.DeleteFunc(e, func(e entry) bool { return !chosen.has(int(e.segment), e.row) })
}
