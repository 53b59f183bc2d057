package rank

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/settings"
	"svc/segment/rowlist"
)

// exactAttribute is the first half of exactness. It puts documents first that have a field equal to the query, then those that have a
// field beginning with it.
type exactAttribute struct {
	relevance
	with rule // shown together with it, if it comes next
}

func (exactAttribute) name() string { return "exactAttribute" }

func (exactAttribute) traits() *traits { return &exactAttributeTraits }

var exactAttributeTraits = traits{row: judgeRow, says: ByRelevance, only: startsAsWritten, interprets: true, sets: true}

func (exactAttribute) access(_ *search, b *bucket, _ int) paths {
	if !b.hasOneInterpretation() {
		return paths{}
	}
	return paths{{ofClasses(), openExactFields}}
}

func openExactFields(s *search, b *bucket, _ int) split {
	if c := exactAttributeClasses(s, b); c != nil {
		return bySums(b, []*costClasses{c}, 0, 3)
	}
	return declined
}

func (exactAttribute) costs(s *search, l *list, _ int, costs []uint32) outcome {
	if areMisplaced(s, l) {
		s.r.Plan.note("exactAttribute", misplaced)
		for i := range costs {
			costs[i] = noExactMatch
		}
	} else {
		eachBatch(s, l, costs, func(b *batch, costs []uint32) { exactAttributeCosts(s, b, costs) })
	}
	return outcome{ranks: 3}
}

// details explains both halves of the rule, if the second one counts.
func (r exactAttribute) details(d *detailWriter, verdicts []verdict) int {
	p := &verdicts[0]
	d.open("exactness")
	d.string("matchType", [...]string{"exactMatch", "matchesStart", "noExactMatch"}[p.ranks-p.rank])
	told := 1
	if len(verdicts) > 1 && verdicts[1].by == r.with {
		told = 2
	}
	if told == 2 && p.rank == 1 {
		d.integer("matchingWords", verdicts[1].rank-1)
		d.integer("maxMatchingWords", verdicts[1].ranks-1)
		d.number("score", score(verdicts[:2]))
	} else {
		d.score(p)
	}
	return told
}

// exactAttributeCosts distinguishes fields that equal the query, fields that begin with it, and others.
//
// Unknown words at the end of the query are ignored, because the last word is often incomplete while a user is typing. An unknown
// word elsewhere rules out a match.
func exactAttributeCosts(s *search, b *batch, costs []uint32) {
	for i := range costs {
		costs[i] = noExactMatch
	}
	var all []int
	next := 0 // term that must come
	var nodes [query.MaxTerms]int
	for i := range nodes {
		nodes[i] = -1
	}
	for _, p := range b.interpretations {
		for _, n := range s.list.interpretations[p].nodes {
			v := &s.graph.Nodes[n]
			if v.Len == 1 && nodes[v.Term] < 0 && s.hasExactForm(b, n) {
				nodes[v.Term] = n
			}
		}
	}
	for term, n := range nodes {
		if n < 0 {
			continue
		}
		if term != next {
			return
		}
		next++
		all = append(all, n)
	}
	if words, ok := s.pos.ExactOf(all, b.segment); ok {
		s.pos.Match(b.at(), words, costs)
	}
}

// areMisplaced is isMisplaced for a list.
func areMisplaced(s *search, l *list) bool {
	return s.list.oneInterpretation() && l.uniform &&
		isMisplaced(s, s.list.interpretations[s.list.sets[0][0]].nodes, batch{fixed: l.fixed, levels: l.entries[0].levels})
}

// isMisplaced reports whether no document with some nodes, which match as in a batch, can be an exact match: all of them are known to
// have an existing word of the query in another place.
func isMisplaced(s *search, nodes []int, like batch) bool {
	if placesOf(s.stack) != elsewhere {
		return false
	}
	for _, n := range nodes {
		v := &s.graph.Nodes[n]
		if v.Len > 1 || v.Start >= positions.Exactly || !s.hasExactForm(&like, n) {
			return false
		}
	}
	return true
}

// exactAttributeClasses are the exact matches of a bucket with one interpretation, and the matches at the start. It returns nil if
// its documents match their words at different levels, and when time is over.
func exactAttributeClasses(s *search, b *bucket) *costClasses {
	levels, ok := s.levelsOf(b)
	if !ok {
		return nil
	}
	nodes, ok := exactNodes(&s.findings, b, levels)
	if !ok || isMisplaced(s, b.interpretations[0].nodes, batch{fixed: b.fixed, levels: levels}) {
		s.r.Plan.note("exactAttribute", misplaced)
		return &costClasses{rest: int(noExactMatch), covered: make(rows, len(b.rows))}
	}
	if len(nodes) == 1 && b.interpretations[0].terms == 1 {
		v := nodes[0]
		word := func(seg int) *roaring.Bitmap { return s.graph.Nodes[v].Segments[seg].Word }
		if c := classesFor(s, &classesOf{rule: "exactAttribute", kind: settings.Exactness, nodes: nodes, levels: []int{0}, number: s.graph.Nodes[v].Start,
			rest:      int(noExactMatch),
			documents: func(seg int) int { return int(word(seg).GetCardinality()) },
			derive:    func(seg int) *segmentClasses { return exactClasses(s, nodes, seg, word(seg), false) }}, b.n); c != nil {
			return c
		}
	}
	atStart := startsInPlace(s, b.interpretations[0].nodes)
	parts := make([]*segmentClasses, len(b.rows))
	for seg, in := range b.rows {
		if in != nil {
			if parts[seg] = exactClasses(s, nodes, seg, in, atStart); parts[seg] == nil {
				return nil
			}
		}
	}
	return join(parts, int(noExactMatch))
}

// allStart reports whether all given documents are known to have a searchable field that begins with a word, which is also in a
// searched field.
func allStart(s *scratch, node, seg int, in *roaring.Bitmap) bool {
	return s.starts != nil && s.startsOf == node && s.starts[seg] != nil && in.AndCardinality(s.starts[seg]) == in.GetCardinality()
}

// startsInPlace reports whether documents are known to have the first word of a phrase in its place. The phrase must be the whole
// query.
func startsInPlace(s *search, nodes []int) bool {
	v := &s.graph.Nodes[nodes[0]]
	return placesOf(s.stack) == inPlace && len(nodes) == 1 && v.Phrase && v.Start < positions.Exactly
}

// exactClasses are the exact matches among documents of a segment, and the matches at the start; nil: time is over. atStart says that
// startsInPlace is true for them.
func exactClasses(s *search, nodes []int, seg int, in *roaring.Bitmap, atStart bool) *segmentClasses {
	none := &segmentClasses{covered: roaring.New()}
	p, ok := exactOf(s, nodes, seg, atStart)
	if !ok {
		return none
	}
	if len(p.Words) == 1 && p.Slots == 1 && allStart(&s.scratch, nodes[0], seg, in) {
		whole := rowlist.FromRows(s.pos.WholeFields(seg, p, in))
		s.r.Plan.note("exactAttribute", knownStarts)
		rows := []*roaring.Bitmap{whole, rowlist.AndNot(in, whole)}
		return &segmentClasses{costs: []int{int(exactMatch), int(matchesStart)}, rows: rows, covered: in}
	}
	if !p.Together {
		if in = p.HaveAll(in); in == nil {
			return none
		}
	}
	s.r.Plan.note("exactAttribute", wordPlaces)
	return classify(s, seg, in, batch{}, int(noExactMatch), func(b *batch, costs []uint32) {
		for i := range costs {
			costs[i] = noExactMatch
		}
		s.pos.Match(b.at(), p, costs)
	})
}
