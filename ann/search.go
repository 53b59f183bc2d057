package ann

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// Reach says how far a walk goes: more finds better neighbours and takes longer. With only a Pool, a walk continues until it has
// expanded every row of the pool.
type Reach struct {
	Pool int // the most rows that are kept, and looked beyond

	// With Wanted, only the best so many rows of the pool matter. The walk does not expand rows that are clearly further away than
	// the last of them: by a fraction of its distance, and by more than the error of codes (P. Al-Jazzazi et al., "Distance Adaptive
	// Beam Search for Provably Accurate Graph-Based Nearest Neighbor Search", 2025). And it ends after Patience steps that found none
	// of them, plus half as many as it took to find the last. So it is short if the neighbours stand out, and long if many rows are
	// about as near.
	Wanted, Patience int
	Perfect          int64 // the score of a row that is like the query
	Blur             int64 // by how much scores can be wrong
}

// Times returns a reach that is n times as far.
func (r Reach) Times(n int) Reach {
	r.Pool, r.Wanted, r.Patience = n*r.Pool, n*r.Wanted, n*r.Patience
	return r
}

// Search appends the nearest rows to the query's code, best first, at most the size of the pool. allowed restricts the rows (nil:
// all). signs are the rows' signs, by which a walk may judge rows; the zero value if there are none. If a scan of the allowed rows
// costs no more than the walk, Search scans instead. The scan is exact if look is 0. Otherwise it compares the codes of the look best
// rows by signs. With signs.Instead it never walks. Then allowed must not be nil, unless look is 0.
func (g *Graph) Search(dst []Neighbour, q []int8, r Reach, allowed *roaring.Bitmap, signs Signs, look int) []Neighbour {
	if g.rows == 0 || r.Pool <= 0 {
		return dst
	}
	if signs.Instead {
		if look > 0 {
			return signs.Among(dst, g.codes, q, look, r, allowed)
		}
		return Scan(dst, g.codes, q, r.Pool, allowed)
	}
	w := walkers.Get().(*walker)
	defer w.end()
	f := forecast{}
	if signs.Forecast() {
		f = w.newForecast(signs)
	}
	if allowed == nil {
		w.descend(g, g.codes, q, g.rows, g.entry, len(g.upper), 0)
		w.seek(g, q, r, f)
		if n := w.farther(g, r, 1); n > 1 {
			w.descend(g, g.codes, q, g.rows, g.entry, len(g.upper), 0)
			r.Pool, r.Patience = n*r.Pool, n*r.Patience
			w.seek(g, q, r, f)
		}
		return appendPool(dst, w.pool)
	}
	count := allowed.GetCardinality()
	// A walk scores about walked rows, times the rarity of allowed ones.
	walked, rarity := float64(g.degree)*float64(r.steps()), float64(g.rows)/float64(max(1, count))
	x := restriction{allowed: allowed, rarity: rarity, budget: int(count / scanAdvantage), longer: scanLonger}
	most := float64(x.budget)
	if !simd.HasSignsKernel() && !signs.marks(allowed) {
		look = 0 // a row by itself costs as much to compare by signs as by codes
	}
	if look > 0 {
		compared, advantage := count, uint64(signsAdvantage)
		if simd.HasSignsKernel() {
			advantage = signsKernelAdvantage
		}
		switch {
		case signs.gathered(count):
			if simd.HasSignsLines() && signs.Stride == 2 {
				compared, advantage = count/4, signsMemoryAdvantage // cache lines
			}
		case signs.marks(allowed):
			if simd.HasSignsLines() {
				compared = min(count, uint64(g.rows)/4)
			}
			if len(signs.Words) > cachedSigns {
				advantage = min(advantage, signsMemoryAdvantage)
			}
		}
		scan := compared/advantage + uint64(look)
		most, x.budget, x.longer = float64(scan), int(signsBudget*scan), signsLonger
	}
	if f.signs.Stride > 0 {
		x.longer = x.longer.times(forecastPatience)
	}
	x.rarest = most / walked
	if rarity < x.rarest {
		w.descend(g, g.codes, q, g.rows, g.entry, len(g.upper), 0)
		if len(signs.Words) <= quickSigns { // comparing signs after a walk costs little, so doubt the walk sooner
			rarity, x.doubts = 1, look > 0
		}
		if w.seekAllowed(g, q, r, f, x) && (look == 0 || w.farther(g, r, rarity) == 1) {
			return appendPool(dst, w.pool)
		}
	}
	if look > 0 {
		return signs.Among(dst, g.codes, q, look, r, allowed)
	}
	return Scan(dst, g.codes, q, r.Pool, allowed)
}

