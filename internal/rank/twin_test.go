package rank

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/mapped"
	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/settings"
	"svc/segment"
)

// maker makes small indexes in which words, typos, n-grams and splits collide.
type maker struct {
	*rand.Rand
	words   []string
	accents bool   // some letters have accents
	spread  string // a key of synonyms with a stop word; "": none
}

// written returns a word with accents on some letters.
func (m *maker) written(w string) string {
	if !m.accents || m.chance(50) {
		return w
	}
	var b strings.Builder
	for _, r := range w {
		with := map[rune]string{'a': "á", 'b': "b", 'c': "ç", 'd': "đ"}[r]
		if with == "" || m.chance(60) {
			with = string(r)
		} else if m.chance(20) && r == 'a' {
			with = "A\u0300"
		}
		b.WriteString(with)
	}
	return b.String()
}

func (m *maker) word() string { return m.words[m.IntN(len(m.words))] }

func (m *maker) chance(percent int) bool { return m.IntN(100) < percent }

func (m *maker) vocabulary() {
	letters := []string{"a", "b", "c", "d"}
	n := 5 + m.IntN(30)
	if m.chance(5) {
		n = 150 // enough for postings of short prefixes
	} else {
		m.accents = m.chance(40)
	}
	for range n {
		var b strings.Builder
		if n == 150 && m.chance(70) {
			b.WriteByte('a')
		}
		for range 3 + m.IntN(4) {
			b.WriteString(letters[m.IntN(len(letters))])
		}
		m.words = append(m.words, b.String())
	}
	for range n / 2 {
		switch w := m.word(); m.IntN(4) {
		case 0: // two other words joined
			m.words = append(m.words, w+m.word())
		case 1: // the parts of a word
			if at := m.IntN(len(w)); at > 0 {
				m.words = append(m.words, w[:at], w[at:])
			}
		case 2: // a typo
			at := m.IntN(len(w))
			m.words = append(m.words, w[:at]+letters[m.IntN(4)]+w[at+1:])
		default:
			m.words = append(m.words, strconv.Itoa(m.IntN(200)))
		}
	}
}

func (m *maker) text(longest int) string {
	var b strings.Builder
	for i := range 1 + m.IntN(longest) {
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", " ", "-", ". ", ", "}[m.IntN(7)])
		}
		b.WriteString(m.written(m.word()))
	}
	return b.String()
}

func (m *maker) documents(n int) []*document {
	var docs []*document
	single := m.chance(30) // at most one price, a string
	for i := range n {
		pairs := []any{"title", m.text(4)}
		if m.chance(70) {
			pairs = append(pairs, "body", m.text(30))
		}
		for range m.IntN(3) {
			pairs = append(pairs, "tags", m.text(2))
		}
		for k := range m.IntN(3) {
			if single && k > 0 {
				break
			}
			if !single && m.chance(60) {
				pairs = append(pairs, "price", float64(m.IntN(4)))
			} else {
				pairs = append(pairs, "price", []string{"a", "b", " B", ""}[m.IntN(4)])
			}
		}
		if m.chance(10) {
			pairs = append(pairs, "at", point{float64(m.IntN(4)), float64(m.IntN(4))})
		}
		docs = append(docs, doc(i, pairs...))
	}
	return docs
}

