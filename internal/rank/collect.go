package rank

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/segment"
)

// collector takes documents in their final order and keeps those of the page that is asked for.
type collector struct {
	s          *search
	skip       int // documents still to pass over
	limit      int
	hits       []Hit
	candidates rows
	distinct   *Distinct // nil: documents are not deduplicated
	first      int       // index in hits of the first one returned
	held       int64     // bytes that are charged for hits
	full       error     // why there was no memory for more hits; nil: there was
	judgesAll  bool      // documents are not looked for in rounds
	keepsParts bool      // what the rules said of each hit is kept
	parts      [][]part  // by hit; hits that are equal have them in common
	tells      bool      // hits are described
	order      hitOrder  // under invariant.Enabled
}

// pageHits is for how many hits there is room at once. More may be asked for than are found: of duplicates one stays, and
// a threshold or the clock may leave hardly any.
const pageHits = 64

// start begins with so many documents to come; candidates are those that count.
func (c *collector) start(s *search, candidates rows, n int) {
	r := s.r
	c.s = s
	c.skip = min(r.Offset, r.MaxTotal)
	c.limit = min(r.Limit, r.MaxTotal-c.skip)
	if r.Exhaustive && r.Threshold != nil { // rank as much as counts
		c.first = c.skip
		c.skip, c.limit = 0, r.MaxTotal
	}
	c.candidates = candidates
	c.tells = true
	c.order = hitOrder{}
	c.hits = make([]Hit, 0, max(0, min(c.limit, n-c.skip, pageHits)))
	if r.Distinct != "" {
		c.distinct = NewDistinct(s.ix, r.Distinct)
	}
}

// wants reports whether more documents are needed.
func (c *collector) wants() bool { return len(c.hits) < c.limit }

// fillable reports whether the page is full as soon as there are as many documents as it takes: none of them
// turns out to be a duplicate, or to score too low.
func (c *collector) fillable() bool { return c.distinct == nil && c.s.r.Threshold == nil }

// alone reports whether nobody sees which documents of those that share a value are passed over: how many remain is the same.
func (c *collector) alone() bool { return c.s.r.HitsOnly && c.distinct.single() }

// missing returns how many documents it takes to fill the page, those before it included.
func (c *collector) missing() int { return c.skip + c.limit - len(c.hits) }

// skips reports whether a bucket of n documents lies before the page, so that its order does not matter. A
// semantic search has to look which of them have vectors: others are no hits, and no document is a duplicate of them.
func (c *collector) skips(n int) bool {
	v := c.s.r.Vectors
	return n <= c.skip && c.s.r.Threshold == nil && (v == nil || !v.Only)
}

// addRows adds documents that are equal under all rules.
func (c *collector) addRows(r rows) {
	if c.distinct == nil {
		if n := r.count(); n <= c.skip {
			c.skip -= n
			return
		}
	}
	n, pass := 0, 64
	for m := newMerge(c.s.ix, r); m.next(); {
		if !c.add(m.segment, segment.Row(m.row), m.id) {
			return
		}
		if n == pass && c.distinct != nil { // duplicates are passed over, the more often the fewer values there are
			if left, ok := c.distinct.left(r); ok {
				m, pass = newMerge(c.s.ix, left), 4*pass
			}
		}
		if n++; n%clockRows == 0 && !c.wants() && c.s.late() {
			return // the total counts duplicates behind this one
		}
	}
}

// clockRows is after how many documents of a bucket the clock is looked at. (A variable, so that tests can lower it.)
var clockRows = 1 << 14

// add adds one document and reports whether those equal to it are still of interest.
func (c *collector) add(seg int, row segment.Row, id segment.DocID) bool {
	if c.distinct != nil && !c.distinct.Keep(seg, row) {
		return true
	}
	if c.skip > 0 {
		c.skip--
		return true
	}
	if c.wants() {
		if n := len(c.hits); n == cap(c.hits) && n >= pageHits && !c.hold(2*n) {
			return false
		}
		c.hits = append(c.hits, Hit{Segment: seg, Row: row, ID: id})
		if invariant.Enabled {
			c.order.check(c.s.ix, c.hits[len(c.hits)-1], c.s.stack)
		}
		c.describe(&c.hits[len(c.hits)-1])
	}
	return c.distinct != nil || c.wants()
}

// What hits take, in bytes.
const (
	hitBytes   = 88 // a Hit
	valueBytes = 80 // a ScoreValue
)

// hold charges the request for so many hits like the last one. Where there is no memory for them the page ends here, and full says why.
func (c *collector) hold(n int) bool {
	if len(c.hits) == 0 {
		return true
	}
	last := &c.hits[len(c.hits)-1]
	more := int64(n)*int64(hitBytes+valueBytes*cap(last.Values)+cap(last.Details)) - c.held
	if more <= 0 {
		return true
	}
	if err := c.s.turn.Account().Hold(more); err != nil {
		c.full, c.limit = err, len(c.hits)
		return false
	}
	c.held += more
	return true
}

// describe tells of a hit what the request asks for, from the buckets that are open.
func (c *collector) describe(h *Hit) {
	r, parts := c.s.r, c.s.stack
	if c.keepsParts {
		if n := len(c.parts); n > 0 && areEqual(c.parts[n-1], parts) {
			c.parts = append(c.parts, c.parts[n-1])
		} else {
			c.parts = append(c.parts, slices.Clone(parts))
		}
	}
	if !c.tells {
		return
	}
	if r.Scores {
		h.Score = score(parts)
	}
	if r.Details {
		h.Details = appendDetails(nil, parts)
	}
	if r.Values {
		h.Values, h.Spelling = appendValues(nil, parts), spellingOf(parts)
	}
}

// dropRows takes documents out of the candidates: their score is under the threshold.
func (c *collector) dropRows(r rows) { c.candidates = c.candidates.andNot(r) }

func (c *collector) result() *Result {
	r := c.s.r
	if c.distinct != nil {
		most := math.MaxInt
		if r.HitsOnly {
			most = r.MaxTotal
		}
		c.candidates = c.distinct.Candidates(c.candidates, r.Exhaustive, most)
	}
	res := &Result{Candidates: slices.Clone(c.candidates), Total: min(c.candidates.count(), r.MaxTotal)}
	for i, b := range res.Candidates {
		if b == nil {
			res.Candidates[i] = roaring.New()
		}
	}
	first := min(c.first, len(c.hits))
	last := len(c.hits)
	if r.Exhaustive && r.Threshold != nil {
		last = min(last, first+max(0, min(r.Limit, r.MaxTotal-c.first)))
	}
	res.Hits = c.hits[first:last]
	return res
}

// wanted returns how many documents of a bucket the answer may still need.
func wanted(c *collector, b *bucket) int { return min(c.missing(), b.n) }
