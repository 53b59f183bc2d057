//go:build !noasm

package simd

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// tiers returns what this processor and operating system can run: every arm64
// one has NEON, and most the dot product of bytes (FEAT_DotProd).
func tiers() map[Tier]kernels {
	dotInt8 := dotInt8NEON
	if cpuid.CPU.Supports(cpuid.ASIMDDP) {
		dotInt8 = dotInt8SDOT
	}
	gather := func(out []int32, q, rows []int8, ids []uint32) {
		n := len(q)
		for j := range out {
			if j+rowsAhead < len(ids) {
				prefetchLines((*byte)(unsafe.Pointer(&rows[int(ids[j+rowsAhead])*n])), n)
			}
			at := int(ids[j]) * n
			out[j] = dotInt8(q, rows[at:at+n])
		}
	}
	return map[Tier]kernels{
		Portable: portable,
		NEON: {dotNEON, l2NEON, dotInt8, hammingNEON,
			gatherFloatsNEON, gatherHalvesPortable, gather, gatherBitsNEON, signsAbovePortable, signsMarkedPortable, quantizePortable, largestPortable, halvePortable, widenPortable, onesPortable, skipMarkedPortable, leadingPortable, prefetchLines, addRowsPortable, planesPortable, nil, nil,
			commonPortable, commonPlacesPortable, nil},
	}
}

// rowsAhead is how many rows ahead of the one that is scored are fetched.
const rowsAhead = 4

func gatherFloatsNEON(dots, squares, q, rows []float32, ids []uint32) {
	n := len(q)
	for j := range dots {
		if j+rowsAhead < len(ids) {
			prefetchLines((*byte)(unsafe.Pointer(&rows[int(ids[j+rowsAhead])*n])), 4*n)
		}
		dots[j], squares[j] = dotSquaresNEON(q, rows[int(ids[j])*n:][:n])
	}
}

func gatherBitsNEON(out []int32, q, rows []uint64, ids []uint32) {
	n := len(q)
	for j := range out {
		if j+rowsAhead < len(ids) {
			prefetchLines((*byte)(unsafe.Pointer(&rows[int(ids[j+rowsAhead])*n])), 8*n)
		}
		at := int(ids[j]) * n
		out[j] = int32(hammingNEON(q, rows[at:at+n]))
	}
}

//go:noescape
func dotNEON(a, b []float32) float32

//go:noescape
func l2NEON(a, b []float32) float32

//go:noescape
func dotSquaresNEON(a, b []float32) (dot, squares float32)

// dotInt8NEON needs len(b) >= len(a), as the others do.
//
//go:noescape
func dotInt8NEON(a, b []int8) int32

// dotInt8SDOT needs FEAT_DotProd.
//
//go:noescape
func dotInt8SDOT(a, b []int8) int32

//go:noescape
func hammingNEON(a, b []uint64) int64

// prefetchLines fetches the lines of the n bytes at p ahead of their use. No address is refused.
//
//go:noescape
func prefetchLines(p *byte, n int)
