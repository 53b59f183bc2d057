package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

// answers sends a request, checks the status, and returns the JSON of the answer.
func (in *member) answers(t *testing.T, status int, method, path, body string) (v map[string]any) {
	t.Helper()
	got, text, err := in.ask(method, path, body, nil)
	if err != nil || got != status {
		t.Fatalf("%s: %s %s %s: %d %s %v, want %d", in.name, method, path, body, got, text, err, status)
	}
	if text != "" && json.Unmarshal([]byte(text), &v) != nil {
		t.Fatalf("%s: %s %s: %s", in.name, method, path, text)
	}
	return v
}

// done sends a write, waits until its task has succeeded, and returns the task.
func (in *member) done(t *testing.T, method, path, body string) (task map[string]any) {
	t.Helper()
	uid, _ := in.answers(t, 202, method, path, body)["taskUid"].(float64)
	status, text := in.finish(int(uid))
	if status != "succeeded" || json.Unmarshal([]byte(text), &task) != nil {
		t.Fatalf("%s: %s %s %s: %s", in.name, method, path, body, text)
	}
	return task
}

// idsOf returns the ids of the hits or documents of an answer.
func idsOf(answer map[string]any) string {
	list, ok := answer["hits"].([]any)
	if !ok {
		list, _ = answer["results"].([]any)
	}
	var ids []string
	for _, hit := range list {
		ids = append(ids, fmt.Sprint(hit.(map[string]any)["id"]))
	}
	return strings.Join(ids, " ")
}

// at returns the value at a path of members and indexes, as JSON.
func at(v any, path ...any) string {
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(map[string]any)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if v = nil; step < len(list) {
				v = list[step]
			}
		}
	}
	return marshal(v)
}

const laterFilms = `[{"id":1,"title":"metropolis of the night","color":"red"},{"id":2,"title":"night train","color":"blue"},` +
	`{"id":3,"title":"red night","color":"red"},{"id":4,"title":"the night watch","color":"green"}]`

