package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/rank"
	"svc/internal/rule"
)

// groupedAnswer is the answer to a federated search, with hits or groups.
type groupedAnswer struct {
	Hits   []map[string]any
	Groups []struct {
		Key   any
		Count int
		Hits  []map[string]any
	}
	EstimatedTotalHits, TotalHits int
	FacetDistribution             map[string]map[string]int
	RemoteErrors                  map[string]any
}

// machines are instances, one of which queries the others in their internal format.
type machines struct {
	t     *testing.T
	all   []*library
	asked int // repeated queries, for groups that a machine had not sent

	rules  func(machine int) *rule.Set // rules of the query that has some; nil: the first machine has them
	facets []string                    // facets of the index a; nil: none

	parts bool // the machines search parts of the same queries, with equal positions
	fails bool // repeated queries fail
}

// search merges the results of some machines at the first one. Unless they are parts, queries have separate positions at each machine.
func (m *machines) search(n int, f FederatedRequest, queries []asked, rules int) (a groupedAnswer, body string) {
	m.t.Helper()
	ctx := context.Background()
	of := func(machine int, f FederatedRequest) (*FederatedResponse, func()) {
		views := m.all[machine].c.Views()
		for i := range queries {
			q := queries[i].Request
			switch {
			case i == rules && m.rules != nil:
				q.Rules = m.rules(machine)
			case i != rules || machine > 0:
				q.Rules = nil
			}
			position := machine*10 + i
			if m.parts {
				position = i
			}
			if m.parts && f.Proxy {
				f.AddPart(i, position, queries[i].uid, &q, queries[i].weight)
			}
			f.Queries = append(f.Queries, FederatedQuery{View: views.Get(queries[i].uid), Request: &q, Weight: queries[i].weight, Position: position})
		}
		if m.facets != nil {
			f.Facets, f.MergeFacets = []IndexFacets{{View: views.Get("a"), Names: m.facets}}, new(MergeFacets)
		}
		found, err := Federate(ctx, &f, oneByOne)
		if err != nil {
			views.Release()
			m.t.Fatal(err)
		}
		return found, views.Release
	}
	ask := func(keys []rank.GroupKey) (answers []*RemoteAnswer) {
		r := f
		if r.GroupKeys = keys; keys != nil {
			m.asked++
			if again := got(ParseGroupKeys(GroupKeysText(keys))); !slices.Equal(again, keys) {
				m.t.Fatalf("keys %v are read as %v", keys, again)
			}
		}
		var facets []IndexFacets
		if m.facets != nil {
			views := m.all[0].c.Views()
			defer views.Release()
			facets = []IndexFacets{{View: views.Get("a"), Names: m.facets}}
		}
		asked := r.Asked(facets, len(queries), false)
		for machine := 1; machine < n; machine++ {
			if m.fails && keys != nil {
				answers = append(answers, &RemoteAnswer{Remote: fmt.Sprint(machine), Err: BadAnswer("r", errGroups)})
				continue
			}
			offset, limit, _ := f.page()
			peer := FederatedRequest{Limit: offset + limit, Distinct: f.Distinct, GroupBy: f.GroupBy, GroupKeys: keys, Proxy: true, Networked: true}
			found, release := of(machine, peer)
			body := got(found.AppendPeer(ctx, nil))
			release()
			answers = append(answers, got(ParsePeer(fmt.Sprint(machine), body, &asked, new(Reading))))
		}
		return answers
	}
	if m.parts {
		for i := range queries {
			f.AddPart(i, i, queries[i].uid, &queries[i].Request, queries[i].weight)
		}
	}
	leader := f
	if n > 1 {
		leader.Networked, leader.Self = true, "0"
		leader.Remotes = func(context.Context) []*RemoteAnswer { return ask(nil) }
		leader.RemoteGroups = func(_ context.Context, keys []rank.GroupKey) []*RemoteAnswer { return ask(keys) }
	}
	found, release := of(0, leader)
	defer release()
	raw := got(found.AppendJSON(ctx, nil))
	if err := json.Unmarshal(raw, &a); err != nil {
		m.t.Fatalf("%v: %s", err, raw)
	}
	if len(a.RemoteErrors) > 0 && !m.fails {
		m.t.Fatalf("%s", raw)
	}
	return a, string(raw)
}

