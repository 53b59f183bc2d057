package rank

import (
	"encoding/binary"
	"math"

	"svc/internal/resultcache"
	"svc/segment/rowlist"
)

// Scores of the same functions are needed again and again, and a segment never changes. So svc caches the levels of all rows of a run
// that starts at a multiple of its length, one byte each, once large buckets have requested rows of the run twice. A search computes
// at most one run, because that takes some milliseconds.

// scoreCached reads the levels of rows that were cached.
const scoreCached accessPath = "cached levels of the score"

// Runs have 1<<scoreRunBits rows, and are computed if a bucket has at least scoreRunRows of them. (Variables, so that tests can lower
// them.)
var (
	scoreRunBits = 14
	scoreRunRows = 64
)

var rowCosts = resultcache.NewKind[[]uint8]("costs of rows by score functions")

// costRuns are what a search knows of cached runs.
type costRuns struct {
	lasts bool        // costs depend only on the functions and the segment
	made  bool        // a run was made
	known [][]costRun // by segment and run
	keys  [][]byte    // by segment; nil: not computed yet
}

// costRun is what a search knows of one run.
type costRun struct {
	costs   []uint8 // by row; nil: they are not cached
	read    bool    // the cache was asked for them
	refused bool    // a large bucket requested them, but they were not computed
}

// costsOf returns the costs of the rows of a segment's run, or nil if they are not cached. A bucket with at least scoreRunRows of the
// rows requests their computation. The last run is shorter than the others, and a forged segment may name rows and runs that it does
// not have.
func (p *scorer) costsOf(s *search, seg, run, asks int) []uint8 {
	c := &p.runs
	if !c.lasts {
		return nil
	}
	if c.known == nil {
		c.known, c.keys = make([][]costRun, len(s.ix.Segments)), make([][]byte, len(s.ix.Segments))
	}
	rows := s.ix.Segments[seg].Rows()
	if c.known[seg] == nil {
		c.known[seg] = make([]costRun, (rows-1)>>scoreRunBits+1)
		c.keys[seg] = p.costsKey(seg)
	}
	if run >= len(c.known[seg]) {
		return nil
	}
	known := &c.known[seg][run]
	if known.costs != nil || known.refused || known.read && asks < scoreRunRows {
		return known.costs
	}
	scope, key := s.ix.OfSegment(seg).Scope, binary.AppendUvarint(c.keys[seg], uint64(run))
	if !known.read {
		known.read = true
		known.costs, _ = rowCosts.Get(scope, key)
	}
	if known.costs != nil || asks < scoreRunRows {
		return known.costs
	}
	known.refused = true // for this search; a second search is admitted
	if !c.made && rowCosts.Admit(scope, key) {
		c.made = true
		if known.costs = p.makeCosts(s, seg, run<<scoreRunBits, min((run+1)<<scoreRunBits, rows)); known.costs != nil {
			rowCosts.Put(scope, key, known.costs, 64+len(known.costs))
		}
	}
	return known.costs
}

// costsKey returns a key of everything that the costs in a segment depend on. A change of the settings may add or remove a column.
func (p *scorer) costsKey(seg int) []byte {
	key := append(binary.AppendUvarint(nil, uint64(len(p.text))), p.text...)
	for i := range p.functions {
		f := &p.functions[i]
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(f.origin))
		numbers, strings := 0, 0
		if f.columns != nil && f.columns[seg] != nil {
			numbers, strings = f.columns[seg].Numbers(), f.columns[seg].Strings()
		}
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(numbers)), uint64(strings))
	}
	return key
}

// makeCosts returns the costs of the rows of a segment in a range, or nil when time is over. It computes exact sums only for rows
// whose bounds are at two levels.
func (p *scorer) makeCosts(s *search, seg, from, to int) []uint8 {
	all, base, least, bounded := p.bounds(s.ix, seg)
	costs := make([]uint8, to-from)
	var rows [scoreRows]uint32
	var low, up [scoreRows]uint32
	for ; from < to; from += scoreRows {
		if s.late() {
			return nil
		}
		at, n := len(costs)-(to-from), min(scoreRows, to-from)
		for i := range n {
			rows[i] = uint32(from + i)
		}
		open := rows[:n]
		if bounded {
			for i := range n {
				low[i], up[i] = least, base
			}
			p.addBounds(seg, all, rows[:n], low[:n], up[:n])
			open = rows[:0]
			for i, row := range rows[:n] {
				level := p.levelOf(up[i])
				if costs[at+i] = uint8(int(p.levels) - 1 - level); level != p.levelOf(low[i]) {
					open = append(open, row)
				}
			}
		}
		for i, sum := range p.sum(seg, open) {
			costs[at+int(open[i])-from] = uint8(p.cost(sum))
		}
	}
	return costs
}

