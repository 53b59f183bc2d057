package rank

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"svc/internal/budget"
	"svc/internal/geo"
	"svc/internal/settings"
	"svc/segment"
)

// scoreShares computes the shares of score functions for a document by their definitions.
func (o *oracle) scoreShares(d *stored) []float64 {
	var shares []float64
	s := o.r.Scoring
	for i := range s.Functions.Functions {
		f := &s.Functions.Functions[i]
		share := 0.0
		switch {
		case f.Kind == settings.FilterScore:
			if of, ok := s.Filters[i].(*everyNth); ok && d.id%of.n == of.rest {
				share = 1
			}
		case f.Origin.Point:
			if d.document.at != nil {
				share = decayOf(f, geo.Distance(f.Origin.Lat, f.Origin.Lng, d.document.at.lat, d.document.at.lng))
			}
		default:
			var found []float64
			for _, v := range d.values[f.Attribute] {
				if x, ok := scoredNumber(f, v); ok {
					found = append(found, shareOf(f, s, x))
				}
			}
			if len(found) > 0 {
				share = slices.Max(found)
			} else if f.Missing != nil {
				share = shareOf(f, s, *f.Missing)
			}
		}
		shares = append(shares, share)
	}
	return shares
}

// scoredNumber returns a value as the number that a function uses.
func scoredNumber(f *settings.ScoreFunction, v any) (float64, bool) {
	x, isNumber := v.(float64)
	switch {
	case !f.Origin.Date:
		return x, isNumber
	case isNumber:
		x /= f.Origin.PerSecond
		year := time.Unix(int64(math.Floor(min(max(x, -1e12), 1e12))), 0).UTC().Year()
		return x, year >= 0 && year < 10000
	}
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if t, err := time.Parse(layout, v.(string)); err == nil {
			return float64(t.Unix()), true
		}
	}
	return 0, false
}

func shareOf(f *settings.ScoreFunction, s *Scoring, x float64) float64 {
	switch f.Kind {
	case settings.DecayScore:
		origin := f.Origin.Number
		if f.Origin.Now {
			step := int64(min(max(f.Scale/100, 1), 3600))
			origin = float64(s.Now / step * step)
		}
		return decayOf(f, math.Abs(x-origin))
	case settings.LogScore:
		return min(math.Log1p(max(x, 0))/math.Log1p(f.Scale), 1)
	case settings.SqrtScore:
		return min(math.Sqrt(max(x, 0)/f.Scale), 1)
	case settings.LinearScore:
		return min(max(x, 0)/f.Scale, 1)
	}
	return f.Scale / (f.Scale + max(x, 0))
}

func decayOf(f *settings.ScoreFunction, distance float64) float64 {
	d := max(distance-f.Offset, 0) / f.Scale
	switch f.Curve {
	case settings.ExpDecay:
		return math.Exp(math.Log(f.Decay) * d)
	case settings.GaussDecay:
		return math.Exp(math.Log(f.Decay) * float64(d*d))
	}
	return max(1-float64((1-f.Decay)*d), 0)
}

func (o *oracle) scoreLevel(d *stored) int {
	f := o.r.Scoring.Functions
	sum, low, high := 0.0, 0.0, 0.0
	for i, share := range o.scoreShares(d) {
		w := f.Functions[i].Weight
		sum += float64(w * share)
		low, high = low+min(w, 0), high+max(w, 0)
	}
	if low == high {
		return 0
	}
	return min(int(float64((sum-low)*float64(f.Levels))/(high-low)), f.Levels-1)
}

