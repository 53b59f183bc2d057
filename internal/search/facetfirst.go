package search

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment/rowlist"
)

// If values are listed in their order and many documents are candidates, the page is near the beginning of the list. Then values are
// counted one by one, from the rows of each, without going through the documents.

// firstCounts are the counts of the first strings of a column, computed on demand, one after the other.
type firstCounts struct {
	in     *facetRows
	among  *roaring.Bitmap // the candidates, once they are needed
	bits   *rowlist.Bits   // the same, until release
	counts []uint32        // by ordinal; those before kept are shared
	kept   int             // how many of them are kept
	key    []byte          // their cache key; nil: not cached
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

// Costs in tenths of a nanosecond. (Variables, so that tests can change them.)
var (
	timeOfRow    = 100 // counting the values of a candidate
	timeOfSingle = 20  // the same if no row of the column has several
	timeOfEntry  = 25  // looking up a row with a value among the candidates
	timeOfWord   = 10  // a word of the candidates' bit set, 64 rows
)

// countsFirst reports whether counting the first values of a segment is faster than counting all values of its candidates.
func countsFirst(in *facetRows, limit int) bool {
	limit = min(limit, in.column.Strings())
	n, rows, ords := in.count(), in.Rows(), min(in.column.Strings(), limit+limit/4)
	if n = min(n, rows-n); in.column.SingleStrings() {
		n *= timeOfSingle
	} else {
		n *= timeOfRow
	}
	return timeOfWord*rows/64 < n && timeOfWord*rows/64+timeOfEntry*in.column.MarkedStringEffort(0, ords) < n
}
