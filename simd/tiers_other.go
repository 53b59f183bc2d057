//go:build noasm || (!amd64 && !arm64)

package simd

func tiers() map[Tier]kernels { return map[Tier]kernels{Portable: portable} }
