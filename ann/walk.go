package ann

import (
	"math"
	"math/bits"
	"slices"
	"sync"

	"svc/simd"
)

// A candidate of a walk is one word: the score above, the row below, so that
// they order as scores do. Between them is a bit for being expanded.
type candidate uint64

const expanded candidate = 1 << 31

// maxRows bounds the rows of a graph: a candidate has 31 bits for one.
const maxRows = 1<<31 - 1

func newCandidate(score int32, row uint32) candidate {
	return candidate(uint32(score)^1<<31)<<32 | candidate(row)
}

func (c candidate) score() int32 { return int32(uint32(c>>32) ^ 1<<31) }
func (c candidate) row() uint32  { return uint32(c &^ expanded) }

// walker is the scratch memory of one walk through a graph.
type walker struct {
	met     simd.RowSet // by this walk
	pool    []candidate // best first, at most ef
	ahead   []candidate // for a restricted walk: a heap of rows to expand; for a scan of signs: the best rows
	ordered bool        // a scan of signs left the best rows in order, best first
	links   []uint32    // of the row that was expanded last; may be mapped memory of a graph
	several []uint32    // rows found by lines of signs
	fresh   []uint32
	scores  []int32
	kept    []candidate
	passed  []uint32         // by a forecast
	bySigns []int32          // scores by signs of fresh
	planes  []uint64         // of a query, to be compared with signs
	marks   []uint64         // a bit a row that is allowed
	room    *simd.MarkedRoom // memory for a scan by cache lines; nil before the first one
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// end puts a walker back. A slice of mapped memory must not outlive the view that maps it.
func (w *walker) end() {
	w.links = nil
	walkers.Put(w)
}

// none fills the slots of a node that it has no neighbours for; they are the last ones.
const none = ^uint32(0)

// linked is what a walk follows: the finished graph, or one being built.
type linked interface {
	// slots returns the neighbours of a row on a level up to the first none, in buf or in memory that does not change.
	slots(buf []uint32, row uint32, l int) []uint32
	// prefetch fetches the slots of a row on level 0 ahead of their use.
	prefetch(row uint32)
}

// insert puts a candidate into the pool of at most ef and returns its place,
// or ef when it is not better than all of a full pool.
func (w *walker) insert(score int32, row uint32, ef int) int {
	n := len(w.pool)
	x := newCandidate(score, row)
	if n < ef {
		w.pool = append(w.pool, 0)
		n++
	} else if w.pool[n-1]>>32 >= x>>32 {
		return ef
	}
	// Of the first n-1, those with at least this score stay before it. The direction of each step of the search is unpredictable, so
	// it is computed without branches.
	pool, least, lo := w.pool, x>>32<<32, 0
	for left := n - 1; left > 0; {
		half := (left + 1) / 2
		_, below := bits.Sub64(uint64(pool[lo+half-1]), uint64(least), 0)
		lo += half & (int(below) - 1)
		left -= half
	}
	copy(pool[lo+1:], pool[lo:])
	pool[lo] = x
	return lo
}

// score sets fresh to the rows, up to the first none, that this walk has not met before, and scores to their scores.
func (w *walker) score(c Codes, q []int8, rows []uint32) {
	w.fresh = w.met.AppendNew(w.fresh[:0], rows, c.Bytes, c.Stride)
	w.scores = slices.Grow(w.scores[:0], len(w.fresh))[:len(w.fresh)]
	c.gather(w.scores, q, w.fresh)
}

// walk fills the pool with the best ef rows of a level that it finds from
// where the pool stands.
func (w *walker) walk(g linked, c Codes, q []int8, l, ef int) {
	for next := 0; next < len(w.pool); {
		if w.pool[next]&expanded != 0 {
			next++
			continue
		}
		w.pool[next] |= expanded
		// Unless a better one is found, it is the one after it that comes next.
		for _, x := range w.pool[next+1:] {
			if x&expanded == 0 {
				g.prefetch(x.row())
				break
			}
		}
		w.links = g.slots(w.links, w.pool[next].row(), l)
		w.score(c, q, w.links)
		for _, x := range w.better(ef, math.MinInt64) {
			if at := w.insert(x.score(), x.row(), ef); at <= next {
				// It is likely to be the next one.
				g.prefetch(x.row())
				next = at
			}
		}
	}
}

// limit returns what a row has to score to belong into the pool of at most ef as it stands, and at least least.
func (w *walker) limit(ef int, least int64) int64 {
	if len(w.pool) == ef {
		return max(least, int64(w.pool[ef-1].score())+1)
	}
	return least
}

// better returns those of fresh that belong into the present pool of at most ef, and score least or more.
func (w *walker) better(ef int, least int64) []candidate {
	least = w.limit(ef, least)
	w.kept = slices.Grow(w.kept[:0], len(w.fresh))[:len(w.fresh)]
	kept, scores, n := w.kept, w.scores[:len(w.fresh)], 0
	for i, row := range w.fresh {
		kept[n] = newCandidate(scores[i], row)
		if int64(scores[i]) >= least {
			n++
		}
	}
	return kept[:n]
}

// descend leaves in the pool the row to start from on level to, as the only
// one seen.
func (w *walker) descend(g linked, c Codes, q []int8, rows int, entry uint32, from, to int) {
	w.met.Reset(rows)
	w.pool = append(w.pool[:0], newCandidate(c.pair(q, c.row(entry)), entry))
	w.met.Add(entry)
	for l := from; l > to; l-- {
		w.walk(g, c, q, l, 1)
		w.pool[0] &^= expanded
	}
	w.again(rows)
}

// again lets the next walk start from the pool on another level.
func (w *walker) again(rows int) {
	w.met.Reset(rows)
	for i, c := range w.pool {
		w.pool[i] = c &^ expanded
		w.met.Add(c.row())
	}
}

// pushAhead adds to the heap of candidates ahead, the best on top, and returns its place.
func (w *walker) pushAhead(x candidate) int {
	w.ahead = append(w.ahead, x)
	heap, i := w.ahead, len(w.ahead)-1
	for i > 0 {
		parent := (i - 1) / 2
		if heap[parent] >= x {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = x
	return i
}

// popAhead takes the best of the heap.
func (w *walker) popAhead() candidate {
	heap, last := w.ahead, len(w.ahead)-1
	best := heap[0]
	heap[0] = heap[last]
	heap = heap[:last]
	w.ahead = heap
	for i := 0; ; {
		child := 2*i + 1
		if child >= last {
			return best
		}
		if child+1 < last && heap[child+1] > heap[child] {
			child++
		}
		if heap[i] >= heap[child] {
			return best
		}
		heap[i], heap[child] = heap[child], heap[i]
		i = child
	}
}
