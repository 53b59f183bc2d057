package fastapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTheExamplesOfAliases(t *testing.T) {
	c, _ := newInstance(t, Options{})
	runExamples(t, c, "../docs/ALIASES.md")
}

// newAliased returns an instance with the indexes a, b and c, one document in each, and the alias x of a.
func newAliased(t *testing.T) *client {
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey)})
	c = c.as(masterKey)
	for _, uid := range []string{"a", "b", "c"} {
		c.wait(c.json("PATCH", "/indexes/"+uid+"/settings", `{"filterableAttributes": ["of", "id"]}`))
		c.wait(c.json("POST", "/indexes/"+uid+"/documents", `[{"id": 1, "of": "`+uid+`"}, {"id": 2, "of": "`+uid+`"}]`))
	}
	if r := c.json("PUT", "/aliases/x", `{"indexUid": "a"}`); r.status != 200 || r.body != `{"alias":"x","indexUid":"a"}` {
		t.Fatalf("%d %s", r.status, r.body)
	}
	return c
}

func TestAliasesAreRefused(t *testing.T) {
	c := newAliased(t)
	for _, tt := range []struct {
		route, body string
		status      int
		code        string
	}{
		{"PUT /aliases/not%20valid", `{"indexUid": "a"}`, 400, "invalid_alias_uid"},
		{"GET /aliases/not%20valid", ``, 400, "invalid_alias_uid"},
		{"GET /aliases/none", ``, 404, "alias_not_found"},
		{"DELETE /aliases/none", ``, 404, "alias_not_found"},
		{"DELETE /aliases/a", ``, 409, "index_already_exists"},
		{"PUT /aliases/y", `{}`, 400, "missing_alias_index_uid"},
		{"PUT /aliases/y", `{"indexUid": null}`, 400, "invalid_alias_index_uid"},
		{"PUT /aliases/y", `{"indexUid": "a b"}`, 400, "invalid_alias_index_uid"},
		{"PUT /aliases/y", `{"indexUid": "none"}`, 404, "index_not_found"},
		{"PUT /aliases/y", `{"uid": "a"}`, 400, "bad_request"},
		{"PUT /aliases/b", `{"indexUid": "a"}`, 409, "index_already_exists"},
		{"POST /aliases", `{}`, 400, "bad_request"},
		{"POST /aliases", `[{"indexUid": "a"}]`, 400, "missing_alias_uid"},
		{"POST /aliases", `[{"alias": "y"}]`, 400, "missing_alias_index_uid"},
		{"POST /aliases", `[{"alias": "y!", "indexUid": "a"}]`, 400, "invalid_alias_uid"},
		{"POST /aliases", `[{"alias": "y", "indexUid": 5}]`, 400, "invalid_alias_index_uid"},
		{"POST /aliases", `[{"alias": "y", "indexUid": "a"}, {"alias": "y", "indexUid": "b"}]`, 400, "duplicate_alias_found"},
		{"POST /aliases", `[{"alias": "y", "indexUid": "a"}, {"alias": "z", "indexUid": null}]`, 404, "alias_not_found"},
	} {
		method, path, _ := strings.Cut(tt.route, " ")
		r := c.json(method, path, tt.body)
		if r.status != tt.status || r.code() != tt.code {
			t.Errorf("%s %s: %d %s, want %d %s", tt.route, tt.body, r.status, r.body, tt.status, tt.code)
		}
	}
	if r := c.get("/aliases"); r.body != `{"results":[{"alias":"x","indexUid":"a"}],"offset":0,"limit":20,"total":1}` {
		t.Errorf("%s", r.body)
	}
	// No index can take the name of an alias.
	for _, r := range []reply{c.json("POST", "/indexes", `{"uid": "x"}`), c.json("PATCH", "/indexes/b", `{"uid": "x", "primaryKey": "id"}`)} {
		if end := c.end(r); end.Error.Code != "alias_already_exists" {
			t.Errorf("%+v", end)
		}
	}
}

