package rank

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank/positions"
	"svc/internal/settings"
)

// wordPosition puts documents first whose words are nearer to their places in the query.
type wordPosition struct{ relevance }

func (wordPosition) name() string { return "wordPosition" }

func (wordPosition) traits() *traits { return &wordPositionTraits }

var wordPositionTraits = traits{row: judgeRow, says: ByRelevance, adds: addsDisplacements, charge: chargeDisplacement, interprets: true, sets: true}

func (wordPosition) access(s *search, b *bucket, _ int) paths {
	if !b.hasOneInterpretation() {
		return paths{}
	}
	return paths{{ofPlaces(s), openPlaces}, {ofPruner(), openFirstPlaces}}
}

// openPlaces splits a bucket by the costs of all documents with its words.
func openPlaces(s *search, b *bucket, _ int) split {
	var items []*costClasses
	for _, v := range b.interpretations[0].nodes {
		c := nodeClasses(s, b, v, positionClasses)
		if c == nil {
			return declined
		}
		items = append(items, c)
	}
	return bySums(b, items, 0, 1+positions.Farthest*b.terms)
}

// openFirstPlaces splits off the first documents of a bucket, or splits all of it if the page may need all.
func openFirstPlaces(s *search, b *bucket, i int) split {
	ranks := 1 + positions.Farthest*b.terms
	if fillable(s) {
		return byPruner(s, b, i, scanInOrder, pruneByPosition, ranks)
	}
	if c := placeAll(s, b, i); c != nil {
		return bySums(b, []*costClasses{c}, 0, ranks)
	}
	return declined
}

func (wordPosition) costs(s *search, l *list, i int, costs []uint32) outcome {
	o := outcome{narrows: true, ranks: uint64(1 + positions.Farthest*l.terms)}
	o.relabels = judge(s, l, i, costs)
	return o
}

func (wordPosition) details(d *detailWriter, verdicts []verdict) int {
	d.open("wordPosition")
	d.score(&verdicts[0])
	return 1
}

// positionClasses are the documents of a node by the distance from its place.
func positionClasses(s *search, b *bucket, v, level int) *costClasses {
	return classesFor(s, &classesOf{rule: "wordPosition", kind: settings.WordPosition, nodes: []int{v}, levels: []int{level}, number: s.graph.Nodes[v].Start,
		rest:      -1,
		documents: func(seg int) int { return cardinality(s.matchingIn(v, level, seg)) },
		derive: func(seg int) *segmentClasses {
			return classify(s, seg, s.matchingIn(v, level, seg), levelBatch([]int{v}, []int{level}), -1,
				func(b *batch, costs []uint32) { s.pos.NodeDisplacements(b.at(), v, costs) })
		}}, b.n)
}

// pruneByPosition returns documents of a bucket with one interpretation by their positions: all of them, or the best ones as far as
// the page needs them. It returns nil when time is over.
func pruneByPosition(s *search, b *bucket, i int) *costClasses {
	nodes := b.interpretations[0].nodes
	least := 0
	for _, n := range nodes {
		least += int(positions.Displacement(0, 0, s.graph.Nodes[n].Len))
	}
	v := newPruner(s, b, i, least, nil)
	v.eval = func(b *batch, costs []uint32) {
		most := tooMuch
		if len(nodes) > 1 {
			most = v.enough()
		}
		s.pos.Displacements(b.at(), nodes, most, costs)
	}
	behind, few := s.lookBehind(i)
	if few && len(nodes) == 1 {
		// Documents without the word as written are equal under all later rules, except the one that breaks ties.
		word := func(seg int) *roaring.Bitmap {
			if v := &s.graph.Nodes[nodes[0]]; v.Len == 1 {
				return v.Segments[seg].Word
			}
			return nil
		}
		with := make(rows, len(b.rows))
		for seg, in := range b.rows {
			if w := word(seg); w != nil && b.fixed && b.typos == 0 && w == s.graph.Nodes[nodes[0]].Segments[seg].At[0] {
				with[seg] = in // documents that match without a typo have the word
			} else {
				with[seg] = and(in, w)
			}
		}
		// If the limit exceeds the documents, the page cannot be filled. Check first, because the limit may be any number, and it is
		// multiplied below.
		words := behind&wordsAsWritten != 0 && with.count() >= v.wanted
		left := with
		if words {
			left = addStarts(v, with)
		}
		if words && !left.isEmpty() {
			if first := startingWith(v, with, nodes[0], startBytesPer(v, with, nodes[0])); first.count() >= v.wanted {
				s.starts, s.startsOf = first, nodes[0]
				return &costClasses{costs: []int{least}, rows: []rows{first}, rest: -1}
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
			if !v.add(seg, in, v.wanted) {
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

// placeAll returns the documents of a large bucket with one interpretation by their positions. It returns nil for other buckets, or
// when time is over.
func placeAll(s *search, b *bucket, i int) *costClasses {
	if b.n <= listRows {
		return nil
	}
	nodes := b.interpretations[0].nodes
	s.r.Plan.begin("wordPosition", allRows, b.n)
	defer s.r.Plan.end(b.n)
	v := newPruner(s, b, i, 0, func(b *batch, costs []uint32) { s.pos.Displacements(b.at(), nodes, tooMuch, costs) })
	if !v.addAll(b.rows) {
		return nil
	}
	return v.upToCost(math.MaxInt32 - 1)
}

// chargeDisplacement charges a node by the occurrence that is nearest to its place: of its words in any searchable field, of its
// phrases in the searched ones.
func chargeDisplacement(s *search, _ *batch, nodes []int, k int, sum, one []uint32) {
	v := &s.graph.Nodes[nodes[k]]
	for i := range one {
		one[i] = uint32(positions.Farthest * v.Len)
	}
	for _, list := range [][]uint64{s.pos.Right.Words, s.pos.Right.First} {
		for _, x := range list {
			if i := positions.IndexOf(x); one[i] > 0 {
				one[i] = min(one[i], positions.Displacement(positions.PositionOf(x), int(v.Start), v.Len))
			}
		}
	}
	for i, c := range one {
		sum[i] += c
	}
}
