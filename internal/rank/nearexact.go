package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank/positions"
)

// If many documents begin with the query, their distances and displacements are equal, and the first rows fill the page. Only
// documents with a whole field equal to the query come before them.

// firstRows is how many documents of a cohort are read at most, beyond those that fill the page, to find enough that begin with the
// query.
const firstRows = 2048

// exactlyFirst counts exact matches among the documents of a cohort with displacement 0. An exact match has the words of the query as
// written, each in its place. The other documents that match at the start are equal to each other.
type exactlyFirst struct {
	v       *nearPruner
	words   positions.Exact // none: no document is one
	missing int             // number that fills the page

	judged  int // of v.inPlace
	read    int // documents at most
	exact   int // exact matches that lead
	atStart int // these and other leading documents that match at the start
}

// begin begins with the documents of a cohort.
func (e *exactlyFirst) begin(v *nearPruner, st *cohort) {
	*e = exactlyFirst{v: v, missing: v.missing}
	v.inPlace, v.asked = v.inPlace[:0], false
	if _, few := v.s.lookBehind(v.place); !few {
		return
	}
	if nodes, ok := exactNodes(&v.s.findings, v.b, st.like.levels); ok {
		if e.words, ok = v.s.pos.ExactOf(nodes, st.like.segment); ok {
			v.asked = true
			return
		}
		e.words = positions.Exact{}
	}
}

// fill reports whether enough documents were found: only exact matches can come before them.
func (e *exactlyFirst) fill() bool { return e.words.Words != nil && e.atStart >= e.missing }

// goesOn judges the documents found since the last call. It reports whether reading some more documents may find enough.
func (e *exactlyFirst) goesOn(st *cohort) bool {
	if e.words.Words == nil {
		return false
	}
	e.judge(st)
	if e.fill() {
		return false
	}
	e.read = min(max(2*e.read, askRows), 2*firstRows)
	return e.read <= firstRows
}

// judge judges the documents of a cohort that were found since the last call.
func (e *exactlyFirst) judge(st *cohort) {
	found := e.v.inPlace[e.judged:]
	if len(found) == 0 || e.words.Words == nil {
		return
	}
	e.judged = len(e.v.inPlace)
	s := e.v.s
	mark := s.list.numbers.Mark()
	costs := s.list.numbers.Take(len(found))
	for i := range costs {
		costs[i] = noExactMatch
	}
	b := st.like
	b.rows = found
	s.pos.Match(b.at(), e.words, costs)
	for i, c := range costs {
		if c > matchesStart || !s.leads(st.like.segment, found[i]) {
			continue
		}
		e.atStart++
		if c == exactMatch {
			e.exact++
		}
	}
	s.list.numbers.Release(mark)
}

// readWhole reads the documents of a cohort, from a row on, that may be exact matches, until these fill the page.
func (e *exactlyFirst) readWhole(bound int, st *cohort, in *roaring.Bitmap, next uint32) bool {
	v := e.v
	noteLeading(v.s, v.pruner.rule)
	whole := v.s.pos.WholeFields(st.like.segment, e.words, in)
	first, _ := slices.BinarySearch(whole, next)
	for whole = whole[first:]; len(whole) > 0 && e.exact < e.missing; e.judge(st) {
		n := min(len(whole), stopRows)
		if !v.readRows(bound, st, whole[:n]) {
			return false
		}
		whole = whole[n:]
	}
	return true
}
