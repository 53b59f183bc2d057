package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// deletion is searches of a segment as it was written, and with some rows deleted.
type deletion struct {
	vectors     int // per row
	whole, some point
}

// deletedShare is the share of the rows that are deleted.
const deletedShare = 0.01

// deletions searches segments of rows with one vector and with several. Rounds take turns: what else the machine does
// meets both ways.
func (f *vectorFigures) deletions(ctx context.Context, dir string) error {
	for _, vectors := range []int{1, 3} {
		name := filepath.Join(dir, fmt.Sprintf("by%d.seg", vectors))
		if _, err := f.set.writeSegment(ctx, name, vectors, runtime.NumCPU()); err != nil {
			return err
		}
		r, err := openSegment(name, false)
		if err != nil {
			return err
		}
		f.deleted = append(f.deleted, f.deletion(r, vectors))
		if err := r.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (f *vectorFigures) deletion(r *segment.Reader, vectors int) deletion {
	random := rand.New(rand.NewPCG(5, 5))
	live := roaring.New()
	for row := range r.Rows() {
		if random.Float64() >= deletedShare {
			live.Add(uint32(row))
		}
	}
	d, v := deletion{vectors: vectors}, r.Vectors(1)
	for range 2 * vectorRounds {
		for p, allowed := range map[*point]*roaring.Bitmap{&d.whole: nil, &d.some: live} {
			p.offer(f.timed(func(i int, dst []segment.Scored) []segment.Scored {
				return v.Search(dst, f.set.queries.row(i), neighbours, allowed)
			}))
		}
	}
	return d
}
