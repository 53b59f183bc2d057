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
	env := filter.Env{Fields: v.Fields, Code: code, Contains: contains}
	env.Embedders = v.FilterEmbedders()
	env.Stop = func() bool { return ctx.Err() != nil }
	foreign.open(&env, v)
	if shards == nil {
		shards = v.Shards()
	}
	env.Shard = func(name string) func(segment.Live) *roaring.Bitmap { return v.Shard(shards, name) }
	bound, err := f.Bind(env)
	if err != nil {
		return nil, err
	}
	rows := make([]*roaring.Bitmap, len(v.Segments))
	for i, s := range v.Segments {
		rows[i] = bound.Kept(s, v.Cache.OfFile(i))
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return rows, nil
}

func cardinality(rows []*roaring.Bitmap) int {
	var n uint64
	for _, r := range rows {
		n += r.GetCardinality()
	}
	return int(n)
}
