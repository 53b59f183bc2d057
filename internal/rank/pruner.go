package rank

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment/rowlist"
)

// Reading costs from positions is expensive, and most documents of a large bucket never come near the page. A pruner reads documents
// in the order of the cheaper rules that follow. It stops when enough documents have the least cost: all others cost more, or come
// later.

// stopRows is how many rows are judged at once. Their occurrences stay in the processor's caches. (A variable, so that tests can
// lower it.)
var stopRows = 4096

// askRows is the number of rows after which the pruner first checks whether the page is full: for frequent words the first few
// hundred often fill it. The number doubles for each further check, up to stopRows.
const askRows = 256

// pruner collects documents of a bucket with one interpretation by cost, until the first ones are as many as wanted. A search has one
// at a time.
type pruner struct {
	s      *search
	b      *bucket
	rule   string                         // that asks, for plans
	wanted int                            // documents that are asked for
	eval   func(b *batch, costs []uint32) // may return tooMuch for documents that cost more than enough
	least  int                            // cost that none is below
	byCost []costLists                    // by segment
}

func newPruner(s *search, b *bucket, i, least int, eval func(b *batch, costs []uint32)) *pruner {
	for len(s.pruning) < len(b.rows) {
		s.pruning = append(s.pruning, nil)
	}
	byCost := s.pruning[:len(b.rows)]
	for i := range byCost {
		byCost[i].reset()
	}
	return &pruner{s: s, b: b, rule: s.rules[i].name(), wanted: missing(s), eval: eval, least: least, byCost: byCost}
}

// add judges documents of a segment in ascending order until enough leading documents have the least cost (−1: judge all). It returns
// false when time is over.
func (v *pruner) add(seg int, in *roaring.Bitmap, enough int) bool {
	s := v.s
	return byLevels(&s.findings, v.b, seg, in, func(in *roaring.Bitmap, like batch) bool {
		like.segment = seg
		ls := &s.list
		// Documents of other levels are as good, but may come later, so each kind counts by itself.
		found, next, before := 0, stopRows, v.upTo(seg, v.least)
		if enough >= 0 {
			next = min(askRows, stopRows)
		}
		for it := in.ManyIterator(); ; next = min(2*next, stopRows) {
			s.inSet = slices.Grow(s.inSet[:0], next)
			like.rows = s.inSet[:it.NextMany(s.inSet[:next])]
			switch {
			case len(like.rows) == 0:
				return true
			case s.late():
				return false
			}
			mark := ls.numbers.Mark()
			costs := ls.numbers.Take(len(like.rows))
			v.eval(&like, costs)
			v.byCost[seg].add(like.rows, costs, tooMuch)
			switch {
			case enough < 0:
			case s.spelt == nil: // all lead
				found = v.upTo(seg, v.least) - before
			default:
				found += v.leading(seg, like.rows, costs)
			}
			ls.numbers.Release(mark)
			if enough >= 0 && found >= enough {
				noteLeading(s, v.rule)
				return true
			}
		}
	})
}

// noteLeading records in the plan that the first leading documents are enough of those with a cost.
func noteLeading(s *search, rule string) {
	if s.spelt != nil {
		s.r.Plan.note(rule, leadingFirst)
	}
}

// put adds documents of a segment that have a cost.
func (v *pruner) put(seg, cost int, rows []uint32) {
	list := v.byCost[seg].at(cost)
	*list = append(*list, rows...)
}

// addAll judges documents of all segments. It returns false when time is over.
func (v *pruner) addAll(in rows) bool {
	for seg, r := range in {
		if r != nil && !v.add(seg, r, -1) {
			return false
		}
	}
	return true
}

// leading returns how many of the rows of a segment have the least cost and lead.
func (v *pruner) leading(seg int, rows, costs []uint32) (n int) {
	for i, c := range costs {
		if int(c) == v.least && v.s.leads(seg, rows[i]) {
			n++
		}
	}
	return n
}

// upTo returns how many documents of a segment cost no more than most.
func (v *pruner) upTo(seg, most int) (n int) {
	for _, l := range v.byCost[seg][:min(len(v.byCost[seg]), most+1)] {
		n += len(l)
	}
	return n
}

// tooMuch is the cost of documents that the page does not need.
const tooMuch = math.MaxInt32

