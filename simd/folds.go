package simd

// HasFolds reports whether the running tier has FoldMarks and SpreadMarks.
func HasFolds() bool { return current.fold != nil }

// FoldMarks computes one bit per group of bits: a group ends with a bit of ends, and its bit is set if one of its marks is. It writes
// these bits to dst from bit n on; those of dst must be zero there. carry is 1 if an earlier word has a mark of the first group;
// FoldMarks returns the carry of the last group, if it does not end here. It panics if marks is shorter than ends, or if dst has no
// room for a bit per group.
func FoldMarks(dst []uint64, n int, marks, ends []uint64, carry uint64) uint64 {
	marks = marks[:len(ends)]
	if uint(n) >= 64 || 64*len(dst)-n < countOnes(ends) {
		panic("simd: more groups of marks than there is room for")
	}
	last := len(ends) // behind the last word with an end
	for last > 0 && ends[last-1] == 0 {
		last--
	}
	if last > 0 {
		carry = current.fold(dst, n, marks, ends[:last], carry)
	}
	for _, w := range marks[last:] {
		if w != 0 {
			carry = 1
		}
	}
	return carry
}

// SpreadMarks sets those bits of dst that are set in masks and whose bit in bits is set: the first set bit of masks takes the first
// bit of bits, and so on. It panics if dst has fewer words than masks, or bits has less than two words after that of its last bit.
func SpreadMarks(dst, masks, bits []uint64) {
	dst = dst[:len(masks)]
	if len(masks) == 0 {
		return
	}
	if countOnes(masks)/64+2 > len(bits) {
		panic("simd: fewer bits than there are places for")
	}
	current.spread(dst, masks, bits)
}

// countOnes is CountOnes of any number of words.
func countOnes(words []uint64) (n int) {
	for len(words) > OnesWords {
		n += CountOnes(words[:OnesWords])
		words = words[OnesWords:]
	}
	return n + CountOnes(words)
}