// TestFederatedGroupsAgainstModel compares groups of several queries, here and at three machines, with groups of the merged hits.
func TestFederatedGroupsAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 1))
	defer func(first, fill int) { hitsPerGroup, fillHits = first, fill }(hitsPerGroup, fillHits)
	words := []string{"red", "reds", "read", "hat", "cat", "red hat", "hat red"}
	m := machines{t: t, all: []*library{newLibrary(t), newLibrary(t), newLibrary(t)}}
	id := 0
	docs := map[float64]map[string]any{}
	for _, l := range m.all {
		for _, uid := range []string{"a", "b"} {
			l.put(uid, `{"filterableAttributes":["price","brand","sizes.user","same","none","ms"],"sortableAttributes":["price","ms"],"searchableAttributes":["t"],
				"embedders":{"e":{"source":"userProvided","dimensions":2}}}`)
			var mine []float64
			for _, size := range []int{30, 12, 4} {
				var texts []string
				for range size {
					id++
					one := randomAggregated(r, id)
					if len(mine) > 0 && r.IntN(4) == 0 { // an update of an older one, which is deleted in its segment
						one["id"] = mine[r.IntN(len(mine))]
					}
					one["t"], one["same"] = words[r.IntN(len(words))]+" "+words[r.IntN(len(words))], "x"
					one["_vectors"] = map[string]any{"e": []float64{r.Float64() + .1, r.Float64()}}
					mine = append(mine, one["id"].(float64))
					docs[one["id"].(float64)] = one
					texts = append(texts, string(got(json.Marshal(one))))
				}
				l.put(uid, "", texts...)
			}
		}
	}
	var pinned, sorted, dropped, networked int
	lacking := func() bool { return pinned == 0 || sorted == 0 || dropped == 0 || networked == 0 || m.asked == 0 }
	for n := 0; n < 80 || n < 1600 && lacking(); n++ {
		hitsPerGroup, fillHits = 1+r.IntN(4), 1+r.IntN(64)
		machines := []int{1, 1, 3}[n%3]
		f := FederatedRequest{Limit: r.IntN(6), Offset: r.IntN(3)}
		if n%4 == 0 { // groups beyond the page affect those on it
			f.Limit = 1 + r.IntN(2)
		}
		queries := make([]asked, 1+r.IntN(3))
		for i := range queries {
			q := asked{uid: []string{"a", "b"}[r.IntN(2)], weight: []float64{1, 1, .5, 2}[r.IntN(4)]}
			q.Query, q.ShowRankingScore = []string{"", "red", "hat", "red hat", "rad"}[r.IntN(5)], true
			q.AttributesToRetrieve = []string{"id", "price", "brand", "sizes", "same"}
			switch r.IntN(8) {
			case 0:
				q.Filter = parseFilter(t, "ms > 1700000000000")
			case 1:
				threshold := r.Float64()
				q.RankingScoreThreshold = &threshold
			case 2:
				distinct := "brand"
				q.Distinct = &distinct
			case 3:
				q.Hybrid, q.Vector = &Hybrid{Embedder: "e"}, []float32{1, .5}
			}
			queries[i] = q
		}
		if n%5 == 0 && machines == 1 {
			distinct := "brand"
			f.Distinct = &distinct
			for i := range queries {
				queries[i].Distinct = nil
			}
		}
		if r.IntN(4) == 0 { // sorted hits are comparable only if all queries sort alike
			for i := range queries {
				queries[i].Sort, queries[i].Hybrid, queries[i].Vector = []string{"price:desc"}, nil, nil
				queries[i].Query = cmp.Or(queries[i].Query, "red")
			}
		}
		by := &GroupBy{Attribute: []string{"brand", "price", "sizes.user", "same", "none"}[r.IntN(5)], Hits: 1 + r.IntN(4)}
		all := f
		all.Limit, all.Offset = 1000, 0
		flat, _ := m.search(machines, all, queries, -1)
		order := flat.Hits
		where := map[float64]any{}
		for _, h := range order {
			where[h["id"].(float64)] = fmt.Sprint(h["_federation"], h["_rankingScore"])
		}
		want := naiveGroups(order, by.Attribute)
		drops := slices.ContainsFunc(queries, func(q asked) bool { return q.Distinct != nil || q.RankingScoreThreshold != nil }) || f.Distinct != nil
		ruled := -1
		if r.IntN(4) == 0 && len(order) > 0 && !drops {
			first := order[r.IntN(len(order))]
			position := int(first["_federation"].(map[string]any)["queriesPosition"].(float64))
			if position < 10 {
				ruled = position
				at := r.IntN(4)
				queries[ruled].Rules = rulesOf(t, pinning(pinnedHit[int]{at, int(first["id"].(float64))}))
				rest := slices.DeleteFunc(slices.Clone(order), func(h map[string]any) bool { return h["id"] == first["id"] })
				led := naiveGroups([]map[string]any{first}, by.Attribute)
				want = slices.DeleteFunc(naiveGroups(append([]map[string]any{first}, rest...), by.Attribute), func(g *naiveGroup) bool {
					return slices.ContainsFunc(led, func(o *naiveGroup) bool { return o.key == g.key })
				})
				want = slices.Insert(want, min(at, len(want)), naiveGroups(append([]map[string]any{first}, rest...), by.Attribute)[:len(led)]...)
				delete(where, first["id"].(float64)) // it has the score of a pinned hit
				pinned++
			}
		}
		if r.IntN(4) == 0 {
			by.Sort = []string{"ms:desc"}
			for _, g := range want {
				slices.SortStableFunc(g.hits, func(a, b float64) int { return cmp.Compare(docs[b]["ms"].(float64), docs[a]["ms"].(float64)) })
			}
			sorted++
		}
		f.GroupBy = by
		answer, body := m.search(machines, f, queries, ruled)
		what := fmt.Sprintf("search %d: %d machines, %d queries, by %+v, limit %d, offset %d, drops %v, rules of %d", n, machines, len(queries), *by, f.Limit, f.Offset, drops, ruled)
		for i := range queries {
			what += fmt.Sprintf("\n%+v", queries[i])
		}
		if answer.EstimatedTotalHits != len(want) || len(answer.Hits) > 0 || answer.Groups == nil {
			t.Fatalf("%s: %d groups, want %d\n%s", what, answer.EstimatedTotalHits, len(want), body)
		}
		page := want[min(f.Offset, len(want)):]
		page = page[:min(f.Limit, len(page))]
		if len(page) != len(answer.Groups) {
			t.Fatalf("%s: %d groups on the page, want %d", what, len(answer.Groups), len(page))
		}
		if drops {
			dropped++
		}
		if machines > 1 {
			networked++
		}
		for i, g := range answer.Groups {
			var ids []float64
			for _, h := range g.Hits {
				id := h["id"].(float64)
				ids = append(ids, id)
				at := h["_federation"].(map[string]any)
				delete(at, "remote")
				if shown := fmt.Sprint(h["_federation"], h["_rankingScore"]); by.Sort == nil && where[id] != nil && machines == 1 && shown != where[id] {
					t.Fatalf("%s: %v is of %s, want %s", what, id, shown, where[id])
				}
			}
			wanted := page[i].hits[:min(by.Hits, len(page[i].hits))]
			same := slices.Equal(ids, wanted)
			if by.Sort != nil { // documents with equal sort values are in any order
				same = slices.EqualFunc(ids, wanted, func(a, b float64) bool { return docs[a]["ms"] == docs[b]["ms"] })
			}
			if g.Key != page[i].key || g.Count != page[i].count || !same {
				t.Fatalf("%s: group %d is %v with %d documents %v, want %v with %d %v", what, i, g.Key, g.Count, ids, page[i].key, page[i].count, page[i].hits)
			}
		}
	}
	if lacking() {
		t.Errorf("%d with pins, %d sorted, %d with drops, %d of several machines, with %d repeated queries", pinned, sorted, dropped, networked, m.asked)
	}
}

