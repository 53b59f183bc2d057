package search

import (
	"cmp"
	"container/heap"
	"slices"

	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// merger merges the hits of queries, each in its own order, into one list.
type merger struct {
	heads    heads
	seen     map[string]map[segment.DocID]bool // documents of indexes with several queries
	distinct *valueSet                         // nil: none
	own      map[ownDistinct]*valueSet         // of the distinct fields of several queries of an index
	parts    *parts
	sets     map[string]*indexSet // by uid; they are told of duplicates
	plan     *federationPlan
	asked    int  // hits of each remote
	ended    bool // the last hit of a list that may go on was taken
	cut      bool // and another one was needed
	turn     turns.Turn
	err      error // of the turn or its account; ends the merge
}

// ownDistinct is a distinct field of a query, from the query or from its index.
type ownDistinct struct{ uid, field string }

// ownDistincts returns the distinct fields of several queries of an index, or of a query in several parts: hits found by any of them
// share no values.
func ownDistincts(queries []federated, p *parts) map[ownDistinct]*valueSet {
	own := make(map[ownDistinct]*valueSet)
	alone := make(map[ownDistinct]bool)
	for i := range queries {
		switch k := (ownDistinct{queries[i].view.UID, queries[i].ranking.distinct}); {
		case k.field == "" || own[k] != nil:
		case alone[k] || p.distinctOf(queries[i].position) == k.field:
			own[k] = newValueSet(k.field)
		default:
			alone[k] = true
		}
	}
	return own
}

// head is the best hit of a query, or of another instance, that is not merged yet.
type head struct {
	federatedHit
	// The values that it is compared by. Scores of other instances are already weighted.
	values   []rank.ScoreValue
	spelling int
	score    float64
	weight   float64
	position int
	behind   []head // the next ones of a list made by uniteHybrids; nil: they follow in the list of the hit
}

func headOf(h federatedHit) head {
	if h.remote != nil {
		r := h.theirs()
		return head{h, r.values, r.spelling, r.score, 1, r.position, nil}
	}
	return ownHead(h, h.own())
}

// ownHead returns the values by which a hit of a query is compared.
func ownHead(h federatedHit, hit *rank.Hit) head {
	return head{h, hit.Values, hit.Spelling, hit.Score, h.query.weight, h.query.position, nil}
}

// next returns the hit that follows in the same list.
func (h *head) next() (head, bool) {
	if h.behind != nil {
		return firstOf(h.behind)
	}
	n := federatedHit{query: h.query, remote: h.remote, hit: h.hit + 1}
	if h.remote != nil && n.hit < len(h.remote.hits) || h.query != nil && n.hit < len(h.query.result.Hits) {
		return headOf(n), true
	}
	return head{}, false
}

// firstOf returns the first hit of a list, with the list of the following ones.
func firstOf(list []head) (head, bool) {
	if len(list) == 0 {
		return head{}, false
	}
	h := list[0]
	h.behind = list[1:]
	return h, true
}

// heads is a heap with the best hit of all on top.
type heads []head

func (h heads) Len() int           { return len(h) }
func (h heads) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heads) Push(x any)        { *h = append(*h, x.(head)) }
func (h heads) Less(i, j int) bool { return compareFederated(&h[i], &h[j]) < 0 }
func (h *heads) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

// newMerger starts merging the hits of the queries and of the remotes that have answered. A document found by two queries of an index
// is returned once.
func (r *FederatedResponse) newMerger(t turns.Turn, p *federationPlan, sets map[string]*indexSet) *merger {
	m := &merger{turn: t, seen: make(map[string]map[segment.DocID]bool), own: p.own, parts: &r.request.parts, sets: sets, plan: p, asked: r.request.asksFor()}
	queried := make(map[string]int)
	for i := range r.queries {
		q := &r.queries[i]
		if queried[q.view.UID]++; queried[q.view.UID] == 2 {
			m.seen[q.view.UID] = make(map[segment.DocID]bool)
		}
		if len(q.result.Hits) > 0 {
			m.heads = append(m.heads, headOf(federatedHit{query: q}))
		}
	}
	for _, a := range r.remotes {
		if len(a.hits) > 0 {
			m.heads = append(m.heads, headOf(federatedHit{remote: a}))
		}
	}
	m.uniteHybrids(m.parts.hybrids)
	heap.Init(&m.heads)
	if p.distinct != nil {
		m.distinct = newValueSet(*p.distinct)
	}
	return m
}

