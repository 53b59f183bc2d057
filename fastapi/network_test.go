package fastapi

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/search"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// networked starts an instance with the feature of networks and a master key, which may be "".
func networked(t *testing.T, master string) *client {
	t.Helper()
	f, err := OpenFeatures(vfs.NewMem(), "features.json", "network")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newInstance(t, Options{Features: f, Keys: openKeys(t, master)})
	c.key = master
	return c
}

// TestPeerForm requests the form in which instances answer each other, which other clients must not get.
func TestPeerForm(t *testing.T) {
	c := networked(t, "")
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id":1,"t":"red"}]`))
	const body = `{"federation":{},"queries":[{"indexUid":"i","q":"red"}]}`
	for _, tt := range []struct {
		what    string
		body    string
		headers []string
		status  int
		form    string
	}{
		{"an instance", body, []string{"Svc-Proxy-Search", "true", "Accept", search.PeerType + ", application/json"}, 200, search.PeerType},
		{"one that refuses", strings.Replace(body, `"i"`, `"j"`, 1), []string{"Svc-Proxy-Search", "true", "Accept", search.PeerType}, 400, "application/json"},
		{"an older one, or another engine", body, []string{"Meili-Proxy-Search", "true", "Accept", "*/*"}, 200, "application/json"},
		{"one that knows a later form", body, []string{"Svc-Proxy-Search", "true", "Accept", search.PeerType + "0, application/json"}, 200, "application/json"},
		{"one that knows more than one", body, []string{"Svc-Proxy-Search", "true", "Accept", search.PeerType + "0, " + search.PeerType}, 200, search.PeerType},
		{"a user", body, []string{"Accept", search.PeerType}, 200, "application/json"},
	} {
		r := c.send("POST", "/multi-search", strings.NewReader(tt.body), append(tt.headers, "Content-Type", "application/json")...)
		if got := r.header.Get("Content-Type"); r.status != tt.status || got != tt.form {
			t.Errorf("%s: %d %s: %.200s", tt.what, r.status, got, r.body)
		}
		if tt.form == search.PeerType {
			if _, err := search.ParsePeer("r", []byte(r.body), &search.Asked{Hits: 20}, new(search.Reading)); err != nil {
				t.Errorf("%s: %v", tt.what, err)
			}
		}
	}
}

