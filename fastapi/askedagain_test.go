package fastapi

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/network"
)

// TestCachedResultsSurviveChanges sends the same searches to two instances before and after the same changes. One caches results in
// segments, the other caches nothing.
func TestCachedResultsSurviveChanges(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	var instances []*client
	var catalogs []*index.Catalog
	for _, cache := range []int64{0, 1} {
		var o Options
		openInstanceOf(t, &o, network.Options{}, index.Options{Now: time.Now, SearchCacheBytes: cache})
		instances, catalogs = append(instances, newClient(t, o)), append(catalogs, o.Catalog)
	}
	both := func(method, path, body string) {
		t.Helper()
		var done []string
		for _, c := range instances {
			done = append(done, c.wait(c.json(method, path, body)))
		}
		if strings.Contains(done[0], `"succeeded"`) != strings.Contains(done[1], `"succeeded"`) {
			t.Fatalf("seed %d: %s %s %s: %s and %s", seed, method, path, body, done[0], done[1])
		}
	}
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	const most = 1800       // top hits and counts are cached for segments of 1,024 rows or more
	fields := []string{"a"} // fields of documents so far; others are added later
	all := []string{"a", "b", "c", "d"}
	value := func() string { return pick("1", "2", `"1"`, `"two"`, "true", "null", "[1, 2]", "[]") }
	document := func() string {
		var d strings.Builder
		fmt.Fprintf(&d, `{"id": %d, "n": %d, "k": "%s", "t": "`, r.IntN(most), r.IntN(20), pick("w", "x", "y", "z"))
		for range 1 + r.IntN(6) {
			d.WriteString(pick("red", "green", "shoe", "shoes", "boot", "hat", "cap", "wool") + " ")
		}
		d.WriteString(`"`)
		for _, f := range fields {
			if r.IntN(2) == 0 {
				fmt.Fprintf(&d, `, "%s": %s`, f, value())
			}
		}
		var objects []string
		for range r.IntN(3) {
			object := []string{fmt.Sprintf(`"p": %d`, r.IntN(3))}
			for _, f := range fields {
				if r.IntN(2) == 0 {
					object = append(object, fmt.Sprintf(`"%s": %s`, f, pick("1", "2", `"r"`)))
				}
			}
			objects = append(objects, "{"+strings.Join(object, ", ")+"}")
		}
		fmt.Fprintf(&d, `, "v": [%s]}`, strings.Join(objects, ", "))
		return d.String()
	}
	documents := func(n int) string {
		var list []string
		for range n {
			list = append(list, document())
		}
		return "[" + strings.Join(list, ", ") + "]"
	}
	condition := func() string {
		f := pick(append(all, "k", "n")...)
		return pick(f+" = 1", f+" != 1", f+" NOT IN [1, two]", f+" > 1", "NOT "+f+" = two", f+" EXISTS", f+" IS NULL", f+" IS NOT EMPTY",
			fmt.Sprintf("v.{%s != 1}", pick(all...)), fmt.Sprintf("v.{p = 1 AND NOT %s = r}", pick(all...)), fmt.Sprintf("v.{p > 0 AND %s != 2}", pick(all...)))
	}
	var questions []string
	for range 60 {
		q := []string{fmt.Sprintf(`"q": "%s"`, pick("", "", "shoe", "bo", "sheo", "red hat", "shoe -red", `\"red shoe\"`, "footwear", "wool cap boot"))}
		if r.IntN(3) > 0 {
			q = append(q, fmt.Sprintf(`"filter": "%s"`, pick(condition(), condition()+" AND "+condition(), condition()+" OR "+condition())))
		}
		for _, more := range []string{
			`"sort": ["` + pick("n:asc", "k:desc", "a:asc", "b:desc", "v.{a != 1}.b:asc") + `"]`,
			`"facets": ["` + pick("k", "n", "a", "b", "v.a", "id", "*") + `"]`,
			`"aggregations": {"s": {"stats": "` + pick("n", "b") + `"}, "t": {"terms": "` + pick("k", "a", "c") + `"}}`,
			`"attributesToHighlight": ["*"]`,
			`"showRankingScoreDetails": true`,
			`"attributesToSearchOn": ["t"]`,
			pick(`"distinct": "`+pick("k", "a")+`"`, `"groupBy": {"attribute": "`+pick("k", "n", "c")+`", "hitsPerGroup": 2}`),
			pick(`"offset": 3`, `"page": 2, "hitsPerPage": 5`),
		} {
			if r.IntN(4) == 0 {
				q = append(q, more)
			}
		}
		questions = append(questions, "{"+strings.Join(q, ", ")+"}")
	}
	const filterable = `"filterableAttributes": ["id", "k", "n", "a", "b", "c", "d", {"attributePatterns": ["v.*"], "features": {"elements": true}}]`
	for _, uid := range []string{"p", "o"} {
		both("POST", "/indexes", `{"uid": "`+uid+`", "primaryKey": "id"}`)
		both("PATCH", "/indexes/"+uid+"/settings", "{"+filterable+`, "sortableAttributes": ["n", "k", "a", "b"]}`)
		both("POST", "/indexes/"+uid+"/documents", documents(most-100))
	}
	answered := 0
	for step := range 40 {
		index := "/indexes/" + pick("p", "p", "o")
		switch r.IntN(9) {
		case 0, 1, 2:
			both("POST", index+"/documents", documents([]int{1, 1, 40}[r.IntN(3)]))
		case 3:
			if len(fields) < len(all) {
				fields = all[:len(fields)+1]
			}
			both("POST", index+"/documents", documents(1))
		case 4:
			both("POST", index+"/documents/delete-batch", fmt.Sprintf("[%d, %d, %d]", r.IntN(most), r.IntN(most), r.IntN(most)))
		case 5:
			both("POST", index+"/documents/delete", fmt.Sprintf(`{"filter": "n = %d AND id < %d"}`, r.IntN(20), r.IntN(most)))
		case 6:
			both("POST", "/swap-indexes", `[{"indexes": ["p", "o"]}]`)
		case 7:
			both("PATCH", index+"/settings", pick(`{"synonyms": {"footwear": ["shoe", "boot"]}}`, `{"synonyms": {}}`, `{"stopWords": ["red"]}`, `{"stopWords": []}`,
				`{"typoTolerance": {"enabled": false}}`, `{"typoTolerance": {"enabled": true}}`, `{"prefixSearch": "disabled"}`, `{"prefixSearch": "indexingTime"}`))
		case 8:
			both("PATCH", index+"/settings", pick(`{"searchableAttributes": ["t"]}`, `{"searchableAttributes": ["k", "t"]}`, `{"searchableAttributes": null}`,
				`{"rankingRules": ["sort", "words", "typo", "n:desc"]}`, `{"rankingRules": null}`, `{"distinctAttribute": "k"}`, `{"distinctAttribute": null}`,
				`{"filterableAttributes": ["id", "k", "n"]}`, "{"+filterable+"}"))
		}
		for range 20 {
			path, q := "/indexes/"+pick("p", "p", "o")+"/search", pick(questions...)
			for range 1 + r.IntN(3) {
				kept, anew := instances[0].json("POST", path, q), instances[1].json("POST", path, q)
				if kept.status != anew.status || still(kept.body) != still(anew.body) {
					t.Fatalf("seed %d, step %d: %s %s: %s, without cache %s", seed, step, path, q, kept.body, anew.body)
				}
				if kept.status == 200 {
					answered++
				}
			}
		}
	}
	_, hits, _ := catalogs[0].SearchCache()
	if _, none, _ := catalogs[1].SearchCache(); answered < 500 || hits < 500 || none > 0 {
		t.Errorf("seed %d: %d searches, %d cache hits, %d hits where nothing is cached", seed, answered, hits, none)
	}
}
