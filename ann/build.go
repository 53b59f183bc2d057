package ann

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"svc/simd"
)

// BuildOptions steers Build.
type BuildOptions struct {
	Degree  int // neighbours above level 0, twice as many on it; 16 when 0
	Effort  int // pool of the walk that finds a new row's neighbours; 200 when 0
	Threads int // 1 when 0; with 1 the same codes always give the same graph
	// Progress is called regularly with the number of finished rows (for Extend, of those to insert). Several goroutines may call it.
	Progress func(rows int)
}

// builder is a graph under construction.
type builder struct {
	codes    Codes
	degree   int
	effort   int
	levels   []uint8  // highest level of each row
	original []uint32 // of each row, see originals; nil: no rows are equal

	locks []sync.Mutex // locks[row] guards that row's slots on all levels
	links []uint32     // level 0, as in Graph
	above [][]uint32   // by row: its slots on levels 1, 2, …

	top struct {
		sync.RWMutex
		entry uint32
		level int
		any   bool
	}
}

// Build builds a graph over rows of codes, which it aliases. It stops with the
// context's error. Besides the graph it needs 33 bytes a row, 16 more while it looks for equal rows, and then 4 more if there are any.
func Build(ctx context.Context, codes Codes, o BuildOptions) (*Graph, error) {
	b, err := newBuilder(codes, o)
	if err != nil {
		return nil, err
	}
	b.original = originals(codes, nil)
	rows := make([]uint32, 0, len(b.levels))
	for row := range uint32(len(b.levels)) {
		if !isCopy(b.original, row) {
			b.place(row, b.levelOf(row))
			rows = append(rows, row)
		}
	}
	if err := b.insertAll(ctx, o, rows, 0); err != nil {
		return nil, err
	}
	b.hang()
	return b.graph(), nil
}

// newBuilder returns a builder of rows that are not placed on levels yet.
func newBuilder(codes Codes, o BuildOptions) (*builder, error) {
	if !codes.sound() || codes.Rows() > maxRows {
		return nil, fmt.Errorf("%d bytes of codes in rows of %d are too many, not padded or not aligned", len(codes.Bytes), codes.Stride)
	}
	b := &builder{codes: codes, degree: o.Degree, effort: o.Effort}
	if b.degree == 0 {
		b.degree = 16
	}
	if b.effort == 0 {
		b.effort = 200
	}
	rows := codes.Rows()
	b.levels = make([]uint8, rows)
	b.links = make([]uint32, rows*2*b.degree)
	b.above = make([][]uint32, rows)
	b.locks = make([]sync.Mutex, rows)
	for i := range b.links {
		b.links[i] = none
	}
	return b, nil
}

// place gives a row its highest level and the room for its links.
func (b *builder) place(row uint32, level uint8) {
	b.levels[row] = level
	if level > 0 {
		b.above[row] = make([]uint32, int(level)*b.degree)
		for i := range b.above[row] {
			b.above[row][i] = none
		}
	}
}

// aloneRows is the number of rows that a graph needs before several rows are inserted at the same time. Such rows do not find each
// other. With few other rows, too many links would go to the same ones, and some rows would become unreachable.
const aloneRows = 512

// insertAll links placed rows in order. So many others of the graph are linked.
func (b *builder) insertAll(ctx context.Context, o BuildOptions, rows []uint32, linked int) error {
	alone := min(len(rows), max(0, aloneRows-linked))
	single := o
	single.Threads, single.Progress = 1, nil
	if err := each(ctx, single, alone, func(w *walker, i int) { b.insert(w, rows[i]) }); err != nil {
		return err
	}
	if progress := o.Progress; progress != nil {
		o.Progress = func(rows int) { progress(alone + rows) }
	}
	return each(ctx, o, len(rows)-alone, func(w *walker, i int) { b.insert(w, rows[alone+i]) })
}

// each does n pieces of work in order, on the number of goroutines in the options. All of them have ended when it returns.
func each(ctx context.Context, o BuildOptions, n int, do func(w *walker, i int)) error {
	var next, done atomic.Int64
	var threads sync.WaitGroup
	for range max(1, o.Threads) {
		threads.Go(func() {
			w := new(walker)
			for ctx.Err() == nil {
				i := next.Add(1) - 1
				if i >= int64(n) {
					return
				}
				do(w, int(i))
				if n := done.Add(1); o.Progress != nil && n%1024 == 0 {
					o.Progress(int(n))
				}
			}
		})
	}
	threads.Wait()
	return ctx.Err()
}

// levelOf draws the level of a row: geometric with ratio 1/degree, from a hash
// of the row (splitmix64), so that it is the same in every build.
func (b *builder) levelOf(row uint32) uint8 {
	x := (uint64(row) + 1) * 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	u := (float64(x>>11) + 1) / (1 << 53) // in (0, 1]
	return uint8(min(maxLevels-1, -math.Log(u)/math.Log(float64(b.degree))))
}