// enough returns the least cost such that the documents found up to that cost fill the page. It is tooMuch until there are enough
// documents.
func (v *pruner) enough() int {
	costs := 0
	for _, byCost := range v.byCost {
		costs = max(costs, len(byCost))
	}
	n := 0
	for cost := range costs {
		for _, byCost := range v.byCost {
			if cost < len(byCost) {
				n += len(byCost[cost])
			}
		}
		if n >= v.wanted {
			return cost
		}
	}
	return tooMuch
}

// count returns how many documents cost no more than most.
func (v *pruner) count(most int) (n int) {
	for seg := range v.byCost {
		n += v.upTo(seg, most)
	}
	return n
}

// full reports whether the documents that cost no more than most fill the page.
func (v *pruner) full(most int) bool { return v.count(most) >= v.wanted }

// classes returns the documents that cost no more than most, as far as they fill the page.
func (v *pruner) classes(most int) *costClasses {
	costs := 0
	for _, byCost := range v.byCost {
		costs = max(costs, len(byCost))
	}
	most = min(most, costs)
	for cost := v.least; cost < most; cost++ {
		if v.full(cost) {
			most = cost
		}
	}
	return v.upToCost(most)
}

// upToCost returns all documents that cost no more than most.
func (v *pruner) upToCost(most int) *costClasses {
	parts := make([]*segmentClasses, len(v.byCost))
	for seg, byCost := range v.byCost {
		parts[seg] = byCost[:min(len(byCost), most+1)].classes(v.s.ix.Segments[seg].Rows())
	}
	return join(parts, -1)
}

var prunedCosts = resultcache.NewKind[*costClasses]("first rows of a bucket by cost")

// pruned returns the classes of rule i in a large bucket of which the page needs only the first documents. It returns nil for other
// buckets, or when time is over.
func pruned(s *search, b *bucket, i int, path accessPath, pruner func(s *search, b *bucket, i int) *costClasses) *costClasses {
	if b.n <= listRows || !fillable(s) {
		return nil
	}
	key := firstRowsKey(s, i)
	own := s.ix.Cache.Own()
	if key != nil {
		if c, ok := prunedCosts.Get(own, key); ok {
			s.r.Plan.note(s.rules[i].name(), cachedFirst)
			return c
		}
	}
	s.r.Plan.begin(s.rules[i].name(), path, b.n)
	c := pruner(s, b, i)
	s.r.Plan.endClasses(c)
	if c == nil {
		return nil
	}
	if key != nil && !s.isLate && prunedCosts.Admit(own, key) {
		bytes := 200 + len(c.costs)*(24+8*len(b.rows))
		for _, r := range c.rows {
			for seg, of := range r {
				if of != nil {
					r[seg] = rowlist.Flat(of)
					bytes += resultcache.Size(r[seg])
				}
			}
		}
		prunedCosts.Put(own, key, c, bytes)
	}
	return c
}

// firstRowsKey returns the cache key of the result of a pruner for rule i in the current bucket. It returns nil if the result depends
// on more than the view, the query and the page.
func firstRowsKey(s *search, i int) []byte {
	r := s.r
	if s.partial || s.chosen != nil || s.rounds != nil || s.out.whole || r.Filter != nil || r.Universe != nil && !s.isLive(r.Universe) || s.graph.Excluded != nil || len(r.Sort) > 0 {
		return nil
	}
	key := append(make([]byte, 0, 256), byte(i), byte(r.Strategy))
	for _, n := range []int{r.Offset, r.Limit, r.MaxTotal} {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	for k := range s.graph.Nodes {
		v := &s.graph.Nodes[k]
		key = append(key, byte(v.Term), byte(v.Len))
		key = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(key, v.Start), v.End)
		key = append(append(key, v.Key...), 0xff)
	}
	key = append(key, s.typed...)
	for k := range s.stack {
		p := &s.stack[k]
		if !p.says().IsScore() {
			return nil
		}
		key = binary.AppendUvarint(key, p.cost)
	}
	key, _ = appendScoring(key, r.Scoring)
	return key
}

// byPruner splits a bucket by the result of a pruner. It declines if there is no result.
func byPruner(s *search, b *bucket, i int, path accessPath, pruner func(s *search, b *bucket, i int) *costClasses, ranks int) split {
	c := pruned(s, b, i, path, pruner)
	if c == nil {
		return declined
	}
	return bySums(b, []*costClasses{c}, 0, ranks)
}
