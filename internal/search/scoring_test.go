package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/settings"
)

// scoredDoc is a document with the numbers of score functions.
type scoredDoc struct {
	ID      int                    `json:"id"`
	Title   string                 `json:"title"`
	Sold    *int                   `json:"sold,omitempty"`
	Tag     string                 `json:"tag"`
	Vectors map[string][][]float32 `json:"_vectors"`
}

// scoreCase has score functions and the level of a document according to their definition.
type scoreCase struct {
	json   string
	levels int
	level  func(d *scoredDoc) int
}

func levelOf(sum, low, high float64, levels int) int {
	return min(int(float64((sum-low)*float64(levels))/(high-low)), levels-1)
}

func (d *scoredDoc) sold(missing float64) float64 {
	if d.Sold == nil {
		return missing
	}
	return float64(*d.Sold)
}

func (d *scoredDoc) has(tag string) float64 {
	if d.Tag == tag {
		return 1
	}
	return 0
}

var scoreCases = []scoreCase{
	{`{"levels":5,"functions":[{"name":"sold","function":"linear","attribute":"sold","scale":16}]}`, 5,
		func(d *scoredDoc) int { return levelOf(min(d.sold(0)/16, 1), 0, 1, 5) }},
	{`{"levels":3,"functions":[{"name":"a","function":"filter","filter":"tag = a","weight":2},{"name":"sold","function":"linear","attribute":"sold","scale":8,"missing":4}]}`, 3,
		func(d *scoredDoc) int { return levelOf(2*d.has("a")+min(d.sold(4)/8, 1), 0, 3, 3) }},
	{`{"levels":9,"functions":[{"name":"b","function":"filter","filter":"tag = b","weight":-1},{"name":"few","function":"reciprocal","attribute":"sold","scale":4}]}`, 9,
		func(d *scoredDoc) int {
			few := 0.0
			if d.Sold != nil {
				few = 4 / (4 + d.sold(0))
			}
			return levelOf(few-d.has("b"), -1, 1, 9)
		}},
}

func (c *scoreCase) parse(t *testing.T) *settings.ScoreFunctions {
	t.Helper()
	f, err := settings.ParseScoreFunctions([]byte(c.json), "scoreFunctions", searchScoreFunctions)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// putScored makes an index of random documents that all have the word red.
func putScored(t *testing.T, l *library, r *rand.Rand, uid string) map[int]*scoredDoc {
	t.Helper()
	l.put(uid, `{"rankingRules":["score","words","typo"],"filterableAttributes":["tag","sold"],"searchableAttributes":["title"],
		"embedders":{"e":{"source":"userProvided","dimensions":2}}}`)
	docs := map[int]*scoredDoc{}
	for range 3 {
		var lines []string
		added := map[int]bool{}
		for range 25 {
			d := &scoredDoc{ID: r.IntN(60), Title: []string{"red", "red hat", "the red"}[r.IntN(3)], Tag: []string{"a", "b", "c"}[r.IntN(3)], Vectors: map[string][][]float32{"e": {}}}
			if added[d.ID] {
				continue
			}
			if r.IntN(4) > 0 {
				sold := r.IntN(20)
				d.Sold = &sold
			}
			if r.IntN(4) > 0 {
				d.Vectors["e"] = append(d.Vectors["e"], []float32{r.Float32(), 1})
			}
			added[d.ID], docs[d.ID] = true, d
			line, err := json.Marshal(d)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, string(line))
		}
		l.put(uid, "", lines...)
	}
	return docs
}

// scoredHit has the members of a hit that tests read.
type scoredHit struct {
	ID      int `json:"id"`
	Details struct {
		Score struct {
			Level, Levels int
			Value         float64
		} `json:"score"`
	} `json:"_rankingScoreDetails"`
	Federation struct{ QueriesPosition int } `json:"_federation"`
}

// check fails the test unless the score details have the level of the document.
func (h *scoredHit) check(t *testing.T, what string, c *scoreCase, d *scoredDoc) {
	t.Helper()
	s := &h.Details.Score
	if want := c.level(d); s.Level != want || s.Levels != c.levels || s.Value != float64(want)/float64(c.levels-1) {
		t.Fatalf("%s: document %d has %+v, want level %d of %d", what, h.ID, *s, want, c.levels)
	}
}