func (m *maker) settings() string {
	s := map[string]any{}
	if m.chance(70) {
		s["searchableAttributes"] = [][]any{{"title", "body", "tags"}, {"body", "title"}, {"tags", "other", "title", "body"}, {"title"},
			{"title", []string{"body", "tags"}}, {[]string{"tags", "title"}, "body"}, {[]string{"body", "title", "tags"}}}[m.IntN(7)]
	}
	var rules []string
	whole := m.chance(30)
	for k := range settings.RuleKinds {
		switch r := (settings.RankingRule{Kind: k, Field: "price"}); k {
		case settings.Asc, settings.Desc:
			if m.chance(15) {
				rules = append(rules, r.String())
			}
		case settings.Random, settings.Score: // rules after them hardly matter
			if r.Field = ""; k == settings.Random {
				r.Seed = m.Uint64N(3)
			}
			if m.chance(15) {
				rules = append(rules, r.String())
			}
		case settings.Attribute, settings.AttributeRank, settings.WordPosition: // either the whole or its halves
			if whole == (k == settings.Attribute) {
				rules = append(rules, r.String())
			}
		default:
			rules = append(rules, r.String())
		}
	}
	switch m.IntN(3) {
	case 0:
		m.Shuffle(len(rules), func(i, j int) { rules[i], rules[j] = rules[j], rules[i] })
		rules = rules[:1+m.IntN(len(rules))]
		s["rankingRules"] = rules
	case 1:
		s["rankingRules"] = slices.DeleteFunc(rules, func(string) bool { return m.chance(20) })
	}
	typo := map[string]any{"minWordSizeForTypos": map[string]any{"oneTypo": 2 + m.IntN(3), "twoTypos": 5 + m.IntN(2)}}
	if m.chance(20) {
		typo["disableOnAttributes"] = []string{[]string{"title", "tags"}[m.IntN(2)]}
	}
	if m.chance(20) {
		typo["disableOnNumbers"] = true
	}
	if m.chance(20) {
		typo["disableOnWords"] = []string{m.word()}
	}
	if m.chance(10) {
		typo["enabled"] = false
	}
	s["typoTolerance"] = typo
	if m.chance(40) {
		synonyms := map[string][]string{}
		for range 1 + m.IntN(4) {
			key := m.word()
			if m.chance(30) {
				key += " " + m.word()
			}
			synonyms[key] = append(synonyms[key], m.word())
			if m.chance(40) {
				synonyms[key] = append(synonyms[key], m.word()+" "+m.word())
			}
		}
		s["synonyms"] = synonyms
	}
	if m.chance(25) {
		stop := []string{m.word(), m.word()}
		s["stopWords"] = stop
		if synonyms, ok := s["synonyms"].(map[string][]string); ok && m.chance(50) {
			m.spread = m.word() + " " + stop[0] + " " + m.word()
			synonyms[m.spread] = []string{m.word(), m.word() + " " + stop[1]}
			synonyms[stop[m.IntN(2)]] = []string{m.word()}
		}
	}
	if m.chance(20) {
		s["proximityPrecision"] = "byAttribute"
	}
	if m.chance(15) {
		s["prefixSearch"] = "disabled"
	}
	s["sortableAttributes"] = []string{"price"}
	s["filterableAttributes"] = []any{"price"}
	if m.chance(30) {
		s["filterableAttributes"] = []any{"price", map[string]any{"attributePatterns": [][]string{{"title"}, {"tags", "body"}, {"*"}}[m.IntN(3)],
			"features": map[string]any{"infix": true}}}
	}
	b, _ := json.Marshal(s)
	return string(b)
}

func (m *maker) query() string {
	var b strings.Builder
	for i := range 1 + m.IntN(5) {
		if i > 0 {
			b.WriteString([]string{" ", " ", " ", " ", "-", ", "}[m.IntN(6)])
		}
		w := m.word()
		switch {
		case m.chance(12):
			fmt.Fprintf(&b, `"%s %s"`, m.written(w), m.written(m.word()))
		case m.chance(4):
			fmt.Fprintf(&b, `"%s"`, m.written(w))
		case m.chance(8):
			fmt.Fprintf(&b, " -%s", w)
		case m.chance(3):
			fmt.Fprintf(&b, ` -"%s %s"`, w, m.word())
		case m.chance(20): // misspelt
			at := m.IntN(len(w))
			b.WriteString(w[:at] + string(rune('a'+m.IntN(4))) + w[at:])
		case m.chance(20):
			b.WriteString(m.written(w[:1+m.IntN(len(w))]))
		default:
			b.WriteString(m.written(w))
		}
	}
	if m.chance(30) {
		b.WriteByte(' ')
	}
	return b.String()
}

