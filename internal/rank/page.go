package rank

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/segment"
)

// page pulls documents in the order of ranking and keeps those that are asked for: it passes over an offset, over duplicates and over
// documents with low scores.
type page struct {
	s          *search
	skip       int // documents still to pass over
	limit      int
	hits       []Hit
	candidates rows
	distinct   *Distinct // nil: documents are not deduplicated
	kept       int       // documents that distinct kept
	groups     *grouping // that documents are kept for; nil: all are
	first      int       // index in hits of the first one returned
	whole      bool      // all hits are returned
	held       int64     // bytes that are charged for hits
	err        error     // why there was no memory for more hits; nil: there was
	order      hitOrder  // under invariant.Enabled
}

// pageHits is for how many hits there is room at once. More may be asked for than are found: of duplicates one stays, and
// a threshold or the clock may leave hardly any.
const pageHits = 64

// start prepares the page for n documents. candidates are the documents that totals count.
func (c *page) start(s *search, candidates rows, n int) {
	r := s.r
	c.s = s
	c.skip = r.skip()
	c.limit = min(r.Limit, r.MaxTotal-c.skip)
	if r.Exhaustive && r.Threshold != nil { // rank as much as counts
		c.first = c.skip
		c.skip, c.limit = 0, r.MaxTotal
	}
	c.whole = r.WholeIfFew && r.Limit > 0 && n < r.MaxTotal
	if c.whole {
		c.first, c.skip, c.limit = 0, 0, r.MaxTotal
	}
	c.candidates = candidates
	c.order = hitOrder{}
	c.hits = make([]Hit, 0, max(0, min(c.limit, n-c.skip, pageHits)))
	if r.Distinct != "" {
		c.distinct, c.kept = NewDistinct(s.ix, r.Distinct), 0
	}
	if r.Grouping != nil {
		c.groups = newGrouping(s.ix, r.Grouping, &s.grouping)
		c.groups.prunes = mayPrune(s)
	}
}

// fill pulls documents until the page is full. It continues with documents that are equal to the last hit, because totals count the
// duplicates among them.
func (c *page) fill() {
	for c.wants() || finishes(c.s) {
		g, ok := c.s.next()
		if !ok || !c.wants() && !(c.s.inRetry() && areEqual(c.s.rounds.retry.last, c.s.stack)) {
			break
		}
		if chosen := c.s.chosen; chosen != nil && g.rows != nil {
			g.rows = g.rows.and(chosen)
		} else if chosen != nil {
			g.entries = chosenEntries(chosen, g.entries)
		}
		switch {
		case g.rows != nil:
			c.addRows(g.rows)
		case len(g.entries) > 0:
			c.addEntries(g.entries, g.pruned)
		}
	}
	if c.err == nil {
		endRetry(c.s)
	}
	c.s.drop(0)
}

// addRows adds documents that are equal under all rules.
func (c *page) addRows(r rows) {
	if c.distinct == nil {
		if n := r.count(); n <= c.skip {
			c.skip -= n
			return
		}
	}
	if segment.PageByPage() {
		expectRows(c, r)
	}
	if seg, row, ok := r.only(); ok { // sorts and vectors leave many such sets
		c.add(seg, row)
		return
	}
	n, pass := 0, 64
	skips := c.distinct == nil && c.groups == nil && c.s.rounds == nil && c.wants() // all that it does up to the offset
	for m := newMerge(c.s.ix, r); m.next(); {
		if skips && c.skip > 0 {
			c.skip--
			if !c.s.cached.see(m.segment) {
				return
			}
			continue
		}
		if !c.add(m.segment, segment.Row(m.row)) {
			return
		}
		if n == pass && c.distinct != nil && c.s.rounds == nil { // duplicates are passed over, the more often the fewer values there are
			if left, ok := c.distinct.left(r); ok {
				m, pass = newMerge(c.s.ix, left), 4*pass
			}
		}
		if n == pass && c.groups != nil && c.s.rounds == nil { // skip documents of full groups likewise
			if pass *= 4; !c.groups.idle() {
				left := c.groups.left(r)
				if !left.isSame(r) {
					c.s.r.Plan.note("", groupPrune)
				}
				m = newMerge(c.s.ix, left.andNot(c.rows()))
			}
		}
		if n++; n%clockRows == 0 && (!c.wants() || c.groups != nil) && c.s.late() {
			return // behind the page there are only duplicates to count; with groups, most documents may be of full ones
		}
	}
}

// rows returns the hits.
func (c *page) rows() rows {
	r := make(rows, len(c.s.ix.Segments))
	for i := range c.hits {
		h := &c.hits[i]
		if r[h.Segment] == nil {
			r[h.Segment] = roaring.New()
		}
		r[h.Segment].Add(uint32(h.Row))
	}
	return r
}

// addEntries adds documents that are equal under all rules. pruned is that of their list.
func (c *page) addEntries(e []entry, pruned int) {
	if c.distinct == nil && len(e) <= c.skip {
		c.skip -= len(e)
		return
	}
	if c.groups != nil {
		if e, _ = c.groups.pruneList(c.s, e, pruned); len(e) == 0 {
			return
		}
	}
	if segment.PageByPage() {
		expectEntries(c, e)
	}
	if e[0].segment != e[len(e)-1].segment {
		for m := newEntryMerge(c.s.ix, e); m.next(); {
			if !c.add(m.segment, segment.Row(m.row)) {
				return
			}
		}
		return
	}
	for i := range e {
		if !c.add(int(e[i].segment), segment.Row(e[i].row)) {
			return
		}
	}
}

// mostExpected is for how many rows ids are asked for at once.
const mostExpected = 4096

// expected is how many rows of a segment may be needed until the page is full.
func expected(c *page) int { return max(0, min(c.skip+c.limit-len(c.hits), mostExpected)) }

