package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// fixture is an index of random documents, written in several batches so that it has several segments and deleted rows, and the same
// documents for the reference implementation, in the order of their ids in the index.
type fixture struct {
	ix   *index.Index
	docs []map[string]any
}

func newFixture(t *testing.T, r *rand.Rand, change string) *fixture {
	t.Helper()
	fs := vfs.NewMem()
	if err := fs.MkdirAll("payloads"); err != nil {
		t.Fatal(err)
	}
	catalog, err := index.OpenCatalog("indexes", index.Options{FS: fs, Logger: slog.New(slog.DiscardHandler), Now: time.Now, MaxIndexingMemory: 1 << 26, MaxIndexingThreads: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { catalog.Close() })
	ix, err := catalog.Create("random", "id", 0)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{ix: ix}
	batch := uint64(1)
	apply := func(ops ...index.Op) {
		t.Helper()
		results, err := ix.Apply(context.Background(), batch, ops, func(int, index.Step) {})
		if err != nil {
			t.Fatal(err)
		}
		for _, res := range results {
			if res.Err != nil {
				t.Fatal(res.Err)
			}
		}
		batch++
	}
	u, err := settings.ParseUpdate([]byte(change), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	apply(index.UpdateSettings{Update: u})
	byID := map[int]int{}
	for range 3 {
		var lines bytes.Buffer
		n := r.IntN(60) + 1
		for range n {
			doc := randomDocument(r)
			id := doc["id"].(int)
			raw, err := json.Marshal(doc)
			if err != nil {
				t.Fatal(err)
			}
			lines.Write(append(raw, '\n'))
			if at, ok := byID[id]; ok {
				f.docs[at] = doc
			} else {
				byID[id] = len(f.docs)
				f.docs = append(f.docs, doc)
			}
		}
		name := fmt.Sprintf("payloads/%d", batch)
		file, err := fs.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.Write(lines.Bytes()); err != nil {
			t.Fatal(err)
		}
		file.Close()
		apply(index.AddDocuments{Payload: name, Documents: n})
	}
	return f
}

var spellings = []string{"Lyon", "lyon", "LYON", "Liège", "Oslo", "oslo ", "Ulm", "10", ""}

func randomDocument(r *rand.Rand) map[string]any {
	doc := map[string]any{"id": r.IntN(80)}
	value := func() any {
		switch r.IntN(6) {
		case 0:
			return r.IntN(5)
		case 1:
			return float64(r.IntN(8)) / 4
		case 2:
			return r.IntN(2) == 0
		case 3:
			return nil
		default:
			return spellings[r.IntN(len(spellings))]
		}
	}
	for _, field := range []string{"a", "b"} {
		switch r.IntN(4) {
		case 0:
		case 1:
			doc[field] = []any{value(), value()}
		default:
			doc[field] = value()
		}
	}
	return doc
}

// scalars lists the values of a field as columns store them: numbers and folded strings. Empty strings are omitted.
func scalars(v any) (numbers []float64, strs []string) {
	switch x := v.(type) {
	case []any:
		for _, e := range x {
			n, s := scalars(e)
			numbers, strs = append(numbers, n...), append(strs, s...)
		}
	case int:
		numbers = append(numbers, float64(x))
	case float64:
		numbers = append(numbers, x)
	case bool:
		strs = append(strs, fmt.Sprint(x))
	case string:
		if s := strings.TrimSpace(x); s != "" {
			strs = append(strs, strings.ToLower(s))
		}
	}
	return numbers, strs
}

const openFields = `{"filterableAttributes": ["a", "b"], "sortableAttributes": ["a", "b"]}`

func TestFacetsAgreeWithCountingDocuments(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, round))
		f := newFixture(t, r, openFields)
		for _, test := range []struct {
			filter string
			keep   func(numbers []float64, strs []string) bool
		}{
			{"", func([]float64, []string) bool { return true }},
			{"a = lyon", func(_ []float64, s []string) bool { return slices.Contains(s, "lyon") }},
			{"a > 1", func(n []float64, _ []string) bool {
				return slices.ContainsFunc(n, func(x float64) bool { return x > 1 })
			}},
			{"a = true OR a = 0", func(n []float64, s []string) bool { return slices.Contains(s, "true") || slices.Contains(n, 0) }},
		} {
			if test.filter == "a > 1" && slices.ContainsFunc(f.docs, func(d map[string]any) bool { _, s := scalars(d["a"]); return len(s) > 0 }) {
				continue // comparisons include text
			}
			want := map[string]map[string]int{}
			total := 0
			for _, d := range f.docs {
				if n, s := scalars(d["a"]); !test.keep(n, s) {
					continue
				}
				total++
				for _, field := range []string{"a", "b"} {
					n, s := scalars(d[field])
					if want[field] == nil {
						want[field] = map[string]int{}
					}
					slices.Sort(n)
					for _, x := range slices.Compact(n) {
						want[field][string(trimFloat(x))]++
					}
					slices.Sort(s)
					for _, x := range slices.Compact(s) {
						want[field][x]++
					}
				}
			}
			var e *filter.Expr
			if test.filter != "" {
				var err error
				if e, err = filter.Parse(test.filter); err != nil {
					t.Fatal(err)
				}
			}
			var got struct {
				Facets map[string]map[string]int `json:"facetDistribution"`
				Total  int                       `json:"estimatedTotalHits"`
			}
			f.search(t, &Request{Filter: e, Facets: []string{"*"}, Limit: 1}, &got)
			if got.Total != total {
				t.Errorf("round %d, %q: total %d, want %d", round, test.filter, got.Total, total)
			}
			for field, values := range got.Facets {
				folded := map[string]int{}
				for shown, n := range values {
					folded[strings.ToLower(strings.TrimSpace(shown))] += n
					if _, s := scalars(shown); len(s) == 1 && !f.spelled(field, shown) {
						t.Errorf("round %d: no document has the spelling %q", round, shown)
					}
				}
				if fmt.Sprint(folded) != fmt.Sprint(want[field]) && len(folded)+len(want[field]) > 0 {
					t.Errorf("round %d, %q, facet %s:\ngot  %v\nwant %v", round, test.filter, field, folded, want[field])
				}
			}
		}
	}
}

