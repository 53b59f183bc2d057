package rank

import "github.com/RoaringBitmap/roaring/v2"

// It is expensive to read what pairs of neighbours cost. If the next rule that looks at words adds up displacements, these are cheaper to
// compute. So once enough documents fill the page, the pruner computes the displacements of the others first: those that cost more than the
// documents of the page are not read. If only words as they are written, accents and the ids order documents behind, the first documents of
// the least displacement fill the page.

// begin begins with n documents that are equal under the order of the rule behind. If they are many, their positions are checked.
func (v *nearPruner) begin(n int) {
	v.byCost = v.byCost[:0]
	v.missing = v.pruner.wanted - v.pruner.count(tooMuch)
	v.checks = v.place >= 0 && n > unorderedRows && v.missing <= placedPage
	v.idle = tooMuch
}

// placedPage is up to how many documents of a page the cost of the last one tells enough of the others apart from them.
const placedPage = 50

// read reads on in some documents of a cohort. It returns false when time is over.
func (v *nearPruner) read(bound int, st *cohort, in *roaring.Bitmap) bool {
	all := v.s.rowsIn(in)
	if !v.checks {
		return v.readRows(bound, st, all)
	}
	var first exactlyFirst
	first.begin(v, st)
	for n := min(askRows, stopRows); v.enough() == tooMuch || v.enough() == 0 && first.goesOn(st); n = min(2*n, stopRows) {
		if n >= len(all) {
			return v.readRows(bound, st, all)
		}
		if !v.readRows(bound, st, all[:n]) {
			return false
		}
		all = all[n:]
	}
	if first.fill() {
		return first.readWhole(bound, st, in, all[0])
	}
	return v.readRows(bound, st, all)
}