// TestPinsOfSeveralMachinesInAGroup pins documents of one group at two machines. They lead the group in the order of their positions, also
// if the second machine is queried again for a group after its first ones.
func TestPinsOfSeveralMachinesInAGroup(t *testing.T) {
	for _, tt := range []struct {
		places [2][]int // by machine: positions of documents 1 and 2, 11 and 12
		limit  int
		sort   []string
		want   string
	}{
		{[2][]int{{0}, {1}}, 9, nil, "1 11 2"},
		{[2][]int{{1}, {0}}, 9, nil, "11 1 2"},
		{[2][]int{{1}, {0, 2}}, 9, nil, "11 1 12"},
		{[2][]int{{2, 5}, {3, 4}}, 9, nil, "1 11 12"},
		{[2][]int{{}, {3}}, 9, nil, "11 1 2"},
		{[2][]int{{1}, {0}}, 9, []string{"n:desc"}, "13 12 11"},
		// The second machine has two earlier groups.
		{[2][]int{{0}, {3}}, 2, nil, "1 11 2"},
		{[2][]int{{0, 4}, {3, 5}}, 2, nil, "1 11 2"},
		{[2][]int{{1}, {}}, 2, nil, "1 2 3"},
	} {
		m := machines{t: t, all: []*library{newLibrary(t), newLibrary(t)}}
		for machine, l := range m.all {
			var docs []string
			for i := range 8 * machine {
				docs = append(docs, fmt.Sprintf(`{"id":%d,"g":"other%d","n":-1}`, 20+i, i))
			}
			for i := range 3 {
				docs = append(docs, fmt.Sprintf(`{"id":%d,"g":"x","n":%d}`, machine*10+i+1, machine*10+i))
			}
			l.put("a", `{"filterableAttributes":["g"],"sortableAttributes":["n"]}`, docs...)
		}
		m.rules = func(machine int) *rule.Set {
			var pins []pinnedHit[int]
			for i, at := range tt.places[machine] {
				pins = append(pins, pinnedHit[int]{at, machine*10 + i + 1})
			}
			if len(pins) == 0 {
				return nil
			}
			return rulesOf(t, pinning(pins...))
		}
		f := FederatedRequest{Limit: tt.limit, GroupBy: &GroupBy{Attribute: "g", Hits: 3, Sort: tt.sort}}
		answer, body := m.search(2, f, []asked{{uid: "a", weight: 1}}, 0)
		var got []string
		for _, g := range answer.Groups {
			for _, h := range g.Hits {
				if g.Key == "x" {
					got = append(got, fmt.Sprint(h["id"]))
				}
			}
		}
		if s := strings.Join(got, " "); s != tt.want || m.asked > 0 != (tt.limit == 2) {
			t.Errorf("positions %v, limit %d, sort %v: %s, want %s; %d repeated queries\n%s", tt.places, tt.limit, tt.sort, s, tt.want, m.asked, body)
		}
	}
}

