package search

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/embed"
	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/rank"
	"svc/internal/scroll"
	"svc/internal/template"
	"svc/internal/turns"
)

// How long a search waits for a model to load, and for the embedding of its query if the index has no cutoff. Otherwise the embedding
// ends with searchCutoffMs. If it is not done by then, a hybrid search answers with its results by words.
const (
	semanticPatience = 10 * time.Second
	hybridPatience   = 3 * time.Second
)

// ranking is a request checked against its index, ready to run.
type ranking struct {
	view     *index.View
	request  *Request
	kind     kind
	embedder *index.ViewEmbedder // of semantic and hybrid searches
	sort     []rank.SortKey
	distinct string
	facets   []facetField
	filter   *boundFilter          // restricts the ranking; nil: rows does
	rows     []*roaring.Bitmap     // by segment: what the filter allows, without the pins
	counted  *rank.Allowed         // documents that scores are counted over, those of rows or filter among them; nil: these alone
	pins     []pinnedHit[rank.Hit] // in the order of their places
	ruled    bool                  // rules pin or scale
	parts    []scaled              // of rows, if rules scale scores; nil: none does
	scalers  []ruleRows            // the rules that scale scores; nil: not computed yet
	stages   *stages               // nil: not wanted
	plan     *rank.Plan            // nil: not wanted
	scoring  *scoring              // nil: no rule asks

	page  *scroll.Page      // requested by a cursor; nil: none
	seen  []*roaring.Bitmap // by segment: rows that earlier pages returned, or duplicates of them; nil: none among rows
	total int               // of hits, if rows are only the documents of the page; else −1
	rest  *rest             // leaves them out of what the filter allows; nil: not computed yet

	steadyTotals bool // pages have the same total and candidates
	unbounded    bool // maxTotalHits is no bound
}

// window says which ranks are needed, and which details of them.
type window struct {
	offset, limit int
	pageSize      int            // hits on each page of the same search; 0: it has one page
	exhaustive    bool           // totals are exact
	brief         bool           // candidates of some segments are computed on demand
	hitsOnly      bool           // candidates are not looked at
	values        bool           // fill Hit.Values, and Hit.Score
	apart         bool           // pins are counted, but not among the hits
	wholeIfFew    bool           // a few hits may be all, not only those of the page: the caller cuts them
	deadline      time.Time      // of the ranking; zero: searchCutoffMs from its start
	grouping      *rank.Grouping // of a search by words: hits are the first ones of groups; nil: they are not
}

// rankedHits is the result of a ranking.
type rankedHits struct {
	*rank.Result
	kind         kind
	semanticHits int       // hits that the semantic search found
	queryVector  []float32 // nil: none was used
}

// newRanking validates a request against its index. Errors are *apierr.Error.
func newRanking(ctx context.Context, v *index.View, r *Request, stages *stages) (*ranking, error) {
	return newRankingOf(ctx, v, r, nil, stages)
}

