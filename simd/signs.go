package simd

import "math/bits"

// SignPlanes is how many bits a component of a query has that is compared with signs: from −7 to 7, as two's complement.
const SignPlanes = 4

// AppendSignPlanes appends the query's code, of a multiple of 64 components, as SignsAbove takes it: of each 64 components a word of
// their lowest bits, and so on up, those of two times 64 next to each other. The second one of a pair that is not whole is 0.
func AppendSignPlanes(dst []uint64, q []int8) []uint64 {
	for len(q) >= 64 {
		var words [2 * SignPlanes]uint64
		for second := range min(2, len(q)/64) {
			for i, x := range q[:64] {
				fine := uint64(int(x)*7+127*7+63)/127 - 7 // x · 7 ⁄ 127, rounded
				for p := range SignPlanes {
					words[2*p+second] |= fine >> p & 1 << i
				}
			}
			q = q[64:]
		}
		dst = append(dst, words[:]...)
	}
	return dst
}

// SignsAbove scores the rows of signs that ids names, row i being rows[i*words:(i+1)*words], by the sum of the query's components where
// a sign is set, negated. It sets kept and scores to the ids and scores of those above least, in order, and returns how many there are;
// what stands behind them is undefined. It panics when kept or scores is shorter than ids, planes are of other rows, or an id lies
// outside rows.
func SignsAbove(kept []uint32, scores []int32, planes, rows []uint64, ids []uint32, words int, least int32) int {
	if words <= 0 || len(planes) != (words+1)/2*2*SignPlanes {
		panic("simd: planes of other rows")
	}
	checkIDs(ids, len(rows)/words)
	return current.signsAbove(kept[:len(ids)], scores[:len(ids)], planes, rows, ids, words, least)
}

// HasSignsKernel reports whether SignsAbove has a kernel for the running tier.
func HasSignsKernel() bool { return tier == AVX512 }

func signsAbovePortable(kept []uint32, scores []int32, planes, rows []uint64, ids []uint32, words int, least int32) int {
	n := 0
	for _, id := range ids {
		sum := 0
		for w, x := range rows[int(id)*words:][:words] {
			q := planes[w/2*2*SignPlanes+w%2:][:2*SignPlanes-1]
			sum += bits.OnesCount64(x&q[6])<<3 - bits.OnesCount64(x&q[4])<<2 - bits.OnesCount64(x&q[2])<<1 - bits.OnesCount64(x&q[0])
		}
		kept[n], scores[n] = id, int32(sum)
		if int32(sum) > least {
			n++
		}
	}
	return n
}
