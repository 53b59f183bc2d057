package main

import (
	"fmt"
	"math/rand/v2"
)

// randomWrite returns a request that changes one of the indexes a to d, or something beside them. It may be refused, and its task may
// fail. The indexes a and b, and the alias main of one of them, stay.
func randomWrite(r *rand.Rand) (method, path, body string) {
	uid := []string{"a", "b", "c"}[r.IntN(3)]
	doc := func() string {
		return fmt.Sprintf(`{"id":%d,"text":"word %d of %s","kind":%d,"v":%d,"tags":["t%d"]}`, r.IntN(30), r.IntN(5), uid, r.IntN(3), r.IntN(1000), r.IntN(4))
	}
	index := "/indexes/" + uid
	one := func(kind string) string { return fmt.Sprintf(kind, r.IntN(4)) }
	writes := []func() (string, string, string){
		func() (string, string, string) { return "POST", index + "/documents", "[" + doc() + "," + doc() + "]" },
		func() (string, string, string) { return "POST", index + "/documents", "[" + doc() + "]" },
		func() (string, string, string) { return "PUT", index + "/documents", "[" + doc() + "]" },
		func() (string, string, string) {
			return "PATCH", index + "/documents", fmt.Sprintf(`[{"id":%d,"increment":{"v":%d},"addToSet":{"tags":["p"]}},{"id":%d,"set":{"text":"word"},"ifMissing":"create"}]`, r.IntN(30), r.IntN(9), r.IntN(40))
		},
		func() (string, string, string) {
			return "POST", index + "/documents/edit", fmt.Sprintf(`{"function":"doc.v = %d","filter":"kind = %d"}`, r.IntN(100), r.IntN(3))
		},
		func() (string, string, string) {
			return "DELETE", fmt.Sprintf("%s/documents/%d", index, r.IntN(30)), ""
		},
		func() (string, string, string) {
			return "POST", index + "/documents/delete-batch", fmt.Sprintf("[%d,%d]", r.IntN(30), r.IntN(30))
		},
		func() (string, string, string) {
			return "POST", index + "/documents/delete", fmt.Sprintf(`{"filter":"v > %d"}`, 500+r.IntN(500))
		},
		func() (string, string, string) {
			return "PATCH", index + "/settings", fmt.Sprintf(`{"synonyms":{"word":["w%d"]},"filterableAttributes":["kind","v","tags"],"sortableAttributes":["v"]}`, r.IntN(9))
		},
		func() (string, string, string) {
			return "PUT", index + "/settings/stop-words", one(`["of","stop%d"]`)
		},
		func() (string, string, string) { return "DELETE", index + "/settings/synonyms", "" },
		func() (string, string, string) {
			return "POST", "/indexes", fmt.Sprintf(`{"uid":%q,"primaryKey":"id"}`, uid)
		},
		func() (string, string, string) { return "POST", "/swap-indexes", `[{"indexes":["a","b"]}]` },
		func() (string, string, string) {
			return "POST", "/swap-indexes", `[{"indexes":["c","d"],"rename":true}]`
		},
		func() (string, string, string) { return "DELETE", []string{"/indexes/c", "/indexes/d"}[r.IntN(2)], "" },
		func() (string, string, string) { return "POST", index + "/compact", "" },
		func() (string, string, string) {
			return "PUT", "/aliases/main", fmt.Sprintf(`{"indexUid":%q}`, []string{"a", "b"}[r.IntN(2)])
		},
		func() (string, string, string) { return "PUT", "/aliases/extra", fmt.Sprintf(`{"indexUid":%q}`, uid) },
		func() (string, string, string) { return "DELETE", "/aliases/extra", "" },
		func() (string, string, string) {
			return "POST", "/keys", fmt.Sprintf(`{"actions":["search"],"indexes":["*"],"expiresAt":null,"name":"key %d"}`, r.IntN(1000))
		},
		func() (string, string, string) {
			return "POST", "/keys", one(`{"uid":"4b1a3e0c-0000-4000-8000-00000000000%d","actions":["search"],"indexes":["*"],"expiresAt":null}`)
		},
		func() (string, string, string) {
			return "PATCH", one("/keys/4b1a3e0c-0000-4000-8000-00000000000%d"), one(`{"name":"key %d"}`)
		},
		func() (string, string, string) {
			return "DELETE", one("/keys/4b1a3e0c-0000-4000-8000-00000000000%d"), ""
		},
		func() (string, string, string) {
			return "POST", "/webhooks", fmt.Sprintf(`{"url":"http://127.0.0.1:1/%d"}`, r.IntN(1000))
		},
		func() (string, string, string) {
			return "PATCH", "/chats/w/settings", fmt.Sprintf(`{"source":"openAi","apiKey":"key-%d-of-the-test"}`, r.IntN(1000))
		},
		func() (string, string, string) { return "DELETE", "/chats/w", "" },
		func() (string, string, string) {
			return "PATCH", "/experimental-features", fmt.Sprintf(`{"multimodal":%t,"dynamicSearchRules":true,"chatCompletions":true,"editDocumentsByFunction":true}`, r.IntN(2) == 0)
		},
		func() (string, string, string) {
			return "PATCH", "/dynamic-search-rules/r", one(`{"actions":[{"selector":{"indexUid":"a","id":"1"},"action":{"type":"pin","position":%d}}]}`)
		},
		func() (string, string, string) { return "DELETE", "/dynamic-search-rules/r", "" },
		func() (string, string, string) {
			return "POST", fmt.Sprintf("/tasks/cancel?uids=%d&indexUids=a,b,c", r.IntN(40)), ""
		},
		func() (string, string, string) {
			return "DELETE", fmt.Sprintf("/tasks?uids=%d&indexUids=a,b,c", r.IntN(40)), ""
		},
		func() (string, string, string) { return "POST", "/tasks/compact", "" },
	}
	n := r.IntN(len(writes) + 8) // documents more often
	if n >= len(writes) {
		n -= len(writes)
	}
	return writes[n]()
}
