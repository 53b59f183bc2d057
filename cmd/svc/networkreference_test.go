package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/shard"
)

var networkRequests = flag.Int("network-requests", 150, "how many requests TestNetworkReadsAsOneInstance compares")

// reference compares the answers of three instances with those of one instance that has all documents.
type reference struct {
	t        *testing.T
	random   *rand.Rand
	alone    *member
	together []*member
	ring     *shard.Ring
	docs     map[string]map[string]any // films by id
	count    map[string]int            // compared answers by route
	hits     int                       // documents and values in these answers

	suggested int // number of suggested queries
}

const (
	referenceMaster = "a-master-key-of-the-reference"
	tenantUID       = "0000000a-5e11-4c0d-9a57-0123456789ab"
)

// tenantKey returns the value of the key that signs tenant tokens.
func tenantKey() string {
	h := hmac.New(sha256.New, []byte(referenceMaster))
	h.Write([]byte(tenantUID))
	return fmt.Sprintf("%x", h.Sum(nil))
}

// tenantOf returns a tenant token.
func tenantOf(rules string) string {
	encode := func(s string) string { return base64.RawURLEncoding.EncodeToString([]byte(s)) }
	text := encode(`{"alg":"HS256","typ":"JWT"}`) + "." + encode(fmt.Sprintf(`{"apiKeyUid":%q,"searchRules":%s}`, tenantUID, rules))
	h := hmac.New(sha256.New, []byte(tenantKey()))
	h.Write([]byte(text))
	return text + "." + base64.RawURLEncoding.EncodeToString(h.Sum(nil))
}

