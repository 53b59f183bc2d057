package ann

import (
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/simd"
)

// Signs are the signs of rows of codes minus their centre: one bit per component, set if it is below 0. They suffice to find the rows
// that are worth comparing with a query, in an eighth of the bytes (J. Gao, C. Long, "RaBitQ: Quantizing High-Dimensional Vectors
// with a Theoretical Error Bound for Approximate Nearest Neighbor Search", 2024; there of rotated vectors, and with an estimate of
// similarity).
type Signs struct {
	Words  []uint64 // rows one behind another, in memory that the caller owns
	Stride int      // words a row

	// Dimensions is the number of components of a row without padding. Only rows of two words need it.
	Dimensions int

	// Query is the code of the query that is asked, less the centre of the rows. Any scale does.
	Query []int8

	// Gathered are the signs of the rows that searches may find, and perhaps of some more. nil: they were not gathered.
	Gathered *GatheredSigns

	// Instead: a walk through the graph finds less, so that Graph.Search compares signs, or codes where it may not.
	Instead bool

	// Touch, if set, is called before some adjacent rows are read. It makes sure that they can be read.
	Touch func(words []uint64)

	// TouchRows is called instead of Touch, for rows that are not next to each other.
	TouchRows func(rows []uint32)
}

// partOfSigns is how many bytes of rows about are touched at once: the disk reads the next ones while they are compared.
const partOfSigns = 64 << 10

// Quick reports whether signs are compared in less time than codes, if at least one row in markedShare is allowed.
func (s Signs) Quick() bool { return s.Stride == 2 || simd.HasSignsKernel() }

// AppendSigns appends the signs of a row of codes minus the centre. Both have the same length, a multiple of 64.
func AppendSigns(dst []uint64, code, centre []int8) []uint64 {
	for ; len(code) >= 64; code, centre = code[64:], centre[64:] {
		word := uint64(0)
		for i, x := range code[:64] {
			word |= uint64(uint16(int16(x)-int16(centre[i]))>>15) << i
		}
		dst = append(dst, word)
	}
	return dst
}

// Scan appends the rows that are most similar to the query, judged by their signs, best first: at most keep rows for which counts
// returns true (nil: all). Scores order the rows of one query and have no other meaning.
func (s Signs) Scan(dst []Neighbour, keep int, counts func(row uint32) bool) []Neighbour {
	if keep <= 0 || s.Stride <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer w.end()
	rows, row, touched := uint32(len(s.Words)/s.Stride), uint32(0), uint32(0)
	part := uint32(max(1, partOfSigns/8/s.Stride))
	w.signs(s, keep, func(ids []uint32) (n int) {
		for n < len(ids) && row < rows {
			if row == touched {
				touched = min(rows, row+part)
				if s.Touch != nil {
					s.Touch(s.Words[int(row)*s.Stride : int(touched)*s.Stride])
				}
			}
			ids[n] = row
			if counts == nil || counts(row) {
				n++
			}
			row++
		}
		return n
	})
	slices.Sort(w.ahead)
	return appendBest(dst, w.ahead)
}

const (
	// lookMore is the factor by which a further look reads more rows, if the first one read too few.
	lookMore = 4

	// lookShare: if Among would examine more than one allowed row in this many, it compares the codes of all instead.
	lookShare = 8
)

// Among appends the allowed rows that are most similar to the query's code, best first, and at most as many as settle r. It compares
// the signs of all allowed rows, and the codes of the look best of these. c and s must have the same rows. Among may miss some rows.
// How well signs predict similarity depends on the data, and on the distance of the query from the rows that a filter allows. So
// Among examines more rows as long as the last ones that it examined are among the best.
func (s Signs) Among(dst []Neighbour, c Codes, q []int8, look int, r Reach, allowed *roaring.Bitmap) []Neighbour {
	keep := r.settled()
	if look <= 0 || keep <= 0 || s.Stride <= 0 {
		return dst
	}
	w := walkers.Get().(*walker)
	defer w.end()
	count := allowed.GetCardinality()
	gathered := s.gathered(count)
	marks := !gathered && s.marks(allowed)
	if marks {
		w.mark(allowed, len(s.Words)/2)
	}
	if s.Stride == 2 && (gathered || marks) {
		look += look / 2 // components of the query are coarse
	}
	for {
		most := look
		if r.Wanted > 0 {
			most *= 2
		}
		switch {
		case gathered:
			w.gathered(s, most, allowed, count)
		case marks:
			w.marked(s, most, int(count))
		default:
			it := allowed.ManyIterator()
			w.signs(s, most, func(ids []uint32) int {
				n := it.NextMany(ids)
				if s.TouchRows != nil {
					s.TouchRows(ids[:n])
				}
				return n
			})
		}
		found, enough := w.judged(c, q, look, r.Wanted)
		if enough {
			w.ahead = best(found, keep)
			slices.Sort(w.ahead)
			return appendBest(dst, w.ahead)
		}
		if look *= lookMore; uint64(look) > count/lookShare {
			return Scan(dst, c, q, keep, allowed)
		}
	}
}

