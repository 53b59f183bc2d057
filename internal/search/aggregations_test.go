package search

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"svc/internal/aggregate"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/text"
	"svc/internal/turns"
)

// naive is the reference implementation of aggregations, which reads each document.
type naive struct {
	t *testing.T
}

// valuesOf returns the distinct numbers and strings at a path, through objects and arrays.
func valuesOf(value any, path []string) (numbers []float64, texts []string) {
	switch x := value.(type) {
	case map[string]any:
		if len(path) > 0 {
			if inner, ok := x[path[0]]; ok {
				return valuesOf(inner, path[1:])
			}
		}
		return nil, nil
	case []any:
		for _, e := range x {
			n, s := valuesOf(e, path)
			numbers, texts = append(numbers, n...), append(texts, s...)
		}
		slices.Sort(numbers)
		slices.Sort(texts)
		return slices.Compact(numbers), slices.Compact(texts)
	}
	if len(path) > 0 {
		return nil, nil
	}
	switch x := value.(type) {
	case float64:
		return []float64{x}, nil
	case string:
		if x != "" {
			return nil, []string{x}
		}
	case bool:
		return nil, []string{strconv.FormatBool(x)}
	}
	return nil, nil
}

// set computes all aggregations of an object over some documents.
func (m *naive) set(object map[string]any, docs []map[string]any) map[string]any {
	answer := map[string]any{}
	for name, a := range object {
		answer[name] = m.one(a.(map[string]any), docs)
	}
	return answer
}

func (m *naive) one(a map[string]any, docs []map[string]any) any {
	for _, kind := range []string{"terms", "stats", "percentiles", "histogram", "dateHistogram", "range", "cardinality"} {
		attribute, ok := a[kind].(string)
		if !ok {
			continue
		}
		path := strings.Split(attribute, ".")
		switch kind {
		case "stats", "percentiles", "cardinality":
			var numbers []float64
			different := map[any]bool{}
			for _, d := range docs {
				n, s := valuesOf(d, path)
				numbers = append(numbers, n...)
				for _, x := range n {
					different[x] = true
				}
				for _, x := range s {
					different[x] = true
				}
			}
			slices.Sort(numbers)
			switch kind {
			case "stats":
				return figures(numbers)
			case "cardinality":
				return map[string]any{"value": float64(len(different))}
			}
			values := map[string]any{}
			percents, ok := a["percents"].([]any)
			if !ok {
				percents = []any{1.0, 5.0, 25.0, 50.0, 75.0, 95.0, 99.0}
			}
			for _, p := range percents {
				values[strconv.FormatFloat(p.(float64), 'f', -1, 64)] = percentile(numbers, p.(float64))
			}
			return map[string]any{"values": values}
		}
		return m.buckets(kind, a, docs, path)
	}
	m.t.Fatalf("%v has no kind", a)
	return nil
}

func figures(numbers []float64) any {
	if len(numbers) == 0 {
		return map[string]any{"count": 0.0, "min": nil, "max": nil, "sum": 0.0, "avg": nil, "stdDev": nil}
	}
	sum, squares := 0.0, 0.0
	for _, x := range numbers {
		sum += x
	}
	mean := sum / float64(len(numbers))
	for _, x := range numbers {
		squares += (x - mean) * (x - mean)
	}
	return map[string]any{"count": float64(len(numbers)), "min": numbers[0], "max": numbers[len(numbers)-1], "sum": sum, "avg": mean, "stdDev": math.Sqrt(squares / float64(len(numbers)))}
}

func percentile(sorted []float64, percent float64) any {
	if len(sorted) == 0 {
		return nil
	}
	rank := percent / 100 * float64(len(sorted)-1)
	below := int(rank)
	if below+1 == len(sorted) {
		return sorted[below]
	}
	return sorted[below]*(1-(rank-float64(below))) + sorted[below+1]*(rank-float64(below))
}

// naiveBucket is a bucket: its order, its JSON form, and its documents.
type naiveBucket struct {
	number bool
	at     float64
	text   string
	shown  map[string]any
	docs   []map[string]any
}

