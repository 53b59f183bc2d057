//go:build !noasm

package simd

import "github.com/klauspost/cpuid/v2"

// tiers returns what this processor and operating system can run.
func tiers() map[Tier]kernels {
	t := map[Tier]kernels{Portable: portable}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.POPCNT, cpuid.BMI1) {
		t[AVX2] = kernels{dotAVX2, l2AVX2, wholeSteps, hammingAVX2,
			gatherFloatsAVX2, gatherAVX2, gatherBitsAVX2, quantizeSteps, largestSteps, onesUsual, prefetchLines}
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.AVX512VPOPCNTDQ, cpuid.POPCNT, cpuid.BMI1, cpuid.BMI2) {
		t[AVX512] = kernels{dotAVX512, l2AVX512, dotInt8VNNI, hammingAVX512,
			gatherFloatsAVX512, gatherVNNI, gatherHamming, quantizeSteps, largestSteps, onesUsual, prefetchLines}
	}
	return t
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

func quantizeSteps(dst []int8, v []float32, scale float32) {
	n := len(v) &^ 7
	quantizeAVX2(dst, v[:n], scale)
	quantizePortable(dst[n:], v[n:], scale)
}

func largestSteps(v []float32) float32 {
	n := len(v) &^ 15
	return max(largestAVX2(v[:n]), largestPortable(v[n:]))
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
