package segment

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestMarkEqual(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 300 {
		p := make([]byte, n)
		for i := range p {
			p[i] = []byte{0, 1, 2, 31, 127, 128, 129, 255}[rng.IntN(8)]
		}
		for _, value := range []byte{0, 1, 2, 31, 127, 128, 255} {
			want := make([]uint64, (n+63)/64)
			for i, b := range p {
				if b == value {
					want[i/64] |= 1 << (i % 64)
				}
			}
			got := make([]uint64, len(want))
			if markEqual(got, p, value); !slices.Equal(got, want) {
				t.Fatalf("bytes with %d of %v are %x, not %x", value, p, got, want)
			}
		}
	}
}

func BenchmarkMarkEqual(b *testing.B) {
	p := bytes.Repeat([]byte{1, 2, 3, 1, 5, 1, 1, 9}, 1<<17)
	marks := make([]uint64, len(p)/64)
	b.SetBytes(int64(len(p)))
	for b.Loop() {
		markEqual(marks, p, 1)
	}
}