func (m *naive) buckets(kind string, a map[string]any, docs []map[string]any, path []string) any {
	all := map[string]*naiveBucket{}
	var bands []string
	put := func(key string, b naiveBucket, d map[string]any) {
		if all[key] == nil {
			all[key] = &b
		}
		if d != nil && !slices.ContainsFunc(all[key].docs, func(o map[string]any) bool { return o["id"] == d["id"] }) {
			all[key].docs = append(all[key].docs, d)
		}
	}
	if kind == "range" {
		for i, band := range a["bands"].([]any) {
			bands = append(bands, strconv.Itoa(i))
			put(bands[i], naiveBucket{number: true, at: float64(i), shown: band.(map[string]any)}, nil)
		}
	}
	for _, d := range docs {
		numbers, texts := valuesOf(d, path)
		switch kind {
		case "terms":
			for _, x := range numbers {
				put(fmt.Sprint(x), naiveBucket{number: true, at: x, shown: map[string]any{"key": x}}, d)
			}
			for _, s := range texts {
				put("s"+s, naiveBucket{text: string(text.FacetKey(nil, []byte(s))), shown: map[string]any{"key": s}}, d)
			}
		case "range":
			for i, band := range a["bands"].([]any) {
				from, low := band.(map[string]any)["from"].(float64)
				to, high := band.(map[string]any)["to"].(float64)
				for _, x := range numbers {
					if (!low || x >= from) && (!high || x < to) {
						put(bands[i], naiveBucket{}, d)
					}
				}
			}
		case "histogram":
			interval, offset := a["interval"].(float64), 0.0
			if o, ok := a["offset"].(float64); ok {
				offset = o
			}
			for _, x := range numbers { // intervals here are multiples of a half
				q := math.Floor((x - offset) / interval)
				put(fmt.Sprint(q), naiveBucket{number: true, at: q, shown: map[string]any{"from": offset + q*interval, "to": offset + (q+1)*interval}}, d)
			}
		case "dateHistogram":
			zone, unit := time.UTC, 1.0
			if name, ok := a["timeZone"].(string); ok {
				var err error
				if zone, err = time.LoadLocation(name); err != nil {
					m.t.Fatal(err)
				}
			}
			if a["unit"] == "milliseconds" {
				unit = 1000
			}
			var dates []time.Time
			for _, x := range numbers {
				dates = append(dates, time.Unix(int64(math.Floor(x/unit)), 0))
			}
			for _, s := range texts {
				if date, err := time.Parse(time.RFC3339, s); err == nil {
					dates = append(dates, date)
				} else if date, err := time.ParseInLocation(time.DateOnly, s, zone); err == nil {
					dates = append(dates, date)
				}
			}
			for _, date := range dates {
				from, to := calendarOf(a["interval"].(string), date.In(zone))
				put(fmt.Sprint(from.Unix()), naiveBucket{number: true, at: float64(from.Unix()), shown: map[string]any{"key": from.Format(time.RFC3339), "from": float64(from.Unix()) * unit, "to": float64(to.Unix()) * unit}}, d)
			}
		}
	}
	var list []*naiveBucket
	for _, b := range all {
		list = append(list, b)
	}
	byKey := func(x, y *naiveBucket) int {
		if x.number != y.number {
			if x.number {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.text, y.text))
	}
	least := 1
	if n, ok := a["minCount"].(float64); ok {
		least = max(int(n), 1) // gaps are not tested here
	}
	order, _ := a["order"].(string)
	slices.SortFunc(list, func(x, y *naiveBucket) int {
		c := 0
		switch order {
		case "", "count:desc", "count:asc":
			if kind == "terms" {
				if c = cmp.Compare(len(x.docs), len(y.docs)); order != "count:asc" {
					c = -c
				}
			}
		case "key:desc":
			return -byKey(x, y)
		}
		return cmp.Or(c, byKey(x, y))
	})
	limit := 10
	if n, ok := a["limit"].(float64); ok {
		limit = int(n)
	}
	answer, other := []any{}, 0
	for _, b := range list {
		if kind != "range" && len(b.docs) < least || kind == "terms" && len(answer) == limit {
			other += len(b.docs)
			continue
		}
		shown := map[string]any{"count": float64(len(b.docs))}
		for name, value := range b.shown {
			shown[name] = value
		}
		if nested, ok := a["aggregations"].(map[string]any); ok {
			shown["aggregations"] = m.set(nested, b.docs)
		}
		answer = append(answer, shown)
	}
	if kind == "terms" {
		return map[string]any{"buckets": answer, "otherCount": float64(other)}
	}
	return map[string]any{"buckets": answer}
}