// TestLaterAPI checks what v1.43 to v1.54 of the API added, on servers of both versions and on a network of three.
func TestLaterAPI(t *testing.T) {
	if testing.Short() {
		t.Skip("starts five servers")
	}
	held := make(chan struct{}) // embedding a text with "held" receives one
	outside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case r.URL.Path == "/rerank":
			fmt.Fprint(w, `{"results":[{"index":1},{"index":0}]}`)
			return
		case strings.Contains(string(body), "held"):
			select {
			case <-held:
			case <-r.Context().Done():
			}
		case strings.Contains(string(body), "slow"):
			select {
			case <-time.After(peace / 2):
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, `{"vector":[1,2]}`)
	}))
	t.Cleanup(outside.Close)
	embedder := `{"source":"rest","url":"` + outside.URL + `","dimensions":2,"documentTemplate":"{{doc.title}}","request":"{{text}}","response":{"vector":"{{embedding}}"}}`
	personal := []string{"--experimental-personalization-api-key", "key", "--experimental-personalization-url", outside.URL + "/rerank"}
	const master = "a-master-key-of-16-bytes"
	older := newMember(t, "v1.42", append(personal, "--master-key", master)...)
	newest := newMember(t, "v1.54", append(personal, "--master-key", master, "--api-version", "1.54")...)
	both := []*member{older, newest}
	for _, in := range both {
		in.key = master
		in.answers(t, 200, "PATCH", "/experimental-features", `{"dynamicSearchRules":true,"metrics":true,"foreignKeys":true}`)
		in.done(t, "PATCH", "/indexes/films/settings", `{"filterableAttributes":["color"],"stopWords":["the","of"]}`)
		in.done(t, "POST", "/indexes/films/documents", laterFilms)
	}
	together := newNetwork(t, "--api-version", "1.54")
	for _, in := range together {
		in.must("PATCH", "/experimental-features", `{"foreignKeys":true,"dynamicSearchRules":true}`, nil)
	}
	together[0].must("PATCH", "/indexes/films/settings", `{"filterableAttributes":["color","author"],"sortableAttributes":["id"],"foreignKeys":[{"fieldName":"author","foreignIndexUid":"authors"}]}`, nil)
	together[0].must("PATCH", "/indexes/authors/settings", `{"filterableAttributes":["name"]}`, nil)
	var films, authors []string
	for i := range 40 {
		films = append(films, fmt.Sprintf(`{"id":%d,"color":%q,"author":%d}`, i, []string{"red", "blue"}[i%2], i%5))
	}
	for i := range 5 {
		authors = append(authors, fmt.Sprintf(`{"id":%d,"name":"n%[1]d"}`, i))
	}
	together[0].must("POST", "/indexes/authors/documents", "["+strings.Join(authors, ",")+"]", nil)
	together[0].must("POST", "/indexes/films/documents", "["+strings.Join(films, ",")+"]", nil)
	settled(t, together, peace)

	t.Run("01 rules are written as tasks and shown as written", func(t *testing.T) {
		for _, in := range both {
			body := `{"precedence":3,"description":"winter coats","conditions":{"query":{"words":"call history"}},"actions":{"pin":[{"id":"4","position":0}],"scale":[]}}`
			task := in.done(t, "PATCH", "/dynamic-search-rules/a?customMetadata=note", body)
			if at(task, "type") != `"dsrUpdate"` || at(task, "indexUid") != `".meili_dsr"` || at(task, "customMetadata") != `"note"` || at(task, "details", "updatedRules") != "1" {
				t.Errorf("%s: %v", in.name, task)
			}
			rule := in.answers(t, 200, "GET", "/dynamic-search-rules/a", "")
			if at(rule, "precedence") != "3" || at(rule, "conditions", "query", "words") != `"call history"` || at(rule, "actions", "pin", 0, "id") != `"4"` || at(rule, "lastUpdatedAt") != at(task, "enqueuedAt") {
				t.Errorf("%s: %v", in.name, rule)
			}
			in.answers(t, 201, "PATCH", "/dynamic-search-rules/old", `{"priority":1,"conditions":[{"scope":"query","contains":"snow"}],"actions":[{"selector":{"id":"1"},"action":{"type":"pin","position":0}}]}`)
			if rule := in.answers(t, 200, "GET", "/dynamic-search-rules/old", ""); at(rule, "priority") != "1" || at(rule, "precedence") != "null" {
				t.Errorf("%s: %v", in.name, rule)
			}
		}
	})
	t.Run("02 the list of rules is searched and ordered", func(t *testing.T) {
		for _, in := range both {
			in.done(t, "PATCH", "/dynamic-search-rules/b", `{"precedence":1,"active":false,"conditions":{"query":{"words":"summer"}}}`)
			for body, want := range map[string]string{`{}`: `["b","a","old"]`, `{"filter":{"query":"wimter"}}`: `["a"]`, `{"filter":{"active":false}}`: `["b"]`, `{"offset":1,"limit":1}`: `["a"]`} {
				var uids []string
				for _, rule := range in.answers(t, 200, "POST", "/dynamic-search-rules", body)["results"].([]any) {
					uids = append(uids, rule.(map[string]any)["uid"].(string))
				}
				if marshal(uids) != want {
					t.Errorf("%s: %s lists %s, want %s", in.name, body, marshal(uids), want)
				}
			}
		}
	})
	t.Run("03 rules of both forms act in searches", func(t *testing.T) {
		for _, in := range both {
			in.done(t, "PATCH", "/dynamic-search-rules/filtered", `{"conditions":{"filter":{"values":{"color":"red"}}},"actions":{"scale":[{"weight":0,"ids":["1"],"indexUid":"films"}]}}`)
			for body, want := range map[string]string{
				`{"q":"where is call history","limit":1}`:       "4", // words in any order among others
				`{"q":"calls history","limit":1}`:               "",  // no prefix of a word
				`{"q":"snowfall","limit":1}`:                    "1", // a part of a word
				`{"filter":"color = red"}`:                      "3", // hidden
				`{"filter":"color = red OR color = green"}`:     "3 4",
				`{"filter":"color = green","q":"call history"}`: "4",
				`{"filter":"color = blue","q":"call history"}`:  "", // filters exclude pins
			} {
				if got := idsOf(in.answers(t, 200, "POST", "/indexes/films/search", body)); got != want {
					t.Errorf("%s: %s finds %q, want %q", in.name, body, got, want)
				}
			}
		}
	})
	t.Run("04 all rules are deleted", func(t *testing.T) {
		for _, in := range both {
			task := in.done(t, "DELETE", "/dynamic-search-rules", "")
			if at(task, "type") != `"dsrClear"` || at(task, "details", "deletedDocuments") != "4" || at(in.answers(t, 200, "POST", "/dynamic-search-rules", `{}`), "total") != "0" {
				t.Errorf("%s: %v", in.name, task)
			}
		}
	})
	t.Run("05 the leader writes the rules of a network", func(t *testing.T) {
		together[0].done(t, "PATCH", "/dynamic-search-rules/everywhere", `{"precedence":1,"actions":{"pin":[{"id":"7","position":0}]}}`)
		for _, in := range together {
			for deadline := time.Now().Add(peace); ; time.Sleep(10 * time.Millisecond) {
				if status, _, _ := in.ask("GET", "/dynamic-search-rules/everywhere", "", nil); status == 200 {
					break
				} else if time.Now().After(deadline) {
					t.Fatalf("%s has no rule", in.name)
				}
			}
		}
		if refused := together[1].answers(t, 400, "PATCH", "/dynamic-search-rules/other", `{"precedence":1}`); at(refused, "code") != `"not_a_leader"` {
			t.Errorf("a follower: %v", refused)
		}
		together[0].done(t, "DELETE", "/dynamic-search-rules", "")
	})
	t.Run("06 every instance has every document", func(t *testing.T) {
		for _, in := range together {
			lacks := 0
			for i := range 40 {
				path := fmt.Sprintf("/indexes/films/documents/%d", i)
				if doc := in.answers(t, 200, "GET", path, ""); at(doc, "id") != fmt.Sprint(i) {
					t.Errorf("%s: %v", in.name, doc)
				}
				if status, _, _ := in.ask("GET", path+"?useNetwork=false", "", nil); status == 404 {
					lacks++
				}
			}
			list := in.answers(t, 200, "POST", "/indexes/films/documents/fetch", `{"sort":["id:asc"],"offset":10,"limit":3}`)
			if lacks == 0 || lacks == 40 || at(list, "total") != "40" || len(list["results"].([]any)) != 3 || at(list, "remoteErrors") != "null" {
				t.Errorf("%s: %d documents are elsewhere: %v", in.name, lacks, list)
			}
		}
	})
	t.Run("07 facet searches count all documents", func(t *testing.T) {
		for _, in := range together {
			all := in.answers(t, 200, "POST", "/indexes/films/facet-search", `{"facetName":"color","facetQuery":"b"}`)
			if at(all, "facetHits") != `[{"count":20,"value":"blue"}]` || at(all, "remoteErrors") != "{}" {
				t.Errorf("%s: %v", in.name, all)
			}
		}
	})
	t.Run("08 foreign documents are of all instances", func(t *testing.T) {
		for _, in := range together {
			found := in.answers(t, 200, "POST", "/indexes/films/search", `{"filter":"_foreign(author, name = n3)","limit":40}`)
			hits := found["hits"].([]any)
			if len(hits) != 8 || slices.ContainsFunc(hits, func(hit any) bool { return at(hit, "author", "name") != `"n3"` }) {
				t.Errorf("%s: %v", in.name, found)
			}
		}
	})
	t.Run("09 sizes of indexes, and the last batch", func(t *testing.T) {
		for _, in := range both {
			stats := in.answers(t, 200, "GET", "/indexes/films/stats", "")
			all := in.answers(t, 200, "GET", "/stats?sizeFormat=human", "")
			_, metrics, _ := in.ask("GET", "/metrics", "", nil)
			shown := []bool{at(stats, "indexSize") > "0" && at(stats, "indexSize") != "null", at(stats, "usedIndexSize") != "null",
				strings.HasSuffix(at(all, "indexes", "films", "indexSize"), `B"`), strings.Contains(metrics, "last_indexed_documents_count{"), strings.Contains(metrics, "last_indexed_documents_duration_ms{")}
			if slices.Contains(shown, in != newest) {
				t.Errorf("%s: %v of %v and %v", in.name, shown, stats, all)
			}
		}
	})
	t.Run("10 keys of some indexes have no action on the instance", func(t *testing.T) {
		for _, in := range both {
			for _, action := range []string{"metrics.get", "dumps.create", "snapshots.create", "version", "keys.get", "experimental.get", "export", "network.get", "chats.get",
				"chatsSettings.get", "webhooks.get", "dynamicSearchRules.get", "tasks.compact"} {
				body := fmt.Sprintf(`{"actions":["search",%q],"indexes":["films"],"expiresAt":null}`, action)
				if refused := in.answers(t, 400, "POST", "/keys", body); at(refused, "code") != `"index_scoped_api_key_with_global_action"` {
					t.Errorf("%s: %s: %v", in.name, action, refused)
				}
			}
			in.answers(t, 201, "POST", "/keys", `{"actions":["search","documents.*","indexes.*","settings.*","tasks.get","stats.get","*.get"],"indexes":["films"],"expiresAt":null}`)
			in.answers(t, 201, "POST", "/keys", `{"actions":["dumps.create"],"indexes":["*"],"expiresAt":null}`)
		}
	})
	t.Run("11 stop words are not highlighted", func(t *testing.T) {
		for _, in := range both {
			found := in.answers(t, 200, "POST", "/indexes/films/search", `{"q":"metropolis of the","attributesToHighlight":["title"],"showMatchesPosition":true}`)
			if at(found, "hits", 0, "_formatted", "title") != marshal("<em>metropolis</em> of the night") || at(found, "hits", 0, "_matchesPosition", "title") != `[{"length":10,"start":0}]` {
				t.Errorf("%s: %v", in.name, found)
			}
		}
	})
	t.Run("12 federated searches are personalized, and timed by query", func(t *testing.T) {
		for _, in := range both {
			const queries = `"queries":[{"indexUid":"films","q":"red"},{"indexUid":"films","q":"metropolis"}]`
			plain := in.answers(t, 200, "POST", "/multi-search", `{"federation":{"showPerformanceDetails":true},`+queries+`}`)
			found := in.answers(t, 200, "POST", "/multi-search", `{"federation":{"personalize":{"userContext":"likes trains"}},`+queries+`}`)
			if ids := strings.Fields(idsOf(plain)); len(ids) != 2 || idsOf(found) != ids[1]+" "+ids[0] {
				t.Errorf("%s: %v is reranked to %v", in.name, plain, found)
			}
			details, _ := plain["performanceDetails"].(map[string]any)
			for _, name := range []string{"queries[0]", "queries[1]", "queries[0] > tokenize query", "queries[1] > keyword ranking"} {
				if details["federating results > execute local search > "+name] == nil {
					t.Errorf("%s: %s is not in %v", in.name, name, details)
				}
			}
			inside := in.answers(t, 400, "POST", "/multi-search", `{"federation":{},"queries":[{"indexUid":"films","personalize":{"userContext":"x"}}]}`)
			if at(inside, "code") != `"invalid_multi_search_query_personalization"` {
				t.Errorf("%s: %v", in.name, inside)
			}
		}
	})
	t.Run("13 deletions by filter share batches with additions", func(t *testing.T) {
		for _, in := range both {
			in.done(t, "PATCH", "/indexes/queued/settings", `{"filterableAttributes":["n"],"embedders":{"e":`+embedder+`}}`)
			in.must("POST", "/indexes/queued/documents", `[{"id":0,"title":"held"}]`, nil) // runs until the others are queued
			for _, step := range []string{
				`documents [{"id":1,"n":1,"title":"a"},{"id":2,"n":2,"title":"b"}]`, `documents/delete {"filter":"n = 1"}`, `documents [{"id":3,"n":1,"title":"c"}]`,
				`documents/delete {"filter":"m = 1"}`, `documents/delete {"filter":"n = 2"}`,
			} {
				path, body, _ := strings.Cut(step, " ")
				in.must("POST", "/indexes/queued/"+path, body, nil)
			}
			held <- struct{}{}
			in.finishAll()
			batches := map[string]bool{}
			failed := 0
			tasks := in.answers(t, 200, "GET", "/tasks?indexUids=queued&types=documentAdditionOrUpdate,documentDeletion", "")["results"].([]any)
			for _, task := range tasks {
				batches[at(task, "batchUid")] = true
				if at(task, "status") == `"failed"` {
					failed++
				}
			}
			if ids := idsOf(in.answers(t, 200, "GET", "/indexes/queued/documents", "")); len(tasks) != 6 || failed != 1 || len(batches) != 2 || ids != "0 3" {
				t.Errorf("%s: %d tasks in %d batches, %d failed; left is %q", in.name, len(tasks), len(batches), failed, ids)
			}
		}
	})
	t.Run("14 names of later features", func(t *testing.T) {
		for _, in := range both {
			const names = `{"mcpRoute":true,"disableDocumentsFetchQueue":true,"legacySearch":true,"tasksStreamingRoute":true,"renderRoute":true}`
			shown := in.answers(t, 200, "PATCH", "/experimental-features", names)
			for _, name := range []string{"mcpRoute", "disableDocumentsFetchQueue", "legacySearch", "tasksStreamingRoute", "renderRoute"} {
				if shown[name] != true {
					t.Errorf("%s: %s is %v", in.name, name, shown[name])
				}
			}
			if _, text, _ := in.ask("POST", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, nil); strings.Contains(text, "feature_not_enabled") {
				t.Errorf("%s: mcpRoute does not open the route: %s", in.name, text)
			}
			in.answers(t, 400, "PATCH", "/experimental-features", `{"laterStill":true}`)
		}
	})
	t.Run("15 embedding ends with searchCutoffMs, and urls choose no path", func(t *testing.T) {
		for _, in := range both {
			in.done(t, "PATCH", "/indexes/films/settings", `{"searchCutoffMs":300,"embedders":{"e":`+embedder+`}}`)
			began := time.Now()
			found := in.answers(t, 200, "POST", "/indexes/films/search", `{"q":"train slow","hybrid":{"embedder":"e","semanticRatio":0.5}}`)
			if took := time.Since(began); took > peace/4 || !strings.Contains(idsOf(found), "2") {
				t.Errorf("%s: %v after %s", in.name, found, took)
			}
			status, text, _ := in.ask("POST", "/indexes/films/search", `{"q":"train slow","hybrid":{"embedder":"e","semanticRatio":1}}`, nil)
			if status < 400 || !strings.Contains(text, "vector_embedding_error") {
				t.Errorf("%s: %d %s", in.name, status, text)
			}
			in.answers(t, 200, "PATCH", "/experimental-features", `{"network":true}`)
			for _, address := range []string{"http://127.0.0.1:1/a/../b", "http://127.0.0.1:1/#x", "http://127.0.0.1:1/?x=1"} {
				if refused := in.answers(t, 400, "PATCH", "/network", fmt.Sprintf(`{"remotes":{"r":{"url":%q}}}`, address)); at(refused, "code") != `"invalid_network_url"` {
					t.Errorf("%s: %s: %v", in.name, address, refused)
				}
			}
		}
	})
	t.Run("16 bad values change nothing", func(t *testing.T) {
		for _, in := range both {
			in.done(t, "PATCH", "/dynamic-search-rules/r", `{"precedence":1,"description":"as it was","actions":{"pin":[{"id":"4","position":0}]}}`)
			before := at(in.answers(t, 200, "GET", "/dynamic-search-rules/r", ""))
			tasks := at(in.answers(t, 200, "GET", "/tasks?limit=1", ""), "total")
			for _, bad := range laterMistakes {
				request, code, _ := strings.Cut(bad, " => ")
				parts := append(strings.SplitN(request, " ", 3), "")
				var refused struct{ Code string }
				if status, text, err := in.ask(parts[0], parts[1], parts[2], &refused); err != nil || status < 400 || refused.Code != code {
					t.Errorf("%s: %s: %d %s %v", in.name, bad, status, text, err)
				}
			}
			long := strings.Repeat("x", 70<<10)
			for _, body := range []string{`{"precedence":2,"description":"` + long + `"}`, `{"precedence":2,"conditions":{"query":{"words":"` + long + `"}}}`} {
				in.answers(t, 400, "PATCH", "/dynamic-search-rules/r", body)
			}
			if after := at(in.answers(t, 200, "GET", "/dynamic-search-rules/r", "")); after != before {
				t.Errorf("%s: the rule is %s, want %s", in.name, after, before)
			}
			if after := at(in.answers(t, 200, "GET", "/tasks?limit=1", ""), "total"); after != tasks {
				t.Errorf("%s: %s tasks, want %s", in.name, after, tasks)
			}
		}
	})
}

