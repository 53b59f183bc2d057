package fastapi

import (
	"bytes"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/analytics"
	"svc/internal/apierr"
	"svc/internal/search"
	"svc/internal/task"
)

// countSearch counts an answered search in an index. position is its index among the queries of its request.
func (s *Server) countSearch(uid string, in *searchInput, position int, none bool, began time.Time) {
	if c := in.Search.Cursor; s.analytics == nil || c != nil && c.Text != "" { // which reads on
		return
	}
	now := time.Now()
	q := analytics.Search{Index: uid, Query: in.Search.Query, Filter: in.sentFilter, None: none, Took: now.Sub(began), At: now, Request: in.Search.ID, Position: position}
	s.analytics.Count(&q)
}

// analyticsNote returns a function that creates the note for countKept, or nil if nothing is counted.
func (s *Server) analyticsNote(in *searchInput, found *search.Response) func() search.Note {
	if s.analytics == nil {
		return nil
	}
	return func() search.Note {
		return &analytics.Search{Query: strings.Clone(in.Search.Query), Filter: bytes.Clone(in.sentFilter), None: found.None()}
	}
}

// countKept counts a search that was answered from the cache.
func (s *Server) countKept(uid string, kept *search.KeptAnswer, id uuid.UUID, position int, began time.Time) {
	if s.analytics == nil {
		return
	}
	if note, ok := kept.Note().(*analytics.Search); ok {
		now := time.Now()
		q := *note
		q.Index, q.Took, q.At, q.Request, q.Position = uid, now.Sub(began), now, id, position
		s.analytics.Count(&q)
	}
}

// needAnalytics returns an error if the server does not count searches.
func (s *Server) needAnalytics() error {
	if s.analytics != nil {
		return nil
	}
	return apierr.New("feature_not_enabled", "Searches are not counted on this server. Start it with `--analytics-retention`, such as `--analytics-retention 30d`.")
}

// reportQuery is which counts a request is about.
type reportQuery struct {
	analytics.Range
	limit int
}

const maxReportRows = 1000

var rangeParams = []param[reportQuery]{
	{name: "indexUid", code: "invalid_index_uid", kind: textual, shape: uidShape, set: func(q *reportQuery, a *arg) error {
		if !validUID(a.text) {
			return a.expected(uidForm)
		}
		q.Index = a.text
		return nil
	}},
	{name: "from", code: "invalid_analytics_from", kind: textual, shape: momentShape, set: func(q *reportQuery, a *arg) (err error) {
		q.From, err = task.ParseBefore(a.text, a.code)
		return err
	}},
	{name: "to", code: "invalid_analytics_to", kind: textual, shape: momentShape, set: func(q *reportQuery, a *arg) (err error) {
		q.To, err = task.ParseAfter(a.text, a.code)
		return err
	}},
}

var reportParams = join(rangeParams, []param[reportQuery]{
	{name: "limit", code: "invalid_analytics_limit", kind: count, shape: schema{"type": "integer", "minimum": 0, "maximum": maxReportRows}, set: func(q *reportQuery, a *arg) error {
		if a.count > maxReportRows {
			return a.expected("a whole number from 0 to 1000")
		}
		q.limit = a.count
		return nil
	}},
})

// decodeRange reads the query string of a request about counts.
func (s *Server) decodeRange(ctx *fasthttp.RequestCtx, params []param[reportQuery]) (reportQuery, error) {
	q := reportQuery{limit: defaultLimit}
	if err := decodeQuery(&q, ctx.QueryArgs(), params); err != nil {
		return q, err
	}
	if err := s.needAnalytics(); err != nil {
		return q, err
	}
	if q.Index != "" {
		var err error
		q.Index, err = reach(ctx, q.Index)
		return q, err
	}
	if c := caller(ctx); c.Limit() != nil {
		q.Reaches = func(uid string) bool { return uid != "" && c.Reaches(uid) }
	}
	return q, nil
}

