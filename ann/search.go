package ann

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// walker is the scratch memory of one walk through a graph.
type walker struct {
	seen  []uint32 // seen[row] == epoch: the row was scored in this walk
	epoch uint32
	pool  []candidate // best first, at most ef
	ids   []uint32
	score []int32
}

// candidate is a row in the pool of a walk.
type candidate struct {
	score    int32
	row      uint32
	expanded bool
}

var walkers = sync.Pool{New: func() any { return new(walker) }}

// begin forgets what an earlier walk saw.
func (w *walker) begin(rows int) {
	if len(w.seen) < rows {
		w.seen, w.epoch = make([]uint32, rows), 0
	}
	w.epoch++
	if w.epoch == 0 {
		clear(w.seen)
		w.epoch = 1
	}
}

// linked is what a walk follows: the finished graph, or one being built.
type linked interface {
	appendNeighbours(dst []uint32, row uint32, l int) []uint32
}

// insert puts a candidate into the pool of at most ef and returns its place,
// or ef when it is worse than all of a full pool.
func (w *walker) insert(score int32, row uint32, ef int) int {
	n := len(w.pool)
	if n == ef && score <= w.pool[n-1].score {
		return ef
	}
	lo, hi := 0, n
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if w.pool[mid].score >= score {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if n < ef {
		w.pool = append(w.pool, candidate{})
	}
	copy(w.pool[lo+1:], w.pool[lo:])
	w.pool[lo] = candidate{score, row, false}
	return lo
}

// scored returns room for n scores.
func (w *walker) scored(n int) []int32 {
	if cap(w.score) < n {
		w.score = make([]int32, 2*n)
	}
	return w.score[:n]
}

// walk fills the pool with the best ef rows of a level that it finds from
// where the pool stands. It calls visit (when not nil) for every row it scores.
func (w *walker) walk(g linked, codes, q []int8, l, ef int, visit func(row uint32, score int32)) {
	for next := 0; next < len(w.pool); {
		if w.pool[next].expanded {
			next++
			continue
		}
		w.pool[next].expanded = true
		w.ids = g.appendNeighbours(w.ids[:0], w.pool[next].row, l)
		fresh := w.ids[:0]
		for _, id := range w.ids {
			if w.seen[id] != w.epoch {
				w.seen[id] = w.epoch
				fresh = append(fresh, id)
			}
		}
		scores := w.scored(len(fresh))
		simd.DotInt8Gather(scores, q, codes, fresh)
		for i, id := range fresh {
			if visit != nil {
				visit(id, scores[i])
			}
			if at := w.insert(scores[i], id, ef); at < next {
				next = at
			}
		}
	}
}

// descend leaves in the pool the row to start from on level to.
func (w *walker) descend(g linked, codes, q []int8, stride int, entry uint32, from, to int) {
	best := candidate{score: simd.DotInt8(q, codes[int(entry)*stride:(int(entry)+1)*stride]), row: entry}
	for l := from; l > to; l-- {
		for moved := true; moved; {
			moved = false
			w.ids = g.appendNeighbours(w.ids[:0], best.row, l)
			scores := w.scored(len(w.ids))
			simd.DotInt8Gather(scores, q, codes, w.ids)
			for i, id := range w.ids {
				if scores[i] > best.score {
					best, moved = candidate{score: scores[i], row: id}, true
				}
			}
		}
	}
	w.pool = append(w.pool[:0], best)
	w.seen[best.row] = w.epoch
}

// Search appends the nearest rows to the query's code, best first, at most ef
// of them: more ef finds better neighbours and takes longer. allowed restricts
// the rows (nil: all); the walk then collects allowed rows on its way through
// all, so a restriction to few rows belongs to Scan.
func (g *Graph) Search(dst []Neighbour, q []int8, ef int, allowed *roaring.Bitmap) []Neighbour {
	if g.rows == 0 || ef <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	w.begin(g.rows)
	w.descend(g, g.codes, q, g.stride, g.entry, len(g.upper), 0)
	if allowed == nil {
		w.walk(g, g.codes, q, 0, ef, nil)
		for _, c := range w.pool {
			dst = append(dst, Neighbour{c.row, c.score})
		}
		return dst
	}
	best := nearest{keep: ef}
	collect := func(row uint32, score int32) {
		if allowed.Contains(row) {
			best.add(row, score)
		}
	}
	collect(w.pool[0].row, w.pool[0].score)
	w.walk(g, g.codes, q, 0, ef, collect)
	return append(dst, best.sorted()...)
}

// Scan appends the exactly nearest of the allowed rows (nil: all), at most
// keep of them, best first.
func Scan(dst []Neighbour, codes []int8, stride int, q []int8, keep int, allowed *roaring.Bitmap) []Neighbour {
	rows := len(codes) / stride
	if rows == 0 || keep <= 0 {
		return dst
	}
	best := nearest{keep: keep}
	var ids [256]uint32
	var scores [256]int32
	score := func(n int) {
		simd.DotInt8Gather(scores[:n], q, codes, ids[:n])
		for i := range n {
			best.add(ids[i], scores[i])
		}
	}
	if allowed == nil {
		for at := 0; at < rows; {
			n := min(len(ids), rows-at)
			for i := range n {
				ids[i] = uint32(at + i)
			}
			score(n)
			at += n
		}
		return append(dst, best.sorted()...)
	}
	for it := allowed.ManyIterator(); ; {
		n := it.NextMany(ids[:])
		if n == 0 {
			return append(dst, best.sorted()...)
		}
		score(n)
	}
}
