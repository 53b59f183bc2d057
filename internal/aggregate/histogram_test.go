package aggregate

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// TestIntervalsOfLargeIntegers counts integers from 2⁵³ on that are next to the bounds of intervals and have no float64 of their own. Each
// is in the bucket whose bounds it is between, by row and by ordinal.
func TestIntervalsOfLargeIntegers(t *testing.T) {
	const rows, interval = 600, 1000
	r := rand.New(rand.NewPCG(1, 2))
	b := segment.NewBuilder(segment.BuilderOptions{})
	var values []numeric.Value
	for i := range rows {
		n := (int64(1e17)/interval+r.Int64N(100))*interval + r.Int64N(21) - 10
		if i%2 == 0 {
			n = -n
		}
		b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
		values = append(values, numeric.OfInt(n))
		b.Number(0, values[i])
		b.Present(0)
		b.EndDoc()
	}
	segments := []segment.Live{{Reader: written(t, b)}}
	few, all := roaring.New(), roaring.New()
	few.AddRange(0, 20)
	all.AddRange(0, rows)
	for _, among := range []*roaring.Bitmap{few, all} {
		for _, body := range []string{`{"a":{"histogram":"f","interval":1000}}`, `{"a":{"histogram":"f","interval":1000,"aggregations":{"b":{"stats":"f"}}}}`} {
			result, turn := parsed(t, body).New(), turns.Of(context.Background())
			source := &Source{
				Segments: segments,
				Fields:   settings.Resolve([]string{"f"}, allFilterable(t), "id"),
				Count:    func(int) int { return int(among.GetCardinality()) },
				Rows:     func(int) *roaring.Bitmap { return among },
				Ordinals: func(_ int, _ segment.FieldID, c *segment.Column, strings bool) Ordinals {
					return CountOrdinals(c, strings, among, rows)
				},
			}
			if err := result.Compute(turn, source, testCode); err != nil {
				t.Fatal(err)
			}
			text, err := result.AppendJSON(turn, nil, testCode)
			if err != nil {
				t.Fatal(err)
			}
			var answer struct {
				A struct {
					Buckets []struct {
						From, To json.Number
						Count    int
					}
				}
			}
			if err := json.Unmarshal(text, &answer); err != nil {
				t.Fatal(err)
			}
			for _, k := range answer.A.Buckets {
				from, _ := numeric.Parse(k.From.String())
				to, _ := numeric.Parse(k.To.String())
				want := 0
				for it := among.Iterator(); it.HasNext(); {
					if x := values[it.Next()]; x.Compare(from) >= 0 && x.Compare(to) < 0 {
						want++
					}
				}
				if k.Count != want {
					t.Errorf("%s among %d rows: %d numbers from %s to %s, want %d", body, among.GetCardinality(), k.Count, from.AppendText(nil), to.AppendText(nil), want)
				}
			}
		}
	}
}
