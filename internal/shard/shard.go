// Package shard owns the placement of documents: which of the shards of a network a document belongs to.
//
// It is rendezvous hashing. Every shard is given a number for every document, and the largest wins; so adding a shard moves
// only the documents that it wins, and removing one deals out only its own.
package shard

import (
	"slices"

	"github.com/zeebo/xxh3"
)

// Ring is a set of shards. It is immutable.
type Ring struct {
	names []string // in byte order, unique
}

// NewRing returns the ring of some shards, in any order.
func NewRing(names []string) *Ring {
	names = slices.Clone(names)
	slices.Sort(names)
	return &Ring{slices.Compact(names)}
}

// Names returns the shards in byte order. They are not to be modified.
func (r *Ring) Names() []string { return r.names }

// Has reports whether there is a shard of a name. A nil Ring has none.
func (r *Ring) Has(name string) bool {
	if r == nil {
		return false
	}
	_, ok := slices.BinarySearch(r.names, name)
	return ok
}

// Owner returns the place, among Names, of the shard that a document of an id belongs to. There is at least one shard.
func (r *Ring) Owner(id []byte) int {
	owner, most := 0, uint64(0)
	buffer := make([]byte, 0, 128)
	for i, name := range r.names {
		// Equal numbers go to the last name.
		if score := Score(buffer, name, id); score >= most {
			owner, most = i, score
		}
	}
	return owner
}

// Score is the number that a candidate has for an object: XXH3-64, seed 0, over the bytes of both, each followed by 0xFF.
// The buffer is scratch, and may be nil.
func Score(buffer []byte, candidate string, object []byte) uint64 {
	buffer = append(buffer[:0], candidate...)
	buffer = append(buffer, 0xff)
	buffer = append(buffer, object...)
	buffer = append(buffer, 0xff)
	return xxh3.Hash(buffer)
}

// Winner returns the candidate with the largest score for an object, "" where there is none.
func Winner(candidates []string, object string) string {
	if len(candidates) == 0 {
		return ""
	}
	r := NewRing(candidates)
	return r.names[r.Owner([]byte(object))]
}
