package rank

import (
	"cmp"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
)

// wordPosition puts documents first that have the words nearer to their places in the query.
type wordPosition struct{ relevance }

func (wordPosition) name() string { return "wordPosition" }

func (wordPosition) traits() traits { return traits{says: ByRelevance, paths: true, sets: true} }

func (wordPosition) judgedAs() int { return judgedPosition }

func (wordPosition) split(s *search, b *bucket, i int) split {
	if !b.hasClasses() {
		return declined
	}
	var items []*classes
	ranks := 1 + farthestPosition*b.terms
	for _, v := range b.paths[0].nodes {
		c := s.nodeClasses(b, v, s.positionClasses)
		switch {
		case c != nil:
		case s.out.fillable():
			return s.bySieve(b, i, scanInOrder, s.sievePosition, ranks)
		default:
			if c = s.placeAll(b); c == nil {
				return declined
			}
			return s.bySums(b, []*classes{c}, 0, ranks)
		}
		items = append(items, c)
	}
	return s.bySums(b, items, 0, ranks)
}

func (wordPosition) costs(s *search, l *list, i int, costs []uint32) outcome {
	o := outcome{narrows: true, ranks: uint64(1 + farthestPosition*l.terms)}
	o.relabels = s.judge(l, i, judgedPosition, costs)
	return o
}

func (wordPosition) details(d *detailWriter, parts []part) int {
	d.open("wordPosition")
	d.score(&parts[0])
	return 1
}

// farthestPosition is the cost of a word that is as far from its place in the query as can be.
const farthestPosition = 10

// exactPositions is the number of positions that are told apart one by one.
const exactPositions = 16

// bucketed is the resolution at which positions are compared: exact up to 15, then coarser and coarser.
func bucketed(position int) int {
	switch {
	case position < exactPositions:
		return position
	case position < 24:
		return 24
	case position <= 32:
		return 32
	default:
		return min(1<<bits.Len(uint(position-1)), 65535)
	}
}

// positionCost is the cost of a distance from the place in the query.
func positionCost(distance int) uint32 {
	switch {
	case distance <= 1:
		return uint32(distance)
	case distance <= 4:
		return 2
	case distance <= 7:
		return 3
	case distance <= 11:
		return 4
	case distance <= 16:
		return 5
	case distance <= 24:
		return 6
	case distance <= 64:
		return 7
	case distance <= 256:
		return 8
	case distance <= 1024:
		return 9
	default:
		return farthestPosition
	}
}

// placeCost is the cost of a node of n terms that stands at a position, with its place at start.
func placeCost(position, start, n int) uint32 {
	distance := bucketed(position) - start
	if distance < 0 {
		distance = -distance
	}
	cost := uint32(0)
	for i := range n {
		cost += positionCost(distance + i)
	}
	return cost
}

// placeNode computes the position costs of one node in many rows. Rows that have the
// word in its place already are not looked at again, so short fields come first.
func (s *search) placeNode(b *batch, node int, costs []uint32) {
	v := &s.graph.Nodes[node]
	for i := range costs {
		costs[i] = uint32(farthestPosition * v.Len)
	}
	lower := func(i int, o uint64) {
		if costs[i] > 0 {
			costs[i] = min(costs[i], placeCost(positionOf(o), int(v.Start), v.Len))
		}
	}
	for _, as := range []role{asStart, asWords} {
		if !s.byField(b, node, as) {
			s.right.words = s.gather(s.right.words[:0], b, node, as)
			for _, o := range s.right.words {
				lower(indexOf(o), o)
			}
			continue
		}
		if as == asWords {
			s.right.words = s.gatherRare(s.right.words[:0], b, node)
			for _, o := range s.right.words {
				lower(indexOf(o), o)
			}
		}
		fields := s.placeDense(b, v, s.wordFields(b, node, as), costs)
		if len(fields) == 0 {
			continue
		}
		mark := s.list.numbers.used
		rows := s.list.numbers.take(len(b.rows))
		index := s.list.numbers.take(len(rows)) // of rows, in b.rows
		n := 0
		for i, row := range b.rows {
			if costs[i] > 0 {
				rows[n], index[n] = row, uint32(i)
				n++
			}
		}
		rows, index = rows[:n], index[:n]
		for _, f := range fields {
			if v.Start == 0 {
				// The lowest position is the nearest one.
				s.firsts = f.FirstPositions(s.firsts[:0], rows)
				n := 0
				for k, at := range s.firsts {
					i := index[k]
					if at != segment.NoPosition {
						costs[i] = min(costs[i], placeCost(int(at), 0, v.Len))
					}
					if costs[i] > 0 {
						rows[n], index[n] = rows[k], i
						n++
					}
				}
				rows, index = rows[:n], index[:n]
				continue
			}
			s.right.words = f.AppendOccurrences(s.right.words[:0], rows, 0)
			for _, o := range s.right.words {
				lower(int(index[indexOf(o)]), o)
			}
			n := 0
			for k, i := range index {
				if costs[i] > 0 {
					rows[n], index[n] = rows[k], i
					n++
				}
			}
			rows, index = rows[:n], index[:n]
		}
		s.list.numbers.used = min(mark, s.list.numbers.used)
	}
}

