package rank

import (
	"slices"

	"svc/internal/resultcache"
)

// With distinct, the number of documents that fill a page is unknown, and rules would have to judge all of a large bucket. Distinct
// retry instead ranks the first documents as if there were no duplicates, which takes no longer than the first page of any search.
// Then it ranks the first of those that share no value with a kept document, and so on. With few values soon none are left; with many
// values most documents are kept.

// A bucket of retryRows is searched up to maxRetries times: first for retryHits documents, until the page is full. The rest is then
// ranked as a whole. (Variables, so that tests can lower them.)
var (
	retryRows  = 4 * listRows
	retryHits  = 32
	maxRetries = 8
)

// mostRetryHits limits how many documents one search looks for. It may return more that tie with the last one.
const mostRetryHits = 1 << 12

// retry is what distinct retry knows of its rounds, or their cached result.
type retry struct {
	hits   int       // number of documents that a round looks for
	last   []verdict // of the last hit of a full page; nil: the page is not full
	found  retried
	key    []byte // its cache key; nil: it depends on more than the view, the query and the page
	cached bool   // found is all there is
}

// retried are the documents of a bucket that share no value with an earlier one, in order, as far as the page needs them: those on
// it, and those that tie with the last one.
type retried struct {
	hits     []Hit       // without what describes them
	verdicts [][]verdict // by hit on the page: the verdicts of the rules; equal hits share them
}

// retries reports whether distinct retry is used for a bucket, with the rules from i on.
func retries(s *search, b *bucket, i int) bool {
	c, r := &s.out, s.r
	if s.rounds != nil || c.distinct == nil || !unseen(c) || b.n < retryRows || len(b.interpretations) != 1 || r.Vectors != nil || r.Threshold != nil {
		return false
	}
	if s.scored && !alike(&s.request, b) || slices.ContainsFunc(s.rules[i:], func(r rule) bool { return r.traits().groups }) {
		return false
	}
	return !inLaterViews(&s.findings, b, i)
}

var (
	retriedIn = resultcache.NewKind[uint64]("first view that used distinct retry")
	foundHits = resultcache.NewKind[*retried]("rows found by distinct retry")
)

// inLaterViews reports whether an earlier view also searched for the first documents of a bucket with these words. Results of
// distinct retry are lost with the view. Costs of all documents, once computed, stay with the segments and serve all later views.
func inLaterViews(s *findings, b *bucket, i int) bool {
	c := s.ix.OfSegment(s.largestSegment())
	var buf [128]byte
	key := append(c.Key(buf[:0]), byte(i))
	for _, n := range b.interpretations[0].nodes {
		key = append(append(key, s.graph.Nodes[n].Key...), 0xff)
	}
	view := s.ix.Cache.Own().Owner()
	first, ok := retriedIn.Get(c.Scope, key)
	if !ok {
		retriedIn.Put(c.Scope, key, view, 8)
	}
	return ok && first != view
}

// startRetry starts distinct retry of a bucket with the rules from i on. It uses and fills the cache of results.
func startRetry(s *search, b *bucket, i int) {
	r := &rounds{at: len(s.sets), bucket: b, retry: &retry{hits: retryHits}}
	if key := firstRowsKey(s, i); key != nil {
		r.retry.key = append(append([]byte{flags(s.scored)}, key...), s.r.Distinct...)
		if f, ok := foundHits.Get(s.ix.Cache.Own(), r.retry.key); ok {
			r.retry.found, r.retry.cached, r.left = *f, true, len(f.hits)
		}
	}
	if !r.retry.cached {
		r.pulled = make([][]uint32, len(b.rows))
	}
	s.r.Plan.begin("", distinctRetry, b.n)
	s.r.Plan.end(0)
	s.push(set{depth: i, rounds: r})
	s.rounds = r
}

// nextRetry starts the next round when the last one found nothing more, or enough. If the hits are cached, it returns the next one.
func nextRetry(s *search, r *rounds) (g tied, ok bool) {
	if r.retry.cached {
		return nextCached(s, r)
	}
	if r.left > 0 && r.n > 0 { // there are no others
		endRetry(s)
		s.pop()
		return tied{}, false
	}
	i := s.sets[r.at].depth
	left := r.bucket.part(s.out.distinct.unlike(r.bucket.rows.andNot(ofLists(r.pulled))))
	switch {
	case left.n == 0:
		endRetry(s)
		s.pop()
		return tied{}, false
	case s.isLate, s.out.wants() && (r.n == maxRetries || left.n < retryRows):
		s.rounds = nil
		s.pop()
		s.push(set{depth: i, whole: true, bucket: left})
		return tied{}, false
	case !s.out.wants() && r.n > 0:
		r.retry.hits = min(4*r.retry.hits, mostRetryHits)
	}
	r.n++
	r.left = r.retry.hits
	s.push(set{depth: i, bucket: left})
	return tied{}, false
}

// nextCached returns the next cached document.
func nextCached(s *search, r *rounds) (g tied, ok bool) {
	if r.left == 0 {
		s.rounds = nil
		s.pop()
		return tied{}, false
	}
	f := &r.retry.found
	k := len(f.hits) - r.left
	verdicts := r.retry.last // of those behind the page
	if k < len(f.verdicts) {
		verdicts = f.verdicts[k]
	}
	s.stack = append(s.stack[:0], verdicts...)
	h := &f.hits[k]
	return tied{entries: []entry{{segment: uint16(h.Segment), row: uint32(h.Row)}}}, true
}

// endRetry ends rounds, because the page needs no more. It caches what distinct retry found.
func endRetry(s *search) {
	if s.inRetry() && !s.isLate {
		if r := s.rounds.retry; !r.cached && r.key != nil && r.found.lasts() {
			if own := s.ix.Cache.Own(); foundHits.Admit(own, r.key) {
				foundHits.Put(own, r.key, &r.found, r.found.bytes())
			}
		}
	}
	s.rounds = nil
}

// keep records a document that shares no value with an earlier one.
func (r *retry) keep(h Hit, said []verdict, onPage bool) {
	if r.cached || r.key == nil {
		return
	}
	f := &r.found
	f.hits = append(f.hits, h)
	if !onPage {
		return
	}
	if n := len(f.verdicts); n > 0 && areEqual(f.verdicts[n-1], said) {
		f.verdicts = append(f.verdicts, f.verdicts[n-1])
	} else {
		f.verdicts = append(f.verdicts, slices.Clone(said))
	}
}

// finishes reports whether documents are pulled that may be equal to the last hit of a full page.
func finishes(s *search) bool { return s.inRetry() && s.rounds.retry.last != nil && s.out.err == nil }

// lasts reports whether the result may be cached with a view. It may not if values of sorts lie in mapped memory.
func (f *retried) lasts() bool {
	return len(f.hits) <= mostRetryHits && !slices.ContainsFunc(f.verdicts, func(verdicts []verdict) bool {
		return slices.ContainsFunc(verdicts, func(p verdict) bool { return !p.says().IsScore() })
	})
}

// bytes estimates the memory of the result.
func (f *retried) bytes() int {
	n := 100 + hitBytes*len(f.hits)
	for _, verdicts := range f.verdicts {
		n += 24 + verdictBytes*len(verdicts)
	}
	return n
}

// verdictBytes is what a verdict takes.
const verdictBytes = 96