// queryReport is a query as reports show it.
type queryReport struct {
	Query          string   `json:"query"`
	IndexUID       string   `json:"indexUid"`
	Count          uint64   `json:"count"`
	NoResults      uint64   `json:"noResults"`
	MeanMs         float64  `json:"meanMs"`
	LongestMs      float64  `json:"longestMs"`
	Clicks         uint64   `json:"clicks"`
	ClickThrough   float64  `json:"clickThroughRate"`
	MeanPosition   *float64 `json:"meanPosition"` // null: no click had a position
	Conversions    uint64   `json:"conversions"`
	ConversionRate float64  `json:"conversionRate"`
}

// filterReport is a filter as reports show it.
type filterReport struct {
	Filter    string  `json:"filter"`
	IndexUID  string  `json:"indexUid"`
	Count     uint64  `json:"count"`
	NoResults uint64  `json:"noResults"`
	MeanMs    float64 `json:"meanMs"`
	LongestMs float64 `json:"longestMs"`
}

// reportView is a report as it is shown.
type reportView[T any] struct {
	Results []T    `json:"results"`
	Other   uint64 `json:"other"`
}

func showReport[T any](r *analytics.Report, show func(*analytics.Row) T) reportView[T] {
	v := reportView[T]{Results: make([]T, len(r.Rows)), Other: r.Other}
	for i := range r.Rows {
		v.Results[i] = show(&r.Rows[i])
	}
	return v
}

func showQuery(row *analytics.Row) queryReport {
	q := queryReport{
		Query: row.Text, IndexUID: row.Index, Count: row.Searches, NoResults: row.None, MeanMs: milliseconds(row.Mean()), LongestMs: milliseconds(row.Slowest()),
		Clicks: row.Clicks, ClickThrough: share(row.Clicked, row.Searches), Conversions: row.Conversions, ConversionRate: share(row.Converted, row.Searches),
	}
	if row.Positioned > 0 {
		mean := float64(row.Positions) / float64(row.Positioned)
		q.MeanPosition = &mean
	}
	return q
}

func showFilter(row *analytics.Row) filterReport {
	return filterReport{Filter: row.Text, IndexUID: row.Index, Count: row.Searches, NoResults: row.None, MeanMs: milliseconds(row.Mean()), LongestMs: milliseconds(row.Slowest())}
}

// share returns part / whole, at most 1. Events may belong to searches from before the hours of the report, so part may exceed whole.
func share(part, whole uint64) float64 {
	if whole == 0 {
		return 0
	}
	return min(float64(part)/float64(whole), 1)
}

// reportBytes is how much memory a report takes at most while it is made.
const reportBytes = 16 << 20

// report makes a report with the slot of a search, because it may read many files.
func (s *Server) report(ctx *fasthttp.RequestCtx, make func(*turn, reportQuery) (*analytics.Report, error)) (*analytics.Report, error) {
	q, err := s.decodeRange(ctx, reportParams)
	if err != nil {
		return nil, err
	}
	limited, _, err := s.turn(ctx, largeHits+1)
	if err != nil {
		return nil, err
	}
	defer limited.end()
	if err := requestOf(ctx).bytes().Hold(reportBytes); err != nil {
		return nil, err
	}
	return make(limited, q)
}

// reportQueries answers with queries in an order.
func reportQueries(order analytics.Order) handler {
	return func(s *Server, ctx *fasthttp.RequestCtx) error {
		r, err := s.report(ctx, func(limited *turn, q reportQuery) (*analytics.Report, error) {
			return s.analytics.Queries(limited, q.Range, order, q.limit)
		})
		if err != nil {
			return err
		}
		return answer(ctx, showReport(r, showQuery))
	}
}

func (s *Server) reportFilters(ctx *fasthttp.RequestCtx) error {
	r, err := s.report(ctx, func(limited *turn, q reportQuery) (*analytics.Report, error) {
		return s.analytics.Filters(limited, q.Range, q.limit)
	})
	if err != nil {
		return err
	}
	return answer(ctx, showReport(r, showFilter))
}

// deleteAnalytics deletes the counts of a range of time. It reads and writes files, so it needs a slot like a large search.
func (s *Server) deleteAnalytics(ctx *fasthttp.RequestCtx) error {
	q, err := s.decodeRange(ctx, rangeParams)
	if err != nil {
		return err
	}
	concerns(ctx, q.Index)
	limited, _, err := s.turn(ctx, largeHits+1)
	if err != nil {
		return err
	}
	defer limited.end()
	if err := s.analytics.Delete(limited, q.Range); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}
