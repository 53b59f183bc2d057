package rank

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
)

// The order of two documents does not depend on the other results, and a segment never changes. So svc caches with large segments how
// many documents a query finds in them, and the first of these. A later view removes those deleted since, and ranks the rest with the
// documents of small segments, which are mostly new. Uncached documents of large segments come after the last cached one.
//
// For a page with an offset, only the hits of the page are cached. They stay valid while small segments match nothing and none of the
// matching documents has been deleted, because a deleted one may have come before the page.

// Segments with at least largeRows rows are large. Pages of up to maxTopHits hits are cached. (Variables, so that tests can lower
// them.)
var (
	largeRows  = 1 << 10
	maxTopHits = 1000
)

// topHits are the first documents of a query in the large segments of a view, in their order.
type topHits struct {
	rows []topHit
	all  bool    // there are no others
	of   []share // by index of the segment among the large ones
}

// share is what a large segment has of a query.
type share struct {
	count   int             // of documents
	deleted *roaring.Bitmap // the rows that were deleted when they were counted
}

type topHit struct {
	row   uint32
	place int32 // index of its segment among the large ones
}

// memo is where the top hits of a query are cached.
type memo struct {
	large  []int   // segments
	places []int32 // by segment: its index among the large ones; −1: it is small
	key    []byte
}

// memoOf returns where the top hits of the query are cached. It is nil if they depend on more than the segments, the query and the
// filter. unknown is the number of typos from which on documents were not looked up, or 0.
func memoOf(s *job, unknown uint64) *memo {
	r := s.r
	if s.scored || s.chosen != nil || r.Distinct != "" || r.WholeIfFew || r.Grouping != nil || min(r.Limit, r.MaxTotal) > maxTopHits || !lasting(s) {
		return nil
	}
	m := &memo{places: make([]int32, len(s.ix.Segments))}
	for seg := range s.ix.Segments {
		m.places[seg] = -1
		if s.ix.Segments[seg].Rows() >= largeRows {
			m.places[seg] = int32(len(m.large))
			m.large = append(m.large, seg)
		}
	}
	if m.large == nil {
		return nil
	}
	var ok bool
	if m.key, ok = appendScoring(topHitsKey(s, m.large, unknown), r.Scoring); !ok {
		return nil
	}
	return m
}

var cachedTopHits = resultcache.NewKind[*topHits]("top hits of a query")

// recall makes the cached hits and the documents of small segments wait. It returns false if nothing is cached.
func recall(s *search, m *memo) bool {
	kept := s.ix.OfSegment(m.large[0])
	l, ok := cachedTopHits.Get(kept.Scope, m.key)
	if !ok {
		return false
	}
	skip := s.r.skip()
	if now := without(&s.job, l, m); now != l {
		if now == nil || s.ctx.Err() != nil || skip > 0 && now.count() != l.count() { // the result of a stopped filter has no meaning
			return false
		}
		l = now
		cachedTopHits.Put(kept.Scope, m.key, l, l.bytes())
	}
	small := find(&s.job, func(seg int) bool { return m.places[seg] < 0 }).rows
	s.stage("evaluate query")
	others := small.count()
	if s.lazy.bound != nil && others+l.count() < s.r.MaxTotal { // the total counts the others
		return false
	}
	if skip > 0 && (others > 0 || !l.all && len(l.rows) < min(s.r.Limit, s.r.MaxTotal-skip)) {
		return false
	}
	s.r.Plan.begin("", cachedHits, len(l.rows))
	defer s.r.Plan.end(len(l.rows))
	s.out.start(s, small, skip+others+len(l.rows))
	s.out.skip = 0
	s.cached = cachedSet{hits: l, m: m, left: len(l.rows), expand: func() {
		s.cached = cachedSet{}
		beginAll(s)
	}}
	if segment.PageByPage() {
		expectHits(s, l, m)
	}
	if others == 0 { // nothing comes in between
		for _, of := range l.rows {
			if seg := m.large[of.place]; s.out.wants() {
				s.out.add(seg, segment.Row(of.row))
			}
		}
		return true
	}
	known := &bucket{rows: slices.Clone(small), n: others + len(l.rows)}
	for _, of := range l.rows {
		seg := m.large[of.place]
		if known.rows[seg] == nil {
			known.rows[seg] = roaring.New()
		}
		known.rows[seg].Add(of.row)
	}
	s.partial = true
	s.push(set{bucket: known})
	return true
}

// expectHits requests the ids of the first hits from the disk together, instead of waiting for each.
func expectHits(s *search, l *topHits, m *memo) {
	rows := make(map[int][]uint32)
	for _, of := range l.rows[:min(len(l.rows), expected(&s.out))] {
		seg := m.large[of.place]
		rows[seg] = append(rows[seg], of.row)
	}
	for seg, r := range rows {
		slices.Sort(r)
		s.ix.Segments[seg].ExpectIDs(r)
	}
}

