package rank

import (
	"cmp"
	"math"
	"slices"

	"svc/internal/query"
	"svc/internal/settings"
	"svc/segment"
)

// placed is a word that an exact match has at a place.
type placed struct {
	posting  segment.Posting
	position int
	weights  []int32 // by field: −1 where the word does not count
}

// placing is what rows are asked for that may match exactly.
type placing struct {
	words  []placed
	slots  int  // how many words a field has that is the query
	phrase bool // each row has all words in one searched field
	begun  bool // each row has the first word in its place
}

// appendPlaced appends the words of a node; ok is false when the segment lacks one.
func (s *search) appendPlaced(dst []placed, v *query.Node, seg int) (out []placed, ok bool) {
	if !v.Phrase {
		if len(v.Words[seg]) == 0 {
			return dst, false
		}
		return append(dst, placed{v.Words[seg][0], int(v.Start), s.searchable}), true
	}
	p := v.Levels[0].Phrases[0]
	words := p.Segments[seg].Words
	if len(words) == 0 {
		return dst, false
	}
	k := 0
	for slot, w := range p.Slots {
		if w != "" {
			dst = append(dst, placed{words[k], int(v.Start) + slot, s.weights})
			k++
		}
	}
	return dst, true
}

// placingOf returns what rows of a segment are asked for that may match some nodes exactly. ok is false when the segment lacks a word.
func (s *search) placingOf(nodes []int, seg int, begun bool) (p placing, ok bool) {
	p.begun = begun
	p.phrase = len(nodes) == 1 && s.graph.Nodes[nodes[0]].Phrase && s.fields == nil && s.ix.Settings.ProximityPrecision != settings.ByAttribute
	for _, n := range nodes {
		v := &s.graph.Nodes[n]
		p.slots += v.Slots()
		if p.words, ok = s.appendPlaced(p.words, v, seg); !ok {
			return p, false
		}
	}
	return p, true
}

// placeWords lowers the costs of rows where each word is in its place, in whatever field it counts, and a
// searched field has all the words. The two are independent.
func (s *search) placeWords(b *batch, p placing, costs []uint32) {
	mark := s.list.numbers.used
	defer func() { s.list.numbers.used = min(mark, s.list.numbers.used) }()
	words := append(s.exactWords[:0], p.words...)
	s.exactWords = words
	var begins []placed // looked for last
	if p.phrase && p.begun && len(words) > 1 {
		begins, words = words[:1], words[1:]
	}
	// The rarest word comes first, so that the others are looked for in few rows.
	slices.SortStableFunc(words, func(a, b placed) int { return cmp.Compare(a.posting.Most(), b.posting.Most()) })
	for len(s.wordScratch) < len(p.words) {
		s.wordScratch = append(s.wordScratch, nil)
	}
	part := *b
	part.rows = s.list.numbers.take(len(b.rows))
	copy(part.rows, b.rows)
	index := s.list.numbers.take(len(b.rows))
	for i := range index {
		index[i] = uint32(i)
	}
	all := s.wordScratch[:0] // of each word the occurrences in the rows that were left
	for _, w := range words {
		if all = s.gatherPlaced(all, &part, w, index); len(part.rows) == 0 {
			return
		}
	}
	if p.phrase {
		for _, i := range index[:len(part.rows)] {
			costs[i] = min(costs[i], matchesStart)
		}
	}
	reader := s.ix.Segments[b.segment]
	isQuery := func(o uint64) bool {
		return p.slots <= maxExactWords && reader.WordCount(fieldOf(o), segment.Row(b.rows[indexOf(o)])) == p.slots
	}
	last := len(all) - 1
	if len(begins) > 0 {
		// Few rows have a field of so many words.
		n := 0
		for _, o := range all[last] {
			if s.weights[fieldOf(o)] >= 0 && (n == 0 || !sameFieldAndRow(o, all[last][n-1])) && isQuery(o) {
				all[last][n] = o
				n++
			}
		}
		if all[last] = all[last][:n]; n == 0 {
			return
		}
		index = index[:0]
		for _, o := range all[last] {
			index = append(index, uint32(indexOf(o)))
		}
		slices.Sort(index)
		index = slices.Compact(index)
		part.rows = part.rows[:0]
		for _, i := range index {
			part.rows = append(part.rows, b.rows[i])
		}
		all = s.gatherPlaced(all, &part, begins[0], index)
		last++
	}
	for i, o := range all[last] {
		if i > 0 && sameFieldAndRow(o, all[last][i-1]) {
			continue
		}
		k := indexOf(o)
		if s.weights[fieldOf(o)] < 0 || costs[k] == exactMatch || !stand(all[:last], o>>16) {
			continue
		}
		if costs[k] = matchesStart; isQuery(o) {
			costs[k] = exactMatch
		}
	}
}

// gatherPlaced leaves of the rows of a batch those that have a word in its place, and appends to all its occurrences there, which tell of
// each row what its index is in another batch.
func (s *search) gatherPlaced(all [][]uint64, b *batch, w placed, index []uint32) [][]uint64 {
	own := s.gatherWord(s.wordScratch[len(all)][:0], b, w.posting, w.weights, nil)
	found := s.list.numbers.take(len(b.rows))
	clear(found)
	want := bucketed(w.position)
	for _, o := range own {
		if bucketed(positionOf(o)) == want {
			found[indexOf(o)] = 1
		}
	}
	n := 0
	for _, o := range own {
		if i := indexOf(o); found[i] != 0 {
			own[n] = o&^(math.MaxUint32<<16) | uint64(index[i])<<16
			n++
		}
	}
	left := 0
	for i, f := range found {
		if f != 0 {
			b.rows[left], index[left] = b.rows[i], index[i]
			left++
		}
	}
	b.rows = b.rows[:left]
	return append(all, own[:n])
}

// stand reports whether all words have an occurrence in a field of a row.
func stand(words [][]uint64, place uint64) bool {
	for _, w := range words {
		if i, _ := slices.BinarySearch(w, place<<16); i == len(w) || w[i]>>16 != place {
			return false
		}
	}
	return true
}
