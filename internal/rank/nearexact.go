package rank

import (
	"cmp"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
)

// Where many documents begin with the query, neighbours that stand in their places tie, and the first rows fill the page. No others come
// before them but those of which a field is the query.

// firstRows is up to how many documents of a stretch are read, beyond those that fill the page, to find enough that begin with the query.
const firstRows = 2048

// exactlyFirst counts those of the documents of one cost that were found in a stretch that have the words of the query in their places as
// they are written. Those that match at the start are equal then.
type exactlyFirst struct {
	v       *nearSieve
	words   []placed // nil: no document is one
	slots   int
	missing int // how many of them fill the page

	judged int // of v.inPlace
	read   int // documents at most
	exact  int // exact matches
	begun  int // these and what matches at the start
}

// begin begins with the documents of a stretch whose positions have a cost.
func (e *exactlyFirst) begin(v *nearSieve, st *stretch, cost int) {
	*e = exactlyFirst{v: v, missing: v.missing}
	for _, found := range v.placed[:min(cost, len(v.placed))] {
		e.missing -= found
	}
	v.inPlace, v.inPlaceOf = v.inPlace[:0], -1
	if _, ties := v.s.exactRulesFollow(v.place); !ties {
		return
	}
	nodes, ok := v.s.exactNodes(v.b, st.like.levels)
	for _, n := range nodes {
		if e.words, ok = v.s.appendPlaced(e.words, &v.s.graph.Nodes[n], st.like.segment); !ok {
			e.words = nil
			return
		}
		e.slots += v.s.graph.Nodes[n].Slots()
	}
	if e.words != nil {
		v.inPlaceOf = cost
	}
}

// fill reports whether enough documents were found that no others come before but exact matches.
func (e *exactlyFirst) fill() bool { return e.words != nil && e.begun >= e.missing }

// goesOn judges what was found of a stretch. It reports whether to look at some more documents may find enough.
func (e *exactlyFirst) goesOn(st *stretch) bool {
	if e.words == nil {
		return false
	}
	e.judge(st)
	if e.fill() {
		return false
	}
	e.read = min(max(2*e.read, askRows), 2*firstRows)
	return e.read <= firstRows
}

// judge judges what was found of a stretch since.
func (e *exactlyFirst) judge(st *stretch) {
	found := e.v.inPlace[e.judged:]
	if len(found) == 0 || e.words == nil {
		return
	}
	e.judged = len(e.v.inPlace)
	s := e.v.s
	mark := s.list.numbers.used
	costs := s.list.numbers.take(len(found))
	s.exactCosts(&st.like, found, e.words, e.slots, costs)
	for _, c := range costs {
		if c <= matchesStart {
			e.begun++
		}
		if c == exactMatch {
			e.exact++
		}
	}
	s.list.numbers.used = min(mark, s.list.numbers.used)
}

// readWhole reads on in those documents of a stretch, from a row on, that may be exact matches, until these fill the page.
func (e *exactlyFirst) readWhole(bound int, st *stretch, in *roaring.Bitmap, next uint32) bool {
	v := e.v
	whole := v.s.fieldsOf(st.like.segment, in, e.words, e.slots)
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

// exactCosts computes what some rows of a segment, like those of a batch, cost for some words in their places.
func (s *search) exactCosts(like *batch, rows []uint32, words []placed, slots int, costs []uint32) {
	for i := range costs {
		costs[i] = noExactMatch
	}
	b := *like
	b.rows = rows
	s.placeWords(&b, placing{words: words, slots: slots}, costs)
}

// placedWords returns those of some rows of a segment, each with all of some words, that have each of them in its place, in whatever
// field, as far as places are told apart (exactPositions); nil for none. false where to look for them takes longer than to read the rows.
func (s *search) placedWords(seg int, words []placed, in *roaring.Bitmap) (*roaring.Bitmap, bool) {
	bytes := 0
	for _, w := range words {
		bytes += positionBytes(fieldsIn(w.posting, w.weights))
	}
	if bytes > beginningBytes*int(in.GetCardinality()) {
		return nil, false
	}
	for _, w := range words {
		at := w.posting.Rows()
		if w.position < exactPositions {
			at = s.placedRows(seg, w.position, 1, fieldsIn(w.posting, w.weights), 0)[0]
		}
		if in = and(in, at); in == nil {
			break
		}
	}
	return in, true
}

// inOneField returns those of some rows of a segment of which a searched field has all of some words.
func (s *search) inOneField(seg int, in *roaring.Bitmap, words []placed) *roaring.Bitmap {
	found := roaring.New()
	for k := range words[0].posting.Fields() {
		of, ok := s.searchedField(words, k)
		if !ok {
			continue
		}
		r := in
		for i := range of {
			r = and(r, of[i].Rows())
		}
		if r != nil {
			found = query.Union(found, r, s.ix.Segments[seg].Rows())
		}
	}
	return found
}

// fieldsOf returns those of some rows of a segment of which a searched field has all of some words, and as many words as there are slots,
// ascending. Few fields have so many words.
func (s *search) fieldsOf(seg int, in *roaring.Bitmap, words []placed, slots int) (found []uint32) {
	if slots > maxExactWords {
		return nil
	}
	all := s.rowsIn(in)
	for k := range words[0].posting.Fields() {
		of, ok := s.searchedField(words, k)
		if !ok {
			continue
		}
		rows, begin := all, len(found)
		if rarest := slices.MinFunc(of, func(a, b segment.FieldPosting) int { return cmp.Compare(a.Count(), b.Count()) }); rarest.Count() < len(all) {
			s.rowNumbers = rarest.AppendRows(s.rowNumbers[:0])
			rows = s.rowNumbers
		}
		found = s.ix.Segments[seg].AppendOfCount(found, rows, of[0].ID(), slots)
		keep := func(has *roaring.Bitmap) {
			kept := slices.DeleteFunc(found[begin:], func(row uint32) bool { return !has.Contains(row) })
			found = found[:begin+len(kept)]
		}
		for i := 0; i < len(of) && len(found) > begin; i++ {
			keep(of[i].Rows())
		}
		keep(in)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// searchedField returns the parts of the postings of some words in the k-th field of the first; ok is false where it is not searched, or
// another word lacks it.
func (s *search) searchedField(words []placed, k int) (of []segment.FieldPosting, ok bool) {
	first := words[0].posting.Field(k)
	if s.weights[first.ID()] < 0 {
		return nil, false
	}
	of = append(of, first)
	for _, w := range words[1:] {
		f, ok := w.posting.Find(first.ID())
		if !ok {
			return nil, false
		}
		of = append(of, f)
	}
	return of, true
}