// pins removes pins of documents that an earlier one pins, too, and makes sure that none of these documents is returned again.
func (m *merger) pins(pins []pinnedHit[federatedHit]) []pinnedHit[federatedHit] {
	return slices.DeleteFunc(pins, func(p pinnedHit[federatedHit]) bool {
		if r := p.hit.remote; r != nil {
			if m.err == nil {
				m.err = m.turn.Yield()
			}
			if m.err == nil && r.Err == nil && p.hit.theirs().broken(r.body) {
				r.spoil()
			}
			return r.Err != nil
		}
		seen := m.seen[p.hit.query.view.UID]
		if seen == nil { // a single query of its index pins each document once, and does not find it otherwise
			return false
		}
		id := p.hit.own().ID
		again := seen[id]
		seen[id] = true
		return again
	})
}

// next returns the best hit that is not merged yet.
func (m *merger) next() (federatedHit, bool) {
	for m.err == nil {
		if m.cut = m.cut || m.ended; len(m.heads) == 0 {
			break
		}
		if m.err = m.turn.Yield(); m.err != nil {
			break
		}
		h := m.heads[0]
		m.ended = m.ended || m.endsCut(&h.federatedHit)
		if next, ok := h.next(); ok {
			m.heads[0] = next
			heap.Fix(&m.heads, 0)
		} else {
			heap.Pop(&m.heads)
		}
		if h.spoilt() {
			continue
		}
		if m.keeps(&h) {
			return h.federatedHit, true
		}
	}
	return federatedHit{}, false
}

// endsCut reports whether a hit is the last one of a list that may go on.
func (m *merger) endsCut(h *federatedHit) bool {
	if a := h.remote; a != nil {
		return h.hit == len(a.hits)-1 && len(a.hits)+len(a.pins) >= m.asked
	}
	q := h.query
	n := len(q.result.Hits)
	return h.hit == n-1 && !q.result.Whole && n >= m.plan.offset+m.plan.limit && n < q.view.Settings.Pagination.MaxTotalHits
}

// keeps reports whether neither the document nor one that shares a value with it has appeared.
func (m *merger) keeps(h *head) bool {
	if h.remote != nil {
		// A document of another instance is never one of this instance: whether they are the same is unknown.
		hit := h.theirs()
		if hit.broken(h.remote.body) {
			h.remote.spoil()
			return false
		}
		distinct := m.distinct
		if distinct == nil {
			distinct = m.ownOf(hit)
		}
		if distinct == nil {
			return true
		}
		fresh, err := distinct.addRemote(m.turn, hit)
		if err == nil && !fresh {
			err = h.remote.drop(hit, m.turn.Yield)
		}
		m.err = err
		return fresh && err == nil
	}
	hit, view := h.own(), h.query.view
	if seen := m.seen[view.UID]; seen != nil {
		if seen[hit.ID] {
			return false
		}
		seen[hit.ID] = true
	}
	distinct := m.distinct
	if distinct == nil {
		distinct = m.own[ownDistinct{view.UID, h.query.ranking.distinct}]
	}
	if distinct != nil && !distinct.add(h.query, hit) {
		m.sets[view.UID].drop(hit.Segment, uint32(hit.Row))
		return false
	}
	return true
}

// ownOf returns the values that a remote's hit must not share with other hits of its query, or nil if it may share all.
func (m *merger) ownOf(hit *remoteHit) *valueSet {
	k := ownDistinct{hit.uid, m.parts.distinctOf(hit.position)}
	if k.field == "" || m.own == nil {
		return nil
	}
	if m.own[k] == nil { // this instance does not search a part of it
		m.own[k] = newValueSet(k.field)
	}
	return m.own[k]
}

