package ann

import (
	"github.com/RoaringBitmap/roaring/v2"
)

// Search appends the nearest rows to the query's code, best first, at most ef
// of them: more ef finds better neighbours and takes longer. allowed restricts
// the rows (nil: all). Where a scan of the allowed rows costs no more than the
// walk it is done instead, and is exact.
func (g *Graph) Search(dst []Neighbour, q []int8, ef int, allowed *roaring.Bitmap) []Neighbour {
	if g.rows == 0 || ef <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	if allowed == nil {
		w.descend(g, g.codes, q, g.rows, g.entry, len(g.upper), 0)
		w.walk(g, g.codes, q, 0, ef)
		return appendPool(dst, w.pool)
	}
	count := allowed.GetCardinality()
	// A walk scores about walked rows, and more the fewer of them are allowed.
	walked := uint64(g.degree) * uint64(ef) * uint64(g.rows) / max(1, count)
	if budget := count / scanAdvantage; walked < budget {
		w.descend(g, g.codes, q, g.rows, g.entry, len(g.upper), 0)
		if w.walkAllowed(g, q, ef, allowed, int(budget)) {
			return appendPool(dst, w.pool)
		}
	}
	return Scan(dst, g.codes, q, ef, allowed)
}

// scanAdvantage is how much cheaper a row is to score in a scan, where rows
// come in order, than in a walk.
const scanAdvantage = 3

func appendPool(dst []Neighbour, pool []candidate) []Neighbour {
	for _, c := range pool {
		dst = append(dst, Neighbour{c.row(), c.score()})
	}
	return dst
}

// walkAllowed replaces the pool by the best ef allowed rows that it finds from
// there. The walk leads through all rows and ends when none that is left to
// expand is better than the worst it found. It gives up after scoring budget
// rows: the allowed ones lie far from the query, or apart.
func (w *walker) walkAllowed(g *Graph, q []int8, ef int, allowed *roaring.Bitmap, budget int) bool {
	start := w.pool[0]
	w.pool = w.pool[:0]
	if allowed.Contains(start.row()) {
		w.insert(start.score(), start.row(), ef)
	}
	w.ahead = append(w.ahead[:0], start)
	for len(w.ahead) > 0 {
		best := w.popAhead()
		if len(w.pool) == ef && best>>32 < w.pool[ef-1]>>32 {
			break
		}
		w.links = g.slots(w.links, best.row(), 0)
		w.score(g.codes, q, w.links)
		if budget -= len(w.fresh); budget < 0 {
			return false
		}
		for i, row := range w.fresh {
			x := newCandidate(w.scores[i], row)
			if len(w.pool) == ef && x>>32 <= w.pool[ef-1]>>32 {
				continue
			}
			w.pushAhead(x)
			if allowed.Contains(row) {
				w.insert(w.scores[i], row, ef)
			}
		}
		if len(w.ahead) > 0 {
			g.prefetch(w.ahead[0].row())
		}
	}
	return true
}

// Scan appends the exactly nearest of the allowed rows (nil: all), at most
// keep of them, best first, equal ones by ascending row.
func Scan(dst []Neighbour, c Codes, q []int8, keep int, allowed *roaring.Bitmap) []Neighbour {
	rows := c.Rows()
	if rows == 0 || keep <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer walkers.Put(w)
	w.pool = w.pool[:0]
	var ids [256]uint32
	var scores [256]int32
	score := func(n int) {
		c.gather(scores[:n], q, ids[:n])
		for i, row := range ids[:n] {
			w.insert(scores[i], row, keep)
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
		return appendPool(dst, w.pool)
	}
	for it := allowed.ManyIterator(); ; {
		n := it.NextMany(ids[:])
		if n == 0 {
			return appendPool(dst, w.pool)
		}
		score(n)
	}
}