// slotsLocked returns a row's slots on a level.
func (b *builder) slotsLocked(row uint32, l int) []uint32 {
	if l == 0 {
		return b.links[int(row)*2*b.degree : (int(row)+1)*2*b.degree]
	}
	return b.above[row][(l-1)*b.degree : l*b.degree]
}

func (b *builder) slots(buf []uint32, row uint32, l int) []uint32 {
	b.locks[row].Lock()
	buf = append(buf[:0], b.slotsLocked(row, l)...)
	b.locks[row].Unlock()
	return buf
}

func (b *builder) prefetch(row uint32) { simd.Prefetch(b.slotsLocked(row, 0)) }

// fill sets slots to the rows.
func fill(slots []uint32, rows []Neighbour) {
	for i := range slots {
		slots[i] = none
		if i < len(rows) {
			slots[i] = rows[i].Row
		}
	}
}

// insert links one row into the levels it is on. A row that is higher than all
// before it holds the top lock until it can be the entry.
func (b *builder) insert(w *walker, row uint32) {
	own := int(b.levels[row])
	b.top.RLock()
	entry, height, any := b.top.entry, b.top.level, b.top.any
	b.top.RUnlock()
	if !any || own > height {
		b.top.Lock()
		defer b.top.Unlock()
		entry, height, any = b.top.entry, b.top.level, b.top.any
		if !any {
			b.top.entry, b.top.level, b.top.any = row, own, true
			return
		}
		if own > height {
			defer func() { b.top.entry, b.top.level = row, own }()
		}
	}
	q := b.codes.row(row)
	w.descend(b, b.codes, q, len(b.levels), entry, height, min(own, height))
	for l := min(own, height); l >= 0; l-- {
		w.walk(b, b.codes, q, l, b.effort)
		found := make([]Neighbour, 0, len(w.pool))
		for _, c := range w.pool {
			if c.row() != row {
				found = append(found, Neighbour{c.row(), c.score()})
			}
		}
		chosen := b.diverse(found, b.chosenOn(l))
		b.locks[row].Lock()
		fill(b.slotsLocked(row, l), chosen)
		b.locks[row].Unlock()
		for _, n := range chosen {
			b.connect(w, n.Row, row, n.Score, l)
		}
		// The next level starts from all that was found on this one.
		w.again(len(b.levels))
	}
}

// chosenOn is how many neighbours a new row chooses on a level. On level 0 that is half as many again as above it, and a
// quarter of the slots stays free for the rows that choose it later.
func (b *builder) chosenOn(l int) int {
	if l == 0 {
		return b.degree + b.degree/2
	}
	return b.degree
}

// connect adds a neighbour to a row, making room by diversity when it is full.
func (b *builder) connect(w *walker, row, neighbour uint32, score int32, l int) {
	b.locks[row].Lock()
	defer b.locks[row].Unlock()
	s := b.slotsLocked(row, l)
	for i, old := range s {
		if old == neighbour {
			return
		}
		if old == none {
			s[i] = neighbour
			return
		}
	}
	w.scores = slices.Grow(w.scores[:0], len(s))[:len(s)]
	b.codes.gather(w.scores, b.codes.row(row), s)
	all := nearest{keep: len(s) + 1}
	all.add(neighbour, score)
	for i, old := range s {
		all.add(old, w.scores[i])
	}
	fill(s, b.diverse(all.sorted(), len(s)))
}

// diverse picks at most limit of the candidates (best first), leaving out
// those that are nearer to one already picked than to the base: they are
// reached through it.
func (b *builder) diverse(candidates []Neighbour, limit int) []Neighbour {
	if len(candidates) <= 1 {
		return candidates
	}
	picked := make([]Neighbour, 0, limit)
next:
	for _, c := range candidates {
		if len(picked) == limit {
			break
		}
		code := b.codes.row(c.Row)
		for _, p := range picked {
			if b.codes.pair(code, b.codes.row(p.Row)) > c.Score {
				continue next
			}
		}
		picked = append(picked, c)
	}
	return picked
}

// graph packs the levels.
func (b *builder) graph() *Graph {
	g := &Graph{codes: b.codes, rows: len(b.levels), degree: b.degree, entry: b.top.entry, links: b.links}
	g.upper = make([]level, b.top.level)
	for row, own := range b.levels {
		for l := 1; l <= int(own); l++ {
			lv := &g.upper[l-1]
			lv.nodes = append(lv.nodes, uint32(row))
			lv.links = append(lv.links, b.slotsLocked(uint32(row), l)...)
		}
	}
	return g
}