// expectRows lets the ids of the first rows of each segment be read from the disk together, where each would be waited for.
func expectRows(c *page, r rows) {
	var buf [mostExpected]uint32
	for i, b := range r {
		if b != nil {
			n := b.ManyIterator().NextMany(buf[:expected(c)])
			c.s.ix.Segments[i].ExpectIDs(buf[:n])
		}
	}
}

// expectEntries is expectRows for entries, ordered by segment and row.
func expectEntries(c *page, e []entry) {
	var buf [mostExpected]uint32
	most := expected(c)
	for len(e) > 0 {
		n, seg := 0, e[0].segment
		for ; len(e) > 0 && e[0].segment == seg; e = e[1:] {
			if n < most {
				buf[n] = e[0].row
				n++
			}
		}
		c.s.ix.Segments[seg].ExpectIDs(buf[:n])
	}
}

// clockRows is after how many documents of a bucket the clock is looked at. (A variable, so that tests can lower it.)
var clockRows = 1 << 14

// add adds one document and reports whether those equal to it are still of interest.
func (c *page) add(seg int, row segment.Row) bool {
	r := c.s.rounds
	if r != nil {
		r.see(seg, row)
	}
	if c.groups != nil && !c.groups.keep(seg, row, len(c.hits)) {
		return r == nil || r.left > 0
	}
	if c.distinct != nil {
		if !c.distinct.Keep(seg, row) {
			return r == nil || r.left > 0
		}
		c.kept++
		if invariant.Enabled {
			c.order.check(c.s.ix, Hit{Segment: seg, Row: row, ID: idOf(c.s.ix, seg, row)}, c.s.stack)
		}
	}
	if c.s.inRetry() {
		r.retry.keep(Hit{Segment: seg, Row: row, ID: idOf(c.s.ix, seg, row)}, c.s.stack, c.wants())
	}
	switch {
	case c.skip > 0:
		c.skip--
	case len(c.hits) < c.limit:
		if n := len(c.hits); n == cap(c.hits) && n >= pageHits && !c.hold(2*n) {
			return false
		}
		c.hits = append(c.hits, Hit{Segment: seg, Row: row}) // result adds the ids
		if invariant.Enabled && c.distinct == nil {
			c.order.check(c.s.ix, Hit{Segment: seg, Row: row, ID: idOf(c.s.ix, seg, row)}, c.s.stack)
		}
		c.describe(&c.hits[len(c.hits)-1])
		if c.s.inRetry() && !c.wants() {
			r.retry.last = slices.Clone(c.s.stack)
		}
	}
	if r != nil {
		if c.groups != nil && c.groups.turned() {
			r.left = 0
		}
		return r.left > 0 && (c.groups == nil || c.wants())
	}
	return c.s.cached.see(seg) && (c.wants() || c.distinct != nil && !isCounted(c))
}

func idOf(ix *Index, seg int, row segment.Row) segment.DocID { return ix.Segments[seg].DocID(row) }

// isCounted reports whether the total is known, however many duplicates follow: distinct has kept as many documents as are counted.
func isCounted(c *page) bool {
	r := c.s.r
	if !r.HitsOnly || r.Exhaustive || r.Threshold != nil || c.kept < r.MaxTotal {
		return false
	}
	r.Plan.note("", fewKept)
	return true
}

// What hits take, in bytes.
const (
	hitBytes   = 88 // a Hit
	valueBytes = 80 // a ScoreValue
)

// hold charges the request for n hits of the size of the last one. Without enough memory it ends the page here and sets err.
func (c *page) hold(n int) bool {
	if len(c.hits) == 0 {
		return true
	}
	last := &c.hits[len(c.hits)-1]
	more := int64(n)*int64(hitBytes+valueBytes*cap(last.Values)+cap(last.Details)) - c.held
	if more <= 0 {
		return true
	}
	if err := c.s.turn.Account().Hold(more); err != nil {
		c.err, c.limit = err, len(c.hits)
		return false
	}
	c.held += more
	return true
}

// describe fills in what the request asks for of a hit: scores, details and values. It reads the verdicts of the open buckets.
func (c *page) describe(h *Hit) {
	r, verdicts := c.s.r, c.s.stack
	if r.Scores {
		h.Score = score(verdicts)
	}
	if r.Details {
		h.Details = appendDetails(nil, verdicts, func() []float64 { return scorerOf(c.s).of(h.Segment, uint32(h.Row)) })
	}
	if r.Values {
		h.Values, h.Spelling = appendValues(nil, verdicts), spellingOf(verdicts)
	}
}

// result makes the answer of the hits so far. Candidates are those that distinct leaves.
func (c *page) result() *Result {
	r := c.s.r
	if c.distinct != nil {
		most := math.MaxInt
		if r.HitsOnly {
			most = r.MaxTotal
		}
		c.candidates = c.distinct.Candidates(c.candidates, r.Exhaustive, most)
	}
	res := &Result{Candidates: slices.Clone(c.candidates), Total: min(c.candidates.count(), r.MaxTotal), Whole: c.whole}
	for i, b := range res.Candidates {
		if b == nil {
			res.Candidates[i] = roaring.New()
		}
	}
	first := min(c.first, len(c.hits))
	last := len(c.hits)
	if r.Exhaustive && r.Threshold != nil && !c.whole {
		last = min(last, first+max(0, min(r.Limit, r.MaxTotal-c.first)))
	}
	res.Hits = c.hits[first:last]
	for i := range res.Hits { // together, as each read misses the processor's cache
		h := &res.Hits[i]
		h.ID = idOf(c.s.ix, h.Segment, h.Row)
	}
	if c.groups != nil {
		res.Groups = c.groups.met
	}
	return res
}
