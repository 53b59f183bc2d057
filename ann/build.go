package ann

import (
	"context"
	"math"
	"sync"
	"sync/atomic"

	"svc/simd"
)

// BuildOptions steers Build.
type BuildOptions struct {
	Degree  int // neighbours above level 0, twice as many on it; 16 when 0
	Effort  int // pool of the walk that finds a new row's neighbours; 150 when 0
	Threads int // 1 when 0; with 1 the same codes always give the same graph
	// Progress is called now and then with the number of rows done (of those to
	// insert, by Extend); it may be called by several goroutines.
	Progress func(rows int)
}

// builder is a graph under construction.
type builder struct {
	codes  []int8
	stride int
	degree int
	effort int
	levels []uint8 // highest level of each row

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
// context's error. Besides the graph it needs 33 bytes a row.
func Build(ctx context.Context, codes []int8, stride int, o BuildOptions) (*Graph, error) {
	b := newBuilder(codes, stride, o)
	for row := range b.levels {
		b.place(uint32(row), b.levelOf(uint32(row)))
	}
	if err := b.insertAll(ctx, o, len(b.levels), func(i int) uint32 { return uint32(i) }); err != nil {
		return nil, err
	}
	return b.graph(), nil
}

// newBuilder returns a builder of rows that are not placed on levels yet.
func newBuilder(codes []int8, stride int, o BuildOptions) *builder {
	b := &builder{codes: codes, stride: stride, degree: o.Degree, effort: o.Effort}
	if b.degree == 0 {
		b.degree = 16
	}
	if b.effort == 0 {
		b.effort = 150
	}
	rows := len(codes) / stride
	b.levels = make([]uint8, rows)
	b.links = make([]uint32, rows*(2*b.degree+1))
	b.above = make([][]uint32, rows)
	b.locks = make([]sync.Mutex, rows)
	return b
}

// place gives a row its highest level and the room for its links.
func (b *builder) place(row uint32, level uint8) {
	b.levels[row] = level
	if level > 0 {
		b.above[row] = make([]uint32, int(level)*(b.degree+1))
	}
}

// insertAll links n placed rows, row(0) first.
func (b *builder) insertAll(ctx context.Context, o BuildOptions, n int, row func(i int) uint32) error {
	return each(ctx, o, n, func(w *walker, i int) { b.insert(w, row(i)) })
}

// each does n pieces of work in order, with as many goroutines as the options
// name, all of which have ended when it returns.
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

func (b *builder) code(row uint32) []int8 {
	return b.codes[int(row)*b.stride : (int(row)+1)*b.stride]
}

// slotsLocked returns a row's links on a level: a count, then neighbours.
func (b *builder) slotsLocked(row uint32, l int) []uint32 {
	if l == 0 {
		n := 2*b.degree + 1
		return b.links[int(row)*n : (int(row)+1)*n]
	}
	n := b.degree + 1
	return b.above[row][(l-1)*n : l*n]
}

func (b *builder) appendNeighbours(dst []uint32, row uint32, l int) []uint32 {
	b.locks[row].Lock()
	s := b.slotsLocked(row, l)
	dst = append(dst, s[1:1+s[0]]...)
	b.locks[row].Unlock()
	return dst
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
	q := b.code(row)
	w.begin(len(b.levels))
	w.descend(b, b.codes, q, b.stride, entry, height, min(own, height))
	for l := min(own, height); l >= 0; l-- {
		w.walk(b, b.codes, q, l, b.effort, nil)
		limit := b.degree
		if l == 0 {
			limit = 2 * b.degree
		}
		found := make([]Neighbour, 0, len(w.pool))
		for _, c := range w.pool {
			if c.row != row {
				found = append(found, Neighbour{c.row, c.score})
			}
		}
		chosen := b.diverse(found, b.degree)
		b.locks[row].Lock()
		s := b.slotsLocked(row, l)
		s[0] = uint32(len(chosen))
		for i, n := range chosen {
			s[1+i] = n.Row
		}
		b.locks[row].Unlock()
		for _, n := range chosen {
			b.connect(n.Row, row, n.Score, l, limit)
		}
		// The next level starts from all that was found on this one.
		w.begin(len(b.levels))
		for i := range w.pool {
			w.pool[i].expanded = false
			w.seen[w.pool[i].row] = w.epoch
		}
	}
}

// connect adds a neighbour to a row, making room by diversity when it is full.
func (b *builder) connect(row, neighbour uint32, score int32, l, limit int) {
	b.locks[row].Lock()
	defer b.locks[row].Unlock()
	s := b.slotsLocked(row, l)
	n := int(s[0])
	for _, old := range s[1 : 1+n] {
		if old == neighbour {
			return
		}
	}
	if n < limit {
		s[1+n] = neighbour
		s[0]++
		return
	}
	scores := make([]int32, n)
	simd.DotInt8Gather(scores, b.code(row), b.codes, s[1:1+n])
	all := nearest{keep: n + 1}
	all.add(neighbour, score)
	for i, old := range s[1 : 1+n] {
		all.add(old, scores[i])
	}
	kept := b.diverse(all.sorted(), limit)
	s[0] = uint32(len(kept))
	for i, x := range kept {
		s[1+i] = x.Row
	}
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
		code := b.code(c.Row)
		for _, p := range picked {
			if simd.DotInt8(code, b.code(p.Row)) > c.Score {
				continue next
			}
		}
		picked = append(picked, c)
	}
	return picked
}

// graph packs the levels.
func (b *builder) graph() *Graph {
	g := &Graph{stride: b.stride, codes: b.codes, rows: len(b.levels), degree: b.degree, entry: b.top.entry, links: b.links}
	g.upper = make([]level, b.top.level)
	n := b.degree + 1
	for row, own := range b.levels {
		for l := 1; l <= int(own); l++ {
			lv := &g.upper[l-1]
			lv.nodes = append(lv.nodes, uint32(row))
			lv.links = append(lv.links, b.above[row][(l-1)*n:l*n]...)
		}
	}
	return g
}
