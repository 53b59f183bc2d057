package positions

import (
	"bytes"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/segment"
	"svc/segment/rowlist"
)

// maxPairs is the maximum number of pairs of words that are looked up for two neighbouring nodes.
const maxPairs = 4096

// Neighbours returns the rows of a segment in which node v is directly after u, at the levels of a batch, and the rows for which this
// is unknown; in all others it is not. ok is false if nothing is known about the words.
func (r *Reader) Neighbours(like *Batch, u, v int) (sure, maybe *roaring.Bitmap, ok bool) {
	if r.byField() {
		return nil, nil, false
	}
	m := &r.pairs
	defer m.forget()
	m.left, m.others = r.knownWords(m.left[:0], m.others[:0], like, u)
	m.right, m.others = r.knownWords(m.right[:0], m.others, like, v)
	left, right := m.left, m.right
	if len(left) == 0 || len(right) == 0 || len(left)*len(right) > maxPairs {
		return nil, nil, false
	}
	reader := r.Segments[like.Segment]
	maybe = reader.Union(m.others, nil)
	for _, n := range []int{u, v} {
		mask, _ := like.Mask(n)
		for level := range r.Graph.Nodes[n].Levels {
			if mask>>level&1 != 0 {
				for _, p := range r.Graph.Nodes[n].Levels[level].Phrases {
					if of := p.Segments[like.Segment].Rows; !of.IsEmpty() {
						maybe = query.Union(maybe, of, reader.Rows())
					}
				}
			}
		}
	}
	// United one after the other, hundreds of sets make hundreds of new ones: each row is a bit.
	bits := r.Bits(reader.Rows())
	reader.AddNeighbours(bits, left, right, func(f segment.FieldID) bool { return r.Words[f] >= 0 })
	return rowlist.FromBits(bits), maybe, true
}

// Bits returns a zeroed bit set for the given number of rows, valid until the next call.
func (r *Reader) Bits(rows int) []uint64 {
	r.bits = slices.Grow(r.bits[:0], (rows+63)/64)[:(rows+63)/64]
	clear(r.bits)
	return r.bits
}

// pairs are the words of two nodes: those whose neighbours a segment stores, and the others.
type pairs struct {
	left, right, others []segment.Posting
}

// forget forgets the words, which are of the view.
func (p *pairs) forget() {
	clear(p.left)
	clear(p.right)
	clear(p.others)
}

// knownWords appends the words of a node, at the levels of a batch, whose neighbours the segment stores, and the others.
func (r *Reader) knownWords(known, others []segment.Posting, like *Batch, node int) (_, _ []segment.Posting) {
	mask, _ := like.Mask(node)
	for level := range r.Graph.Nodes[node].Levels {
		if mask>>level&1 == 0 {
			continue
		}
		for _, p := range r.Graph.Nodes[node].Levels[level].Postings[like.Segment] {
			switch {
			case r.Segments[like.Segment].KnowsNeighbours(p):
				known = append(known, p)
			case r.isPrefix(node, like.Segment, p):
				known, others = r.knownOfPrefix(known, others, node, like.Segment, p)
			default:
				others = append(others, p)
			}
		}
	}
	return known, others
}

// maxPrefixed is the maximum number of words with a prefix that are examined one by one.
const maxPrefixed = 4096

// isPrefix reports whether a posting is that of all words that begin with a node of two letters or more.
func (r *Reader) isPrefix(node, seg int, p segment.Posting) bool {
	v := &r.Graph.Nodes[node]
	t := &r.Graph.Terms[v.Term]
	if v.Len > 1 || v.Phrase || !t.Prefix || len(t.Word) < 2 { // too many begin with one letter
		return false
	}
	of, ok := r.Segments[seg].Prefix([]byte(t.Word))
	return ok && of.Same(p)
}

// knownOfPrefix is knownWords for the words of posting p: all that begin with a node. If there are many, p itself is one of the
// others.
func (r *Reader) knownOfPrefix(known, others []segment.Posting, node, seg int, p segment.Posting) (_, _ []segment.Posting) {
	prefix := []byte(r.Graph.Terms[r.Graph.Nodes[node].Term].Word)
	reader := r.Segments[seg]
	frequent, rare := len(known), len(others)
	it := reader.Terms(prefix, nil, nil)
	defer it.Close()
	n := 0
	for ; n <= maxPrefixed && it.Next() && bytes.HasPrefix(it.Word(), prefix); n++ {
		if q := it.Posting(); reader.KnowsNeighbours(q) {
			known = append(known, q)
		} else {
			others = append(others, q)
		}
	}
	if n > maxPrefixed || it.Err() != nil {
		clear(known[frequent:])
		clear(others[rare:])
		return known[:frequent], append(others[:rare], p)
	}
	return known, others
}
