package rank

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/internal/settings"
)

// costClasses are documents by their cost: of one node under a rule, or of two neighbouring nodes. They cover all documents that
// match, not only those of one search, so that they can be cached for later searches with the same word.
type costClasses struct {
	costs   []int  // ascending
	rows    []rows // disjoint, as costs
	rest    int    // cost of all documents outside rows; −1: there are none
	covered rows   // union of rows; set if rest ≥ 0

	// pick, if set, replaces rows: it returns the documents of in that have costs[k].
	pick func(k int, in rows) rows
}

// among returns those of some documents that have costs[k].
func (c *costClasses) among(k int, in rows) rows {
	if c.pick != nil {
		return c.pick(k, in)
	}
	return in.and(c.rows[k])
}

// Limits on the number of documents of which classes are computed. (Variables, so that tests can lower them.)
var (
	derivedMax = 64 << 10 // classes that are requested again may have up to so many documents,
	againPer   = 64       // and up to so many per document of the bucket
)

// worthwhile reports whether to compute classes of so many documents for a bucket. again is true if an earlier search requested them
// too, so that classes of up to derivedMax documents may serve later searches. If the page can be filled without classes, this is the
// only reason to compute them.
func worthwhile(documents, bucket int, again, fillable bool) bool {
	return documents <= min(derivedMax, againPer*bucket) && again || !fillable && bucket > listRows && effort(documents)*classifyRow <= effort(bucket)*judgeRow
}

// join merges the classes of all segments; nil stands for a segment without documents.
func join(parts []*segmentClasses, rest int) *costClasses {
	c := &costClasses{rest: rest}
	for _, p := range parts {
		if p != nil {
			c.costs = append(c.costs, p.costs...)
		}
	}
	slices.Sort(c.costs)
	c.costs = slices.Compact(c.costs)
	c.rows = make([]rows, len(c.costs))
	for k := range c.rows {
		c.rows[k] = make(rows, len(parts))
	}
	if rest >= 0 {
		c.covered = make(rows, len(parts))
	}
	for seg, p := range parts {
		if p == nil {
			continue
		}
		k := 0
		for i, cost := range p.costs {
			for c.costs[k] != cost {
				k++
			}
			c.rows[k][seg] = p.rows[i]
		}
		if rest >= 0 {
			c.covered[seg] = p.covered
		}
	}
	return c
}

// mergeClasses merges classes of disjoint documents: those of a node at different levels.
func mergeClasses(all []*costClasses, rest, segments int) *costClasses {
	if len(all) == 1 {
		return all[0]
	}
	m := &costClasses{rest: rest}
	for {
		best := -1
		for i, c := range all {
			if len(c.costs) > 0 && (best < 0 || c.costs[0] < all[best].costs[0]) {
				best = i
			}
		}
		if best < 0 {
			break
		}
		c := *all[best]
		m.costs, m.rows = append(m.costs, c.costs[0]), append(m.rows, c.rows[0])
		c.costs, c.rows = c.costs[1:], c.rows[1:]
		all[best] = &c
	}
	if rest >= 0 {
		m.covered = make(rows, segments)
		for _, c := range all {
			m.covered = m.covered.or(c.covered)
		}
	}
	return m
}

var (
	segmentCosts = resultcache.NewKind[*segmentClasses]("rows of a segment by cost")
	viewCosts    = resultcache.NewKind[*costClasses]("rows of a view by cost")
)

// classesOf describes classes: of one or two nodes at their levels, cached under a kind and a number.
type classesOf struct {
	rule   string
	kind   settings.RuleKind
	nodes  []int
	levels []int
	number uint16
	rest   int

	least     int                           // lower bound of the number of their documents
	documents func(seg int) int             // number of their documents; nil: they cost next to nothing
	derive    func(seg int) *segmentClasses // nil: time is over
}

