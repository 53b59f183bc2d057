package segment

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"svc/internal/numeric"
	"svc/internal/vfs"
)

// TestColumnsOfElementsAndRows compares columns by row and by element, which share gathered values, with columns that are gathered
// separately: with all values in elements, and with some of the fields 1 and 2 outside.
func TestColumnsOfElementsAndRows(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 4))
	const scope, inner = FieldID(10), FieldID(11)
	for round := range 40 {
		b, plain, elements := NewBuilder(BuilderOptions{}), NewBuilder(BuilderOptions{}), NewColumnSet(0, nil)
		distinct, count, outside := []int{3, 60, 9000}[round%3], 0, round%4
		var open []Row
		value := func() {
			f, n := FieldID(r.IntN(3)), r.IntN(distinct)
			if len(open) == 0 {
				f = FieldID(1 + r.IntN(2))
			}
			x := numeric.OfInt(int64(n))
			if round%5 == 0 && n == 1 {
				x = numeric.Value{Float: 1 << 60, Rest: 1}
			}
			s := fmt.Append(nil, "s", n)
			shown := s
			if n%7 == 2 && r.IntN(3) == 0 {
				shown = bytes.ToUpper(s)
			}
			b.ElementNumber(f, x)
			b.ElementString(f, s, shown)
			plain.Number(f, x)
			plain.String(f, s, shown)
			if len(open) > 0 {
				elements.Number(open[len(open)-1], f, x)
				elements.String(open[len(open)-1], f, s, shown)
			}
		}
		var enter func(scope FieldID)
		enter = func(scope FieldID) {
			b.EnterElement(scope, 1)
			open = append(open, Row(count))
			count++
			for range r.IntN(3) {
				value()
			}
			if scope < inner && r.IntN(3) == 0 {
				enter(scope + 1)
				value()
			}
			b.LeaveElement()
			open = open[:len(open)-1]
		}
		for row := range 2000 {
			for _, of := range []*Builder{b, plain} {
				of.StartDoc(DocID(row), fmt.Append(nil, row), []byte("{}"))
			}
			for range r.IntN(4) {
				enter(scope)
			}
			if outside == 1 && r.IntN(900) == 0 || outside == 2 && row == 0 || outside == 3 && row == 1999 {
				for range 60 {
					value()
				}
			}
			for _, of := range []*Builder{b, plain} {
				of.EndDoc()
			}
		}
		if shared := b.columns.columns[0].inElements != nil && (outside != 0 || b.columns.columns[1].inElements != nil && b.columns.columns[2].inElements != nil); !shared {
			t.Fatalf("seed %d, round %d: the columns share nothing", seed, round)
		}
		if outside > 1 && b.columns.columns[1].inElements != nil {
			t.Fatalf("seed %d, round %d: the column by row has no values of its own", seed, round)
		}
		fs := vfs.NewMem()
		write := func(b *Builder, name string) *Reader {
			if _, err := b.Write(context.Background(), fs, name); err != nil {
				t.Fatal(err)
			}
			return openSegment(t, fs, name)
		}
		write(b, "first.seg") // a builder can be written again, as after a full disk
		got, want := write(b, "a.seg"), write(plain, "b.seg")
		for f := range FieldID(3) {
			if g, w := got.columns.Load().of[f].data, want.columns.Load().of[f].data; !bytes.Equal(g, w) {
				t.Fatalf("seed %d, round %d: the column of field %d by row differs: %d bytes, want %d", seed, round, f, len(g), len(w))
			}
			d := elements.columns[f].data(count, func(int) {})
			d.planes = true
			if g, w := got.elementColumns.of[f].data, encodeColumn(nil, d); !bytes.Equal(g, w) {
				t.Fatalf("seed %d, round %d: the column of field %d by element differs: %d bytes, want %d", seed, round, f, len(g), len(w))
			}
		}
		if err := got.Verify(); err != nil {
			t.Fatalf("seed %d, round %d: %v", seed, round, err)
		}
	}
}
