package filter

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/geo"
	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// corpus is a segment of some documents, with its settings.
type corpus struct {
	fields *settings.Fields
	live   segment.Live
	docs   []map[string]any
}

// writer adds the values of documents to a builder, as an index does.
type writer struct {
	b   *segment.Builder
	ids map[string]int
}

func (w *writer) Field(path []byte) int {
	id, ok := w.ids[string(path)]
	if !ok {
		id = len(w.ids)
		w.ids[string(path)] = id
	}
	w.b.Present(segment.FieldID(id))
	return id
}
func (w *writer) Visit(int) {}
func (w *writer) String(f int, s []byte, _ []int) {
	w.b.String(segment.FieldID(f), text.FacetKey(nil, s), s)
}
func (w *writer) Number(f int, _ []byte, x numeric.Value, _ []int) { w.b.Number(segment.FieldID(f), x) }
func (w *writer) Bool(f int, b bool, _ []int) {
	s := []byte(strconv.FormatBool(b))
	w.b.String(segment.FieldID(f), s, s)
}
func (w *writer) Null(f int)  { w.b.Null(segment.FieldID(f)) }
func (w *writer) Empty(f int) { w.b.Empty(segment.FieldID(f)) }

func newCorpus(t *testing.T, settingsBody string, docs []string) *corpus {
	t.Helper()
	c := &corpus{}
	w := &writer{b: segment.NewBuilder(segment.BuilderOptions{}), ids: map[string]int{}}
	for i, doc := range docs {
		var tree map[string]any
		d := json.NewDecoder(strings.NewReader(doc))
		d.UseNumber()
		if err := d.Decode(&tree); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		c.docs = append(c.docs, tree)
		w.b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte(doc))
		if err := document.Walk([]byte(doc), w); err != nil {
			t.Fatalf("%s: %v", doc, err)
		}
		if lat, lng, ok := pointOf(tree); ok {
			w.b.Geo(lat, lng)
		}
		w.b.EndDoc()
	}
	r := written(t, w.b)
	c.live = segment.Live{Reader: r}
	names := make([]string, len(w.ids))
	for name, id := range w.ids {
		names[id] = name
	}
	u, err := settings.ParseUpdate([]byte(settingsBody), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	c.fields = settings.Resolve(names, s, "id")
	return c
}

func (c *corpus) env() Env {
	return Env{Fields: c.fields, Code: "invalid_search_filter", Contains: true}
}

