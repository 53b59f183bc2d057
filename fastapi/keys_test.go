package fastapi

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"svc/internal/auth"
)

const masterKey = "a-master-key-of-16+bytes"

// newProtected starts an instance with a master key, which the client sends by default.
func newProtected(t testing.TB) *client {
	t.Helper()
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey)})
	c.key = masterKey
	return c
}

// as returns a client of the same server with another key.
func (c *client) as(key string) *client {
	other := *c
	other.key = key
	return &other
}

// makeKey creates an API key and returns its value.
func (c *client) makeKey(actions, indexes string) string {
	c.t.Helper()
	r := c.json("POST", "/keys", `{"actions": `+actions+`, "indexes": `+indexes+`, "expiresAt": null}`)
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(r.body), &k); err != nil || r.status != 201 || k.Key == "" {
		c.t.Fatalf("no key: %d %s", r.status, r.body)
	}
	return k.Key
}

// oldKey creates a key as earlier versions did, which allowed unusable keys, and returns its value.
func (c *client) oldKey(actions, indexes []string) string {
	c.t.Helper()
	k, err := c.server.keys.Create(auth.Key{UID: uuid.New(), Actions: actions, Indexes: indexes})
	if err != nil {
		c.t.Fatal(err)
	}
	return c.server.keys.Value(k)
}

// TestKeysOfSomeIndexes creates keys for some indexes with actions on the whole instance, which must be refused. Existing ones stay, but
// their use is refused.
func TestKeysOfSomeIndexes(t *testing.T) {
	c := newProtected(t)
	for _, indexes := range []string{`["a"]`, `["a*", "b"]`} {
		for _, action := range []string{"version", "dumps.*", "keys.get", "network.update"} {
			r := c.json("POST", "/keys", `{"actions": ["search", "`+action+`"], "indexes": `+indexes+`, "expiresAt": null}`)
			if r.status != 400 || r.code() != "index_scoped_api_key_with_global_action" || !strings.Contains(r.body, action) {
				t.Errorf("a key for %s on %s: %d %s", action, indexes, r.status, r.body)
			}
		}
		c.makeKey(`["*", "*.get", "search", "tasks.*"]`, indexes)
	}
	c.makeKey(`["version"]`, `["a", "*"]`)
	for path, actions := range map[string][]string{"/version": {"version"}, "/keys": {"keys.get"}, "/network": {"*"}} {
		if r := c.as(c.oldKey(actions, []string{"a"})).get(path); r.status != 403 || r.code() != "invalid_api_key" {
			t.Errorf("GET %s with a key of some indexes: %d %s", path, r.status, r.body)
		}
	}
}

