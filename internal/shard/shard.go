// Package shard owns the placement of documents: which of the shards of a network a document belongs to.
//
// It uses rendezvous hashing: every shard gets a score for every document, and the highest score wins. Adding a shard moves only the
// documents that it wins. Removing a shard moves only its own documents to other shards.
package shard

import (
	"slices"

	"github.com/zeebo/xxh3"
)

// Ring is a set of shards. It is immutable.
type Ring struct {
	names []string // in byte order, unique
}

// NewRing returns a ring of the given shards, in any order.
func NewRing(names []string) *Ring {
	names = slices.Clone(names)
	slices.Sort(names)
	return &Ring{slices.Compact(names)}
}

// Names returns the shards in byte order. The caller must not modify the slice.
func (r *Ring) Names() []string { return r.names }

// Has reports whether the ring contains a shard. A nil Ring has none.
func (r *Ring) Has(name string) bool {
	if r == nil {
		return false
	}
	_, ok := slices.BinarySearch(r.names, name)
	return ok
}

// Owner returns the index in Names of the shard that owns the document with this id. The ring must not be empty.
func (r *Ring) Owner(id []byte) int {
	owner, most := 0, uint64(0)
	buffer := make([]byte, 0, 128)
	for i, name := range r.names {
		// On a tie the last name wins.
		if score := Score(buffer, name, id); score >= most {
			owner, most = i, score
		}
	}
	return owner
}

// Score returns the rendezvous score of a candidate for an object: XXH3-64 with seed 0 over both, each followed by 0xFF. buffer is
// scratch memory and may be nil.
func Score(buffer []byte, candidate string, object []byte) uint64 {
	buffer = append(buffer[:0], candidate...)
	buffer = append(buffer, 0xff)
	buffer = append(buffer, object...)
	buffer = append(buffer, 0xff)
	return xxh3.Hash(buffer)
}

// Winner returns the candidate with the highest score for an object, or "" if there are no candidates.
func Winner(candidates []string, object string) string {
	if len(candidates) == 0 {
		return ""
	}
	r := NewRing(candidates)
	return r.names[r.Owner([]byte(object))]
}
