package rank

import "svc/internal/query"

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

	byCost []rows // of the universe: see reached
}

// rankBucket ranks a bucket by the rules from i on.
func (s *search) rankBucket(b *bucket, i int) {
	for {
		switch {
		case b.n == 0 || !s.out.wants():
			return
		case s.out.skips(b.n):
			s.out.addRows(b.rows)
			return
		case i == len(s.rules) || b.n == 1 && !s.scored:
			s.out.addRows(b.rows)
			return
		case s.late():
			s.addUnranked(b.rows)
			return
		}
		r := &s.rules[i]
		if r.isGraph() && r.kind != ruleWords && b.paths == nil {
			s.interpret(b)
		}
		switch {
		case r.kind == ruleWords:
			s.open(b, i, s.splitWords)
		case r.kind == ruleTypo:
			s.open(b, i, s.splitTypo)
		case r.kind == ruleSort && s.walks(b, r):
			s.open(b, i, func(b *bucket, yield func(*bucket, part) bool) { s.walkColumn(b, i, yield) })
		case r.kind == ruleGeo && s.circles(b):
			s.open(b, i, func(b *bucket, yield func(*bucket, part) bool) { s.walkCircles(b, i, yield) })
		case r.kind == ruleVector:
			s.rankVectors(b, i)
		case !r.isGraph() && b.paths == nil && s.setsFollow(i):
			s.open(b, i, func(b *bucket, yield func(*bucket, part) bool) { s.splitKey(b, i, yield) })
		case r.kind == ruleProximity && b.isNode() && !s.grams:
			// One word is as near to itself as can be.
			s.push(part{kind: ruleProximity, rule: i, rank: 1, ranks: 1})
			s.rankBucket(b, i+1)
			s.pop()
		default:
			if items, base, ranks, ok := s.ruleClasses(b, i); ok {
				s.open(b, i, func(b *bucket, yield func(*bucket, part) bool) {
					s.splitSums(b, r.kind, items, base, ranks, yield)
				})
			} else {
				s.rankAsList(b, i)
			}
		}
		return
	}
}

// isNode reports whether all documents are reached by one node of one term.
func (b *bucket) isNode() bool {
	return len(b.paths) == 1 && len(b.paths[0].nodes) == 1 && b.terms == 1
}

// setsFollow reports whether a rule after i works on bitmaps: those that look at how the query matched, and the vector rule.
func (s *search) setsFollow(i int) bool {
	for _, r := range s.rules[i+1:] {
		if r.isGraph() || r.kind == ruleVector {
			return true
		}
	}
	return false
}

func (s *search) push(p part) { s.stack = append(s.stack, p) }
func (s *search) pop()        { s.stack = s.stack[:len(s.stack)-1] }

// open ranks the parts into which rule i splits a bucket, best first, as far as needed.
func (s *search) open(b *bucket, i int, split func(*bucket, func(*bucket, part) bool)) {
	var opened []rows
	rest := func() rows {
		r := b.rows
		for _, o := range opened {
			r = r.andNot(o)
		}
		return r
	}
	split(b, func(sub *bucket, p part) bool {
		if s.late() {
			s.addUnranked(rest())
			return false
		}
		p.rule = i
		s.push(p)
		if s.below() {
			s.pop()
			s.out.dropRows(rest())
			return false
		}
		s.rankBucket(sub, i+1)
		s.pop()
		opened = append(opened, sub.rows)
		return s.out.wants()
	})
}

// addUnranked adds documents for which there is no time any more.
func (s *search) addUnranked(r rows) {
	s.push(part{kind: skipped, ranks: 1})
	if s.below() {
		s.out.dropRows(r)
	} else {
		s.out.addRows(r)
	}
	s.pop()
}

// below reports whether the score of the rules so far is under the threshold. Later rules can only lower it.
func (s *search) below() bool {
	return s.r.Threshold != nil && s.stack[len(s.stack)-1].counts() && score(s.stack) < *s.r.Threshold
}

// largest returns the largest sum over the nodes of an interpretation that is
// alive in the bucket, with extra for each two nodes that touch in the query.
func (s *search) largest(b *bucket, of func(*query.Node) int, extra int) int {
	if !b.narrowed {
		return s.largestOfAll(of, extra)
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
		most = max(most, s.sum(p, of, extra))
	}
	return most
}

func (s *search) sum(p *path, of func(*query.Node) int, extra int) int {
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
func (s *search) touch(u, v int) bool { return s.graph.Nodes[u].End+1 == s.graph.Nodes[v].Start }

// largestOfAll is largest over all complete interpretations of the query, whether a document has them or not.
func (s *search) largestOfAll(of func(*query.Node) int, extra int) int {
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