// laterMistakes are requests with an invalid value of what v1.43 to v1.54 added, and the codes of their answers.
var laterMistakes = []string{
	`PATCH /dynamic-search-rules/r {"precedence":-1} => invalid_dynamic_search_rule_priority`,
	`PATCH /dynamic-search-rules/r {"precedence":"1"} => invalid_dynamic_search_rule_priority`,
	`PATCH /dynamic-search-rules/r {"precedence":1.5} => invalid_dynamic_search_rule_priority`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"priority":1} => bad_request`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"unknown":1} => bad_request`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"lastUpdatedAt":"2026-01-01T00:00:00Z"} => bad_request`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"active":1} => invalid_dynamic_search_rule_active`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"description":1} => invalid_dynamic_search_rule_description`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"conditions":{"query":{"isEmpty":true,"words":"a"}}} => bad_request`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"conditions":{"query":{"words":1}}} => invalid_dynamic_search_rule_conditions`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"conditions":{"other":{}}} => bad_request`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"conditions":{"time":{"start":"2026-02-01T00:00:00Z","end":"2026-01-01T00:00:00Z"}}} => bad_request`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"conditions":{"filter":{"values":"red"}}} => invalid_dynamic_search_rule_conditions`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"actions":{"pin":[{"position":0}]}} => invalid_dynamic_search_rule_actions`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"actions":{"pin":[{"id":"1","position":-1}]}} => invalid_dynamic_search_rule_actions`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"actions":{"scale":[{"ids":["1"]}]}} => invalid_dynamic_search_rule_actions`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"actions":{"scale":[{"weight":-1}]}} => invalid_dynamic_search_rule_actions`,
	`PATCH /dynamic-search-rules/r {"precedence":2,"actions":{"other":[]}} => bad_request`,
	`POST /dynamic-search-rules {"filter":{"query":1}} => invalid_dynamic_search_rule_filter_query`,
	`POST /dynamic-search-rules {"filter":{"active":"yes"}} => invalid_dynamic_search_rule_filter_active`,
	`POST /dynamic-search-rules {"filter":[]} => invalid_dynamic_search_rule_filter`,
	`POST /dynamic-search-rules {"offset":-1} => invalid_dynamic_search_rule_offset`,
	`POST /dynamic-search-rules {"limit":"x"} => invalid_dynamic_search_rule_limit`,
	`POST /indexes/films/facet-search {"facetName":"color","useNetwork":1} => invalid_search_use_network`,
	`GET /indexes/films/documents/1?useNetwork=x => invalid_document_use_network`,
	`GET /indexes/films/documents?useNetwork=x => invalid_document_use_network`,
	`POST /indexes/films/documents/fetch {"useNetwork":"yes"} => invalid_document_use_network`,
	`GET /stats?sizeFormat=large => invalid_stats_size_format`,
	`GET /indexes/films/stats?showInternalDatabaseSizes=x => invalid_stats_show_internal_database_sizes`,
	`POST /multi-search {"federation":{"personalize":1},"queries":[{"indexUid":"films"}]} => invalid_search_personalize`,
	`POST /multi-search {"federation":{"personalize":{}},"queries":[{"indexUid":"films"}]} => invalid_search_personalize`,
	`POST /multi-search {"federation":{"personalize":{"userContext":1}},"queries":[{"indexUid":"films"}]} => invalid_search_personalize_user_context`,
	`POST /multi-search {"federation":{"personalize":{"userContext":"x","other":1}},"queries":[{"indexUid":"films"}]} => invalid_search_personalize`,
	`PATCH /experimental-features {"legacySearch":"yes"} => bad_request`,
	`PATCH /experimental-features {"mcpRoute":true,"mcp":false} => bad_request`,
	`PATCH /dynamic-search-rules/r?customMetadata {"precedence":2,"active":[]} => invalid_dynamic_search_rule_active`,
	`PATCH /dynamic-search-rules/a.b {"precedence":2} => dynamic_search_rule_not_found`,
}
