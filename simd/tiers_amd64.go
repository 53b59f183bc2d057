//go:build !noasm

package simd

import (
	"unsafe"

	"github.com/klauspost/cpuid/v2"
)

// tiers returns what this processor and operating system can run.
func tiers() map[Tier]kernels {
	t := map[Tier]kernels{Portable: portable}
	skipMarked := skipMarkedPortable
	var (
		fold   func(dst []uint64, n int, marks, ends []uint64, carry uint64) uint64
		spread func(dst, masks, bits []uint64)
	)
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.POPCNT, cpuid.BMI1, cpuid.BMI2) && !slowDeposit() {
		skipMarked, fold, spread = skipMarkedSteps, foldWords, spreadWords
	}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.F16C, cpuid.POPCNT, cpuid.BMI1) {
		t[AVX2] = kernels{dotAVX2, l2AVX2, wholeSteps, hammingAVX2,
			gatherFloatsAVX2, gatherHalvesF16C, gatherAVX2, gatherBitsAVX2, signsAboveSums, signsMarkedOnes, quantizeSteps, largestSteps, halveSteps, widenSteps, onesUsual, skipMarked, leadingSteps, prefetchLines, addRows, planesSteps, fold, spread, commonPortable, commonPlacesPortable, elementsWide}
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.AVX512VPOPCNTDQ, cpuid.AVX512VBMI2, cpuid.F16C, cpuid.POPCNT, cpuid.BMI1, cpuid.BMI2) {
		t[AVX512] = kernels{dotAVX512, l2AVX512, dotInt8VNNI, hammingAVX512,
			gatherFloatsAVX512, gatherHalvesAVX512, gatherVNNI, gatherHamming, signsAboveVNNI, signsMarkedLines, quantizeSteps, largestSteps, halveSteps, widenSteps, onesUsual, skipMarked, leadingSteps, prefetchLines, addRows, planesTernary, fold, spread, commonBlocks, commonPlacesBlocks, elementsWide}
	}
	return t
}

// slowDeposit reports whether PDEP and PEXT are microcode, which takes longer than all that it replaces: up to Zen 2.
func slowDeposit() bool {
	return cpuid.CPU.IsVendor(cpuid.AMD) && cpuid.CPU.Family < 0x19 || cpuid.CPU.IsVendor(cpuid.Hygon)
}

func elementsWide(dst, src, dictionary []byte, c ElementCursor, lastWritten int) ElementCursor {
	behind := unsafe.Add(unsafe.Pointer(unsafe.SliceData(dictionary)), len(dictionary))
	elementsAVX2(unsafe.SliceData(dst), unsafe.SliceData(src), (*byte)(behind), &elementTable[0][0], -len(dictionary), lastWritten, len(src)-ElementRoom-1, len(dst)-mostElement, &c.Written)
	return c
}

func commonBlocks(dst *CommonRoom, a, b []byte) int {
	return commonVBMI2(&dst[0], unsafe.SliceData(a), unsafe.SliceData(b), len(a)/2, len(b)/2)
}

func commonPlacesBlocks(dst *CommonRoom, a, b []byte) int {
	return commonPlacesVBMI2(&dst[0], unsafe.SliceData(a), unsafe.SliceData(b), len(a)/2, len(b)/2)
}

// skipMarkedSteps handles in Go the bytes after the last full register.
func skipMarkedSteps(p []byte, n int) int {
	if n <= 0 {
		return 0
	}
	at := 0
	if len(p) >= 32 {
		if at, n = skipMarkedAVX2(&p[0], len(p)/32, n); n == 0 {
			return at
		}
	}
	return at + skipMarkedPortable(p[at:], n)
}

// leadingSteps handles in Go the bytes after the last full register.
func leadingSteps(p []byte, low, beyond byte, begins bool) (passed, groups int, firsts, ends uint32) {
	whole := len(p) &^ 31
	if whole > 0 {
		begin := 0
		if begins {
			begin = 1
		}
		passed, groups, firsts, ends = leadingAVX2(&p[0], whole/32, low, beyond, begin)
		if firsts != 0 {
			return passed, groups, firsts, ends
		}
		begins = p[whole-1] >= 0x80
	}
	if whole == len(p) {
		return passed, groups, 0, 0
	}
	more, some, firsts, ends := leadingPortable(p[whole:], low, beyond, begins)
	return whole + more, groups + some, firsts, ends
}