func TestKeys(t *testing.T) {
	c := newProtected(t)
	const uid, other = "00000001-5e11-4c0d-9a57-0123456789ab", "00000002-5e11-4c0d-9a57-0123456789ab"
	const value = "fd0b4b65aa36521af4b10823d44c74a17e373c5c8c701df6f7f4df35e3508d49" // of uid
	const rest = `"key":"` + value + `","uid":~,"actions":["search"],"indexes":["a*"],"expiresAt":"2077-05-06T07:08:09+02:00","createdAt":~,"updatedAt":~}`
	for _, tt := range []struct {
		method, path, body string // no body: ""
		status             int
		answer             string // the error code, or the stable body
	}{
		{"GET", "/keys/" + uid, "", 404, "api_key_not_found"},
		{"POST", "/keys", `{"uid": "` + uid + `", "name": "Shop", "actions": ["search"], "indexes": ["a*"], "expiresAt": "2077-05-06T07:08:09+02:00"}`, 201,
			`{"name":"Shop","description":null,` + rest},
		{"POST", "/keys", `{"uid": "` + uid + `", "actions": [], "indexes": [], "expiresAt": null}`, 409, "api_key_already_exists"},
		{"POST", "/keys", `{"uid": "` + other + `", "actions": [], "indexes": [], "expiresAt": null, "name": null, "description": null}`, 201,
			`{"name":null,"description":null,"key":"3f6af6b7bc3a3196e2a256e7ef637e6720c01527aa09e20d2782bb93ab59015f","uid":~,"actions":[],"indexes":[],"expiresAt":null,"createdAt":~,"updatedAt":~}`},
		{"GET", "/keys?limit=1&offset=1", "", 200, `{"results":[{"name":"Shop","description":null,` + rest + `],"offset":1,"limit":1,"total":6}`},
		{"GET", "/keys?offset=9", "", 200, `{"results":[],"offset":9,"limit":20,"total":6}`},
		{"GET", "/keys?limit=x", "", 400, "invalid_api_key_limit"},
		{"GET", "/keys?offset=-1", "", 400, "invalid_api_key_offset"},
		{"GET", "/keys?page=1", "", 400, "bad_request"},
		{"GET", "/keys/" + strings.ToUpper(uid), "", 200, `{"name":"Shop","description":null,` + rest},
		{"PATCH", "/keys/" + value, `{"name": null, "description": "by \u00e9value"}`, 200, `{"name":null,"description":"by évalue",` + rest},
		{"PATCH", "/keys/" + uid, `{}`, 200, `{"name":null,"description":"by évalue",` + rest},
		{"PATCH", "/keys/" + uid, `{"name": "n", "description": "d"}`, 200, `{"name":"n","description":"d",` + rest},
		{"PATCH", "/keys/" + uid, `{"name": 1}`, 400, "invalid_api_key_name"},
		{"PATCH", "/keys/" + uid, `{"description": []}`, 400, "invalid_api_key_description"},
		{"PATCH", "/keys/" + uid, `{"uid": "` + other + `"}`, 400, "immutable_api_key_uid"},
		{"PATCH", "/keys/" + uid, `{"name": "x", "actions": ["*"]}`, 400, "immutable_api_key_actions"},
		{"PATCH", "/keys/" + uid, `{"indexes": null}`, 400, "immutable_api_key_indexes"},
		{"PATCH", "/keys/" + uid, `{"expiresAt": null}`, 400, "immutable_api_key_expires_at"},
		{"PATCH", "/keys/" + uid, `{"createdAt": ""}`, 400, "immutable_api_key_created_at"},
		{"PATCH", "/keys/" + uid, `{"updatedAt": ""}`, 400, "immutable_api_key_updated_at"},
		{"PATCH", "/keys/" + uid, `{"key": "k"}`, 400, "bad_request"},
		{"PATCH", "/keys/unknown", `{"name": "x"}`, 404, "api_key_not_found"},
		{"PATCH", "/keys/unknown", `["name"]`, 400, "bad_request"},
		{"PATCH", "/keys/" + uid, `{"rateLimit": {"searchesPerSecond": 3, "concurrent": 1000000}}`, 200, `{"name":"n","description":"d",` + strings.TrimSuffix(rest, "}") + `,"rateLimit":{"searchesPerSecond":3,"concurrent":1000000}}`},
		{"PATCH", "/keys/" + uid, `{"rateLimit": {"writesPerSecond": 1, "concurrent": null}}`, 200, `{"name":"n","description":"d",` + strings.TrimSuffix(rest, "}") + `,"rateLimit":{"writesPerSecond":1}}`},
		{"PATCH", "/keys/" + uid, `{}`, 200, `{"name":"n","description":"d",` + strings.TrimSuffix(rest, "}") + `,"rateLimit":{"writesPerSecond":1}}`},
		{"PATCH", "/keys/" + uid, `{"rateLimit": null}`, 200, `{"name":"n","description":"d",` + rest},
		{"PATCH", "/keys/" + uid, `{"rateLimit": 3}`, 400, "invalid_api_key_rate_limit"},
		{"PATCH", "/keys/" + uid, `{"rateLimit": {"searchesPerSecond": 0}}`, 400, "invalid_api_key_rate_limit"},
		{"PATCH", "/keys/" + uid, `{"rateLimit": {"writesPerSecond": 1000001}}`, 400, "invalid_api_key_rate_limit"},
		{"PATCH", "/keys/" + uid, `{"rateLimit": {"concurrent": 1.5}}`, 400, "invalid_api_key_rate_limit"},
		{"PATCH", "/keys/" + uid, `{"rateLimit": {"perMinute": 1}}`, 400, "invalid_api_key_rate_limit"},
		{"POST", "/keys", `{"rateLimit": []}`, 400, "invalid_api_key_rate_limit"},
		{"POST", "/keys", `{}`, 400, "missing_api_key_actions"},
		{"POST", "/keys", `{"actions": []}`, 400, "missing_api_key_indexes"},
		{"POST", "/keys", `{"actions": [], "indexes": []}`, 400, "missing_api_key_expires_at"},
		{"POST", "/keys", `{"actions": ["serch"]}`, 400, "invalid_api_key_actions"},
		{"POST", "/keys", `{"actions": "search"}`, 400, "invalid_api_key_actions"},
		{"POST", "/keys", `{"actions": null}`, 400, "invalid_api_key_actions"},
		{"POST", "/keys", `{"indexes": ["*end"]}`, 400, "invalid_api_key_indexes"},
		{"POST", "/keys", `{"indexes": [3]}`, 400, "invalid_api_key_indexes"},
		{"POST", "/keys", `{"expiresAt": "2001-01-01"}`, 400, "invalid_api_key_expires_at"},
		{"POST", "/keys", `{"expiresAt": 4102444800}`, 400, "invalid_api_key_expires_at"},
		{"POST", "/keys", `{"uid": null}`, 400, "invalid_api_key_uid"},
		{"POST", "/keys", `{"uid": "no"}`, 400, "invalid_api_key_uid"},
		{"POST", "/keys", `{"name": 12}`, 400, "invalid_api_key_name"},
		{"POST", "/keys", `{"color": "red"}`, 400, "bad_request"},
		{"DELETE", "/keys/" + uid, "", 204, ""},
		{"DELETE", "/keys/" + value, "", 404, "api_key_not_found"},
	} {
		var r reply
		if tt.body == "" {
			r = c.send(tt.method, tt.path, nil)
		} else {
			r = c.json(tt.method, tt.path, tt.body)
		}
		got := r.code()
		if got == "" {
			got = still(r.body)
		}
		if r.status != tt.status || got != tt.answer {
			t.Errorf("%s %s %s: %d %s, want %d %s", tt.method, tt.path, tt.body, r.status, got, tt.status, tt.answer)
		}
	}
}

