package main

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"svc/internal/vfs"
	"svc/segment"
	"svc/simd"
)

// neighbours is k of the searches that are measured.
const neighbours = 10

// A vectorSet is unit vectors and queries for them.
type vectorSet struct {
	name, title   string
	base, queries *matrix
}

// readVectorSet takes from a directory the two .npy files of rows of floats:
// the one whose name tells of queries, and the other.
func readVectorSet(dir string) (*vectorSet, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.npy"))
	if err != nil {
		return nil, fmt.Errorf("cannot list %s: %w", dir, err)
	}
	s := new(vectorSet)
	var refused error
	for _, name := range files {
		m, err := readNPY(name)
		switch {
		case err != nil:
			refused = err // an array of something else
		case strings.Contains(filepath.Base(name), "quer"):
			s.queries = m
		default:
			s.base, s.name = m, filepath.Base(name)
		}
	}
	if s.base == nil || s.queries == nil || s.base.columns != s.queries.columns {
		return nil, fmt.Errorf("%s has no two .npy files of rows of equal length, one with \"queries\" in its name (%v)", dir, refused)
	}
	s.title = "Vectors: " + s.name
	s.normalize()
	return s, nil
}

// generateVectors draws clustered vectors, and queries near them.
func generateVectors(rows, queries int) *vectorSet {
	const columns, clusters = 384, 1000
	r := rand.New(rand.NewPCG(1, 384))
	centres := make([]float32, clusters*columns)
	for i := range centres {
		centres[i] = float32(r.NormFloat64())
	}
	draw := func(n int) *matrix {
		m := &matrix{rows: n, columns: columns, data: make([]float32, n*columns)}
		for i := range n {
			centre := centres[r.IntN(clusters)*columns:]
			for j := range m.row(i) {
				m.row(i)[j] = centre[j] + 1.2*float32(r.NormFloat64())
			}
		}
		return m
	}
	s := &vectorSet{name: "vectors", title: "Generated vectors", base: draw(rows), queries: draw(queries)}
	s.normalize()
	return s
}

func (s *vectorSet) normalize() {
	for _, m := range []*matrix{s.base, s.queries} {
		for i := range m.rows {
			simd.Normalize(m.row(i))
		}
	}
}

func (s *vectorSet) first(rows, queries int) {
	for m, n := range map[*matrix]int{s.base: rows, s.queries: queries} {
		m.rows = min(m.rows, n)
		m.data = m.data[:m.rows*m.columns]
	}
}

// nearest scores all rows that allowed names (nil: all) exactly and returns
// the best, best first: the twin that recall is measured against, and what a
// restricted search must not be slower than.
func (s *vectorSet) nearest(q []float32, allowed []uint32) []uint32 {
	type scored struct {
		row   uint32
		score float32
	}
	best := make([]scored, 0, neighbours+1)
	add := func(row uint32) {
		x := scored{row, simd.Dot(q, s.base.row(int(row)))}
		if len(best) == neighbours && x.score <= best[neighbours-1].score {
			return
		}
		at, _ := slices.BinarySearchFunc(best, x, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		best = slices.Insert(best, at, x)
		best = best[:min(len(best), neighbours)]
	}
	if allowed == nil {
		for row := range s.base.rows {
			add(uint32(row))
		}
	}
	for _, row := range allowed {
		add(row)
	}
	rows := make([]uint32, len(best))
	for i, x := range best {
		rows[i] = x.row
	}
	return rows
}

// truth is nearest for every query, by all cores.
func (s *vectorSet) truth(allowed []uint32) [][]uint32 {
	all := make([][]uint32, s.queries.rows)
	inParallel(s.queries.rows, runtime.NumCPU(), func(i int) { all[i] = s.nearest(s.queries.row(i), allowed) })
	return all
}

// inParallel does n pieces of work with some goroutines.
func inParallel(n, goroutines int, do func(i int)) {
	var wait sync.WaitGroup
	for g := range goroutines {
		wait.Go(func() {
			for i := g; i < n; i += goroutines {
				do(i)
			}
		})
	}
	wait.Wait()
}

// recall is the mean share of the true neighbours that were found.
func recall(truth [][]uint32, found func(i int, row uint32) bool) float64 {
	hits, of := 0, 0
	for i, rows := range truth {
		of += len(rows)
		for _, row := range rows {
			if found(i, row) {
				hits++
			}
		}
	}
	return float64(hits) / float64(max(1, of))
}

// writeSegment writes the vectors into a segment of documents that have nothing else. What it returns is processor
// time where it does so with one thread.
func (s *vectorSet) writeSegment(ctx context.Context, name string, threads int) (time.Duration, int64, error) {
	b := segment.NewBuilder(segment.BuilderOptions{
		Embedders:    []segment.EmbedderShape{{ID: 1, Dimensions: s.base.columns}},
		GraphThreads: threads,
	})
	for i := range s.base.rows {
		b.StartDoc(segment.DocID(i), fmt.Append(nil, i), []byte("{}"))
		b.Vectors(1, segment.DocVectors{Vectors: s.base.row(i)})
		b.EndDoc()
	}
	clock := wallTime
	if threads == 1 {
		clock = processTime
	}
	began := clock()
	info, err := b.Write(ctx, vfs.OS, name)
	return clock() - began, info.Bytes, err
}

// openSegment maps the segment; cold, none of it is in memory before.
func openSegment(name string, cold bool) (*segment.Reader, error) {
	if cold {
		if err := dropCache(name); err != nil {
			return nil, fmt.Errorf("cannot drop %s from memory: %w", name, err)
		}
	}
	return segment.Open(vfs.OS, name)
}
