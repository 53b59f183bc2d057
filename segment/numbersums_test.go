package segment

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"svc/internal/numeric"
	"svc/internal/vfs"
)

// TestNumberSums reads the numbers and strings of rows in each ordinal width and sums whole numbers, and compares them with RowNumbers
// and RowStrings.
func TestNumberSums(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	widths, counted := map[int]int{}, 0
	for round := range 12 {
		different := []int{3, 2000, 1 << 20}[round%3]
		rows := 300 + r.IntN(3000)
		if round == 2 { // more values than fit into two bytes
			rows = 80_000
		}
		whole := round < 3 || r.IntN(4) > 0
		b := NewBuilder(BuilderOptions{})
		for i := range rows {
			b.StartDoc(DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
			if r.IntN(10) > 0 {
				x := numeric.OfInt(r.Int64N(int64(different)) - 100)
				if round == 2 {
					x = numeric.OfInt(int64(i))
				}
				if !whole && i%7 == 0 {
					x = []numeric.Value{numeric.Of(.5), numeric.OfInt(1 << 31), numeric.OfInt(-1<<31 - 1)}[r.IntN(3)]
				}
				b.Number(0, x)
				b.Present(0)
			}
			if r.IntN(10) > 0 {
				s := fmt.Append(nil, r.IntN(different))
				b.String(1, s, s)
				b.Present(1)
			}
			b.EndDoc()
		}
		fs := vfs.NewMem()
		if _, err := b.Write(context.Background(), fs, "s.seg"); err != nil {
			t.Fatal(err)
		}
		file, err := Open(fs, "s.seg")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { file.Close() })
		numbers, texts := file.Column(0), file.Column(1)
		if numbers == nil || texts == nil || !numbers.SingleNumbers() || !texts.SingleStrings() {
			continue
		}
		var list, groups []uint32
		for range 1 + r.IntN(2000) {
			list, groups = append(list, r.Uint32N(uint32(rows))), append(groups, r.Uint32N(5))
		}
		wantWhole := true
		for ord := range numbers.Numbers() {
			_, ok := Whole(numbers.Number(ord).Float)
			wantWhole = wantWhole && ok
		}
		for range 2 { // the second answer is cached
			if got := numbers.SumsNumbers(); got != wantWhole {
				t.Fatalf("seed %d, round %d: all numbers are whole: %v, want %v", seed, round, got, wantWhole)
			}
		}
		want := make([]NumberSums, 5)
		var all NumberSums
		floats, ords, strings := numbers.FloatsOf(nil, list), numbers.NumberOrdinals(nil, list), texts.StringOrdinals(nil, list)
		for i, row := range list {
			text := uint32(texts.Strings())
			if of := texts.RowStrings(nil, Row(row)); len(of) > 0 {
				text = of[0]
			}
			ord, x := uint32(numbers.Numbers()), math.NaN()
			for _, ord = range numbers.RowNumbers(nil, Row(row)) {
				x = numbers.Number(int(ord)).Float
				want[groups[i]].Add(ord, int64(x))
				all.Add(ord, int64(x))
			}
			if strings[i] != text || ords[i] != ord || floats[i] != x && !(math.IsNaN(x) && math.IsNaN(floats[i])) {
				t.Fatalf("seed %d, round %d, row %d: %d, %d, %v, want %d, %d, %v", seed, round, row, strings[i], ords[i], floats[i], text, ord, x)
			}
		}
		if !wantWhole {
			continue
		}
		widths[numbers.rowNumbers.width]++
		got, one := make([]NumberSums, 5), make([]NumberSums, 1)
		for half := range 2 {
			from, to := half*(len(list)/2), len(list)/2+half*(len(list)-len(list)/2)
			numbers.SumNumbers(got, list[from:to], groups[from:to])
			numbers.SumNumbers(one, list[from:to], nil)
		}
		for g := range want {
			if got[g] != want[g] {
				t.Fatalf("seed %d, round %d, group %d: %+v, want %+v", seed, round, g, got[g], want[g])
			}
		}
		if one[0] != all {
			t.Fatalf("seed %d, round %d: %+v, want %+v", seed, round, one[0], all)
		}
		counts, tallied := make([]uint32, numbers.Numbers()), NumberSums{}
		numbers.CountNumbers(counts, list)
		var have, times []uint32
		for ord, n := range counts {
			if n > 0 {
				have, times = append(have, uint32(ord)), append(times, n)
			}
		}
		for half := range 2 { // the second half is added to the first sum
			if from, to := half*(len(have)/2), len(have)/2+half*(len(have)-len(have)/2); from < to {
				numbers.SumCounted(&tallied, have[from:to], times[from:to])
			}
		}
		if tallied != all {
			t.Fatalf("seed %d, round %d: counted numbers give %+v, want %+v", seed, round, tallied, all)
		}
		if all.Count > 0 {
			least, most := int64(numbers.Number(0).Float), int64(numbers.Number(numbers.Numbers()-1).Float)
			size := 2 + uint64(r.Int64N([]int64{3, 1000, MaxIntervalSize - 1}[r.IntN(3)]))
			first := least - r.Int64N(int64(size))
			if intervals := uint64(most-first)/size + 1; intervals < 1<<20 {
				got, want := make([]uint32, intervals), make([]uint32, intervals)
				for i, row := range list {
					if !math.IsNaN(floats[i]) {
						want[uint64(int64(floats[i])-first)/size]++
					} else if len(numbers.RowNumbers(nil, Row(row))) > 0 {
						t.Fatal("a number was not read")
					}
				}
				if numbers.CountIntervals(got, list, first, size); !slices.Equal(got, want) {
					t.Fatalf("seed %d, round %d: intervals of %d from %d have %v, want %v", seed, round, size, first, got, want)
				}
				counted++
			}
		}
		if all.Count > 0 && (all.Least() > all.Most || int(all.Most) >= numbers.Numbers()) {
			t.Fatalf("seed %d, round %d: ordinals %d to %d", seed, round, all.Least(), all.Most)
		}
	}
	if counted == 0 {
		t.Errorf("seed %d: nothing was counted by interval", seed)
	}
	if widths[1] == 0 || widths[2] == 0 || widths[4] == 0 {
		t.Errorf("seed %d: widths of ordinals were %v", seed, widths)
	}
}

