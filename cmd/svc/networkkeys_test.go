package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"
)

// The actions that docs/NETWORK.md gives to the keys between instances.
var (
	searchActions = []string{"search"}
	writeActions  = []string{"network.get", "network.update", "documents.*", "indexes.*", "settings.*", "tasks.get", "experimental.get", "dynamicSearchRules.update", "dynamicSearchRules.delete"}
)

// newProtectedMember starts an instance with a master key. entry is how other instances reach it.
func newProtectedMember(t *testing.T, name string) (in *member, entry string) {
	t.Helper()
	master := "the-master-key-of-" + name
	in = newMember(t, name, "--master-key", master, "--experimental-proxy-backoff-timeout-seconds", "2")
	in.key = master
	in.must("PATCH", "/experimental-features", `{"network":true}`, nil)
	return in, fmt.Sprintf(`%q:{"url":"http://%s","searchApiKey":%q,"writeApiKey":%q}`, name, in.reached(), in.makeKey(searchActions...), in.makeKey(writeActions...))
}

// makeKey creates a key for all indexes.
func (in *member) makeKey(actions ...string) string {
	in.t.Helper()
	var k struct{ Key string }
	in.must("POST", "/keys", `{"actions":["`+strings.Join(actions, `","`)+`"],"indexes":["*"],"expiresAt":null}`, &k)
	return k.Key
}

// found waits until a search at each instance finds the given number of documents.
func found(t *testing.T, all []*member, want int) {
	t.Helper()
	for _, in := range all {
		for deadline := time.Now().Add(peace); ; time.Sleep(20 * time.Millisecond) {
			status, text, err := in.ask("POST", "/indexes/m/search", `{"limit":0}`, nil)
			if err == nil && strings.Contains(text, fmt.Sprintf(`"estimatedTotalHits":%d,`, want)) && strings.Contains(text, `"remoteErrors":{}`) {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("%s: %d %s %v, want %d documents\n%s", in.name, status, text, err, want, in.log.String())
			}
		}
	}
}

// spreadRules writes search rules at the leader, and reads them at another instance, whose feature is off at first.
func spreadRules(t *testing.T, a, b *member) {
	t.Helper()
	a.must("PATCH", "/experimental-features", `{"dynamicSearchRules":true}`, nil)
	a.must("PATCH", "/dynamic-search-rules/first?customMetadata=x", `{"precedence":1,"conditions":{"query":{"words":"x"}}}`, nil)
	a.must("PATCH", "/dynamic-search-rules/first", `{"active":false}`, nil)
	a.must("PATCH", "/dynamic-search-rules/second", `{"precedence":2}`, nil)
	a.must("DELETE", "/dynamic-search-rules/second", "", nil)
	settled(t, []*member{a, b}, peace)
	b.must("PATCH", "/experimental-features", `{"dynamicSearchRules":true}`, nil)
	lists := func(want string) {
		t.Helper()
		for _, in := range []*member{a, b} {
			if _, text, err := in.ask("POST", "/dynamic-search-rules", `{}`, nil); err != nil || !strings.Contains(text, want) {
				t.Errorf("%s has the rules %s (%v), want %s", in.name, text, err, want)
			}
		}
	}
	lists(`{"results":[{"uid":"first","precedence":1,"active":false,"conditions":{"query":{"words":"x"}},"actions":[],"lastUpdatedAt":"`)
	for _, r := range [][3]string{{"PATCH", "/dynamic-search-rules/first", `{"precedence":3}`}, {"DELETE", "/dynamic-search-rules/first", ""}, {"DELETE", "/dynamic-search-rules", ""}} {
		if status, text, err := b.ask(r[0], r[1], r[2], nil); err != nil || status != 400 || !strings.Contains(text, `"not_a_leader"`) {
			t.Errorf("%s %s at a follower: %d %s %v", r[0], r[1], status, text, err)
		}
	}
	a.must("DELETE", "/dynamic-search-rules", "", nil)
	settled(t, []*member{a, b}, peace)
	lists(`"total":0`)
}

