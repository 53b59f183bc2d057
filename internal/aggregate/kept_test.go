package aggregate

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/budget"
	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// TestCachedStates aggregates random segments without cached states, while states are cached, and from cached states: the answers
// must be equal.
func TestCachedStates(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	all := allFilterable(t)
	long := strings.Repeat("x", 200) // so that states have about the length that peerBytes returns
	found, kept := 0, 0
	for round := range 10 {
		var segments []segment.Live
		var among []*roaring.Bitmap
		for range 1 + r.IntN(4) {
			b, rows, some := segment.NewBuilder(segment.BuilderOptions{}), 1+r.IntN(300), roaring.New()
			for i := range rows {
				b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
				for f := range 3 {
					for range r.IntN(2 + f) {
						x := numeric.Of(float64(r.IntN(60)) / []float64{1, 8, 10}[r.IntN(3)])
						if f == 2 && r.IntN(2) == 0 {
							s := fmt.Append(nil, "s", r.IntN(9))
							s = append(s, long[:r.IntN(len(long)+1)]...)
							b.String(segment.FieldID(f), s, append([]byte{"sS"[r.IntN(2)]}, s[1:]...))
						} else {
							b.Number(segment.FieldID(f), x)
						}
						b.Present(segment.FieldID(f))
					}
				}
				b.EndDoc()
				if r.IntN(4) > 0 {
					some.Add(uint32(i))
				}
			}
			file := written(t, b)
			segments, among = append(segments, segment.Live{Reader: file}), append(among, some)
		}
		source := Source{
			Segments: segments,
			Fields:   settings.Resolve([]string{"f0", "f1", "f2"}, all, "id"),
			Count:    func(seg int) int { return int(among[seg].GetCardinality()) },
			Rows:     func(seg int) *roaring.Bitmap { return among[seg] },
			Ordinals: func(seg int, _ segment.FieldID, c *segment.Column, strings bool) Ordinals {
				return CountOrdinals(c, strings, among[seg], segments[seg].Rows())
			},
		}
		for _, body := range []string{`{"a":{"stats":"f%d"},"b":{"stats":"f2"}}`, `{"a":{"terms":"f%d","limit":5,"aggregations":{"b":{"stats":"f0"},"c":{"terms":"f2"}}}}`,
			`{"a":{"histogram":"f%d","interval":2.5,"aggregations":{"b":{"stats":"f1"}}}}`, `{"a":{"dateHistogram":"f%d","interval":"second"}}`,
			`{"a":{"range":"f%d","bands":[{"to":10},{"from":3,"to":20}],"aggregations":{"t":{"terms":"f2"}}}}`, `{"a":{"percentiles":"f%d"}}`} {
			request := parsed(t, fmt.Sprintf(body, r.IntN(3)))
			var answers [3]any
			states := map[int][]byte{}
			skipped := r.IntN(len(segments) + 1)
			for way := range answers {
				source.Kept, source.Keep = nil, nil
				if way > 0 {
					source.Keep = func(seg, bytes int) func([]byte) {
						return func(state []byte) {
							states[seg], kept = state, kept+1
							if len(state) > bytes || bytes > 2*len(state) {
								t.Fatalf("seed %d, %s: a state of %d bytes was estimated as %d", seed, request.Text, len(state), bytes)
							}
						}
					}
					source.Kept = func(seg int, _ func(int64) error) (*Result, bool, error) {
						if seg == skipped {
							return nil, false, nil
						}
						state, ok := states[seg]
						if !ok || r.IntN(4) == 0 { // cached, or evicted at random
							return nil, true, nil
						}
						found++
						m := &message{left: state}
						read, err := request.ReadPeer(m)
						if m.bad || len(m.left) > 0 {
							t.Fatalf("seed %d: %d bytes are left, bad %v", seed, len(m.left), m.bad)
						}
						return read, true, err
					}
				}
				result, turn := request.New(), turns.Of(context.Background())
				if err := result.Compute(turn, &source, testCode); err != nil {
					t.Fatal(err)
				}
				answer, err := result.AppendJSON(turn, nil, testCode)
				if err != nil {
					t.Fatal(err)
				}
				if err := json.Unmarshal(answer, &answers[way]); err != nil {
					t.Fatal(err)
				}
			}
			if request.Keeps() != (len(states) > 0) && skipped == len(segments) && source.Count(0) > 0 {
				t.Fatalf("seed %d, %s: %d states are cached", seed, request.Text, len(states))
			}
			if !same(answers[0], answers[1]) || !same(answers[0], answers[2]) {
				t.Fatalf("seed %d, round %d, %s: %.1000v, while caching %.1000v, from the cache %.1000v", seed, round, request.Text, answers[0], answers[1], answers[2])
			}
		}
	}
	if found == 0 || kept == 0 {
		t.Errorf("seed %d: %d states were cached, %d found", seed, kept, found)
	}
}

// TestCachedStatesAreChargedOnce computes many groups without states, while caching them, and from cached ones. A request must hold about
// the same memory in the end, and none for the states.
func TestCachedStatesAreChargedOnce(t *testing.T) {
	const rows = 20_000
	b := segment.NewBuilder(segment.BuilderOptions{})
	for i := range rows {
		b.StartDoc(segment.DocID(i), strconv.AppendInt(nil, int64(i), 10), []byte("{}"))
		b.Number(0, numeric.OfInt(int64(i)))
		b.Present(0)
		b.EndDoc()
	}
	file := written(t, b)
	all := allFilterable(t)
	some := roaring.New()
	some.AddRange(0, rows-1)
	live := segment.Live{Reader: file}
	request := parsed(t, `{"a":{"terms":"f0","aggregations":{"s":{"stats":"f0"}}}}`)
	states, puts := map[int][]byte{}, 0
	without := Source{
		Segments: []segment.Live{live, live},
		Fields:   settings.Resolve([]string{"f0"}, all, "id"),
		Count:    func(int) int { return rows - 1 },
		Rows:     func(int) *roaring.Bitmap { return some },
		Ordinals: func(_ int, _ segment.FieldID, c *segment.Column, strings bool) Ordinals {
			return CountOrdinals(c, strings, some, rows)
		},
	}
	with := without
	with.Keep = func(seg, _ int) func([]byte) { return func(state []byte) { states[seg], puts = state, puts+1 } }
	with.Kept = func(seg int, hold func(int64) error) (*Result, bool, error) {
		if states[seg] == nil {
			return nil, true, nil
		}
		m := &message{left: states[seg]}
		state, err := request.ReadPeer(m)
		if err == nil {
			err = hold(int64(m.held))
		}
		return state, true, err
	}
	held := func(s *Source, limit int64) int64 {
		account := budget.New(limit, nil).Open(limit)
		defer account.Close()
		if err := request.New().Compute(turns.Of(context.WithValue(t.Context(), budget.Key, account)), s, testCode); err != nil {
			t.Fatal(err)
		}
		return account.Held()
	}
	want := held(&without, 1<<30)
	for _, way := range []string{"keeping", "kept"} {
		if got := held(&with, 1<<30); got < want-want/8 || got > want+want/8 {
			t.Errorf("%s: %d bytes are held at the end, %d without states", way, got, want)
		}
	}
	if puts != 2 {
		t.Errorf("%d states were cached", puts)
	}
}
