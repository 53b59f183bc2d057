package rank

import (
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

// maxGroupRounds is how often documents are searched for the first ones. What is left then is ranked as a whole. (A variable, so that
// tests can lower it.)
var maxGroupRounds = 12

// startRounds has a bucket, which is all there is, searched for the first documents of groups.
func startRounds(s *search, root *bucket) {
	if s.scored && (len(s.graph.Nodes) > 1 || !scoresAlone(&s.request)) { // scores depend on what else is ranked
		s.push(set{whole: true, bucket: root})
		return
	}
	s.retry = &retry{bucket: root, looked: make(rows, len(root.rows))}
	for seg := range s.retry.looked {
		s.retry.looked[seg] = roaring.New()
	}
	s.push(set{retry: s.retry})
}

// nextRound goes on where a round has found nothing more, or as much as it looked for.
func nextRound(s *search, r *retry) {
	g := s.out.groups
	exhausted := r.left > 0 && r.n > 0
	left := r.bucket
	if !exhausted && (r.n > 0 || g.new == g.New) {
		left = r.bucket.part(g.left(rowsOfAll(&s.findings, r.bucket).andNot(r.looked)))
		left.raw = false
		r.bucket, r.looked = left, make(rows, len(left.rows))
		for seg := range r.looked {
			r.looked[seg] = roaring.New()
		}
	}
	hits := g.round()
	s.pop()
	if exhausted || left.n == 0 {
		s.retry = nil
		return
	}
	s.r.Plan.begin("", groupRounds, left.n)
	s.r.Plan.end(0)
	if s.isLate || g.rounds > maxGroupRounds || left.n <= hits {
		s.retry = nil
		s.push(set{whole: true, bucket: left})
		return
	}
	r.n++
	r.left = min(hits, math.MaxInt32)
	s.push(set{retry: r})
	s.push(set{whole: true, bucket: left})
}