func (m *maker) request(sorts bool) *Request {
	r := &Request{Query: m.query(), Strategy: query.Strategy(m.IntN(3)), MaxTotal: 1000, Limit: 1 + m.IntN(30)}
	if m.chance(20) { // a limit so small that frequent words need no typos
		r.MaxTotal = 1 + m.IntN(6)
	}
	if m.chance(50) {
		r.Limit = 1000
	}
	if m.chance(30) {
		r.Offset = m.IntN(10)
	}
	if m.chance(5) {
		r.Query = ""
	}
	if m.chance(60) {
		r.Scores, r.Details = true, true
	}
	if sorts && m.chance(40) {
		r.Sort = []SortKey{{Field: "price", Desc: m.chance(50)}}
	}
	if m.chance(20) {
		r.SearchOn = [][]string{{"title"}, {"title", "tags"}, {"body", "title"}}[m.IntN(3)]
	}
	if m.chance(15) {
		x := float64(m.IntN(100)) / 100
		r.Threshold = &x
	}
	if m.chance(25) {
		r.Distinct = "price"
	}
	r.Exhaustive = m.chance(30)
	r.Offset = min(r.Offset, r.MaxTotal)
	r.Limit = min(r.Limit, r.MaxTotal-r.Offset)
	return r
}

// TestAgainstOracle compares random searches on random small indexes with the oracle: order, totals, details, and scores bit by bit.
// RANK_SEED repeats a run, RANK_WORLDS sets the number of indexes, RANK_WORLD selects one. More indexes follow until every access path was
// taken.
func TestAgainstOracle(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if v := os.Getenv("RANK_SEED"); v != "" {
		seed, _ = strconv.ParseUint(v, 10, 64)
	}
	worlds := 250
	if v := os.Getenv("RANK_WORLDS"); v != "" {
		worlds, _ = strconv.Atoi(v)
	}
	t.Logf("RANK_SEED=%d", seed)
	first := 0
	if v := os.Getenv("RANK_WORLD"); v != "" {
		first, _ = strconv.Atoi(v)
		worlds = first + 1
	}
	elsewhere := []accessPath{ // other tests cover these
		cachedHits, ringSearch, nearestFirst, filteredMatches, startsWith, knownStarts, wordStarts, phraseStarts, pairsInOrder, groupRounds,
		groupPrune, leadingFirst, scoreBounds, scoreCached, fewKept, countOthers,
	}
	paths := slices.DeleteFunc(everyPath(t), func(p accessPath) bool { return slices.Contains(elsewhere, p) })
	whole := worlds-first >= 250
	ran, inside := taken{}, 0
	for n := first; n < worlds || whole && n < 4*worlds && (inside < 1000 || ran.lacks(paths...)); n++ {
		m := &maker{Rand: rand.New(rand.NewPCG(seed, uint64(n)))}
		m.vocabulary()
		inside += world(t, m, fmt.Sprintf("world %d of seed %d", n, seed), ran)
		if t.Failed() {
			return
		}
	}
	if !whole {
		return
	}
	if inside < 1000 {
		t.Errorf("%d documents were found by parts of words", inside)
	}
	ran.wants(t, paths...)
	t.Log(ran)
}