func trimFloat(x float64) []byte { return fmt.Appendf(nil, "%g", x) }

// spelled reports whether a document has exactly this string, or a number or boolean with this text.
func (f *fixture) spelled(field, shown string) bool {
	for _, d := range f.docs {
		values, ok := d[field].([]any)
		if !ok {
			values = []any{d[field]}
		}
		for _, v := range values {
			if v != nil && fmt.Sprint(v) == shown {
				return true
			}
		}
	}
	return false
}

func (f *fixture) search(t *testing.T, r *Request, into any) {
	t.Helper()
	v := held(f.ix.View())
	defer v.Release()
	resp, err := Search(context.Background(), v, r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := resp.AppendJSON(context.Background(), nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(body, into); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
}

// sortValue is the sort key of a document: numbers, then strings, then missing values.
func sortValue(v any, desc bool) (class int, number float64, str string) {
	numbers, strs := scalars(v)
	switch {
	case len(numbers) > 0 && desc:
		return 0, slices.Max(numbers), ""
	case len(numbers) > 0:
		return 0, slices.Min(numbers), ""
	case len(strs) > 0 && desc:
		return 1, 0, slices.Max(strs)
	case len(strs) > 0:
		return 1, 0, slices.Min(strs)
	}
	return 2, 0, ""
}

func TestFetchedPagesAgreeWithSortingDocuments(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for round := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, round))
		f := newFixture(t, r, openFields)
		for _, sort := range [][]string{nil, {"a:asc"}, {"a:desc"}, {"b:asc", "a:desc"}} {
			want := slices.Clone(f.docs)
			slices.SortStableFunc(want, func(x, y map[string]any) int {
				for _, entry := range sort {
					field, desc := entry[:1], strings.HasSuffix(entry, "desc")
					cx, nx, sx := sortValue(x[field], desc)
					cy, ny, sy := sortValue(y[field], desc)
					order := cmp.Or(cmp.Compare(nx, ny), cmp.Compare(sx, sy))
					if desc {
						order = -order
					}
					if c := cmp.Or(cmp.Compare(cx, cy), order); c != 0 {
						return c
					}
				}
				return 0
			})
			offset, limit := r.IntN(len(want)+3), r.IntN(len(want)+3)
			if r.IntN(4) == 0 {
				limit = math.MaxInt
			}
			v := held(f.ix.View())
			body, err := Fetch(context.Background(), nil, v, &FetchRequest{Offset: offset, Limit: limit, Sort: sort, Fields: []string{"id"}})
			v.Release()
			if err != nil {
				t.Fatal(err)
			}
			var got struct {
				Results []struct {
					ID int `json:"id"`
				} `json:"results"`
				Total int `json:"total"`
			}
			if err := json.Unmarshal(body, &got); err != nil {
				t.Fatal(err)
			}
			var ids, wanted []int
			for _, d := range got.Results {
				ids = append(ids, d.ID)
			}
			for _, d := range want[min(offset, len(want)):][:min(limit, max(0, len(want)-offset))] {
				wanted = append(wanted, d["id"].(int))
			}
			if !slices.Equal(ids, wanted) || got.Total != len(want) {
				t.Fatalf("round %d, sort %v, offset %d, limit %d: total %d of %d\ngot  %v\nwant %v", round, sort, offset, limit, got.Total, len(want), ids, wanted)
			}
		}
	}
}

