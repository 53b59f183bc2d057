package fastapi

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"svc/internal/auth"
)

// probe is a request of an attacker who looks for a way around the limits of a key.
type probe struct {
	method, path, body string
	route              string
	reads, never       bool // see attacked
	headers            []string
}

// probes returns requests to every route, in this index if the route has one.
func probes(uid string, keys []*auth.Key) []probe {
	var all []probe
	table := routes()
	for i := range table {
		r, row := &table[i], rowOf(&table[i])
		if row == nil || strings.HasPrefix(r.path, "/indexes/{index_uid}/settings/") && !strings.HasSuffix(r.path, "/stop-words") {
			continue // the same as for stop words
		}
		paths := []string{r.path}
		switch {
		case strings.Contains(r.path, "{key}"):
			paths = nil
			for _, k := range keys {
				paths = append(paths, "/keys/"+k.UID.String())
			}
		case strings.Contains(r.path, "{task_id}"), strings.Contains(r.path, "{batch_id}"):
			paths = nil
			for n := range 4 {
				paths = append(paths, strings.NewReplacer("{task_id}", fmt.Sprint(n), "{batch_id}", fmt.Sprint(n)).Replace(r.path))
			}
		case r.path == "/tasks" && r.method == methodDelete, r.path == "/tasks/cancel":
			paths = []string{r.path + "?uids=0,1,2,3"}
		}
		texts := row.walk
		if texts == nil {
			texts = []string{""}
		}
		for _, path := range paths {
			path = samplePath(strings.NewReplacer("{index_uid}", uid, "{document_id}", "1").Replace(path))
			for _, body := range texts {
				if strings.Contains(body, "%s") {
					body = strings.ReplaceAll(body, "%s", uid)
				}
				all = append(all, probe{method: r.method, path: path, body: body, route: r.method + " " + r.path, reads: row.reads, never: row.never})
			}
		}
	}
	return all
}

// asInstances adds requests with the headers of instances to those on routes that instances use.
func asInstances(all []probe) []probe {
	for _, p := range all {
		for _, m := range messageRows {
			if m.route == p.route && disguises[m.disguise] != nil {
				p.headers = disguises[m.disguise]
				all = append(all, p)
			}
		}
	}
	return all
}

func (c *client) probe(p probe) reply {
	c.t.Helper()
	headers := p.headers
	if p.body != "" {
		headers = append(slices.Clip(headers), "Content-Type", contentJSON)
	}
	if p.never {
		return c.sendStream(p.method, p.path, strings.NewReader(p.body), headers...)
	}
	return c.send(p.method, p.path, strings.NewReader(p.body), headers...)
}

// settle waits for all tasks.
func (c *client) settle() {
	c.wait(c.send(methodPost, "/tasks/cancel?uids=4000000000", nil))
}

var keyValue = regexp.MustCompile(`[0-9a-f]{64}`)

