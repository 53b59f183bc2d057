package search

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/apierr"
	"svc/internal/filter"
)

func TestPassages(t *testing.T) {
	l := newLibrary(t)
	l.put("books", `{"displayedAttributes":["title"],"filterableAttributes":["year"],"sortableAttributes":["year"]}`,
		`{"id":1,"title":"Solaris","year":1961}`, `{"id":2,"title":"Solaris again","year":1972,"_vectors":{}}`, `{"id":3,"title":"Eden"}`)
	passages := func(r Request) (string, string, error) {
		v := held(l.c.Get("books").View())
		defer v.Release()
		text, documents, err := Passages(context.Background(), v, &r)
		return text, string(documents), err
	}
	f, err := filter.Parse("year > 1970")
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		chat            string
		r               Request
		text, documents string
		code            string
	}{
		{`{}`, Request{Query: "solaris", Limit: 20}, "id: 1\ntitle: Solaris\nyear: 1961\n\nid: 2\ntitle: Solaris again\nyear: 1972\n", `[{"title":"Solaris"},{"title":"Solaris again"}]`, ""},
		{`{}`, Request{Query: "solaris", Limit: 1}, "id: 1\ntitle: Solaris\nyear: 1961\n", `[{"title":"Solaris"}]`, ""},
		{`{}`, Request{Query: "nothing", Limit: 20}, "", `[]`, ""},
		{`{"documentTemplate":"{{doc.title}} of {{doc.year}}"}`, Request{Query: "solaris", Sort: []string{"year:desc"}, Limit: 20}, "Solaris again of 1972\nSolaris of 1961", `[{"title":"Solaris again"},{"title":"Solaris"}]`, ""},
		{`{"documentTemplate":"{{doc.title}} of {{doc.year}}"}`, Request{Filter: f, Limit: 20}, "Solaris again of 1972", `[{"title":"Solaris again"}]`, ""},
		{`{"documentTemplate":"é{{doc.title}}","documentTemplateMaxBytes":3}`, Request{Query: "solaris", Limit: 20}, "éS\néS", `[{"title":"Solaris"},{"title":"Solaris again"}]`, ""},
		{`{"documentTemplate":"éé{{doc.title}}","documentTemplateMaxBytes":3}`, Request{Query: "solaris", Limit: 1}, "é", `[{"title":"Solaris"}]`, ""},
		{`{"documentTemplate":"{{doc.year}}","documentTemplateMaxBytes":null}`, Request{Query: "eden", Limit: 20}, "", "", "invalid_chat_setting_document_template"},
		{`{"documentTemplate":"{{doc.year}}"}`, Request{Query: "solaris", Sort: []string{"title:asc"}, Limit: 20}, "", "", "invalid_search_sort"},
	} {
		l.put("books", `{"chat":`+tt.chat+`}`)
		text, documents, err := passages(tt.r)
		code := ""
		if e := new(apierr.Error); errors.As(err, &e) {
			code = string(e.Code)
		}
		if text != tt.text || documents != tt.documents || code != tt.code || (err != nil) != (code != "") {
			t.Errorf("%s %+v: %q %s %v", tt.chat, tt.r.Query, text, documents, err)
		}
	}
	// The text for a model is bounded whatever the settings allow.
	l.put("books", `{"chat":{"documentTemplate":"{{doc.text}}","documentTemplateMaxBytes":10000000},"displayedAttributes":["id"]}`)
	var many []string
	for i := range 8 {
		many = append(many, fmt.Sprintf(`{"id":%d,"text":"long %s"}`, i+10, strings.Repeat("x", 300<<10)))
	}
	l.put("books", "", many...)
	text, documents, err := passages(Request{Query: "long", Limit: 100})
	if err != nil || len(text) > 2*maxPassages || documents != `[{"id":10},{"id":11},{"id":12},{"id":13}]` {
		t.Errorf("%d bytes of %s %v", len(text), documents, err)
	}
	// The template may read attributes that are not displayed.
	l.put("books", `{"chat":{"documentTemplate":"{{doc.title}}"},"displayedAttributes":[]}`)
	if text, documents, err = passages(Request{Query: "eden", Limit: 1}); err != nil || text != "Eden" || documents != `[{}]` {
		t.Errorf("%q of %s %v", text, documents, err)
	}
}

// TestHintsAgreeWithCountingDocuments compares hints for random documents with a reference count.
func TestHintsAgreeWithCountingDocuments(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	cut := 0
	for round := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, round))
		f := newFixture(t, r, openFields)
		for _, text := range []string{"", "a = lyon"} {
			var e *filter.Expr
			if text != "" {
				var err error
				if e, err = filter.Parse(text); err != nil {
					t.Fatal(err)
				}
			}
			counts := map[string]map[string]int{"a": {}, "b": {}}
			for _, d := range f.docs {
				if _, s := scalars(d["a"]); text != "" && !slices.Contains(s, "lyon") {
					continue
				}
				for field, of := range counts {
					n, s := scalars(d[field])
					for _, x := range n {
						s = append(s, strconv.FormatFloat(x, 'f', -1, 64))
					}
					slices.Sort(s)
					for _, v := range slices.Compact(s) {
						of[v]++
					}
				}
			}
			v := held(f.ix.View())
			hints, err := FilterHints(t.Context(), v, e, false, nil)
			v.Release()
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hints {
				want := make([]int, 0, len(counts[h.Field]))
				for _, n := range counts[h.Field] {
					want = append(want, n)
				}
				slices.SortFunc(want, func(a, b int) int { return b - a })
				if len(want) > hintedValues {
					cut++
				}
				want = want[:min(len(want), hintedValues)]
				var got []int
				for _, value := range h.Values {
					got = append(got, counts[h.Field][strings.ToLower(strings.TrimSpace(value))])
				}
				if !slices.Equal(got, want) {
					t.Errorf("round %d, %q, %s: %q have the counts %v, want %v", round, text, h.Field, h.Values, got, want)
				}
				delete(counts, h.Field)
			}
			for field, of := range counts {
				if len(of) > 0 {
					t.Errorf("round %d, %q: no hint for %s: %v", round, text, field, of)
				}
			}
		}
	}
	if cut == 0 {
		t.Error("no field has too many values")
	}
}
