package segment

import (
	"sync/atomic"

	"svc/segment/fst"
)

// The dictionary, its filter and the DocIDs grow with the documents: 221 MB of ten million short texts, which take a disk seconds. A file
// of a start is opened without reading them. Until ReadAhead has verified all of them, in the background, each read of the dictionary or
// of a DocID verifies the blocks that it needs. The filter is not asked meanwhile: its bits are spread over all its pages.

// leastLate is the number of bytes from which these sections together are verified late. (A variable, so that tests can change it.)
var leastLate int64 = 1 << 20

// openLate reports whether readers verify the late sections, and prepares for it. They do not if a block at either end of a late
// section is damaged: such blocks have bytes of other sections, too, and only the checksum of the section tells which one is damaged.
func (r *Reader) openLate() bool {
	total := int64(0)
	for _, s := range r.lateSections() {
		total += s.length
	}
	if r.blocks.sums == nil || total < leastLate {
		return false
	}
	var ends []int
	for _, s := range r.lateSections() {
		if s.length > 0 {
			ends = append(ends, int(s.offset)>>blockBits, int(s.offset+s.length-1)>>blockBits)
		}
	}
	for _, i := range ends {
		from, to := r.blocks.block(i)
		r.ask(int64(from), int64(to-from))
	}
	for _, i := range ends {
		if r.blocks.compare(i, anyByte) != nil {
			return false
		}
		r.blocks.markRight(i)
	}
	r.rightPieces = make([]atomic.Uint64, len(r.section(tagTerms))>>pieceBits>>6+1)
	return true
}

// lateSections returns the sections of late kinds, those that searches need most first.
func (r *Reader) lateSections() (late []section) {
	for _, t := range []tag{tagTerms, tagDocIDs, tagTermFilter} {
		for _, s := range r.sections {
			if s.tag == t {
				late = append(late, s)
			}
		}
	}
	return late
}

// dictionary returns the words for a reader that does not verify anything.
func (r *Reader) dictionary() *fst.FST {
	if r.late.Load() {
		return &r.checkedTerms
	}
	return &r.terms
}

// touchLate verifies a part of a late section.
func (r *Reader) touchLate(p []byte) {
	r.blocks.fetchAll(p)
	r.blocks.touch(p)
}

// checkState verifies the pieces of the dictionary that have the state at an address. States on the way to a word are near each other, so
// that a piece serves many.
func (r *Reader) checkState(at uint32) {
	for piece := max(int(at)-fst.MaxState, 0) >> pieceBits; piece <= int(at)>>pieceBits; piece++ {
		word, bit := &r.rightPieces[piece>>6], uint64(1)<<(piece&63)
		if word.Load()&bit != 0 {
			continue
		}
		terms := r.section(tagTerms)
		r.touchLate(terms[piece<<pieceBits : min((piece+1)<<pieceBits, len(terms))])
		word.Or(bit)
	}
}

// checkLate verifies all late sections, a step at a time, and reports whether they are right. It reports damage. It ends early if the
// reading ahead is to end.
func (r *Reader) checkLate() bool {
	var before []byte // the step that was asked for last, and is to be checked
	right := r.steps(r.lateSections(), func(at, n int64) bool {
		step := r.data[at : at+n]
		r.blocks.fetchAll(step)
		ok := r.blocks.verify(before) == nil
		before = step
		return ok
	})
	return right && r.blocks.verify(before) == nil
}
