package aggregate

import (
	"encoding/json"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/numeric"
)

// TestAccumulators folds random values of several groups in random parts, merges the parts, and sends them in the form of a peer. The
// results must be exact, whatever the parts. An accumulator that this test does not know fails it.
func TestAccumulators(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	exact := map[string]func(values []numeric.Value) any{
		"count": func(v []numeric.Value) any { return float64(len(v)) },
		"min":   func(v []numeric.Value) any { return slices.MinFunc(v, numeric.Value.Compare).Float },
		"max":   func(v []numeric.Value) any { return slices.MaxFunc(v, numeric.Value.Compare).Float },
		"sum":   func(v []numeric.Value) any { return float(total(v, 1)) },
		"avg":   func(v []numeric.Value) any { return float(quotient(total(v, 1), len(v))) },
		"stdDev": func(v []numeric.Value) any {
			mean := quotient(total(v, 1), len(v))
			return math.Sqrt(float(new(big.Float).Sub(quotient(total(v, 2), len(v)), new(big.Float).SetPrec(2000).Mul(mean, mean))))
		},
	}
	for round := range 200 {
		const groups = 3
		var values [groups][]numeric.Value
		whole := NewFigures()
		whole.Grow(groups)
		for range 1 + r.IntN(4) {
			part := NewFigures()
			part.Grow(groups)
			for range r.IntN(5) {
				var of []uint32
				var xs []numeric.Value
				var times []uint32
				for range r.IntN(20) {
					x := numeric.Of(float64(r.IntN(1000)) / 8)
					switch r.IntN(8) {
					case 0:
						x = numeric.OfUint(1<<63 + r.Uint64N(1<<20))
					case 1:
						x = numeric.Of(-1e15 * r.Float64())
					}
					g, n := r.IntN(groups-1), 1+r.IntN(3) // the last group stays empty
					of, xs, times = append(of, uint32(g)), append(xs, x), append(times, uint32(n))
					for range n {
						values[g] = append(values[g], x)
					}
				}
				part.Fold(of, xs, times)
			}
			for g := range groups {
				if !part.Filled(g) {
					continue
				}
				sent := NewFigures()
				sent.Grow(groups)
				m := message{left: part.AppendPeer(nil, g)}
				if sent.ReadPeer(&m, g); m.bad || len(m.left) > 0 {
					t.Fatalf("seed %d: %d bytes are left, bad %v", seed, len(m.left), m.bad)
				}
				whole.Merge(uint32(g), sent, g)
			}
		}
		for g := range groups {
			var shown map[string]any
			if err := json.Unmarshal(whole.AppendJSON(nil, g), &shown); err != nil {
				t.Fatal(err)
			}
			if len(shown) != len(accumulators) {
				t.Fatalf("%v", shown)
			}
			for _, a := range accumulators {
				if exact[a.name] == nil {
					t.Fatalf("%s has no exact counterpart here", a.name)
				}
				if len(values[g]) == 0 {
					if empty, _ := json.Marshal(shown[a.name]); string(empty) != a.empty {
						t.Errorf("%s of nothing is %s", a.name, empty)
					}
					continue
				}
				want := exact[a.name](values[g]).(float64)
				if got, ok := shown[a.name].(float64); !ok || got != want && (a.name != "stdDev" || math.Abs(got-want) > 1e-12*want+1e-15*largest(values[g])) {
					t.Fatalf("seed %d, round %d, %s: %v, want %v", seed, round, a.name, shown[a.name], want)
				}
			}
		}
	}
}

// TestSumsThatOverflow checks that overflowing sums, and figures that need them, are shown as null, also from a peer.
func TestSumsThatOverflow(t *testing.T) {
	f := NewFigures()
	f.Grow(1)
	f.Fold([]uint32{0, 0}, []numeric.Value{numeric.Of(math.MaxFloat64), numeric.Of(math.MaxFloat64)}, nil)
	sent := NewFigures()
	sent.Grow(1)
	sent.ReadPeer(&message{left: f.AppendPeer(nil, 0)}, 0)
	const want = `{"count":2,"min":1.7976931348623157e308,"max":1.7976931348623157e308,"sum":null,"avg":null,"stdDev":null}`
	for _, figures := range []*Figures{f, sent} {
		if got := string(figures.AppendJSON(nil, 0)); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func total(values []numeric.Value, power int) *big.Float {
	sum := new(big.Float).SetPrec(2000)
	for _, v := range values {
		x := new(big.Float).SetPrec(2000).SetFloat64(v.Float)
		x.Add(x, big.NewFloat(float64(v.Rest)))
		if power == 2 {
			x.Mul(x, x)
		}
		sum.Add(sum, x)
	}
	return sum
}

func largest(values []numeric.Value) (most float64) {
	for _, v := range values {
		most = max(most, math.Abs(v.Float))
	}
	return most
}

func quotient(x *big.Float, n int) *big.Float {
	return new(big.Float).SetPrec(2000).Quo(x, big.NewFloat(float64(n)))
}

func float(x *big.Float) float64 { f, _ := x.Float64(); return f }
