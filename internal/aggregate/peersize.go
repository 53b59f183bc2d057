package aggregate

import "math/bits"

// exactNode is a node whose encoded state has a known length: every kind whose states merge exactly.
type exactNode interface {
	// peerBytes returns the length of what appendPeer appends for the given number of groups, or an upper bound near it.
	peerBytes(groups int) int
}

// peerBytes returns an upper bound of the length of the output of AppendPeer, if Keeps is true for the set.
func (r *Result) peerBytes() int { return 1 + peerBytes(r.nodes, 1) }

func peerBytes(nodes []node, groups int) (n int) {
	for _, at := range nodes {
		if exact, ok := at.(exactNode); ok {
			n += exact.peerBytes(groups)
		}
	}
	return n
}

// Bytes of parts of a state.
const (
	mostRest      = 3 // of a number beyond its float64
	mostNumber    = 8 + mostRest
	mostSum       = 1 + 16
	mostOfFigures = 2*mostNumber + 2*mostSum // besides the count
)

func (s *stats) peerBytes(groups int) int {
	n, f := groups, s.settled()
	counts := f.state("count").(*count).n
	for g, filled := range f.filled[:min(groups, f.groups)] {
		if filled {
			n += mostOfFigures + uvarintBytes(counts[g])
		}
	}
	return n
}

func (b *buckets) peerBytes(int) int {
	n := uvarintBytes(uint64(len(b.keys))) + uvarintBytes(uint64(len(b.counts)))
	for i := range b.keys {
		k := &b.keys[i]
		switch {
		case k.isNumber:
			n += 1 + mostNumber
		case string(k.shown) == string(k.text):
			n += 2 + textBytes(k.text)
		default:
			n += 1 + textBytes(k.text) + textBytes(k.shown)
		}
	}
	for i, count := range b.counts {
		n += uvarintBytes(uint64(b.parent[i])) + uvarintBytes(uint64(b.key[i])) + uvarintBytes(count)
	}
	return n + peerBytes(b.nested, len(b.counts))
}

// textBytes returns the length of what appendText appends.
func textBytes(text []byte) int { return uvarintBytes(uint64(len(text))) + len(text) }

// uvarintBytes returns the length of a number as a uvarint.
func uvarintBytes(x uint64) int { return (bits.Len64(x|1) + 6) / 7 }