// TestOriginHeaders sends forwarded writes, valid and invalid ones.
func TestOriginHeaders(t *testing.T) {
	const version, older = "01a20340-c0c4-7cb1-b458-c00767017d4e", "01920340-c0c4-7cb1-b458-c00767017d4e"
	const svc, meili = "Svc-", "X-Meili-"
	c := networked(t, "")
	announce := `{"self":"b","leader":"a","remotes":{"a":{"url":"http://a.test"},"b":{"url":"http://b.test"}},"shards":{"x":{"remotes":["a"]}},"previousRemotes":{},"previousShards":{}}`
	send := func(method, path, body string, headers ...string) reply {
		return c.send(method, path, strings.NewReader(body), append(headers, "Content-Type", "application/json")...)
	}
	origin := func(prefix, remote, uid, version string) []string {
		var h []string
		nonce := "5ca1ab1e"
		if prefix == meili {
			nonce = ""
		}
		for name, v := range map[string]string{"Remote": remote, "TaskUid": uid, "Network-Version": version, "Nonce": nonce} {
			if v != "" {
				h = append(h, prefix+"Proxy-Origin-"+name, v)
			}
		}
		return h
	}
	if r := send("POST", "/indexes", `{"uid":"i"}`, origin(svc, "a", "1", version)...); r.status != 412 || r.code() != "network_version_mismatch" {
		t.Errorf("a write of an unknown network: %d %s", r.status, r.body)
	}
	if r := send("PATCH", "/network", announce, origin(meili, "a", "1", version)...); r.status != 412 || !strings.Contains(r.body, "is not svc") {
		t.Errorf("an announcement of another engine: %d %s", r.status, r.body)
	}
	if r := send("PATCH", "/network", announce, origin(svc, "b", "1", version)...); r.status != 400 || r.code() != "not_a_leader" {
		t.Errorf("an announcement of an instance that does not lead: %d %s", r.status, r.body)
	}
	byLeader := origin(svc, "a", "1", version)
	first := send("PATCH", "/network", announce, byLeader...)
	if first.status != 202 {
		t.Fatalf("an announced network: %d %s", first.status, first.body)
	}
	if again := send("PATCH", "/network", announce, byLeader...); again.body != first.body {
		t.Errorf("the same announcement again: %s, want %s", again.body, first.body)
	}
	if r := c.get("/network"); !strings.Contains(r.body, fmt.Sprintf(`"leader":"a","version":%q`, version)) || !strings.Contains(r.body, `"self":"b"`) {
		t.Errorf("the network is %s", r.body)
	}
	for _, tt := range []struct {
		what    string
		headers []string
		status  int
		code    string
	}{
		{"a user", nil, 400, "not_a_leader"},
		{"the leader", origin(svc, "a", "2", version), 202, ""},
		{"under the other names", append(origin(meili, "%61", "3", version), meili+"Proxy-Origin-Nonce", "5ca1ab1e"), 202, ""},
		{"another engine", origin(meili, "a", "3", version), 400, "inconsistent_document_change_headers"},
		{"another instance", origin(svc, "a%20b", "3", version), 400, "not_a_leader"},
		{"the nonce alone", []string{svc + "Proxy-Origin-Nonce", "5ca1ab1e"}, 400, "inconsistent_document_change_headers"},
		{"older", origin(svc, "a", "4", older), 400, "network_version_too_old"},
		{"not all", origin(svc, "a", "", version), 400, "inconsistent_document_change_headers"},
		{"no uid", origin(svc, "a", "x", version), 400, "invalid_header_value"},
		{"no version", origin(svc, "a", "5", "x"), 400, "invalid_header_value"},
		{"no escape", origin(svc, "%zz", "5", version), 400, "invalid_header_value"},
	} {
		r := send("POST", "/indexes", `{"uid":"i"}`, tt.headers...)
		if r.status != tt.status || tt.code != "" && r.code() != tt.code {
			t.Errorf("%s: %d %s, want %d %s", tt.what, r.status, r.body, tt.status, tt.code)
		}
		if r.status >= 400 && strings.Contains(r.body, version) {
			t.Errorf("%s: the error shows the version of the network: %s", tt.what, r.body)
		}
	}
	if r := c.get("/tasks/1"); !strings.Contains(r.body, fmt.Sprintf(`"network":{"origin":{"remoteName":"a","taskUid":2,"networkVersion":%q}}`, version)) {
		t.Errorf("the task of the leader's write is %s", r.body)
	}
	if r := c.json("POST", "/network/transfer", `{"version":"`+older+`","remote":"a"}`); r.status != 503 || r.code() != "import_task_without_network_task" {
		t.Errorf("documents of another version: %d %s", r.status, r.body)
	}
	if r := c.json("POST", "/network/change", `{"version":"`+older+`"}`); !strings.Contains(r.body, `"phase":"waiting","committed":false,"canceled":false`) {
		t.Errorf("the state of another version: %d %s", r.status, r.body)
	}
}

// TestKeysOfRemotesAreMasked shows the network, and the answer to a change of it, to holders of keys.
func TestKeysOfRemotesAreMasked(t *testing.T) {
	c := networked(t, masterKey)
	everything := c.makeKey(`["*"]`, `["*"]`)
	const other = "another-key-of-a-remote"
	if r := c.json("PATCH", "/network", `{"self": "a", "remotes": {"b": {"url": "http://b.test", "searchApiKey": "`+other+`", "writeApiKey": "`+everything+`"}}}`); !strings.Contains(r.body, other) {
		t.Fatalf("the master key does not show keys: %d %s", r.status, r.body)
	}
	for what, tt := range map[string]struct {
		key        string
		own, other bool
	}{
		"the master key":          {masterKey, true, true},
		"the key itself":          {everything, true, false},
		"another for everything":  {c.makeKey(`["*"]`, `["*"]`), false, false},
		"one that reads anything": {c.makeKey(`["*.get"]`, `["*"]`), false, false},
		"one for networks":        {c.makeKey(`["network.get", "network.update"]`, `["*"]`), false, false},
	} {
		k := c.as(tt.key)
		for _, r := range []reply{k.get("/network"), k.json("PATCH", "/network", `{"remotes": {"b": {"searchApiKey": "`+settings.Redact(other)+`", "writeApiKey": "`+settings.Redact(everything)+`"}}}`)} {
			if r.status == 403 && strings.Contains(what, "reads") {
				continue
			}
			if r.status != 200 || strings.Contains(r.body, everything) != tt.own || strings.Contains(r.body, other) != tt.other {
				t.Errorf("%s: %d %s", what, r.status, r.body)
			}
		}
		moved := k.json("PATCH", "/network", `{"remotes": {"b": {"url": "http://evil.test"}}}`)
		if (moved.status == 200) != tt.other {
			t.Errorf("%s sends stored keys elsewhere: %d %s", what, moved.status, moved.body)
		}
		c.json("PATCH", "/network", `{"remotes": {"b": {"url": "http://b.test"}}}`)
	}
	if r := c.get("/network"); !strings.Contains(r.body, everything) || !strings.Contains(r.body, other) {
		t.Errorf("masked keys that were sent back replace the stored ones: %s", r.body)
	}
}

