package search

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// TestFacetSearch searches values by exact and misspelt queries, and under settings that forbid typos.
func TestFacetSearch(t *testing.T) {
	l := newLibrary(t)
	l.put("films", `{"filterableAttributes":["genre"]}`,
		`{"id":1,"genre":"Action"}`, `{"id":2,"genre":["action","ACTION "]}`, `{"id":3,"genre":"Science Fiction"}`, `{"id":4,"genre":["Crime","Comedy"]}`,
		`{"id":5,"genre":["Ädventure",12,true,""]}`)
	l.put("films", "", `{"id":6,"genre":["comedy","Biopic","Zen"]}`)
	search := func(ctx context.Context, r *FacetRequest) (string, error) {
		v := held(l.c.Get("films").View())
		defer v.Release()
		r.FacetName = "genre"
		body, err := FacetSearch(ctx, nil, v, r)
		if err != nil {
			return "", err
		}
		var answer struct {
			FacetHits []struct {
				Value string
				Count int
			}
		}
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		var found []string
		for _, h := range answer.FacetHits {
			found = append(found, fmt.Sprintf("%s %d", h.Value, h.Count))
		}
		return strings.Join(found, ", "), nil
	}
	for _, c := range []struct{ change, query, want string }{
		{"", "", "12 1, Action 2, Ädventure 1, Biopic 1, Comedy 2, Crime 1, Science Fiction 1, true 1, Zen 1"},
		{"", "ac", "Action 2"},
		{"", "AD", "Ädventure 1"},
		{"", "axtion", "Action 2"},
		{"", "ction", "Action 2"}, // the typo may be in the first letter
		{"", "actions", "Action 2"},
		{"", "axti", ""}, // too short for a typo
		{"", "fiction", ""},
		{"", "sceince fitcion", "Science Fiction 1"},
		{"", " ac", ""},
		{"", "12", "12 1"}, {"", "1", "12 1"}, {"", "12.", ""}, {"", "-", ""},
		{`{"faceting":{"sortFacetValuesBy":{"*":"count"}}}`, "", "Comedy 2, Action 2, Ädventure 1, true 1, Zen 1, Science Fiction 1, Crime 1, Biopic 1, 12 1"},
		{`{"faceting":{"maxValuesPerFacet":2}}`, "", "Comedy 2, Action 2"},
		{`{"faceting":{"sortFacetValuesBy":{"*":"alpha"}}}`, "", "12 1, Action 2"},
		{`{"faceting":{"maxValuesPerFacet":4}}`, "", "12 1, Action 2, Ädventure 1, Biopic 1"},
		{`{"typoTolerance":{"disableOnWords":["axtion","act"]}}`, "axtion", ""},
		{"", "act", ""}, // only the protected word itself
		{`{"typoTolerance":{"disableOnWords":[],"disableOnAttributes":["genre"]}}`, "axtion", ""},
		{"", "actio", "Action 2"},
		{`{"typoTolerance":{"enabled":false,"disableOnAttributes":[]}}`, "axtion", ""},
	} {
		if c.change != "" {
			l.put("films", c.change)
		}
		got, err := search(context.Background(), &FacetRequest{FacetQuery: &c.query})
		if err != nil || got != c.want {
			t.Errorf("%s %q: %s, want %s (%v)", c.change, c.query, got, c.want, err)
		}
	}

	// The spelling is that of the document with the lowest number, found or not. Values are listed in search order.
	l.put("films", `{"faceting":{"sortFacetValuesBy":{"*":"alpha"},"maxValuesPerFacet":100}}`,
		`{"id":1,"genre":"other"}`, `{"id":2,"genre":["ACTION","Ça","cab","Cz"]}`, `{"id":7,"genre":"action"}`)
	for _, c := range []struct{ order, query, want string }{
		{"alpha", "action", "ACTION 2"},
		{"alpha", "c", "Ça 1, cab 1, Comedy 2, Crime 1, Cz 1"},
		{"count", "c", "Comedy 2, Ça 1, cab 1, Cz 1, Crime 1"},
	} {
		l.put("films", `{"faceting":{"sortFacetValuesBy":{"*":"`+c.order+`"}}}`)
		got, err := search(context.Background(), &FacetRequest{FacetQuery: &c.query})
		if err != nil || got != c.want {
			t.Errorf("%s %q: %s, want %s (%v)", c.order, c.query, got, c.want, err)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := search(ctx, &FacetRequest{}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled request: %v", err)
	}
}