func TestRows(t *testing.T) {
	shoes := newCorpus(t, `{"filterableAttributes":["brand","price","fit","tags","sale","marks"]}`, []string{
		`{"brand":"Corso","price":79.9,"fit":42,"tags":["run","light"],"sale":true}`,
		`{"brand":"Nanga","price":120,"fit":44,"tags":["hike"],"sale":false}`,
		`{"brand":"Corso","price":-5,"fit":38,"tags":[],"sale":false}`,
		`{"brand":"Ottava","price":0,"fit":40,"tags":["run","trail"]}`,
		`{"brand":"corso sport","price":79.95,"fit":42,"tags":["run"],"sale":true}`,
		`{"price":null,"tags":null,"marks":[1,20,100]}`,
	})
	voids := newCorpus(t, `{"filterableAttributes":["v","never"]}`, []string{
		`{"v":null}`, `{"v":""}`, `{"v":[]}`, `{"v":{}}`, `{"v":"x"}`, `{"v":0}`, `{"v":false}`, `{"v":[null]}`, `{"v":["","x"]}`, `{"v":[[]]}`, `{}`, `{"v":[{}]}`,
	})
	mixed := newCorpus(t, `{"filterableAttributes":["v"]}`, []string{
		`{"v":42}`, `{"v":"42"}`, `{"v":"042"}`, `{"v":42.0}`, `{"v":"42.0"}`, `{"v":1000}`, `{"v":"1e3"}`, `{"v":"abc"}`, `{"v":"NaN"}`, `{"v":"infinity"}`,
		`{"v":"-7"}`, `{"v":-7}`, `{"v":[3,"3","x"]}`, `{"v":-0.0}`,
	})
	greek := newCorpus(t, `{"filterableAttributes":["n"]}`, []string{`{"id":0,"n":"Οδυσσεύς"}`, `{"id":1,"n":"ΟΔΥΣ"}`, `{"id":2,"n":"ΑΔΥΣ"}`, `{"id":3,"n":"Αίας"}`})
	names := newCorpus(t, `{"filterableAttributes":["n"]}`, []string{
		`{"n":"Élodie"}`, `{"n":"elodie"}`, `{"n":"ELODIE"}`, `{"n":"E\u0301lodie"}`, `{"n":"Straße"}`, `{"n":" Elodie "}`, `{"n":"ﬁn"}`, `{"n":"Привет"}`, `{"n":["sea","blue lagoon"]}`, `{"n":7}`,
	})
	nested := newCorpus(t, `{"filterableAttributes":["who","a.b"]}`, []string{
		`{"who":{"name":"Ada","age":36}}`, `{"who":"Ada"}`, `{"who":[{"name":"Ada"},{"name":"Cy"}]}`, `{"a":{"b":5}}`, `{"a.b":5}`, `{"a":[{"b":1},{"b":5}]}`,
	})
	stamps := newCorpus(t, `{"filterableAttributes":["at"]}`, []string{
		`{"at":"2026-03-01T00:00:00"}`, `{"at":"2026-03-01T12:30:00"}`, `{"at":"2026-02-28T23:59:59"}`, `{"at":"2026-03-02T00:00:00Z"}`,
	})
	large := newCorpus(t, `{"filterableAttributes":["n"]}`, []string{
		`{"n":9007199254740992}`, `{"n":9007199254740993}`, `{"n":9007199254740994}`, `{"n":-9007199254740993}`, `{"n":18446744073709551615}`, `{"n":18446744073709551616}`,
		`{"n":9223372036854775807}`, `{"n":9007199254740992.0}`,
	})
	towns := newCorpus(t, `{"filterableAttributes":["_geo","pop"]}`, []string{
		`{"_geo":{"lat":50.6292,"lng":3.0573},"pop":236}`, `{"_geo":{"lat":51.0543,"lng":3.7174},"pop":265}`, `{"_geo":{"lat":-18.1416,"lng":178.4419},"pop":93}`,
		`{"_geo":{"lat":-13.8506,"lng":-171.7513},"pop":37}`, `{"_geo":null,"pop":5}`,
	})
	tests := []struct {
		c      *corpus
		filter string
		want   []uint32
	}{
		{shoes, `brand = corso`, []uint32{0, 2}},
		{shoes, `brand != Corso`, []uint32{1, 3, 4, 5}},
		{shoes, `price = 79.90`, []uint32{0}},
		{shoes, `price != 0`, []uint32{0, 1, 2, 4, 5}},
		{shoes, `tags = run`, []uint32{0, 3, 4}},
		{shoes, `tags != run`, []uint32{1, 2, 5}},
		{shoes, `sale = TRUE`, []uint32{0, 4}},
		{shoes, `price > -10 AND price < 1`, []uint32{2, 3}},
		{shoes, `NOT price > 79.9`, []uint32{0, 2, 3, 5}},
		{shoes, `price 79.9 TO 79.95`, []uint32{0, 4}},
		{shoes, `price 80 TO 0`, nil},
		{shoes, `brand a TO d`, []uint32{0, 2, 4}},
		{shoes, `brand 'Corso' TO 'Corso'`, []uint32{0, 2}}, {shoes, `brand > 'CORSO'`, []uint32{1, 3, 4}}, {shoes, `brand >= ' Corso '`, []uint32{0, 1, 2, 3, 4}},
		{shoes, `brand < NANGA`, []uint32{0, 2, 4}}, {shoes, `brand <= NANGA`, []uint32{0, 1, 2, 4}}, {shoes, `NOT brand <= NANGA`, []uint32{3, 5}},
		{names, `n 'ÉLODIE' TO 'ÉLODIE'`, []uint32{0, 3}}, {names, `n > 'Élodie'`, []uint32{4, 6, 7, 8}}, {names, `n < Elodie`, []uint32{8}},
		{stamps, `at > '2026-03-01T00:00:00'`, []uint32{1, 3}}, {stamps, `at <= '2026-03-01T00:00:00'`, []uint32{0, 2}},
		{stamps, `at '2026-03-01T00:00:00' TO '2026-03-01T12:30:00'`, []uint32{0, 1}}, {stamps, `at >= '2026-03-02t00:00:00z'`, []uint32{3}},
		{large, `n = 9007199254740993`, []uint32{1}}, {large, `n != 9007199254740993`, []uint32{0, 2, 3, 4, 5, 6, 7}}, {large, `n > 9007199254740992`, []uint32{1, 2, 4, 5, 6}},
		{large, `n >= 9007199254740992.0`, []uint32{0, 1, 2, 4, 5, 6, 7}}, {large, `n < 9007199254740993`, []uint32{0, 3, 7}}, {large, `n <= 9007199254740993`, []uint32{0, 1, 3, 7}},
		{large, `n 9007199254740993 TO 9007199254740994`, []uint32{1, 2}}, {large, `n IN [9007199254740993, 18446744073709551615, -9007199254740993]`, []uint32{1, 3, 4}},
		{large, `n NOT IN [9007199254740993]`, []uint32{0, 2, 3, 4, 5, 6, 7}}, {large, `n = 18446744073709551616`, []uint32{5}}, {large, `n > 18446744073709551614`, []uint32{4, 5}},
		{large, `n = '+9223372036854775807'`, []uint32{6}}, {large, `n > 9223372036854775806 AND n < 9223372036854775808`, []uint32{6}}, {large, `n = 009007199254740993`, []uint32{1}},
		{large, `n < 1e400`, []uint32{0, 1, 2, 3, 4, 5, 6, 7}}, {large, `n >= 1e400`, nil}, {large, `n > -1e400`, []uint32{0, 1, 2, 3, 4, 5, 6, 7}}, {large, `n -1e999 TO 0`, []uint32{3}},
		{shoes, `marks > 99`, []uint32{5}}, {shoes, `marks > 100`, nil}, {shoes, `marks >= 100`, []uint32{5}}, {shoes, `marks < 1`, nil}, {shoes, `marks <= 1`, []uint32{5}},
		{shoes, `fit IN [42, 44,]`, []uint32{0, 1, 4}},
		{shoes, `brand NOT IN [Corso, Nanga]`, []uint32{3, 4, 5}},
		{shoes, `brand IN []`, nil}, {shoes, `brand NOT IN []`, []uint32{0, 1, 2, 3, 4, 5}},
		{shoes, `sale NOT EXISTS`, []uint32{3, 5}},
		{shoes, `brand = Corso AND (price < 0 OR price > 1000) AND NOT sale = true`, []uint32{2}},
		{voids, `v IS NULL`, []uint32{0}}, {voids, `v IS EMPTY`, []uint32{1, 2, 3}},
		{voids, `v IS NOT EMPTY`, []uint32{0, 4, 5, 6, 7, 8, 9, 10, 11}},
		{voids, `v EXISTS`, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11}},
		{voids, `v = ''`, nil}, {voids, `v = '  '`, nil}, {voids, `v IN ['', x]`, []uint32{4, 8}}, {voids, `v != ''`, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{voids, `v >= ''`, []uint32{4, 6, 8}}, {voids, `v STARTS WITH ''`, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11}}, {voids, `v CONTAINS ''`, []uint32{4, 6, 8}},
		{voids, `never = 1`, nil}, {voids, `never != 1`, nil}, {voids, `NOT never = 1`, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}},
		{voids, `never NOT EXISTS AND v = 0`, []uint32{5}},
		{mixed, `v = 42`, []uint32{0, 1, 3}}, {mixed, `v = 042`, []uint32{0, 2, 3}}, {mixed, `v = 42.0`, []uint32{0, 3, 4}}, {mixed, `v = 1e3`, []uint32{5, 6}},
		{mixed, `v = NaN`, []uint32{8}}, {mixed, `v = inf`, nil}, {mixed, `v = infinity`, []uint32{9}}, {mixed, `v = 0x2A`, nil},
		{mixed, `v > 40`, []uint32{0, 1, 3, 4, 5, 7, 8, 9, 12}}, {mixed, `v < 0`, []uint32{10, 11}}, {mixed, `v 40 TO 1001`, []uint32{0, 3, 5}}, {mixed, `v > abb`, []uint32{7, 8, 9, 12}},
		{mixed, `v = 0`, []uint32{13}}, {mixed, `v = -0`, []uint32{13}}, {mixed, `v = 3`, []uint32{12}},
		{greek, `n STARTS WITH 'ΟΔΥΣ'`, []uint32{0, 1}}, {greek, `n STARTS WITH οδυς`, []uint32{0, 1}}, {greek, `n CONTAINS 'ΔΥΣ'`, []uint32{0, 1, 2}}, {greek, `n NOT CONTAINS δυσ`, []uint32{3}},
		{greek, `n CONTAINS 'ΣΣ'`, []uint32{0}}, {greek, `n = 'ΑΔΥΣ'`, []uint32{2}},
		{names, `n = elodie`, []uint32{1, 2, 5}}, {names, `n = 'ÉLODIE'`, []uint32{0, 3}}, {names, `n = strasse`, nil}, {names, `n = fin`, []uint32{6}}, {names, `n = ПРИВЕТ`, []uint32{7}},
		{names, `n STARTS WITH BLUE`, []uint32{8}}, {names, `n STARTS WITH 7`, nil}, {names, `n CONTAINS lag`, []uint32{8}}, {names, `n CONTAINS ' '`, []uint32{8}}, {names, `n CONTAINS 'E '`, []uint32{8}}, {names, `n NOT CONTAINS ' '`, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 9}},
		{names, `n STARTS WITH 'blue '`, []uint32{8}}, {names, `n STARTS WITH 'sea '`, nil}, {names, `n STARTS WITH ' SEA'`, []uint32{8}}, {names, `n STARTS WITH ' '`, nil}, {names, `n CONTAINS elo`, []uint32{1, 2, 5}}, {names, `n NOT CONTAINS l`, []uint32{4, 6, 7, 9}},
		{nested, `who.name = Ada`, []uint32{0, 2}}, {nested, `who = Ada`, []uint32{1}}, {nested, `who EXISTS`, []uint32{0, 1, 2}}, {nested, `a.b = 5`, []uint32{3, 4, 5}}, {nested, `who.age > 4`, []uint32{0}},
		{towns, `_geoRadius(50.6292, 3.0573, 66000)`, []uint32{0}}, {towns, `_geoRadius(50.6292, 3.0573, 70000)`, []uint32{0, 1}},
		{towns, `_geoBoundingBox([-10, -170], [-20, 175])`, []uint32{2, 3}}, {towns, `NOT _geoBoundingBox([51.5, 4], [50, 2]) AND pop > 36`, []uint32{2, 3}}, {towns, `_geo.lat > 0`, []uint32{0, 1}},
	}
	for _, test := range tests {
		e, err := Parse(test.filter)
		if err != nil {
			t.Errorf("%s: %v", test.filter, err)
			continue
		}
		b, err := e.Bind(test.c.env())
		if err != nil {
			t.Errorf("%s: %v", test.filter, err)
			continue
		}
		if got := b.Rows(test.c.live).ToArray(); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.filter, got, test.want)
		}
	}
	var none *Expr
	b, err := none.Bind(shoes.env())
	if err != nil || b.Rows(shoes.live).GetCardinality() != 6 {
		t.Errorf("no filter: %v", err)
	}
}