// byField reports whether the words of a node in a batch, or those at the start of its phrases, are looked at field by field.
func (s *search) byField(b *batch, node int, as role) bool {
	_, word := b.mask(node)
	return !word && len(b.rows) >= denseRows && (as == asWords || s.graph.Nodes[node].Phrase) // else it stands in some of the rows only
}

// isFrequent reports whether the words of a node in a batch are few, so that all of them are in their fields.
func (s *search) isFrequent(b *batch, node int) bool {
	n := 0
	mask, _ := b.mask(node)
	for level := range query.Levels {
		if mask>>level&1 != 0 {
			n += len(s.graph.Nodes[node].Levels[level].Postings[b.segment])
		}
	}
	return n < tablePostings && s.byField(b, node, asWords)
}

// gatherRare appends the occurrences of those words of a node that wordFields leaves out.
func (s *search) gatherRare(dst []uint64, b *batch, node int) []uint64 {
	mask, _ := b.mask(node)
	for level := range query.Levels {
		if mask>>level&1 != 0 && len(s.graph.Nodes[node].Levels[level].Postings[b.segment]) >= tablePostings {
			dst = s.table(node, level, b.segment).gather(dst, b)
		}
	}
	return dst
}

// wordFields returns the fields of the words of a node, or of the first one of its only phrase, by weight: what is searched first is
// mostly short. Of many words they are those of the frequent ones.
func (s *search) wordFields(b *batch, node int, as role) []segment.FieldPosting {
	var fields []segment.FieldPosting
	mask, _ := b.mask(node)
	for level := range query.Levels {
		if mask>>level&1 == 0 {
			continue
		}
		l := &s.graph.Nodes[node].Levels[level]
		words, weights := l.Postings[b.segment], s.searchable
		if len(words) >= tablePostings {
			words = s.table(node, level, b.segment).frequent
		}
		if as == asStart {
			words, weights = nil, s.weights
			for _, p := range l.Phrases {
				first := p.Segments[b.segment].Words
				words = first[:min(1, len(first))]
			}
		}
		for _, p := range words {
			for k := range p.Fields() {
				if f := p.Field(k); weights[f.ID()] >= 0 {
					fields = append(fields, f)
				}
			}
		}
	}
	slices.SortStableFunc(fields, func(a, b segment.FieldPosting) int {
		return cmp.Compare(s.searchable[a.ID()], s.searchable[b.ID()])
	})
	return fields
}

// positionClasses are the documents of a node by the distance from its place.
func (s *search) positionClasses(b *bucket, v, level int) *classes {
	return s.cachedClasses(&classesOf{rule: "wordPosition", kind: 'd', nodes: []int{v}, levels: []int{level}, number: s.graph.Nodes[v].Start, rest: -1,
		documents: func(seg int) int { return cardinality(s.matchingIn(v, level, seg)) },
		derive: func(seg int) *segmentClasses {
			return s.classify(seg, s.matchingIn(v, level, seg), levelBatch([]int{v}, []int{level}), -1,
				func(b *batch, costs []uint32) { s.placeNode(b, v, costs) })
		}}, b.n)
}

