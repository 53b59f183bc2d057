package segment

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"svc/internal/vfs"
	"svc/segment/rowlist"
)

func TestFollowedRows(t *testing.T) {
	rng := testRand(t)
	for n := range 60 {
		fs := vfs.NewMem()
		b := NewBuilder(BuilderOptions{})
		documents := 1 + rng.IntN(1500)
		share := [2]int{1 + rng.IntN(20), 1 + rng.IntN(4)} // one row in share has the word
		far := []int{3, 20, 300}[rng.IntN(3)]
		for row := range documents {
			b.StartDoc(DocID(row), fmt.Appendf(nil, "%d", row), []byte("{}"))
			var at [400]string
			for i, word := range []string{"first", "second"} {
				if rng.IntN(share[i]) == 0 {
					for range 1 + rng.IntN(4) {
						at[rng.IntN(far)] = word
					}
				}
			}
			for position, word := range at {
				if word != "" {
					b.Word(3, []byte(word), uint16(position))
				}
			}
			b.EndDoc()
		}
		name := fmt.Sprint(n)
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, name)
		p, ok := r.Term([]byte("first"))
		q, also := r.Term([]byte("second"))
		if !ok || !also {
			continue
		}
		first, second := p.Field(0), q.Field(0)
		reach := 1 + rng.IntN(3)
		var both []rowlist.Place
		var some, want, wantOfSome []uint32
		of, ofOther := first.AppendRows(nil), second.AppendRows(nil)
		readers := [2]PositionReader{first.Positions(), second.Positions()}
		for row := range uint32(documents) {
			i, in := slices.BinarySearch(of, row)
			j, inOther := slices.BinarySearch(ofOther, row)
			if in && inOther {
				both = append(both, rowlist.Place{Row: row, A: uint32(i), B: uint32(j)})
			}
			follows := false
			for _, x := range readers[0].Append(nil, Row(row)) {
				for _, y := range readers[1].Append(nil, Row(row)) {
					follows = follows || x < y && int(y-x) <= reach
				}
			}
			if follows {
				want = append(want, row)
			}
			if rng.IntN(1+n%5) == 0 {
				some = append(some, row)
				if follows {
					wantOfSome = append(wantOfSome, row)
				}
			}
		}
		common := first.Common(nil, second)
		if !slices.Equal(common, both) {
			t.Fatalf("%d rows in common, want %d", len(common), len(both))
		}
		if got := AppendFollowed(nil, common, first, second, reach); !slices.Equal(got, want) {
			t.Fatalf("of %d rows, %d within %d, want %d", len(common), len(got), reach, len(want))
		}
		cut := len(common) / 3
		if got := AppendFollowed(AppendFollowed(nil, common[:cut], first, second, reach), common[cut:], first, second, reach); !slices.Equal(got, want) {
			t.Fatalf("in two pieces %d, want %d", len(got), len(want))
		}
		if got := KeepFollowed(some, first, second, reach); !slices.Equal(got, wantOfSome) {
			t.Fatalf("of some rows %d, want %d", len(got), len(wantOfSome))
		}
	}
}