// addBounds adds to the bounds of rows the difference between their values and rows without values.
func (p *scorer) addBounds(seg int, all []*shareBounds, rows, low, up []uint32) {
	for i, b := range all {
		if b == nil {
			continue
		}
		p.ords, p.places = p.functions[i].columns[seg].EachNumber(p.ords[:0], p.places[:0], rows)
		for k := 0; k < len(p.ords); { // among several values the one with the largest share counts
			place, least, most := p.places[k], uint32(0), uint32(0)
			for ; k < len(p.ords) && p.places[k] == place; k++ {
				block := p.ords[k] >> b.shift
				least, most = max(least, b.least.most[block]), max(most, b.most[block])
			}
			low[place] += least - b.least.missing
			up[place] += most - b.missing
		}
	}
}

// cachedCosts writes the costs of rows of a segment. ok is false if some are not cached.
func (p *scorer) cachedCosts(s *search, seg int, rows, costs []uint32) (ok bool) {
	for i, row := range rows {
		of, at := p.costsOf(s, seg, int(row>>scoreRunBits), 0), int(row&(1<<scoreRunBits-1))
		if at >= len(of) {
			return false
		}
		costs[i] = uint32(of[at])
	}
	return true
}

// sortedRows are rows of a segment by their cost.
type sortedRows struct {
	rows []uint32
	ends []int // by cost: of its rows
}

// sortedRowBytes is what sortedRows take for a row.
const sortedRowBytes = 4

// sortCached sorts the rows of a segment whose costs are cached. It returns the other rows, overwriting rows; if there is not enough
// memory, it returns all. The request is charged until the search ends.
func (p *scorer) sortCached(s *search, seg int, rows []uint32) (sorted sortedRows, rest []uint32) {
	rest = rows[:0]
	known := 0
	counts := make([]int, int(p.levels))
	eachRun(rows, func(run int, of []uint32) {
		costs := p.costsOf(s, seg, run, len(of))
		of, _ = withCosts(of, costs)
		known += len(of)
		for _, row := range of {
			counts[costs[row&(1<<scoreRunBits-1)]]++
		}
	})
	if known == 0 || s.turn.Account().Hold(int64(known)*sortedRowBytes) != nil {
		return sortedRows{}, rows
	}
	p.held += int64(known) * sortedRowBytes
	at := 0
	for cost, n := range counts { // where the rows of a cost begin, and later end
		counts[cost] = at
		at += n
	}
	sorted = sortedRows{make([]uint32, known), counts}
	eachRun(rows, func(run int, of []uint32) {
		costs := p.costsOf(s, seg, run, 0)
		of, others := withCosts(of, costs)
		for _, row := range of {
			end := &counts[costs[row&(1<<scoreRunBits-1)]]
			sorted.rows[*end] = row
			*end++
		}
		rest = append(rest, others...)
	})
	return sorted, rest
}

// withCosts splits ascending rows of a run into those that have costs and the others.
func withCosts(rows []uint32, costs []uint8) (of, others []uint32) {
	n := len(rows)
	if costs == nil {
		n = 0
	}
	for n > 0 && int(rows[n-1]&(1<<scoreRunBits-1)) >= len(costs) {
		n--
	}
	return rows[:n], rows[n:]
}

// eachRun calls f for the rows of each run. Rows ascend.
func eachRun(rows []uint32, f func(run int, of []uint32)) {
	for len(rows) > 0 {
		run, n := rows[0]>>scoreRunBits, 1
		for n < len(rows) && rows[n]>>scoreRunBits == run {
			n++
		}
		f(int(run), rows[:n])
		rows = rows[n:]
	}
}

// of returns the rows with a cost.
func (r *sortedRows) of(cost int) []uint32 {
	switch {
	case r.rows == nil:
		return nil
	case cost == 0:
		return r.rows[:r.ends[0]]
	}
	return r.rows[r.ends[cost-1]:r.ends[cost]]
}

// addTo adds the rows of some costs to those that were found.
func (r *sortedRows) addTo(found []rows, seg, segments, from, to int) {
	for cost := from; cost < to; cost++ {
		list := r.of(cost)
		if len(list) == 0 {
			continue
		}
		if found[cost] == nil {
			found[cost] = make(rows, segments)
		}
		found[cost][seg] = or(found[cost][seg], rowlist.FromRows(list))
	}
}