// calendarOf finds the interval of a date in steps of a quarter of an hour.
func calendarOf(name string, t time.Time) (from, to time.Time) {
	same := func(o time.Time) bool {
		switch name {
		case "hour":
			return o.Hour() == t.Hour() && o.Day() == t.Day() && o.Sub(t).Abs() < time.Hour
		case "day":
			return o.Day() == t.Day() && o.Month() == t.Month() && o.Year() == t.Year()
		case "week":
			y1, w1 := o.ISOWeek()
			y2, w2 := t.ISOWeek()
			return y1 == y2 && w1 == w2
		case "month":
			return o.Month() == t.Month() && o.Year() == t.Year()
		case "quarter":
			return (o.Month()-1)/3 == (t.Month()-1)/3 && o.Year() == t.Year()
		}
		return o.Year() == t.Year()
	}
	from = t.Truncate(15 * time.Minute)
	to = from
	for _, step := range []time.Duration{20 * time.Hour, 15 * time.Minute} {
		for same(from.Add(-step)) {
			from = from.Add(-step)
		}
		for same(to.Add(step)) {
			to = to.Add(step)
		}
	}
	return from, to.Add(15 * time.Minute)
}

// unlike says where an answer differs from the expected one; "": nowhere. Numbers are compared to 9 digits.
func unlike(path string, got, want any) string {
	differs := fmt.Sprintf("%s is %v, want %v", path, got, want)
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok || len(g) != len(w) {
			return differs
		}
		for name, value := range w {
			if d := unlike(path+"."+name, g[name], value); d != "" {
				return d
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return differs
		}
		for i := range w {
			if d := unlike(fmt.Sprintf("%s[%d]", path, i), g[i], w[i]); d != "" {
				return d
			}
		}
		return ""
	case float64:
		if g, ok := got.(float64); ok && math.Abs(g-w) <= 1e-9*max(1, math.Abs(w)) {
			return ""
		}
		return differs
	}
	if got == want {
		return ""
	}
	return differs
}

// randomAggregated makes a document with missing, nested, repeated and mixed values.
func randomAggregated(r *rand.Rand, id int) map[string]any {
	d := map[string]any{"id": float64(id), "all": "x"}
	number := func() any { return float64(r.IntN(400)-100) / 4 }
	if r.IntN(6) > 0 {
		d["price"] = number()
	}
	if r.IntN(10) == 0 {
		d["price"] = []any{number(), number(), "cheap", number()}
	}
	brands := []string{"Acme", "bolt", "Corax", "delta", "Élan", "fox"}
	switch r.IntN(6) {
	case 0:
		d["brand"] = []any{brands[r.IntN(6)], brands[r.IntN(6)], nil}
	case 1:
		d["brand"] = float64(r.IntN(3))
	case 2:
		d["brand"] = r.IntN(2) == 0
	case 3:
	default:
		d["brand"] = brands[r.IntN(6)]
	}
	at := time.Date(2023, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.IntN(3*365*24*4)) * 15 * time.Minute)
	switch r.IntN(5) {
	case 0:
		d["at"] = at.In(time.FixedZone("", 3600*r.IntN(9))).Format(time.RFC3339)
	case 1:
		d["at"] = []any{at.Format(time.DateOnly), float64(at.Unix()), "soon"}
	case 2:
	default:
		d["at"] = float64(at.Unix())
	}
	d["ms"] = float64(at.UnixMilli())
	var sizes []any
	for range r.IntN(4) {
		sizes = append(sizes, map[string]any{"w": number(), "user": fmt.Sprint("u", r.IntN(50))})
	}
	d["sizes"] = sizes
	return d
}