// newRankingOf is newRanking for a page by cursor; nil: the request has its own paging.
func newRankingOf(ctx context.Context, v *index.View, r *Request, page *scroll.Page, stages *stages) (*ranking, error) {
	k := &ranking{view: v, request: r, kind: r.kind(), stages: stages, total: -1,
		steadyTotals: r.Hybrid != nil || r.RankingScoreThreshold != nil}
	if r.ExplainPlan || r.ShowPerformanceDetails {
		k.plan = new(rank.Plan)
	}
	var err error
	if k.embedder, err = r.embedder(v); err != nil {
		return nil, err
	}
	if k.sort, err = parseSort(ctx, v, r.Sort, r.Contains, "invalid_search_sort"); err != nil {
		return nil, err
	}
	if k.distinct, err = distinctField(v, r); err != nil {
		return nil, err
	}
	if r.Facets != nil {
		if k.facets, err = facetFields(v, r.Facets, "invalid_search_facets"); err != nil {
			return nil, err
		}
	}
	if r.Aggregations != nil {
		if err := r.Aggregations.Check(v.Fields, searchAggregations); err != nil {
			return nil, err
		}
	}
	if r.GroupBy != nil {
		if err := r.GroupBy.Check(ctx, v, r.Contains, searchGroupBy); err != nil {
			return nil, err
		}
	}
	if k.scoring, err = newScoring(ctx, v, r); err != nil {
		return nil, err
	}
	now := r.Now
	if now.IsZero() {
		now = time.Now()
	}
	effects := r.Rules.Match(v.UID, query.Readable(r.Query), r.Filter, now)
	k.ruled = len(effects.Pins)+len(effects.Scales) > 0
	if r.Filter == nil {
		k.rows = slices.Clone(v.LiveRows())
	} else {
		f, err := bind(ctx, v, r.Filter, r.filtering())
		if err != nil {
			return nil, err
		}
		if !k.ruled {
			k.filter = f
		} else {
			t := turns.Of(ctx)
			k.rows = f.all(t)
			if err := t.Yield(); err != nil {
				return nil, err
			}
		}
	}
	if page != nil {
		k.goOn(ctx, page, effects.Pins)
	}
	stages.done("search > evaluate filter")
	if k.ruled {
		k.pin(effects.Pins)
		if len(effects.Scales) > 0 {
			k.scale(ctx, effects.Scales)
		}
		k.leaveSeen()
		stages.done("search > apply rules")
	}
	return k, nil
}

// maxTotal is how many hits may be asked for.
func (k *ranking) maxTotal() int {
	if k.unbounded {
		return math.MaxInt32
	}
	return k.view.Settings.Pagination.MaxTotalHits
}

// CheckIn refuses requests that an index does not allow, in the order of checks of newRanking.
func (r *Request) CheckIn(ctx context.Context, v *index.View) error {
	if _, err := r.embedder(v); err != nil {
		return err
	}
	if _, err := parseSort(ctx, v, r.Sort, r.Contains, "invalid_search_sort"); err != nil {
		return err
	}
	if _, err := distinctField(v, r); err != nil {
		return err
	}
	if r.Filter == nil {
		return nil
	}
	_, err := bind(ctx, v, r.Filter, r.filtering())
	return err
}

// embedder returns the embedder that the request searches with, or nil for a search by words.
func (r *Request) embedder(v *index.View) (*index.ViewEmbedder, error) {
	if r.kind() == keyword {
		return nil, nil
	}
	e, err := embedderOf(v, r.Hybrid.Embedder, "invalid_search_embedder")
	if err != nil {
		return nil, err
	}
	if r.Vector != nil && len(r.Vector) != e.Dimensions {
		return nil, apierr.New("invalid_vector_dimensions", "`vector` must have %d numbers, the dimensions of the embedder `%s`, but it has %d.",
			e.Dimensions, e.Name, len(r.Vector))
	}
	return e, nil
}

// embedderOf returns an embedder of the index by its name.
func embedderOf(v *index.View, name string, code apierr.Code) (*index.ViewEmbedder, error) {
	if e, ok := v.Embedder(name); ok {
		return e, nil
	}
	var names []string
	for _, e := range v.Embedders() {
		names = append(names, "`"+e.Name+"`")
	}
	if len(names) == 0 {
		return nil, apierr.New(code, "The index `%s` has no embedder `%s`: add it to its `embedders`.", v.UID, name)
	}
	return nil, apierr.New(code, "The index `%s` has no embedder `%s`. It has %s.", v.UID, name, strings.Join(names, ", "))
}

// run ranks, and inserts the pins. Errors are *apierr.Error or the context's.
func (k *ranking) run(ctx context.Context, w window) (*rankedHits, error) {
	if len(k.pins) == 0 {
		return k.find(ctx, w)
	}
	organic := w
	organic.brief = false
	if w.limit > 0 { // the number of earlier hits decides which hits are on the page
		organic.offset, organic.limit = 0, w.offset+w.limit
	}
	f, err := k.find(ctx, organic)
	if err != nil {
		return nil, err
	}
	f.pin(k.pins, w, k.view.Settings.Pagination.MaxTotalHits)
	return f, nil
}

