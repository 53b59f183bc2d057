package aggregate

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"svc/internal/numeric"
	"svc/internal/turns"
	"svc/segment"
)

// TestTotals compares the figures of numbers that are summed per group with those of numbers that are folded: integers and others, at and
// beyond the bounds for summing, in several segments and batches.
func TestTotals(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	numbers := []func() numeric.Value{
		func() numeric.Value { return numeric.OfInt(r.Int64N(41) - 20) },
		func() numeric.Value { return numeric.OfInt(r.Int64N(2<<31) - 1<<31) },
		func() numeric.Value {
			return numeric.OfInt([]int64{-1<<31 - 1, -1 << 31, 1<<31 - 1, 1 << 31}[r.IntN(4)])
		},
		func() numeric.Value { return numeric.Of(r.Float64()*20 - 10) },
		func() numeric.Value { return numeric.OfInt(r.Int64() - 1<<62) },
	}
	end, most := endTotal, maxTotals
	defer func() { endTotal, maxTotals = end, most }()
	settled := 0 // batches before which totals were settled to make room
	for round := range 24 {
		endTotal, maxTotals = end, most
		switch round % 4 {
		case 0:
			endTotal = 1 + r.Uint64N(uint64(1+20*round))
		case 1:
			maxTotals = r.IntN(5) // some batches fold
		}
		kinds := numbers[:1+r.IntN(len(numbers))]
		added, folded := newStats(nil).(*stats), NewFigures()
		w := newWork(turns.Of(context.Background()), testCode)
		whole := 0
		for range 1 + r.IntN(3) {
			b := segment.NewBuilder(segment.BuilderOptions{})
			rows := 1 + r.IntN(300)
			for i := range rows {
				b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
				b.Number(0, kinds[r.IntN(len(kinds))]())
				b.Present(0)
				b.EndDoc()
			}
			file := written(t, b)
			if err := added.open(w, columnOf{column: file.Column(0)}); err != nil {
				t.Fatal(err)
			}
			batches := 1 + r.IntN(3)
			if round == 0 { // so that the second one has no room
				batches = 2
			}
			for range batches {
				var p pairs
				for row := range uint32(rows - 1) {
					if r.IntN(3) > 0 {
						p.rows, p.groups = append(p.rows, row), append(p.groups, r.Uint32N(5))
					}
				}
				p.rows, p.groups = append(p.rows, uint32(rows-1)), append(p.groups, 0)
				before := added.totals.n
				if err := added.walk(w, p); err != nil {
					t.Fatal(err)
				}
				if maxTotals == most && added.totals.n != before+uint64(len(p.rows)) {
					settled++
				}
				if maxTotals < most && slices.Max(p.groups) >= uint32(maxTotals) && added.totals.n > before {
					t.Fatalf("seed %d, round %d: %d groups have totals, want at most %d", seed, round, slices.Max(p.groups)+1, maxTotals)
				}
				whole += int(added.totals.n)
				ords, _ := file.Column(0).EachNumber(nil, nil, p.rows)
				folded.Grow(int(slices.Max(p.groups)) + 1)
				folded.Fold(p.groups, file.Column(0).NumbersAt(nil, ords), nil)
			}
		}
		if whole == 0 && maxTotals == most {
			t.Fatalf("seed %d, round %d: no number was summed", seed, round)
		}
		for g := range 5 {
			var got, want any
			answer := render{work: w}
			added.appendJSON(&answer, g)
			fold := folded.AppendJSON(nil, g)
			if err := errors.Join(json.Unmarshal(answer.dst, &got), json.Unmarshal(fold, &want)); err != nil {
				t.Fatal(err)
			}
			if !same(got, want) {
				t.Fatalf("seed %d, round %d, group %d: %s, want %s", seed, round, g, answer.dst, fold)
			}
		}
	}
	if settled == 0 {
		t.Errorf("seed %d: totals were never settled to make room", seed)
	}
}
