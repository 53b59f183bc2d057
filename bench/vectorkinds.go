package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
	"svc/simd"
)

// kindQueries is how many queries of a kind are asked.
const kindQueries = 200

// A vectorKind is a data set that is hard or easy for graphs and signs in a way of its own.
type vectorKind struct {
	name string
	make func() *vectorSet
}

// clusters says how vectors are drawn around random centres. Deviations are of each component, of unit vectors.
type clusters struct {
	rows, columns, centres int
	wide                   float64 // deviation from a centre, whose components have deviation 1
	away                   float64 // deviation of a query from a row, which has length 1
}

// draw draws vectors, and queries near some of them.
func (c clusters) draw() *vectorSet {
	r := rand.New(rand.NewPCG(6, uint64(c.centres)))
	centres := normalFloats(r, c.centres*c.columns)
	s := &vectorSet{
		base:    &matrix{rows: c.rows, columns: c.columns, data: make([]float32, c.rows*c.columns)},
		queries: &matrix{rows: kindQueries, columns: c.columns, data: make([]float32, kindQueries*c.columns)},
	}
	for i := range c.rows {
		centre := centres[r.IntN(c.centres)*c.columns:]
		for j := range s.base.row(i) {
			s.base.row(i)[j] = centre[j] + float32(c.wide*r.NormFloat64())
		}
	}
	s.normalize()
	for i := range kindQueries {
		near := s.base.row(r.IntN(c.rows))
		for j := range near {
			s.queries.row(i)[j] = near[j] + float32(c.away*r.NormFloat64())
		}
	}
	s.normalize()
	return s
}

// vectorKinds are the kinds of data that recall is measured with. dir has real vectors, if it is not empty.
func vectorKinds(dir string) ([]vectorKind, error) {
	drawn := func(name string, c clusters) vectorKind {
		return vectorKind{fmt.Sprintf("%s, %d of %d", name, c.rows, c.columns), c.draw}
	}
	latent := func(rows, columns int) vectorKind {
		return vectorKind{fmt.Sprintf("64 directions, %d of %d", rows, columns), func() *vectorSet { return generateVectors(rows, kindQueries, columns) }}
	}
	kinds := []vectorKind{
		drawn("wide clusters, far queries", clusters{80_000, 128, 200, 0.7, 0.2}),
		drawn("wide clusters, near queries", clusters{80_000, 128, 200, 0.7, 0.03}),
		drawn("narrow clusters, far queries", clusters{80_000, 128, 1000, 0.2, 0.2}),
		drawn("narrow clusters, near queries", clusters{80_000, 128, 1000, 0.2, 0.01}),
		drawn("no clusters", clusters{50_000, 128, 1, 100, 10}),
		drawn("no clusters", clusters{100_000, 32, 1, 100, 10}),
		drawn("wide clusters, near queries", clusters{30_000, 768, 100, 0.7, 0.02}),
		latent(100_000, 128), latent(30_000, 384), latent(20_000, 1536), latent(10_000, 3072),
	}
	if dir != "" {
		s, err := readVectorSet(dir)
		if err != nil {
			return nil, err
		}
		s.queries.rows = min(kindQueries, s.queries.rows)
		kinds = append(kinds, vectorKind{s.name, func() *vectorSet { return s }})
	}
	return kinds, nil
}

// kindFilters are no filter, one that selects the rows that were not deleted, and filters that select some of these.
func (s *vectorSet) kindFilters() []rowFilter {
	r := rand.New(rand.NewPCG(2, 2))
	live := roaring.New()
	for row := range s.base.rows {
		if r.Float64() < 0.95 {
			live.Add(uint32(row))
		}
	}
	all := []rowFilter{{"all", nil}, {"95%", live}}
	for _, share := range []float64{0.5, 0.3, 0.2, 0.1, 0.05, 0.01} {
		allowed := roaring.New()
		for row := range s.base.rows {
			if live.Contains(uint32(row)) && r.Float64() < share {
				allowed.Add(uint32(row))
			}
		}
		all = append(all, rowFilter{fmt.Sprintf("%g%%", 100*share), allowed})
	}
	order := s.fromCentre()
	n := len(order) / 5
	return append(all, rowFilter{"near 20%", roaring.BitmapOf(order[:n]...)}, rowFilter{"far 20%", roaring.BitmapOf(order[len(order)-n:]...)})
}

