package segment

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// TestElementRows compares the rows of marked elements with those that are looked up one by one: where all rows have elements and where
// some have none, or a hundred.
func TestElementRows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	for round := range 200 {
		least, most := r.IntN(2), []int{1, 3, 100}[r.IntN(3)]
		e := &Elements{r: &Reader{rows: r.IntN(300)}}
		e.right.Store(true)
		for row := range e.r.rows {
			for range least + r.IntN(most-least+1) {
				e.data = binary.LittleEndian.AppendUint32(e.data, uint32(row))
				e.n++
			}
		}
		p := e.ElementRows(0)
		if p == nil {
			t.Fatalf("seed %d, round %d: elements are in no order", seed, round)
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
				got[0] |= 1 // marks of others stay
				want[0] |= 1
			}
			if e.MarkRows(want, elements); !slices.Equal(got, want) {
				t.Fatalf("seed %d, round %d: %d elements of %d rows: rows %x of elements %x, want %x", seed, round, e.n, e.r.rows, got, elements, want)
			}
		}
	}
}

// TestElementRowsInParts does so with several parts: with rows whose elements are in two of them, and in three.
func TestElementRowsInParts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 2))
	for _, many := range []int{0, ElementsOfPart + 100} {
		e := &Elements{r: &Reader{rows: 100_000}}
		e.right.Store(true)
		for row := range e.r.rows {
			n := r.IntN(4)
			if row == 20_000 {
				n += many
			}
			for range n {
				e.data = binary.LittleEndian.AppendUint32(e.data, uint32(row))
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

// TestElementRowsOfForgedSegments makes none of elements that are in no order, or in rows that are not there.
func TestElementRowsOfForgedSegments(t *testing.T) {
	for _, rows := range [][]uint32{{1, 0}, {0, 3}, {2, 2, 1}} {
		e := &Elements{r: &Reader{rows: 3}, n: len(rows)}
		e.right.Store(true)
		for _, row := range rows {
			e.data = binary.LittleEndian.AppendUint32(e.data, row)
		}
		if e.ElementRows(0) != nil {
			t.Errorf("elements of rows %v pass", rows)
		}
	}
}
