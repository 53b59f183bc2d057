package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank/positions"
	"svc/segment"
)

// It is expensive to read what pairs of neighbours cost. If the next rule that looks at words adds up displacements, these are cheaper to
// compute. So once enough documents fill the page, the pruner computes the displacements of the others first: those that cost more than the
// documents of the page are not read. If only words as they are written, accents and the ids order documents behind, the first documents of
// the least displacement fill the page.

// begin begins with n documents that are equal under the order of the rule behind. If they are many, their positions are checked.
func (v *nearPruner) begin(n int) {
	v.byCost = v.byCost[:0]
	v.missing = v.pruner.wanted - v.pruner.count(tooMuch)
	v.placing = v.place >= 0 && n > unorderedRows && v.missing <= placedPage
	v.idle = tooMuch
}

// placedPage is up to how many documents of a page the cost of the last one tells enough of the others apart from them.
const placedPage = 50

// read reads on in some documents of a cohort. It returns false when time is over.
func (v *nearPruner) read(bound int, st *cohort, in *roaring.Bitmap) bool {
	all := v.s.rowsIn(in)
	if !v.placing {
		if st.known == v.all {
			v.find(bound, st, all, nil)
			return true
		}
		return v.readRows(bound, st, all)
	}
	var first exactlyFirst
	first.begin(v, st, 0)
	for n := min(askRows, stopRows); v.enough() == tooMuch || v.enough() == 0 && first.goesOn(st); n = min(2*n, stopRows) {
		if n >= len(all) {
			return v.readRows(bound, st, all)
		}
		if !v.readRows(bound, st, all[:n]) {
			return false
		}
		all = all[n:]
	}
	if first.fill() {
		return first.readWhole(bound, st, in, all[0])
	}
	nodes := v.b.interpretations[0].nodes
	if v.enough() >= int(positions.Displacement(segment.CostsApart, 0, 1)) { // too many documents cost no more
		return v.readRows(bound, st, all)
	}
	like := st.like
	like.rows = all
	if next := all[0]; next > in.Minimum() {
		in = in.Clone()
		in.RemoveRange(0, uint64(next))
	}
	for cost := 0; cost <= v.enough(); cost++ {
		if !v.sets.Find(&v.s.pos, like.at(), nodes, cost, v.enough(), startBytes*len(like.rows)) {
			return v.readRows(bound, st, v.s.rowsIn(in))
		}
		r := and(in, v.sets.Rows[cost])
		if r == nil {
			continue
		}
		in = roaring.AndNot(in, r)
		if !v.readPlaced(bound, st, r, cost) {
			return false
		}
	}
	return true
}

// readPlaced reads on in documents of a cohort whose positions cost no less than cost, as far as the page needs them. It returns false
// when time is over.
func (v *nearPruner) readPlaced(bound int, st *cohort, in *roaring.Bitmap, cost int) bool {
	s := v.s
	s.r.Plan.begin("proximity", pairsPlaced, int(in.GetCardinality()))
	defer s.r.Plan.end(0)
	behind, few := s.lookBehind(v.place)
	words := behind&wordsAsWritten != 0
	if !few || in.GetCardinality() <= uint64(unorderedRows) {
		return v.readRows(bound, st, s.rowsIn(in))
	}
	var exact *roaring.Bitmap
	if words { // else only accents and ids tell apart those that are as near
		var ok bool
		if exact, ok = exactlyPlaced(s, &st.like, v.b, in, cost); !ok {
			return v.readRows(bound, st, s.rowsIn(in))
		}
	}
	if exact != nil {
		var first exactlyFirst
		first.begin(v, st, cost)
		all := s.rowsIn(exact)
		for n := min(askRows, stopRows); len(all) > 0 && !first.fill(); n = min(2*n, stopRows) {
			rows := all[:min(n, len(all))]
			all = all[len(rows):]
			if !v.readRows(bound, st, rows) {
				return false
			}
			first.judge(st)
		}
		if len(all) > 0 {
			return first.readWhole(bound, st, exact, all[0])
		}
	}
	// Of the others those come first that have more words as they are written, and then the first ones.
	rest := andNot(in, exact)
	first := rest
	if words {
		first = asWritten(&s.findings, &st.like, v.b.interpretations[0].nodes, rest)
	}
	missing := v.missing
	for _, found := range v.byCost[:min(cost, len(v.byCost))] {
		missing -= found
	}
	if first != nil {
		all := s.rowsIn(first)
		v.ties, v.tied = cost, 0
		for n := min(askRows, stopRows); len(all) > 0 && v.tied < missing; n = min(2*n, stopRows) {
			rows := all[:min(n, len(all))]
			all = all[len(rows):]
			if !v.readRows(bound, st, rows) {
				return false
			}
		}
		if v.tied >= missing {
			noteLeading(s, v.pruner.rule)
			return true
		}
	}
	rest = andNot(rest, first)
	return rest == nil || v.readRows(bound, st, s.rowsIn(rest))
}

// exactlyPlaced returns at least those of some documents of a segment, which match the nodes of a bucket like those of a batch, in which
// the words are in their places as they are written: no others are exact matches, or match at the start. The documents have positions
// that cost no less than cost. false where to look for them takes longer than to place the documents.
func exactlyPlaced(s *search, like *batch, b *bucket, in *roaring.Bitmap, cost int) (*roaring.Bitmap, bool) {
	nodes, ok := exactNodes(&s.findings, b, like.levels)
	if !ok {
		return nil, true
	}
	words, ok := s.pos.ExactOf(nodes, like.segment)
	if !ok {
		return nil, true
	}
	all := len(nodes) == len(b.interpretations[0].nodes) // words are told apart by their positions
	for _, n := range nodes {
		v := &s.graph.Nodes[n]
		all = all && !v.Phrase && v.Start < positions.Exactly
	}
	if all && cost > 0 { // some word is in another place
		return nil, true
	}
	return s.pos.InPlace(like.segment, words, in, startBytes*int(in.GetCardinality()))
}

// asWritten returns those of some documents of a segment that have all words as they are written that may be; nil for none.
func asWritten(s *findings, like *batch, nodes []int, in *roaring.Bitmap) *roaring.Bitmap {
	for _, n := range nodes {
		if v := &s.graph.Nodes[n]; v.Len == 1 && s.hasExactForm(like, n) {
			in = and(in, v.Segments[like.segment].Word)
		}
	}
	return in
}