// TestNetworkReadsAsOneInstance sends random requests of all reading routes to a network of three instances, each with a third of the
// documents, and to an instance that has all of them.
func TestNetworkReadsAsOneInstance(t *testing.T) {
	if testing.Short() {
		t.Skip("starts four servers")
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := &reference{t: t, random: rand.New(rand.NewPCG(seed, 37)), ring: shard.NewRing([]string{"x", "y", "z"}), docs: map[string]map[string]any{}, count: map[string]int{}}
	r.start()
	r.fill()
	for n := range *networkRequests {
		r.compare(n)
		if t.Failed() {
			break
		}
	}
	t.Logf("compared %v, with %d hits", r.count, r.hits)
	if r.suggested == 0 {
		t.Error("no suggestion was compared")
	}
	for _, route := range []string{"document", "list", "facets", "search", "multi", "federated", "refused"} {
		if r.count[route] == 0 {
			t.Errorf("no answer of %q was compared", route)
		}
	}
}

func (r *reference) start() {
	options := []string{"--master-key", referenceMaster}
	for _, name := range []string{"a", "b", "c", "alone"} {
		in := newMember(r.t, name, options...)
		in.key = referenceMaster
		in.must("PATCH", "/experimental-features", `{"network":true,"foreignKeys":true,"containsFilter":true}`, nil)
		in.must("POST", "/keys", fmt.Sprintf(`{"uid":%q,"actions":["search"],"indexes":["*"],"expiresAt":null}`, tenantUID), nil)
		if name == "alone" {
			r.alone = in
		} else {
			r.together = append(r.together, in)
		}
	}
	var remotes []string
	for _, in := range r.together {
		remotes = append(remotes, fmt.Sprintf(`%q:{"url":"http://%s","searchApiKey":%q,"writeApiKey":%[3]q}`, in.name, in.reached(), referenceMaster))
	}
	r.together[0].change(`{"self":"a","leader":"a","remotes":{` + strings.Join(remotes, ",") + `},"shards":{"x":{"remotes":["a"]},"y":{"remotes":["b"]},"z":{"remotes":["c"]}}}`)
}

var (
	referenceWords  = strings.Fields("river stone winter garden silver harbor lantern meadow thunder velvet ocean copper orchard raven")
	referenceColors = strings.Fields("amber blue crimson dun ebony fawn green heather indigo jade")
)

func (r *reference) words(n int) string {
	var list []string
	for range n {
		list = append(list, referenceWords[r.random.IntN(len(referenceWords))])
	}
	return strings.Join(list, " ")
}

// fill writes the same documents to both.
func (r *reference) fill() {
	var authors, films []map[string]any
	for i := range 90 {
		authors = append(authors, map[string]any{"id": i, "name": r.words(1), "age": r.random.IntN(60), "secret": "hidden"})
	}
	for i := range 400 {
		film := map[string]any{"id": fmt.Sprint("f", i), "title": r.words(2 + r.random.IntN(4)), "number": i, "color": referenceColors[min(r.random.IntN(10), r.random.IntN(10))],
			"grade": r.random.IntN(6), "author": r.random.IntN(100)}
		if r.random.IntN(3) == 0 {
			film["author"] = []any{r.random.IntN(100), fmt.Sprint(r.random.IntN(100))}
		}
		if r.random.IntN(4) == 0 {
			film["tags"] = strings.Fields(r.words(2))
		}
		if r.random.IntN(5) == 0 {
			delete(film, "grade")
		}
		films = append(films, film)
		r.docs[film["id"].(string)] = film
	}
	write := func(method, path string, body any) {
		text, err := json.Marshal(body)
		if err != nil {
			r.t.Fatal(err)
		}
		for _, in := range []*member{r.together[0], r.alone} {
			in.must(method, path, string(text), nil)
		}
	}
	write("PATCH", "/indexes/authors/settings", map[string]any{"filterableAttributes": []string{"age", "name"}, "displayedAttributes": []string{"id", "name", "age"}})
	write("PATCH", "/indexes/films/settings", map[string]any{
		"filterableAttributes": []string{"color", "grade", "tags", "author", "number"}, "sortableAttributes": []string{"number", "grade", "color"}, "searchableAttributes": []string{"title", "tags"},
		"foreignKeys": []any{map[string]any{"fieldName": "author", "foreignIndexUid": "authors"}},
		"faceting":    map[string]any{"maxValuesPerFacet": 6, "sortFacetValuesBy": map[string]any{"tags": "count", "grade": "count"}},
	})
	write("POST", "/indexes/authors/documents", authors)
	for some := range slices.Chunk(films, 150) {
		write("POST", "/indexes/films/documents", some)
	}
	var gone []string
	for range 20 {
		id := fmt.Sprint("f", r.random.IntN(400))
		gone = append(gone, id)
		delete(r.docs, id)
	}
	write("POST", "/indexes/films/documents/delete-batch", gone)
	for _, in := range append(slices.Clone(r.together), r.alone) {
		in.finishAll()
	}
	for _, in := range r.together { // a forwards writes after its own task
		in.finishAll()
		var stats struct{ NumberOfDocuments int }
		in.must("GET", "/indexes/films/stats", "", &stats)
		if stats.NumberOfDocuments == 0 || stats.NumberOfDocuments > 300 {
			r.t.Fatalf("%s has %d documents of its own", in.name, stats.NumberOfDocuments)
		}
	}
}

func oneOf[T any](r *reference, list ...T) T { return list[r.random.IntN(len(list))] }

// filter returns a random filter, or "".
func (r *reference) filter(foreign bool) string {
	simple := func() string {
		switch r.random.IntN(7) {
		case 0:
			return fmt.Sprintf("grade >= %d", r.random.IntN(6))
		case 1:
			return "NOT tags EXISTS"
		case 2:
			return "tags CONTAINS " + referenceWords[r.random.IntN(len(referenceWords))][:3]
		case 3:
			return fmt.Sprintf("number %d TO %d", r.random.IntN(200), 200+r.random.IntN(200))
		case 4:
			if foreign {
				return fmt.Sprintf("_foreign(author, age > %d AND name != %s)", r.random.IntN(60), referenceWords[r.random.IntN(len(referenceWords))])
			}
		case 5:
			if foreign {
				return fmt.Sprintf("NOT _foreign(author, age <= %d)", r.random.IntN(20))
			}
		}
		return "color IN [" + oneOf(r, referenceColors...) + ", " + oneOf(r, referenceColors...) + "]"
	}
	switch r.random.IntN(4) {
	case 0:
		return ""
	case 1:
		return simple() + oneOf(r, " AND ", " OR ") + simple()
	}
	return simple()
}

// page returns a random offset and limit.
func (r *reference) page() (offset, limit int) {
	return oneOf(r, 0, 0, 1, 7, 90, 101, 250, 500), oneOf(r, 0, 1, 5, 20, 99, 150, 1000)
}

// ask sends a request to the single instance and to one of the network, and returns both answers. ok is false if both refuse it.
func (r *reference) ask(route, token, method, path, alone, together string) (want, got map[string]any, ok bool) {
	in := r.together[r.random.IntN(3)]
	var status [2]int
	var answers [2]map[string]any
	for i, asked := range []struct {
		in   *member
		body string
	}{{r.alone, alone}, {in, together}} {
		if token != "" {
			asked.in.key = token
		}
		s, text, err := asked.in.ask(method, path, asked.body, &answers[i])
		asked.in.key = referenceMaster
		if err != nil {
			r.t.Fatalf("%s %s %s: %v %s", method, path, asked.body, err, text)
		}
		status[i] = s
	}
	want, got = answers[0], answers[1]
	if status[0] != status[1] || want["code"] != got["code"] {
		r.t.Errorf("%s %s %s: alone %d %v, in a network at %s %d %v", method, path, together, status[0], want, in.name, status[1], got)
		return nil, nil, false
	}
	if status[0] >= 400 {
		r.count["refused"]++
		return nil, nil, false
	}
	if errs, has := got["remoteErrors"].(map[string]any); has && len(errs) > 0 {
		r.t.Errorf("%s %s %s: %v", method, path, together, errs)
	}
	r.count[route]++
	return want, got, true
}

// same compares parts of answers.
func (r *reference) same(what string, want, got any) {
	if reflect.DeepEqual(want, got) {
		return
	}
	w, isList := want.([]any)
	g, too := got.([]any)
	for i := 0; isList && too && i < len(w) && i < len(g); i++ {
		if !reflect.DeepEqual(w[i], g[i]) {
			r.t.Errorf("%s:\nof %d and %d, the first difference is number %d:\nwant %s\ngot  %s", what, len(w), len(g), i, marshal(w[i]), marshal(g[i]))
			return
		}
	}
	r.t.Errorf("%s:\nwant %.3000s\ngot  %.3000s", what, marshal(want), marshal(got))
}

// compare sends one random request.
func (r *reference) compare(n int) {
	switch r.random.IntN(6) {
	case 0:
		r.document()
	case 1, 2:
		r.list()
	case 3:
		r.facets()
	case 4:
		r.search()
		r.suggest()
	case 5:
		r.multi()
	}
}

// suggest searches for words with typos, and compares the suggested queries with what they find.
func (r *reference) suggest() {
	q := map[string]any{"suggest": true, "matchingStrategy": "all", "limit": 1 + r.random.IntN(30)}
	if f := r.filter(true); f != "" {
		q["filter"] = f
	}
	text := r.words(1 + r.random.IntN(2))
	at := 1 + r.random.IntN(len(text)-2)
	q["q"] = text[:at] + oneOf(r, "zq", "qq", "x") + text[at+r.random.IntN(2):]
	if r.random.IntN(3) == 0 {
		q["rankingScoreThreshold"] = oneOf(r, 0.5, 0.9, 0.99)
	}
	body, tenant := marshal(q), r.tenant()
	want, got, ok := r.ask("suggestions", tenant, "POST", "/indexes/films/search", body, body)
	if !ok {
		return
	}
	counts := func(answer map[string]any) (queries, counts []any) {
		for _, s := range answer["suggestions"].([]any) {
			s := s.(map[string]any)
			queries, counts = append(queries, s["query"]), append(counts, s["estimatedTotalHits"])
		}
		return queries, counts
	}
	wantQueries, wantCounts := counts(want)
	gotQueries, gotCounts := counts(got)
	r.same(body+" suggestions", wantQueries, gotQueries)
	if q["rankingScoreThreshold"] == nil { // a threshold makes the total depend on the page of each instance
		r.same(body+" counts", wantCounts, gotCounts)
	}
	delete(q, "suggest")
	for i := range min(len(wantQueries), len(gotQueries)) {
		q["q"] = gotQueries[i]
		body := marshal(q)
		if want, got, ok := r.ask("suggestions", tenant, "POST", "/indexes/films/search", body, body); ok {
			r.same(body+" alone", want["estimatedTotalHits"], wantCounts[i])
			r.same(body+" in the network", got["estimatedTotalHits"], gotCounts[i])
		}
	}
	r.suggested += len(got["suggestions"].([]any))
}

func (r *reference) document() {
	path := "/indexes/films/documents/" + oneOf(r, fmt.Sprint("f", r.random.IntN(410)), "none") + oneOf(r, "", "?fields=title,author", "?fields=none", "?retrieveVectors=true")
	if want, got, ok := r.ask("document", "", "GET", path, "", ""); ok {
		r.same("GET "+path, want, got)
		r.hits++
	}
}

// sortedBy returns the values of the sort fields, by which documents may be equal.
func sortedBy(doc map[string]any, sort []string) string {
	var key []any
	for _, s := range sort {
		field, _, _ := strings.Cut(s, ":")
		key = append(key, doc[field])
	}
	return fmt.Sprint(key)
}

// byShard orders documents that a list leaves unordered by their shards.
func (r *reference) byShard(ids []string, equal func(a, b int) bool) []int {
	places := make([]int, len(ids))
	for i := range places {
		places[i] = i
	}
	for from := 0; from < len(ids); {
		to := from + 1
		for to < len(ids) && equal(from, to) {
			to++
		}
		slices.SortStableFunc(places[from:to], func(a, b int) int { return r.ring.Owner([]byte(ids[a])) - r.ring.Owner([]byte(ids[b])) })
		from = to
	}
	return places
}

func (r *reference) list() {
	offset, limit := r.page()
	body := map[string]any{}
	if f := r.filter(true); f != "" {
		body["filter"] = f
	}
	if r.random.IntN(20) == 0 {
		body["filter"] = oneOf(r, "title = x", "_foreign(color, age = 1)", "color =", "_foreign(author, secret = 1)")
	}
	var sort []string
	for range r.random.IntN(3) {
		sort = append(sort, oneOf(r, "number", "grade", "color")+oneOf(r, ":asc", ":desc"))
	}
	if sort != nil {
		body["sort"] = sort
	}
	if r.random.IntN(30) == 0 {
		body["sort"] = []string{"title:asc"}
	}
	if r.random.IntN(4) == 0 {
		ids := []string{}
		for range r.random.IntN(120) {
			ids = append(ids, fmt.Sprint("f", r.random.IntN(410)))
		}
		body["ids"] = ids
	}
	fields := oneOf[any](r, nil, []string{"id", "title"}, []string{"author", "grade"}, []string{})
	body["offset"], body["limit"] = 0, 1000
	body["fields"] = []string{"id"}
	all := marshal(body)
	body["offset"], body["limit"], body["fields"] = offset, limit, fields
	together := marshal(body)
	want, got, ok := r.ask("list", "", "POST", "/indexes/films/documents/fetch", all, together)
	if !ok {
		return
	}
	var ids []string
	for _, doc := range want["results"].([]any) {
		ids = append(ids, doc.(map[string]any)["id"].(string))
	}
	places := r.byShard(ids, func(a, b int) bool { return sortedBy(r.docs[ids[a]], sort) == sortedBy(r.docs[ids[b]], sort) })
	places = places[min(offset, len(places)):]
	places = places[:min(limit, len(places))]
	expected := []any{}
	for _, at := range places {
		doc := map[string]any{}
		for name, v := range r.docs[ids[at]] {
			if list, some := fields.([]string); !some || slices.Contains(list, name) {
				doc[name] = v
			}
		}
		expected = append(expected, doc)
	}
	r.hits += len(expected)
	whole := anything(map[string]any{"results": expected, "offset": offset, "limit": limit, "total": len(ids)}).(map[string]any)
	r.same(together, whole["results"], got["results"])
	delete(whole, "results")
	delete(got, "results")
	r.same(together, whole, got)
}

func marshal(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// anything converts a value to what decoding its JSON gives.
func anything(v any) (all any) {
	if err := json.Unmarshal([]byte(marshal(v)), &all); err != nil {
		panic(err)
	}
	return all
}

func (r *reference) facets() {
	body := map[string]any{"facetName": oneOf(r, "color", "tags", "grade", "number", "title"), "exhaustiveFacetCount": true}
	if r.random.IntN(2) == 0 {
		word := oneOf(r, append(referenceColors, referenceWords...)...)
		body["facetQuery"] = oneOf(r, word[:2], word, word[:1]+"x"+word[2:], "1", "2")
	}
	if f := r.filter(true); f != "" {
		body["filter"] = f
	}
	if r.random.IntN(3) == 0 {
		body["q"] = r.words(1 + r.random.IntN(2))
	}
	text := marshal(body)
	want, got, ok := r.ask("facets", r.tenant(), "POST", "/indexes/films/facet-search", text, text)
	if !ok {
		return
	}
	for _, name := range []string{"facetHits", "facetQuery"} {
		r.same(text+" "+name, want[name], got[name])
	}
	r.hits += len(want["facetHits"].([]any))
}

// tenant returns a tenant token, or usually "" for the master key.
func (r *reference) tenant() string {
	switch r.random.IntN(6) {
	case 0:
		return tenantOf(`{"films":{"filter":"color IN [amber, blue]"}}`)
	case 1:
		return tenantOf(`{"films":{"filter":"_foreign(author, age > 30)"},"authors":null}`)
	}
	return ""
}

// query returns a random query.
func (r *reference) query() map[string]any {
	q := map[string]any{"q": oneOf(r, "", r.words(1), r.words(2), r.words(1)[:4], strings.Replace(r.words(1), "e", "a", 1))}
	if f := r.filter(true); f != "" {
		q["filter"] = f
	}
	if r.random.IntN(3) == 0 {
		q["sort"] = []string{oneOf(r, "number", "grade") + oneOf(r, ":asc", ":desc")}
	}
	if r.random.IntN(3) == 0 {
		q["attributesToRetrieve"] = oneOf(r, []string{"id", "author"}, []string{"id", "title"}, []string{"*"})
	}
	if r.random.IntN(2) == 0 {
		q["attributesToHighlight"] = oneOf(r, []string{"title"}, []string{"*"})
	}
	return q
}

// search compares pages of a search. Hits of equal rank come in the order of their shards.
func (r *reference) search() {
	q := r.query()
	if r.random.IntN(3) == 0 { // if a facet by count has more values than shown, each instance counts its own first ones
		q["facets"] = []string{"color", "grade"}
	}
	q["showRankingScoreDetails"], q["page"], q["hitsPerPage"] = true, 1, 1000
	all := marshal(q)
	page, size := 1+r.random.IntN(4), oneOf(r, 1, 5, 20, 150)
	q["page"], q["hitsPerPage"] = page, size
	together := marshal(q)
	want, got, ok := r.ask("search", r.tenant(), "POST", "/indexes/films/search", all, together)
	if !ok {
		return
	}
	for _, name := range []string{"query", "totalHits", "facetDistribution", "facetStats"} {
		r.same(together+" "+name, want[name], got[name])
	}
	r.same(together, r.cut(want["hits"].([]any), (page-1)*size, size), withoutRanks(got["hits"].([]any)))
}

// cut orders hits as a network does, and returns a page.
func (r *reference) cut(hits []any, offset, limit int) []any {
	ids := make([]string, len(hits))
	ranks := make([]string, len(hits))
	for i, h := range hits {
		ids[i], ranks[i] = h.(map[string]any)["id"].(string), marshal(h.(map[string]any)["_rankingScoreDetails"])
	}
	places := r.byShard(ids, func(a, b int) bool { return ranks[a] == ranks[b] })
	places = places[min(offset, len(places)):]
	page := []any{}
	for _, at := range places[:min(limit, len(places))] {
		page = append(page, hits[at])
	}
	r.hits += len(page)
	return withoutRanks(page)
}

// tied orders hits of equal rank by id, because a federated search does not define their order.
func tied(hits []any) []any {
	for from := 0; from < len(hits); {
		rank := marshal(hits[from].(map[string]any)["_rankingScoreDetails"])
		to := from + 1
		for to < len(hits) && marshal(hits[to].(map[string]any)["_rankingScoreDetails"]) == rank {
			to++
		}
		slices.SortFunc(hits[from:to], func(a, b any) int {
			return strings.Compare(a.(map[string]any)["id"].(string), b.(map[string]any)["id"].(string))
		})
		from = to
	}
	return withoutRanks(hits)
}

// withoutRanks removes the members that say where hits come from.
func withoutRanks(hits []any) []any {
	for _, h := range hits {
		delete(h.(map[string]any), "_federation")
		delete(h.(map[string]any), "_rankingScoreDetails")
	}
	return hits
}

func (r *reference) multi() {
	first, second := r.query(), r.query()
	for _, q := range []map[string]any{first, second} {
		q["indexUid"], q["showRankingScoreDetails"] = "films", true
	}
	if r.random.IntN(2) == 0 { // of one query: the order of hits of several queries is not defined
		text := marshal(map[string]any{"federation": map[string]any{"limit": 1000}, "queries": []any{first}})
		want, got, ok := r.ask("federated", r.tenant(), "POST", "/multi-search", text, text)
		if ok {
			r.same(text, tied(want["hits"].([]any)), tied(got["hits"].([]any)))
		}
		return
	}
	for _, q := range []map[string]any{first, second} {
		q["limit"] = 1000
	}
	text := marshal(map[string]any{"queries": []any{first, second}})
	want, got, ok := r.ask("multi", r.tenant(), "POST", "/multi-search", text, text)
	if !ok {
		return
	}
	for i := range 2 {
		w, g := want["results"].([]any)[i].(map[string]any), got["results"].([]any)[i].(map[string]any)
		r.same(text, r.cut(w["hits"].([]any), 0, 1000), withoutRanks(g["hits"].([]any)))
	}
}
