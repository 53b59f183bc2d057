// Package simd owns the kernels that score vectors, read and move sets of bits, intersect lists, collect rows, skip over coded numbers
// and decode documents. It selects them once, at start, by the features of the processor. No package above knows which instruction
// set runs.
//
// Every kernel has a portable reference implementation in Go. It runs on other processors, under the build tag noasm, and in the
// tests as the oracle. Only FoldMarks, SpreadMarks and DecodeElements have none: their callers have alternatives. The environment
// variable SVC_SIMD (portable, avx2, avx512 or neon) forces a tier. A tier that the processor lacks is ignored.
//
// Sums of floats depend on the order of addition, so tiers agree within rounding (relative 1e-5 of the sum of magnitudes), not bit
// for bit. Integer kernels are exact.
package simd

//go:generate go run -C _generate . -out ../kernels_amd64.s -stubs ../kernels_amd64.go -pkg simd

import (
	"os"
	"unsafe"
)

// Tier is a family of instructions.
type Tier uint8

const (
	Portable Tier = iota
	AVX2          // with FMA
	AVX512        // with VNNI, VPOPCNTDQ and VBMI2
	NEON          // with the dot product of bytes where the processor has it
)

func (t Tier) String() string { return [...]string{"portable", "avx2", "avx512", "neon"}[t] }

// kernels is one tier's implementation.
type kernels struct {
	dot, l2 func(a, b []float32) float32
	dotInt8 func(a, b []int8) int32
	hamming func(a, b []uint64) int64

	gatherFloats func(dots, squares, q, rows []float32, ids []uint32)
	gatherHalves func(dots, squares, q []float32, rows []uint16, ids []uint32)
	gatherInt8   func(out []int32, q, rows []int8, ids []uint32)
	gatherBits   func(out []int32, q, rows []uint64, ids []uint32)
	signsAbove   func(kept []uint32, scores []int32, planes, rows []uint64, ids []uint32, words int, least int32) int
	signsMarked  func(room *MarkedRoom, planes, rows, marks []uint64, least int32) int
	quantize     func(dst []int8, v []float32, scale float32)
	largest      func(v []float32) float32
	halve        func(dst []uint16, v []float32)
	widen        func(dst []float32, h []uint16)
	ones         func(dst *OnesRoom, words []uint64, about int) int // of a word at least
	skipMarked   func(p []byte, n int) int
	leading      func(p []byte, low, beyond byte, begins bool) (passed, groups int, firsts, ends uint32)
	prefetch     func(p *byte, n int) // the lines of n bytes
	addRows      func(dst []uint32, words []uint64, epoch uint64, limit uint32, rows []uint32, table []int8, width int) int
	planes       func(marks []uint64, blocks []byte, planes, lo, hi int)
	fold         func(dst []uint64, n int, marks, ends []uint64, carry uint64) uint64 // nil: there is no fast one
	spread       func(dst, masks, bits []uint64)                                      // nil with fold
	common       func(dst *CommonRoom, a, b []byte) int
	commonPlaces func(dst *CommonRoom, a, b []byte) int
	elements     func(dst, src, dictionary []byte, c ElementCursor, lastWritten int) ElementCursor // nil: there is none that is fast
}

var portable = kernels{dotPortable, l2Portable, dotInt8Portable, hammingPortable,
	gatherFloatsPortable, gatherHalvesPortable, gatherPortable, gatherBitsPortable, signsAbovePortable, signsMarkedPortable, quantizePortable, largestPortable,
	halvePortable, widenPortable, onesPortable, skipMarkedPortable, leadingPortable, func(*byte, int) {}, addRowsPortable, planesPortable, nil, nil,
	commonPortable, commonPlacesPortable, nil}

// current is what runs; tier is its name. They are set before main and never
// again outside tests.
var current, tier = chosen()

func chosen() (kernels, Tier) {
	best := Available()
	if forced := os.Getenv("SVC_SIMD"); forced != "" {
		for t := range tiers() {
			if t.String() == forced {
				best = t
			}
		}
	}
	return tiers()[best], best
}

// Available is the highest tier of this processor.
func Available() Tier {
	best := Portable
	for t := range tiers() {
		best = max(best, t)
	}
	return best
}

// Running returns the tier in use.
func Running() Tier { return tier }

// Dot returns the sum of a[i]·b[i]. It panics when b is shorter than a.
func Dot(a, b []float32) float32 { return current.dot(a, b[:len(a)]) }

// L2 returns the sum of (a[i]−b[i])². It panics when b is shorter than a.
func L2(a, b []float32) float32 { return current.l2(a, b[:len(a)]) }

// DotInt8 returns the sum of a[i]·b[i]; exact up to 131,071 elements of any
// value. It panics when b is shorter than a.
func DotInt8(a, b []int8) int32 { return current.dotInt8(a, b[:len(a)]) }