// patience returns after how many steps a walk ends that found none of the wanted.
func (r Reach) patience() int {
	if r.Wanted <= 0 {
		return math.MaxInt
	}
	return r.Patience
}

// settled is how many rows Among returns at most.
func (r Reach) settled() int {
	if r.Wanted > 0 {
		return min(r.Pool, 4*r.Wanted+64)
	}
	return r.Pool
}

// steps is about how many steps a walk takes, where all rows are allowed.
func (r Reach) steps() int {
	if r.Wanted > 0 {
		return r.Patience
	}
	return r.Pool
}

// scanAdvantage is how many rows a scan, which reads rows in order, scores in the time that a walk needs for one. Scans of signs have
// advantages of their own, which do not count the time for comparing codes afterwards:
//
//   - signsAdvantage without a kernel;
//   - signsKernelAdvantage with the kernels, for a row or a cache line of several rows;
//   - signsMemoryAdvantage for rows of two words that exceed cachedSigns in total, and for lines of gathered signs. These do not stay in
//     the second-level cache.
//
// All were fitted to measured walks. A walk gives up once it has scored signsBudget times the rows that it could score in the time of the
// scan. Up to quickSigns, a scan takes at most about twice as long as a walk.
const (
	scanAdvantage        = 3
	signsAdvantage       = 26
	signsKernelAdvantage = 74
	signsMemoryAdvantage = 30
	cachedSigns          = 1 << 18 // words
	quickSigns           = 1 << 20 // words
	signsBudget          = 4
)

func appendPool(dst []Neighbour, pool []candidate) []Neighbour {
	for _, c := range pool {
		dst = append(dst, Neighbour{c.row(), c.score()})
	}
	return dst
}

// least returns the score from which on rows are looked beyond, as the pool stands. With the usual patience, about 40, that is a
// quarter of the distance of the last of the wanted beyond it.
func (w *walker) least(r Reach) int64 {
	if r.Wanted <= 0 || len(w.pool) < r.Wanted {
		return math.MinInt64
	}
	last := int64(w.pool[r.Wanted-1].score())
	return last - max((r.Perfect-last)*int64(160+r.Patience)/800, r.Blur)
}

// seek is walk on level 0 as far as r says. It compares the rows that the forecast passes.
func (w *walker) seek(g *Graph, q []int8, r Reach, f forecast) {
	least, end := w.least(r), r.patience()
	for next, steps := 0, 0; next < len(w.pool) && steps < end; {
		x := w.pool[next]
		if x&expanded != 0 {
			next++
			continue
		}
		if int64(x.score()) < least {
			break
		}
		w.pool[next] |= expanded
		steps++
		// Unless a better one is found, it is the one after it that comes next.
		for _, x := range w.pool[next+1:] {
			if x&expanded == 0 {
				g.prefetch(x.row())
				break
			}
		}
		w.links = g.slots(w.links, w.pool[next].row(), 0)
		w.fresh = w.fresh[:0]
		f.meet(w, g.codes, w.links)
		f.score(w, g.codes, q, w.limit(r.Pool, least))
		for _, x := range w.better(r.Pool, least) {
			at := w.insert(x.score(), x.row(), r.Pool)
			if at < r.Wanted {
				end = steps + steps + steps/2 + r.Patience
			}
			if at <= next {
				// It is likely to be the next one.
				g.prefetch(x.row())
				next = at
			}
		}
		// Rows that will not be expanded are not needed.
		least = w.least(r)
		for n := len(w.pool); n > 0 && int64(w.pool[n-1].score()) < least; n-- {
			w.pool = w.pool[:n-1]
		}
	}
}