// recalled is the result where cached hits were enough.
func recalled(s *search) *Result {
	l, m := s.cached.hits, s.cached.m
	result := collected(s)
	result.Counts = make([]int, len(m.places))
	result.Total = 0
	for seg, place := range m.places {
		if place >= 0 {
			result.Counts[seg], result.Candidates[seg] = l.of[place].count, nil
		} else {
			result.Counts[seg] = int(result.Candidates[seg].GetCardinality())
		}
		result.Total += result.Counts[seg]
	}
	result.Total = min(result.Total, s.r.MaxTotal)
	result.find = func(seg int) *roaring.Bitmap { return candidatesIn(&s.job, seg) }
	if !s.r.Brief {
		for _, seg := range m.large {
			result.In(seg)
		}
	}
	return result
}

// without returns the top hits of l that remain in the view, or nil if they belong to a later view.
func without(s *job, l *topHits, m *memo) *topHits {
	var gone rows // since
	for place, seg := range m.large {
		before, now := l.of[place].deleted, s.ix.Segments[seg].Deleted
		if before == now {
			continue
		}
		if gone == nil {
			gone = make(rows, len(m.places))
		}
		switch {
		case now == nil:
			return nil
		case before == nil:
			gone[seg] = now
		case before.AndCardinality(now) < before.GetCardinality():
			return nil
		default:
			gone[seg] = roaring.AndNot(now, before)
		}
	}
	if gone == nil {
		return l
	}
	left := &topHits{rows: l.rows, all: l.all, of: slices.Clone(l.of)}
	for place, seg := range m.large {
		left.of[place].deleted = s.ix.Segments[seg].Deleted
	}
	if gone = among(s, gone); gone.isEmpty() {
		return left
	}
	left.rows = nil
	for place, seg := range m.large {
		left.of[place].count -= cardinality(gone[seg])
	}
	for _, of := range l.rows {
		if !gone.has(m.large[of.place], of.row) {
			left.rows = append(left.rows, of)
		}
	}
	return left
}

// remember caches the top hits.
func remember(s *search, m *memo, root *bucket) {
	if s.isLate || s.ctx.Err() != nil {
		return
	}
	skip := s.r.skip()
	for seg, place := range m.places {
		if place < 0 && skip > 0 && countIn(&s.findings, root, seg) > 0 {
			return
		}
	}
	l := &topHits{of: make([]share, len(m.large))}
	found, lead := 0, 0
	for place, seg := range m.large {
		l.of[place] = share{countIn(&s.findings, root, seg), s.ix.Segments[seg].Deleted}
		found += l.of[place].count
	}
	for i := range s.out.hits {
		if m.places[s.out.hits[i].Segment] >= 0 {
			lead++
		}
	}
	l.all = skip+lead >= found
	l.rows = make([]topHit, 0, lead)
	for i := range s.out.hits {
		h := &s.out.hits[i]
		if place := m.places[h.Segment]; place >= 0 {
			l.rows = append(l.rows, topHit{uint32(h.Row), place})
		}
	}
	cachedTopHits.Put(s.ix.OfSegment(m.large[0]).Scope, m.key, l, l.bytes())
}

// count is how many documents the large segments have.
func (l *topHits) count() (n int) {
	for _, share := range l.of {
		n += share.count
	}
	return n
}

// bytes estimates the memory of top hits, including deleted rows, because they outlive their view.
func (l *topHits) bytes() int {
	n := 160 + 8*len(l.rows) + 16*len(l.of)
	for _, share := range l.of {
		if share.deleted != nil {
			n += resultcache.Overhead(share.deleted) + int(share.deleted.GetSizeInBytes())
		}
	}
	return n
}

// topHitsKey returns the key under which the top hits of the query are cached with the first large segment.
func topHitsKey(s *job, large []int, unknown uint64) []byte {
	r := s.r
	rules := s.ix.Settings.RankingRules
	key := append(make([]byte, 0, 256), byte(len(rules)))
	for i := range rules {
		at := len(key)
		key = rules[i].Append(append(key, 0, 0, 0, 0))
		binary.LittleEndian.PutUint32(key[at:], uint32(len(key)-at))
	}
	key = binary.AppendUvarint(key, uint64(len(r.Sort)))
	for i := range r.Sort {
		k := &r.Sort[i]
		key = appendString(append(key, flags(k.Geo, k.Desc, k.Elements != nil, k.Elements != nil && k.Elements.Strays())), k.Field)
		if k.Elements != nil {
			key = appendString(key, k.Elements.String())
		}
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(k.Lat))
		key = binary.LittleEndian.AppendUint64(key, math.Float64bits(k.Lng))
	}
	key = binary.LittleEndian.AppendUint32(key, uint32(min(r.Limit, r.MaxTotal)))
	key = binary.LittleEndian.AppendUint32(key, uint32(r.skip()))
	key = appendQuery(s, binary.AppendUvarint(key, unknown))
	key = appendString(key, string(s.typed))
	key = binary.AppendUvarint(key, uint64(len(large)))
	for _, seg := range large {
		key = appendPieces(&s.findings, binary.AppendUvarint(key, s.ix.OfSegment(seg).Owner()), seg)
	}
	return key
}