// TestScoreFunctionsOfHybridSearches compares hybrid and semantic searches with and without score functions: if the rule is first, hits of
// one level keep their order.
func TestScoreFunctionsOfHybridSearches(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	l := newLibrary(t)
	docs := putScored(t, l, r, "a")
	v := held(l.c.Get("a").View())
	defer v.Release()
	ctx := context.Background()
	ask := func(request Request) (ids []int, hits []scoredHit) {
		var answer struct{ Hits []scoredHit }
		if err := json.Unmarshal(got(got(Search(ctx, v, &request)).AppendJSON(ctx, nil)), &answer); err != nil {
			t.Fatal(err)
		}
		for _, h := range answer.Hits {
			ids = append(ids, h.ID)
		}
		return ids, answer.Hits
	}
	moved := 0
	for n := range 30 {
		c := &scoreCases[r.IntN(len(scoreCases))]
		ratio := []float64{0.2, 0.5, 0.8, 1}[r.IntN(4)]
		request := Request{Query: "red", Limit: 1000, Hybrid: &Hybrid{Embedder: "e", Ratio: &ratio}, Vector: []float32{r.Float32(), 1}, ShowRankingScoreDetails: true}
		want, _ := ask(request)
		plain := slices.Clone(want)
		slices.SortStableFunc(want, func(a, b int) int { return cmp.Compare(c.level(docs[b]), c.level(docs[a])) })
		if !slices.Equal(plain, want) {
			moved++
		}
		request.ScoreFunctions = c.parse(t)
		what := fmt.Sprintf("seed %d, search %d: %s, ratio %v", seed, n, c.json, ratio)
		ids, hits := ask(request)
		if !slices.Equal(ids, want) {
			t.Fatalf("%s:\nhits %v\nwant %v", what, ids, want)
		}
		for i := range hits {
			hits[i].check(t, what, c, docs[hits[i].ID])
		}
		request.Offset, request.Limit = r.IntN(20), r.IntN(10)
		if page, _ := ask(request); !slices.Equal(page, want[min(request.Offset, len(want)):][:min(request.Limit, max(0, len(want)-request.Offset))]) {
			t.Fatalf("%s: the page from %d has %v of %v", what, request.Offset, page, want)
		}
	}
	if moved == 0 {
		t.Errorf("seed %d: functions did not change the order of any search", seed)
	}
}

// TestScoreFunctionsOfFederatedSearches merges queries with different functions, two of them on one index: hits compare by level,
// normalised from 0 for the lowest to 1 for the highest of each query, then by query.
func TestScoreFunctionsOfFederatedSearches(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	l := newLibrary(t)
	docs := map[string]map[int]*scoredDoc{"a": putScored(t, l, r, "a"), "b": putScored(t, l, r, "b")}
	for n := range 20 {
		type candidate struct {
			value           float64
			query, rank, id int
		}
		var all []candidate
		var queries []asked
		var cases []*scoreCase
		for i, uid := range []string{"a", "b", "a"} {
			c := &scoreCases[(r.IntN(2)+i)%len(scoreCases)]
			cases = append(cases, c)
			request := Request{Query: "red", ScoreFunctions: c.parse(t), ShowRankingScoreDetails: true, Limit: 1000}
			queries = append(queries, asked{uid, 1, request})
			v := held(l.c.Get(uid).View())
			var answer struct{ Hits []scoredHit }
			err := json.Unmarshal(got(got(Search(context.Background(), v, &request)).AppendJSON(context.Background(), nil)), &answer)
			v.Release()
			if err != nil {
				t.Fatal(err)
			}
			for rank, h := range answer.Hits {
				all = append(all, candidate{float64(c.level(docs[uid][h.ID])) / float64(c.levels-1), i, rank, h.ID})
			}
		}
		slices.SortFunc(all, func(a, b candidate) int {
			return cmp.Or(cmp.Compare(b.value, a.value), cmp.Compare(a.query, b.query), cmp.Compare(a.rank, b.rank))
		})
		seen := map[string]bool{}
		all = slices.DeleteFunc(all, func(c candidate) bool {
			key := fmt.Sprint(queries[c.query].uid, c.id)
			again := seen[key]
			seen[key] = true
			return again
		})
		f := &FederatedRequest{Offset: r.IntN(10), Limit: r.IntN(60)}
		what := fmt.Sprintf("seed %d, search %d, from %d on", seed, n, f.Offset)
		_, body, err := l.federate(f, nil, queries...)
		if err != nil {
			t.Fatal(what, err)
		}
		var answer struct{ Hits []scoredHit }
		if err := json.Unmarshal([]byte(body), &answer); err != nil {
			t.Fatal(err)
		}
		all = all[min(f.Offset, len(all)):]
		all = all[:min(f.Limit, len(all))]
		if len(answer.Hits) != len(all) {
			t.Fatalf("%s: %d hits, want %d", what, len(answer.Hits), len(all))
		}
		for i := range all {
			h, want := &answer.Hits[i], &all[i]
			if h.ID != want.id || h.Federation.QueriesPosition != want.query {
				t.Fatalf("%s: hit %d is %d of query %d, want %d of query %d with %v", what, i, h.ID, h.Federation.QueriesPosition, want.id, want.query, want.value)
			}
			h.check(t, what, cases[want.query], docs[queries[want.query].uid][h.ID])
		}
	}
}