const (
	// nearLink says which neighbour measures how far apart rows are: the fourth-nearest. The very nearest may be duplicates.
	nearLink = 4

	// farAway is how many times this distance the last wanted row has to be away. For queries that are drawn as the rows are, it is 1.0 to
	// 1.3 times, and seldom 1.6. For queries far from clusters of 80 to 400 rows it is 2 to 25 times.
	farAway = 1.6

	// mostTimes is the most that farther returns.
	mostTimes = 8

	// doubtAway is how many times this distance the last wanted row has to be away for a walk with doubts to give up early, after as many
	// steps as its patience. Few queries near a row are so far from the rows found until then, about one in 200.
	doubtAway = 2
)

// farther returns by which factor the walk that found the pool has to go farther. Links lead to the neighbours of rows. If the query
// is much farther from the wanted rows than they are from each other, they lie in several places with few links in between. rarity is
// that of allowed rows: the rarer they are, the farther apart.
func (w *walker) farther(g *Graph, r Reach, rarity float64) int {
	distance, apart, ok := w.distances(g, r, rarity)
	if !ok || distance <= farAway*apart {
		return 1
	}
	return int(min(max(distance/apart+0.5, 2), mostTimes))
}

// distances returns the distance of the last wanted row from the query, and, in the same unit, that of the best row from a near neighbour.
// ok is false if they are unknown.
func (w *walker) distances(g *Graph, r Reach, rarity float64) (distance, apart float64, ok bool) {
	if r.Wanted <= 0 || len(w.pool) < r.Wanted {
		return 0, 0, false
	}
	row := w.pool[0].row()
	links := neighbours(g.slots(w.links, row, 0))
	near := min(int(nearLink*rarity), len(links))
	if near < nearLink || slices.ContainsFunc(links, func(row uint32) bool { return int(row) >= g.rows }) {
		return 0, 0, false
	}
	w.scores = slices.Grow(w.scores[:0], len(links))[:len(links)]
	code := g.codes.row(row)
	g.codes.gather(w.scores, code, links)
	slices.Sort(w.scores)
	like := int64(g.codes.pair(code, code))
	distance, apart = float64(r.Perfect-int64(w.pool[r.Wanted-1].score())), float64(like-int64(w.scores[len(links)-near]))
	if !g.codes.Bits { // scores with a query and of two rows have different scales
		distance, apart = distance*float64(like), apart*float64(r.Perfect)
	}
	return distance, apart, true
}

// seemsFar reports whether the query seems to be far from all rows, in the middle of a walk. Then other rows are about as far away as the
// best one.
func (w *walker) seemsFar(g *Graph, r Reach) bool {
	if r.Wanted <= 0 || len(w.pool) < r.Wanted {
		return false
	}
	if best, last := r.Perfect-int64(w.pool[0].score()), r.Perfect-int64(w.pool[r.Wanted-1].score()); 2*last > 3*best {
		return false
	}
	distance, apart, ok := w.distances(g, r, 1)
	return ok && distance > doubtAway*apart
}

// restriction is what a walk knows about the allowed rows.
type restriction struct {
	allowed *roaring.Bitmap
	rarity  float64 // rows of the graph to an allowed one
	rarest  float64 // the rarity from which on something else than a walk is cheaper
	budget  int     // of rows to score
	longer  longer
	doubts  bool // the walk gives up early if the query seems to be far from all rows
}

// longer says how many times as patient a walk is that leads through rows that are not allowed: base + slope · rarity.
type longer struct{ slope, base float64 }

func (l longer) times(n float64) longer { return longer{n * l.slope, n * l.base} }

// than returns the patience of a walk with the given one where all rows are allowed.
func (l longer) than(patience int, rarity float64) int {
	return int(min(float64(patience)*(l.slope*rarity+l.base), math.MaxInt32))
}

