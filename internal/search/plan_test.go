package search

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestPlanIsShown requests the access paths of a search, as a list with rows and as timed stages.
func TestPlanIsShown(t *testing.T) {
	f := newFixture(t, rand.New(rand.NewPCG(1, 2)), `{}`)
	type step struct {
		Rule, Path, Took       string
		Calls, RowsIn, RowsOut int
	}
	var got struct {
		Hits               []json.RawMessage
		Plan               []step
		PerformanceDetails map[string]string
	}
	const word = "oslo"
	f.search(t, &Request{Query: word, Limit: 20, ExplainPlan: true, ShowPerformanceDetails: true, ShowRankingScore: true}, &got)
	at := slices.IndexFunc(got.Plan, func(s step) bool { return s.Rule == "words" })
	if len(got.Hits) == 0 || at < 0 {
		t.Fatalf("%d hits of %q, plan %+v", len(got.Hits), word, got.Plan)
	}
	s := got.Plan[at]
	if s.Path == "" || s.Calls == 0 || s.RowsIn < len(got.Hits) || s.RowsOut < len(got.Hits) || s.Took == "" {
		t.Errorf("%+v", s)
	}
	if took := got.PerformanceDetails["search > rank > words > "+s.Path]; took != s.Took {
		t.Errorf("words took %q in the plan, %q among %v", s.Took, took, got.PerformanceDetails)
	}
	got.Plan, got.PerformanceDetails = nil, nil
	f.search(t, &Request{Query: word, Limit: 20}, &got)
	if got.Plan != nil || got.PerformanceDetails != nil {
		t.Errorf("not requested: %v, %v", got.Plan, got.PerformanceDetails)
	}
}