// TestNetworkOfProtectedInstances forms a network with keys that have only the documented actions, and uses all requests between
// instances: searches, writes, settings, moving documents, and recovery after instances were restored from snapshots.
func TestNetworkOfProtectedInstances(t *testing.T) {
	document, err := os.ReadFile("../../docs/NETWORK.md")
	if err != nil {
		t.Fatal(err)
	}
	if row := "`" + strings.Join(writeActions, "`, `") + "`"; !strings.Contains(string(document), row) {
		t.Errorf("NETWORK.md lacks the actions of the writeApiKey: %s", row)
	}
	a, entryA := newProtectedMember(t, "a")
	b, entryB := newProtectedMember(t, "b")
	c, entryC := newProtectedMember(t, "c")
	a.change(`{"self":"a","leader":"a","remotes":{` + entryA + `,` + entryB + `},"shards":{"x":{"remotes":["a","b"]},"y":{"remotes":["b"]}}}`)
	add := func(from int) {
		t.Helper()
		var docs []string
		for i := range 50 {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%[1]d}`, from+i))
		}
		a.must("POST", "/indexes/m/documents", "["+strings.Join(docs, ",")+"]", nil)
	}
	add(0)
	a.must("PATCH", "/indexes/m/settings", `{"filterableAttributes":["n"]}`, nil)
	spreadRules(t, a, b)
	found(t, []*member{a, b}, 50)
	fileA, fileB := a.snapshot(), b.snapshot()
	a.change(`{"remotes":{` + entryC + `},"shards":{"z":{"remotes":["c"]}}}`)
	a.must("POST", "/indexes/m/documents/delete", `{"filter":"n < 10"}`, nil)
	add(100)
	all := []*member{a, b, c}
	found(t, all, 90)

	// GET /network shows a key only to a caller that holds it, or that has the master key.
	master := b.key
	b.key = b.makeKey("*.get")
	status, text, err := b.ask("GET", "/network", "", nil)
	b.key = master
	if err != nil || status != 200 || strings.Count(text, `XXXXXX..."`) != 6 {
		t.Errorf("the network with a key that may read it: %d %s %v", status, text, err)
	}

	// The leader restarts from a snapshot that does not know c.
	a.setBack(fileA)
	logged(t, a, "The keys of the remote `c`")
	if status, text, _ := a.ask("POST", "/indexes/m/documents", `[{"id":1000}]`, nil); status < 400 {
		t.Errorf("a leader without all keys accepts a write: %d %s", status, text)
	}
	a.change(`{"remotes":{` + entryC + `}}`)
	a.whole(all, func() {})
	found(t, all, 90)
	add(200)
	found(t, all, 140)

	// A follower that is the only owner of a shard accepts writes: it continues from its snapshot, without the key of c until the
	// leader sends it.
	b.setBack(fileB)
	logged(t, b, "the keys of remotes changed")
	a.change(`{}`)
	for _, in := range all {
		in.whole(all, func() {})
	}
	add(300)
	settled(t, all, peace)
	for _, in := range all {
		var z struct {
			EstimatedTotalHits int
			RemoteErrors       map[string]any
		}
		in.must("POST", "/indexes/m/search", `{"limit":0,"filter":"_shard = z"}`, &z)
		if z.EstimatedTotalHits < 30 || len(z.RemoteErrors) > 0 {
			t.Errorf("%s finds %d documents at c: %v", in.name, z.EstimatedTotalHits, z.RemoteErrors)
		}
	}
}

// logged waits until an instance has written a text to its log.
func logged(t *testing.T, in *member, text string) {
	t.Helper()
	for deadline := time.Now().Add(peace); !strings.Contains(in.log.String(), text); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the log of %s does not say %q:\n%s", in.name, text, in.log.String())
		}
	}
}