func TestBind(t *testing.T) {
	c := newCorpus(t, `{"filterableAttributes":[{"attributePatterns":["eq"]},{"attributePatterns":["cmp"],"features":{"filter":{"equality":false,"comparison":true}}},`+
		`{"attributePatterns":["face"],"features":{"facetSearch":true,"filter":{"equality":false}}},"all"]}`, []string{`{"eq":1,"cmp":1,"face":1,"all":1,"other":1}`})
	allowed := map[string]string{ // the attributes that allow each operation
		`= 1`: "eq all", `!= 1`: "eq all", `IN [1]`: "eq all", `NOT IN [1]`: "eq all", `CONTAINS a`: "eq all", `STARTS WITH a`: "eq all",
		`> 1`: "cmp all", `>= 1`: "cmp all", `< 1`: "cmp all", `<= 1`: "cmp all", `1 TO 2`: "cmp all",
		`EXISTS`: "eq cmp all", `NOT EXISTS`: "eq cmp all", `IS NULL`: "eq cmp all", `IS NOT EMPTY`: "eq cmp all",
	}
	for operation, attrs := range allowed {
		for _, attr := range []string{"eq", "cmp", "face", "all", "all.below", "other", "absent"} {
			e, err := Parse("NOT (x = 1 AND " + attr + " " + operation + ")")
			if err != nil {
				t.Fatal(err)
			}
			e = &Expr{root: e.root.(*not).kid.(*junction).kids[1]}
			_, err = e.Bind(c.env())
			want := slices.Contains(strings.Fields(attrs), strings.TrimSuffix(attr, ".below"))
			if (err == nil) != want {
				t.Errorf("%s: %v", e, err)
			}
			if err != nil && apierr.From(err).Code != "invalid_search_filter" {
				t.Errorf("%s: code %s", e, apierr.From(err).Code)
			}
		}
	}
	for filter, code := range map[string]apierr.Code{
		`all = 1 OR other = 1`:                      "invalid_document_filter",
		`_geoRadius(1, 2, 3)`:                       "invalid_document_filter",
		`NOT _geoBoundingBox([1, 1], [0, 0])`:       "invalid_document_filter",
		`_geoPolygon([1, 2], [3, 4], [5, 6])`:       "invalid_document_filter",
		`other CONTAINS x`:                          "feature_not_enabled",
		`_shard = x`:                                "invalid_search_filter",
		`other = 1 AND _vectors EXISTS`:             "feature_not_enabled",
		`all = 1 AND NOT _foreign(all, absent = 1)`: "feature_not_enabled",
	} {
		e, err := Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Bind(Env{Fields: c.fields, Code: "invalid_document_filter"}); err == nil || apierr.From(err).Code != code {
			t.Errorf("%s: got %v, want code %s", filter, err, code)
		}
	}
}

