package search

import (
	"context"
	"encoding/binary"

	"svc/internal/index"
	"svc/internal/rank"
	"svc/segment"
)

// What is counted of a facet in a large segment is kept with it under the key of the candidates. Searches that have a key in common differ
// by deleted rows alone, and rows are only ever added to those: where they have equally many candidates, they have the same.

// keyOfCounts is followed by a field, whether its strings are meant, and the key of the candidates.
const keyOfCounts = 'O'

// Counts are kept with segments of so many rows; at once, where they take few bytes, or no more than there are rows to go through. (A
// variable, so that tests can lower it.)
var keptFrom = 1 << 10

const fewBytes = 1 << 10

// keptCounts are the counts of a column for so many candidates.
type keptCounts struct {
	candidates int
	counts     ordinalCounts
}

// candidateCounts counts candidates, and keeps the counts of those that have keys.
type candidateCounts struct {
	ctx  context.Context
	view *index.View
	key  rank.KeyOf // nil: nothing is kept
	buf  []byte
}

// count counts the candidates of a segment as countOrdinals does.
func (k *candidateCounts) count(field segment.FieldID, in *facetRows, strings bool) ordinalCounts {
	n := in.count()
	if n == in.Rows() {
		return ordinalCounts{strings: strings, column: in.column, inverse: true}
	}
	shelf := k.view.Cache.OfFile(in.segment)
	if k.key == nil || shelf == nil || in.Rows() < keptFrom {
		return countOrdinals(in.column, strings, in.rows(), in.Rows())
	}
	kind := byte(0)
	if strings {
		kind = 1
	}
	k.buf = append(binary.LittleEndian.AppendUint16(append(k.buf[:0], keyOfCounts), uint16(field)), kind)
	k.buf = k.key(k.buf, in.segment)
	if kept, ok := shelf.Get(k.buf).(*keptCounts); ok && kept.candidates == n {
		counts := kept.counts
		counts.column = in.column
		return counts
	}
	counts := countOrdinals(in.column, strings, in.rows(), in.Rows())
	counts.list()
	if bytes := counts.bytes(); k.ctx.Err() == nil && (bytes <= max(min(n, in.Rows()-n), fewBytes) || shelf.Again(k.buf)) {
		kept := &keptCounts{n, counts}
		kept.counts.column = nil
		shelf.Put(k.buf, kept, bytes)
	}
	return counts
}

// bytes estimates what counts take, kept.
func (k *ordinalCounts) bytes() int { return 4*(cap(k.counts)+cap(k.have)+cap(k.times)) + 128 }

// list notes only those ordinals that some have, where they are few.
func (k *ordinalCounts) list() {
	have := 0
	for _, n := range k.counts {
		if n > 0 {
			have++
		}
	}
	if k.counts == nil || have > len(k.counts)/4 {
		return
	}
	k.have, k.times = make([]uint32, 0, have), make([]uint32, 0, have)
	for ord, n := range k.counts {
		if n > 0 {
			k.have, k.times = append(k.have, uint32(ord)), append(k.times, n)
		}
	}
	k.counts = nil
}
