package search

import (
	"encoding/json"
	"log/slog"
	"time"

	"github.com/google/uuid"

	"svc/internal/aggregate"
	"svc/internal/filter"
	"svc/internal/format"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/rule"
	"svc/internal/settings"
	"svc/internal/shard"
	"svc/internal/text"
)

// Request is a search with its defaults filled in.
type Request struct {
	Query                   string
	Offset, Limit           int
	Page, HitsPerPage       *int // either given: page mode
	Filter                  *filter.Expr
	Sort                    []string
	Facets                  []string           // nil: absent
	Aggregations            *aggregate.Request // nil: absent
	Cursor                  *Cursor            // nil: absent
	Suggest                 bool               // other queries, if there are no hits
	GroupBy                 *GroupBy           // nil: absent
	Distinct                *string
	ScoreFunctions          *settings.ScoreFunctions // instead of those of the settings; nil: absent
	Now                     time.Time                // for rules and score functions; zero: when the search runs
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
	ExplainPlan             bool // show the access paths of the ranking
	RecordStages            bool // for Response.Stages, also if they are not shown
	RankingScoreThreshold   *float64
	RetrieveVectors         bool
	Hybrid                  *Hybrid         // nil: absent
	Vector                  []float32       // nil: absent
	Media                   json.RawMessage // nil: absent
	Contains                bool            // the experimental feature containsFilter is on
	Foreign                 *Foreign        // of the settings' foreign keys; nil: the experimental feature foreignKeys is off

	// Popular returns the view of an index of suggestions, which the search releases, or nil. It is nil for a caller whose token has
	// a filter, so that the caller sees no queries of other users.
	Popular func(uid string) (*index.View, error)

	Rules   *rule.Set   // nil: none apply
	Shards  *shard.Ring // that filters know; nil: those of the catalog
	Reorder Reorder     // of a plain search; nil: hits stay in ranked order

	Waited time.Duration // for its turn
	Log    *slog.Logger  // nil: none

	ID       uuid.UUID // requestUid; shared by the searches of one HTTP request
	Metadata bool      // show which index was searched, with its primary key
}

// formats reports whether hits show what the query matched.
func (r *Request) formats() bool {
	return len(r.AttributesToHighlight) > 0 || len(r.AttributesToCrop) > 0 || r.ShowMatchesPosition
}

// format returns how hits are formatted.
func (r *Request) format() *format.Options {
	return &format.Options{Retrieve: r.AttributesToRetrieve, Highlight: r.AttributesToHighlight, Crop: r.AttributesToCrop,
		CropLength: r.CropLength, Marker: r.CropMarker, PreTag: r.HighlightPreTag, PostTag: r.HighlightPostTag}
}

// FacetRequest is a facet search: the candidates of a search, and the facet whose values are requested.
type FacetRequest struct {
	Search     Request
	FacetName  string
	FacetQuery *string
	Exhaustive bool // exhaustiveFacetCount
}

// FetchRequest asks for documents.
type FetchRequest struct {
	Offset, Limit   int
	Fields          []string // nil: all
	Filter          *filter.Expr
	IDs             []string // nil: absent
	Sort            []string
	Contains        bool
	Foreign         *Foreign // for filters: documents are not hydrated
	RetrieveVectors bool
	Aggregations    *aggregate.Request // nil: none
	Cursor          *Cursor            // nil: none

	// What another instance asks for.
	Shard  string      // the shard of the documents; "": all
	Shards *shard.Ring // that filters know; nil: those of the catalog
	Values bool        // include the sort values of documents
	Bare   bool        // the documents are not
}
