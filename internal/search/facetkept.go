package search

import (
	"context"
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/resultcache"
	"svc/segment"
)

// Facet counts of a large segment are cached with it under the key of the candidates. Searches with the same key differ only by
// deleted rows. These mostly grow: then searches with equally many candidates have the same ones. With fewer, the documents deleted
// since are counted and subtracted. But expired documents are deleted rows, too, and appear again when the time to live grows or the
// clock is set back. So the deleted rows are compared as well.

// facetCounts are cached with a segment under a field, whether they are of its numbers, its strings or the first of its strings, and
// the key of the candidates.
var facetCounts = resultcache.NewKind[*keptCounts]("counts of the values of a facet")

// Counts are cached with segments of at least keptFrom rows, and states of aggregations with segments of at least keptFrom
// candidates. They are cached on first use if they are small, or no larger than the number of rows to read. (A variable, so that
// tests can lower it.)
var keptFrom = 1 << 10

const fewBytes = 1 << 10

// keptCounts are the counts of a column for the given number of candidates.
type keptCounts struct {
	candidates int
	deleted    *roaring.Bitmap // the rows that were deleted; nil: none
	counts     ordinalCounts
}

// candidateCounts counts candidates, and caches the counts of those with keys.
type candidateCounts struct {
	ctx   context.Context
	view  *index.View
	found *rank.Result
	buf   []byte
}

// count counts the candidates of a segment like countOrdinals. first is how many values are needed if these are the first; 0: any may
// be.
func (k *candidateCounts) count(field segment.FieldID, in *facetRows, strings bool, first int) ordinalCounts {
	n := in.count()
	if n == in.Rows() {
		return ordinalCounts{Ordinals: aggregate.Ordinals{Strings: strings, Column: in.column, Inverse: true}}
	}
	scope := k.view.Cache.OfFile(in.segment)
	if k.found.AppendKey == nil || scope == nil || in.Rows() < keptFrom {
		return k.made(in, strings, first)
	}
	kind := byte(0)
	switch {
	case strings && first > 0:
		kind = 2
	case strings:
		kind = 1
	}
	k.buf = append(binary.LittleEndian.AppendUint16(k.buf[:0], uint16(field)), kind)
	k.buf = k.found.AppendKey(k.buf, in.segment)
	if kept, ok := facetCounts.Get(scope, k.buf); ok {
		if now := kept.now(k, in, n); now != nil {
			if now != kept {
				facetCounts.Put(scope, k.buf, now, now.bytes())
			}
			counts := now.counts
			counts.Column = in.column
			if counts.first != nil {
				counts.first = &firstCounts{in: in, counts: counts.first.counts, kept: len(counts.first.counts), key: slices.Clone(k.buf)}
			}
			return counts
		}
	}
	counts := k.made(in, strings, first)
	if counts.first != nil {
		counts.first.key = slices.Clone(k.buf)
		return counts
	}
	counts.list()
	if bytes := counts.bytes(); k.ctx.Err() == nil && (bytes <= max(min(n, in.Rows()-n), fewBytes) || facetCounts.Admit(scope, k.buf)) {
		kept := &keptCounts{n, in.Deleted, counts}
		kept.counts.Column = nil
		facetCounts.Put(scope, k.buf, kept, kept.bytes())
	}
	return counts
}

// made counts.
func (k *candidateCounts) made(in *facetRows, strings bool, first int) ordinalCounts {
	if strings && first > 0 && countsFirst(in, first) {
		return ordinalCounts{Ordinals: aggregate.Ordinals{Strings: true, Column: in.column}, first: &firstCounts{in: in}}
	}
	return countOrdinals(in.column, strings, in.rows(), in.Rows())
}

// keepFirst keeps what a walk of the first values has counted.
func (k *candidateCounts) keepFirst(s *facetSource) {
	f := s.all.first
	if f == nil || f.key == nil || len(f.counts) == f.kept || k.ctx.Err() != nil {
		return
	}
	kept := &keptCounts{f.in.count(), f.in.Deleted, ordinalCounts{Ordinals: aggregate.Ordinals{Strings: true}, first: &firstCounts{counts: f.counts}}}
	facetCounts.Put(k.view.Cache.OfFile(f.in.segment), f.key, kept, kept.bytes())
}

