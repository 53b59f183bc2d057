package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// TestTallyIsWalk aggregates rows of random segments by row, by ordinal, by row without near, and with a near that lists no intervals: the
// answers must be equal. Columns have one or several values per row, few or many different ones, for most or few rows, and all counts that
// Ordinals may have.
func TestTallyIsWalk(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	const byRow, byOrdinal, withoutNear, unlisted, ways = 0, 1, 2, 3, 4
	defer func(few, many, near int) { FewCounted, ManyPerCounted, maxNear = few, many, near }(FewCounted, ManyPerCounted, maxNear)
	counted := 0                                      // segments counted by whole intervals
	tallied, near := map[string]int{}, [ways][2]int{} // uses of near, by way and by nesting
	lacking := func() bool {
		for _, k := range kinds {
			if tallied[k.name] == 0 {
				return true
			}
		}
		return counted == 0 || near[byRow][0] == 0 || near[byRow][1] == 0 || near[unlisted][0] == 0 || near[unlisted][1] == 0
	}
	for round := 0; round < 8 || round < 160 && lacking(); round++ {
		const fields = 3
		var segments []segment.Live
		var among []*roaring.Bitmap
		for range 1 + r.IntN(3) {
			rows := 1 + r.IntN(2500)
			b := segment.NewBuilder(segment.BuilderOptions{})
			var most, different, filled [fields]int
			whole := round == 1 || round > 1 && r.IntN(3) == 0
			for f := range fields {
				most[f], different[f], filled[f] = 1+2*r.IntN(2), []int{1, 20, 1 << 20}[r.IntN(3)], []int{100, 60, 3}[r.IntN(3)]
			}
			if round < 2 { // its histogram has few intervals
				most[0], different[0], filled[0] = 1, 20, 100
			}
			for i := range rows {
				b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
				for f := range fields {
					for n := range most[f] {
						if r.IntN(100) >= filled[f] || n > 0 && r.IntN(2) == 0 {
							continue
						}
						x := r.IntN(different[f])
						switch {
						case f == 0 && whole:
							b.Number(segment.FieldID(f), numeric.Of(float64(x-100)))
						case f == 0:
							b.Number(segment.FieldID(f), numeric.Of(float64(x-100)/8))
						case f == 1 && r.IntN(2) == 0:
							b.Number(segment.FieldID(f), numeric.OfInt(int64(x)<<34|1))
						default:
							s := fmt.Append(nil, "s", x)
							b.String(segment.FieldID(f), s, s)
						}
						b.Present(segment.FieldID(f))
					}
				}
				b.EndDoc()
			}
			file := written(t, b)
			some, part := roaring.New(), []int{2, 50, 98, 100}[r.IntN(4)]
			for row := range rows {
				if round == 0 || r.IntN(100) < part {
					some.Add(uint32(row))
				}
			}
			segments, among = append(segments, segment.Live{Reader: file}), append(among, some)
		}
		all := allFilterable(t)
		FewCounted, ManyPerCounted = []int{0, 4096}[r.IntN(2)], r.IntN(3)
		source := Source{
			Segments: segments,
			Fields:   settings.Resolve([]string{"f0", "f1", "f2"}, all, "id"),
			Ordinals: func(seg int, _ segment.FieldID, c *segment.Column, strings bool) Ordinals {
				return CountOrdinals(c, strings, among[seg], segments[seg].Rows())
			},
		}
		for f := range fields {
			for _, body := range []string{`{"a":{"stats":"f%d"}}`, `{"a":{"percentiles":"f%d"}}`, `{"a":{"terms":"f%d","order":"count:asc"}}`, `{"a":{"histogram":"f%d","interval":2.5}}`,
				`{"a":{"histogram":"f%d","interval":3,"offset":-7}}`,
				`{"a":{"histogram":"f%d","interval":2.5,"aggregations":{"b":{"stats":"f0"}}}}`,
				`{"a":{"dateHistogram":"f%d","interval":"second","timeZone":"Asia/Kathmandu"}}`, `{"a":{"range":"f%d","bands":[{"to":10},{"from":3,"to":20},{"from":20}]}}`, `{"a":{"cardinality":"f%d"}}`} {
				request := parsed(t, fmt.Sprintf(body, f))
				var answers [ways]any
				for way := range answers {
					if maxNear = 1 << 12; way == unlisted {
						maxNear = 0
					}
					result, w := request.New(), newWork(turns.Of(context.Background()), testCode)
					for seg := range segments {
						if err := openAll(w, request.Set, result.nodes, &source, seg, segments[seg].Rows()); err != nil {
							t.Fatal(err)
						}
						b, ok := result.nodes[0].(*buckets)
						if ok && way == withoutNear {
							b.near.opened = true
						}
						if way == byOrdinal {
							done, err := result.nodes[0].tally(w)
							if err != nil {
								t.Fatal(err)
							}
							if done {
								tallied[request.Set[0].kind.name]++
								continue
							}
						}
						var rows [batch]uint32
						for it := among[seg].ManyIterator(); ; {
							n := it.NextMany(rows[:])
							if n == 0 {
								break
							}
							if err := result.nodes[0].walk(w, pairs{rows: rows[:n]}); err != nil {
								t.Fatal(err)
							}
						}
						if ok {
							if len(b.near.counts) > 0 {
								counted++
							}
							if err := b.settle(w); err != nil {
								t.Fatal(err)
							}
						}
						if ok && b.near.size > 0 && (way == byRow) == (len(b.near.buckets) > 0) {
							near[way][len(b.nested)]++
						}
					}
					answer, err := result.AppendJSON(w.turn, nil, testCode)
					if err != nil {
						t.Fatal(err)
					}
					if err := json.Unmarshal(answer, &answers[way]); err != nil {
						t.Fatal(err)
					}
				}
				for way, answer := range answers {
					if !same(answers[byRow], answer) {
						t.Fatalf("seed %d, round %d, %d segments, %s: by row %.1000v, way %d %.1000v", seed, round, len(segments), request.Text, answers[byRow], way, answer)
					}
				}
			}
		}
	}
	for _, way := range []int{byRow, unlisted} {
		if near[way][0] == 0 || near[way][1] == 0 {
			t.Errorf("seed %d, way %d: near was used %d times, %d times with nested aggregations", seed, way, near[way][0], near[way][1])
		}
	}
	if counted == 0 {
		t.Errorf("seed %d: no segment was counted by whole intervals", seed)
	}
	for _, k := range kinds {
		if tallied[k.name] == 0 {
			t.Errorf("seed %d: %s was never counted by ordinal", seed, k.name)
		}
	}
}

// same compares two answers, numbers to 9 digits.
func same(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for name, value := range a {
			if !same(value, b[name]) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, same)
	case float64:
		b, ok := b.(float64)
		return ok && math.Abs(a-b) <= 1e-9*max(1, math.Abs(a))
	}
	return a == b
}