// TestGroupsOfALostMachine has a machine fail when it is asked for the hits of a group that it may have. Groups of the page that only
// this machine has are left out.
func TestGroupsOfALostMachine(t *testing.T) {
	m := machines{t: t, all: []*library{newLibrary(t), newLibrary(t)}, fails: true}
	for machine, l := range m.all {
		docs := []string{fmt.Sprintf(`{"id":%d,"g":"here%d","n":%d}`, machine, machine, 10*machine-1)}
		for i := range 8 * machine {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"g":"there%d","n":%d}`, 20+i, i, i/2))
		}
		l.put("a", `{"filterableAttributes":["g"],"sortableAttributes":["n"]}`, docs...)
	}
	f := FederatedRequest{Limit: 3, GroupBy: &GroupBy{Attribute: "g", Hits: 3}}
	answer, body := m.search(2, f, []asked{{Request: Request{Sort: []string{"n:asc"}}, uid: "a", weight: 1}}, -1)
	if m.asked != 1 || len(answer.RemoteErrors) != 1 {
		t.Fatalf("%d repeated queries: %s", m.asked, body)
	}
	if len(answer.Groups) != 1 || answer.Groups[0].Key != "here0" || answer.Groups[0].Count != 1 || len(answer.Groups[0].Hits) != 1 {
		t.Errorf("the groups are not those of the other machine: %s", body)
	}
}

// groupedPeerAnswer returns an answer with groups as another instance of svc sends it.
func groupedPeerAnswer(t testing.TB, by GroupBy) []byte {
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["brand","price"],"sortableAttributes":["price"]}`, `{"id":1,"brand":"Acme","price":2}`, `{"id":2,"brand":["acme","bolt"],"price":1}`, `{"id":3}`)
	f := FederatedRequest{Limit: 3, GroupBy: &by, Proxy: true}
	views := l.c.Views()
	defer views.Release()
	f.Queries = []FederatedQuery{{View: views.Get("a"), Request: &Request{}, Weight: 1}}
	return got(got(Federate(context.Background(), &f, oneByOne)).AppendPeer(context.Background(), nil))
}