func TestSortEntries(t *testing.T) {
	fields := settings.Resolve([]string{"id", "price"}, mustApply(t, `{"sortableAttributes": ["price", "_geo"]}`), "id")
	for _, test := range []struct {
		entry string
		ok    bool
	}{
		{"price:asc", true}, {"price:desc", true}, {"price.net:asc", true}, {"_geoPoint(1, -2.5):asc", true}, {"_geoPoint(90,180):desc", true},
		{"", false}, {":asc", false}, {"price", false}, {"price:ASC", false}, {"price:asc:desc", false}, {"id:asc", false}, {"pric:asc", false},
		{"_geo:asc", false}, {"_geoPoint:asc", false}, {"_geoPoint(1):asc", false}, {"_geoPoint(91, 0):asc", false}, {"_geoPoint(0, 181):asc", false},
		{"_geoPoint(NaN, 0):asc", false}, {"_geoPoint(0x1p2, 0):asc", false}, {"_geoPoint(1_0, 0):asc", false}, {"_geoRadius(1,2,3):asc", false}, {"_geoDistance:asc", false},
	} {
		keys, err := parseSort(t.Context(), &index.View{Outline: index.Outline{Fields: fields}}, []string{test.entry}, false, "invalid_search_sort")
		if (err == nil) != test.ok {
			t.Errorf("%q: %v, %v", test.entry, keys, err)
		}
	}
}

func mustApply(t *testing.T, change string) *settings.Settings {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(change), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestStringsAreWrittenAsJSON(t *testing.T) {
	for _, s := range []string{"", "plain", "\"quoted\" \\ \n\r\t\x00\x1f", "é中😀", "\xff\xfe broken \xc3", "<script>"} {
		var back string
		if err := json.Unmarshal(jsontext.AppendQuoted(nil, s), &back); err != nil {
			t.Errorf("%q: %v", s, err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); back != want && !strings.Contains(s, "\xff\xfe") {
			t.Errorf("%q is decoded as %q", s, back)
		}
	}
	for x, want := range map[float64]string{0: "0.0", 1: "1.0", 0.5: "0.5", 1e21: "1e21", 1e-7: "1e-7", -3: "-3.0"} {
		if got := string(jsontext.AppendFloat(nil, x)); got != want {
			t.Errorf("%v is written %s, want %s", x, got, want)
		}
	}
	if got := string(jsontext.AppendFloat(nil, float32(0.1))); got != "0.1" {
		t.Errorf("a 32-bit number is written %s", got)
	}
}

// usualCutoff is the default of the program. Tests do not depend on the speed of the machine, so they have an hour.
var usualCutoff = defaultCutoff

func init() { defaultCutoff = time.Hour }

func TestDeadlineOfCutoff(t *testing.T) {
	defer func(d time.Duration) { defaultCutoff = d }(defaultCutoff)
	defaultCutoff = usualCutoff
	l := newLibrary(t)
	start := time.Now()
	for _, c := range []struct {
		settings string
		want     time.Time
	}{
		{`{}`, start.Add(1500 * time.Millisecond)},
		{`{"searchCutoffMs":20}`, start.Add(20 * time.Millisecond)},
		{`{"searchCutoffMs":18446744073709551000}`, time.Time{}},
		{`{"searchCutoffMs":null}`, time.Time{}},
	} {
		l.put("i", c.settings)
		v := held(l.c.Get("i").View())
		if got := deadline(v, start); !got.Equal(c.want) {
			t.Errorf("%s: %v, want %v", c.settings, got, c.want)
		}
		v.Release()
	}
}

// held returns a view that must be available.
func held(v *index.View, err error) *index.View {
	if err != nil {
		panic(err)
	}
	return v
}