// randomAggregations makes an object of aggregations over such documents.
func randomAggregations(r *rand.Rand, depth int) map[string]any {
	object := map[string]any{}
	for i := range 1 + r.IntN(3) {
		numbers := []string{"price", "sizes.w", "brand"}[r.IntN(3)]
		a := map[string]any{}
		switch r.IntN(7) {
		case 0:
			a["terms"] = []string{"brand", "price", "sizes.user", "all"}[r.IntN(4)]
			if r.IntN(2) == 0 {
				a["limit"] = float64(1 + r.IntN(8))
			}
			if r.IntN(2) == 0 {
				a["order"] = []string{"count:desc", "count:asc", "key:asc", "key:desc"}[r.IntN(4)]
			}
		case 1:
			a["stats"] = numbers
		case 2:
			a["percentiles"] = numbers
			if r.IntN(2) == 0 {
				a["percents"] = []any{0.0, 12.5, 50.0, 100.0}
			}
		case 3:
			a["histogram"], a["interval"] = numbers, []float64{.5, 3, 10}[r.IntN(3)]
			if r.IntN(2) == 0 {
				a["offset"] = float64(r.IntN(9) - 4)
			}
		case 4:
			a["dateHistogram"], a["interval"] = "at", []string{"day", "week", "month", "quarter", "year"}[r.IntN(5)]
			if r.IntN(2) == 0 {
				a["dateHistogram"], a["unit"] = "ms", "milliseconds"
			}
			if r.IntN(2) == 0 {
				a["timeZone"] = []string{"Europe/Paris", "America/Sao_Paulo", "Asia/Kathmandu", "America/St_Johns"}[r.IntN(4)]
			}
		case 5:
			a["range"], a["bands"] = numbers, []any{map[string]any{"to": 10.0}, map[string]any{"from": 5.0, "to": 20.0}, map[string]any{"from": 10.0}}
		case 6:
			a["cardinality"] = []string{"brand", "sizes.user", "price", "none"}[r.IntN(4)]
		}
		if (a["terms"] != nil || a["interval"] != nil || a["bands"] != nil) && depth < aggregate.MaxDepth && r.IntN(2) == 0 {
			a["aggregations"] = randomAggregations(r, depth+1)
		}
		if a["terms"] == nil && a["interval"] != nil && r.IntN(3) == 0 {
			a["minCount"] = float64(1 + r.IntN(3))
		}
		object[fmt.Sprint("a", i)] = a
	}
	return object
}

