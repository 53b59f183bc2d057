package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank/positions"
	"svc/segment/rowlist"
)

// startingWith returns the documents in which a searchable field begins with a word or phrase as written, or with the first word of
// the phrase. For a word it returns only as many as the page needs. It returns nil if that would read more than per bytes per
// document. With displacements, none of the other documents with the word comes before these. A document that is as near because of
// another word does not come before them by exactness.
func startingWith(v *pruner, with rows, node, per int) rows {
	s := v.s
	if s.graph.Nodes[node].Start > 0 {
		return nil
	}
	found := make(rows, len(with))
	for seg, in := range with {
		if in == nil {
			continue
		}
		var ok bool
		if !s.graph.Nodes[node].Phrase {
			found[seg], ok = firstStarting(v, seg, in, node)
		}
		if !ok {
			if found[seg], ok = s.pos.Beginning(node, seg, in, per*int(in.GetCardinality())); !ok {
				return nil
			}
			s.r.Plan.note("wordPosition", startsWith)
		}
	}
	return found
}

// firstStarting returns documents of a segment in which a field begins with a word: enough leading ones to fill the page, and all
// others with a whole field equal to the word. No other document comes before them. ok is false if reading all documents costs less.
func firstStarting(v *pruner, seg int, in *roaring.Bitmap, node int) (*roaring.Bitmap, bool) {
	s := v.s
	p, ok := exactOf(s, []int{node}, seg, false)
	if !ok {
		return nil, false
	}
	s.r.Plan.begin("wordPosition", wordStarts, int(in.GetCardinality()))
	defer s.r.Plan.end(0)
	all, judged, leading := int(in.GetCardinality()), 0, 0
	var first []uint32
	it := in.ManyIterator()
	for next := min(startRows, stopRows); judged < all; next = min(2*next, stopRows) {
		s.inSet = slices.Grow(s.inSet[:0], next)
		rows := s.inSet[:it.NextMany(s.inSet[:next])]
		if len(rows) == 0 {
			break // a set of a forged segment has fewer rows than it says
		}
		last, begin := rows[len(rows)-1], len(first)
		judged += len(rows)
		first = s.pos.AppendBeginning(first, node, seg, rows)
		for _, row := range first[begin:] {
			if s.leads(seg, row) {
				leading++
			}
		}
		switch missing := v.wanted - leading; {
		case judged == all:
		case missing <= 0:
			noteLeading(s, v.rule)
			rest := in.Clone()
			rest.RemoveRange(0, uint64(last)+1)
			first = s.pos.AppendBeginning(first, node, seg, s.pos.WholeFields(seg, p, rest))
			judged = all
		case s.late() || leading*all < v.wanted*judged || s.pos.BeginningBytes(node, seg) < missing*judged/leading*startBytes:
			return nil, false
		}
	}
	return rowlist.SetOf(first, s.ix.Segments[seg].Rows()), true
}

// startRows is how many documents are read before checking whether enough of them begin with a word. For frequent words one in five
// often does.
const startRows = 128

// startBytesPer returns how many bytes of positions may be read per document to find those that begin with a word or phrase. For most
// phrases, few documents begin with the first word; the documents judged so far show whether these fill the page.
func startBytesPer(v *pruner, with rows, node int) int {
	if !v.s.graph.Nodes[node].Phrase {
		return startBytes
	}
	least, judged := v.count(v.least), v.count(tooMuch-1)
	switch {
	case judged == 0:
		return startBytes / 3
	case least*with.count() < 2*v.wanted*judged:
		return 0
	}
	return 4 * startBytes
}

// If the query is one phrase and many documents begin with it, the first of them fill the page. Only documents with a whole field
// equal to the phrase come before them.

// phraseAlone returns what to check in rows of a segment that may match exactly, if one phrase is all of the query that counts in a
// bucket with one interpretation.
func phraseAlone(s *search, b *bucket, seg int) (p positions.Exact, ok bool) {
	only := b.interpretations[0].nodes
	v := &s.graph.Nodes[only[0]]
	if len(only) != 1 || !v.Phrase || v.Start >= positions.Exactly {
		return p, false
	}
	levels, ok := s.levelsOf(b)
	if !ok {
		return p, false
	}
	nodes, ok := exactNodes(&s.findings, b, levels)
	if !ok {
		return p, false
	}
	return exactOf(s, nodes, seg, true)
}

// addStarts adds documents that begin with a phrase, which must be the whole query, until enough leading ones of a segment have the
// least cost to fill the page. Then it adds the exact matches among the rest. It returns the documents still to be added: all if the
// query is no such phrase, and all but the first ones if few documents begin with it.
func addStarts(v *pruner, with rows) (left rows) {
	left = make(rows, len(with))
	for seg, in := range with {
		if in == nil {
			continue
		}
		if p, ok := phraseAlone(v.s, v.b, seg); ok {
			in = addStartsIn(v, seg, in, p)
		}
		left[seg] = in
	}
	return left
}

// addStartsIn is addStarts for the documents of a segment.
func addStartsIn(v *pruner, seg int, in *roaring.Bitmap, p positions.Exact) (left *roaring.Bitmap) {
	s := v.s
	s.r.Plan.begin("wordPosition", phraseStarts, int(in.GetCardinality()))
	defer s.r.Plan.end(0)
	missing, all, judged, atStart := v.wanted, int(in.GetCardinality()), 0, 0
	behind := func(row uint32) *roaring.Bitmap {
		rest := in.Clone()
		rest.RemoveRange(0, uint64(row)+1)
		return rest
	}
	it := in.ManyIterator()
	for next := min(askRows, stopRows); judged < all && !s.late(); next = min(2*next, stopRows) {
		s.inSet = slices.Grow(s.inSet[:0], next)
		rows := s.inSet[:it.NextMany(s.inSet[:next])]
		if len(rows) == 0 {
			break // a set of a forged segment has fewer rows than it says
		}
		last := rows[len(rows)-1]
		atStart += judgeStarts(v, seg, rows, p)
		judged += len(rows)
		switch {
		case atStart >= missing:
			noteLeading(s, v.rule)
			if whole := s.pos.WholeFields(seg, p, behind(last)); len(whole) > 0 {
				judgeStarts(v, seg, whole, p)
			}
			return nil
		case atStart*all < missing*judged && judged < all:
			return behind(last)
		}
	}
	if judged < all { // time is over, or the set is forged
		return in
	}
	return nil
}

// judgeStarts adds rows of a segment, and returns how many of them lead, have the least cost and begin with a phrase.
func judgeStarts(v *pruner, seg int, rows []uint32, p positions.Exact) (atStart int) {
	s := v.s
	numbers := &s.list.numbers
	mark := numbers.Mark()
	defer numbers.Release(mark)
	like := batch{fixed: v.b.fixed, segment: seg, rows: rows}
	costs := numbers.Take(len(rows))
	v.eval(&like, costs)
	v.byCost[seg].add(rows, costs, tooMuch)
	first := like
	first.rows = numbers.Take(len(rows))[:0]
	for i, c := range costs {
		if int(c) == v.least {
			first.rows = append(first.rows, rows[i])
		}
	}
	if len(first.rows) == 0 {
		return 0
	}
	exact := costs[:len(first.rows)]
	for i := range exact {
		exact[i] = noExactMatch
	}
	s.pos.Match(first.at(), p, exact)
	for i, c := range exact {
		if c < noExactMatch && s.leads(seg, first.rows[i]) {
			atStart++
		}
	}
	return atStart
}