// classesFor returns classes, computing those that are not cached, if that pays off for a bucket. Otherwise it returns nil.
func classesFor(s *search, of *classesOf, bucket int) *costClasses {
	var buf, segmentBuf [128]byte
	key := append(buf[:0], byte(of.kind))
	key = binary.LittleEndian.AppendUint16(key, of.number)
	for i, n := range of.nodes {
		key = append(append(key, byte(of.levels[i])), s.graph.Nodes[n].Key...)
		key = append(key, 0xff)
	}
	own := s.ix.Cache.Own()
	if c, ok := viewCosts.Get(own, key); ok {
		s.r.Plan.note(of.rule, cachedClasses)
		return c
	}
	if _, ok := s.declined[string(key)]; ok {
		return nil // a repetition within the search does not count as a second request
	}
	parts := make([]*segmentClasses, len(s.ix.Segments))
	var missing []int
	kept, again := false, true
	for seg := range parts {
		c, key, ok := classesKey(&s.findings, of, seg, segmentBuf[:0])
		if !ok {
			continue
		}
		if p, ok := segmentCosts.Get(c.Scope, key); ok {
			parts[seg], kept = p, true
			continue
		}
		missing = append(missing, seg)
		again = segmentCosts.Admit(c.Scope, key) && again
	}
	fillable := fillable(s) || of.documents == nil && prunes(s) // these can be picked among the documents of a bucket
	n := of.least
	if of.documents != nil && (n < classRows || kept || again || !fillable) { // otherwise the number of documents does not matter
		n = 0
		missing = slices.DeleteFunc(missing, func(seg int) bool {
			documents := of.documents(seg)
			n += documents
			return documents == 0
		})
	}
	if len(missing) > 0 && !(of.documents != nil && n < classRows) && !worthwhile(n, bucket, again, fillable) {
		if fillable {
			if s.declined == nil {
				s.declined = map[string]struct{}{}
			}
			s.declined[string(key)] = struct{}{}
		}
		return nil
	}
	for _, seg := range missing {
		p := of.derive(seg)
		if p == nil {
			return nil
		}
		parts[seg] = p
		c, key, _ := classesKey(&s.findings, of, seg, segmentBuf[:0])
		p.trim()
		segmentCosts.Put(c.Scope, key, p, p.bytes)
	}
	if len(missing) == 0 {
		s.r.Plan.note(of.rule, cachedClasses)
	} else {
		s.r.Plan.note(of.rule, madeClasses)
	}
	if invariant.Enabled {
		checkClasses(of.rule, parts)
	}
	c := join(parts, of.rest)
	bytes := 200 + (len(c.costs)+1)*(24+8*len(parts))
	for _, p := range parts {
		if p != nil {
			bytes += p.bytes
		}
	}
	viewCosts.Put(own, key, c, bytes)
	return c
}

// classesKey returns the cache key of classes in a segment. ok is false if the segment has no documents of them.
func classesKey(s *findings, of *classesOf, seg int, buf []byte) (c query.SegmentCache, key []byte, ok bool) {
	c = s.ix.OfSegment(seg)
	key = binary.LittleEndian.AppendUint16(append(c.Key(buf), byte(of.kind)), of.number)
	for i, n := range of.nodes {
		piece := s.graph.Nodes[n].Segments[seg].Piece
		if piece == 0 {
			return c, nil, false
		}
		key = binary.LittleEndian.AppendUint64(append(key, byte(of.levels[i])), piece)
	}
	return c, key, true
}

// classify computes the costs of documents of a segment in batches and sorts them into classes, leaving out the costly rest. It
// returns nil when time is over.
func classify(s *search, seg int, of *roaring.Bitmap, b batch, rest int, eval func(b *batch, costs []uint32)) *segmentClasses {
	ls := &s.list
	byCost := &s.classified
	byCost.reset()
	b.segment = seg
	for all := s.rowsIn(of); len(all) > 0; all = all[len(b.rows):] {
		if s.late() {
			return nil
		}
		b.rows = all[:min(len(all), stopRows)]
		mark := ls.numbers.Mark()
		costs := ls.numbers.Take(len(b.rows))
		eval(&b, costs)
		byCost.add(b.rows, costs, rest)
		ls.numbers.Release(mark)
	}
	c := byCost.classes(s.ix.Segments[seg].Rows())
	if rest >= 0 {
		c.cover()
	}
	return c
}

// nodeClasses merges the classes of a node at all levels of the bucket.
func nodeClasses(s *search, b *bucket, v int, at func(s *search, b *bucket, v, level int) *costClasses) *costClasses {
	var all []*costClasses
	for _, level := range s.levelsIn(b, v) {
		if level != anyLevel && level > 0 && !b.rows.intersects(s.matching(v, level)) {
			continue
		}
		c := at(s, b, v, level)
		if c == nil {
			return nil
		}
		all = append(all, c)
	}
	rest := -1
	if len(all) > 0 {
		rest = all[0].rest // the same for all
	}
	return mergeClasses(all, rest, len(b.rows))
}