// judged compares the codes of the look best of w.ahead with those of the query, and returns them. If a row of their worse half is
// better than the best 2·wanted of the other half, wanted rows may be missing. Then it compares all of w.ahead, and returns these. It
// does the same if wanted is 0. It reports whether they are enough: at most one in ten of the best is among the last ones.
func (w *walker) judged(c Codes, q []int8, look, wanted int) (found []candidate, enough bool) {
	if wanted <= 0 {
		c.judge(w.ahead, q)
		return w.ahead, true
	}
	take := best
	if w.ordered {
		take = func(all []candidate, n int) []candidate { return all[:min(n, len(all))] }
	}
	first := take(w.ahead, look)
	half := take(first, look/2)
	c.judge(half, q)
	c.judge(first[len(half):], q)
	top := 2 * wanted
	if top > len(half) {
		top = wanted
	} else if w.among(half, first[len(half):], top) == 0 {
		return first, true
	}
	rest := w.ahead[len(first):]
	c.judge(rest, q)
	return w.ahead, w.among(first, rest, top) <= top/10
}

// among returns how many of some more candidates are better than the best n of others.
func (w *walker) among(others, more []candidate, n int) (better int) {
	w.kept = append(w.kept[:0], others...)
	worst := candidate(0)
	if top := best(w.kept, n); len(top) > 0 {
		worst = slices.Min(top)
	}
	for _, x := range more {
		if x > worst {
			better++
		}
	}
	return better
}

// judge replaces the scores of candidates, whose rows are negated, by those of their codes.
func (c Codes) judge(all []candidate, q []int8) {
	var ids [256]uint32
	var scores [256]int32
	for some := range slices.Chunk(all, len(ids)) {
		for i, x := range some {
			ids[i] = lowerFirst(x.row())
		}
		c.gather(scores[:len(some)], q, ids[:len(some)])
		for i, row := range ids[:len(some)] {
			some[i] = newCandidate(scores[i], lowerFirst(row))
		}
	}
}

// appendBest appends candidates, best last, whose rows are negated.
func appendBest(dst []Neighbour, all []candidate) []Neighbour {
	for _, x := range slices.Backward(all) {
		dst = append(dst, Neighbour{lowerFirst(x.row()), x.score()})
	}
	return dst
}

// signs leaves in w.ahead, unordered, the keep rows that are most similar to the query by their signs. next sets the first of ids to
// the next rows, ascending, and returns their number, or 0 at the end. The candidates have their rows negated.
func (w *walker) signs(s Signs, keep int, next func(ids []uint32) int) {
	w.planes = simd.AppendSignPlanes(w.planes[:0], s.Query)
	var ids, above [256]uint32
	var scores [256]int32
	least, full := int32(math.MinInt32), 2*keep+len(ids)
	w.ahead, w.ordered = w.ahead[:0], false
	for n := next(ids[:]); n > 0; n = next(ids[:]) {
		n = simd.SignsAbove(above[:], scores[:], w.planes, s.Words, ids[:n], s.Stride, least)
		for i, row := range above[:n] {
			w.ahead = append(w.ahead, newCandidate(scores[i], lowerFirst(row)))
		}
		if len(w.ahead) >= full {
			w.ahead = best(w.ahead, keep)
			least = slices.Min(w.ahead).score()
		}
	}
	w.ahead = best(w.ahead, keep)
}

// lowerFirst negates a row, so that among candidates with equal scores the lower row is better. Applied again, it restores the row.
func lowerFirst(row uint32) uint32 { return ^row & maxRows }

// best returns the n highest of some candidates, in no order (C. A. R. Hoare, "Algorithm 65: Find", 1961).
func best(all []candidate, n int) []candidate {
	if len(all) <= n {
		return all
	}
	for lo, hi := 0, len(all)-1; lo < hi; {
		a, b, c := all[lo], all[(lo+hi)/2], all[hi]
		pivot := max(min(a, b), min(max(a, b), c))
		i, j := lo, hi
		for i <= j {
			for all[i] > pivot {
				i++
			}
			for all[j] < pivot {
				j--
			}
			if i <= j {
				all[i], all[j] = all[j], all[i]
				i, j = i+1, j-1
			}
		}
		switch {
		case n-1 <= j:
			hi = j
		case n-1 >= i:
			lo = i
		default:
			return all[:n]
		}
	}
	return all[:n]
}