// Hamming returns in how many bits a and b differ. It panics when b is shorter than a.
func Hamming(a, b []uint64) int64 { return current.hamming(a, b[:len(a)]) }

// DotRows scores one query against consecutive rows of len(q) elements:
// out[i] is its dot product with row i. It panics when rows is too short.
func DotRows(out, q, rows []float32) {
	dot, n := current.dot, len(q)
	for i := range out {
		out[i] = dot(q, rows[i*n:(i+1)*n])
	}
}

// CodeAlign is what the length of a row of 8-bit codes must be a multiple of
// for DotInt8Gather; rows are padded with zeros.
const CodeAlign = 64

// DotInt8Gather scores the query against the rows that ids names, row i being
// rows[i*len(q):(i+1)*len(q)]: out[j] is the dot product with row ids[j]. It
// panics when ids is shorter than out, len(q) is no positive multiple of
// CodeAlign, or an id lies outside rows.
func DotInt8Gather(out []int32, q, rows []int8, ids []uint32) {
	ids = ids[:len(out)]
	if len(q) == 0 || len(q)%CodeAlign != 0 {
		panic("simd: rows of codes are not padded")
	}
	checkIDs(ids, len(rows)/len(q))
	current.gatherInt8(out, q, rows, ids)
}

// HammingGather counts, for each row that ids names, the bits in which it
// differs from the query; row i is rows[i*len(q):(i+1)*len(q)]. It panics when
// ids is shorter than out, q is empty, or an id lies outside rows.
func HammingGather(out []int32, q, rows []uint64, ids []uint32) {
	ids = ids[:len(out)]
	checkIDs(ids, len(rows)/len(q))
	current.gatherBits(out, q, rows, ids)
}

// DotSquaresGather scores the query against the rows that ids names, row i
// being rows[i*len(q):(i+1)*len(q)]: dots[j] is the dot product with row
// ids[j], and squares[j] the sum of that row's squares. It panics when ids or
// squares is shorter than dots, q is empty, or an id lies outside rows.
func DotSquaresGather(dots, squares, q, rows []float32, ids []uint32) {
	ids, squares = ids[:len(dots)], squares[:len(dots)]
	checkIDs(ids, len(rows)/len(q))
	current.gatherFloats(dots, squares, q, rows, ids)
}

// Quantize sets dst[i] to v[i]·scale, rounded to an integer, halves to even,
// and cut off at ±127; to 0 where that is no number. All tiers agree. It panics
// when dst is shorter than v.
func Quantize(dst []int8, v []float32, scale float32) { current.quantize(dst[:len(v)], v, scale) }

// Largest returns the largest magnitude in v, ignoring NaN.
func Largest(v []float32) float32 { return current.largest(v) }

// OnesWords is up to how many words Ones and CountOnes take: their bits have indexes of 16 bits.
const OnesWords = 1 << 10

// OnesRoom has room for the indexes of all bits, and for what a kernel writes beyond the last one.
type OnesRoom [2 * (64*OnesWords + onesBeyond)]byte

// Ones writes the indexes of the set bits, ascending, as little-endian 16-bit numbers, and returns how many there are. The rest of
// dst is undefined. about is the expected number, which affects only speed. It panics for more than OnesWords words.
func Ones(dst *OnesRoom, words []uint64, about int) int {
	if len(words) > OnesWords {
		panic("simd: more words than there is room for")
	}
	if len(words) == 0 {
		return 0
	}
	return current.ones(dst, words, about)
}

// CountOnes returns how many bits are set. It panics for more than OnesWords words.
func CountOnes(words []uint64) int { return int(current.hamming(words, noOnes[:len(words)])) }

var noOnes [OnesWords]uint64

// SkipMarked returns the offset behind the n-th of the bytes whose highest bit is set, or len(p) where there are fewer.
func SkipMarked(p []byte, n int) int { return current.skipMarked(p, n) }

// Leading searches p for groups whose first byte is from low to high. A byte with the highest bit set ends a group; that bit does not
// count in the comparison. begins says that p[0] begins a group. Leading stops at the first 32 bytes that contain such a first byte.
// It returns how many bytes and groups came before these, and bit masks of the first bytes found and of the ends among the 32. If
// there are none, passed is len(p), and firsts and ends are 0.
func Leading(p []byte, low, high byte, begins bool) (passed, groups int, firsts, ends uint32) {
	return current.leading(p, low, high-low, begins)
}

func checkIDs(ids []uint32, rows int) {
	for _, id := range ids {
		if int(id) >= rows {
			panic("simd: row outside the rows")
		}
	}
}

// Prefetch fetches s into the nearest cache ahead of its use.
func Prefetch[T byte | uint32](s []T) {
	current.prefetch((*byte)(unsafe.Pointer(unsafe.SliceData(s))), int(unsafe.Sizeof(T(0)))*len(s))
}