// TestAliasesStandForIndexes sends requests with an alias in place of an index.
func TestAliasesStandForIndexes(t *testing.T) {
	c := newAliased(t)
	for _, tt := range []struct{ route, body, has string }{
		{"GET /indexes/x", ``, `"uid":"a"`},
		{"GET /indexes/x/documents/1", ``, `{"id":1,"of":"a"}`},
		{"POST /indexes/x/documents/fetch", `{"filter": "id = 2"}`, `[{"id":2,"of":"a"}]`},
		{"GET /indexes/x/search?q=a", ``, `"hits":[{"id":1,"of":"a"}`},
		{"POST /indexes/x/search", `{"q": "a"}`, `"hits":[{"id":1,"of":"a"}`},
		{"POST /indexes/x/facet-search", `{"facetName": "of"}`, `{"value":"a","count":2}`},
		{"GET /indexes/x/stats", ``, `"numberOfDocuments":2`},
		{"GET /indexes/x/settings/filterable-attributes", ``, `"of"`},
		{"POST /indexes/x/fields", `{}`, `"name":"of"`},
		{"POST /multi-search", `{"queries": [{"indexUid": "x"}, {"indexUid": "b"}]}`, `{"indexUid":"a","hits":[{"id":1,"of":"a"}`},
		{"POST /multi-search", `{"federation": {"facetsByIndex": {"x": ["of"]}}, "queries": [{"indexUid": "x"}]}`, `"_federation":{"indexUid":"a"`},
		{"POST /render-template", `{"template": {"kind": "chatDocumentTemplate", "indexUid": "x"}, "input": {"kind": "indexDocument", "indexUid": "x", "id": "1"}}`, `"rendered":"id: 1`},
		{"POST /indexes/x/compare", `{"other": {"search": {"q": "b"}}}`, `"current":{"hits":[{"id":1,"of":"a"}`},
		{"GET /batches?indexUids=x&limit=1", ``, `"indexUids":{"a":`},
		{"GET /indexes/x/segments", ``, `"segments"`},
		{"GET /indexes/x/settings", ``, `"of"`},
		{"GET /tasks?indexUids=x&limit=1", ``, `"indexUid":"a"`},
		{"GET /aliases/x", ``, `{"alias":"x","indexUid":"a"}`},
	} {
		method, path, _ := strings.Cut(tt.route, " ")
		r := c.json(method, path, tt.body)
		if r.status != 200 || !strings.Contains(r.body, tt.has) {
			t.Errorf("%s %s: %d %s, want %s", tt.route, tt.body, r.status, r.body, tt.has)
		}
	}
	for _, tt := range []struct{ route, body string }{
		{"POST /indexes/x/documents", `{"id": 3, "of": "a"}`},
		{"PUT /indexes/x/documents", `{"id": 3, "n": 1}`},
		{"PATCH /indexes/x/documents", `{"id": 3, "increment": {"n": 1}}`},
		{"PATCH /indexes/x/settings", `{"stopWords": ["the"]}`},
		{"POST /indexes/x/compact", ``},
		{"DELETE /indexes/x/documents/1", ``},
	} {
		method, path, _ := strings.Cut(tt.route, " ")
		r := c.json(method, path, tt.body)
		if !strings.Contains(r.body, `"indexUid":"a"`) {
			t.Errorf("%s: %d %s", tt.route, r.status, r.body)
			continue
		}
		if end := c.end(r); end.Status != "succeeded" {
			t.Errorf("%s: %+v", tt.route, end)
		}
	}
	if r := c.get("/indexes/a/documents"); !strings.Contains(r.body, `[{"id":2,"of":"a"},{"id":3,"of":"a","n":2}]`) {
		t.Errorf("%s", r.body)
	}
	// A swap accepts aliases, which stay with the uid.
	c.wait(c.json("POST", "/swap-indexes", `[{"indexes": ["x", "b"]}]`))
	if r := c.get("/indexes/x/documents/1"); r.body != `{"id":1,"of":"b"}` {
		t.Errorf("after a swap: %s", r.body)
	}
	// The deletion of an index removes its alias, and leaves the others.
	c.wait(c.send("DELETE", "/indexes/x", nil))
	if a, x, b := c.get("/indexes/a"), c.get("/aliases/x"), c.get("/indexes/b"); a.status != 404 || x.code() != "alias_not_found" || b.status != 200 {
		t.Errorf("after a deletion: %d, %s, %d", a.status, x.body, b.status)
	}
}

