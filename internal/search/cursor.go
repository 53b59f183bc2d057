package search

import (
	"context"
	"encoding/json"
	"math"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/rank"
	"svc/internal/rule"
	"svc/internal/scroll"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// Cursor requests the page after the hits that were returned before.
type Cursor struct {
	Text   string // "" begins
	Places *scroll.Store
	Filter *filter.Expr // the part of the filter that the client sent; nil: none. The rest may change from page to page
}

// searchCursor and documentCursor are the error codes of invalid cursors.
const (
	searchCursor   apierr.Code = "invalid_search_cursor"
	documentCursor apierr.Code = "invalid_document_cursor"
)

// asked decides which documents a search finds, and in which order. Its JSON identifies a search.
type askedOf struct {
	Created  time.Time // of the index: its name may move to another index
	Query    *string   // nil: documents are listed
	Filter   string
	IDs      []string
	Sort     []string
	Distinct *string
	Strategy query.Strategy
	Locales  text.Locales
	SearchOn []string
	Hybrid   *Hybrid
	Vector   []float32
	Media    json.RawMessage
	Least    *float64
	Scoring  *settings.ScoreFunctions
}

// open returns the page that the cursor of a search asks for.
func (c *Cursor) open(ctx context.Context, v *index.View, of *askedOf, wrong apierr.Code) (*scroll.Page, error) {
	of.Created, of.Filter = v.CreatedAt, c.Filter.String()
	described, err := json.Marshal(of)
	if err != nil {
		return nil, apierr.New(wrong, "`cursor` cannot be used with this search: %v.", err)
	}
	return c.Places.Open(ctx, c.Text, scroll.DigestOf(described), wrong)
}

// checkCursor refuses what cannot be read by a cursor.
func (r *Request) checkCursor() error {
	other := ""
	switch {
	case r.Cursor == nil:
		return nil
	case r.Offset > 0:
		other = "offset"
	case r.Page != nil:
		other = "page"
	case r.HitsPerPage != nil:
		other = "hitsPerPage"
	case r.GroupBy != nil:
		other = "groupBy"
	default:
		return nil
	}
	return apierr.New(searchCursor, "`cursor` and `%s` exclude each other: leave one of them out.", other)
}

// openPage returns the page that a search by cursor asks for; nil: no cursor.
func (r *Request) openPage(ctx context.Context, v *index.View) (*scroll.Page, error) {
	if r.Cursor == nil {
		return nil, nil
	}
	return r.Cursor.open(ctx, v, &askedOf{Query: &r.Query, Sort: r.Sort, Distinct: r.Distinct, Strategy: r.Strategy, Locales: r.Locales, SearchOn: r.SearchOn,
		Hybrid: r.Hybrid, Vector: r.Vector, Media: r.Media, Least: r.RankingScoreThreshold, Scoring: r.ScoreFunctions}, searchCursor)
}

// goOn makes the ranking leave out what the earlier pages returned. Pages by cursor need no exact totals.
func (k *ranking) goOn(ctx context.Context, p *scroll.Page, pins []rule.Pin) {
	k.unbounded, k.steadyTotals = true, false
	if k.page = p; p.First() || k.looksAhead() && k.takeAhead(ctx) {
		return
	}
	var like func([]*roaring.Bitmap) []*roaring.Bitmap
	if k.distinct != "" {
		like = func(rows []*roaring.Bitmap) []*roaring.Bitmap { return k.duplicates(rows, pins) }
	}
	k.seen = p.Seen(k.view.Generation, k.view.Segments, like)
}

// looksAhead reports whether the order of hits depends only on the view, so that hits ranked ahead stay valid.
func (k *ranking) looksAhead() bool { return k.kind == keyword && !k.ruled && k.scoring == nil }

// sameFilter returns the digest of a filter, including that of the token.
func sameFilter(f *filter.Expr) scroll.Digest { return scroll.DigestOf([]byte(f.String())) }

// takeAhead restricts the ranking to the documents of the page, if an earlier page found them ahead.
func (k *ranking) takeAhead(ctx context.Context) bool {
	ids, total, ok := k.page.Ahead(k.view.Generation, sameFilter(k.request.Filter), pageLimit(k.request.Limit, k.view.Settings.Pagination.MaxTotalHits)+1)
	if !ok {
		return false
	}
	live := k.view.LiveRows()
	rows := make([]*roaring.Bitmap, len(live))
	for seg := range rows {
		rows[seg] = roaring.New()
	}
	for _, id := range ids {
		if at, ok := standing(k.view, live, id); ok {
			rows[at.segment].Add(uint32(at.row))
		}
	}
	if k.filter != nil { // its inputs may have changed
		allowed := k.filter.during(turns.Of(ctx))
		for seg := range rows {
			if !rows[seg].IsEmpty() {
				rows[seg] = allowed.Among(seg, rows[seg], false)
			}
		}
	}
	if cardinality(rows) < len(ids) {
		return false
	}
	if k.only(ctx, rows); !k.countsAll() {
		k.counted = nil
	}
	k.total = total
	return true
}

// countsAll reports whether the scores of a page by cursor are those that its hits have among all documents. They need not be if documents
// are sorted by distance: that would take longer on each page, because classes of about equal distance would have to be found again
// from the first one on.
func (k *ranking) countsAll() bool { return firstPoint(k.sort) == nil }

// leaveSeen leaves out what earlier pages returned, from all parts.
func (k *ranking) leaveSeen() {
	if k.seen == nil {
		return
	}
	less := func(rows []*roaring.Bitmap) []*roaring.Bitmap {
		left := make([]*roaring.Bitmap, len(rows))
		for seg := range rows {
			left[seg] = roaring.AndNot(rows[seg], k.seen[seg])
		}
		return left
	}
	for i := range k.parts {
		k.parts[i].rows = less(k.parts[i].rows)
	}
	switch {
	case !k.countsAll():
		k.counted = nil
	case k.counted == nil:
		k.counted = &rank.Allowed{Universe: k.rows}
	}
	k.rows, k.seen = less(k.rows), nil
}

// standing returns the place of a document, if its row is among the given rows by segment.
func standing(v *index.View, among []*roaring.Bitmap, id uint32) (at place, ok bool) {
	for seg, l := range v.Segments {
		if row, found := l.RowOf(segment.DocID(id)); found && among[seg].Contains(uint32(row)) {
			return place{segment: seg, row: row, id: segment.DocID(id)}, true
		}
	}
	return at, false
}

// duplicates returns rows together with the documents that share a value of the distinct attribute with one of them. Pins are not
// duplicates and have none.
func (k *ranking) duplicates(rows []*roaring.Bitmap, pins []rule.Pin) []*roaring.Bitmap {
	d := rank.NewDistinct(rankIndex(k.view), k.distinct)
	live := k.view.LiveRows()
	pinned := make([]*roaring.Bitmap, len(rows))
	for seg := range pinned {
		pinned[seg] = roaring.New()
	}
	for _, p := range pins {
		if seg, row, ok := k.view.Find([]byte(p.ID)); ok {
			pinned[seg].Add(uint32(row))
		}
	}
	for seg, r := range rows {
		for it := r.Iterator(); it.HasNext(); {
			if row := it.Next(); live[seg].Contains(row) && !pinned[seg].Contains(row) {
				d.Keep(seg, segment.Row(row))
			}
		}
	}
	for seg, left := range d.Candidates(live, false, 0) {
		alike := roaring.AndNot(live[seg], left)
		alike.AndNot(pinned[seg])
		rows[seg] = roaring.Or(rows[seg], alike)
	}
	return rows
}

// behind returns a filter that excludes what the earlier pages returned.
func (k *ranking) behind(allowed rank.Filter) rank.Filter {
	if k.rest == nil {
		k.rest = &rest{filter: allowed, live: k.view.LiveRows(), seen: k.seen, rows: make([]*roaring.Bitmap, len(k.seen))}
	}
	return k.rest
}

// rest is a filter that allows what another one allows, without some rows.
type rest struct {
	filter rank.Filter // nil: all live rows
	live   []*roaring.Bitmap
	seen   []*roaring.Bitmap
	rows   []*roaring.Bitmap // by segment, once computed
}

// Rows returns the rows of a segment that the filter allows and earlier pages did not return. It is computed once.
func (f *rest) Rows(seg int) *roaring.Bitmap {
	if f.rows[seg] == nil {
		all := f.live[seg]
		if f.filter != nil {
			all = f.filter.Rows(seg)
		}
		f.rows[seg] = roaring.AndNot(all, f.seen[seg])
	}
	return f.rows[seg]
}

func (f *rest) Among(seg int, rows *roaring.Bitmap, keep bool) *roaring.Bitmap {
	if f.filter != nil {
		rows = f.filter.Among(seg, rows, keep)
	}
	return roaring.AndNot(rows, f.seen[seg])
}

// Key returns nil: the results are not cached, because others have returned other documents.
func (f *rest) Key() []byte { return nil }

// ordersByID reports whether hits come in the order of ids.
func (k *ranking) ordersByID() bool {
	if k.kind != keyword || k.request.Query != "" || len(k.sort) > 0 || k.distinct != "" || k.ruled {
		return false
	}
	for _, r := range k.view.Settings.RankingRules {
		if by := r.Kind.Comparison(); by == settings.ByLeast || by == settings.ByGreatest {
			return false
		}
	}
	return true
}

// pageLimit returns the number of hits on a page by cursor, if asked for the given number.
func pageLimit(asked, maxTotal int) int { return min(asked, max(maxTotal, 1), math.MaxInt32-1) }

// turnTo ranks the page of a cursor. It returns all matches, for facets and totals. The first page finds them anyway. For later pages
// they are found again, without hits, if the request needs more than the page.
func (r *Response) turnTo(ctx context.Context, k *ranking) (all *rankedHits, err error) {
	req := r.request
	counts := req.Facets != nil || req.Aggregations != nil
	first := k.page.First()
	limit, further := r.limit+1, k.looksAhead() && k.total < 0 && !req.ShowRankingScore && !req.ShowRankingScoreDetails
	if further {
		limit = k.page.Further(limit)
	}
	r.result, err = k.run(ctx, window{limit: limit, brief: first, hitsOnly: !first || !counts})
	if err != nil {
		return nil, err
	}
	if further && !r.result.Degraded && limit > r.limit+1 {
		k.page.Look(k.view.Generation, sameFilter(req.Filter), idsOf(r.result.Hits), r.offset+r.result.Total, len(r.result.Hits) < limit)
	}
	r.next = k.turnPage(r.result, r.limit)
	all = r.result
	switch {
	case first:
	case counts:
		whole, err := newRanking(ctx, r.view, req, nil)
		if err != nil {
			return nil, err
		}
		if all, err = whole.run(ctx, window{brief: true}); err != nil {
			return nil, err
		}
		r.result.Total = all.Total
	case k.total >= 0:
		r.result.Total = k.total
	default:
		r.result.Total += r.offset
	}
	r.result.Total = min(r.result.Total, r.view.Settings.Pagination.MaxTotalHits)
	return all, nil
}

// appendNext appends the member with the cursor of the next page.
func appendNext(dst []byte, next string) []byte {
	dst = append(dst, `,"nextCursor":`...)
	if next == "" {
		return append(dst, "null"...)
	}
	return append(append(append(dst, '"'), next...), '"')
}

// turnPage removes the extra hit that shows whether there are more, and returns the next cursor, or "" at the end.
func (k *ranking) turnPage(f *rankedHits, limit int) string {
	more := len(f.Hits) > limit
	f.Hits = f.Hits[:min(limit, len(f.Hits))]
	// Duplicates across truncated lists, and the deadline, may leave a page short.
	if !more && len(f.Hits) > 0 {
		more = f.Degraded || k.distinct != "" && (k.kind == hybrid || k.parts != nil)
	}
	if !more {
		return ""
	}
	ids := idsOf(f.Hits)
	if k.ordersByID() {
		return k.page.NextAfter(ids)
	}
	return k.page.Next(ids)
}

func idsOf(hits []rank.Hit) []segment.DocID {
	ids := make([]segment.DocID, len(hits))
	for i := range hits {
		ids[i] = hits[i].ID
	}
	return ids
}

// CheckCursor refuses what cannot be read by a cursor.
func (r *FetchRequest) CheckCursor() error {
	if r.Cursor != nil && r.Offset > 0 {
		return apierr.New(documentCursor, "`cursor` and `offset` exclude each other: leave one of them out.")
	}
	return nil
}

// fetchTurned is fetchPage with the cursor of the next page, or "" if there is none, or none is requested.
func fetchTurned(ctx context.Context, v *index.View, r *FetchRequest) (_ places, rows []*roaring.Bitmap, next string, err error) {
	if r.Cursor == nil {
		page, rows, err := fetchPage(ctx, v, r)
		return page, rows, "", err
	}
	keys, err := parseSort(ctx, v, r.Sort, r.Contains, "invalid_document_sort")
	if err != nil {
		return nil, nil, "", err
	}
	p, err := r.Cursor.open(ctx, v, &askedOf{IDs: r.IDs, Sort: r.Sort}, documentCursor)
	if err != nil {
		return nil, nil, "", err
	}
	defer p.Close()
	if rows, err = fetchRows(ctx, v, r); err != nil {
		return nil, nil, "", err
	}
	longer := *r
	longer.Limit = min(r.Limit, math.MaxInt32) + 1
	page := aheadIn(v, rows, p, r.Filter, longer.Limit)
	if page == nil {
		limit := longer.Limit
		if len(keys) > 0 {
			longer.Limit = p.Further(limit)
		}
		cut, err := cutPage(ctx, v, without(v, rows, p), keys, &longer)
		if err != nil {
			return nil, nil, "", err
		}
		if page, err = listedPlaces(turns.Of(ctx).Account(), cut); err != nil {
			return nil, nil, "", err
		}
		if longer.Limit > limit {
			p.Look(v.Generation, sameFilter(r.Filter), idsAt(page), 0, len(page) < longer.Limit)
			page, longer.Limit = page[:min(limit, len(page))], limit
		}
	}
	r.Offset = p.Before()
	if len(page) < longer.Limit {
		return placesOf(page), rows, "", nil
	}
	page = page[:longer.Limit-1]
	ids := idsAt(page)
	if len(keys) == 0 {
		return placesOf(page), rows, p.NextAfter(ids), nil
	}
	return placesOf(page), rows, p.Next(ids), nil
}

// without returns rows without documents that earlier pages returned.
func without(v *index.View, rows []*roaring.Bitmap, p *scroll.Page) []*roaring.Bitmap {
	if p.First() {
		return rows
	}
	left := make([]*roaring.Bitmap, len(rows))
	for seg, seen := range p.Seen(v.Generation, v.Segments, nil) {
		left[seg] = roaring.AndNot(rows[seg], seen)
	}
	return left
}

func idsAt(page []place) []segment.DocID {
	ids := make([]segment.DocID, len(page))
	for i := range page {
		ids[i] = page[i].id
	}
	return ids
}

// aheadIn returns the places of the documents of a page if an earlier page found them ahead, or nil if it did not, or if they are no
// longer among the rows.
func aheadIn(v *index.View, rows []*roaring.Bitmap, p *scroll.Page, f *filter.Expr, limit int) []place {
	ids, _, ok := p.Ahead(v.Generation, sameFilter(f), limit)
	if !ok {
		return nil
	}
	page := make([]place, 0, len(ids))
	for _, id := range ids {
		at, ok := standing(v, rows, id)
		if !ok {
			return nil
		}
		page = append(page, at)
	}
	return page
}
