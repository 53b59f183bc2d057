package segment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// TestNeighboursAreThoseOfThePositions builds and merges segments of few words, which are neighbours all the time, and compares what
// the section says with what the positions say.
func TestNeighboursAreThoseOfThePositions(t *testing.T) {
	defer lowerThresholds(1<<20, 1<<20)()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	known := 0
	most, prefixes := pairTableBytes, unionBytes
	defer func() { pairTableBytes, unionBytes = most, prefixes }()
	for round := range 6 {
		mem := vfs.NewMem()
		pairTableBytes, unionBytes = []int{most, 100, 1000}[round%3], []int{prefixes, 50, 500}[round%3]
		var in []Live
		for i := range 1 + rng.IntN(3) {
			b := NewBuilder(BuilderOptions{Prefixes: true})
			n := 1 + rng.IntN(200)
			if round == 0 && i == 0 { // more than is brought into order at once
				n = neighbourWindow + rng.IntN(200)
			}
			deleted := roaring.New()
			for row := range n {
				b.StartDoc(DocID(row*4+i), []byte(fmt.Sprint(i, "-", row)), []byte(`{}`))
				for f := range FieldID(3) {
					for at := uint16(0); at < uint16(rng.IntN(12)); at += 1 + uint16(rng.IntN(2)) {
						b.Word(f, []byte{byte('a' + rng.IntN(5))}, at)
						if rng.IntN(9) == 0 { // two at one position
							b.Word(f, []byte{byte('f' + rng.IntN(2))}, at)
						}
					}
				}
				b.EndDoc()
				if rng.IntN(5) == 0 {
					deleted.Add(uint32(row))
				}
			}
			name := fmt.Sprintf("%d.seg", i)
			if _, err := b.Write(context.Background(), mem, name); err != nil {
				t.Fatal(err)
			}
			r := openSegment(t, mem, name)
			known += compareNeighbours(t, r)
			in = append(in, Live{Reader: r, Deleted: deleted})
		}
		if _, err := Merge(context.Background(), mem, "merged.seg", in, MergeOptions{Prefixes: true}); err != nil {
			t.Fatal(err)
		}
		known += compareNeighbours(t, openSegment(t, mem, "merged.seg"))
		if t.Failed() {
			t.Fatalf("in round %d", round)
		}
	}
	if known < 100 {
		t.Errorf("only %d pairs were known", known)
	}
}

// compareNeighbours returns how many pairs the segment knows.
func compareNeighbours(t *testing.T, r *Reader) (known int) {
	t.Helper()
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	for a := 'a'; a <= 'g'; a++ {
		for b := 'a'; b <= 'g'; b++ {
			p, _ := r.Term([]byte(string(a)))
			q, _ := r.Term([]byte(string(b)))
			if !r.KnowsNeighbours(p) || !r.KnowsNeighbours(q) {
				continue
			}
			for f := range FieldID(3) {
				known++
				var want []uint32
				left, ok := p.Find(f)
				right, also := q.Find(f)
				of, behind := left.Positions(), right.Positions()
				for row := range Row(r.Rows()) {
					if !ok || !also {
						break
					}
					next := behind.Append(nil, row)
					if slices.ContainsFunc(of.Append(nil, row), func(at uint16) bool { return slices.Contains(next, at+1) }) {
						want = append(want, uint32(row))
					}
				}
				var got []uint32
				if rows := r.Neighbours(p, q, f); rows != nil {
					got = rows.ToArray()
				}
				if !slices.Equal(got, want) {
					t.Errorf("%c %c in field %d: %d, want %d", a, b, f, got, want)
				}
			}
		}
	}
	return known
}