// TestKeysNameAliases checks what keys and tokens allow through an alias, before and after it moves.
func TestKeysNameAliases(t *testing.T) {
	c := newAliased(t)
	named := c.as(c.makeKey(`["search", "documents.get", "indexes.get"]`, `["x"]`))
	own := c.as(c.makeKey(`["*"]`, `["b", "b_*"]`))
	opens := func(k *client, uid string, want bool) {
		t.Helper()
		r := k.json("POST", "/indexes/"+uid+"/search", `{}`)
		if (r.status == 200) != want || !want && r.code() != "invalid_api_key" {
			t.Errorf("%s: %d %s", uid, r.status, r.body)
		}
		many := k.json("POST", "/multi-search", `{"queries": [{"indexUid": "`+uid+`"}]}`)
		if (many.status == 200) != want {
			t.Errorf("%s among several: %d %s", uid, many.status, many.body)
		}
	}
	opens(named, "x", true)
	opens(named, "a", true)
	opens(named, "b", false)
	opens(own, "x", false)
	if r := own.json("POST", "/indexes/x/search", `{}`); strings.Contains(r.body, "`a`") {
		t.Errorf("a key without access learns the index of an alias: %s", r.body)
	}
	if r := own.get("/aliases/x"); r.code() != "alias_not_found" {
		t.Errorf("a key without access sees an alias: %s", r.body)
	}
	if r := own.get("/aliases"); !strings.Contains(r.body, `"total":0`) {
		t.Errorf("a key without access lists aliases: %s", r.body)
	}
	if r := named.get("/indexes"); !strings.Contains(r.body, `"uid":"a"`) || strings.Contains(r.body, `"uid":"b"`) {
		t.Errorf("indexes by an alias: %s", r.body)
	}
	// A key may not create, move or delete an alias of an index that it may not access.
	for _, tt := range []struct{ route, body string }{
		{"PUT /aliases/b_new", `{"indexUid": "a"}`}, {"PUT /aliases/x", `{"indexUid": "b"}`}, {"PUT /aliases/y", `{"indexUid": "b"}`},
		{"DELETE /aliases/x", ``}, {"POST /aliases", `[{"alias": "b_new", "indexUid": "x"}]`}, {"POST /aliases", `[{"alias": "x", "indexUid": null}]`},
	} {
		method, path, _ := strings.Cut(tt.route, " ")
		if r := own.json(method, path, tt.body); r.code() != "invalid_api_key" {
			t.Errorf("%s %s: %d %s", tt.route, tt.body, r.status, r.body)
		}
	}
	if r := own.json("PUT", "/aliases/b_new", `{"indexUid": "b"}`); r.status != 200 {
		t.Errorf("its own: %d %s", r.status, r.body)
	}
	// A key cannot create a key whose rights depend on a current alias.
	maker := c.as(c.oldKey([]string{"*"}, []string{"x"}))
	if r := maker.json("POST", "/keys", `{"actions": ["search"], "indexes": ["a"], "expiresAt": null}`); r.status < 400 {
		t.Errorf("a permanent right: %d %s", r.status, r.body)
	}

	if r := c.json("PUT", "/aliases/x", `{"indexUid": "b"}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	opens(named, "x", true)
	opens(named, "b", true)
	opens(named, "a", false)
	opens(own, "x", true)

	for _, tt := range []struct{ rules, uid, ids string }{
		{`{"x": {"filter": "id = 1"}}`, "x", "1"},
		{`{"x": {"filter": "id = 1"}}`, "b", "1"},
		{`{"x": {"filter": "id = 1"}}`, "a", "-"},
		{`{"b": {"filter": "id = 2"}}`, "x", "2"},
		{`{"b": {"filter": "id = 2"}, "x": {"filter": "id = 1"}}`, "x", ""},
		{`{"b": {"filter": ["id = 2"]}, "x": {"filter": [["of = b", "of = c"]]}}`, "b", "2"},
		{`{"*": null, "x": {"filter": "id = 1"}}`, "b", "1"},
		{`{"*": null, "x": {"filter": "id = 1"}}`, "a", "1 2"},
	} {
		k := c.as(c.tenantToken(`{"searchRules": ` + tt.rules + `}`))
		for _, body := range []string{`{"showRankingScore": true}`, `{}`} { // answers of the latter are cached
			r := k.json("POST", "/indexes/"+tt.uid+"/search", body)
			var got struct{ Hits []struct{ ID int } }
			if err := json.Unmarshal([]byte(r.body), &got); err != nil {
				t.Fatal(err)
			}
			ids := []string{}
			for _, h := range got.Hits {
				ids = append(ids, fmt.Sprint(h.ID))
			}
			text := strings.Join(ids, " ")
			if r.status == 403 {
				text = "-"
			}
			if text != tt.ids {
				t.Errorf("%s on %s: %q, want %q", tt.rules, tt.uid, text, tt.ids)
			}
		}
	}
}

// TestAliasesAgainstAModel changes aliases and indexes at random, and compares them with a model after each change.
func TestAliasesAgainstAModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	c, _ := newInstance(t, Options{})
	names := []string{"a", "b", "c", "d", "e", "f", "g"} // names of indexes or aliases
	indexes, aliases := map[string]string{}, map[string]string{}
	moved, refused := 0, 0
	for n := range 150 {
		did := ""
		switch any, other := names[random.IntN(len(names))], names[random.IntN(len(names))]; random.IntN(6) {
		case 0:
			if len(indexes) > 2 && indexes[any] == "" && aliases[any] == "" { // leave some names for aliases
				continue
			}
			did = "create " + any
			content := fmt.Sprint("content-", n)
			end := c.end(c.json("POST", "/indexes/"+any+"/documents", `{"id": 1, "of": "`+content+`"}`))
			if end.Status != "succeeded" {
				t.Fatalf("%s: %+v", did, end)
			}
			if uid := aliases[any]; uid != "" {
				any = uid
			}
			indexes[any] = content
		case 1:
			if len(indexes) < 2 {
				continue
			}
			did = "delete " + any
			if uid := aliases[any]; uid != "" {
				any = uid
			}
			if end := c.end(c.send("DELETE", "/indexes/"+any, nil)); (end.Status == "succeeded") != (indexes[any] != "") {
				t.Fatalf("%s: %+v", did, end)
			}
			delete(indexes, any)
			maps.DeleteFunc(aliases, func(_, uid string) bool { return uid == any })
		case 2:
			did = "rename " + any + " to " + other
			if uid := aliases[any]; uid != "" {
				any = uid
			}
			can := indexes[any] != "" && (indexes[other] == "" && aliases[other] == "" || other == any)
			if end := c.end(c.json("PATCH", "/indexes/"+any, `{"uid": "`+other+`"}`)); (end.Status == "succeeded") != can {
				t.Fatalf("%s: %+v", did, end)
			}
			if !can || any == other {
				break
			}
			indexes[other] = indexes[any]
			delete(indexes, any)
			for alias, uid := range aliases {
				if uid == any {
					aliases[alias] = other
				}
			}
		default:
			next, can := maps.Clone(aliases), true
			var moves []string
			for _, i := range random.Perm(len(names))[:1+random.IntN(3)] {
				alias, to := names[i], names[random.IntN(len(names))]
				if there := slices.Sorted(maps.Keys(indexes)); len(there) > 0 && random.IntN(4) > 0 {
					to = there[random.IntN(len(there))]
				}
				if random.IntN(4) == 0 {
					can = can && indexes[alias] == "" && next[alias] != ""
					moves = append(moves, `{"alias": "`+alias+`", "indexUid": null}`)
					delete(next, alias)
					continue
				}
				moves = append(moves, `{"alias": "`+alias+`", "indexUid": "`+to+`"}`)
				if uid := aliases[to]; uid != "" {
					to = uid
				}
				can = can && indexes[alias] == "" && indexes[to] != ""
				next[alias] = to
			}
			did = "[" + strings.Join(moves, ", ") + "]"
			r := c.json("POST", "/aliases", did)
			if (r.status == 200) != can {
				t.Fatalf("%s: %d %s; indexes %v, aliases %v", did, r.status, r.body, indexes, aliases)
			}
			if can {
				aliases = next
				moved++
			} else {
				refused++
			}
		}
		var list struct {
			Results []struct{ Alias, IndexUID string }
		}
		if err := json.Unmarshal([]byte(c.get("/aliases?limit=100").body), &list); err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, x := range list.Results {
			got[x.Alias] = x.IndexUID
		}
		if !maps.Equal(got, aliases) {
			t.Fatalf("after %s: aliases %v, want %v", did, got, aliases)
		}
		for _, name := range names {
			uid := name
			if aliases[name] != "" {
				uid = aliases[name]
			}
			r := c.json("POST", "/indexes/"+name+"/search", `{}`)
			if content := indexes[uid]; content == "" && r.code() != "index_not_found" || content != "" && !strings.Contains(r.body, `"of":"`+content+`"`) {
				t.Fatalf("after %s: %s finds %s, want %q; aliases %v", did, name, r.body, content, aliases)
			}
		}
	}
	if moved == 0 || refused == 0 {
		t.Errorf("%d moves succeeded, %d were refused", moved, refused)
	}
}

// TestMovesAreAtomicForSearches moves two aliases together while clients search through both: no search may see only one of them moved.
func TestMovesAreAtomicForSearches(t *testing.T) {
	c := newAliased(t)
	point := func(uid string) {
		t.Helper()
		if r := c.json("POST", "/aliases", `[{"alias": "x", "indexUid": "`+uid+`"}, {"alias": "y", "indexUid": "`+uid+`"}]`); r.status != 200 {
			t.Fatalf("%d %s", r.status, r.body)
		}
	}
	point("a")
	done := make(chan struct{})
	var searching sync.WaitGroup
	var searched atomic.Int64
	defer searching.Wait()
	defer close(done)
	for range 3 {
		searching.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				r := c.json("POST", "/multi-search", `{"queries": [{"indexUid": "x", "attributesToRetrieve": ["of"], "limit": 1}, {"indexUid": "y", "attributesToRetrieve": ["of"], "limit": 1}]}`)
				for _, uid := range []string{"a", "b"} {
					if r.status != 200 || strings.Contains(r.body, `"indexUid":"`+uid+`"`) && strings.Count(r.body, `[{"of":"`+uid+`"}]`) != 2 {
						t.Errorf("%d %s", r.status, r.body)
						return
					}
				}
				searched.Add(1)
			}
		})
	}
	for i := 0; (i < 50 || searched.Load() < 50) && !t.Failed(); i++ {
		point([]string{"b", "a"}[i%2])
	}
}
