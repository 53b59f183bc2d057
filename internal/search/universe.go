package search

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/shard"
	"svc/segment"
)

// universe returns, by segment, the live rows that the filter allows. The bitmaps may be shared: they are not to be modified.
func universe(ctx context.Context, v *index.View, f *filter.Expr, code apierr.Code, contains bool, foreign *Foreign, shards *shard.Ring) ([]*roaring.Bitmap, error) {
	if f == nil {
		return slices.Clone(v.LiveRows()), nil
	}
	bound, err := bind(ctx, v, f, code, contains, foreign, shards)
	if err != nil {
		return nil, err
	}
	rows := bound.all()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return rows, nil
}

// bind checks a filter against the view.
func bind(ctx context.Context, v *index.View, f *filter.Expr, code apierr.Code, contains bool, foreign *Foreign, shards *shard.Ring) (*boundFilter, error) {
	env := filter.Env{Fields: v.Fields, Code: code, Contains: contains}
	env.Embedders = v.FilterEmbedders()
	b := &boundFilter{work: ctx, view: v, rows: make([]*roaring.Bitmap, len(v.Segments))}
	env.Stop = func() bool { return b.work.Err() != nil }
	foreign.open(&env, v)
	if shards == nil {
		shards = v.Shards()
	}
	env.Shard = func(name string) func(segment.Live) *roaring.Bitmap { return v.Shard(shards, name) }
	var err error
	if b.Bound, err = f.Bind(env); err != nil {
		return nil, err
	}
	return b, nil
}

// boundFilter is a filter on a view; it is a rank.Filter. Once the request is canceled, it says what is meaningless.
type boundFilter struct {
	*filter.Bound
	work context.Context // of the goroutine that reads it; set again where another one goes on
	view *index.View
	rows []*roaring.Bitmap // by segment, once they were asked for
}

func (f *boundFilter) Rows(seg int) *roaring.Bitmap {
	if f.rows[seg] == nil {
		f.rows[seg] = f.Kept(f.view.Segments[seg], f.view.Cache.OfFile(seg))
	}
	return f.rows[seg]
}

func (f *boundFilter) Among(seg int, rows *roaring.Bitmap, keep bool) *roaring.Bitmap {
	return f.Bound.Among(f.view.Segments[seg], f.view.Cache.OfFile(seg), rows, keep)
}

// all returns the rows by segment.
func (f *boundFilter) all() []*roaring.Bitmap {
	for seg := range f.rows {
		f.Rows(seg)
	}
	return slices.Clone(f.rows)
}

func cardinality(rows []*roaring.Bitmap) int {
	var n uint64
	for _, r := range rows {
		n += r.GetCardinality()
	}
	return int(n)
}