// sievePosition returns documents of a bucket with one path by their positions: all of them, or the best as far as the page needs
// them. nil when time is over.
func (s *search) sievePosition(b *bucket, i int) *classes {
	nodes := b.paths[0].nodes
	least := 0
	for _, n := range nodes {
		least += int(placeCost(0, 0, s.graph.Nodes[n].Len))
	}
	v := s.newSieve(b, least, nil)
	v.eval = func(b *batch, costs []uint32) {
		if len(nodes) == 1 {
			s.placeNode(b, nodes[0], costs)
			return
		}
		s.placeNodes(b, nodes, v.enough(), costs)
	}
	words, ties := s.exactRulesFollow(i)
	if ties && len(nodes) == 1 {
		// Documents without the word as it is written are equal under all rules behind.
		word := func(seg int) *roaring.Bitmap {
			if v := &s.graph.Nodes[nodes[0]]; v.Len == 1 {
				return v.Segments[seg].Word
			}
			return nil
		}
		with := make(rows, len(b.rows))
		for seg, in := range b.rows {
			if w := word(seg); w != nil && b.fixed && b.typos == 0 && w == s.graph.Nodes[nodes[0]].Segments[seg].At[0] {
				with[seg] = in // what matches without a typo has the word
			} else {
				with[seg] = and(in, w)
			}
		}
		left := with
		if words {
			left = v.addBegun(with)
		}
		if words && !left.isEmpty() {
			if first := s.beginning(with, nodes[0], v.beginningPer(with, nodes[0])); first.count() >= s.out.missing() {
				s.r.Plan.note("wordPosition", startsWith)
				s.begun, s.begunWith = first, nodes[0]
				return &classes{costs: []int{least}, rows: []rows{first}, rest: -1}
			}
		}
		if !v.addAll(left) {
			return nil
		}
		if words && v.full(least) {
			return v.classes(least)
		}
		for seg, in := range b.rows {
			if in = andNot(in, with[seg]); in == nil {
				continue
			}
			if !v.add(seg, in, s.out.missing()) {
				return nil
			}
		}
		if v.full(least) {
			return v.classes(least)
		}
		return v.classes(math.MaxInt32)
	}
	if !v.addAll(b.rows) {
		return nil
	}
	return v.classes(math.MaxInt32)
}

// placeAll returns the documents of a large bucket with one path by their positions; nil when it is no such bucket, or time is over.
func (s *search) placeAll(b *bucket) *classes {
	if b.n <= listRows {
		return nil
	}
	nodes := b.paths[0].nodes
	s.r.Plan.begin("wordPosition", allRows, b.n)
	defer s.r.Plan.end(b.n)
	v := s.newSieve(b, 0, func(b *batch, costs []uint32) { s.placeNodes(b, nodes, tooMuch, costs) })
	if !v.addAll(b.rows) {
		return nil
	}
	return v.upToCost(math.MaxInt32 - 1)
}

// placeNodes computes the sum of the position costs of some nodes in many rows. Those that cost more than most cost tooMuch: of a row that
// does already the other nodes are not looked at.
func (s *search) placeNodes(b *batch, nodes []int, most int, costs []uint32) {
	mark := s.list.numbers.used
	left := s.list.numbers.take(len(b.rows))
	index := s.list.numbers.take(len(b.rows)) // of those left, in b.rows
	one := s.list.numbers.take(len(b.rows))
	copy(left, b.rows)
	for i := range index {
		index[i] = uint32(i)
	}
	clear(costs)
	part := *b
	for _, node := range nodes {
		if part.rows = left; len(left) == 0 {
			break
		}
		s.placeNode(&part, node, one[:len(left)])
		n := 0
		for k, i := range index[:len(left)] {
			if costs[i] += one[k]; int(costs[i]) > most {
				costs[i] = tooMuch
				continue
			}
			left[n], index[n] = left[k], i
			n++
		}
		left = left[:n]
	}
	s.list.numbers.used = min(mark, s.list.numbers.used)
}

// fieldsIn returns the parts of a posting in the fields that have a weight.
func fieldsIn(p segment.Posting, weights []int32) (fields []segment.FieldPosting) {
	for k := range p.Fields() {
		if f := p.Field(k); weights[f.ID()] >= 0 {
			fields = append(fields, f)
		}
	}
	return fields
}

// exactRulesFollow reports whether no rule behind i but those of exactness orders documents, and whether the one that counts
// exact words is there.
func (s *search) exactRulesFollow(i int) (words, ties bool) {
	for _, r := range s.rules[i+1:] {
		switch r.(type) {
		case exactWords:
			words = true
		case exactAttribute:
		default:
			return words, false
		}
	}
	return words, true
}

// charge charges a node by the occurrence that is nearest to its place: of its words in any searchable field, of its phrases in the
// searched ones.
func (wordPosition) charge(s *search, _ *batch, nodes []int, k int, sum, one []uint32) {
	v := &s.graph.Nodes[nodes[k]]
	for i := range one {
		one[i] = uint32(farthestPosition * v.Len)
	}
	for _, list := range [][]uint64{s.right.words, s.right.start} {
		for _, x := range list {
			if i := indexOf(x); one[i] > 0 {
				one[i] = min(one[i], placeCost(positionOf(x), int(v.Start), v.Len))
			}
		}
	}
	for i, c := range one {
		sum[i] += c
	}
}
