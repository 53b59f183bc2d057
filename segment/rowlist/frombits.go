package rowlist

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// FromBits returns the set of the rows whose bits are set, 64 per word. For 1 to 6 rows in 100 it takes about three fifths of the
// time of roaring.FromDense, and otherwise as long. The result shares nothing with words, and has no spare capacity.
func FromBits(words []uint64) *roaring.Bitmap {
	all := (len(words) + simd.OnesWords - 1) / simd.OnesWords
	w := newSetWriter(all)
	defer setWriters.Put(w)
	for key := range all {
		w.addBits(key, words[key*simd.OnesWords:min((key+1)*simd.OnesWords, len(words))])
	}
	set, ok := w.set()
	if !ok { // more rows than 32 bits have
		return roaring.FromDense(words, true)
	}
	return set
}
