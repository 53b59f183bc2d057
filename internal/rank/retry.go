package rank

import (
	"slices"

	"svc/internal/resultcache"
	"svc/segment"
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

// retry is a bucket in distinct retry, with the state of its searches or their cached result.
type retry struct {
	at     int // its place in search.sets
	bucket *bucket
	pulled [][]uint32 // by segment: rows pulled so far
	n      int        // searches so far
	hits   int        // number of documents that the last search is valid for
	left   int        // of them, to come
	last   []verdict
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
	if s.retry != nil || c.distinct == nil || !unseen(c) || b.n < retryRows || len(b.interpretations) != 1 || r.Vectors != nil || r.Threshold != nil {
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
	r := &retry{at: len(s.sets), bucket: b, hits: retryHits}
	if key := firstRowsKey(s, i); key != nil {
		r.key = append(append([]byte{flags(s.scored)}, key...), s.r.Distinct...)
		if f, ok := foundHits.Get(s.ix.Cache.Own(), r.key); ok {
			r.found, r.cached, r.left = *f, true, len(f.hits)
		}
	}
	if !r.cached {
		r.pulled = make([][]uint32, len(b.rows))
	}
	s.r.Plan.begin("", distinctRetry, b.n)
	s.r.Plan.end(0)
	s.push(set{depth: i, retry: r})
	s.retry = r
}

// again starts the next search when the last one found nothing more, or enough.
func again(s *search, r *retry) (g tied, ok bool) {
	if r.cached {
		return nextCached(s, r)
	}
	if r.left > 0 && r.n > 0 { // there are no others
		endRetry(s, true)
		s.pop()
		return tied{}, false
	}
	i := s.sets[r.at].depth
	left := r.bucket.part(s.out.distinct.unlike(r.bucket.rows.andNot(ofLists(r.pulled))))
	switch {
	case left.n == 0:
		endRetry(s, true)
		s.pop()
		return tied{}, false
	case s.isLate, s.out.wants() && (r.n == maxRetries || left.n < retryRows):
		endRetry(s, false)
		s.pop()
		s.push(set{depth: i, whole: true, bucket: left})
		return tied{}, false
	case !s.out.wants() && r.n > 0:
		r.hits = min(4*r.hits, mostRetryHits)
	}
	r.n++
	r.left = r.hits
	s.push(set{depth: i, bucket: left})
	return tied{}, false
}

// nextCached returns the next cached document.
func nextCached(s *search, r *retry) (g tied, ok bool) {
	k := len(r.found.hits) - r.left
	if r.left == 0 {
		endRetry(s, false)
		s.pop()
		return tied{}, false
	}
	verdicts := r.last // of those behind the page
	if k < len(r.found.verdicts) {
		verdicts = r.found.verdicts[k]
	}
	s.stack = append(s.stack[:0], verdicts...)
	h := &r.found.hits[k]
	return tied{entries: []entry{{segment: uint16(h.Segment), row: uint32(h.Row)}}}, true
}

// endRetry caches what was found, if the page needs no more.
func endRetry(s *search, all bool) {
	r := s.retry
	s.retry = nil
	if r == nil || !all || r.cached || r.key == nil || s.isLate || !r.found.lasts() {
		return
	}
	if own := s.ix.Cache.Own(); foundHits.Admit(own, r.key) {
		foundHits.Put(own, r.key, &r.found, r.found.bytes())
	}
}

// see notes that a document is pulled.
func (r *retry) see(seg int, row segment.Row) {
	r.left = max(0, r.left-1) // a list is pruned before its documents are pulled: see leaveOut
	if !r.cached {
		r.pulled[seg] = append(r.pulled[seg], uint32(row))
	}
}

// keep records a document that shares no value with an earlier one.
func (r *retry) keep(seg int, row segment.Row, id segment.DocID, said []verdict, onPage bool) {
	if r.cached || r.key == nil {
		return
	}
	f := &r.found
	f.hits = append(f.hits, Hit{Segment: seg, Row: row, ID: id})
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
func finishes(s *search) bool { return s.retry != nil && s.retry.last != nil && s.out.err == nil }

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
