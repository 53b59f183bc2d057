package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
	"svc/segment/rowlist"
)

// TestCostsOfRuns compares costs that are read for a run of rows with the positions of each row.
func TestCostsOfRuns(t *testing.T) {
	rng := testRand(t)
	for n := range 60 {
		fs := vfs.NewMem()
		b := NewBuilder(BuilderOptions{})
		documents := 1 + rng.IntN(1500)
		if n%4 == 0 {
			documents += 5000 // enough rows for every encoding
		}
		step := 1 + rng.IntN([]int{3, 30, 300}[n%3])
		words := []string{"left", "right"}
		share := []int{1 + rng.IntN(40), 1 + rng.IntN(4)}
		for row := range documents {
			b.StartDoc(DocID(row), fmt.Appendf(nil, "%d", row), []byte("{}"))
			for i, word := range words {
				if rng.IntN(share[i]) == 0 {
					at := rng.IntN(3) * rng.IntN(100)
					for range 1 + rng.IntN(8) {
						b.Word(3, []byte(word), uint16(at))
						at += 1 + rng.IntN(step)
					}
				}
			}
			b.EndDoc()
		}
		name := fmt.Sprint(n)
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, name)
		left, ok := r.Term([]byte("left"))
		right, also := r.Term([]byte("right"))
		if !ok || !also {
			continue
		}
		f, g := left.Field(0), right.Field(0)
		of := func(f FieldPosting, row int) []uint16 { p := f.Positions(); return p.Append(nil, Row(row)) }
		first := rng.IntN(documents)
		costs := make([]uint8, 1+rng.IntN(documents-first))

		nearest := rng.IntN(80)
		cost := make([]uint8, 64+rng.IntN(400))
		for i := range cost {
			cost[i] = uint8(min(200, max(i-nearest, nearest-i)))
		}
		for i := range costs {
			costs[i] = uint8(rng.IntN(256))
		}
		want := slices.Clone(costs)
		for i := range want {
			for _, at := range of(f, first+i) {
				want[i] = min(want[i], cost[min(int(at), len(cost)-1)])
			}
		}
		if f.LowerCosts(costs, uint32(first), cost, nearest); !slices.Equal(costs, want) {
			t.Fatalf("%d: rows %d…%d of %d, least at %d: costs differ", n, first, first+len(costs)-1, documents, nearest)
		}

		for _, other := range []FieldPosting{g, f} { // a word may be its own neighbour
			for i := range costs {
				costs[i] = uint8(rng.IntN(FarApart + 1))
				want[i] = costs[i]
				for _, x := range of(f, first+i) {
					for _, y := range of(other, first+i) {
						switch d := int(y) - int(x); {
						case d > 0:
							want[i] = uint8(min(int(want[i]), d-1))
						case d < 0:
							want[i] = uint8(min(int(want[i]), -d))
						}
					}
				}
			}
			if f.LowerDistances(other, costs, uint32(first)); !slices.Equal(costs, want) {
				for i := range costs {
					if costs[i] != want[i] {
						t.Fatalf("%d: row %d with the words at %d and %d: distance %d, want %d", n, first+i, of(f, first+i), of(other, first+i), costs[i], want[i])
					}
				}
			}
		}
	}
}

// TestRowsThatDoNotAscend reads positions of unordered rows, which only a forged file has.
func TestRowsThatDoNotAscend(t *testing.T) {
	of := make([]uint32, 400)
	for i := range of {
		of[i] = uint32(100 + 2*i)
	}
	p, err := roaring.BitmapOf(of...).ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range []uint16{3, 65535, 0} {
		binary.LittleEndian.PutUint16(p[len(p)-100*(i+1):], row)
	}
	positions := make([]byte, skipBytes(len(of)), 4*len(of))
	for range of {
		positions = append(positions, 1|endOfNumber, 5|endOfNumber|endOfRow)
	}
	f := FieldPosting{rows: rowlist.List{Code: rowlist.Roaring, Count: len(of), P: p}, positions: positions, skips: skipBytes(len(of))}
	other := f
	other.positions = slices.Clone(positions)
	cost := make([]uint8, 64)
	for _, first := range []uint32{0, 120, 300, 700} {
		for _, n := range []int{1, 50, 600, 1000} {
			costs := make([]uint8, n)
			for i := range costs {
				costs[i] = FarApart
			}
			f.LowerDistances(f, costs, first)
			f.LowerDistances(other, costs, first)
			f.LowerCosts(costs, first, cost, 0)
		}
	}
}

// FuzzStretch reads arbitrary bytes as positions.
func FuzzStretch(f *testing.F) {
	f.Add([]byte{0xc0, 0x41, 0xc2}, []byte{0x40, 0xc1}, uint8(3))
	f.Add([]byte{0x3f, 0x3f, 0x3f, 0x3f}, []byte{0x80}, uint8(2))
	f.Fuzz(func(t *testing.T, a, b []byte, n uint8) {
		starts := appendStarts(nil, a, 0, int(n))
		for i, at := range starts {
			if int(at) >= len(a) || i > 0 && a[at-1]&endOfRow == 0 {
				t.Fatalf("row %d of %x begins at %d", i, a, at)
			}
			for k := range b {
				var x, y positionBits
				if x.read(a[at:]) && y.read(b[k:]) && x.distance(&y) > FarApart || distance(a[at:], b[k:]) > FarApart {
					t.Fatal("farther than far apart")
				}
			}
		}
	})
}