// truths is truth for several filters, scored once.
func (s *vectorSet) truths(filters []rowFilter) [][][]uint32 {
	all := make([][][]uint32, len(filters))
	in := make([]uint16, s.base.rows)
	for f, filter := range filters {
		all[f] = make([][]uint32, s.queries.rows)
		if filter.allowed == nil {
			for i := range in {
				in[i] |= 1 << f
			}
			continue
		}
		for it := filter.allowed.Iterator(); it.HasNext(); {
			in[it.Next()] |= 1 << f
		}
	}
	const together, some = 20, 256
	inParallel((s.queries.rows+together-1)/together, runtime.NumCPU(), func(part int) {
		best := make([]ranking, together*len(filters))
		least := make([]float32, together*len(filters))
		for i := range least {
			least[i] = float32(math.Inf(-1))
		}
		for at := 0; at < s.base.rows; at += some {
			for i := range min(together, s.queries.rows-part*together) {
				q := s.queries.row(part*together + i)
				for row := at; row < min(at+some, s.base.rows); row++ {
					score := simd.Dot(q, s.base.row(row))
					for f := range filters {
						if k := i*len(filters) + f; score > least[k] && in[row]>>f&1 != 0 {
							if best[k].add(uint32(row), score); len(best[k]) == neighbours {
								least[k] = best[k][neighbours-1].score
							}
						}
					}
				}
			}
		}
		for i := range min(together, s.queries.rows-part*together) {
			for f := range filters {
				all[f][part*together+i] = best[i*len(filters)+f].rows()
			}
		}
	})
	return all
}

// runVectorKinds prints the recall and time of searches of all kinds of data. Segments are made in dir, and found again.
func runVectorKinds(ctx context.Context, o options, dir string) error {
	kinds, err := vectorKinds(o.Vectors)
	if err != nil {
		return err
	}
	for i, k := range kinds {
		if !strings.Contains(k.name, o.Kinds) {
			continue
		}
		s := k.make()
		if o.Quick {
			s.first(5000, 50)
		}
		filters := s.kindFilters()
		if i == 0 || o.Kinds != "" {
			fmt.Print(kindHeading(filters))
		}
		name := filepath.Join(dir, k.name+".seg")
		if _, err := s.keepSegment(ctx, name, runtime.NumCPU()); err != nil {
			return err
		}
		r, err := openSegment(name, false)
		if err != nil {
			return err
		}
		r.ReadAhead()
		segment.AwaitReadAhead(ctx)
		fmt.Print(kindRows(k.name, s, r.Vectors(1), filters))
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func kindHeading(filters []rowFilter) string {
	var b strings.Builder
	b.WriteString("| recall@10, µs a search |")
	for _, x := range filters {
		fmt.Fprintf(&b, " %s |", x.name)
	}
	return b.String() + "\n|" + strings.Repeat(" --- |", 1+len(filters)) + "\n"
}

// kindRows are two rows of the table: without gathered signs, and with them.
func kindRows(name string, s *vectorSet, v *segment.Vectors, filters []rowFilter) string {
	f, truths := &vectorFigures{set: s}, s.truths(filters)
	first, again := "| "+name+" |", "| the same, again |"
	for i, x := range filters {
		cell := func(signs *segment.FilterSigns) string {
			search := func(i int, dst []segment.Scored) []segment.Scored {
				return v.SearchGathered(dst, s.queries.row(i), neighbours, x.allowed, signs)
			}
			recall := recallOf(truths[i], search)
			var p point
			for range vectorRounds {
				p.offer(f.timed(search))
			}
			return fmt.Sprintf(" %.3f, %.0f |", recall, microseconds(each(p.seconds, s.queries.rows)))
		}
		first += cell(nil)
		var signs *segment.FilterSigns
		if x.allowed != nil {
			signs = v.GatherSigns(x.allowed)
		}
		if signs == nil {
			again += " – |"
		} else {
			again += cell(signs)
		}
	}
	return first + "\n" + again + "\n"
}