// TestKeysStayInTheirIndexes sends pairs of requests, the first of which changes something, with a key that has all rights in its own
// indexes: it must not read or change anything of others.
func TestKeysStayInTheirIndexes(t *testing.T) {
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Analytics: openAnalytics(t)})
	c.key = masterKey
	c.json("PATCH", "/experimental-features", `{"foreignKeys": true, "editDocumentsByFunction": true, "metrics": true, "logsRoute": true,
		"getTaskDocumentsRoute": true, "taskQueueCompactionRoute": true, "dynamicSearchRules": true, "chatCompletions": true, "network": true}`)
	c.json("PATCH", "/indexes/theirs/settings", `{"filterableAttributes": ["secret"], "synonyms": {"canary": ["bird"]}}`)
	c.wait(c.json("POST", "/indexes/theirs/documents", `[{"id": 1, "secret": "canary"}]`))
	c.json("PATCH", samplePath("/dynamic-search-rules/{rule_uid}"), `{"actions": [{"selector": {"indexUid": "theirs", "id": "canary"}, "action": {"type": "pin", "position": 0}}]}`)
	c.json("POST", "/webhooks", `{"url": "http://127.0.0.1:1/canary", "headers": {"X-Token": "canary"}}`)
	c.json("PATCH", "/network", `{"self": "b", "remotes": {"r": {"url": "http://127.0.0.1:1", "searchApiKey": "canary", "writeApiKey": "canary"}}}`)
	if r := c.json("POST", "/indexes/theirs/search", `{"q": "canary", "filter": "secret = 'a canary'"}`); r.status != 200 {
		t.Fatalf("%d %s", r.status, r.body)
	}
	limited := []string{c.makeKey(`["*"]`, `["mine*"]`), c.makeKey(`["*"]`, `["mine"]`)}
	state := func() string {
		var b strings.Builder
		for _, path := range []string{"/indexes/theirs/documents", "/indexes/theirs/settings", "/indexes/theirs", "/keys", "/webhooks", "/network", "/experimental-features", samplePath("/dynamic-search-rules/{rule_uid}"),
			"/indexes/theirs_new", "/tasks?indexUids=theirs&limit=1000&statuses=succeeded,failed,canceled",
			"/analytics/top-queries?indexUid=theirs", "/analytics/filters?indexUid=theirs"} {
			b.WriteString(still(c.get(path).body) + "\n")
		}
		return b.String()
	}
	restore := func() {
		c.json("PATCH", "/indexes/mine/settings", `{"filterableAttributes": ["link", "secret", "id"], "foreignKeys": null}`)
		c.wait(c.json("POST", "/indexes/mine/documents", `[{"id": 1, "link": 1}]`))
	}
	restore()
	before := state()
	requests := 0
	for _, value := range limited {
		k := c.as(value)
		try := func(p probe, after string) reply {
			r := k.probe(p)
			requests++
			if strings.Contains(strings.ReplaceAll(r.body, "secret = canary", ""), "canary") {
				t.Errorf("%s %s %s%s: %s", p.method, p.path, p.body, after, r.body)
			}
			for _, v := range keyValue.FindAllString(r.body, -1) {
				t.Errorf("%s %s %s%s shows the key %s", p.method, p.path, p.body, after, v)
			}
			return r
		}
		keys := c.server.keys.List()[:3]
		var reads, changes []probe
		for _, uid := range []string{"mine", "theirs", "*", "mine_2"} {
			for _, p := range probes(uid, keys) {
				if !p.reads {
					changes = append(changes, p)
					p.headers = disguises["the leader"]
					changes = append(changes, p)
				} else if uid == "mine" || uid == "theirs" {
					reads = append(reads, p)
				}
			}
		}
		plain := len(reads)
		if reads = asInstances(reads); len(reads) < plain+8 {
			t.Errorf("only %d of %d requests are read as instances do", len(reads)-plain, plain)
		}
		refused := 0
		for _, first := range changes {
			r := try(first, "")
			if r.status >= 400 { // no change
				refused++
				continue
			}
			c.settle()
			for _, p := range reads {
				try(p, fmt.Sprintf(" after %s %s %s", first.method, first.path, first.body))
			}
			if now := state(); now != before {
				t.Fatalf("%s %s %s changed what belongs to others:\n%s\nwas\n%s", first.method, first.path, first.body, now, before)
			}
			restore()
		}
		if refused == 0 || refused == len(changes) {
			t.Errorf("%d of %d changes were refused", refused, len(changes))
		}
	}
	t.Logf("%d requests", requests)
}

// TestKeysCannotGainRights gives each action to a key for all indexes, and follows every key that it can read or create: none may have a
// right that the first lacks.
func TestKeysCannotGainRights(t *testing.T) {
	c := newProtected(t)
	c.wait(c.json("POST", "/indexes/mine/documents", `[{"id": 1}]`))
	byValue := map[string]*auth.Key{}
	learn := func() {
		for _, k := range c.server.keys.List() {
			byValue[c.server.keys.Value(k)] = k
		}
	}
	for _, rights := range []string{`["keys.get"]`, `["keys.create"]`, `["keys.create", "keys.get", "search"]`, `["keys.update"]`, `["keys.delete"]`, `["*.get", "keys.get"]`, `["*.get"]`,
		`["keys.create", "keys.get", "keys.update", "keys.delete", "documents.*"]`, `["*"]`, `["*"], "rateLimit": {"concurrent": 900}`} {
		start := c.makeKey(rights, `["*"]`)
		learn()
		holder := c.caller(start)
		count := len(c.server.keys.List())
		seen := map[string]bool{}
		for next := []string{start}; len(next) > 0; next = next[1:] {
			if seen[next[0]] || len(seen) > 8 {
				continue
			}
			seen[next[0]] = true
			k := c.as(next[0])
			for _, p := range probes("mine", c.server.keys.List()[:4]) {
				if !strings.HasPrefix(p.path, "/keys") || p.method == methodDelete {
					continue
				}
				r := k.probe(p)
				learn()
				for _, v := range keyValue.FindAllString(r.body, -1) {
					if got := byValue[v]; got == nil || !holder.Holds(got) {
						t.Errorf("a key with %s gets %s from %s %s %s", rights, v, p.method, p.path, p.body)
					}
					next = append(next, v)
				}
			}
		}
		for _, k := range c.server.keys.List()[:len(c.server.keys.List())-count] {
			if !holder.Holds(k) {
				t.Errorf("a key with %s made one with %v on %v", rights, k.Actions, k.Indexes)
			}
		}
		for _, k := range c.server.keys.List() { // a key may not delete keys with more rights
			if r := c.as(start).send(methodDelete, "/keys/"+k.UID.String(), nil); r.status < 300 && !holder.Holds(k) {
				t.Errorf("a key with %s deleted one with %v on %v", rights, k.Actions, k.Indexes)
			}
		}
	}
}

// caller returns the caller of a key.
func (c *client) caller(value string) *auth.Caller {
	for _, action := range []string{"search", "keys.get", "keys.create", "keys.update", "keys.delete"} {
		if who, err := c.server.keys.Authorize(value, action, ""); err == nil {
			return who
		}
	}
	c.t.Fatal("a key opens nothing")
	return nil
}