// The patience of walks when codes, or signs, can be compared instead.
var (
	scanLonger  = longer{slope: 4.0 / 3}
	signsLonger = longer{slope: 0.9, base: 0.55}
)

const (
	// expandedTogether is how many rows a walk looks beyond at once, so that their neighbours are fetched at once.
	expandedTogether = 4

	// rarityRows is after how many rows the rarity that a walk meets counts as much as that in the graph. rarerStill is how many times
	// the rarity that does not pay makes a walk give up.
	rarityRows = 64
	rarerStill = 1.25
)

// seekAllowed replaces the pool by the best allowed rows that it finds from there. The walk leads through all rows and ends when none that
// is left to expand is better than the worst it found, or when it found none of the wanted for too many steps. It compares the rows that
// the forecast passes. How many steps are too many follows from the rarity of allowed rows among those that it met: a filter may leave few
// rows near the query, or nearly all. It gives up when they are too rare, after scoring budget rows, or if it has doubts and the query
// seems to be far from all rows.
func (w *walker) seekAllowed(g *Graph, q []int8, r Reach, f forecast, x restriction) bool {
	w.mark(x.allowed, g.rows)
	start := w.pool[0]
	w.pool = w.pool[:0]
	for _, c := range w.ofMarked([]candidate{start}) {
		w.insert(c.score(), c.row(), r.Pool)
	}
	w.ahead = append(w.ahead[:0], start)
	met, hits := float64(rarityRows), rarityRows/x.rarity
	for steps, last := 0, 0; len(w.ahead) > 0; {
		if met > 4*rarityRows { // rows that were met long ago, far from the query, count less
			met, hits = met/2, hits/2
		}
		if x.doubts && steps >= r.Patience {
			if x.doubts = false; w.seemsFar(g, r) {
				return false
			}
		}
		rarity := met / hits
		if rarity > rarerStill*x.rarest {
			return false
		}
		least := w.least(r)
		if len(w.pool) == r.Pool {
			least = max(least, int64(w.pool[r.Pool-1].score()))
		}
		if len(w.pool) >= r.Wanted && steps-last >= x.longer.than(r.patience(), rarity) || int64(w.ahead[0].score()) < least {
			break
		}
		w.fresh = w.fresh[:0]
		for range expandedTogether {
			if len(w.ahead) == 0 || int64(w.ahead[0].score()) < least {
				break
			}
			w.links = g.slots(w.links, w.popAhead().row(), 0)
			f.meet(w, g.codes, w.links)
			steps++
		}
		// Unless better ones are found, these come next.
		for _, c := range w.ahead[:min(len(w.ahead), expandedTogether)] {
			g.prefetch(c.row())
		}
		f.score(w, g.codes, q, w.limit(r.Pool, least))
		if x.budget -= len(w.fresh); x.budget < 0 {
			return false
		}
		better := w.better(r.Pool, least)
		for _, c := range better {
			if at := w.pushAhead(c); at < expandedTogether {
				g.prefetch(c.row())
			}
		}
		met += float64(len(better))
		allowed := w.ofMarked(better)
		hits += float64(len(allowed))
		for _, c := range allowed {
			if w.insert(c.score(), c.row(), r.Pool) < r.Wanted {
				last = steps
			}
		}
	}
	return true
}

// ofMarked keeps the candidates whose rows are in w.marks. No branch depends on these.
func (w *walker) ofMarked(some []candidate) []candidate {
	n := 0
	for _, c := range some {
		some[n] = c
		n += int(w.marks[c.row()/64] >> (c.row() % 64) & 1)
	}
	return some[:n]
}

// Scan appends the exactly nearest of the allowed rows (nil: all), at most
// keep of them, best first, equal ones by ascending row.
func Scan(dst []Neighbour, c Codes, q []int8, keep int, allowed *roaring.Bitmap) []Neighbour {
	rows := c.Rows()
	if rows == 0 || keep <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer w.end()
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