// now returns the counts for the n candidates of the view; nil: unknown.
func (kept *keptCounts) now(k *candidateCounts, in *facetRows, n int) *keptCounts {
	since := in.Deleted
	switch {
	case kept.candidates == n && kept.deleted == in.Deleted:
		return kept
	case kept.candidates == n && nested(kept.deleted, in.Deleted): // cached anew, so that each view compares only once
		return &keptCounts{n, in.Deleted, kept.counts}
	case kept.candidates <= n || since == nil:
		return nil
	case kept.deleted != nil:
		since = roaring.AndNot(since, kept.deleted)
	}
	gone := k.found.Among(in.segment, since)
	if int(gone.GetCardinality()) != kept.candidates-n {
		return nil
	}
	now := &keptCounts{n, in.Deleted, kept.counts}
	now.counts.take(in.column, gone)
	return now
}

// nested reports whether one of two sets of deleted rows has all of the other one; nil: empty.
func nested(a, b *roaring.Bitmap) bool {
	return a == b || a == nil || b == nil || a.AndCardinality(b) == min(a.GetCardinality(), b.GetCardinality())
}

// bytes estimates the memory of cached counts, including deleted rows, because they outlive their view.
func (kept *keptCounts) bytes() int {
	n := kept.counts.bytes() + 64
	if kept.deleted != nil {
		n += resultcache.Size(kept.deleted)
	}
	return n
}

// take subtracts documents from the counts. Lists are shared, so it copies them.
func (k *ordinalCounts) take(column *segment.Column, gone *roaring.Bitmap) {
	var counts []uint32
	switch {
	case k.first != nil:
		k.first = &firstCounts{counts: slices.Clone(k.first.counts)}
		counts = k.first.counts
	case k.Counts != nil:
		k.Counts = slices.Clone(k.Counts)
		counts = k.Counts
	default:
		k.Have, k.Times = slices.Clone(k.Have), slices.Clone(k.Times)
	}
	less := ^uint32(0)
	if k.Inverse { // the counts are of non-candidates, of which there are more now
		less = 1
	}
	var ordinals []uint32
	for it := gone.Iterator(); it.HasNext(); {
		row := segment.Row(it.Next())
		if k.Strings {
			ordinals = column.RowStrings(ordinals[:0], row)
		} else {
			ordinals = column.RowNumbers(ordinals[:0], row)
		}
		for _, ord := range ordinals {
			if counts != nil {
				if int(ord) < len(counts) {
					counts[ord] += less
				}
				continue
			}
			i, ok := slices.BinarySearch(k.Have, ord)
			if !ok {
				k.Have, k.Times = slices.Insert(k.Have, i, ord), slices.Insert(k.Times, i, 0)
			}
			k.Times[i] += less
		}
	}
	if counts == nil && !k.Inverse {
		k.dropEmpty()
	}
}

// dropEmpty drops listed ordinals that no longer have documents. Otherwise the answer would show them with a count of 0.
func (k *ordinalCounts) dropEmpty() {
	some := 0
	for i, n := range k.Times {
		if n > 0 {
			k.Have[some], k.Times[some] = k.Have[i], n
			some++
		}
	}
	k.Have, k.Times = k.Have[:some], k.Times[:some]
}

// bytes estimates what counts take, kept.
func (k *ordinalCounts) bytes() int {
	n := 4*(cap(k.Counts)+cap(k.Have)+cap(k.Times)) + 128
	if k.first != nil {
		n += 4*cap(k.first.counts) + 128
	}
	return n
}

// list records only the ordinals with documents, if they are few.
func (k *ordinalCounts) list() {
	have := 0
	for _, n := range k.Counts {
		if n > 0 {
			have++
		}
	}
	if k.Counts == nil || have > len(k.Counts)/4 {
		return
	}
	k.Have, k.Times = make([]uint32, 0, have), make([]uint32, 0, have)
	for ord, n := range k.Counts {
		if n > 0 {
			k.Have, k.Times = append(k.Have, uint32(ord)), append(k.Times, n)
		}
	}
	k.Counts = nil
}