// TestKeysWithoutMasterKey checks that key routes are closed without a master key.
func TestKeysWithoutMasterKey(t *testing.T) {
	c := newClient(t, Options{})
	for _, r := range routes() {
		if !strings.HasPrefix(r.path, "/keys") {
			continue
		}
		for _, key := range []string{"", "anything"} {
			if got := c.as(key).send(r.method, samplePath(r.path), nil); got.status != 401 || got.code() != "missing_master_key" {
				t.Errorf("%s %s with the key %q: %d %s", r.method, r.path, key, got.status, got.body)
			}
		}
		if got := c.send(r.method, samplePath(r.path), nil, "Authorization", "Basic x"); got.code() != "missing_authorization_header" {
			t.Errorf("%s %s with a wrong header: %s", r.method, r.path, got.body)
		}
	}
}

// TestActionsExist checks that keys can have the action of each route; otherwise the route would be closed to all keys.
func TestActionsExist(t *testing.T) {
	for _, r := range append(routes(), pprofRoutes()...) {
		if r.action == public || r.action == actionTools {
			continue
		}
		if err := auth.CheckAction(string(r.action)); err != nil {
			t.Errorf("%s %s: %v", r.method, r.path, err)
		}
	}
}

// TestRateLimits exceeds the limits of a key: with the key itself, with a tenant token and as a tool.
func TestRateLimits(t *testing.T) {
	c := newProtected(t)
	c.json("PATCH", "/experimental-features", `{"metrics": true}`)
	c.wait(c.json("POST", "/indexes/a/documents", `[{"id": 1}]`))
	made := c.json("POST", "/keys", `{"name": "limited", "actions": ["search", "documents.*", "indexes.get"], "indexes": ["*"], "expiresAt": null, "rateLimit": {"searchesPerSecond": 1, "writesPerSecond": 1}}`)
	var key struct{ UID, Key string }
	if err := json.Unmarshal([]byte(made.body), &key); err != nil {
		t.Fatal(err)
	}
	limited := c.as(key.Key)
	refused := func(what string, r reply, want bool) {
		t.Helper()
		if got := r.status == 429; got != want {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
		if want && (r.code() != "api_key_rate_limit_exceeded" || !regexp.MustCompile(`^[1-9][0-9]*$`).MatchString(r.header.Get("Retry-After"))) {
			t.Errorf("%s: %s, Retry-After %q", what, r.body, r.header.Get("Retry-After"))
		}
	}
	refused("an addition", limited.json("POST", "/indexes/a/documents", `[{"id": 2}]`), false)
	another := limited.json("POST", "/indexes/a/documents", `[{"id": 3}]`)
	for tries := 0; another.status == 202 && tries < 100; tries++ { // the machine may have paused for a second
		another = limited.json("POST", "/indexes/a/documents", `[{"id": 3}]`)
	}
	refused("another", another, true)
	refused("a reading", limited.get("/indexes"), false)
	const queries = `{"queries": [{"indexUid": "a"}, {"indexUid": "a"}, {"indexUid": "a"}, {"indexUid": "a"}, {"indexUid": "a"}, {"indexUid": "a"}, {"indexUid": "a"}, {"indexUid": "a"}]}`
	refused("many searches", limited.json("POST", "/multi-search", queries), false)
	refused("a search", limited.get("/indexes/a/search"), true)
	refused("a search of a tenant", c.as(c.tokenOf("limited", `{"searchRules": ["*"]}`)).get("/indexes/a/search"), true)
	refused("a search of the master key", c.get("/indexes/a/search"), false)
	if m := c.get("/metrics").body; sample(m, `svc_rate_limited_requests_total{key="`+key.UID+`",limit="searchesPerSecond"}`) != "2" {
		t.Errorf("metrics: %s", m)
	}

	made = c.json("POST", "/keys", `{"actions": ["search"], "indexes": ["*"], "expiresAt": null, "rateLimit": {"concurrent": 1}}`)
	if err := json.Unmarshal([]byte(made.body), &key); err != nil {
		t.Fatal(err)
	}
	who := c.caller(key.Key)
	if _, err := who.Admit("search", time.Now()); err != nil { // a running request
		t.Fatal(err)
	}
	refused("a second request", c.as(key.Key).get("/indexes/a/search"), true)
	who.End()
	for range 5 {
		refused("a request after another", c.as(key.Key).get("/indexes/a/search"), false)
	}
}