// TestPeerFormIsForPeers requests the peer form with keys that may search.
func TestPeerFormIsForPeers(t *testing.T) {
	c := networked(t, masterKey)
	c.json("PATCH", "/indexes/i/settings", `{"displayedAttributes": ["id"], "sortableAttributes": ["cost"], "filterableAttributes": ["owner"]}`)
	c.wait(c.json("POST", "/indexes/i/documents", `[{"id": 1, "cost": 4711, "owner": "anna"}]`))
	shared := c.makeKey(`["search"]`, `["*"]`)
	c.json("PATCH", "/network", `{"self": "a", "remotes": {"a": {"url": "http://a.test", "searchApiKey": "`+shared+`"}}}`)
	const body = `{"federation": {"distinct": "owner"}, "queries": [{"indexUid": "i", "sort": ["cost:asc"]}]}`
	for what, tt := range map[string]struct {
		key  string
		peer bool
	}{
		"the master key":                         {masterKey, true},
		"the key of the own entry":               {shared, true},
		"a key that sees the network":            {c.makeKey(`["search", "network.get"]`, `["*"]`), true},
		"a key that sees it, for some indexes":   {c.oldKey([]string{"search", "network.get"}, []string{"i*"}), false},
		"another search key":                     {c.makeKey(`["search"]`, `["*"]`), false},
		"a key for documents":                    {c.makeKey(`["search", "documents.*"]`, `["*"]`), false},
		"a tenant token":                         {c.tenantToken(`{"searchRules": ["*"]}`), false},
		"a tenant token of a key for everything": {c.tokenOf("Default Admin API Key", `{"searchRules": ["*"]}`), false},
	} {
		for _, name := range []string{"Svc-Proxy-Search", "Meili-Proxy-Search"} {
			r := c.as(tt.key).send("POST", "/multi-search", strings.NewReader(body), name, "true", "Content-Type", contentJSON)
			told := strings.Contains(r.body, "4711") && strings.Contains(r.body, "anna")
			if told != tt.peer || (r.status == 200) != tt.peer || !tt.peer && (r.code() != "invalid_api_key" || !strings.Contains(r.body, "network.get")) {
				t.Errorf("%s, %s: %d %s", what, name, r.status, r.body)
			}
		}
		if r := c.as(tt.key).json("POST", "/multi-search", body); r.status != 200 || strings.Contains(r.body, "4711") || strings.Contains(r.body, "anna") {
			t.Errorf("%s, without the header: %d %s", what, r.status, r.body)
		}
	}
}

// TestOriginHeadersAreForTheLeader sends forwarded writes with keys that may write.
func TestOriginHeadersAreForTheLeader(t *testing.T) {
	w := newWalked(t, "follows")
	headers := originHeaders("Svc-", "a", announcedVersion, "5ca1ab1e")
	for what, tt := range map[string]struct {
		key    string
		leader bool
	}{
		"the master key":                      {masterKey, true},
		"a key of a leader":                   {w.makeKey(`["documents.*", "network.update"]`, `["*"]`), true},
		"a key for documents":                 {w.makeKey(`["documents.*"]`, `["*"]`), false},
		"a key of a leader of some indexes":   {w.oldKey([]string{"documents.*", "network.update"}, []string{"mine"}), false},
		"a key that only sees the network":    {w.makeKey(`["documents.*", "network.get"]`, `["*"]`), false},
		"a key for everything in an index":    {w.makeKey(`["*"]`, `["mine"]`), false},
		"a key that changes the network":      {w.makeKey(`["network.update"]`, `["*"]`), false},
		"an invalid key":                      {"none", false},
		"a key for documents, in old headers": {w.makeKey(`["documents.add"]`, `["*"]`), false},
	} {
		sent := headers
		if strings.HasSuffix(what, "old headers") {
			sent = originHeaders("X-Meili-", "a", "01920340-c0c4-7cb1-b458-c00767017d4e", "")
		}
		r := w.as(tt.key).send("POST", "/indexes/mine/documents", strings.NewReader(`[{"id": 9}]`), append(sent, "Content-Type", contentJSON)...)
		if (r.status == 202) != tt.leader || !tt.leader && r.code() != "invalid_api_key" || strings.Contains(r.body, announcedVersion) {
			t.Errorf("%s: %d %s", what, r.status, r.body)
		}
		if strings.HasPrefix(what, "a key for documents") && !strings.Contains(r.body, "network.update") {
			t.Errorf("%s: %s does not name the required rights", what, r.body)
		}
	}
}
