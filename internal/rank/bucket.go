package rank

import (
	"iter"

	"svc/internal/query"
)

// listRows is up to how many documents a bucket is always ranked as a list, unless what its rule needs is at hand.
var listRows = 512

// bucket is a set of documents that are equal under the rules so far.
type bucket struct {
	rows rows
	n    int // documents

	// paths are the interpretations alive; nil before the first rule that
	// looks at them. narrowed: only those that some document needs, found by a rule.
	paths    []path
	narrowed bool
	terms    int // covered by each path; before the rule words, at most

	// fixed: the typo rule has charged each document one level a node, its best; typos is the largest sum of them.
	fixed bool
	typos int

	levels []*typoLevels // of paths; nil: nobody asked yet

	byCost []rows // of the universe: see reached
	raw    bool   // deleted rows, which n leaves out, are among rows and those of byCost that miss the most terms
}

// countIn returns how many documents of a bucket are in a segment.
func countIn(s *view, b *bucket, seg int) int {
	if b.raw {
		return liveIn(s, b.rows, seg)
	}
	return cardinality(b.rows[seg])
}

// rowsOfAll returns the documents of a bucket, be it raw.
func rowsOfAll(s *view, b *bucket) rows {
	if b.raw {
		return s.live(b.rows)
	}
	return b.rows
}

// rankBucket ranks a bucket by the rules from i on.
func (s *search) rankBucket(b *bucket, i int) {
	// To scores duplicates may matter. Where some documents are still to be passed over, they matter to which of those are kept that have
	// several values.
	if d := s.out.distinct; d != nil && (!s.scored || alike(&s.request, b)) && (s.out.skip == 0 || s.out.alone()) && b.n >= classRows {
		if left := d.unlike(b.rows); left.count() < b.n {
			b = b.part(left)
		}
	}
	switch {
	case b.n == 0 || !s.out.wants():
		return
	case s.out.skips(b.n):
		s.out.addRows(rowsOfAll(&s.view, b))
		return
	case i == len(s.rules) || b.n == 1 && !asksAll(s) && (s.unknown == 0 || i > 0):
		s.out.addRows(rowsOfAll(&s.view, b))
		return
	case s.late():
		s.addUnranked(rowsOfAll(&s.view, b))
		return
	}
	if rounds(s, b, i) {
		rankRounds(s, b, i)
		return
	}
	r := s.rules[i]
	if b.paths == nil && r.traits().paths {
		interpret(&s.view, b)
	}
	if parts := r.split(s, b, i); parts.parts != nil {
		s.open(b, i, s.r.Plan.watch(r.name(), b.n, parts))
	} else {
		s.rankAsList(b, i)
	}
}

// open ranks the parts into which rule i splits a bucket, best first, as far as needed.
func (s *search) open(b *bucket, i int, parts iter.Seq2[*bucket, part]) {
	var opened []rows
	look := 8
	rest := func() rows {
		r := rowsOfAll(&s.view, b)
		for _, o := range opened {
			r = r.andNot(o)
		}
		return r
	}
	for sub, p := range parts {
		if s.late() {
			s.addUnranked(rest())
			return
		}
		p.by = s.rules[i]
		s.push(p)
		if s.below() {
			s.pop()
			s.out.dropRows(rest())
			return
		}
		s.rankBucket(sub, i+1)
		s.pop()
		opened = append(opened, sub.rows)
		if !s.out.wants() {
			return
		}
		if len(opened) == look { // to look takes as long as to split a large bucket
			look *= 2
			if d := s.out.distinct; d != nil && s.r.Threshold == nil && d.unlike(b.rows).isEmpty() {
				return
			}
		}
	}
}

// isNode reports whether all documents are reached by one node of one term.
func (b *bucket) isNode() bool {
	return len(b.paths) == 1 && len(b.paths[0].nodes) == 1 && b.terms == 1
}

func (s *scratch) push(p part) { s.stack = append(s.stack, p) }
func (s *scratch) pop()        { s.stack = s.stack[:len(s.stack)-1] }

// addUnranked adds documents for which there is no time any more.
func (s *search) addUnranked(r rows) {
	s.push(part{by: skipped{}, ranks: 1})
	if s.below() {
		s.out.dropRows(r)
	} else {
		s.out.addRows(r)
	}
	s.pop()
}

// below reports whether the score of the rules so far is under the threshold. Later rules can only lower it.
func (s *search) below() bool {
	return s.r.Threshold != nil && s.stack[len(s.stack)-1].says().IsScore() && score(s.stack) < *s.r.Threshold
}

// largest returns the largest sum over the nodes of an interpretation that is
// alive in the bucket, with extra for each two nodes that touch in the query.
func largest(s *view, b *bucket, of func(*query.Node) int, extra int) int {
	if !b.narrowed {
		return largestOfAll(s, of, extra)
	}
	most := 0
	var seen rows
	for i := range b.paths {
		p := &b.paths[i]
		if len(b.paths) > 1 { // only interpretations that some document needs
			if seen == nil {
				seen = p.rows
			} else {
				if p.rows.andNot(seen).isEmpty() {
					continue
				}
				seen = seen.or(p.rows)
			}
		}
		most = max(most, sum(s, p, of, extra))
	}
	return most
}

func sum(s *view, p *path, of func(*query.Node) int, extra int) int {
	n := 0
	for i, v := range p.nodes {
		n += of(&s.graph.Nodes[v])
		if i > 0 && s.touch(p.nodes[i-1], v) {
			n += extra
		}
	}
	return n
}

// touch reports whether node v begins in the query where u ends.
func (s *view) touch(u, v int) bool { return s.graph.Nodes[u].End+1 == s.graph.Nodes[v].Start }

// largestOfAll is largest over all complete interpretations of the query, whether a document has them or not.
func largestOfAll(s *view, of func(*query.Node) int, extra int) int {
	n := len(s.graph.Terms)
	best := make([]int, n+1)
	for i := 1; i <= n; i++ {
		best[i] = -1
	}
	for k := range s.graph.Nodes {
		v := &s.graph.Nodes[k]
		sum := best[v.Term] + of(v)
		if v.Term > 0 && s.graph.Terms[v.Term-1].End+1 == v.Start {
			sum += extra
		}
		best[v.Term+v.Len] = max(best[v.Term+v.Len], sum)
	}
	return best[n]
}
