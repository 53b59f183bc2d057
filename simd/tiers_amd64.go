//go:build !noasm

package simd

import "github.com/klauspost/cpuid/v2"

// tiers returns what this processor and operating system can run.
func tiers() map[Tier]kernels {
	t := map[Tier]kernels{Portable: portable}
	if cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.POPCNT) {
		t[AVX2] = kernels{dotAVX2, l2AVX2, wholeSteps, hammingAVX2, gatherAVX2}
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512BW, cpuid.AVX512DQ, cpuid.AVX512VL, cpuid.AVX512VNNI, cpuid.AVX512VPOPCNTDQ, cpuid.BMI2) {
		t[AVX512] = kernels{dotAVX512, l2AVX512, dotInt8VNNI, hammingAVX512, gatherVNNI}
	}
	return t
}

// wholeSteps gives the AVX2 kernel whole registers and does the rest in Go.
func wholeSteps(a, b []int8) int32 {
	n := len(a) &^ 15
	return dotInt8AVX2(a[:n], b) + dotInt8Portable(a[n:], b[n:])
}
