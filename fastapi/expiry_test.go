package fastapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/network"
)

// unequal matches the parts of answers that differ between two indexes with the same documents.
var unequal = regexp.MustCompile(`"(indexUid|requestUid|processingTimeMs|rawDocumentDbSize|avgDocumentSize|numberOfEmbedd[a-zA-Z]*|isIndexing)":("[^"]*"|[0-9.]+|true|false),?|wait|stay`)

// TestExpiredDocumentsAreInvisible compares each answer of an index with expiring documents with that of an index from which
// they are deleted.
func TestExpiredDocumentsAreInvisible(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var now atomic.Int64
	now.Store(1_000_000)
	var o Options
	openInstanceOf(t, &o, network.Options{}, index.Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	c := newClient(t, o)
	settings := `{"filterableAttributes": ["color", "n", "id", "_geo"], "sortableAttributes": ["n", "_geo"], "searchCutoffMs": null, "embedders": {"m": {"source": "userProvided", "dimensions": 2}}%s}`
	c.wait(c.json("PATCH", "/indexes/wait/settings", fmt.Sprintf(settings, `, "timeToLive": {"attribute": "made", "seconds": 10}`)))
	c.wait(c.json("PATCH", "/indexes/stay/settings", fmt.Sprintf(settings, "")))
	ends := map[int]int64{}
	// Later writes replace existing documents only: a new one would get the number of a deleted one, which is the last tie-break.
	add := func(ids []int) {
		var docs []string
		for _, id := range ids {
			made := now.Load() + int64(random.IntN(40)) - 5
			ends[id] = made + 10
			docs = append(docs, fmt.Sprintf(`{"id": %d, "made": %d, "n": %d, "color": %q, "t": "%s word", "_geo": {"lat": %d, "lng": 1}, "_vectors": {"m": [%d, 1]}}`,
				id, made, random.IntN(5), []string{"red", "green", "blue"}[random.IntN(3)], strings.Repeat("red wine ", random.IntN(3)), random.IntN(50), random.IntN(9)))
		}
		body := "[" + strings.Join(docs, ",") + "]"
		for _, uid := range []string{"wait", "stay"} {
			c.wait(c.json("POST", "/indexes/"+uid+"/documents", body))
		}
	}
	requests := []string{
		`POST /indexes/%s/search {"q": "wine", "facets": ["color", "n"], "showRankingScore": true}`, `POST /indexes/%s/search {"q": "", "hitsPerPage": 5, "page": 2}`,
		`POST /indexes/%s/search {"q": "wrod", "sort": ["n:asc", "_geoPoint(3, 1):desc"]}`, `POST /indexes/%s/search {"filter": "n > 1 AND NOT color = red", "distinct": "color"}`,
		`POST /indexes/%s/search {"hybrid": {"embedder": "m"}, "vector": [1, 2], "limit": 50}`, `POST /indexes/%s/search {"facets": ["*"], "limit": 0}`,
		`POST /indexes/%s/search {"limit": 0, "aggregations": {"x": {"terms": {"attribute": "color"}}, "y": {"stats": {"attribute": "n"}}}}`,
		`POST /indexes/%s/facet-search {"facetName": "color", "facetQuery": "r"}`, `POST /indexes/%s/similar {"id": 7, "embedder": "m"}`,
		`GET /indexes/%s/documents?limit=100 `, `GET /indexes/%s/documents/7 `, `POST /indexes/%s/documents/fetch {"filter": "n < 3", "sort": ["n:desc"]}`,
		`POST /indexes/%s/documents/fetch {"ids": [1, 2, 3, 4, 5, 6, 7, 8, 9]}`, `GET /indexes/%s/stats `, `POST /indexes/%[1]s/fields {}`,
		`POST /multi-search {"queries": [{"indexUid": "%s", "q": "red"}]}`,
		`POST /multi-search {"federation": {"facetsByIndex": {"%[1]s": ["color"]}, "mergeFacets": {}}, "queries": [{"indexUid": "%[1]s", "q": "red"}, {"indexUid": "%[1]s", "q": "wine", "federationOptions": {"weight": 0.5}}]}`,
		`POST /indexes/%s/compare {"other": {"search": {"q": "wine"}}}`,
	}
	add(random.Perm(60))
	gone := 0
	for step := range 25 {
		if random.IntN(4) == 0 {
			left := slices.Sorted(maps.Keys(ends))
			add(left[:min(len(left), random.IntN(5))])
		}
		now.Add(int64(random.IntN(4)))
		var expired []string
		for id, end := range ends {
			if end <= now.Load() {
				expired = append(expired, fmt.Sprint(id))
				delete(ends, id)
			}
		}
		gone += len(expired)
		c.wait(c.json("POST", "/indexes/stay/documents/delete-batch", "["+strings.Join(expired, ",")+"]"))
		for _, request := range requests {
			var got, want reply
			for range 2 { // the second answer may be a cached one
				for uid, r := range map[string]*reply{"wait": &got, "stay": &want} {
					method, rest, _ := strings.Cut(fmt.Sprintf(request, uid), " ")
					path, body, _ := strings.Cut(rest, " ")
					if method == "GET" {
						*r = c.get(path)
					} else {
						*r = c.json(method, path, body)
					}
				}
				if got.status != want.status || unequal.ReplaceAllString(got.body, "") != unequal.ReplaceAllString(want.body, "") {
					t.Fatalf("seed %d, step %d at %d: %s: %d\n%s\nwant %d\n%s", seed, step, now.Load(), request, got.status, got.body, want.status, want.body)
				}
			}
		}
		var list struct{ Total int }
		if err := json.Unmarshal([]byte(c.get("/indexes/wait/documents").body), &list); err != nil || list.Total != len(ends) {
			t.Fatalf("seed %d: %d documents, %v, want %d", seed, list.Total, err, len(ends))
		}
	}
	if gone == 0 {
		t.Error("no document expired")
	}
}
