package segment

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"svc/internal/vfs"
)

func TestOccurrencesMatchPositions(t *testing.T) {
	rng := testRand(t)
	for n := range 60 {
		fs := vfs.NewMem()
		b := NewBuilder(BuilderOptions{})
		documents := 1 + rng.IntN(1500)
		share := 1 + rng.IntN(40) // one row in share has the word
		for row := range documents {
			b.StartDoc(DocID(row), fmt.Appendf(nil, "%d", row), []byte("{}"))
			if rng.IntN(share) == 0 {
				at := rng.IntN(3) * rng.IntN(100)
				for range 1 + rng.IntN(5) {
					b.Word(3, []byte("word"), uint16(at))
					at += 1 + rng.IntN(200)
				}
			}
			b.EndDoc()
		}
		name := fmt.Sprint(n)
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, name)
		p, ok := r.Term([]byte("word"))
		if !ok {
			continue
		}
		f := p.Field(0)
		var rows []uint32
		for row := range documents {
			if rng.IntN(1+n%7) == 0 {
				rows = append(rows, uint32(row))
			}
		}
		var want []uint64
		reader := f.Positions()
		for i, row := range rows {
			for _, at := range reader.Append(nil, Row(row)) {
				want = append(want, 3<<48|uint64(i)<<16|uint64(at))
			}
		}
		if got := f.AppendOccurrences(nil, rows, 3<<48); !slices.Equal(got, want) {
			t.Fatalf("%d of %d rows, one in %d has the word: %d occurrences, want %d", len(rows), documents, share, len(got), len(want))
		}
		var starting []uint32
		for row := range documents {
			if all := reader.Append(nil, Row(row)); len(all) > 0 && all[0] == 0 {
				starting = append(starting, uint32(row))
			}
		}
		if got := f.AppendStarting([]uint32{7}); !slices.Equal(got[1:], starting) {
			t.Fatalf("one in %d of %d rows has the word: %d begin with it, want %d", share, documents, len(got)-1, len(starting))
		}
		for i, at := range f.FirstPositions(nil, rows) {
			wanted := uint16(NoPosition)
			if all := reader.Append(nil, Row(rows[i])); len(all) > 0 {
				wanted = all[0]
			}
			if at != wanted {
				t.Fatalf("%d of %d rows, one in %d has the word: it is first at %d in row %d, want %d", len(rows), documents, share, at, rows[i], wanted)
			}
		}
	}
}