// values holds the values of a document at a path, found by walking its JSON.
type values struct {
	exists, null, empty bool
	numbers             []*big.Rat
	texts               []string // normalised
}

func (v *values) add(x any, direct bool, path, want string) {
	switch x := x.(type) {
	case map[string]any:
		if len(x) == 0 && direct && path == want {
			v.empty = true
		}
		for key, member := range x {
			v.visit(path+"."+key, member, direct, want)
		}
	case []any:
		if len(x) == 0 && direct && path == want {
			v.empty = true
		}
		for _, item := range x {
			v.add(item, false, path, want)
		}
	default:
		if path != want {
			return
		}
		switch x := x.(type) {
		case nil:
			v.null = v.null || direct
		case json.Number:
			n, _ := exactly(string(x))
			v.numbers = append(v.numbers, n)
		case bool:
			v.texts = append(v.texts, fmt.Sprint(x))
		case string:
			v.empty = v.empty || direct && x == ""
			if key := string(text.FacetKey(nil, []byte(x))); key != "" {
				v.texts = append(v.texts, key)
			}
		}
	}
}

// visit records a member. It is direct if there is no array on its path.
func (v *values) visit(path string, x any, direct bool, want string) {
	if path == want {
		v.exists = true
	}
	v.add(x, direct, path, want)
}