// find ranks the documents that are not pinned.
func (k *ranking) find(ctx context.Context, w window) (*rankedHits, error) {
	if k.kind == hybrid {
		return k.runHybrid(ctx, w)
	}
	ranked, whole := k.wholeList(w)
	began := time.Now()
	f := &rankedHits{kind: k.kind}
	var q *rank.VectorQuery
	var err error
	if k.kind == semantic {
		if q, err = k.vectorQuery(ctx, began, semanticPatience, true); err != nil {
			if ctx.Err() == nil && errors.As(err, new(*unembedded)) {
				k.noVector(ctx, "search fails", err)
			}
			return nil, err
		}
		f.queryVector = q.Vectors[0]
	}
	if f.Result, err = k.search(ctx, ranked, q); err != nil {
		return nil, err
	}
	if whole || f.Whole && !w.wholeIfFew {
		f.cut(w)
	}
	if k.kind == semantic {
		f.semanticHits = len(f.Hits)
	}
	return f, nil
}

// rankRequest returns the request for a ranking by words, or by vectors.
func (k *ranking) rankRequest(ctx context.Context, w window, vectors *rank.VectorQuery) *rank.Request {
	r := k.request
	if w.deadline.IsZero() {
		w.deadline = deadline(k.view, time.Now())
	}
	var allowed rank.Filter
	if k.filter != nil {
		allowed = k.filter.during(turns.Of(ctx))
	}
	rows, counted := k.rows, k.counted
	if k.seen != nil {
		if k.countsAll() {
			counted = &rank.Allowed{Universe: rows, Filter: allowed}
		}
		allowed, rows = k.behind(allowed), nil
	}
	return &rank.Request{
		Universe:   rows,
		Filter:     allowed,
		Counted:    counted,
		Live:       k.view.LiveRows(),
		Query:      r.Query,
		Vectors:    vectors,
		Strategy:   r.Strategy,
		Locales:    r.Locales,
		SearchOn:   r.SearchOn,
		Sort:       k.sort,
		Distinct:   k.distinct,
		Grouping:   w.grouping,
		Offset:     w.offset,
		Limit:      w.limit,
		PageSize:   w.pageSize,
		Exhaustive: w.exhaustive,
		Brief:      w.brief,
		HitsOnly:   w.hitsOnly && k.kind != hybrid && len(k.pins)+len(k.parts) == 0,
		Marks:      r.formats(),
		MaxTotal:   k.maxTotal(),
		WholeIfFew: k.wholeIfFew(w),
		Threshold:  r.RankingScoreThreshold,
		Scores:     w.values || r.ShowRankingScore || r.ShowRankingScoreDetails,
		Values:     w.values,
		Details:    r.ShowRankingScoreDetails,
		Deadline:   w.deadline,
		Stage:      k.stages.of("search > "),
		Plan:       k.plan,
		Scoring:    k.scoring.during(turns.Of(ctx)),
	}
}

// only has the ranking find some of its documents, as they rank among all of them.
func (k *ranking) only(ctx context.Context, rows []*roaring.Bitmap) {
	if k.counted == nil {
		k.counted = &rank.Allowed{Universe: k.rows}
		if k.filter != nil {
			k.counted.Filter = k.filter.during(turns.Of(ctx))
		}
	}
	k.filter, k.rows = nil, rows
}

