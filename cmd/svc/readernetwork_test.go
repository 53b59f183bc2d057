package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"svc/internal/group"
)

// TestAReaderOfAnInstanceOfANetwork checks that a reader answers as the instance that it follows, also while that is away, and continues
// as that instance after a promotion.
func TestAReaderOfAnInstanceOfANetwork(t *testing.T) {
	addr := fmt.Sprintf("127.0.0.1:%d", freePort(t, 1, "127.0.0.1"))
	options := []string{"--master-key", groupKey}
	grouped := append(options[:1:1], groupKey, "--group-name", "shop")
	a := newMember(t, "a", options...)
	b := newMember(t, "b", append(grouped[:len(grouped):len(grouped)], "--group-addr", addr)...)
	a.key, b.key = groupKey, groupKey
	remotes := ""
	for _, in := range []*member{a, b} {
		in.must("PATCH", "/experimental-features", `{"network":true}`, nil)
		remotes += fmt.Sprintf(`,%q:{"url":"http://%s","searchApiKey":%q,"writeApiKey":%q}`, in.name, in.reached(), groupKey, groupKey)
	}
	a.change(`{"self":"a","leader":"a","remotes":{` + remotes[1:] + `},"shards":{"x":{"remotes":["a"]},"y":{"remotes":["b"]}}}`)
	var docs []string
	for id := range 60 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"text":"word %d","kind":%d}`, id, id, id%3))
	}
	a.must("PATCH", "/indexes/m/settings", `{"filterableAttributes":["kind"]}`, nil)
	a.must("POST", "/indexes/m/documents", "["+strings.Join(docs, ",")+"]", nil)
	a.finishAll()
	b.finishAll()
	r := newMember(t, "r", append(grouped[:len(grouped):len(grouped)], "--group-role", "reader", "--group-join", addr, "--group-addr", fmt.Sprintf("127.0.0.1:%d", freePort(t, 2, "127.0.0.1")))...)
	r.key = groupKey
	reader := groupMember{&instance{t: t, url: r.url}}
	reader.until("following", func(s *group.Status) bool { return s.Reader != nil && s.Reader.AnswersReads })
	asked := [][3]string{
		{"POST", "/indexes/m/search", `{"q":"word","limit":100,"facets":["kind"]}`},
		{"POST", "/multi-search", `{"federation":{"limit":100},"queries":[{"indexUid":"m","q":"word"}]}`},
		{"POST", "/indexes/m/facet-search", `{"facetName":"kind"}`},
		{"POST", "/indexes/m/documents/fetch", `{"limit":100}`},
		{"GET", "/indexes/m/documents?limit=100", ""},
	}
	for id := range 8 {
		asked = append(asked, [3]string{"GET", fmt.Sprintf("/indexes/m/documents/%d", id), ""})
	}
	want := map[[3]string]string{}
	same := func(what string) {
		t.Helper()
		for _, q := range asked {
			var status int
			var text string
			for deadline := time.Now().Add(peace); ; time.Sleep(10 * time.Millisecond) {
				var err error
				status, text, err = r.ask(q[0], q[1], q[2], nil)
				if text = times.ReplaceAllString(text, ""); err == nil && status == 200 && text == want[q] {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("%s: the answer to %s %s is %d\n%s\nwant\n%s", what, q[0], q[1], status, text, want[q])
				}
			}
		}
	}
	take := func() {
		t.Helper()
		for _, q := range asked {
			status, text, err := b.ask(q[0], q[1], q[2], nil)
			if want[q] = times.ReplaceAllString(text, ""); err != nil || status != 200 || strings.Contains(text, `"remote_`) {
				t.Fatalf("%s %s: %d %s %v", q[0], q[1], status, text, err)
			}
		}
		if s := want[asked[0]]; !strings.Contains(s, `"estimatedTotalHits":60`) {
			t.Fatalf("not all documents are found: %s", s)
		}
	}
	take()
	same("at first")
	a.change(`{"shards":{"w":{"remotes":["a"]},"v":{"remotes":["b"]}}}`)
	b.finishAll()
	take()
	same("after a change of the network")
	// The writer answers requests of other instances.
	merged := func() (int, string) {
		req, _ := http.NewRequest("POST", r.url+"/multi-search", strings.NewReader(`{"federation":{},"queries":[{"useNetwork":false,"indexUid":"m","q":"word"}]}`))
		for name, value := range map[string]string{"Svc-Proxy-Search": "true", "Content-Type": "application/json", "Authorization": "Bearer " + groupKey} {
			req.Header.Set(name, value)
		}
		res, err := networkClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		return res.StatusCode, res.Header.Get("Svc-Network-Version")
	}
	var n struct{ Version string }
	b.must("GET", "/network", "", &n)
	if status, version := merged(); status != 200 || version != n.Version {
		t.Errorf("the answer to another instance is %d with version %q, want %q", status, version, n.Version)
	}
	b.kill()
	if status, _ := merged(); status != 503 {
		t.Errorf("without the writer, the answer to another instance is %d", status)
	}
	same("without the writer")
	// The promoted reader becomes the instance. The others need its address.
	r.must("POST", "/group/promote", `{"force":true}`, nil)
	a.change(fmt.Sprintf(`{"remotes":{"b":{"url":"http://%s"}}}`, r.reached()))
	a.must("POST", "/indexes/m/documents", "["+strings.ReplaceAll(strings.Join(docs, ","), "word", "other")+"]", nil)
	a.finishAll()
	r.finishAll()
	for _, in := range []*member{a, r} {
		if _, text, err := in.ask("POST", "/indexes/m/search", `{"q":"other","limit":100}`, nil); err != nil || !strings.Contains(text, `"estimatedTotalHits":60`) || strings.Contains(text, `"remote_`) {
			t.Errorf("after the promotion, %s answers %s %v", in.name, text, err)
		}
	}
}