// world compares searches in one index, and returns how many documents matched by parts of words.
func world(t *testing.T, m *maker, name string, ran taken) (inside int) {
	body := m.settings()
	s := parseSettings(t, body)
	docs := m.documents(1 + m.IntN(40))
	parts := make([][]*document, 1+m.IntN(4))
	deleted := map[segment.DocID]bool{}
	var live []*document
	for _, d := range docs {
		at := m.IntN(len(parts))
		parts[at] = append(parts[at], d)
		if m.chance(20) {
			deleted[d.id] = true
		} else {
			live = append(live, d)
		}
	}
	// Most buckets here are small, so the paths for large ones run on them, too.
	if m.chance(50) {
		classRows, listRows, stopRows, unorderedRows = m.IntN(3), m.IntN(3), 1+m.IntN(3)*(1+9*m.IntN(2)), m.IntN(3)
		maxMarking, startBytes, positions.DenseRows, idleSteps = m.IntN(3)+m.IntN(2)<<10, 1000*m.IntN(2), 1+99*m.IntN(2), 1+m.IntN(3)
		mostReadPairs = m.IntN(100)
		retryRows, retryHits, maxRetries = m.IntN(5), 1+m.IntN(4), m.IntN(4)
	} else {
		classRows, listRows, stopRows, unorderedRows = 48, 512, 4096, 1024
		maxMarking, startBytes, positions.DenseRows, idleSteps = 1<<10, 64, 256, 16
		mostReadPairs = 4 << 20
		retryRows, retryHits, maxRetries = 4*listRows, 32, 8
	}
	defer func(n, m int) { segment.NeighbourRows, segment.NeighbourSegmentRows = n, m }(segment.NeighbourRows, segment.NeighbourSegmentRows)
	segment.NeighbourSegmentRows = 0
	segment.NeighbourRows = 1 + m.IntN(4)
	ix := buildWith(t, s, parts, deleted, m.chance(30))
	o := newOracle(ix, live)
	if m.chance(20) { // searches then announce what they will read
		mapped.FitIn(-1)
		defer mapped.FitIn(math.MaxInt64)
	}
	sorts := slices.ContainsFunc(s.RankingRules, func(r settings.RankingRule) bool { return r.String() == "sort" })
	for range 30 {
		r := m.request(sorts)
		if m.spread != "" && m.chance(40) {
			r.Query = m.spread + " " + r.Query
		}
		if m.chance(70) {
			r.Scoring = m.scoring(t, ix)
		}
		if r.SearchOn != nil && slices.ContainsFunc(r.SearchOn, func(f string) bool { return !ix.Fields.InfoOf(f).Searchable }) {
			r.SearchOn = nil
		}
		if r.SearchOn != nil && slices.ContainsFunc(r.SearchOn, func(f string) bool { _, ok := ix.Fields.ID(f); return !ok }) {
			r.SearchOn = nil
		}
		if m.chance(50) { // nil means all live rows
			r.Universe = universe(ix)
		}
		if r.Distinct != "" && m.chance(50) { // caches with scores are not used without scores
			other := *r
			other.Scores, other.Details = !r.Scores, !r.Scores
			for range 2 {
				if _, err := Search(context.Background(), ix, &other); err != nil {
					t.Fatalf("%s: %v", name, err)
				}
			}
		}
		var got *Result
		hitsOnly := false
		for range 1 + 2*m.IntN(2) { // a repeated search uses the caches
			var err error
			ask := *r
			hitsOnly = m.chance(30)
			ask.HitsOnly, ask.Plan = hitsOnly, new(Plan)
			if got, err = Search(context.Background(), ix, &ask); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			ran.add(ask.Plan)
		}
		hits, candidates := o.rank(r)
		describe := func() string {
			return fmt.Sprintf("%s, settings %s\nquery %q strategy %d on %v sort %v limit %d offset %d distinct %q threshold %v exhaustive %v scores %v",
				name, body, r.Query, r.Strategy, r.SearchOn, r.Sort, r.Limit, r.Offset, r.Distinct, show(r.Threshold), r.Exhaustive, r.Scores)
		}
		for i := range max(len(hits), len(got.Hits)) {
			if i >= len(hits) || i >= len(got.Hits) {
				t.Fatalf("%s\n%d hits, want %d: %s, want %s", describe(), len(got.Hits), len(hits), found(got), found(&Result{Hits: hits}))
			}
			g, w := got.Hits[i], hits[i]
			if g.ID != w.ID || g.Score != w.Score || !bytes.Equal(g.Details, w.Details) {
				t.Fatalf("%s\nhit %d: document %d score %v %s\n  want document %d score %v %s\n%s, want %s\ndocument %v\nwanted %v", describe(), i,
					g.ID, g.Score, g.Details, w.ID, w.Score, w.Details, found(got), found(&Result{Hits: hits}), docs[g.ID].values, docs[w.ID].values)
			}
		}
		if want := min(len(candidates), r.MaxTotal); got.Total != want {
			t.Fatalf("%s\ntotal %d, want %d", describe(), got.Total, want)
		}
		var ids []segment.DocID
		for m := newMerge(ix, got.Candidates); m.next(); {
			ids = append(ids, ix.Segments[m.segment].DocID(segment.Row(m.row)))
		}
		if !hitsOnly && !slices.Equal(ids, candidates) {
			t.Fatalf("%s\ncandidates %v, want %v", describe(), ids, candidates)
		}
	}
	return o.inside
}

func show(x *float64) string {
	if x == nil {
		return "none"
	}
	return fmt.Sprint(*x)
}