// scoring makes random score functions.
func (m *maker) scoring(t testing.TB, ix *Index) *Scoring {
	var list []map[string]any
	s := &Scoring{Now: 1_700_000_000 + m.Int64N(1000)}
	one := func(of ...any) any { return of[m.IntN(len(of))] }
	for i := range 1 + m.IntN(3) {
		f := map[string]any{"name": fmt.Sprint(i), "function": one("decay", "decay", "log", "sqrt", "linear", "reciprocal", "filter"), "weight": one(1, 1, 0.25, 3, -1, 0, m.Float64())}
		var filter Filter
		switch f["function"] {
		case "filter":
			f["filter"] = "x = 1"
			if m.chance(80) {
				every := segment.DocID(1 + m.IntN(5))
				filter = &everyNth{ix: ix, n: every, rest: segment.DocID(m.IntN(int(every))), unnamed: m.chance(20)}
			}
		case "decay":
			f["curve"], f["decay"], f["offset"] = one("exp", "gauss", "linear"), one(0.5, 0.1, 0.9), one(0, 0, 1, 1000)
			switch m.IntN(3) {
			case 0:
				f["attribute"], f["origin"], f["scale"] = one("price", "sold", "other"), one(0, 2, 1e6, -3), one(1, 3, 1e5)
			case 1:
				f["attribute"], f["origin"], f["scale"] = one("when", "sold"), one("now", "now", "2023-11-14T22:13:20Z", "2023-11-14"), one(0.5, 60, 86400, 1e7)
				f["unit"] = one("seconds", "seconds", "milliseconds")
			default:
				f["attribute"], f["origin"], f["scale"] = "_geo", map[string]any{"lat": m.IntN(4), "lng": m.IntN(4)}, one(1000, 1e5, 1e7)
			}
		default:
			f["attribute"], f["scale"] = one("price", "sold", "other"), one(1, 3, 1e6)
			if m.chance(40) {
				f["missing"] = one(0, 2, -1)
			}
		}
		list, s.Filters = append(list, f), append(s.Filters, filter)
	}
	text, err := json.Marshal(map[string]any{"levels": one(20, 20, 2, 7, 1000), "functions": list})
	if err != nil {
		t.Fatal(err)
	}
	if s.Functions, err = settings.ParseScoreFunctions(text, "scoreFunctions", "invalid_search_score_functions"); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestScoreLevelsInLargeBuckets compares searches of larger random indexes, whose buckets are split by level, with the oracle.
func TestScoreLevelsInLargeBuckets(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	m := &maker{Rand: rand.New(rand.NewPCG(seed, 1))}
	m.vocabulary()
	defer func(rows, blocks, bits, run int) {
		listRows, maxShareBlocks, scoreRunBits, scoreRunRows = rows, blocks, bits, run
	}(listRows, maxShareBlocks, scoreRunBits, scoreRunRows)
	listRows, maxShareBlocks = 16, []int{4096, 16, 2}[m.IntN(3)]
	scoreRunBits, scoreRunRows = []int{4, 6, 8, 16}[m.IntN(4)], 1+m.IntN(8)
	s := parseSettings(t, `{"rankingRules":["score","sort"],"sortableAttributes":["price","sold","when"],"searchableAttributes":["title"]}`)
	var parts [4][]*document
	var live []*document
	deleted := map[segment.DocID]bool{}
	texts, skewed := m.chance(30), m.chance(50)
	for i := range 600 {
		pairs := []any{"title", []string{"red", "blue"}[m.IntN(2)]}
		for range m.IntN(3) {
			pairs = append(pairs, "price", float64(m.IntN(10)))
		}
		if m.chance(80) {
			x := m.Float64() * 1e6
			if skewed && m.chance(95) {
				x = float64(m.IntN(3))
			}
			pairs = append(pairs, "sold", x)
		}
		for range m.IntN(2) + m.IntN(2) {
			second := 1_700_000_000 - m.Int64N(1e7)
			switch at := time.Unix(second, 0).UTC(); {
			case texts || m.chance(30):
				pairs = append(pairs, "when", at.Format(time.RFC3339))
			case !texts && m.chance(10):
				pairs = append(pairs, "when", []any{"soon", "2023-10-01", "2023-10-01T01:00:00+02:00", 1e300, -1e300}[m.IntN(5)])
			default:
				pairs = append(pairs, "when", float64(second))
			}
		}
		if m.chance(50) {
			pairs = append(pairs, "at", point{4 * m.Float64(), 4 * m.Float64()})
		}
		d := doc(i, pairs...)
		if at := m.IntN(3); m.chance(10) {
			deleted[d.id] = true
			parts[at] = append(parts[at], d)
		} else {
			live, parts[at] = append(live, d), append(parts[at], d)
		}
	}
	const top = 200 // documents of a small segment have the highest levels of topScoring
	for i := range 1 + m.IntN(3) {
		d := doc(600+top*i, "title", "red", "price", 10.0, "sold", 1e6)
		live, parts[3] = append(live, d), append(parts[3], d)
	}
	ix := build(t, s, parts[:], deleted)
	o := newOracle(ix, live)
	topScoring := &Scoring{Filters: []Filter{nil, &everyNth{ix: ix, n: top}}}
	var err error
	topScoring.Functions, err = settings.ParseScoreFunctions([]byte(`{"levels":20,"functions":[{"name":"price","function":"linear","attribute":"price","scale":10,"weight":3},
		{"name":"flag","function":"filter","filter":"x = 1"}]}`), "scoreFunctions", "invalid_search_score_functions")
	if err != nil {
		t.Fatal(err)
	}
	ran, scarce := taken{}, taken{}
	paths := []accessPath{scoreLevels, scoreBounds, scoreCached}
	for i := 0; i < 60 || i < 1000 && (ran.lacks(paths...) || scarce.lacks(scoreLevels)); i++ {
		r := &Request{Query: []string{"", "red"}[m.IntN(2)], Limit: 1 + m.IntN(40), MaxTotal: 1000, Details: true, Scoring: m.scoring(t, ix), Plan: new(Plan)}
		if m.chance(20) {
			r.Limit = 1000
		}
		if i == 0 {
			r.Query, r.Scoring, r.Limit = "", topScoring, 1000
		}
		r.Scores = r.Details
		if m.chance(30) {
			r.Sort = []SortKey{{Field: "price"}}
		}
		for range m.IntN(20) * m.IntN(2) { // each caches the costs of one run
			mustSearch(t, ix, *r)
		}
		r.Plan = new(Plan)
		got := mustSearch(t, ix, *r)
		ran.add(r.Plan)
		if r.Limit <= pageHits { // no hit is charged
			r, account := *r, budget.New([]int64{1, 1 << 30}[m.IntN(2)], nil).Open(0)
			r.Plan, r.Universe = new(Plan), universe(ix)
			charged, err := Search(context.WithValue(t.Context(), budget.Key, account), ix, &r)
			if err != nil || account.Held() != 0 {
				t.Fatalf("%v, %d bytes are held", err, account.Held())
			}
			if account.Limit() == 1 {
				scarce.add(r.Plan)
			}
			if !reflect.DeepEqual(got.Hits, charged.Hits) {
				t.Fatalf("%q by %s with a limit of %d bytes: other hits", r.Query, r.Scoring.Functions.JSON(), account.Limit())
			}
		}
		want, _ := o.rank(r)
		for i := range max(len(got.Hits), len(want)) {
			if i >= len(got.Hits) || i >= len(want) || got.Hits[i].ID != want[i].ID || !bytes.Equal(got.Hits[i].Details, want[i].Details) {
				t.Fatalf("%q by %s at %d, limit %d, hit %d:\n%s\nwant\n%s", r.Query, r.Scoring.Functions.JSON(), r.Scoring.Now, r.Limit, i, showHits(got.Hits, i), showHits(want, i))
			}
		}
	}
	ran.wants(t, paths...)
	if scarce.wants(t, scoreLevels); scarce[scoreBounds]+scarce[scoreCached] > 0 {
		t.Errorf("bounds of rows were used %d times without memory for them", scarce[scoreBounds])
	}
}

func showHits(hits []Hit, i int) string {
	if i >= len(hits) {
		return fmt.Sprintf("%d hits", len(hits))
	}
	return fmt.Sprintf("document %d: %s", hits[i].ID, hits[i].Details)
}

// TestScoresLast checks how long answers stay the same: a hundredth of the shortest scale, at most an hour.
func TestScoresLast(t *testing.T) {
	parse := func(text string) *Scoring {
		f, err := settings.ParseScoreFunctions([]byte(text), "p", "invalid_search_score_functions")
		if err != nil {
			t.Fatal(err)
		}
		return &Scoring{Functions: f, Now: 100_000_007, Filters: make([]Filter, len(f.Functions))}
	}
	decay := func(name, origin string, scale int) string {
		return fmt.Sprintf(`{"name":%q,"function":"decay","attribute":"a","origin":%s,"scale":%d}`, name, origin, scale)
	}
	for text, want := range map[string][2]int64{
		`[` + decay("a", `7`, 60) + `]`:                                        {math.MinInt64, math.MaxInt64},
		`[` + decay("a", `"now"`, 60) + `]`:                                    {100_000_007, 100_000_008},
		`[` + decay("a", `"now"`, 6000) + `]`:                                  {99_999_960, 100_000_020},
		`[` + decay("a", `"now"`, 1e9) + `]`:                                   {99_997_200, 100_000_800},
		`[` + decay("a", `"now"`, 6000) + `,` + decay("b", `"now"`, 700) + `]`: {100_000_005, 100_000_012},
	} {
		s := parse(text)
		if from, until := s.Lasts(); from != want[0] || until != want[1] {
			t.Errorf("%s: from %d until %d, want %v", text, from, until, want)
		}
		same, _ := appendScoring(nil, s)
		for _, now := range []int64{want[0], want[1] - 1, want[1], want[0] - 1} {
			later := *s
			later.Now = now
			if key, _ := appendScoring(nil, &later); want[1] != math.MaxInt64 && bytes.Equal(key, same) != (now >= want[0] && now < want[1]) {
				t.Errorf("%s: the key at %d is that at %d: %v", text, now, s.Now, bytes.Equal(key, same))
			}
		}
	}
}