// matches is the reference implementation of Bind and Rows: it decides one document from its JSON.
func (c *corpus) matches(n node, doc map[string]any) bool {
	switch n := n.(type) {
	case *junction:
		for _, k := range n.kids {
			if c.matches(k, doc) == n.or {
				return n.or
			}
		}
		return !n.or
	case *not:
		return !c.matches(n.kid, doc)
	case *radius:
		lat, lng, ok := pointOf(doc)
		return ok && geo.Distance(n.center.lat, n.center.lng, lat, lng) <= n.meters
	case *box:
		lat, lng, ok := pointOf(doc)
		left, right := n.bottomLeft.lng, n.topRight.lng
		inside := left <= lng && lng <= right
		if left > right {
			inside = lng >= left || lng <= right
		}
		return ok && n.bottomLeft.lat <= lat && lat <= n.topRight.lat && inside
	}
	cond := n.(*condition)
	var v values
	for key, member := range doc {
		v.visit(key, member, true, cond.attr)
	}
	fold := func(s string) string { return string(text.FacetKey(nil, []byte(s))) }
	anyNumber := func(ok func(x *big.Rat) bool) bool { return slices.ContainsFunc(v.numbers, ok) }
	anyText := func(ok func(s string) bool) bool { return slices.ContainsFunc(v.texts, ok) }
	equals := func(value string) bool {
		x, isNumber := exactly(value)
		key := fold(value)
		return isNumber && anyNumber(func(y *big.Rat) bool { return y.Cmp(x) == 0 }) || anyText(func(s string) bool { return s == key })
	}
	switch cond.op {
	case equal, in:
		return slices.ContainsFunc(cond.values, equals)
	case notEqual:
		_, known := c.fields.ID(cond.attr)
		return known && !equals(cond.values[0])
	case exists:
		return v.exists
	case isNull:
		return v.null
	case isEmpty:
		return v.empty
	case contains:
		key := string(text.FacetPart(nil, []byte(cond.values[0])))
		return anyText(func(s string) bool { return strings.Contains(s, key) })
	case startsWith:
		if cond.values[0] == "" {
			return v.exists
		}
		key := string(text.FacetPart(nil, []byte(strings.TrimLeft(cond.values[0], " "))))
		return key != "" && anyText(func(s string) bool { return strings.HasPrefix(s, key) })
	case between:
		low, ok1 := exactly(cond.values[0])
		high, ok2 := exactly(cond.values[1])
		return ok1 && ok2 && anyNumber(func(x *big.Rat) bool { return low.Cmp(x) <= 0 && x.Cmp(high) <= 0 }) ||
			anyText(func(s string) bool { return fold(cond.values[0]) <= s && s <= fold(cond.values[1]) })
	}
	value := cond.values[0]
	bound, isNumber := exactly(value)
	holds := map[op]func(order int) bool{
		greater: func(o int) bool { return o > 0 }, greaterOrEqual: func(o int) bool { return o >= 0 },
		less: func(o int) bool { return o < 0 }, lessOrEqual: func(o int) bool { return o <= 0 },
	}[cond.op]
	return isNumber && anyNumber(func(x *big.Rat) bool { return holds(x.Cmp(bound)) }) ||
		anyText(func(s string) bool { return holds(strings.Compare(s, fold(value))) })
}

// exactly parses a number: a 64-bit integer exactly, any other number as a float64.
func exactly(s string) (*big.Rat, bool) {
	if strings.ContainsAny(s, "xXpP_nN") {
		return nil, false
	}
	if n, ok := new(big.Int).SetString(s, 10); ok && (n.IsInt64() || n.IsUint64()) {
		return new(big.Rat).SetInt(n), true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, false
	}
	return new(big.Rat).SetFloat64(f), true
}

func pointOf(doc map[string]any) (lat, lng float64, ok bool) {
	geo, ok := doc["_geo"].(map[string]any)
	if !ok {
		return 0, 0, false
	}
	lat, _ = geo["lat"].(json.Number).Float64()
	lng, _ = geo["lng"].(json.Number).Float64()
	return lat, lng, true
}

// random generates documents and filters that often match.
type random struct {
	*rand.Rand
	large []uint64 // integers with others close to them
}

func newRandom(seed uint64) random {
	return random{rand.New(rand.NewPCG(seed, 0)), []uint64{1 << 53, 1 << 60, 1 << 63, math.MaxUint64 - 1}}
}

