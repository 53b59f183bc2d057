package rank

import "github.com/RoaringBitmap/roaring/v2"

// Reading the costs of pairs of neighbours is expensive. If the next rule that looks at words sums up displacements, these are
// cheaper to compute. So once enough documents fill the page, the pruner first computes the displacements of the others, and does not
// read those that cost more than the documents of the page. If the rules after it look only at words as written, accents and ids, the
// first documents with the least displacement fill the page.

// begin starts with n documents that are equal in the order of the next rule. If they are many, their positions are checked.
func (v *nearPruner) begin(n int) {
	v.byCost = v.byCost[:0]
	v.missing = v.pruner.wanted - v.pruner.count(tooMuch)
	v.checks = v.place >= 0 && n > unorderedRows && v.missing <= placedPage
	v.idle = tooMuch
}

// placedPage is the number of documents on the page up to which the cost of the last one is selective enough.
const placedPage = 50

// read reads documents of a cohort. It returns false when time is over.
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
