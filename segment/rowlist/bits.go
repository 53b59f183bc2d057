package rowlist

import (
	"slices"
	"sync"
)

// Bits are a bit for each of some rows, 64 a word, in memory that serves one user after the other.
type Bits struct{ Words []uint64 }

var bitsPool = sync.Pool{New: func() any { return new(Bits) }}

// TakeBits returns a zeroed bit set of the given number of words. The caller owns it until Release.
func TakeBits(words int) *Bits {
	b := bitsPool.Get().(*Bits)
	b.Words = slices.Grow(b.Words[:0], words)[:words]
	clear(b.Words)
	return b
}

// Release ends the use of the bits.
func (b *Bits) Release() { bitsPool.Put(b) }
