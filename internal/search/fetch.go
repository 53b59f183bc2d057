package search

import (
	"context"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/budget"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/selection"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// place is where a document stands.
type place struct {
	segment int
	row     segment.Row
	id      segment.DocID
	values  []rank.ScoreValue // of a sort, for another instance
}

// places yields the documents of a page, or the error that ends it.
type places = iter.Seq2[place, error]

func placesOf(list []place) places {
	return func(yield func(place, error) bool) {
		for _, p := range list {
			if !yield(p, nil) {
				return
			}
		}
	}
}

// placeBytes is the memory of a place in a list.
const placeBytes = 48

// listedPlaces returns all places of a page. They are charged to the account before they are allocated.
func listedPlaces(account *budget.Account, page places) ([]place, error) {
	var list []place
	for p, err := range page {
		if err != nil {
			return nil, err
		}
		if had := cap(list); len(list) == had {
			room := max(2*had, 16)
			if err := account.Hold(int64(room) * placeBytes); err != nil {
				return nil, err
			}
			list = append(make([]place, 0, room), list...)
			_ = account.Hold(-int64(had) * placeBytes) // giving back never fails
		}
		list = append(list, p)
	}
	return list, nil
}

// Fetch appends the body of a documents list ({results, offset, limit, total})
// to dst. Documents come in the order of their ids in the index, or as sorted.
func Fetch(ctx context.Context, dst []byte, v *index.View, r *FetchRequest) ([]byte, error) {
	page, rows, next, err := fetchTurned(ctx, v, r)
	if err != nil {
		return nil, err
	}
	aggregations, err := r.aggregate(ctx, v, rows)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `{"results":[`...)
	t := turns.Of(ctx)
	w := newDocumentWriter(t.Account(), v, r.Fields, r.RetrieveVectors)
	meter := budget.NewMeter(t.Account(), len(dst))
	i := 0
	for p, err := range page {
		if err != nil {
			return nil, err
		}
		if i > 0 {
			dst = append(dst, ',')
		}
		if i%clockHits == 0 {
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
		i++
		if err := meter.Grown(len(dst)); err != nil {
			return nil, err
		}
		if dst, err = w.append(dst, p.segment, p.row); err != nil {
			return nil, err
		}
	}
	dst = appendFetched(append(dst, ']'), r, cardinality(rows))
	if r.Cursor != nil {
		dst = appendNext(dst, next)
	}
	if aggregations != nil {
		if dst, err = appendAggregations(t, dst, aggregations, fetchAggregations); err != nil {
			return nil, err
		}
	}
	return append(dst, '}'), nil
}

// aggregate computes the aggregations of the documents of all pages, or returns nil if none are requested.
func (r *FetchRequest) aggregate(ctx context.Context, v *index.View, rows []*roaring.Bitmap) (*aggregate.Result, error) {
	if r.Aggregations == nil {
		return nil, nil
	}
	if err := r.Aggregations.Check(v.Fields, fetchAggregations); err != nil {
		return nil, err
	}
	return aggregated(ctx, v, r.Aggregations, &rank.Result{Candidates: rows}, deadline(v, time.Now()), fetchAggregations)
}

// appendFetched appends the members of the list's body besides the documents.
func appendFetched(dst []byte, r *FetchRequest, total int) []byte {
	dst = appendInt(dst, `,"offset":`, r.Offset)
	dst = appendInt(dst, `,"limit":`, r.Limit)
	return appendInt(dst, `,"total":`, total)
}

// CheckFetch refuses a request for documents that an index does not allow.
func CheckFetch(ctx context.Context, v *index.View, r *FetchRequest) error {
	if _, err := parseSort(ctx, v, r.Sort, r.Contains, "invalid_document_sort"); err != nil {
		return err
	}
	if r.Aggregations != nil {
		if err := r.Aggregations.Check(v.Fields, fetchAggregations); err != nil {
			return err
		}
	}
	if r.Filter == nil {
		return nil
	}
	_, err := bind(ctx, v, r.Filter, r.filtering())
	return err
}

// fetchPage returns the places of the documents of a page, and by segment the rows of all pages. The bitmaps may be shared.
func fetchPage(ctx context.Context, v *index.View, r *FetchRequest) (page places, rows []*roaring.Bitmap, err error) {
	keys, err := parseSort(ctx, v, r.Sort, r.Contains, "invalid_document_sort")
	if err != nil {
		return nil, nil, err
	}
	if rows, err = fetchRows(ctx, v, r); err != nil {
		return nil, nil, err
	}
	page, err = cutPage(ctx, v, rows, keys, r)
	return page, rows, err
}

// cutPage returns the places of the documents of a page of some rows.
func cutPage(ctx context.Context, v *index.View, rows []*roaring.Bitmap, keys []rank.SortKey, r *FetchRequest) (places, error) {
	switch {
	case r.Limit == 0: // the total alone
		return placesOf(nil), nil
	case len(keys) > 0:
		list, err := sortedPage(ctx, v, rows, keys, r)
		return placesOf(list), err
	}
	return orderedPage(ctx, v, rows, r.Offset, r.Limit), nil
}

// fetchRows returns, by segment, the rows of all pages. They may be shared.
func fetchRows(ctx context.Context, v *index.View, r *FetchRequest) ([]*roaring.Bitmap, error) {
	ring, ids := r.Shards, r.IDs
	if ring == nil {
		ring = v.Shards()
	}
	only := r.Filter
	if r.Shard != "" {
		if ids != nil && ring.Has(r.Shard) { // ids determine their shards
			ids = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return ring.Names()[ring.Owner([]byte(id))] != r.Shard })
		} else {
			only = filter.And(only, filter.InShard(r.Shard))
		}
	}
	rows, err := universe(ctx, v, only, r.filtering())
	if err != nil || ids == nil {
		return rows, err
	}
	return rows, restrict(ctx, v, rows, ids)
}