// anyGroups requests the groups of groupedPeerAnswer.
var anyGroups = &Asked{Hits: 100, Queries: 1, Groups: 10, GroupHits: 10}

// TestTruncatedGroupedPeerAnswers parses each prefix of an answer with groups: all are invalid.
func TestTruncatedGroupedPeerAnswers(t *testing.T) {
	body := groupedPeerAnswer(t, GroupBy{Attribute: "brand", Hits: 3, Sort: []string{"price:asc"}})
	a := got(ParsePeer("r", bytes.Clone(body), anyGroups, new(Reading)))
	if len(a.groups) != 3 || string(a.groups[0].shown) != "Acme" || a.groups[0].count != 2 || len(a.met.hashes) != 3 || a.groups[0].order[0] == nil || a.groups[0].best == nil {
		t.Fatalf("%+v", a.groups)
	}
	length := body[len(body)-peerTrailer:]
	for n := range len(body) - peerTrailer {
		if _, err := ParsePeer("r", append(bytes.Clone(body[:n]), length...), anyGroups, new(Reading)); err == nil {
			t.Errorf("%d bytes of %d are accepted as an answer", n, len(body))
		}
	}
	few := *anyGroups
	for _, few.Groups = range []int{1, 2} {
		if _, err := ParsePeer("r", bytes.Clone(body), &few, new(Reading)); err == nil {
			t.Errorf("an answer of 3 groups is accepted where %d were requested", few.Groups)
		}
	}
	few = *anyGroups
	few.GroupHits = 1
	if _, err := ParsePeer("r", bytes.Clone(body), &few, new(Reading)); err == nil {
		t.Error("an answer of 2 hits per group is accepted where one was requested")
	}
	if _, err := ParseRemote("r", []byte(`{"hits":[],"estimatedTotalHits":0}`), anyGroups, new(Reading)); err == nil {
		t.Error("JSON without groups is accepted as an answer")
	}
}

// FuzzGroupedPeerAnswer parses and merges arbitrary answers.
func FuzzGroupedPeerAnswer(f *testing.F) {
	f.Add(groupedPeerAnswer(f, GroupBy{Attribute: "brand", Hits: 3}))
	f.Add(groupedPeerAnswer(f, GroupBy{Attribute: "price", Hits: 1, Sort: []string{"price:asc"}}))
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, sort := range [][]string{nil, {"price:asc"}} {
			remotes := func(context.Context) []*RemoteAnswer {
				a, err := ParsePeer("r", bytes.Clone(body), anyGroups, new(Reading))
				if err != nil {
					a = &RemoteAnswer{Remote: "r", Err: BadAnswer("r", err)}
				}
				return []*RemoteAnswer{a}
			}
			r := FederatedRequest{Limit: 10, GroupBy: &GroupBy{Attribute: "brand", Hits: 10, Sort: sort}, Networked: true, Remotes: remotes}
			r.RemoteGroups = func(ctx context.Context, keys []rank.GroupKey) []*RemoteAnswer { return remotes(ctx) }
			if shown := got(got(Federate(t.Context(), &r, oneByOne)).AppendJSON(t.Context(), nil)); !json.Valid(shown) {
				t.Errorf("%q is invalid JSON", shown)
			}
		}
	})
}
