package rank

import (
	"math"
	"slices"

	"svc/segment"
)

// To rank all documents of a large bucket can be too expensive: rules that read positions would read all of them. So some buckets are
// searched in rounds. Each round looks for the first documents, as if they filled the page. The next one continues with the rest,
// without documents that cannot be hits: duplicates (distinct retry, see retry.go), or documents of full groups.

// rounds is a bucket that is searched in rounds.
type rounds struct {
	at     int // its place in search.sets
	bucket *bucket
	pulled [][]uint32 // by segment: rows pulled so far; nil: the hits of distinct retry are cached
	n      int        // rounds so far
	left   int        // documents of the current round to come
	retry  *retry     // of distinct retry; nil: the rounds are of groups
}

// see notes that a document is pulled.
func (r *rounds) see(seg int, row segment.Row) {
	r.left = max(0, r.left-1) // a list is pruned before its documents are pulled: see leaveOut
	if r.pulled != nil {
		r.pulled[seg] = append(r.pulled[seg], uint32(row))
	}
}

// A bucket of more than groupRows documents gets up to maxGroupRounds rounds. The rest is then ranked as a whole. (Variables, so that
// tests can lower them.)
var (
	groupRows      = listRows
	maxGroupRounds = 12
)

// roundHits is the least number of hits that a round looks for. (A variable, so that tests can lower it.)
var roundHits = 32

// mayPrune reports whether documents of full groups may be removed without changing the order and the scores of the rest. A sort by
// distance does not allow it: it forms classes of about the same distance, starting at the nearest document of the set.
func mayPrune(s *search) bool {
	if slices.ContainsFunc(s.rules, func(r rule) bool { return r.traits().groups }) {
		return false
	}
	return !s.scored || len(s.graph.Nodes) <= 1 && scoresAlone(&s.request)
}

// prune leaves documents that cannot be hits out of a bucket.
func (g *grouping) prune(s *search, b *bucket) *bucket {
	if b.n < pruneRows || g.idle() {
		return b
	}
	if g.lookForAll(); b.pruned == g.state() {
		return b
	}
	all := rowsOfAll(&s.findings, b)
	left := g.left(all)
	if left.isSame(all) {
		b.pruned = g.state()
		return b
	}
	n := b.n
	b = b.part(left)
	b.raw, b.pruned = false, g.state()
	leaveOut(s, n-b.n)
	s.r.Plan.note("", groupPrune)
	return b
}

// isSame reports whether both have the same bitmaps, by identity.
func (r rows) isSame(other rows) bool {
	for seg := range r {
		if r[seg] != other[seg] {
			return false
		}
	}
	return true
}

// goesRound reports whether a bucket is searched in rounds of groups, by the rules from i on.
func (g *grouping) goesRound(s *search, b *bucket, i int) bool {
	return g.prunes && s.rounds == nil && b.n > groupRows && len(b.interpretations) == 1 && readsPositions(s, b, i)
}

// readsPositions reports whether rule i has to read positions to split a bucket with one interpretation.
func readsPositions(s *search, b *bucket, i int) bool {
	t := s.rules[i].traits()
	return t.adds != addsNothing && !t.fields && s.rules[i].access(s, b, i)[0].effort > atHand
}

// startRounds starts the rounds of groups in a bucket, by the rules from i on.
func startRounds(s *search, b *bucket, i int) {
	s.rounds = &rounds{at: len(s.sets), bucket: b, pulled: make([][]uint32, len(b.rows))}
	s.push(set{depth: i, rounds: s.rounds})
}

// nextRound starts the next round of groups when one has found nothing more, or enough.
func nextRound(s *search, r *rounds) {
	g := s.out.groups
	exhausted := r.left > 0 && r.n > 0
	left := r.bucket
	if !exhausted && r.n > 0 {
		left = r.bucket.part(g.left(rowsOfAll(&s.findings, r.bucket)).andNot(ofLists(r.pulled)))
		left.raw, left.pruned = false, g.state()
		r.bucket = left
		for seg := range r.pulled {
			r.pulled[seg] = r.pulled[seg][:0]
		}
	}
	i := s.pop().depth
	if exhausted || left.n == 0 {
		s.rounds = nil
		return
	}
	s.r.Plan.begin("", groupRounds, left.n)
	s.r.Plan.end(0)
	r.n++
	hits := g.round(r.n)
	if s.isLate || r.n > maxGroupRounds || left.n <= hits {
		s.rounds = nil
		s.push(set{depth: i, whole: true, bucket: left})
		return
	}
	r.left = min(hits, math.MaxInt32)
	s.push(set{depth: i, rounds: r})
	s.push(set{depth: i, whole: true, bucket: left})
}

// round returns how many documents the n-th round looks for.
func (g *grouping) round(n int) int {
	return max(2*g.misses(), roundHits<<min(2*(n-1), 10))
}
