package search

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestReorder reorders the hits of searches in both forms.
func TestReorder(t *testing.T) {
	l := newLibrary(t)
	l.put("i", `{"searchCutoffMs": 5000}`, `{"id": 1, "t": "red, \"hat\""}`, `{"id": 2}`, `{"id": 3, "t": ["]", "}"]}`)
	v := held(l.c.Get("i").View())
	defer v.Release()
	broken := errors.New("broken")
	for _, tt := range []struct {
		order []int
		err   error
		want  string
	}{
		{[]int{2, 0, 1}, nil, `[{"id":3,"t":["]","}"]},{"id":1,"t":"red, \"hat\""},{"id":2}]`},
		{[]int{1}, nil, `[{"id":2}]`},
		{[]int{}, nil, `[]`},
		{nil, nil, `[{"id":1,"t":"red, \"hat\""},{"id":2},{"id":3,"t":["]","}"]}]`},
		{nil, broken, ``},
	} {
		turn := &countingTurn{Context: context.Background()}
		began := time.Now()
		reorder := func(deadline time.Time, hits [][]byte) ([]int, error) {
			const given = 5 * time.Second
			if deadline.Before(began.Add(given)) || deadline.After(time.Now().Add(given)) || len(hits) != 3 || string(hits[1]) != `{"id":2}` || turn.paused != 1 || turn.resumed != 0 {
				t.Errorf("called with %s, deadline %v, %+v", hits, deadline.Sub(began), turn)
			}
			return tt.order, tt.err
		}
		found, err := Search(turn, v, &Request{Limit: 20, Reorder: reorder, ShowPerformanceDetails: true})
		if err != nil {
			t.Fatal(err)
		}
		body, err := found.AppendJSON(turn, []byte("before"))
		if !errors.Is(err, tt.err) || err == nil && (!strings.HasPrefix(string(body), `before{"hits":`+tt.want+`,"query"`) || !strings.Contains(string(body), `"search > personalization"`)) {
			t.Errorf("%v: %s, %v", tt.order, body, err)
		}
		turn.paused, turn.resumed = 0, 0
		q := ""
		f := &FederatedRequest{Limit: 20, Queries: []FederatedQuery{{View: v, Request: &Request{}, Weight: 1}}, AsSearch: &q, Reorder: func(deadline time.Time, hits [][]byte) ([]int, error) {
			if len(hits) != 3 || turn.paused != 1 || deadline.IsZero() {
				t.Errorf("called with %s, %+v", hits, turn)
			}
			return tt.order, tt.err
		}}
		merged, err := Federate(context.Background(), f, oneByOne)
		if err != nil {
			t.Fatal(err)
		}
		body, err = merged.AppendJSON(turn, nil)
		if n := strings.Count(string(body), `"_federation"`); !errors.Is(err, tt.err) || err == nil && n != map[bool]int{true: 3, false: len(tt.order)}[tt.order == nil] {
			t.Errorf("%v: %s, %v", tt.order, body, err)
		}
		if turn.paused != turn.resumed {
			t.Errorf("%+v", turn)
		}
	}
	found, err := Search(context.Background(), v, &Request{Limit: 0, Reorder: func(time.Time, [][]byte) ([]int, error) { panic("no hit, no question") }})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := found.AppendJSON(context.Background(), nil); err != nil {
		t.Error(err)
	}
}
