package rank

import (
	"encoding/binary"
	"math"
	"slices"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// Documents with the words of a query as written come before those with typos, and a total counts no more than maxTotalHits. If
// documents with all words and few typos fill the page and the total, the others do not matter. Then svc does not expand typos of the
// frequent words, and does not look up n-grams.

// fewTyposFirst reports whether documents with few typos may fill the page and determine the total.
func fewTyposFirst(s *job, t *query.Terms) bool {
	r := s.r
	switch {
	case !r.HitsOnly || len(t.Terms) == 0 || len(s.ix.Segments) == 0 || len(t.NegativeWords)+len(t.NegativePhrases) > 0:
		return false
	case len(t.Terms) == 1 && t.Terms[0].IsPhrase() || len(t.Terms) > 1 && r.Strategy == query.Frequency: // it needs the number of documents of each word
		return false
	case s.scored || r.Distinct != "" || r.Filter != nil || r.Universe != nil && !s.isLive(r.Universe):
		return false
	}
	rules := s.rules
	switch {
	case len(rules) > 0 && rules[0].traits().missing:
		rules = rules[1:]
	case len(t.Terms) > 1: // documents with fewer words, and as many typos, are equally good
		return false
	}
	return len(rules) > 0 && rules[0].traits().typos
}

// maxCachedQueryBytes is the longest query that is cached with segments. Longer queries are not typed by people, and would displace
// others.
const maxCachedQueryBytes = 512

var typoQueries = resultcache.NewKind[bool]("queries that need all typos")

// buildFewTypos finds documents that have frequent words as written, and others with few typos. The rest waits as the lazy set. It
// returns false if that saves nothing. It caches with segments for which queries the rest was needed.
func buildFewTypos(s *search, t *query.Terms) (bool, error) {
	if !fewTyposFirst(&s.job, t) {
		return false, nil
	}
	r := s.r
	var kept query.SegmentCache
	var key []byte
	if len(t.Terms) > 1 && len(r.Query) <= maxCachedQueryBytes {
		kept = s.ix.OfSegment(s.largestSegment())
		key = append(kept.Key(make([]byte, 0, 128)), byte(r.Strategy))
		for _, n := range []int{r.Offset, r.Limit, r.MaxTotal} {
			key = binary.AppendUvarint(key, uint64(n))
		}
		key = append(key, r.Query...)
		if skip, _ := typoQueries.Get(kept.Scope, key); skip {
			return false, nil
		}
	}
	most, rules := r.MaxTotal, s.rules
	enough := query.Enough{First: most, Page: min(most, min(most, r.Offset)+r.Limit)}
	var err error
	if s.graph, err = s.ix.BuildFewTypos(s.ctx, t, s.fields, s.late, enough); s.graph == nil || err != nil {
		s.pos.Forget()
		return false, err
	}
	s.prepare()
	if !slices.ContainsFunc(s.graph.Nodes, func(v query.Node) bool { return v.Sought < query.Levels }) { // nothing was left out
		return true, nil
	}
	forget := func() {
		if key != nil && !s.isLate {
			typoQueries.Put(kept.Scope, key, true, len(key))
		}
		s.lazy = lazySet{}
		s.rules, s.findings = rules, findings{ix: s.ix, fields: s.fields}
		s.pos.Forget()
		s.stands, s.starts, s.declined, s.usedWeights = nil, nil, nil, nil
	}
	first := firstUnknown(&s.findings)
	if first == 0 {
		forget()
		return false, nil
	}
	s.lazy.bound = []uint64{uint64(first)}
	if rules[0].traits().missing {
		s.lazy.bound = []uint64{0, uint64(first)}
	}
	s.lazy.expand = func() {
		forget()
		s.drop(0)
		s.stack, s.cached = s.stack[:0], cachedSet{}
		if r.Offset > 0 { // it is unknown which documents were skipped
			s.out.hits = nil
		}
		if s.out.err = buildAll(s, t); s.out.err == nil {
			begin(s)
		}
	}
	s.r.Plan.note("", lazyTypos)
	return true, nil
}

// markForms finds words with typos, which are also highlighted in the documents of the page.
func markForms(s *search, t *query.Terms, result *Result) error {
	forms, err := s.ix.BuildForms(s.ctx, t, s.fields, s.late)
	if err == nil {
		result.Highlights, result.Degraded = forms.Highlights, s.isLate
	}
	return err
}

// firstUnknown returns the number of typos from which on documents with all words may be missing among those found, because typos of
// some words were not expanded. It returns 0 if no document has all words.
func firstUnknown(s *findings) int {
	const none = math.MaxInt32
	g := s.graph
	// least returns the fewest typos with which a document matches a node, counting documents that may be missing.
	least := func(v *query.Node) int {
		for level := range v.Sought {
			for i := range v.Segments {
				if !v.Segments[i].At[level].IsEmpty() {
					return gramCost(v) + level
				}
			}
		}
		if v.Sought < query.Levels {
			return gramCost(v) + v.Sought
		}
		return none
	}
	before, behind := make([]int, len(g.Terms)+1), make([]int, len(g.Terms)+1) // of all terms before, and from there on
	for i := range before {
		before[i], behind[i] = none, none
	}
	before[0], behind[len(g.Terms)] = 0, 0
	for k := range g.Nodes { // by their first term
		v := &g.Nodes[k]
		before[v.Term+v.Len] = min(before[v.Term+v.Len], before[v.Term]+least(v), none)
	}
	for k := len(g.Nodes) - 1; k >= 0; k-- {
		v := &g.Nodes[k]
		behind[v.Term] = min(behind[v.Term], behind[v.Term+v.Len]+least(v), none)
	}
	first := none
	for k := range g.Nodes {
		if v := &g.Nodes[k]; v.Sought < query.Levels {
			first = min(first, before[v.Term]+gramCost(v)+v.Sought+behind[v.Term+v.Len])
		}
	}
	if first == none {
		return 0
	}
	return first
}
