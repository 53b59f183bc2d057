package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/query"
	"svc/internal/resultcache"
)

// Where duplicates are dropped, nobody knows how many documents it takes to fill a page, and rules would have to judge all of a large
// bucket. So its first documents are looked for as if there were no duplicates, which takes no more than the first page of any search, then
// the first of those that share no value with one that was kept, and so on. With few values soon none are left; with many most are kept.

// The first documents of a bucket of so many are looked for in rounds: of so many each, at first, and in so many rounds, unless the page
// is filled earlier. What is left then is judged as a whole. (Variables, so that tests can lower them.)
var (
	roundRows = 4 * listRows
	roundHits = 32
	maxRounds = 8
)

// mostRoundHits is up to how many documents a round has: there is one more for as long as documents tie with the last one of the page.
const mostRoundHits = 1 << 12

// alike reports whether the scores of documents of a bucket say nothing of the others in it.
func alike(s *request, b *bucket) bool {
	if !b.narrowed || len(b.paths) != 1 {
		return false
	}
	exact := false // words may be known to be there as they are written
	for _, r := range s.rules {
		t := r.traits()
		if t.groups || t.typos && exact { // which counts the typos that the others may have
			return false
		}
		exact = exact || t.written == writtenWords
	}
	return true
}

// rounds reports whether the documents of a bucket are looked for in rounds, which are ranked by the rules from i on.
func rounds(s *search, b *bucket, i int) bool {
	c, r := &s.out, s.r
	if c.distinct == nil || c.skip > 0 && !c.alone() || c.judgesAll || b.n < roundRows || len(b.paths) != 1 || r.Vectors != nil || r.Threshold != nil {
		return false
	}
	if s.scored && !alike(&s.request, b) || slices.ContainsFunc(s.rules[i:], func(r rule) bool { return r.traits().groups }) {
		return false
	}
	return !inLaterViews(&s.view, b, i)
}

var (
	roundsIn      = resultcache.NewKind[uint64]("first view that used distinct retry")
	foundInRounds = resultcache.NewKind[*roundsFound]("rows found by distinct retry")
)

// inLaterViews reports whether an earlier view was asked for the first documents of a bucket with these words, too. What rounds find ends
// with the view; costs of all documents, once they are made, stay with the segments and serve all views to come.
func inLaterViews(s *view, b *bucket, i int) bool {
	c := (*query.Index)(s.ix).OfSegment(s.largestSegment())
	var buf [128]byte
	key := append(c.Key(buf[:0]), byte(i))
	for _, n := range b.paths[0].nodes {
		key = append(append(key, s.graph.Nodes[n].Key...), 0xff)
	}
	view := s.ix.Cache.Own().Owner()
	first, ok := roundsIn.Get(c.Scope, key)
	if !ok {
		roundsIn.Put(c.Scope, key, view, 8)
	}
	return ok && first != view
}

// roundsFound are the documents of a bucket that share no value with one before them, in order, as far as the page needs them: those on it,
// and those that tie with the last one.
type roundsFound struct {
	hits  []Hit    // without what describes them
	parts [][]part // of those on the page: what the rules said
}

// add adds a document.
func (f *roundsFound) add(h *Hit, parts []part) {
	f.hits = append(f.hits, Hit{Segment: h.Segment, Row: h.Row, ID: h.ID})
	if parts != nil {
		f.parts = append(f.parts, parts)
	}
}

// lasts reports whether what was found may be kept with a view: values of sorts lie in mapped memory.
func (f *roundsFound) lasts() bool {
	return len(f.hits) <= mostRoundHits && !slices.ContainsFunc(f.parts, func(parts []part) bool {
		return slices.ContainsFunc(parts, func(p part) bool { return !p.says().IsScore() })
	})
}

// bytes estimates what it takes.
func (f *roundsFound) bytes() int {
	n := 100 + hitBytes*len(f.hits)
	for _, parts := range f.parts {
		n += 24 + partBytes*len(parts)
	}
	return n
}

// partBytes is what a part takes.
const partBytes = 96

