package filter

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/settings"
	"svc/segment"
)

// foreignEnv returns an Env whose foreign keys refer to the corpora of some indexes.
func (c *corpus) foreignEnv(keys map[string]string, indexes map[string]*corpus) Env {
	env := c.env()
	for field, uid := range keys {
		env.ForeignKeys = append(env.ForeignKeys, settings.ForeignKey{FieldName: field, ForeignIndexUID: uid})
	}
	env.Foreign = func(uid string) (*Foreign, error) {
		if f := indexes[uid]; f != nil {
			return &Foreign{Fields: f.fields, Segments: []segment.Live{f.live}}, nil
		}
		return nil, nil
	}
	return env
}

func TestForeign(t *testing.T) {
	authors := newCorpus(t, `{"filterableAttributes":["born","land","_geo"]}`, []string{
		`{"born":1950,"land":"FR","_geo":{"lat":48.9,"lng":2.3}}`, `{"born":1971,"land":"VN"}`, `{"born":1990,"land":"FR"}`, `{"land":"gone"}`,
	})
	authors.live.Deleted = roaring.BitmapOf(3)
	shops := newCorpus(t, `{"filterableAttributes":["town"]}`, []string{`{"town":"Lyon"}`, `{"town":"Hue"}`})
	books := newCorpus(t, `{"filterableAttributes":["author","helpers","year","sold.by","bare","none"]}`, []string{
		`{"author":"0","helpers":["1",2],"year":2001}`,
		`{"author":2,"year":2015,"sold":{"by":0}}`,
		`{"author":1,"helpers":["0"],"year":2020,"sold":[{"by":"1"},{"by":0}]}`,
		`{"author":"3","year":1999}`,
		`{"title":"Foam","bare":{"id":0}}`,
	})
	keys := map[string]string{"author": "authors", "helpers": "authors", "sold.by": "shops", "bare": "shops", "none": "shops", "hidden": "shops", "lost": "nowhere", "year": "nowhere"}
	env := books.foreignEnv(keys, map[string]*corpus{"authors": authors, "shops": shops})
	for _, tt := range []struct {
		filter string
		want   []uint32
	}{
		{`_foreign(author, land = FR)`, []uint32{0, 1}},
		{`_foreign(author, land = fr AND born < 1960)`, []uint32{0}},
		{`_foreign(helpers, land = FR)`, []uint32{0, 2}},
		{`NOT _foreign(author, land = FR)`, []uint32{2, 3, 4}},
		{`_foreign(author, NOT land = FR)`, []uint32{2}},
		{`_foreign(author, land = XX)`, nil},
		{`NOT _foreign(author, land = XX)`, []uint32{0, 1, 2, 3, 4}},
		{`_foreign(author, land = gone)`, nil}, // a deleted document
		{`_foreign(author, born EXISTS) AND year > 2010`, []uint32{1, 2}},
		{`_foreign(author, born = 1950) OR _foreign(helpers, born = 1950) OR year = 1999`, []uint32{0, 2, 3}},
		{`_foreign(author, _geoRadius(48.9, 2.3, 1000))`, []uint32{0}},
		{`_foreign(sold.by, town = Lyon)`, []uint32{1, 2}},
		{`_foreign(sold.by, town = Hue) AND _foreign(author, born = 1971)`, []uint32{2}},
		{`_foreign(bare, town EXISTS)`, nil}, // an object is no id
		{`_foreign(none, town EXISTS)`, nil}, // no document has the field
	} {
		e, err := Parse(tt.filter)
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Bind(env)
		if err != nil {
			t.Errorf("%s: %v", tt.filter, err)
			continue
		}
		if got := b.Rows(books.live).ToArray(); !slices.Equal(got, tt.want) {
			t.Errorf("%s: got %v, want %v", tt.filter, got, tt.want)
		}
	}

	for filter, code := range map[string]apierr.Code{
		`_foreign(title, land = FR)`:                         "invalid_search_filter", // not a foreign key
		`_foreign(hidden, town = Lyon)`:                      "invalid_search_filter", // not filterable here
		`_foreign(author, name = x)`:                         "invalid_search_filter", // not filterable there
		`year = 1 AND NOT _foreign(author, land = 1 OR x=1)`: "invalid_search_filter",
		`_foreign(lost, town = Lyon)`:                        "index_not_found", // not filterable either
		`_foreign(year, town = Lyon)`:                        "index_not_found",
		`_foreign(author, land CONTAINS x)`:                  "feature_not_enabled",
	} {
		e, err := Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		env := env
		env.Contains = false
		if _, err := e.Bind(env); err == nil || apierr.From(err).Code != code {
			t.Errorf("%s: got %v, want code %s", filter, err, code)
		}
	}
	e, err := Parse(`year = 1 AND _foreign(author, born > 1 AND name = x)`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Bind(env); err == nil || !strings.Contains(err.Error(), "`authors`") || !strings.Contains(err.Error(), "1:44") {
		t.Errorf("the error must name the index and the position: %v", err)
	}
}

// TestForeignLimit selects up to the limit and beyond: in one part, in overlapping parts, in several indexes.
func TestForeignLimit(t *testing.T) {
	var docs []string
	for i := range 1500 {
		docs = append(docs, fmt.Sprintf(`{"n":%d}`, i))
	}
	many := newCorpus(t, `{"filterableAttributes":["n"]}`, docs)
	c := newCorpus(t, `{"filterableAttributes":["a","b"]}`, []string{`{"a":0,"b":99}`, `{"a":120}`})
	env := c.foreignEnv(map[string]string{"a": "one", "b": "two"}, map[string]*corpus{"one": many, "two": many})
	for filter, ok := range map[string]bool{
		`_foreign(a, n < 1000)`:                                     true,
		`_foreign(a, n <= 1000)`:                                    false,
		`NOT _foreign(a, n <= 1000)`:                                false,
		`_foreign(a, n < 600) OR _foreign(a, n 400 TO 999)`:         true,
		`_foreign(a, n < 600) OR _foreign(a, n 400 TO 1000)`:        false,
		`_foreign(a, n < 600) AND NOT _foreign(a, n > 600)`:         false,
		`_foreign(a, n < 1000) AND _foreign(b, n 500 TO 1499)`:      true,
		`_foreign(a, n < 1000) AND _foreign(b, n >= 499)`:           false,
		`_foreign(a, n = 0) OR (a = 1 AND NOT _foreign(b, n >= 0))`: false,
	} {
		e, err := Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		if _, err = e.Bind(env); (err == nil) != ok || err != nil && apierr.From(err).Code != "invalid_search_filter" {
			t.Errorf("%s: %v", filter, err)
		}
	}
}

// TestForeignAgainstDocuments compares random filters with a decision from the documents. Some foreign documents are deleted.
func TestForeignAgainstDocuments(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for range 40 {
		var people []string
		for range 1 + r.IntN(40) {
			people = append(people, fmt.Sprintf(`{"x":%d}`, r.IntN(10)))
		}
		there := newCorpus(t, `{"filterableAttributes":["x"]}`, people)
		there.live.Deleted = roaring.New()
		for row := range people {
			if r.IntN(5) == 0 {
				there.live.Deleted.Add(uint32(row))
			}
		}
		id := func() string { // of a person, or unknown
			if n := r.IntN(len(people) + 3); r.IntN(2) == 0 {
				return fmt.Sprint(n)
			} else {
				return fmt.Sprintf(`"%d"`, n)
			}
		}
		var docs []string
		for range 30 {
			switch r.IntN(4) {
			case 0:
				docs = append(docs, `{"y":1}`)
			case 1:
				docs = append(docs, `{"who":[`+id()+`,`+id()+`,null]}`)
			default:
				docs = append(docs, `{"who":`+id()+`}`)
			}
		}
		here := newCorpus(t, `{"filterableAttributes":["who"]}`, docs)
		low, high := r.IntN(10), r.IntN(10)
		e, err := Parse(fmt.Sprintf(`_foreign(who, x %d TO %d)`, low, high))
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Bind(here.foreignEnv(map[string]string{"who": "people"}, map[string]*corpus{"people": there}))
		if err != nil {
			t.Fatal(err)
		}
		rows := b.Rows(here.live)
		for row, doc := range here.docs {
			want := false
			named, many := doc["who"].([]any)
			if !many {
				named = []any{doc["who"]}
			}
			for _, one := range named {
				for n, person := range there.docs {
					x, _ := strconv.Atoi(string(person["x"].(json.Number)))
					want = want || fmt.Sprint(one) == fmt.Sprint(n) && !there.live.Deleted.Contains(uint32(n)) && low <= x && x <= high
				}
			}
			if rows.Contains(uint32(row)) != want {
				t.Errorf("%v with %v to %v in %v without %v: got %t", doc, low, high, people, there.live.Deleted, !want)
			}
		}
	}
}
