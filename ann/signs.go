package ann

import (
	"math/bits"
	"slices"
)

// Signs are the signs of rows of codes: a bit a component, set where it is below 0. They say enough of a row to find those that are
// worth comparing with a query, in an eighth of the bytes (J. Gao, C. Long, "RaBitQ: Quantizing High-Dimensional Vectors with a
// Theoretical Error Bound for Approximate Nearest Neighbor Search", 2024; there of rotated vectors, and with an estimate of similarity).
type Signs struct {
	Words  []uint64 // rows one behind another, in memory that the caller owns
	Stride int      // words a row

	// Touch, if it is set, is called ahead of reading some rows, of which all are read in order: it makes sure that they can be read.
	Touch func(words []uint64)
}

// partOfSigns is how many bytes of rows about are touched at once: the disk reads the next ones while they are compared.
const partOfSigns = 64 << 10

// AppendSigns appends the signs of a row of codes, the length of which is a multiple of 64.
func AppendSigns(dst []uint64, code []int8) []uint64 {
	for ; len(code) >= 64; code = code[64:] {
		word := uint64(0)
		for i, x := range code[:64] {
			word |= uint64(uint8(x)>>7) << i
		}
		dst = append(dst, word)
	}
	return dst
}

// planes is how many bits a component of a query has that is compared with signs: −8 to 7 as two's complement, of which −8 does not occur.
const planes = 4

// appendPlanes appends the query's code in bits: for each 64 components a word of their lowest bits, and so on up.
func appendPlanes(dst []uint64, q []int8) []uint64 {
	for ; len(q) >= 64; q = q[64:] {
		var words [planes]uint64
		for i, x := range q[:64] {
			fine := uint64(int(x)*7+127*7+63)/127 - 7 // x · 7 ⁄ 127, rounded
			for p := range words {
				words[p] |= fine >> p & 1 << i
			}
		}
		dst = append(dst, words[:]...)
	}
	return dst
}

// Scan appends the rows that are most similar to the query's code as far as their signs tell, best first, at most keep of those that
// counts takes (nil: all). Scores order the rows of one query, and mean nothing else.
func (s Signs) Scan(dst []Neighbour, q []int8, keep int, counts func(row uint32) bool) []Neighbour {
	if keep <= 0 || s.Stride <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer w.end()
	w.planes = appendPlanes(w.planes[:0], q)
	query := w.planes
	w.pool = w.pool[:0]
	least := int32(-1 << 31)
	row := uint32(0)
	for part := range slices.Chunk(s.Words[:len(s.Words)/s.Stride*s.Stride], max(1, partOfSigns/8/s.Stride)*s.Stride) {
		if s.Touch != nil {
			s.Touch(part)
		}
		for ; len(part) > 0; row, part = row+1, part[s.Stride:] {
			score := negated(part[:s.Stride], query)
			if score <= least || counts != nil && !counts(row) {
				continue
			}
			if w.insert(score, row, keep); len(w.pool) == keep {
				least = w.pool[keep-1].score()
			}
		}
	}
	return appendPool(dst, w.pool)
}

// negated returns the sum of the query's components, negated, where a row is below 0.
func negated(row, query []uint64) int32 {
	sum := 0
	for _, x := range row {
		q := query[:planes]
		query = query[planes:]
		sum += bits.OnesCount64(x&q[3])<<3 - bits.OnesCount64(x&q[2])<<2 - bits.OnesCount64(x&q[1])<<1 - bits.OnesCount64(x&q[0])
	}
	return int32(sum)
}
