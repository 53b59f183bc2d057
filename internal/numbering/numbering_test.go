package numbering

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/internal/vfs"
	"svc/segment"
)

// file is a segment with its cache scope.
type file struct {
	*segment.Reader
	scope *resultcache.Scope
}

// newFile writes a segment whose rows have these numbers and strings in field 0.
func newFile(t *testing.T, fs vfs.FS, memory *resultcache.Cache, name string, numbers []numeric.Value, strings []string) file {
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
	return file{r, memory.Scope()}
}

// TestNumbersIdentifyValues numbers the values of successive views. Segments with few and many values come and go, and cached results are
// dropped now and then. Two values must have the same number if and only if they are equal.
func TestNumbersIdentifyValues(t *testing.T) {
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
		var numbers []numeric.Value
		var strings []string
		for range rng.IntN(n + 1) {
			x := numeric.Of(float64(rng.IntN(2*n)) / 2)
			if round%2 == 0 && rng.IntN(2) == 0 {
				x = numeric.OfUint(1<<62 + uint64(rng.IntN(2*n))*200)
			}
			numbers = append(numbers, x)
		}
		for range rng.IntN(n + 1) {
			strings = append(strings, fmt.Sprint(rng.IntN(3*n)))
		}
		files = append(files, newFile(t, fs, memory, fmt.Sprint(round, ".seg"), numbers, strings))
		if rng.IntN(10) == 0 {
			files[rng.IntN(len(files))].scope = memory.Scope()
		}
		rng.Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		own := memory.Scope()
		for range 2 {
			columns := make([]Column, len(files))
			for i, f := range files {
				columns[i] = Column{f.Column(0), f.scope}
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
							t.Fatalf("round %d: %v has the numbers %d and %d; the latter belongs to %v", round, x, n, other, whose)
						}
						ofValue[x], ofNumber[n] = n, x
					}
				}
				if _, ok := youngNumbers.Get(own, keyOf(0, kind, 0)); ok {
					lookedUp++
				} else {
					built++
				}
			}
		}
	}
	if lookedUp == 0 || built == 0 {
		t.Errorf("values were looked up in %d views, built in %d; want some of both", lookedUp, built)
	}
}

// TestNumbersOfSeveralBases numbers a segment with cached parts of two numberings, as two concurrent searches leave them.
func TestNumbersOfSeveralBases(t *testing.T) {
	fs, memory := vfs.NewMem(), resultcache.New(64<<20)
	rng := rand.New(rand.NewPCG(1, 2))
	draw := func(n int) (numbers []numeric.Value) {
		for _, x := range rng.Perm(4 * n)[:n] {
			numbers = append(numbers, numeric.Of(float64(x)))
		}
		return numbers
	}
	large, small := newFile(t, fs, memory, "large.seg", draw(2<<chunkBits), nil), newFile(t, fs, memory, "small.seg", draw(3<<chunkBits), nil)
	New([]Column{{large.Column(0), large.scope}}, 0, false, nil)
	first, _ := segmentNumbers.Get(large.scope, keyOf(0, false, 0))
	large.scope = memory.Scope()
	columns := []Column{{small.Column(0), small.scope}, {large.Column(0), large.scope}}
	New(columns, 0, false, nil)
	for _, chunk := range []int{0, 1} {
		segmentNumbers.Put(large.scope, keyOf(0, false, chunk), first, 64)
		checkNumbers(t, columns, New(columns, 0, false, nil))
	}
}

func floats(all ...float64) (values []numeric.Value) {
	for _, x := range all {
		values = append(values, numeric.Of(x))
	}
	return values
}

// TestNumbersOfOneLargeSegment numbers a segment with nearly all values, and small ones that share values with it and with each other.
func TestNumbersOfOneLargeSegment(t *testing.T) {
	fs, memory := vfs.NewMem(), resultcache.New(64<<20)
	var all []numeric.Value
	for i := range 2<<chunkBits + 7 {
		all = append(all, numeric.Of(float64(2*i)))
	}
	large := newFile(t, fs, memory, "large.seg", all, nil)
	a, b := newFile(t, fs, memory, "a.seg", floats(1, 2, 4, 99, 1e9), nil), newFile(t, fs, memory, "b.seg", floats(-1, 2, 99, 1e9), nil)
	none := newFile(t, fs, memory, "none.seg", nil, []string{"x"})
	columns := []Column{{a.Column(0), a.scope}, {large.Column(0), large.scope}, {none.Column(0), none.scope}, {}, {b.Column(0), b.scope}}
	for range 2 {
		got := New(columns, 0, false, memory.Scope())
		checkNumbers(t, columns, got)
		if want := len(all) + 4; got.Count != want {
			t.Errorf("%d numbers, want %d", got.Count, want)
		}
	}
	for i, of := range []file{a, large, b} {
		if _, ok := segmentNumbers.Get(of.scope, keyOf(0, false, 0)); !ok {
			t.Errorf("the numbers of segment %d are not cached", i)
		}
	}
}

// TestNumbersOfEqualHashes numbers values with different hashes whose stored parts are equal.
func TestNumbersOfEqualHashes(t *testing.T) {
	inverse := uint64(0x9e3779b97f4a7c15) // inverse of the factor, by Newton's iteration
	for range 5 {
		inverse *= 2 - 0x9e3779b97f4a7c15*inverse
	}
	var alike []float64
	for i := range uint64(1 << 10) { // equal upper 12 bits and lower half
		h := 0xabc<<52 | i<<35 | 0x1234567
		alike = append(alike, math.Float64frombits((h^h>>29^h>>58)*inverse))
	}
	fs, memory := vfs.NewMem(), resultcache.New(64<<20)
	var columns []Column
	for i := range 3 {
		var values []numeric.Value
		for k, x := range alike {
			if k%(i+2) == 0 && !math.IsNaN(x) && !math.IsInf(x, 0) {
				values = append(values, numeric.Of(x))
			}
		}
		f := newFile(t, fs, memory, fmt.Sprint(i, ".seg"), values, nil)
		columns = append(columns, Column{f.Column(0), f.scope})
	}
	n := &numberer{columns: columns}
	if a, b := n.hash(0, 0), n.hash(0, 1); a<<32 != b<<32 || a>>52 != b>>52 {
		t.Fatalf("the hashes are %x and %x", a, b)
	}
	checkNumbers(t, columns, New(columns, 0, false, nil))
}

// checkNumbers checks that values of several segments and numbers correspond one to one.
func checkNumbers(t *testing.T, columns []Column, got *Numbers) {
	t.Helper()
	ofValue, ofNumber := map[numeric.Value]uint32{}, map[uint32]numeric.Value{}
	for i, c := range columns {
		if c.Column == nil {
			continue
		}
		for ord := range c.Numbers() {
			x, n := c.Number(ord), got.Of(i, uint32(ord))
			other, numbered := ofValue[x]
			whose, had := ofNumber[n]
			if numbered && other != n || had && whose != x || n >= uint32(got.Count) {
				t.Fatalf("segment %d: %v has the number %d of %d; expected %d, which %v has", i, x, n, got.Count, other, whose)
			}
			ofValue[x], ofNumber[n] = n, x
		}
	}
}
