package search

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// Where values are listed in their order and many documents are candidates, a page of values is at the beginning of the list: these are
// counted value by value, from the rows that have each, and the documents are not gone through.

// firstCounts are the counts of the first strings of a column, made as they are asked for, one after the other.
type firstCounts struct {
	in     *facetRows
	among  *roaring.Bitmap // the candidates, once they are needed
	bits   *rowlist.Bits   // the same, until release
	counts []uint32        // by ordinal; shared up to kept
	kept   int             // how many of them are kept
	key    []byte          // under which they are; nil: they are not to be
}

// of returns the count of an ordinal.
func (f *firstCounts) of(ord int) int {
	if ord < len(f.counts) {
		return int(f.counts[ord])
	}
	if f.among == nil {
		f.among = f.in.rows()
		f.bits = rowlist.TakeBits(int(f.among.DenseSize()))
		f.among.WriteDenseTo(f.bits.Words)
		f.counts = append(make([]uint32, 0, max(2*len(f.counts), 128)), f.counts...)
	}
	for len(f.counts) <= ord {
		f.counts = append(f.counts, uint32(f.in.column.CountMarkedStringRows(len(f.counts), f.among, f.bits.Words)))
	}
	return int(f.counts[ord])
}

// release ends the use of the counts. A nil receiver has none.
func (f *firstCounts) release() {
	if f != nil && f.bits != nil {
		f.bits.Release()
		f.among, f.bits = nil, nil
	}
}

// What is weighed against each other, in tenths of a nanosecond. (Variables, so that tests can change them.)
var (
	timeOfRow    = 100 // a candidate, whose values are counted
	timeOfSingle = 20  // the same in a column where no row has several
	timeOfEntry  = 25  // a row with a value, looked up among the candidates
	timeOfWord   = 10  // 64 rows of which it is marked which are candidates
)

// countsFirst reports whether the first values of a segment are sooner counted than all values of its candidates.
func countsFirst(in *facetRows, limit int) bool {
	n, rows, ords := in.count(), in.Rows(), min(in.column.Strings(), limit+limit/4)
	if n = min(n, rows-n); in.column.SingleStrings() {
		n *= timeOfSingle
	} else {
		n *= timeOfRow
	}
	return timeOfWord*rows/64 < n && timeOfWord*rows/64+timeOfEntry*in.column.MarkedStringEffort(0, ords) < n
}
