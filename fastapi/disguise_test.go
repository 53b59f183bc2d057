package fastapi

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/auth"
	"svc/internal/network"
	"svc/internal/outbound"
	"svc/internal/vfs"
)

// walked is a protected instance with all features. It has an index mine, whose documents have a hidden attribute, and an index theirs,
// and secrets wherever possible.
type walked struct {
	*client
	// secrets are texts that no key may see, by description.
	secrets map[string]string
}

const (
	hiddenValue = "valueofhidden" // value of the attribute secret in mine
	hiddenIndex = "nameofhidden"  // target of a foreign key of mine
)

// onlyLoopback returns a policy that allows this host and no other.
func onlyLoopback(t testing.TB) (allowed outbound.Policy) {
	t.Helper()
	if err := allowed.UnmarshalText([]byte("127.0.0.1/32")); err != nil {
		t.Fatal(err)
	}
	return allowed
}

// newWalked starts an instance that is alone in its network, leads it, or follows the leader a.
func newWalked(t testing.TB, part string) *walked {
	t.Helper()
	o := Options{Keys: openKeys(t, masterKey), Features: allFeatures(t)}
	openInstanceIn(t, &o, network.Options{Allowed: onlyLoopback(t)})
	w := &walked{client: newTCPClient(t, o), secrets: map[string]string{
		"the key of an embedder": "secret-of-an-embedder", "the credential of a webhook": "secret-of-a-webhook", "the key of a chat": "secret-of-a-chat",
		"the key of an export": "secret-of-an-export", "the master key": masterKey,
	}}
	w.key = masterKey
	must := func(r reply) reply {
		t.Helper()
		if r.status >= 300 {
			t.Fatalf("%d %s", r.status, r.body)
		}
		return r
	}
	must(w.json("PATCH", "/indexes/mine/settings", `{"displayedAttributes": ["id", "link"], "sortableAttributes": ["secret"], "filterableAttributes": ["link", "id", "hidden"],
		"foreignKeys": [{"fieldName": "hidden", "foreignIndexUid": "`+hiddenIndex+`"}]}`))
	must(w.json("PATCH", "/indexes/theirs/settings", `{"filterableAttributes": ["secret"], "embedders": {"e": {"source": "rest", "url": "http://127.0.0.1:1", "apiKey": "secret-of-an-embedder",
		"headers": {"X-Key": "secret-of-an-embedder"}, "dimensions": 2, "documentTemplate": "x", "request": "{{text}}", "response": "{{embedding}}"}}}`))
	must(w.json("POST", "/indexes/mine/documents", `[{"id": 1, "link": 1, "secret": "`+hiddenValue+`"}, {"id": 2, "link": 1, "secret": "`+hiddenValue+` too"}]`))
	must(w.json("POST", "/indexes/theirs/documents", `[{"id": 1, "_vectors": {"e": [1, 0]}}]`))
	must(w.json("POST", "/webhooks", `{"url": "http://me:secret-of-a-webhook@127.0.0.1:1/", "headers": {"Authorization": "Bearer secret-of-a-webhook"}}`))
	must(w.json("PATCH", "/chats/w/settings", `{"source": "vLlm", "baseUrl": "http://127.0.0.1:1", "apiKey": "secret-of-a-chat"}`))
	export := must(w.json("POST", "/export", `{"url": "http://127.0.0.1:1", "apiKey": "secret-of-an-export"}`))
	w.send(methodPost, "/tasks/cancel?types=export", nil)
	w.wait(export)
	searchKey, writeKey := w.makeKey(`["search"]`, `["*"]`), w.makeKey(`["*"]`, `["*"]`)
	w.secrets["the search key of a remote"], w.secrets["the write key of a remote"] = searchKey, writeKey
	own := fmt.Sprintf(`"b":{"url":"http://%s","searchApiKey":%q,"writeApiKey":%q}`, w.address, searchKey, writeKey)
	switch part {
	case "alone":
		must(w.json("PATCH", "/network", `{"self":"b","remotes":{`+own+`,"a":{"url":"http://127.0.0.2:1","searchApiKey":"secret-of-a-remote","writeApiKey":"secret-of-a-remote"}}}`))
		w.secrets["a key of another remote"] = "secret-of-a-remote"
	case "leads":
		w.wait(must(w.json("PATCH", "/network", `{"self":"b","leader":"b","remotes":{`+own+`},"shards":{"x":{"remotes":["b"]}}}`)))
	case "follows":
		must(w.send("PATCH", "/network", strings.NewReader(`{"self":"b","leader":"a","remotes":{`+own+`,"a":{"url":"http://127.0.0.2:1","searchApiKey":"secret-of-a-remote","writeApiKey":"secret-of-a-remote"}},"shards":{"x":{"remotes":["a"]}},"previousRemotes":{},"previousShards":{}}`),
			append(originHeaders("Svc-", "a", announcedVersion, "5ca1ab1e"), "Content-Type", contentJSON)...))
		w.secrets["a key of another remote"] = "secret-of-a-remote"
	}
	return w
}

