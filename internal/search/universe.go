package search

import (
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/shard"
	"svc/internal/turns"
	"svc/segment"
)

// filtering is what a filter may use besides the view, and the code of its errors.
type filtering struct {
	code     apierr.Code
	contains bool        // CONTAINS and STARTS WITH are allowed
	foreign  *Foreign    // nil: conditions on documents of other indexes are refused
	shards   *shard.Ring // nil: those of the view
}

// filtering is what filters of a search may use.
func (r *Request) filtering() filtering {
	return filtering{"invalid_search_filter", r.Contains, r.Foreign, r.Shards}
}

// filtering is what filters of a request for documents may use.
func (r *FetchRequest) filtering() filtering {
	return filtering{"invalid_document_filter", r.Contains, r.Foreign, r.Shards}
}

// universe returns, by segment, the live rows that the filter allows. The bitmaps may be shared and must not be modified.
func universe(ctx context.Context, v *index.View, f *filter.Expr, m filtering) ([]*roaring.Bitmap, error) {
	if f == nil {
		return slices.Clone(v.LiveRows()), nil
	}
	bound, err := bind(ctx, v, f, m)
	if err != nil {
		return nil, err
	}
	t := turns.Of(ctx)
	rows := bound.all(t)
	if err := t.Yield(); err != nil {
		return nil, err
	}
	return rows, nil
}

// bind validates a filter against the view. ctx is used only during the call.
func bind(ctx context.Context, v *index.View, f *filter.Expr, m filtering) (*boundFilter, error) {
	env := filter.Env{Fields: v.Fields, Code: m.code, Contains: m.contains}
	env.Embedders = v.FilterEmbedders()
	env.Stop = stopOf(turns.Of(ctx))
	m.foreign.open(&env, v)
	shards := m.shards
	if shards == nil {
		shards = v.Shards()
	}
	env.Shard = func(name string) func(segment.Live) *roaring.Bitmap { return v.Shard(shards, name) }
	bound, err := f.Bind(env)
	if err != nil {
		return nil, err
	}
	return &boundFilter{bound, v, make([]*roaring.Bitmap, len(v.Segments))}, nil
}

// stopOf has a filter end when a turn does.
func stopOf(t turns.Turn) filter.Stop { return func() bool { return t.Yield() != nil } }

// boundFilter is a filter on a view.
type boundFilter struct {
	*filter.Bound
	view *index.View
	rows []*roaring.Bitmap // by segment, once computed
}

// all returns the rows by segment. If the turn has an error, they have no meaning.
func (f *boundFilter) all(t turns.Turn) []*roaring.Bitmap {
	ranked := f.during(t)
	for seg := range f.rows {
		ranked.Rows(seg)
	}
	return slices.Clone(f.rows)
}

// during returns the filter for evaluation in a turn. Once the turn has an error, results of the filter have no meaning.
func (f *boundFilter) during(t turns.Turn) rank.Filter { return &turnFilter{f, stopOf(t)} }

// turnFilter is a filter that one goroutine evaluates; it is a rank.Filter.
type turnFilter struct {
	*boundFilter
	stop filter.Stop
}

func (f *turnFilter) Rows(seg int) *roaring.Bitmap {
	if f.rows[seg] == nil {
		f.rows[seg] = f.Bound.Kept(f.stop, f.view.Segments[seg], f.view.Cache.OfFile(seg))
	}
	return f.rows[seg]
}

func (f *turnFilter) Among(seg int, rows *roaring.Bitmap, keep bool) *roaring.Bitmap {
	return f.Bound.Among(f.stop, f.view.Segments[seg], f.view.Cache.OfFile(seg), rows, keep)
}

func cardinality(rows []*roaring.Bitmap) int {
	var n uint64
	for _, r := range rows {
		n += r.GetCardinality()
	}
	return int(n)
}