// compareFederated is negative if a comes before b: by the sequences of values, then by accents, then by query.
func compareFederated(a, b *head) int {
	if c := compareValues(a, b); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.spelling, b.spelling), cmp.Compare(a.position, b.position))
}

// compareValues compares the sequences of values of two hits. If two values are not comparable, the overall scores decide. If one
// sequence ends first, its hit comes last: so results without a query come last.
func compareValues(a, b *head) int {
	left, right := a.values, b.values
	for i := range min(len(left), len(right)) {
		l, r := &left[i], &right[i]
		c := 0
		switch {
		case l.Kind.IsScore() && r.Kind.IsScore():
			c = rank.CompareScores(product(l.Score, a.weight), product(r.Score, b.weight))
		case l.Kind == r.Kind && l.Desc == r.Desc:
			c = l.Sort.Compare(&r.Sort, l.Desc)
		case l.Kind == r.Kind:
			return compareWhole(a, b)
		default:
			return cmp.Or(cmp.Compare(scores(right[i:]), scores(left[i:])), compareWhole(a, b))
		}
		if c != 0 {
			return c
		}
	}
	return cmp.Compare(len(right), len(left))
}

// compareWhole compares the weighted scores of two hits.
func compareWhole(a, b *head) int {
	return rank.CompareScores(product(a.score, a.weight), product(b.score, b.weight))
}

// scores counts the scores in a sequence.
func scores(values []rank.ScoreValue) int {
	n := 0
	for i := range values {
		if values[i].Kind.IsScore() {
			n++
		}
	}
	return n
}

// valueSet has the values of a field in hits, across indexes. Strings are compared as in facets.
type valueSet struct {
	field    string
	seen     map[string]bool
	ordinals []uint32
	keys     []string // of one hit
}

func newValueSet(field string) *valueSet {
	return &valueSet{field: field, seen: make(map[string]bool)}
}

// add adds the values of a hit. If an earlier hit has one of them, it adds none and returns false.
func (s *valueSet) add(q *federated, hit *rank.Hit) bool {
	id, ok := q.view.Fields.ID(s.field)
	if !ok {
		return true
	}
	c := q.view.Segments[hit.Segment].Column(id)
	if c == nil {
		return true
	}
	s.keys = s.keys[:0]
	s.ordinals = c.RowNumbers(s.ordinals[:0], hit.Row)
	for _, ord := range s.ordinals {
		s.keys = append(s.keys, numberKey(c.Number(int(ord))))
	}
	s.ordinals = c.RowStrings(s.ordinals[:0], hit.Row)
	for _, ord := range s.ordinals {
		if text := c.String(int(ord)); len(text) > 0 {
			s.keys = append(s.keys, "s"+string(text))
		}
	}
	return s.take()
}

// seenBytes is the memory of a value of a remote's hit in a valueSet, without its text.
const seenBytes = 160

// addRemote is add for a remote's hit, which may have many values. The error is that of the turn or its account.
func (s *valueSet) addRemote(t turns.Turn, h *remoteHit) (fresh bool, err error) {
	s.keys = s.keys[:0]
	h.eachValue(s.field, func(scalar []byte) {
		if err == nil {
			err = t.Yield()
		}
		if err == nil {
			err = t.Account().Hold(int64(seenBytes + 2*len(scalar) + 3*keyLength(scalar) + keyBytes(scalar)))
		}
		if err != nil {
			return
		}
		if key := distinctKey(scalar); key != "" {
			s.keys = append(s.keys, key)
		}
	})
	return err == nil && s.take(), err
}

// take reports whether none of the keys was taken before, and takes them.
func (s *valueSet) take() bool {
	for _, key := range s.keys {
		if s.seen[key] {
			return false
		}
	}
	for _, key := range s.keys {
		s.seen[key] = true
	}
	return true
}