// TestIntervalBounds counts numbers at the bounds of intervals, with the largest numbers and sizes.
func TestIntervalBounds(t *testing.T) {
	const least, most = -1 << 31, 1<<31 - 1
	b := NewBuilder(BuilderOptions{})
	var xs []int64
	for _, size := range []int64{2, 3, 7, 1000, 1<<31 - 1, 1 << 31} {
		for k := range int64(40) {
			q := k * (1 << 32) / size / 40
			for d := int64(-1); d < 2; d++ {
				xs = append(xs, min(max(least+q*size+d, least), most))
			}
		}
	}
	list := make([]uint32, len(xs))
	for i, x := range xs {
		b.StartDoc(DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
		b.Number(0, numeric.OfInt(x))
		b.Present(0)
		b.EndDoc()
		list[i] = uint32(i)
	}
	fs := vfs.NewMem()
	if _, err := b.Write(context.Background(), fs, "s.seg"); err != nil {
		t.Fatal(err)
	}
	c := openSegment(t, fs, "s.seg").Column(0)
	if !c.SumsNumbers() {
		t.Fatal("the numbers have no sum")
	}
	for _, size := range []int64{4096, 4097, 1_000_003, 1<<31 - 1, 1 << 31} {
		for _, first := range []int64{least, least - 5, least - size + 1} {
			got, want := make([]uint32, (most-first)/size+1), make([]uint32, (most-first)/size+1)
			for _, x := range xs {
				want[(x-first)/size]++
			}
			if c.CountIntervals(got, list, first, uint64(size)); !slices.Equal(got, want) {
				t.Errorf("intervals of %d from %d differ from a division", size, first)
			}
		}
	}
}
