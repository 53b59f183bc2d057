package rank

import (
	"bytes"
	"encoding/json"
	"math"
	"testing"

	"svc/internal/settings"
)

// TestEveryRule searches with each kind of rule alone: its details are well-formed, and bitmaps and lists give equal results.
func TestEveryRule(t *testing.T) {
	defer func(c, l int) { classRows, listRows = c, l }(classRows, listRows)
	docs := func() (all []*document) {
		for i := range 40 {
			texts := []any{"title", []string{"red fox", "fox red", "rad fox", "the red old fox"}[i%4], "price", i % 7}
			if i%3 > 0 {
				texts = append(texts, "body", "a foxy red thing")
			}
			d := doc(i, texts...)
			d.vectors = []float32{1, float32(i % 5), 0}
			all = append(all, d)
		}
		return all
	}
	for k := range settings.RuleKinds {
		if makeRule[k] == nil {
			t.Errorf("makeRule has no row for %v, which rankingRules may name", k)
			continue
		}
		t.Run(k.String(), func(t *testing.T) {
			s := parseSettings(t, `{"searchableAttributes":["title","body"],"sortableAttributes":["price"],"rankingRules":["sort"]}`)
			s.RankingRules = []settings.RankingRule{{Kind: k, Field: "price"}}
			for _, vectors := range []*VectorQuery{nil, {Embedder: testEmbedder.ID, Vectors: [][]float32{{1, 1, 0}}}} {
				r := Request{Query: "red fox", Limit: 40, MaxTotal: 1000, Scores: true, Details: true, Values: true, Vectors: vectors}
				if k == settings.Sort {
					r.Sort = []SortKey{{Field: "price", Desc: true}}
				}
				if k == settings.Score {
					f, err := settings.ParseScoreFunctions([]byte(`[{"name":"a","function":"linear","attribute":"price","scale":3}]`), "p", "invalid_search_score_functions")
					if err != nil {
						t.Fatal(err)
					}
					r.Scoring = &Scoring{Functions: f, Filters: make([]Filter, 1)}
				}
				var before []Hit
				for _, lists := range []bool{true, false} {
					classRows, listRows = 1, 1
					if lists {
						classRows, listRows = 1000, 1000
					}
					hits := mustSearch(t, build(t, s, [][]*document{docs()[:25], docs()[25:]}, nil), r).Hits
					if len(hits) < 30 || before != nil && len(hits) != len(before) {
						t.Fatalf("%d hits, %d by lists", len(hits), len(before))
					}
					for i, h := range hits {
						var details map[string]struct{ Order *int }
						if err := json.Unmarshal(h.Details, &details); err != nil || len(details) == 0 {
							t.Fatalf("details %s: %v", h.Details, err)
						}
						for name, d := range details {
							if d.Order == nil {
								t.Fatalf("details %s: %s has no order", h.Details, name)
							}
						}
						if len(h.Values) == 0 {
							t.Fatal("there are no values to merge by")
						}
						if math.IsNaN(h.Score) || h.Score < 0 || h.Score > 1 {
							t.Fatalf("score %v", h.Score)
						}
						if before != nil && (h.ID != before[i].ID || h.Score != before[i].Score || !bytes.Equal(h.Details, before[i].Details)) {
							t.Fatalf("hit %d by bitmaps: document %d, %s; by lists: document %d, %s", i, h.ID, h.Details, before[i].ID, before[i].Details)
						}
					}
					before = hits
				}
			}
		})
	}
}

// TestSimilaritiesOfAList compares both implementations of the vector rule.
func TestSimilaritiesOfAList(t *testing.T) {
	var docs []*document
	for i := range 30 {
		d := doc(i, "title", "x")
		if i%4 > 0 {
			d.vectors = []float32{1, float32(i % 5), float32(i % 3)}
		}
		docs = append(docs, d)
	}
	ix := build(t, parseSettings(t, `{}`), [][]*document{docs[:20], docs[20:]}, nil)
	s := &search{
		job: job{
			request:  request{r: &Request{Limit: 30, MaxTotal: 30, Vectors: &VectorQuery{Embedder: testEmbedder.ID, Vectors: [][]float32{{1, 1, 0}}}}, rules: []rule{vector{}}},
			findings: findings{ix: ix},
		},
		scratch: scratch{memory: new(memory)},
	}
	root := &bucket{rows: universe(ix), n: len(docs)}
	s.out.start(s, root.rows, root.n)
	var l list
	var want []SortValue
	parts := cheapest(s, root, 0)
	alone := 0
	for sub, p := parts.next(); sub != nil; sub, p = parts.next() {
		for _, e := range sub.entries {
			alone++
			l.entries, want = append(l.entries, e), append(want, p.value)
		}
		for seg, in := range sub.rows {
			if in != nil {
				for _, row := range in.ToArray() {
					l.entries, want = append(l.entries, entry{row: row, segment: uint16(seg)}), append(want, p.value)
				}
			}
		}
	}
	if len(want) != len(docs) || alone == 0 {
		t.Fatalf("%d documents in parts, want %d; %d of them alone", len(want), len(docs), alone)
	}
	costs := make([]uint32, len(want))
	o := vector{}.costs(s, &l, 0, costs)
	for i, c := range costs {
		if p := o.verdict(c); p.value.Class != want[i].Class || p.value.Number != want[i].Number {
			t.Errorf("document %d: %+v in a list, %+v in a bitmap", i, p.value, want[i])
		}
	}
}
