package filter

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/text"
	"svc/segment"
)

// infixSource returns a segment whose fields 0 and 1 have the same random texts, some of them empty. Field 0 has an infix index.
func infixSource(t testing.TB, rng *rand.Rand, rows int) source {
	t.Helper()
	b := segment.NewBuilder(segment.BuilderOptions{Infix: func(f segment.FieldID) bool { return f == 0 }})
	for row := range rows {
		b.StartDoc(segment.DocID(row), fmt.Append(nil, row), []byte(`{}`))
		for range rng.IntN(3) {
			value := []byte(infixText(rng))
			for f := segment.FieldID(0); f < 2; f++ {
				b.Present(f)
				b.String(f, text.FacetKey(nil, value), value)
			}
		}
		b.EndDoc()
	}
	r := written(t, b)
	return source{Live: segment.Live{Reader: r}}
}

func infixText(rng *rand.Rand) string {
	var b strings.Builder
	for range rng.IntN(12) {
		b.WriteString([]string{"Red", "shoe", "éclair", "日本語", "x", " ", "transport", "ation", fmt.Sprint(rng.IntN(1e6))}[rng.IntN(9)])
	}
	return b.String()
}

// TestContainsByInfix compares CONTAINS with an infix index with reading all texts, with and without candidates.
func TestContainsByInfix(t *testing.T) {
	seed := rand.Uint64()
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	rng := rand.New(rand.NewPCG(seed, 1))
	s := infixSource(t, rng, 3000)
	indexed, looked := 0, 0
	for n := 0; n < 60 || n < 1200 && (indexed == 0 || looked == 0); n++ {
		whole := []rune(infixText(rng))
		from := rng.IntN(len(whole) + 1)
		part := text.FacetPart(nil, []byte(string(whole[from:min(len(whole), from+rng.IntN(9))])))
		var among *roaring.Bitmap
		if rng.IntN(2) == 0 {
			among = roaring.New()
			for range rng.IntN([]int{5, 3000}[rng.IntN(2)]) {
				among.Add(rng.Uint32N(3000))
			}
		}
		fast, slow := containsMatch{0, part}, containsMatch{1, part}
		c := s.Column(0)
		_, texts, byIndex := fast.mayContain(c, firstText(c))
		if _, _, wrong := slow.mayContain(s.Column(1), 0); wrong {
			t.Fatal("a column without an index has one")
		}
		switch {
		case among != nil && among.GetCardinality() < uint64(texts):
			looked++
		case byIndex:
			indexed++
		}
		if got, want := fast.rows(s, among), slow.rows(s, among); !got.Equals(want) {
			t.Fatalf("%q among %v: %v, want %v", part, among, got, want)
		}
	}
	if indexed == 0 || looked == 0 {
		t.Errorf("%d results from the index, %d from texts of candidates; want some of both", indexed, looked)
	}
}

// BenchmarkContains searches 100,000 texts by reading them, and by their index.
func BenchmarkContains(b *testing.B) {
	s := infixSource(b, rand.New(rand.NewPCG(1, 2)), 100_000)
	for _, part := range []string{"ortat", "9917", "éclairred", "日本語日"} {
		for f, name := range []string{"infix", "scan"} {
			b.Run(part+"/"+name, func(b *testing.B) {
				m := containsMatch{segment.FieldID(f), []byte(part)}
				for b.Loop() {
					m.rows(s, nil)
				}
			})
		}
	}
}