// got returns the value of a call that must not fail.
func got[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

const aggregatedSettings = `{"filterableAttributes":["price","brand","at","ms","sizes.w","sizes.user","all","none"],"searchableAttributes":["all"]}`

// TestAggregationsAgainstModel compares aggregations of random documents with naive: for an index of several segments with deletions and
// updates, a federated search, instances that merge their states, and lists of documents.
func TestAggregationsAgainstModel(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	r := rand.New(rand.NewPCG(seed, 1))
	instances := []*library{newLibrary(t), newLibrary(t), newLibrary(t)}
	docs := [3]map[int]map[string]any{{}, {}, {}}
	id := 0
	for i, l := range instances {
		l.put("a", aggregatedSettings)
		for _, size := range []int{60, 25, 5} {
			var texts []string
			for range size {
				id++
				one := randomAggregated(r, id)
				if r.IntN(4) == 0 { // an update, which deletes the old document in its segment
					for old := range docs[i] {
						one["id"] = float64(old)
						break
					}
				}
				docs[i][int(one["id"].(float64))] = one
				doc, err := json.Marshal(one)
				if err != nil {
					t.Fatal(err)
				}
				texts = append(texts, string(doc))
			}
			l.put("a", "", texts...)
		}
	}
	ctx := context.Background()
	for n := range 30 {
		object := randomAggregations(r, 1)
		body, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		asked, err := aggregate.Parse(body, "aggregations", searchAggregations)
		if err != nil {
			t.Fatalf("%s: %v", body, err)
		}
		var only *filter.Expr
		allowed := func(map[string]any) bool { return true }
		if n%2 == 1 {
			if only, err = filter.Parse("ms > 1700000000000"); err != nil {
				t.Fatal(err)
			}
			allowed = func(d map[string]any) bool { return d["ms"].(float64) > 1.7e12 }
		}
		m := naive{t: t}
		var some [3][]map[string]any
		var all []map[string]any
		for i := range docs {
			for _, d := range docs[i] {
				if allowed(d) {
					some[i], all = append(some[i], d), append(all, d)
				}
			}
		}
		check := func(what string, body []byte, docs []map[string]any) {
			t.Helper()
			var answer struct {
				Aggregations any
				Degraded     bool
			}
			if err := json.Unmarshal(body, &answer); err != nil {
				t.Fatalf("%s: %v in %s", what, err, body)
			}
			if d := unlike("aggregations", answer.Aggregations, m.set(object, docs)); d != "" {
				t.Fatalf("%s, filter %v: %s\n%s", what, only, asked.Text, d)
			}
			if answer.Degraded {
				t.Fatalf("%s is degraded", what)
			}
		}
		views := make([]*index.View, len(instances))
		for i, l := range instances {
			views[i] = held(l.c.Get("a").View())
		}
		released := false
		release := func() {
			if !released {
				for _, v := range views {
					v.Release()
				}
			}
			released = true
		}
		defer release() // also if a round fails
		if len(views[0].Segments) < 2 {
			t.Fatalf("%d segments", len(views[0].Segments))
		}
		request := Request{Aggregations: asked, Filter: only, Limit: r.IntN(3)}
		if r.IntN(2) == 0 {
			request.Query = "x"
		}
		found, err := Search(ctx, views[0], &request)
		if err != nil {
			t.Fatal(err)
		}
		check("alone", got(found.AppendJSON(ctx, nil)), some[0])
		fetched := FetchRequest{Filter: only, Aggregations: asked, Limit: r.IntN(3)}
		check("fetched", got(Fetch(ctx, nil, views[0], &fetched)), some[0])

		one := func(l int) FederatedQuery {
			q := request
			q.Aggregations = nil
			return FederatedQuery{View: views[l], Request: &q, Weight: 1}
		}
		spread := func(n int, run func(context.Context, int) error) error {
			for i := range n {
				if err := run(ctx, i); err != nil {
					return err
				}
			}
			return nil
		}
		twice := FederatedRequest{Queries: []FederatedQuery{one(0), one(0)}, Aggregations: asked, Limit: 2}
		check("two queries of an index", got(got(Federate(ctx, &twice, spread)).AppendJSON(ctx, nil)), some[0])

		var answers []*RemoteAnswer
		merged := asked.New()
		for i := 1; i < len(instances); i++ {
			peer := FederatedRequest{Queries: []FederatedQuery{one(i)}, Aggregations: asked, Limit: 2, Proxy: true}
			body := got(got(Federate(ctx, &peer, spread)).AppendPeer(ctx, nil))
			answers = append(answers, got(ParsePeer(fmt.Sprint(i), body, &Asked{Hits: 2, Aggregations: asked}, new(Reading))))
		}
		network := FederatedRequest{Queries: []FederatedQuery{one(0)}, Aggregations: asked, Limit: 2, Networked: true, Self: "0",
			Remotes: func(context.Context) []*RemoteAnswer { return answers }}
		check("three instances", got(got(Federate(ctx, &network, spread)).AppendJSON(ctx, nil)), all)

		for i := range instances {
			body := got(AppendPeerDocuments(ctx, nil, views[i], &fetched, ReadBytes))
			parts := got(ParseDocuments(body, []int{2}, false, asked, new(Reading)))
			if err := merged.Merge(turns.Of(ctx), parts[0].Aggregations, fetchAggregations); err != nil {
				t.Fatal(err)
			}
		}
		body = append(got(appendAggregations(turns.Of(ctx), []byte(`{"x":0`), merged, fetchAggregations)), '}')
		check("documents of three instances", body, all)
		release()
	}
}

// TestWithoutAggregations checks that an answer has no members of aggregations unless requested.
func TestWithoutAggregations(t *testing.T) {
	l := newLibrary(t)
	l.put("a", aggregatedSettings, `{"id":1,"price":3}`)
	v := held(l.c.Get("a").View())
	defer v.Release()
	body := got(got(Search(context.Background(), v, &Request{Limit: 1})).AppendJSON(context.Background(), nil))
	if bytes.Contains(body, []byte("aggregations")) || bytes.Contains(body, []byte("degraded")) {
		t.Errorf("%s", body)
	}
}
