package simd

import (
	"math"
	"math/bits"
)

// SignPlanes is how many bits a component of a query has that is compared with signs: from −7 to 7, as two's complement.
const SignPlanes = 4

// AppendSignPlanes appends the query's code, of a multiple of 64 components, in the form for SignsAbove: for each 64 components a
// word of their lowest bits, then of the next bits, and so on. The words of two adjacent groups of 64 alternate. If the last pair is
// incomplete, its second word is 0.
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

// SignsAbove scores the rows of signs whose numbers are in ids, where row i is rows[i*words:(i+1)*words], by the sum of the query's
// components with a set sign, negated. It sets kept and scores to the ids and scores of those above least, in order, and returns
// their number. The content after them is undefined. It panics if kept or scores is shorter than ids, if planes are of other rows, or
// if an id is outside rows.
func SignsAbove(kept []uint32, scores []int32, planes, rows []uint64, ids []uint32, words int, least int32) int {
	if words <= 0 || len(planes) != (words+1)/2*2*SignPlanes {
		panic("simd: planes of other rows")
	}
	checkIDs(ids, len(rows)/words)
	return current.signsAbove(kept[:len(ids)], scores[:len(ids)], planes, rows, ids, words, least)
}

// MarkedWords is the maximum number of words of marks for SignsMarked.
const MarkedWords = 128

// MarkedRoom is the memory that SignsMarked works in. It may write 15 more than it returns.
type MarkedRoom struct {
	Kept   [64*MarkedWords + 15]uint32
	Scores [64*MarkedWords + 15]int32
	lines  [16*MarkedWords + 32]uint32
}

// MarkedPlanes is how many words AppendCoarsePlanes appends.
const MarkedPlanes = 4

// AppendCoarsePlanes appends the query's code, of up to 128 components, as SignsMarked takes it. A component becomes −3, −1, 1 or 3, so
// that the square of the error is least for normal ones: as 2·h + g, where h and g are 1 or −1. The words are set where h, and then where
// g is −1. Components that are missing become 3: rows have padding there, which is the same in all of them.
func AppendCoarsePlanes(dst []uint64, q []int8) []uint64 {
	squares := 0
	for _, x := range q {
		squares += int(x) * int(x)
	}
	border := math.Sqrt(float64(squares) / float64(len(q))) // in units of the deviation it is 0.996
	var words [MarkedPlanes]uint64
	for i, x := range q {
		if x < 0 {
			words[i/64] |= 1 << (i % 64)
		}
		if (float64(max(x, -x)) < border) == (x >= 0) {
			words[2+i/64] |= 1 << (i % 64)
		}
	}
	return append(dst, words[:]...)
}

// SignsMarked scores rows of signs, of two words each, whose bits are set in marks: row 64·i+j is bit j of marks[i]. A score is the
// sum of the query's components, rounded to −3, −1, 1 or 3, each times −1 if the sign is set, less 3·128, and halved. It writes the
// ids and scores above least to the start of room. It panics if planes are not those of AppendCoarsePlanes, if marks is longer than
// MarkedWords, or if rows lacks a row for some bit.
func SignsMarked(room *MarkedRoom, planes, rows, marks []uint64, least int32) int {
	if len(planes) != MarkedPlanes || len(marks) > MarkedWords || len(rows) < 2*64*len(marks) {
		panic("simd: planes or marks of other rows")
	}
	return current.signsMarked(room, planes, rows, marks, max(least, -math.MaxInt32))
}

func signsMarkedPortable(room *MarkedRoom, planes, rows, marks []uint64, least int32) int {
	n := 0
	p := (*[MarkedPlanes]uint64)(planes)
	for i, word := range marks {
		for ; word != 0; word &= word - 1 {
			id := 64*i + bits.TrailingZeros64(word)
			row := (*[2]uint64)(rows[2*id:])
			differ := 2*(bits.OnesCount64(row[0]^p[0])+bits.OnesCount64(row[1]^p[1])) + bits.OnesCount64(row[0]^p[2]) + bits.OnesCount64(row[1]^p[3])
			room.Kept[n], room.Scores[n] = uint32(id), -int32(differ)
			if -int32(differ) > least {
				n++
			}
		}
	}
	return n
}

// HasSignsKernel reports whether SignsAbove has a kernel for the running tier.
func HasSignsKernel() bool { return tier == AVX512 || tier == AVX2 }

// HasSignsLines reports whether SignsMarked has a kernel that scores whole cache lines, of several rows each.
func HasSignsLines() bool { return tier == AVX512 }

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
