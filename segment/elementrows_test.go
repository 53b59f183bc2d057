package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/vfs"
	"svc/simd"
)

// TestElementLayout reads written elements back, with row distances of each width.
func TestElementLayout(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 3))
	for width, apart := range []int{1 << 20, 3, 300} {
		for _, n := range []int{1, 63, 64, 65, 1001} {
			for _, nested := range []bool{false, true} {
				rows, parents := make([]uint32, n), make([]uint32, n)
				for i := range rows {
					parents[i] = r.Uint32()
					if i > 0 {
						rows[i] = rows[i-1] + uint32(r.IntN(apart))
					}
				}
				if n > 1 {
					rows[1] = rows[0] + uint32(apart) // forces this width
					for i := 2; i < n; i++ {
						rows[i] += uint32(apart)
					}
				}
				if !nested {
					parents = nil
				}
				fs := vfs.NewMem()
				f, err := createFile(fs, "elements", nil)
				if err != nil {
					t.Fatal(err)
				}
				writeElements(f, rows, parents)
				s := f.sections[0]
				if _, err := f.finish(); err != nil {
					t.Fatal(err)
				}
				all, err := vfs.ReadFile(fs, "elements")
				if err != nil {
					t.Fatal(err)
				}
				p := all[s.offset : s.offset+s.length]
				e := &Elements{n: n, nested: nested}
				w := int(binary.LittleEndian.Uint32(p[4:]) >> 8)
				if !e.openElementRows(p[elementHeaderBytes:], w) || n > 1 && w != width {
					t.Fatalf("seed %d: %d elements have width %d in %d bytes, want %d", seed, n, w, len(p), width)
				}
				for i := range rows {
					if e.row(i) != rows[i] || nested && e.parentCode(i) != parents[i] {
						t.Fatalf("seed %d: element %d has row %d and parent %d, want %d and %d", seed, i, e.row(i), e.parentCode(i), rows[i], parents[i])
					}
				}
				if e.openElementRows(p[elementHeaderBytes:len(p)-1], w) {
					t.Errorf("%d elements are read from a truncated section", n)
				}
			}
		}
	}
}

// TestElementRows compares the rows of marked elements with individual lookups, for rows that all have elements, and for rows with
// none or a hundred.
func TestElementRows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	defer func(folds bool) { hasFolds = folds }(hasFolds)
	for round := range 400 {
		hasFolds = simd.HasFolds() && round%2 == 0
		least, most := r.IntN(2), []int{1, 3, 100}[r.IntN(3)]
		e := &Elements{r: &Reader{rows: r.IntN(300)}}
		e.right.Store(true)
		for row := range e.r.rows {
			for range least + r.IntN(most-least+1) {
				e.above = binary.LittleEndian.AppendUint32(e.above, uint32(row))
				e.n++
			}
		}
		p := e.ElementRows(0)
		if p == nil {
			t.Fatalf("seed %d, round %d: elements are not in order", seed, round)
		}
		if least == 1 && p.have != nil {
			t.Fatalf("seed %d, round %d: not all rows have elements", seed, round)
		}
		if e.n > 0 && e.ElementRowsBytes() < p.Bytes() {
			t.Fatalf("seed %d, round %d: %d bytes at most, but %d", seed, round, e.ElementRowsBytes(), p.Bytes())
		}
		for _, per := range []int{1, 2, 64} {
			elements := make([]uint64, (e.n+63)/64)
			for i := range e.n {
				if r.IntN(per) == 0 {
					elements[i/64] |= 1 << (i % 64)
				}
			}
			got, want := make([]uint64, (e.r.rows+63)/64), make([]uint64, (e.r.rows+63)/64)
			if p.MarkRows(got, elements, 0); len(got) > 0 {
				got[0] |= 1 // earlier marks must stay
				want[0] |= 1
			}
			if e.MarkRows(want, elements); !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d: %d elements of %d rows: rows %x of elements %x, want %x", seed, round, e.n, e.r.rows, got, elements, want)
			}
		}
	}
}

// TestElementRowsInParts is TestElementRows with several parts, for rows with elements in two and three parts.
func TestElementRowsInParts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	defer func(folds bool) { hasFolds = folds }(hasFolds)
	for round := range 4 {
		hasFolds = simd.HasFolds() && round%2 == 0
		many := round / 2 * (ElementsOfPart + 100)
		e := &Elements{r: &Reader{rows: 100_000}}
		e.right.Store(true)
		for row := range e.r.rows {
			n := r.IntN(4)
			if row == 20_000 {
				n += many
			}
			for range n {
				e.above = binary.LittleEndian.AppendUint32(e.above, uint32(row))
				e.n++
			}
		}
		elements := make([]uint64, (e.n+63)/64)
		for i := range e.n {
			if r.IntN(3) == 0 && (i < e.n/3 || i > e.n/2) {
				elements[i/64] |= 1 << (i % 64)
			}
		}
		got, want := make([]uint64, (e.r.rows+63)/64), make([]uint64, (e.r.rows+63)/64)
		carry, parts, bytes := uint64(0), 0, 0
		for ; parts*ElementsOfPart < e.n; parts++ {
			p := e.ElementRows(parts)
			carry = p.MarkRows(got, elements, carry)
			bytes += p.Bytes()
		}
		if e.ElementRowsBytes() < bytes {
			t.Fatalf("seed %d: %d bytes at most, but %d", seed, e.ElementRowsBytes(), bytes)
		}
		if e.MarkRows(want, elements); !slices.Equal(got, want) || parts < 3 {
			t.Fatalf("seed %d: rows of %d elements in %d parts differ", seed, e.n, parts)
		}
	}
}

// TestElementRowsOfForgedSegments checks that unordered elements and elements of missing rows are refused.
func TestElementRowsOfForgedSegments(t *testing.T) {
	for _, rows := range [][]uint32{{1, 0}, {0, 3}, {2, 2, 1}} {
		e := &Elements{r: &Reader{rows: 3}, n: len(rows)}
		e.right.Store(true)
		for _, row := range rows {
			e.above = binary.LittleEndian.AppendUint32(e.above, row)
		}
		if e.ElementRows(0) != nil {
			t.Errorf("elements of rows %v are accepted", rows)
		}
	}
}