// rankRounds ranks a bucket by the rules from i on. What it finds is kept for those who ask again.
func rankRounds(s *search, b *bucket, i int) {
	key := sieveKey(s, i)
	if key == nil {
		findRounds(s, b, i)
		return
	}
	key = append(append([]byte{flags(s.scored)}, key...), s.r.Distinct...)
	own := s.ix.Cache.Own()
	if f, ok := foundInRounds.Get(own, key); ok {
		stack := s.stack
		for k := range f.hits {
			if h := &f.hits[k]; k < len(f.parts) {
				s.stack = f.parts[k]
				s.out.add(h.Segment, h.Row, h.ID)
			} else {
				s.out.distinct.Keep(h.Segment, h.Row)
			}
		}
		s.stack = stack
		return
	}
	if f := findRounds(s, b, i); f != nil && !s.isLate && f.lasts() && foundInRounds.Admit(own, key) {
		foundInRounds.Put(own, key, f, f.bytes())
	}
}

// findRounds ranks a bucket by the rules from i on and returns what it found; nil where that is not known. Documents to pass over are found
// as hits first.
func findRounds(s *search, b *bucket, i int) *roundsFound {
	c := &s.out
	s.r.Plan.begin("", distinctRetry, b.n)
	defer func() { s.r.Plan.end(len(c.hits)) }()
	skip := c.skip // where it is not 0 there is no hit yet
	c.skip, c.limit = 0, c.limit+skip
	f := findInRounds(s, b, i)
	passed := min(skip, len(c.hits))
	c.hits = slices.Delete(c.hits, 0, passed)
	c.skip, c.limit = skip-passed, max(0, c.limit-skip)
	return f
}

// findInRounds is findRounds where no documents are to be passed over.
func findInRounds(s *search, b *bucket, i int) *roundsFound {
	c := &s.out
	all := &roundsFound{}
	d, page, limit, partial := c.distinct, c.hits, c.limit, s.partial
	s.partial = true
	back := func() { c.distinct, c.hits, c.limit, c.keepsParts, c.tells = d, page, limit, false, true }
	defer func() {
		back()
		s.partial = partial
	}()
	looked := make(rows, len(b.rows)) // documents
	for seg := range looked {
		looked[seg] = roaring.New()
	}
	var last []part   // of the last hit of the page
	var kept hitOrder // of its hits
	for n, hits := 0, roundHits; ; n++ {
		left := b.part(d.unlike(b.rows.andNot(looked)))
		if left.n == 0 {
			return all
		}
		if len(page) < limit && (n == maxRounds || left.n < roundRows) {
			back()
			c.judgesAll = true
			s.rankBucket(left, i)
			c.judgesAll = false
			page = c.hits
			return nil
		}
		c.distinct, c.hits, c.limit, c.keepsParts, c.parts = nil, make([]Hit, 0, min(hits, left.n)), hits, true, c.parts[:0]
		c.tells = len(page) < limit
		c.order = hitOrder{} // behind many values duplicates of earlier rounds come again
		s.rankBucket(left, i)
		found := c.hits
		if back(); c.full != nil {
			return nil
		}
		for k := range found {
			h := &found[k]
			if len(page) == limit && !areEqual(last, c.parts[k]) {
				return all
			}
			looked[h.Segment].Add(uint32(h.Row))
			if !d.Keep(h.Segment, h.Row) {
				continue
			}
			if len(page) == limit {
				all.add(h, nil)
				continue
			}
			all.add(h, c.parts[k])
			if c.hits = page; len(page) == cap(page) && len(page) >= pageHits && !c.hold(2*len(page)) {
				limit = c.limit
				return nil
			}
			if invariant.Enabled {
				kept.check(s.ix, *h, c.parts[k])
			}
			if page = append(page, *h); len(page) == limit {
				last = c.parts[k]
			}
		}
		switch {
		case s.isLate:
			if c.hits = page; len(page) < limit {
				s.addUnranked(b.rows.andNot(looked))
				page = c.hits
			}
			return nil
		case len(found) < hits:
			return all
		case len(page) == limit:
			hits = min(4*hits, mostRoundHits)
		}
	}
}
