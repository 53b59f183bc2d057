package rank

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
)

// A document has the same place before or behind another whatever else is found, and a segment never changes. So the documents that fill
// a page are remembered with the segments they lie in. A later view ranks those of them that live, and all documents of segments so small
// that they are not worth remembering: young ones, mostly. What was not remembered comes behind all that was.

// Segments take part with that many documents of a query; pages are remembered up to some size. (Variables, so that tests can lower them.)
var (
	leadRows = 128
	leadHits = 1000
)

// leaders are the first documents of a query in the large segments of a view, in their order.
type leaders struct {
	rows []leader
	all  bool // there are no others
}

type leader struct {
	row   uint32
	place int32 // of its segment among the large ones
}

// rankUniverse ranks all documents that a query finds.
func (s *search) rankUniverse(root *bucket) {
	large, key := s.leadersKey(root)
	if key == nil {
		s.rankBucket(root, 0)
		return
	}
	kept := (*query.Index)(s.ix).OfSegment(large[0])
	if l, ok := kept.Get(key).(*leaders); ok {
		if s.follow(l, root, large) {
			return
		}
		s.out.hits = s.out.hits[:0]
	}
	s.rankBucket(root, 0)
	if s.isLate {
		return
	}
	places := s.places(large)
	found, lead := 0, 0
	for _, seg := range large {
		found += cardinality(root.rows[seg])
	}
	for i := range s.out.hits {
		if places[s.out.hits[i].Segment] >= 0 {
			lead++
		}
	}
	l := &leaders{rows: make([]leader, 0, lead)}
	for i := range s.out.hits {
		if h := &s.out.hits[i]; places[h.Segment] >= 0 {
			l.rows = append(l.rows, leader{uint32(h.Row), places[h.Segment]})
		}
	}
	l.all = lead == found
	kept.Put(key, l, 64+8*len(l.rows))
}

// places returns of each segment which of the large ones it is; −1 for none.
func (s *search) places(large []int) []int32 {
	places := make([]int32, len(s.ix.Segments))
	for i := range places {
		places[i] = -1
	}
	for i, seg := range large {
		places[seg] = int32(i)
	}
	return places
}

// follow fills the page with remembered documents and those of small segments. It returns false when they do not tell the page.
func (s *search) follow(l *leaders, root *bucket, large []int) bool {
	known := &bucket{rows: make(rows, len(root.rows))}
	copy(known.rows, root.rows)
	for _, seg := range large {
		known.rows[seg] = nil
	}
	others := known.rows.count()
	alive := 0
	for _, of := range l.rows {
		if root.rows[large[of.place]].Contains(of.row) {
			alive++
		}
	}
	if others == 0 { // nothing comes in between
		if !l.all && alive < s.out.limit {
			return false
		}
		for _, of := range l.rows {
			if seg := large[of.place]; s.out.wants() && root.rows[seg].Contains(of.row) {
				s.out.add(seg, segment.Row(of.row), s.ix.Segments[seg].DocID(segment.Row(of.row)))
			}
		}
		return true
	}
	for _, of := range l.rows {
		if seg := large[of.place]; root.rows[seg].Contains(of.row) {
			if known.rows[seg] == nil {
				known.rows[seg] = roaring.New()
			}
			known.rows[seg].Add(of.row)
		}
	}
	known.n = others + alive
	s.rankBucket(known, 0)
	if l.all {
		return true
	}
	// The page is right if the last remembered document is on it at its end, or behind it.
	if s.out.wants() {
		return false
	}
	places, shown := s.places(large), 0
	for i := range s.out.hits {
		if places[s.out.hits[i].Segment] >= 0 {
			shown++
		}
	}
	return shown < alive || places[s.out.hits[len(s.out.hits)-1].Segment] >= 0
}

// leadersKey returns the large segments of a query, the one with the most documents first, and under which key its first documents are
// kept there; nil where they depend on more than what the segments say, or where to remember them is not worth it.
func (s *search) leadersKey(root *bucket) (large []int, key []byte) {
	r := s.r
	if len(s.graph.Nodes) == 0 || s.scored || r.Vectors != nil || s.out.distinct != nil || s.out.skip > 0 || s.out.limit > leadHits ||
		r.Universe != nil && !s.isLive(r.Universe) || s.graph.Excluded != nil {
		return nil, nil
	}
	for _, of := range s.rules {
		if !of.traits().says.IsScore() {
			return nil, nil
		}
	}
	most := 0
	for seg, in := range root.rows {
		if n := cardinality(in); n > leadRows {
			large = append(large, seg)
			if n > most {
				most = n
				large[0], large[len(large)-1] = seg, large[0]
			}
		}
	}
	if large == nil {
		return nil, nil
	}
	q := (*query.Index)(s.ix)
	key = q.OfSegment(large[0]).Key(make([]byte, 0, 256), 'l')
	key = append(key, byte(r.Strategy), byte(len(s.ix.Settings.RankingRules)))
	for _, rule := range s.ix.Settings.RankingRules {
		key = append(key, byte(rule.Kind))
	}
	key = binary.LittleEndian.AppendUint32(key, uint32(s.out.limit))
	for _, seg := range large {
		var buf [8]byte
		c := q.OfSegment(seg)
		key = append(binary.AppendUvarint(key, c.Owner()), c.Key(buf[:0], 'l')...)
	}
	key = binary.AppendUvarint(key, uint64(len(s.ranks)))
	for _, rank := range s.ranks {
		key = binary.AppendUvarint(key, uint64(rank))
	}
	for k := range s.graph.Nodes {
		v := &s.graph.Nodes[k]
		flags := byte(0)
		for i, set := range []bool{v.Wide, v.Exists, v.Phrase, s.matches[k]} {
			if set {
				flags |= 1 << i
			}
		}
		key = append(key, byte(v.Term), byte(v.Len), byte(v.Budget), flags)
		key = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(key, v.Start), v.End)
		key = append(binary.AppendUvarint(key, uint64(len(v.Key))), v.Key...)
		for _, seg := range large {
			key = binary.AppendUvarint(key, v.Pieces[seg])
		}
	}
	return large, key
}