// vectorQuery returns the vector that documents are compared with: the given one, or that of the query. If ranks is false, documents
// are only counted, and no provider is asked. began is when the search began; its cutoff ends the embedding, not counting the loading
// of a model. Errors are *apierr.Error, vector_embedding_error if the vector is not available in time.
func (k *ranking) vectorQuery(ctx context.Context, began time.Time, patience time.Duration, ranks bool) (*rank.VectorQuery, error) {
	r := k.request
	q := &rank.VectorQuery{Embedder: k.embedder.ID}
	opening := time.Now()
	embedder, err := k.openEmbedder(ctx, patience)
	if err != nil {
		return nil, notEmbedded(err)
	}
	opened := time.Now()
	q.Shift = shiftOf(embedder)
	if r.Vector != nil {
		q.Vectors = [][]float32{r.Vector}
		return q, nil
	}
	if !ranks && embedder.Generates() {
		return q, nil
	}
	asked := embed.Query{Media: r.Media}
	if strings.TrimSpace(r.Query) != "" {
		asked.Q = &r.Query
	}
	end := deadline(k.view, began.Add(opened.Sub(opening)))
	if end.IsZero() {
		end = opening.Add(patience)
	}
	limited, cancel := context.WithDeadline(ctx, end)
	defer cancel()
	vector, err := k.embed(ctx, limited, embedder, asked)
	k.stages.done("search > embed query")
	if err != nil {
		return nil, err
	}
	q.Vectors = [][]float32{vector}
	return q, nil
}

// openEmbedder opens the embedder, and waits for it at most for patience. If the embedder is open, it makes no context with a deadline:
// the timers took 2% of a search by a vector.
func (k *ranking) openEmbedder(ctx context.Context, patience time.Duration) (*embed.Embedder, error) {
	if opened := k.embedder.Opened(); opened != nil {
		return opened, nil
	}
	patient, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return k.embedder.Open(patient)
}

// embed calls the embedder within a limited time, and meanwhile releases the turn.
func (k *ranking) embed(ctx, limited context.Context, embedder *embed.Embedder, q embed.Query) ([]float32, error) {
	if q.Media != nil && !object(q.Media) {
		return nil, apierr.New("vector_embedding_error", "user error: `media` must be an object whose members the search fragments of the embedder `%s` use.", k.embedder.Name)
	}
	t := turns.Of(ctx)
	input, err := embedder.QueryInput(template.Work{Account: t.Account(), Yield: t.Yield}, q)
	if err != nil {
		return nil, err
	}
	t.Pause()
	defer t.Resume()
	vector, err := embedder.EmbedQuery(limited, input)
	if err != nil {
		return nil, notEmbedded(err)
	}
	if len(vector) != k.embedder.Dimensions {
		return nil, apierr.New("vector_embedding_error", "runtime error: the embedder `%s` returned a query vector of %d numbers, but has %d dimensions.",
			k.embedder.Name, len(vector), k.embedder.Dimensions)
	}
	return vector, nil
}

// unembedded is the error of a query without a vector. Its text, for the log, has the provider's address and response. It wraps an
// *apierr.Error for the user, which has neither.
type unembedded struct {
	error
	shown *apierr.Error
}

func (u *unembedded) Unwrap() error { return u.shown }

// notEmbedded returns an error that wraps any reason.
func notEmbedded(err error) error {
	var failed *embed.Failure
	var known *apierr.Error
	switch {
	case errors.As(err, &failed):
		return &unembedded{err, apierr.New("vector_embedding_error", "%s", failed.Brief())}
	case errors.As(err, &known) && known.Code == "vector_embedding_error": // the query is at fault
		return err
	}
	return &unembedded{err, apierr.New("vector_embedding_error", "runtime error: the query could not be embedded. The server log has the cause.")}
}

// shiftOf returns how the embedder's similarities are shifted.
func shiftOf(e *embed.Embedder) *rank.Shift {
	if mean, sigma, ok := e.Distribution(); ok {
		return &rank.Shift{Mean: mean, Sigma: sigma}
	}
	return nil
}

// noVector logs why the query of a search has no vector, and what the search does without one.
func (k *ranking) noVector(ctx context.Context, outcome string, err error) {
	if log := k.request.Log; log != nil {
		log.LogAttrs(ctx, slog.LevelWarn, outcome+": the query could not be embedded",
			slog.String("index", k.view.UID), slog.String("embedder", k.embedder.Name), slog.Any("error", err))
	}
}