// boundsOf returns the bits of both bounds, the upper one first, by plane, 64 times each.
func boundsOf(planes, lo, hi int) (bounds [2 * MaxPlanes]uint64) {
	for i := range planes {
		bounds[2*i], bounds[2*i+1] = -uint64(hi>>i&1), -uint64(lo>>i&1)
	}
	return bounds
}

func planesSteps(marks []uint64, blocks []byte, planes, lo, hi int) {
	bounds := boundsOf(planes, lo, hi)
	planesAVX2(&marks[0], &blocks[0], len(marks)/len(PlaneMarks{}), planes, &bounds[0])
}

func planesTernary(marks []uint64, blocks []byte, planes, lo, hi int) {
	bounds := boundsOf(planes, lo, hi)
	planesAVX512(&marks[0], &blocks[0], len(marks)/len(PlaneMarks{}), planes, &bounds[0])
}

func foldWords(dst []uint64, n int, marks, ends []uint64, carry uint64) uint64 {
	return foldBMI2(&dst[0], n, &marks[0], &ends[0], len(ends), carry)
}

func spreadWords(dst, masks, bits []uint64) {
	spreadBMI2(&dst[0], &masks[0], len(masks), &bits[0])
}

// wholeSteps gives the AVX2 kernel whole registers and does the rest in Go.
func wholeSteps(a, b []int8) int32 {
	n := len(a) &^ 15
	return dotInt8AVX2(a[:n], b) + dotInt8Portable(a[n:], b[n:])
}

func gatherBitsAVX2(out []int32, q, rows []uint64, ids []uint32) {
	n := len(q)
	for j := range out {
		at := int(ids[j]) * n
		out[j] = int32(hammingAVX2(q, rows[at:at+n]))
	}
}

// signsAboveSums gives the AVX2 kernel rows whose sums fit into its 16 bits.
func signsAboveSums(kept []uint32, scores []int32, planes, rows []uint64, ids []uint32, words int, least int32) int {
	if words > 500 {
		return signsAbovePortable(kept, scores, planes, rows, ids, words, least)
	}
	return signsAboveAVX2(kept, scores, planes, rows, ids, words, least)
}

func signsMarkedOnes(room *MarkedRoom, planes, rows, marks []uint64, least int32) int {
	return signsOfMarksPOPCNT(room.Kept[:], room.Scores[:], planes, rows, marks, least)
}

func signsMarkedLines(room *MarkedRoom, planes, rows, marks []uint64, least int32) int {
	return signsOfLines512(room.Kept[:], room.Scores[:], planes, rows, marks, room.lines[:], least)
}

func quantizeSteps(dst []int8, v []float32, scale float32) {
	n := len(v) &^ 7
	quantizeAVX2(dst, v[:n], scale)
	quantizePortable(dst[n:], v[n:], scale)
}

func largestSteps(v []float32) float32 {
	n := len(v) &^ 15
	return max(largestAVX2(v[:n]), largestPortable(v[n:]))
}

func halveSteps(dst []uint16, v []float32) {
	n := len(v) &^ 7
	halveF16C(dst, v[:n])
	halvePortable(dst[n:], v[n:])
}

func widenSteps(dst []float32, h []uint16) {
	n := len(h) &^ 7
	widenF16C(dst, h[:n])
	widenPortable(dst[n:], h[n:])
}

// onesUsual takes the kernel for about as many bits a word as are set.
func onesUsual(dst *OnesRoom, words []uint64, about int) int {
	ones := ones7
	switch {
	case 8*about < len(words):
		ones = onesRare
	case about < len(words):
		ones = ones2
	case 2*about < 5*len(words):
		ones = ones4
	}
	return ones(&dst[0], words)
}
