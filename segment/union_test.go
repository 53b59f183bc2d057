package segment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/vfs"
)

// TestUnionOfPostings compares unions of postings in some fields, made by bits and by adding sets.
func TestUnionOfPostings(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	const rows = 3 * bitsPer
	b := NewBuilder(BuilderOptions{})
	for row := range rows {
		b.StartDoc(DocID(row), []byte(fmt.Sprint(row)), []byte(`{}`))
		for f := range FieldID(3) {
			for w, often := range []int{1, 2, 40, 700, rows, rows} {
				if rng.IntN(often) == 0 {
					b.Word(f, fmt.Appendf(nil, "w%d", w), uint16(w))
				}
			}
		}
		b.EndDoc()
	}
	b.StartDoc(rows, []byte("last"), []byte(`{}`)) // so that each word exists
	for w := range 6 {
		b.Word(1, fmt.Appendf(nil, "w%d", w), uint16(w))
	}
	b.EndDoc()
	mem := vfs.NewMem()
	if _, err := b.Write(context.Background(), mem, "u.seg"); err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, mem, "u.seg")
	for range 200 {
		var postings []Posting
		for range rng.IntN(4) {
			p, ok := r.Term(fmt.Appendf(nil, "w%d", rng.IntN(6)))
			if !ok {
				t.Fatal("a word is missing")
			}
			postings = append(postings, p)
		}
		var in func(FieldID) bool
		if field := FieldID(rng.IntN(3)); rng.IntN(2) == 0 {
			in = func(f FieldID) bool { return f == field }
		}
		want := roaring.New()
		for _, p := range postings {
			for k := range p.Fields() {
				if f := p.Field(k); in == nil || in(f.ID()) {
					want.Or(f.Rows())
				}
			}
		}
		if got := r.Union(postings, in); !got.Equals(want) {
			t.Fatalf("%d postings, all fields %v: %d rows, want %d", len(postings), in == nil, got.GetCardinality(), want.GetCardinality())
		}
	}
}
