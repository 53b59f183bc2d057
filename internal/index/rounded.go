package index

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/segment"
)

// Before segments of format 4, svc rounded the numbers of columns to float64, which merges integers beyond 2⁵³. Merges
// read such columns again from the documents. The reanalyzer handles segments that no merge takes: those versions did not
// record the analysis, so their words are stale, and it rewrites columns from the documents too.

// roundedColumns returns the fields, ascending, whose column in the segment was rounded so that integers were lost. It omits fields
// without a column under the present settings: the next merge drops theirs.
func roundedColumns(l segment.Live, fields *settings.Fields) []segment.FieldID {
	return slices.DeleteFunc(l.RoundedColumns(), func(id segment.FieldID) bool { return !fields.Info(id).Column })
}

// exactColumns reads the rounded columns of the segments again, for the merged segment. It returns nil if there are none. It calls
// throttle now and then.
func (ix *Index) exactColumns(ctx context.Context, v *View, lives []segment.Live, throttle func(context.Context, int) error) (*segment.ColumnSet, error) {
	var wanted []segment.FieldID
	for _, l := range lives {
		wanted = append(wanted, roundedColumns(l, v.Fields)...)
	}
	if len(wanted) == 0 {
		return nil, nil
	}
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	type input struct {
		segment.Live
		left roaring.IntPeekable // rows
		with *roaring.Bitmap     // rows with one of the fields
	}
	var inputs []*input
	rows := 0
	for _, l := range lives {
		in := &input{l, l.LiveRows().Iterator(), roaring.New()}
		for _, id := range wanted {
			in.with.Or(l.Present(id))
		}
		inputs = append(inputs, in)
		rows += liveCount(l)
	}
	k := &columnCollector{ctx: ctx, fields: v.Fields}
	k.begin(rows, wanted)
	read := docReader{b: &batch{ix: ix}}
	defer func() { _ = read.close() }() // leftovers are removed at the next open
	for row := range rows {
		if row%chunkDocuments == 0 {
			if err := throttle(ctx, 0); err != nil {
				return nil, err
			}
		}
		var next *input
		for _, in := range inputs {
			if in.left.HasNext() && (next == nil || in.DocID(segment.Row(in.left.PeekNext())) < next.DocID(segment.Row(next.left.PeekNext()))) {
				next = in
			}
		}
		k.row = segment.Row(row)
		if old := next.left.Next(); next.with.Contains(old) {
			if err := k.read(&read, next.Live, segment.Row(old)); err != nil {
				return nil, err
			}
		}
	}
	return k.columns, nil
}
