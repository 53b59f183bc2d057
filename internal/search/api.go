// Package search owns one search request end to end: universe, ranking,
// distinct, facets, formatting and the response; facet search; and the
// fetching of documents by filter, id and sort.
package search

import (
	"context"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/text"
	"svc/segment"
)

// Request is a search with its defaults filled in; fastapi decodes it.
type Request struct {
	Query                   string
	HasQuery                bool // q was given and not null
	Offset, Limit           int
	Page, HitsPerPage       *int // either given: page mode
	Filter                  *filter.Expr
	Sort                    []string
	Facets                  []string
	Distinct                *string
	Strategy                query.Strategy
	Locales                 text.Locales
	SearchOn                []string // nil: absent
	AttributesToRetrieve    []string // nil: absent ("*")
	AttributesToHighlight   []string
	AttributesToCrop        []string
	CropLength              int
	CropMarker              string
	HighlightPreTag         string
	HighlightPostTag        string
	ShowMatchesPosition     bool
	ShowRankingScore        bool
	ShowRankingScoreDetails bool
	ShowPerformanceDetails  bool
	RankingScoreThreshold   *float64
	RetrieveVectors         bool
	Contains                bool // the experimental feature containsFilter is on
}

// Response is the answer. AppendJSON appends the body of the API; the view must
// be held until it has returned.
type Response struct{}

func (r *Response) AppendJSON(dst []byte) ([]byte, error) { panic("stub") }

// Search answers r on the view. Errors are *apierr.Error or the context's.
func Search(ctx context.Context, v *index.View, r *Request) (*Response, error) { panic("stub") }

// FacetRequest is a facet search: a search's candidates, and the facet whose values are asked.
type FacetRequest struct {
	Search     Request
	FacetName  string
	FacetQuery *string
	Exhaustive bool // exhaustiveFacetCount
}

// FacetSearch appends the response body to dst.
func FacetSearch(ctx context.Context, dst []byte, v *index.View, r *FacetRequest) ([]byte, error) {
	panic("stub")
}

// FetchRequest asks for documents.
type FetchRequest struct {
	Offset, Limit   int
	Fields          []string // nil: all; paths and patterns
	Filter          *filter.Expr
	IDs             []string // nil: absent
	Sort            []string
	Contains        bool
	RetrieveVectors bool
}

// Fetch appends the body of a documents list ({results, offset, limit, total}) to dst.
func Fetch(ctx context.Context, dst []byte, v *index.View, r *FetchRequest) ([]byte, error) {
	panic("stub")
}

// AppendDocument appends the fields of one document that a route shows.
func AppendDocument(dst []byte, v *index.View, seg int, row segment.Row, fields []string, vectors bool) ([]byte, error) {
	panic("stub")
}
