package format

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/budget"
	"svc/internal/jsontext"
	"svc/internal/query"
	"svc/internal/turns"
)

// TestRunsAgreeWithRescoring compares the chosen run of random matches with the best of all runs, each scored separately.
func TestRunsAgreeWithRescoring(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	for round := range 4000 {
		terms := 1 + rng.IntN([]int{2, 6, 80}[rng.IntN(3)])
		apart := 1 + rng.IntN(12)
		sparser := rng.IntN(3) == 0 // each run scores better than the previous one
		var matches []match
		word := 0
		for i := range rng.IntN(300) {
			if word += rng.IntN(apart); sparser {
				word += i / 20
			}
			first := rng.IntN(terms)
			m := match{firstWord: word, lastWord: word + max(0, rng.IntN(8)-4), firstTerm: first, lastTerm: first + rng.IntN(4) - 1, list: -1}
			matches = append(matches, m)
			word = m.lastWord + 1
		}
		c := crop{length: 1 + rng.IntN(1+rng.IntN(400))}
		for _, m := range matches {
			if err := c.add(m); err != nil {
				t.Fatal(err)
			}
			if got, want := c.sums.score, scoreInterval(c.matches[c.open:]); got != want {
				t.Fatalf("round %d: %v is %+v, want %+v", round, c.matches[c.open:], got, want)
			}
		}
		c.finish()
		want := bestOfAll(matches, c.length)
		got := c.bestRun()
		if len(want) == 0 {
			if got != nil {
				t.Fatalf("round %d: %v of nothing", round, got)
			}
			continue
		}
		if !slices.Equal(got, []match{want[0], want[len(want)-1]}) || c.count != len(want) || c.score != scoreInterval(want) {
			t.Fatalf("round %d, %d words: %d matches, %+v, want %v", round, c.length, c.count, got, want)
		}
	}
}

// TestLongCropsEnd crops a text with many matches for a cancelled search, and for one with little memory.
func TestLongCropsEnd(t *testing.T) {
	body := strings.Repeat("lorem ipsum ", 30_000)
	v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":%s}`, jsontext.AppendQuoted(nil, []byte(body))))
	concordance, err := v.Segments[0].Concordance(0, []byte(`"body"`))
	if err != nil || concordance == nil {
		t.Fatal(concordance, err)
	}
	over, cancel := context.WithCancel(context.Background())
	cancel()
	h := &query.Highlights{Words: []query.Words{{Word: "lorem", Forms: map[string]struct{}{"lorem": {}}, Chars: 5}}}
	for _, tt := range []struct {
		what   string
		length int
		ctx    context.Context
		limit  int64
		want   error
	}{
		{"short", 10, context.Background(), 1 << 20, nil},
		{"long", 20_000, context.Background(), 64 << 20, nil},
		{"long, cancelled", 20_000, over, 64 << 20, context.Canceled},
		{"long, little room", 20_000, context.Background(), 1 << 20, budget.ErrFull},
		{"all", math.MaxInt32, context.Background(), 64 << 20, nil},
		{"all, cancelled", math.MaxInt32, over, 64 << 20, context.Canceled},
		{"all, little room", math.MaxInt32, context.Background(), 1 << 20, budget.ErrFull},
	} {
		for _, way := range []string{"by the concordance", "by the text"} {
			account := budget.New(tt.limit, nil).Open(tt.limit)
			r := textScan{find: newHighlighter(v.Analyzer, h)}
			c := crop{length: tt.length, perfect: intervalScore{terms: 2}, clock: clock{turn: turns.Of(tt.ctx)}, room: budget.NewRoom(account)}
			used := true
			if way == "by the text" {
				err = c.find(&r, []byte(body), nil, nil)
			} else {
				used, err = c.locate(&r, concordance, []byte(body), nil, v.Analyzer.Fingerprint(nil), nil)
			}
			if !errors.Is(err, tt.want) || used != (err == nil) && way != "by the text" {
				t.Errorf("%s, %s: %v, %v, want %v", tt.what, way, used, err, tt.want)
			}
			if held := account.Held(); err == nil && held < int64(min(tt.length/2, 30_000)*matchBytes) && tt.length > 10 {
				t.Errorf("%s, %s: %d bytes are held", tt.what, way, held)
			}
			account.Close()
		}
	}
}

// TestLongHighlightsEnd highlights and lists the matches of a long text for a cancelled search, and with limits on memory and
// on the answer.
func TestLongHighlightsEnd(t *testing.T) {
	doc := fmt.Appendf(nil, `{"id":1,"body":"%s"}`, strings.Repeat("lorem ipsum ", 30_000))
	over, cancel := context.WithCancel(context.Background())
	cancel()
	h := &query.Highlights{Words: []query.Words{{Word: "lorem", Forms: map[string]struct{}{"lorem": {}}, Chars: 5}}}
	asked := plain()
	asked.Highlight = []string{"*"}
	v := outline(t, "", "id", "body")
	for _, tt := range []struct {
		what   string
		ctx    context.Context
		limit  int64 // of the account
		answer int64
		marks  error
		places error
	}{
		{"with room", context.Background(), 64 << 20, 64 << 20, nil, nil},
		{"over", over, 64 << 20, 64 << 20, context.Canceled, context.Canceled},
		{"little room", context.Background(), 300 << 10, 64 << 20, budget.ErrFull, budget.ErrFull},
		{"a short answer", context.Background(), 64 << 20, 200 << 10, budget.ErrLarge, nil},
	} {
		account := budget.New(tt.limit, nil).Open(tt.answer)
		f := New(v, asked, h)
		f.cut.turn, f.room, f.holds = turns.Of(tt.ctx), account.Room(), budget.NewRoom(account)
		got, err := f.AppendFormatted(nil, 0, 0, doc, nil)
		if !errors.Is(err, tt.marks) || err == nil && strings.Count(string(got), "<em>lorem</em>") != 30_000 {
			t.Errorf("%s: marks of %d bytes, %v, want %v", tt.what, len(got), err, tt.marks)
		}
		if held := account.Held(); err == nil && held < int64(len(got)) {
			t.Errorf("%s: %d bytes are held for %d", tt.what, held, len(got))
		}
		f.holds.Empty()
		got, err = f.AppendMatches(nil, doc)
		if !errors.Is(err, tt.places) || err == nil && strings.Count(string(got), `"start"`) != 30_000 {
			t.Errorf("%s: places of %d bytes, %v, want %v", tt.what, len(got), err, tt.places)
		}
		if held := account.Held(); err == nil && held < 30_000*spanBytes {
			t.Errorf("%s: %d bytes are held for places", tt.what, held)
		}
		account.Close()
	}
}

// BenchmarkHighlight highlights texts of several lengths in which every second word matches, or none.
func BenchmarkHighlight(b *testing.B) {
	h := &query.Highlights{Words: []query.Words{{Word: "lorem", Forms: map[string]struct{}{"lorem": {}}, Chars: 5}}}
	asked := plain()
	asked.Highlight = []string{"*"}
	v := outline(b, "", "body")
	for _, words := range []string{"lorem ipsum ", "dolor ipsum "} {
		for _, n := range []int{5, 90_000} {
			b.Run(fmt.Sprintf("%s/%d", words[:5], n), func(b *testing.B) {
				f := New(v, asked, h)
				doc, dst := fmt.Appendf(nil, `{"body":"%s"}`, strings.Repeat(words, n)), []byte(nil)
				for b.Loop() {
					var err error
					if dst, err = f.AppendFormatted(dst[:0], 0, 0, doc, nil); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
