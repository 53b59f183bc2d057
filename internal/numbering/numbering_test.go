package numbering

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"svc/internal/resultcache"
	"svc/internal/vfs"
	"svc/segment"
)

// file is a segment with its shelf.
type file struct {
	*segment.Reader
	shelf *resultcache.Shelf
}

// newFile makes a segment whose rows have these numbers and strings in field 0.
func newFile(t *testing.T, fs vfs.FS, memory *resultcache.Cache, name string, numbers []float64, strings []string) file {
	t.Helper()
	b := segment.NewBuilder(segment.BuilderOptions{})
	for row := range max(len(numbers), len(strings), 1) {
		b.StartDoc(segment.DocID(row), fmt.Append(nil, row), []byte("{}"))
		if row < len(numbers) {
			b.Number(0, numbers[row])
		}
		if row < len(strings) {
			b.String(0, []byte(strings[row]), []byte(strings[row]))
		}
		b.EndDoc()
	}
	if _, err := b.Write(context.Background(), fs, name); err != nil {
		t.Fatal(err)
	}
	r, err := segment.Open(fs, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return file{r, memory.Shelf()}
}

// TestNumbersAreThoseOfValues numbers the values of views one after the other: segments come, few values and many, and go, and what was
// kept of them is forgotten now and then. Two values have one number just if they are equal.
func TestNumbersAreThoseOfValues(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	fs, memory := vfs.NewMem(), resultcache.New(64<<20)
	var files []file
	lookedUp, built := 0, 0
	for round := range 150 {
		if len(files) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(files))
			files = append(files[:i], files[i+1:]...)
		}
		n := []int{1, 2, 10, 400}[rng.IntN(4)]
		if round == 60 {
			n = 2 << chunkBits
		}
		if round == 63 {
			files = files[:0]
		}
		var numbers []float64
		var strings []string
		for range rng.IntN(n + 1) {
			numbers = append(numbers, float64(rng.IntN(2*n))/2)
		}
		for range rng.IntN(n + 1) {
			strings = append(strings, fmt.Sprint(rng.IntN(3*n)))
		}
		files = append(files, newFile(t, fs, memory, fmt.Sprint(round, ".seg"), numbers, strings))
		if rng.IntN(10) == 0 {
			files[rng.IntN(len(files))].shelf = memory.Shelf()
		}
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		own := memory.Shelf()
		for range 2 {
			columns := make([]Column, len(files))
			for i, f := range files {
				columns[i] = Column{f.Column(0), f.shelf}
			}
			for _, kind := range []bool{false, true} {
				got := New(columns, 0, kind, own)
				ofValue, ofNumber := map[any]uint32{}, map[uint32]any{}
				for i, c := range columns {
					size, value := 0, func(ord int) any { return c.Number(ord) }
					if c.Column != nil {
						if size = c.Numbers(); kind {
							size, value = c.Strings(), func(ord int) any { return string(c.String(ord)) }
						}
					}
					kept := 0
					for _, chunk := range got.Chunks(i) {
						kept += len(chunk)
					}
					if kept != size {
						t.Fatalf("round %d: %d of %d values are numbered", round, kept, size)
					}
					for ord := range size {
						x, n := value(ord), got.Of(i, uint32(ord))
						if n >= uint32(got.Count) {
							t.Fatalf("round %d: the number %d is not below %d", round, n, got.Count)
						}
						other, numbered := ofValue[x]
						whose, had := ofNumber[n]
						if numbered && other != n || had && whose != x {
							t.Fatalf("round %d: %v has the numbers %d and %d, which is that of %v", round, x, n, other, whose)
						}
						ofValue[x], ofNumber[n] = n, x
					}
				}
				if _, ok := own.Get(keyOf(0, kind, 0)).(*added); ok {
					lookedUp++
				} else {
					built++
				}
			}
		}
	}
	if lookedUp == 0 || built == 0 {
		t.Errorf("values were looked up in %d views, and not in %d", lookedUp, built)
	}
}