// allFeatures are the experimental features, switched on.
func allFeatures(t testing.TB) *Features {
	t.Helper()
	f, err := OpenFeatures(vfs.NewMem(), "features.json", featureNames[:]...)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// seen returns the description of the first secret in an answer, or "".
func (w *walked) seen(body string) string {
	for what, secret := range w.secrets {
		if strings.Contains(body, secret) {
			return what
		}
	}
	return ""
}

// TestHeadersGrantNoRights sends requests with the headers of instances and others, by keys that are not for instances, to instances in
// each role. Answers and effects must be the same as without the headers.
func TestHeadersGrantNoRights(t *testing.T) {
	for _, part := range []string{"alone", "leads", "follows"} {
		w := newWalked(t, part)
		version := between(w.get("/network").body, `"version":"`, `"`)
		all := maps.Clone(disguises)
		delete(all, "no disguise")
		for _, remote := range []string{"a", "b"} {
			all["the leader "+remote+", who knows the version"] = originHeaders("Svc-", remote, version, "5ca1ab1e")
		}
		requests, refused := 0, 0
		for i, who := range []struct {
			what, key string
			sees      bool // sees what users do not
			writes    bool
		}{
			{"a search key", w.makeKey(`["search"]`, `["mine"]`), false, false},
			{"a tenant token", w.tenantToken(`{"searchRules": ["mine"]}`), false, false},
			{"a key for documents", w.makeKey(`["documents.*", "search"]`, `["*"]`), true, true},
			{"a key for settings and indexes", w.makeKey(`["settings.*", "indexes.*"]`, `["*"]`), false, true},
			{"a key for everything in an index", w.makeKey(`["*"]`, `["mine"]`), true, true},
			{"a key for the network of some indexes", w.oldKey([]string{"network.update", "documents.add"}, []string{"mine*"}), true, true},
		} {
			if part != "alone" && !who.writes || part == "alone" && strings.HasSuffix(who.what, "of some indexes") {
				continue // searches are answered alike, and this network has no leader
			}
			k := w.as(who.key)
			sent := probes("mine", w.server.keys.List()[:1])
			slices.SortStableFunc(sent, func(a, b probe) int { return cmp.Compare(rankOf(a.reads), rankOf(b.reads)) })
			if part != "follows" { // followers' tasks wait for the leader
				w.settle()
			}
			for _, p := range sent {
				if p.never || p.reads && part != "alone" {
					continue
				}
				plain := k.probe(p)
				if !who.writes && strings.Contains(plain.body, hiddenIndex) { // settings name it, but need more than a search key
					t.Errorf("%s: %s: %s %s %s names an index: %s", part, who.what, p.method, p.path, p.body, plain.body)
				}
				for name, headers := range all {
					if i > 0 && !strings.Contains(name, "lead") && !strings.Contains(name, "remote") {
						continue // instances do not send it, so keys make no difference
					}
					p.headers = headers
					r := k.probe(p)
					requests++
					as := fmt.Sprintf("%s: %s as %s: %s %s %s", part, who.what, name, p.method, p.path, p.body)
					if what := w.seen(r.body); what != "" {
						t.Errorf("%s shows %s: %s", as, what, r.body)
					}
					if !who.sees && strings.Contains(r.body, hiddenValue) {
						t.Errorf("%s shows what is not displayed: %s", as, r.body)
					}
					if strings.Contains(r.body, version) && !strings.Contains(plain.body, version) {
						t.Errorf("%s shows the version of the network: %s", as, r.body)
					}
					switch {
					case r.status >= 300 && plain.status < 300:
						refused++
					case r.status < 300 && plain.status >= 300:
						t.Errorf("%s: %d %s, but otherwise %d %s", as, r.status, r.body, plain.status, plain.body)
					case r.status < 300 && p.reads && still(r.body) != still(plain.body) && name != "a client library" && p.path != "/": // metadata, and a page
						t.Errorf("%s: %s, but otherwise %s", as, r.body, plain.body)
					}
				}
			}
		}
		if part != "follows" && refused < 50 { // followers refuse all writes
			t.Errorf("%s: only %d of %d requests are refused for their headers", part, refused, requests)
		}
		t.Logf("%s: %d requests, %d refused for their headers", part, requests, refused)
	}
}

// rankOf orders reading requests before changing ones.
func rankOf(reads bool) int {
	if reads {
		return 0
	}
	return 1
}

// announcedVersion is the version of an announced network.
const announcedVersion = "01a20340-c0c4-7cb1-b458-c00767017d4e"

// between returns the text between two texts.
func between(text, before, after string) string {
	_, text, _ = strings.Cut(text, before)
	text, _, _ = strings.Cut(text, after)
	return text
}

// TestNoActionSeesSecrets gives each action to a key for all indexes, and sends pairs of requests, the first of which changes something:
// no answer may have a secret.
func TestNoActionSeesSecrets(t *testing.T) {
	requests := 0
	var w *walked
	for _, action := range auth.Actions() {
		if w == nil {
			w = newWalked(t, "alone")
		}
		key := w.makeKey(`["`+action+`"]`, `["*"]`)
		k, holder := w.as(key), w.holder(key, action)
		byValue := map[string]*auth.Key{}
		for _, own := range w.server.keys.List() {
			byValue[w.server.keys.Value(own)] = own
		}
		try := func(p probe, after string) reply {
			r := k.probe(p)
			requests++
			// A key with all rights may move documents and settings with their secrets, as instances do.
			if what := w.seen(r.body); what != "" && !(action == "*" && p.path == "/network/transfer") {
				own := byValue[w.secrets[what]] // GET /keys shows keys to a caller with at least their rights
				if own == nil || !holder.Holds(own) || !strings.HasPrefix(p.path, "/keys") {
					t.Errorf("a key with %s sees %s in %s %s %s%s: %s", action, what, p.method, p.path, p.body, after, r.body)
				}
			}
			return r
		}
		var reads, changes []probe
		for _, p := range asInstances(probes("mine", w.server.keys.List()[:2])) {
			switch {
			case p.reads && try(p, "").status != 403: // otherwise the answer is the same after all changes
				reads = append(reads, p)
			case !p.reads && p.headers == nil && p.path != "/tasks/compact": // after it nothing is written
				changes = append(changes, p)
				p.headers = disguises["the leader"]
				changes = append(changes, p)
			}
		}
		changed := false
		for _, first := range changes {
			if r := try(first, ""); r.status >= 300 {
				continue
			}
			changed = true
			if first.path == "/network" && len(first.headers) > 0 {
				w.await(t, `"phase":"moving"`, `"phase":"moved"`)
			}
			for _, p := range reads {
				try(p, fmt.Sprintf(" after %s %s %s", first.method, first.path, first.body))
			}
		}
		if changed {
			w = nil
		}
	}
	t.Logf("%d requests", requests)
}

// await waits until an announced change is in one of some phases. It may leave a phase before the next poll.
func (w *walked) await(t *testing.T, phases ...string) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		r := w.json("POST", "/network/change", `{"version": "`+laterVersion+`"}`)
		if slices.ContainsFunc(phases, func(phase string) bool { return strings.Contains(r.body, phase) }) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the change of the network does not proceed: %s", r.body)
		}
	}
}

// holder returns the caller of a key that has an action.
func (c *client) holder(value, action string) *auth.Caller {
	c.t.Helper()
	who, err := c.server.keys.Authorize(value, action, "")
	if err != nil {
		c.t.Fatal(err)
	}
	return who
}
