package aggregate

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"svc/internal/numeric"
)

// TestNumberIndex puts random numbers into an index and into a map.
func TestNumberIndex(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	negativeZero := math.Copysign(0, -1)
	extremes := []numeric.Value{{Float: negativeZero}, {Float: 0}, {Float: negativeZero, Rest: 1}, numeric.Of(math.MaxFloat64), numeric.Of(-math.MaxFloat64),
		numeric.Of(math.SmallestNonzeroFloat64), numeric.OfInt(math.MaxInt64), numeric.OfInt(math.MinInt64)}
	for range 20 {
		var index numberIndex
		want := map[numeric.Value]uint32{}
		for i := range r.IntN(1000) {
			x := numeric.Of(float64(r.IntN(300) - 150))
			switch r.IntN(8) {
			case 0, 1, 2, 3:
				x = numeric.OfInt(1<<60 + int64(r.IntN(300))) // neighbours have the same float64
			case 4:
				x = extremes[r.IntN(len(extremes))]
			}
			place, ok := index.find(x)
			if was, had := want[x]; ok != had || ok && place != was {
				t.Fatalf("seed %d: %v is at %d, %v; want %d, %v", seed, x, place, ok, was, had)
			}
			index.put(x, uint32(i))
			want[x] = uint32(i)
		}
		if index.n != len(want) || 2*index.n > len(index.slots) {
			t.Fatalf("seed %d: %d numbers of %d in %d slots", seed, index.n, len(want), len(index.slots))
		}
	}
}
