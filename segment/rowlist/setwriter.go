package rowlist

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// setWriter writes the code of a set, container by container, in memory that serves one set after the other.
type setWriter struct {
	code       []byte
	begin, end int // of the containers
	n          int // how many there are; the header, which begins with it, is moved next to them last
}

const (
	setHeaderBytes       = 8
	containerHeaderBytes = 8 // key and number of values, then an offset, which the library does not read
)

var setWriters = sync.Pool{New: func() any { return new(setWriter) }}

// newSetWriter returns a writer of a set of up to most containers. The caller puts it back into setWriters after use.
func newSetWriter(most int) *setWriter {
	w := setWriters.Get().(*setWriter)
	w.begin = setHeaderBytes + containerHeaderBytes*most
	w.n, w.end = 0, 0
	w.reserve(w.begin)
	w.end = w.begin
	return w
}

// reserve makes room for n bytes behind the end, and then for a container with all that kernels write beyond it.
func (w *setWriter) reserve(n int) {
	if n += w.end + len(simd.OnesRoom{}); n > len(w.code) {
		w.code = slices.Grow(w.code[:w.end], n+n/4-w.end)
		w.code = w.code[:cap(w.code)]
	}
}

// room returns the memory that the next container is written to.
func (w *setWriter) room() []byte {
	w.reserve(0)
	return w.code[w.end:]
}

// add adds the container of a key, which is above the earlier ones. values is how many values were written, maybe 0, in bytes bytes.
func (w *setWriter) add(key, values, bytes int) {
	if values == 0 {
		return
	}
	entry := w.code[setHeaderBytes+4*w.n:]
	binary.LittleEndian.PutUint16(entry, uint16(key))
	binary.LittleEndian.PutUint16(entry[2:], uint16(values-1))
	w.end += bytes
	w.n++
}

// addBits adds a container of the values whose bits are set.
func (w *setWriter) addBits(key int, words []uint64) {
	count := simd.CountOnes(words)
	to := w.room()
	switch {
	case count == 0:
	case count <= arrayMax:
		w.add(key, count, 2*simd.Ones((*simd.OnesRoom)(to), words, count))
	default:
		for i, word := range words {
			binary.LittleEndian.PutUint64(to[8*i:], word)
		}
		clear(to[8*len(words) : containerBytes])
		w.add(key, count, containerBytes)
	}
}

// set returns the set. Its containers share one piece of memory without pointers and without spare room, so a container is copied before
// it is changed in place. ok is false if there are more containers than keys of 16 bits.
func (w *setWriter) set() (set *roaring.Bitmap, ok bool) {
	if w.n == 0 {
		return roaring.New(), true
	}
	at := w.begin - setHeaderBytes - containerHeaderBytes*w.n
	copy(w.code[at+setHeaderBytes:], w.code[setHeaderBytes:setHeaderBytes+4*w.n])
	binary.LittleEndian.PutUint32(w.code[at:], roaringCookie)
	binary.LittleEndian.PutUint32(w.code[at+4:], uint32(w.n))
	return flatOf(w.code[at:w.end], true)
}
