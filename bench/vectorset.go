package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
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

// readVectorSet reads the two .npy files of rows of floats from a directory: the queries, which it recognises by name, and the base.
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

// For generated vectors: the number of dimensions of the space in which they are drawn, and the number of centres that they are near.
const (
	latentColumns = 64
	vectorCentres = 10_000
)

// generateVectors draws clustered vectors, and queries from among them. Like those of texts, they are spread over far fewer
// dimensions than they have, with a little noise in all. The first of many vectors are the same as with few.
func generateVectors(rows, queries, columns int) *vectorSet {
	r := rand.New(rand.NewPCG(1, 384))
	axes := normalFloats(r, latentColumns*columns)
	centres := normalFloats(r, vectorCentres*latentColumns)
	draw := func(seed uint64, n int) *matrix {
		const some = 1024
		m := &matrix{rows: n, columns: columns, data: make([]float32, n*columns)}
		inParallel((n+some-1)/some, runtime.NumCPU(), func(part int) {
			r := rand.New(rand.NewPCG(seed, uint64(part)))
			for i := part * some; i < min(n, (part+1)*some); i++ {
				row := m.row(i)
				for j := range row {
					row[j] = 0.3 * float32(r.NormFloat64())
				}
				centre := centres[r.IntN(vectorCentres)*latentColumns:]
				for l := range latentColumns {
					x := centre[l] + 0.9*float32(r.NormFloat64())
					for j, axis := range axes[l*columns : (l+1)*columns] {
						row[j] += x * axis
					}
				}
			}
		})
		return m
	}
	s := &vectorSet{name: fmt.Sprintf("%d vectors of %d", rows, columns), base: draw(2, rows), queries: draw(3, queries)}
	s.title = fmt.Sprintf("Generated vectors: %d of %d dimensions", rows, columns)
	s.normalize()
	return s
}

func normalFloats(r *rand.Rand, n int) []float32 {
	all := make([]float32, n)
	for i := range all {
		all[i] = float32(r.NormFloat64())
	}
	return all
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

// ranking keeps the best neighbours of a query, best first.
type ranking []rankedRow

type rankedRow struct {
	row   uint32
	score float32
}

func (r *ranking) add(row uint32, score float32) {
	if len(*r) == neighbours && score <= (*r)[neighbours-1].score {
		return
	}
	at, _ := slices.BinarySearchFunc(*r, score, func(a rankedRow, score float32) int { return cmp.Compare(score, a.score) })
	*r = slices.Insert(*r, at, rankedRow{row, score})
	*r = (*r)[:min(len(*r), neighbours)]
}

func (r ranking) rows() []uint32 {
	rows := make([]uint32, len(r))
	for i, x := range r {
		rows[i] = x.row
	}
	return rows
}

// nearest scores the allowed rows exactly and returns the best, best first. A restricted search must not be slower.
func (s *vectorSet) nearest(q []float32, allowed []uint32) []uint32 {
	best := make(ranking, 0, neighbours+1)
	for _, row := range allowed {
		best.add(row, simd.Dot(q, s.base.row(int(row))))
	}
	return best.rows()
}

// truth is the nearest of the rows that allowed names (nil: of all) for every query, scored exactly by all cores: the twin
// that recall is measured against. Some rows are scored for several queries while they are in a cache.
func (s *vectorSet) truth(allowed []uint32) [][]uint32 {
	const together, some = 20, 256
	if allowed == nil {
		allowed = make([]uint32, s.base.rows)
		for i := range allowed {
			allowed[i] = uint32(i)
		}
	}
	all := make([][]uint32, s.queries.rows)
	inParallel((len(all)+together-1)/together, runtime.NumCPU(), func(part int) {
		first := part * together
		var best [together]ranking
		for rows := range slices.Chunk(allowed, some) {
			for i := range min(together, len(all)-first) {
				q := s.queries.row(first + i)
				for _, row := range rows {
					best[i].add(row, simd.Dot(q, s.base.row(int(row))))
				}
			}
		}
		for i := range min(together, len(all)-first) {
			all[first+i] = best[i].rows()
		}
	})
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

// recall is the mean share of the true neighbours in the results.
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

// writing has the cost of writing a segment.
type writing struct {
	Wall, CPU time.Duration
	Bytes     int64
}

// writeSegment writes the vectors into a segment of documents without other content, each vectors per document. It drops a remainder.
func (s *vectorSet) writeSegment(ctx context.Context, name string, each, threads int) (writing, error) {
	b := segment.NewBuilder(segment.BuilderOptions{
		Embedders:    []segment.EmbedderShape{{ID: 1, Dimensions: s.base.columns}},
		GraphThreads: threads,
	})
	n := each * s.base.columns
	for i := range s.base.rows / each {
		b.StartDoc(segment.DocID(i), fmt.Append(nil, i), []byte("{}"))
		b.Vectors(1, segment.DocVectors{Vectors: s.base.data[i*n : (i+1)*n]})
		b.EndDoc()
	}
	wall, cpu := wallTime(), processTime()
	info, err := b.Write(ctx, vfs.OS, name)
	return writing{wallTime() - wall, processTime() - cpu, info.Bytes}, err
}

// keepSegment is writeSegment unless an earlier run has written the segment, and its figures beside the file.
func (s *vectorSet) keepSegment(ctx context.Context, name string, threads int) (w writing, err error) {
	figures := name + ".json"
	if b, err := os.ReadFile(figures); err == nil {
		return w, json.Unmarshal(b, &w)
	}
	if w, err = s.writeSegment(ctx, name, 1, threads); err != nil {
		return w, err
	}
	b, err := json.Marshal(w)
	if err == nil {
		err = os.WriteFile(figures, b, 0o600)
	}
	if err != nil {
		return w, fmt.Errorf("cannot keep what it took to write %s: %w", name, err)
	}
	return w, nil
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
