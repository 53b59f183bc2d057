package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/settings"
	"svc/segment"
	"svc/segment/rowlist"
)

// attributeRank puts documents first that have the words in searched fields of smaller weight.
type attributeRank struct {
	relevance
	with rule // shown together with it, as "attribute", if it comes next; nil: shown alone
}

func (attributeRank) name() string { return "attributeRank" }

func (attributeRank) traits() *traits { return &attributeRankTraits }

var attributeRankTraits = traits{row: judgeRow, says: ByRelevance, adds: addsWeights, charge: chargeWeight, fields: true, order: orderByWeight, interprets: true, sets: true}

func (attributeRank) access(s *search, b *bucket, _ int) paths {
	if !b.hasOneInterpretation() {
		return paths{}
	}
	return paths{{ofPlaces(s), openWeights}}
}

func openWeights(s *search, b *bucket, _ int) split {
	if s.ix.Fields.MaxWeight() == 0 { // as when all attributes are searchable
		sub := *b
		sub.narrowed = true
		return unsplit(&sub)
	}
	return bySums(b, attributeItems(s, b), 0, 1+b.terms*s.ix.Fields.MaxWeight())
}

func (attributeRank) costs(s *search, l *list, i int, costs []uint32) outcome {
	o := outcome{narrows: true, ranks: uint64(1 + l.terms*s.ix.Fields.MaxWeight())}
	o.relabels = judge(s, l, i, costs)
	return o
}

// details writes one entry for attribute and its second half, which are adjacent if the settings name attribute.
func (r attributeRank) details(d *detailWriter, verdicts []verdict) int {
	p := &verdicts[0]
	if r.with == nil {
		d.open("attributeRank")
		d.score(p)
		return 1
	}
	d.open("attribute")
	d.number("attributeRankingOrderScore", float64(p.rank)/float64(p.ranks))
	if len(verdicts) > 1 && verdicts[1].by == r.with {
		d.number("queryWordDistanceScore", float64(verdicts[1].rank)/float64(verdicts[1].ranks))
		d.number("score", score(verdicts[:2]))
		return 2
	}
	d.score(p)
	return 1
}

// weightsInUse returns the weights of the searched fields, ascending.
func weightsInUse(s *search) []int {
	if s.usedWeights == nil {
		s.usedWeights = []int{}
		for _, w := range s.weights {
			if w >= 0 {
				s.usedWeights = append(s.usedWeights, int(w))
			}
		}
		slices.Sort(s.usedWeights)
		s.usedWeights = slices.Compact(s.usedWeights)
	}
	return s.usedWeights
}

// standingKey identifies the documents that have a node at a level, in a field of the weight with this index.
type standingKey struct{ node, level, weight, segment int }

// standing returns the documents of a segment that have a node at a level, in a field of the k-th weight in use, or nil. The bitmap
// is shared.
func standing(s *search, node, level, k, seg int) *roaring.Bitmap {
	key := standingKey{node, level, k, seg}
	r, ok := s.stands[key]
	if !ok {
		if r = findStanding(&s.findings, node, level, int32(weightsInUse(s)[k]), seg); r != nil && r.IsEmpty() {
			r = nil
		}
		if s.stands == nil {
			s.stands = map[standingKey]*roaring.Bitmap{}
		}
		s.stands[key] = r
	}
	return r
}

// standingAmong returns the documents among in that standing returns.
func standingAmong(s *search, node, level, k, seg int, in *roaring.Bitmap) *roaring.Bitmap {
	if in == nil {
		return nil
	}
	at := standing(s, node, level, k, seg)
	if level == 0 && in == s.graph.Nodes[node].Segments[seg].At[0] && whole(&s.findings, node, seg) {
		return at // at this level, only rows of At are there
	}
	return and(in, at)
}

// whole reports whether all matches of a node at level 0 are in its rows there, whatever fields the words are in.
func whole(s *findings, node, seg int) bool {
	v := &s.graph.Nodes[node]
	switch l := &v.Levels[0]; {
	case v.Len > 1: // it counts in fields that tolerate typos
		return false
	case len(l.Phrases) == 1: // only in some fields it has rows of its own
		return len(l.Postings[seg]) == 0 && l.Phrases[0].Segments[seg].Rows == v.Segments[seg].At[0]
	default:
		return len(l.Phrases) == 0
	}
}