// AppendDocument appends the requested fields (nil: all) of one document. Its memory is charged to the account.
func AppendDocument(account *budget.Account, dst []byte, v *index.View, seg int, row segment.Row, fields []string, vectors bool) ([]byte, error) {
	return newDocumentWriter(account, v, fields, vectors).append(dst, seg, row)
}

// documentWriter appends documents, reusing its buffer.
type documentWriter struct {
	view    *index.View
	shown   selection.Selection
	wanted  segment.Wanted // what of a document is read
	vectors *embeddings    // nil: not shown
	doc     []byte
	room    budget.Room // for doc and what is shown of it
}

func newDocumentWriter(account *budget.Account, v *index.View, fields []string, vectors bool) *documentWriter {
	w := &documentWriter{view: v, shown: selection.Of(fields), room: budget.NewRoom(account)}
	if vectors {
		w.vectors = newEmbeddings(v)
	}
	w.wanted = selection.Wanted(vectors, w.shown)
	return w
}

// append appends the shown part of a document, reading only the members that are shown.
func (w *documentWriter) append(dst []byte, seg int, row segment.Row) (_ []byte, err error) {
	if w.doc, err = w.view.Segments[seg].AppendMembers(w.doc[:0], row, w.wanted, &w.room); err != nil {
		return nil, err
	}
	at := len(dst)
	if dst, err = w.shown.Append(dst, w.doc); err != nil || w.vectors == nil {
		return dst, err
	}
	return w.vectors.appendMember(dst, at, w.doc, seg, row)
}

// restrict leaves only the documents with one of the external ids.
func restrict(ctx context.Context, v *index.View, rows []*roaring.Bitmap, ids []string) error {
	asked := make([]*roaring.Bitmap, len(rows))
	for i := range asked {
		asked[i] = roaring.New()
	}
	t := turns.Of(ctx)
	for i, id := range ids {
		if i%clockRows == 0 {
			if err := t.Yield(); err != nil {
				return err
			}
		}
		if seg, row, ok := v.Find([]byte(id)); ok {
			asked[seg].Add(uint32(row))
		}
	}
	for i := range rows {
		rows[i] = roaring.And(rows[i], asked[i])
	}
	return nil
}

// clockRows is the number of rows between checks whether the answer is still wanted.
const clockRows = 1 << 12

// orderedPage merges the segments' rows by document id and yields those of a page. It lists none, because a page may have as many as
// the index.
func orderedPage(ctx context.Context, v *index.View, rows []*roaring.Bitmap, offset, limit int) places {
	return func(yield func(place, error) bool) {
		open := openRows(v, rows)
		left := offset
		if len(open) == 1 { // rows are in order already: skip by rank
			if n := rows[open[0].segment].GetCardinality(); uint64(left) >= n {
				return
			}
			if first, err := rows[open[0].segment].Select(uint32(left)); err == nil {
				open[0].it.AdvanceIfNeeded(first)
				open[0].next(v)
				left = 0
			}
		}
		t := turns.Of(ctx)
		for n, found := 0, 0; len(open) > 0 && found < limit; n++ {
			if n%clockRows == 0 {
				if err := t.Yield(); err != nil {
					yield(place{}, err)
					return
				}
			}
			lowest := 0
			for i := range open {
				if open[i].id < open[lowest].id {
					lowest = i
				}
			}
			c := open[lowest]
			p := place{segment: c.segment, row: segment.Row(c.it.Next()), id: c.id}
			if !c.next(v) {
				open = append(open[:lowest], open[lowest+1:]...)
			}
			if n < left {
				continue
			}
			if found++; !yield(p, nil) {
				return
			}
		}
	}
}

// rowCursor is at a row of a segment.
type rowCursor struct {
	segment int
	it      roaring.IntPeekable
	id      segment.DocID // of the next row
}

// next reads the id of the next row, and reports whether there is one.
func (c *rowCursor) next(v *index.View) bool {
	if !c.it.HasNext() {
		return false
	}
	c.id = v.Segments[c.segment].DocID(segment.Row(c.it.PeekNext()))
	return true
}

// openRows returns a cursor for each segment with rows.
func openRows(v *index.View, rows []*roaring.Bitmap) (open []*rowCursor) {
	for i := range rows {
		if c := (&rowCursor{segment: i, it: rows[i].Iterator()}); c.next(v) {
			open = append(open, c)
		}
	}
	return open
}

// sortedPage ranks the rows by the sort keys alone.
func sortedPage(ctx context.Context, v *index.View, rows []*roaring.Bitmap, keys []rank.SortKey, r *FetchRequest) ([]place, error) {
	ix := rankIndex(v)
	onlySort := *v.Settings
	onlySort.RankingRules = []settings.RankingRule{{Kind: settings.Sort}}
	ix.Settings = &onlySort
	end := r.Offset + min(r.Limit, math.MaxInt-r.Offset)
	result, err := rank.Search(ctx, ix, &rank.Request{Universe: rows, Sort: keys, Offset: r.Offset, Limit: r.Limit, MaxTotal: end, Scores: r.Values, Values: r.Values})
	if err != nil {
		return nil, err
	}
	if err := turns.Of(ctx).Account().Hold(int64(len(result.Hits)) * placeBytes); err != nil {
		return nil, err
	}
	page := make([]place, len(result.Hits))
	for i, h := range result.Hits {
		page[i] = place{h.Segment, h.Row, h.ID, h.Values}
	}
	return page, nil
}
