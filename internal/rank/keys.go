package rank

import (
	"encoding/binary"
)

func appendString(key []byte, s string) []byte {
	return append(binary.AppendUvarint(key, uint64(len(s))), s...)
}

// flags returns a bit for each.
func flags(set ...bool) (f byte) {
	for i, on := range set {
		if on {
			f |= 1 << i
		}
	}
	return f
}

// lasting reports whether the results in a segment depend only on the segment, the query and the filter.
func lasting(s *job) bool {
	r := s.r
	switch {
	case r.Vectors != nil || s.graph.Excluded != nil || s.chosen != nil || s.isLate:
		return false
	case r.Universe != nil:
		return s.isLive(r.Universe)
	}
	return r.Filter == nil || r.Filter.Key() != nil
}

// appendCandidates is a KeyOf.
func appendCandidates(s *job, key []byte, seg int) []byte {
	return appendPieces(&s.findings, appendQuery(s, key), seg)
}

// appendQuery appends what the query and the filter contribute to a cache key, apart from the pieces.
func appendQuery(s *job, key []byte) []byte {
	key = append(key, byte(s.r.Strategy))
	if f := s.r.Filter; s.filters() {
		key = append(binary.AppendUvarint(key, uint64(1+len(f.Key()))), f.Key()...)
	} else {
		key = append(key, 0)
	}
	key = binary.AppendUvarint(key, uint64(len(s.ranks)))
	for _, rank := range s.ranks {
		key = binary.AppendUvarint(key, uint64(rank))
	}
	key = binary.AppendUvarint(key, uint64(len(s.graph.Nodes)))
	for k := range s.graph.Nodes {
		v := &s.graph.Nodes[k]
		key = append(key, byte(v.Term), byte(v.Len), byte(v.Budget), flags(v.Wide, v.Exists, v.Phrase, s.matches[k]))
		key = binary.LittleEndian.AppendUint16(binary.LittleEndian.AppendUint16(key, v.Start), v.End)
		key = appendString(key, v.Key)
	}
	return key
}

// appendPieces appends the pieces of the nodes in a segment, and how their words count.
func appendPieces(s *findings, key []byte, seg int) []byte {
	var buf [8]byte
	key = append(key, s.ix.OfSegment(seg).Key(buf[:0])...)
	for k := range s.graph.Nodes {
		key = binary.AppendUvarint(key, s.graph.Nodes[k].Segments[seg].Piece)
	}
	return key
}