// findStanding returns the rows that have a node in a field of a weight, at one level or at any. The result may be mapped.
func findStanding(s *findings, node, at int, weight int32, seg int) *roaring.Bitmap {
	v := &s.graph.Nodes[node]
	has := func(f segment.FieldID) bool { return s.weights[f] == weight }
	var found *roaring.Bitmap // of several parts
	var one *roaring.Bitmap   // of the first one; shared
	add := func(r *roaring.Bitmap) {
		switch {
		case one == nil:
			one = r
		case found == nil:
			found = query.Union(one, r, s.ix.Segments[seg].Rows())
		default:
			found = query.Union(found, r, s.ix.Segments[seg].Rows())
		}
	}
	for l := range v.Levels {
		if at != anyLevel && at != l {
			continue
		}
		switch postings := v.Levels[l].Postings[seg]; len(postings) {
		case 0:
		case 1: // mapped, if it has one field of the weight, as most words have
			if at == l && postings[0].Fields() == 1 && len(v.Levels[l].Phrases) == 0 {
				if has(postings[0].Field(0).ID()) {
					return v.Segments[seg].At[l] // the other fields do not matter
				}
				return nil
			}
			for k := range postings[0].Fields() {
				if f := postings[0].Field(k); has(f.ID()) {
					add(f.Rows())
				}
			}
		default:
			add(s.ix.Segments[seg].Union(postings, has))
		}
		for _, p := range v.Levels[l].Phrases {
			ps := &p.Segments[seg]
			if ps.Rows.IsEmpty() {
				continue
			}
			for k := range ps.Words[0].Fields() {
				if f := ps.Words[0].Field(k); has(f.ID()) {
					add(rowlist.And(f.Rows(), ps.Rows))
				}
			}
		}
	}
	if found == nil {
		return one
	}
	return found
}

// attributeItems returns for each node of a bucket with one interpretation its documents by the weight of its best field: cached
// classes, or classes that are evaluated among given documents.
func attributeItems(s *search, b *bucket) []*costClasses {
	var items []*costClasses
	for _, v := range b.interpretations[0].nodes {
		c := nodeClasses(s, b, v, attributeClasses)
		if c == nil {
			c = weightClasses(s, b, v)
		}
		items = append(items, c)
	}
	return items
}

// orderByWeight is the order of documents whose positions were not read.
func orderByWeight(s *search, b *bucket) []*costClasses {
	if s.ix.Fields.MaxWeight() == 0 {
		return nil
	}
	return attributeItems(s, b)
}

// weightClasses finds the documents of a node by the weight of its best field, on demand.
func weightClasses(s *search, b *bucket, v int) *costClasses {
	weights, levels := weightsInUse(s), s.levelsIn(b, v)
	c := &costClasses{rest: -1}
	for _, w := range weights {
		for range levels {
			c.costs = append(c.costs, w*s.graph.Nodes[v].Len)
		}
	}
	c.pick = func(k int, in rows) rows {
		weight, level := k/len(levels), levels[k%len(levels)]
		out := make(rows, len(in))
		for seg, r := range in {
			if r = standingAmong(s, v, level, weight, seg, r); r != nil && len(levels) > 1 {
				r = and(r, s.matchingIn(v, level, seg))
			}
			own := r != in[seg] && r != standing(s, v, level, weight, seg) && r != s.matchingIn(v, level, seg)
			for better := 0; better < weight && r != nil; better++ {
				r, own = less(r, standing(s, v, level, better, seg), own)
			}
			out[seg] = r
		}
		return out
	}
	return c
}

// attributeClasses are the documents of a node by the weight of its best field. Documents of the largest weight, usually the
// majority, are the rest and need no set. The cache key contains that weight, because a new field may have a larger one while a
// segment stays the same.
func attributeClasses(s *search, b *bucket, v, level int) *costClasses {
	better, worst := weightsInUse(s), s.ix.Fields.MaxWeight()
	if last := len(better) - 1; last >= 0 {
		better, worst = better[:last], better[last]
	}
	terms := s.graph.Nodes[v].Len
	return classesFor(s, &classesOf{rule: "attributeRank", kind: settings.AttributeRank, nodes: []int{v}, levels: []int{level}, number: uint16(worst), rest: worst * terms,
		derive: func(seg int) *segmentClasses {
			c := &segmentClasses{}
			in := s.matchingIn(v, level, seg)
			left := cardinality(in)
			for k, w := range better {
				if left == 0 {
					break
				}
				// Removing the better ones, mostly few, avoids a set of the rest for each weight.
				r := s.lessAll(standingAmong(s, v, level, k, seg, in), c.rows, s.ix.Segments[seg].Rows())
				if r != nil {
					c.costs, c.rows = append(c.costs, w*terms), append(c.rows, r)
					left -= cardinality(r)
				}
			}
			c.cover()
			return c
		}}, b.n)
}

// chargeWeight charges a node the smallest weight of a searched field that contains it, once per term it covers.
func chargeWeight(s *search, _ *batch, nodes []int, k int, sum, one []uint32) {
	worst := uint32(s.ix.Fields.MaxWeight())
	if worst == 0 {
		return
	}
	for i := range one {
		one[i] = worst
	}
	for _, list := range [][]uint64{s.pos.Right.Words, s.pos.Right.First} {
		for _, x := range list {
			if w := s.weights[positions.FieldOf(x)]; w >= 0 && uint32(w) < one[positions.IndexOf(x)] {
				one[positions.IndexOf(x)] = uint32(w)
			}
		}
	}
	terms := uint32(s.graph.Nodes[nodes[k]].Len)
	for i, w := range one {
		sum[i] += w * terms
	}
}