func (r random) pick(from ...string) string { return from[r.IntN(len(from))] }

func (r random) scalar() string {
	switch r.IntN(10) {
	case 9:
		n := new(big.Int).SetUint64(r.large[r.IntN(len(r.large))] + uint64(r.IntN(5)) - 2)
		if r.IntN(4) == 0 {
			n.Neg(n)
		}
		return n.String() + r.pick("", "", "", ".0", "e0")
	case 0:
		return "null"
	case 1:
		return r.pick("true", "false")
	case 2:
		return r.pick(`""`, `" "`, `"é"`, `"É "`, `"zz"`, `"1e1"`, `"nan"`, `"a b"`, `"ab"`)
	case 3, 4:
		return strconv.Quote(r.pick("a", "b", "c", "A", "B", "a ", " b") + r.pick("", "x", "y", "X") + r.pick("", "", "1", "2", " "))
	case 5:
		return strconv.FormatFloat(float64(r.IntN(40)-20)/4, 'f', -1, 64)
	case 6:
		return strconv.Quote(strconv.Itoa(r.IntN(20)))
	}
	return strconv.Itoa(r.IntN(30) - 5)
}

func (r random) value(depth int) string {
	switch n := r.IntN(12); {
	case n == 0 && depth > 0:
		return r.object(depth - 1)
	case n <= 2 && depth > 0:
		items := make([]string, r.IntN(4))
		for i := range items {
			items[i] = r.value(depth - 1)
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	return r.scalar()
}

func (r random) object(depth int) string {
	members := map[string]string{}
	for range r.IntN(4) {
		members[r.pick("a", "b", "c", "d.e", "d")] = r.value(depth)
	}
	return compose(members)
}

func compose(members map[string]string) string {
	var b strings.Builder
	for i, key := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", key, members[key])
	}
	return "{" + b.String() + "}"
}

func (r random) document() string {
	members := map[string]string{}
	for _, field := range []string{"a", "b", "c", "d", "d.e"} {
		if r.IntN(3) > 0 {
			members[field] = r.value(2)
		}
	}
	if r.IntN(2) == 0 {
		members["_geo"] = fmt.Sprintf(`{"lat":%d.5,"lng":%d.25}`, r.IntN(20)-10, r.IntN(358)-179)
	}
	return compose(members)
}

func (r random) literal() string {
	s := r.scalar()
	if unquoted, err := strconv.Unquote(s); err == nil {
		s = unquoted
	}
	return s
}

func (r random) node(depth int) node {
	if n := r.IntN(10); depth > 0 && n < 6 {
		switch {
		case n == 0:
			return negate(r.node(depth - 1))
		default:
			kids := make([]node, 2+r.IntN(3))
			for i := range kids {
				kids[i] = r.node(depth - 1)
			}
			return join(n < 3, kids)
		}
	}
	switch r.IntN(12) {
	case 0:
		return &radius{center: point{lat: float64(r.IntN(20) - 10), lng: float64(r.IntN(360) - 180)}, meters: float64(r.IntN(10_000_000))}
	case 1:
		bottom := float64(r.IntN(20) - 10)
		return &box{
			topRight:   point{lat: bottom + float64(r.IntN(10)), lng: float64(r.IntN(360) - 180)},
			bottomLeft: point{lat: bottom, lng: float64(r.IntN(360) - 180)},
		}
	}
	c := &condition{attr: r.pick("a", "b", "c", "d", "d.e", "a.b", "c.d.e", "never"), op: op(r.IntN(int(startsWith) + 1))}
	count := 1
	switch c.op {
	case exists, isNull, isEmpty:
		count = 0
	case between:
		count = 2
	case in:
		count = r.IntN(6)
	}
	for range count {
		c.values = append(c.values, r.literal())
	}
	return c
}

// TestRowsRandom compares filters on columns with a decision from the JSON of each document.
func TestRowsRandom(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := newRandom(seed)
	memory := resultcache.New(1 << 24)
	defer func(n int) { slicedFrom = n }(slicedFrom)
	for n := range 30 {
		slicedFrom = []int{1, 1 << 12}[n%2]
		scope := memory.Scope()
		docs := make([]string, 1+r.IntN(400))
		for i := range docs {
			docs[i] = r.document()
		}
		c := newCorpus(t, `{"filterableAttributes":["a","b","c","d","never","_geo"]}`, docs)
		if r.IntN(2) == 0 {
			c.live.Deleted = roaring.New()
			for i := range docs {
				if r.IntN(4) == 0 {
					c.live.Deleted.Add(uint32(i))
				}
			}
		}
		for k := range 100 {
			e := &Expr{root: r.node(3)}
			if parsed, err := Parse(e.String()); err != nil || !same(parsed, e) {
				t.Fatalf("%s does not parse back: %v", e, err)
			}
			b, err := e.Bind(c.env())
			if err != nil {
				t.Fatalf("%s: %v", e, err)
			}
			want := []uint32{}
			for i, doc := range c.docs {
				if (c.live.Deleted == nil || !c.live.Deleted.Contains(uint32(i))) && c.matches(e.root, doc) {
					want = append(want, uint32(i))
				}
			}
			var place Where
			m, err := e.Matcher(c.env(), func([]byte) Where { return place })
			if err != nil {
				t.Fatalf("%s: %v", e, err)
			}
			for i, doc := range docs {
				place.Lat, place.Lng, place.Point = pointOf(c.docs[i])
				if got, err := m.Matches([]byte(doc)); err != nil || got != c.matches(e.root, c.docs[i]) {
					t.Fatalf("%s: Matches gives %v, %v: %s", e, got, err, doc)
				}
			}
			got := b.Rows(c.live)
			for range 3 { // computed, computed and cached, cached
				if kept := b.Kept(nil, c.live, scope); !kept.Equals(got) {
					t.Fatalf("%s: got %v, want %v with a scope", e, kept, got)
				}
			}
			if live := (segment.Live{Reader: c.live.Reader}); c.live.Deleted != nil && !roaring.AndNot(b.Kept(nil, live, scope), c.live.Deleted).Equals(got) {
				t.Fatalf("%s: the cached rows depend on deletions", e)
			}
			if k%8 == 0 {
				some := roaring.New()
				for i := range docs {
					if r.IntN(8) == 0 {
						some.Add(uint32(i))
					}
				}
				checkDeletions(t, e, b, c.live, scope, some)
			}
			if !reflect.DeepEqual(got.ToArray(), want) {
				diff := roaring.Xor(got, roaring.BitmapOf(want...)).ToArray()
				t.Fatalf("%s: got %d rows, want %d; row %d differs: %s", e, got.GetCardinality(), len(want), diff[0], docs[diff[0]])
			}
		}
	}
}

// checkDeletions evaluates a cached filter among some rows, and again with these rows deleted.
func checkDeletions(t *testing.T, e *Expr, b *Bound, live segment.Live, scope *resultcache.Scope, some *roaring.Bitmap) {
	t.Helper()
	all, got := b.Rows(segment.Live{Reader: live.Reader}), b.Rows(live)
	for _, s := range []*resultcache.Scope{scope, resultcache.New(16 << 20).Scope(), nil} {
		for k := range 4 { // as found, computed and cached, cached
			if among := b.Among(nil, live, s, some, k > 0); !among.Equals(roaring.And(all, some)) {
				t.Fatalf("%s: got %v among %v, want %v", e, among, some, roaring.And(all, some))
			}
		}
	}
	later := live
	if later.Deleted = some; live.Deleted != nil {
		later.Deleted = roaring.Or(some, live.Deleted)
	}
	for range 2 {
		if kept := b.Kept(nil, later, scope); !kept.Equals(roaring.AndNot(all, later.Deleted)) {
			t.Fatalf("%s: got %v, want %v where more rows are deleted", e, kept, roaring.AndNot(all, later.Deleted))
		}
		if kept := b.Kept(nil, live, scope); !kept.Equals(got) {
			t.Fatalf("%s: got %v, want %v where fewer rows are deleted", e, kept, got)
		}
	}
}

// TestPartsAreCached repeats a filter on a shard, which is not cached with a segment: the rest of the filter must be, and must be shared
// with the same filter without a shard.
func TestPartsAreCached(t *testing.T) {
	c := newCorpus(t, `{"filterableAttributes":["a","b"]}`, []string{`{"a":1,"b":1}`, `{"a":1,"b":2}`, `{"a":2,"b":1}`, `{"a":1,"b":1}`})
	inShard := roaring.BitmapOf(0, 1)
	env := c.env()
	env.Shard = func(string) func(segment.Live) *roaring.Bitmap {
		return func(segment.Live) *roaring.Bitmap { return inShard }
	}
	memory := resultcache.New(1 << 20)
	scope := memory.Scope()
	for i, step := range []struct {
		filter string
		want   []uint32
		known  bool // whether the cache has it
	}{
		{`a = 1 AND b = 1 AND _shard = x`, []uint32{0}, false},
		{`a = 1 AND b = 1 AND _shard = x`, []uint32{0}, false},
		{`a = 1 AND b = 1 AND _shard = x`, []uint32{0}, true},
		{`_shard = x AND a = 1 AND b = 1`, []uint32{0}, true},
		{`a = 1 AND b = 1`, []uint32{0, 3}, true},
		{`a = 1 OR _shard = x`, []uint32{0, 1, 3}, false},
		{`_shard = x AND _shard = y`, []uint32{0, 1}, false},
	} {
		e, err := Parse(step.filter)
		if err != nil {
			t.Fatal(err)
		}
		b, err := e.Bind(env)
		if err != nil {
			t.Fatal(err)
		}
		before, _ := memory.Counts()
		if got := b.Kept(nil, c.live, scope).ToArray(); !slices.Equal(got, step.want) {
			t.Errorf("step %d: %s finds %v, want %v", i, step.filter, got, step.want)
		}
		if after, _ := memory.Counts(); (after > before) != step.known {
			t.Errorf("step %d: %s: %d cache hits, want some: %v", i, step.filter, after-before, step.known)
		}
	}
}

// TestFieldsThatComeLater evaluates filters before and after the first document with a field, which changes the result in the older
// segment. It also evaluates them in a part of an index that does not know the fields of others.
func TestFieldsThatComeLater(t *testing.T) {
	const body = `{"filterableAttributes":["a","x"]}`
	older := newCorpus(t, body, []string{`{"a":1}`, `{"a":2}`, `{"a":3}`})
	newer := newCorpus(t, body, []string{`{"a":1,"x":1}`})
	scope := resultcache.New(1 << 20).Scope()
	for _, test := range []fieldLater{
		{`x != 1`, nil, []uint32{0, 1, 2}, []uint32{0, 1, 2}},
		{`a = 1 OR x != 1`, []uint32{0}, []uint32{0, 1, 2}, []uint32{0, 1, 2}},
		{`a > 1 AND x != 1`, nil, []uint32{1, 2}, []uint32{1, 2}},
		{`a < 3 AND x != 1 AND _shard = s`, []uint32{0}, []uint32{0}, []uint32{0}},
		{`NOT x != 1`, []uint32{0, 1, 2}, nil, nil},
		{`NOT x = 1`, []uint32{0, 1, 2}, []uint32{0, 1, 2}, []uint32{0, 1, 2}},
		{`x NOT IN [1]`, []uint32{0, 1, 2}, []uint32{0, 1, 2}, []uint32{0, 1, 2}},
		{`x = 1`, nil, nil, nil},
	} {
		test.check(t, older.live, scope, older.fields, newer.fields)
	}
}

// TestFieldsOfElementsThatComeLater does the same with fields of objects in arrays.
func TestFieldsOfElementsThatComeLater(t *testing.T) {
	u, err := settings.ParseUpdate([]byte(`{"filterableAttributes":[{"attributePatterns":["v.*"],"features":{"elements":true}}]}`), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	b := segment.NewBuilder(segment.BuilderOptions{})
	for i := range 3 {
		b.StartDoc(segment.DocID(i), []byte(strconv.Itoa(i)), []byte("{}"))
		if i < 2 {
			b.EnterElement(0, 1)
			b.ElementNumber(1, numeric.OfInt(int64(i)))
			b.ElementPresent(1)
			b.LeaveElement()
		}
		b.EndDoc()
	}
	live := segment.Live{Reader: written(t, b)}
	older, newer := settings.Resolve([]string{"v", "v.p"}, s, "id"), settings.Resolve([]string{"v", "v.p", "v.q"}, s, "id")
	scope := resultcache.New(1 << 20).Scope()
	for _, test := range []fieldLater{
		{`v.{q != 1}`, nil, []uint32{0, 1}, []uint32{0, 1}},
		{`v.{p = 1 AND q != 1}`, nil, []uint32{1}, []uint32{1}},
		{`NOT v.{q != 1}`, []uint32{0, 1, 2}, []uint32{2}, []uint32{2}},
		{`v.{NOT q = 1}`, []uint32{0, 1}, []uint32{0, 1}, []uint32{0, 1}},
	} {
		test.check(t, live, scope, older, newer)
	}
}

// fieldLater is what a filter finds in a segment before any document has its field, after one has, and in a part of an index.
type fieldLater struct {
	filter                string
	before, after, parted []uint32
}

func (f *fieldLater) check(t *testing.T, live segment.Live, scope *resultcache.Scope, older, newer *settings.Fields) {
	t.Helper()
	e, err := Parse(f.filter)
	if err != nil {
		t.Fatal(err)
	}
	inShard := roaring.BitmapOf(0, 2)
	for _, step := range []struct {
		fields *settings.Fields
		parted bool
		want   []uint32
	}{{older, false, f.before}, {older, true, f.parted}, {newer, false, f.after}, {older, false, f.before}} {
		b, err := e.Bind(Env{Fields: step.fields, Code: "invalid_search_filter", Parted: step.parted,
			Shard: func(string) func(segment.Live) *roaring.Bitmap {
				return func(segment.Live) *roaring.Bitmap { return inShard }
			}})
		if err != nil {
			t.Fatal(err)
		}
		for range 4 { // as found, computed and cached, cached
			if got := b.Kept(nil, live, scope).ToArray(); !slices.Equal(got, step.want) {
				t.Errorf("%s finds %v, want %v; parted: %v, field known: %v", e, got, step.want, step.parted, step.fields == newer)
			}
		}
	}
}
