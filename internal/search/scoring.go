package search

import (
	"context"
	"math"
	"slices"
	"time"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/turns"
)

const searchScoreFunctions apierr.Code = "invalid_search_score_functions"

// scoring has the functions that the ranking rule score sums up in an index. nil: the rule has no effect.
type scoring struct {
	functions *settings.ScoreFunctions
	filters   []*boundFilter // by function; nil: it selects nothing, or the function is no filter
	now       int64          // seconds since 1970
}

// newScoring returns the score functions of the request, or else those of the settings. Invalid functions of the request are an
// error. A function of the settings that cannot be evaluated, because its filter needs an attribute that is no longer filterable,
// counts as 0.
func newScoring(ctx context.Context, v *index.View, r *Request) (*scoring, error) {
	ranks := slices.ContainsFunc(v.Settings.RankingRules, func(rule settings.RankingRule) bool { return rule.Kind == settings.Score })
	given := r.ScoreFunctions != nil
	switch {
	case given && !ranks:
		return nil, apierr.New(searchScoreFunctions, "This index does not rank by score functions: add `score` to its `rankingRules` to use the `scoreFunctions` parameter.")
	case !ranks || !given && v.Settings.ScoreFunctions == nil:
		return nil, nil
	}
	s := &scoring{functions: v.Settings.ScoreFunctions, now: r.Now.Unix()}
	if r.Now.IsZero() {
		s.now = time.Now().Unix()
	}
	if given {
		s.functions = r.ScoreFunctions
	}
	s.filters = make([]*boundFilter, len(s.functions.Functions))
	for i := range s.functions.Functions {
		f := &s.functions.Functions[i]
		if f.Kind != settings.FilterScore {
			if info := v.Fields.InfoOf(f.Attribute); given && !info.Column && !info.Places {
				return nil, apierr.New(searchScoreFunctions, "The score function %q cannot use the attribute %q. Add it to the index's filterable or sortable attributes first.", f.Name, f.Attribute)
			}
			continue
		}
		bound, err := bindScore(ctx, v, r, f)
		if err != nil && given {
			return nil, err
		}
		s.filters[i] = bound
	}
	return s, nil
}

// bindScore validates the condition of a score function. It cannot be empty, because it would then hold for every document.
func bindScore(ctx context.Context, v *index.View, r *Request, f *settings.ScoreFunction) (*boundFilter, error) {
	e, err := filter.FromJSON(f.Filter, searchScoreFunctions)
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, apierr.New(searchScoreFunctions, "The filter of the score function %q is empty: give a condition.", f.Name)
	}
	return bind(ctx, v, e, filtering{code: searchScoreFunctions, contains: r.Contains, shards: r.Shards})
}

// during returns the scoring as it is evaluated in a turn.
func (s *scoring) during(t turns.Turn) *rank.Scoring {
	if s == nil {
		return nil
	}
	ranked := &rank.Scoring{Functions: s.functions, Filters: make([]rank.Filter, len(s.filters)), Now: s.now}
	for i, f := range s.filters {
		if f != nil {
			ranked.Filters[i] = f.during(t)
		}
	}
	return ranked
}

// lasts returns the range of seconds since 1970 in which the order of hits stays the same: from the first on, and before the second.
func (s *scoring) lasts() (from, until int64) {
	if s == nil {
		return math.MinInt64, math.MaxInt64
	}
	return (&rank.Scoring{Functions: s.functions, Now: s.now}).Lasts()
}
