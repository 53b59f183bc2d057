package fastapi

import (
	"fmt"
	"strings"
	"testing"

	"svc/internal/search"
	"svc/internal/vfs"
)

func networked(t *testing.T) *client {
	t.Helper()
	f, err := OpenFeatures(vfs.NewMem(), "features.json", "network")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newInstance(t, Options{Features: f})
	return c
}

// TestPeerForm asks for the form in which instances answer each other, which nobody else gets.
func TestPeerForm(t *testing.T) {
	c := networked(t)
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

// TestOriginHeaders sends writes as another instance does, and as it would not.
func TestOriginHeaders(t *testing.T) {
	const version, older = "01a20340-c0c4-7cb1-b458-c00767017d4e", "01920340-c0c4-7cb1-b458-c00767017d4e"
	c := networked(t)
	announce := `{"self":"b","leader":"a","remotes":{"a":{"url":"http://a.test"},"b":{"url":"http://b.test"}},"shards":{"x":{"remotes":["a"]}},"previousRemotes":{},"previousShards":{}}`
	send := func(method, path, body string, headers ...string) reply {
		return c.send(method, path, strings.NewReader(body), append(headers, "Content-Type", "application/json")...)
	}
	origin := func(prefix, remote, uid, version string) []string {
		var h []string
		for name, v := range map[string]string{"Remote": remote, "TaskUid": uid, "Network-Version": version} {
			if v != "" {
				h = append(h, prefix+"Proxy-Origin-"+name, v)
			}
		}
		return h
	}
	const svc, meili = "Svc-", "X-Meili-"
	if r := send("POST", "/indexes", `{"uid":"i"}`, origin(svc, "a", "1", version)...); r.status != 412 || r.code() != "network_version_mismatch" {
		t.Errorf("a write of a network that is not known: %d %s", r.status, r.body)
	}
	if r := send("PATCH", "/network", announce, origin(meili, "a", "1", version)...); r.status != 412 || !strings.Contains(r.body, "no svc") {
		t.Errorf("an announcement of another engine: %d %s", r.status, r.body)
	}
	byLeader := append(origin(svc, "a", "1", version), svc+"Proxy-Origin-Nonce", "5ca1ab1e")
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
		{"under the other names", origin(meili, "a%20b", "3", version), 202, ""},
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
