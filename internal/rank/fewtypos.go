package rank

import (
	"encoding/binary"
	"math"
	"slices"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// Documents that have the words of a query as they are written come before those that have them misspelt, and no more of them are counted
// than the settings say. So where a page is filled by documents with all words and few typos, and as many are found as are counted, nobody
// sees by which other words the frequent ones might be meant, and what is found where words are joined to one: that is not looked for.

// fewTyposFirst reports whether the page and the total of a query may be told by documents with few typos.
func fewTyposFirst(s *job, t *query.Terms) bool {
	r := s.r
	switch {
	case !r.HitsOnly || len(t.Terms) == 0 || len(s.ix.Segments) == 0 || len(t.NegativeWords)+len(t.NegativePhrases) > 0:
		return false
	case len(t.Terms) == 1 && t.Terms[0].IsPhrase() || len(t.Terms) > 1 && r.Strategy == query.Frequency: // it asks how many have each word
		return false
	case s.scored || r.Distinct != "" || r.Filter != nil || r.Universe != nil && !s.isLive(r.Universe):
		return false
	}
	rules := s.rules
	switch {
	case len(rules) > 0 && rules[0].traits().missing:
		rules = rules[1:]
	case len(t.Terms) > 1: // documents with fewer words, and as many typos, are as good
		return false
	}
	return len(rules) > 0 && rules[0].traits().typos
}

// untoldBytes is up to how long queries are that segments remember: longer ones come from no reader, and would take the room of others.
const untoldBytes = 512

var untoldQueries = resultcache.NewKind[bool]("queries that need all typos")

// rankFewTypos ranks the documents that have frequent words as they are written, and others with few typos; nil without an
// error when they do not tell the page and the total. Segments remember of which queries they did not.
func rankFewTypos(s *search, q *query.Index, t *query.Terms) (*Result, error) {
	r := s.r
	if len(t.Terms) == 1 || len(r.Query) > untoldBytes {
		return rankIfTold(s, q, t)
	}
	kept := q.OfSegment(s.largestSegment())
	key := append(kept.Key(make([]byte, 0, 128)), byte(r.Strategy))
	for _, n := range []int{r.Offset, r.Limit, r.MaxTotal} {
		key = binary.AppendUvarint(key, uint64(n))
	}
	key = append(key, r.Query...)
	if untold, _ := untoldQueries.Get(kept.Scope, key); untold {
		return nil, nil
	}
	result, err := rankIfTold(s, q, t)
	if s.untold && !s.isLate {
		untoldQueries.Put(kept.Scope, key, true, len(key))
	}
	return result, err
}

// rankIfTold is rankFewTypos, whatever is remembered.
func rankIfTold(s *search, q *query.Index, t *query.Terms) (*Result, error) {
	most := s.r.MaxTotal
	enough := query.Enough{First: most, Page: min(most, min(most, s.r.Offset)+s.r.Limit)}
	var err error
	if s.graph, err = q.BuildFewTypos(s.ctx, t, s.fields, s.late, enough); s.graph == nil || err != nil {
		return nil, err
	}
	s.prepare(q)
	if !slices.ContainsFunc(s.graph.Nodes, func(v query.Node) bool { return v.Sought < query.Levels }) { // nothing was left out
		return s.rank(0)
	}
	if s.unknown = firstUnknown(&s.view); s.unknown == 0 {
		s.untold = true
		return nil, nil
	}
	r := s.r
	r.Plan.begin("", lazyTypos, 0)
	result, err := s.rank(most)
	r.Plan.end(len(s.out.hits))
	if result != nil && s.r.Marks { // in the documents of the page misspelt words are marked, too
		forms, err := q.BuildForms(s.ctx, t, s.fields, s.late)
		if err != nil {
			return nil, err
		}
		result.Highlights, result.Degraded = forms.Highlights, s.isLate
	}
	return result, err
}

// firstUnknown returns from how many typos on documents with all words may be missing among those that are found, as nobody looked how
// some are misspelt; 0: no document has all words.
func firstUnknown(s *view) int {
	const none = math.MaxInt32
	g := s.graph
	// Of the nodes: the fewest typos of a document, be it one that is missing.
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
