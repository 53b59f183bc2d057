package fastapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"svc/internal/audit"
	"svc/internal/logs/logstest"
	"svc/internal/vfs"
)

// harmless are actions that may change something but are not in the audit log, with the reason.
var harmless = map[action]string{
	public:                "nothing changes",
	"":                    "no key opens it",
	actionSearch:          "it reads",
	actionDocumentsGet:    "it reads",
	actionFieldsPost:      "it reads",
	actionStatsGet:        "it reads",
	actionAnalyticsGet:    "it reads",
	actionRulesGet:        "it reads",
	actionSettingsGet:     "it reads",
	actionMetricsGet:      "it listens",
	actionTools:           "each tool is a request of its own",
	actionChatCompletions: "it talks",
	actionDocumentsAdd:    "documents are data; tasks name what was done to them",
	actionDocumentsDelete: "documents are data; tasks name what was done to them",
	actionDocumentsAll:    "documents are data; tasks name what was done to them",
	actionTasksCancel:     "a task says what it canceled",
	actionTasksDelete:     "a task says what it deleted",
	actionTasksCompact:    "nothing that is asked for changes",
	actionIndexesCompact:  "nothing that is asked for changes",
	actionAll:             "it reads",
}

// TestEveryRouteIsAuditedOrHarmless fails for a new route until it is in one of the two lists.
func TestEveryRouteIsAuditedOrHarmless(t *testing.T) {
	used := map[string]bool{}
	for _, r := range append(routes(), pprofRoutes()...) {
		used[r.path] = true
		if r.method == methodGet {
			continue
		}
		if _, ok := harmless[r.action]; ok == audited[r.action] {
			t.Errorf("%s %s: the action %s must be either audited or harmless", r.method, r.path, r.action)
		}
	}
	for path := range auditedReads {
		if !used[path] {
			t.Errorf("there is no route %s", path)
		}
	}
	for path := range unaudited {
		if !used[path] {
			t.Errorf("there is no route %s", path)
		}
	}
}

// TestStrangersDoNotFillTheAuditLog sends many requests without a key. Those of the master are all in the log.
func TestStrangersDoNotFillTheAuditLog(t *testing.T) {
	mem := vfs.NewMem()
	log, err := audit.Open(mem, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Audit: log})
	const n = 50
	for range n {
		c.json("POST", "/keys", `{}`)
		c.as("somebody").json("POST", "/keys", `{}`)
		c.as(masterKey).json("POST", "/keys", `{}`)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(mem, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	single, more, master := 0, 0, 0
	for line := range bytes.Lines(b) {
		var e audit.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.Key == audit.Master:
			master++
		case e.Outcome == audit.Refused:
			more += e.Count
		default:
			single++
		}
	}
	if master != n || single == 0 || single > n/2 || single+more != 2*n {
		t.Errorf("%d entries of the master, %d of strangers, and %d requests in summaries", master, single, more)
	}
}

func TestAudit(t *testing.T) {
	mem := vfs.NewMem()
	log, err := audit.Open(mem, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), Audit: log})
	master := c.as(masterKey)
	seen := 0
	// next returns the entries since its last call, each as "key action object status outcome task".
	next := func() (texts []string) {
		t.Helper()
		b, err := vfs.ReadFile(mem, "audit.log")
		if err != nil {
			t.Fatal(err)
		}
		for line := range bytes.Lines(b[seen:]) {
			var e audit.Entry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			if e.Time.IsZero() || e.Address == "" || !strings.HasPrefix(e.Route, "/") {
				t.Errorf("%s", line)
			}
			task := "none"
			if e.Task != nil {
				task = fmt.Sprint(*e.Task)
			}
			texts = append(texts, fmt.Sprintf("%s %s %s %d %s %s", e.Key, e.Action, e.Object, e.Status, e.Outcome, task))
		}
		seen = len(b)
		return texts
	}
	const uid, other = "6062abda-a5aa-4414-ac91-ecd7944c0f8d", "6062abda-a5aa-4414-ac91-ecd7944c0f8e"
	create := func(uid, actions string) string {
		return `{"uid": "` + uid + `", "actions": ` + actions + `, "indexes": ["*"], "expiresAt": null}`
	}
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(master.json("POST", "/keys", create(uid, `["indexes.create", "keys.update"]`)).body), &k); err != nil {
		t.Fatal(err)
	}
	limited := c.as(k.Key)
	if got, want := next(), []string{"master keys.create " + uid + " 201 done none"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, tt := range []struct {
		by                 *client
		method, path, body string
		want               string // "": no entry
	}{
		{master, "POST", "/keys", create(uid, `["search"]`), "master keys.create " + uid + " 409 api_key_already_exists none"},
		{master, "POST", "/keys", `{"actions": 1}`, "master keys.create  400 invalid_api_key_actions none"},
		{master, "POST", "/keys", create(other, `["search"]`), "master keys.create " + other + " 201 done none"},
		{limited, "PATCH", "/keys/" + k.Key, `{"name": "n"}`, uid + " keys.update " + uid + " 200 done none"},
		{limited, "DELETE", "/keys/" + other, ``, uid + " keys.delete " + other + " 403 invalid_api_key none"},
		{limited, "DELETE", "/keys/" + k.Key, ``, uid + " keys.delete  403 invalid_api_key none"},
		{c.as("somebody"), "PATCH", "/keys/" + masterKey, `{}`, " keys.update  403 invalid_api_key none"},
		{c, "PATCH", "/keys/" + uid, `{}`, " keys.update " + uid + " 401 missing_authorization_header none"},
		{master, "DELETE", "/keys/" + other, ``, "master keys.delete " + other + " 204 done none"},
		{limited, "POST", "/indexes", `{"uid": "films"}`, uid + " indexes.create films 202 enqueued 0"},
		{master, "PATCH", "/indexes/films/settings", `{"stopWords": ["a"]}`, "master settings.update films 202 enqueued 1"},
		{master, "PUT", "/indexes/films/settings/synonyms", `[]`, "master settings.update films 400 invalid_settings_synonyms none"},
		{master, "DELETE", "/indexes/films/settings/synonyms", ``, "master settings.update films 202 enqueued 2"},
		{master, "POST", "/swap-indexes", `[{"indexes": ["b", "films"]}]`, "master indexes.swap b, films 202 enqueued 3"},
		{master, "DELETE", "/indexes/films", ``, "master indexes.delete films 202 enqueued 4"},
		{master, "PATCH", "/experimental-features", `{"network": true, "metrics": false}`, "master experimental.update metrics=false, network=true 200 done none"},
		{master, "PATCH", "/experimental-features", `{"nothing": true}`, "master experimental.update  400 bad_request none"},
		{master, "POST", "/dumps", ``, "master dumps.create  202 enqueued 5"},
		{master, "GET", "/downloads/dumps/none.dump", ``, "master * none.dump 404 dump_not_found none"},
		{limited, "GET", "/downloads/snapshots/none.snapshot", ``, uid + " * none.snapshot 403 invalid_api_key none"},
		{master, "GET", "/downloads/dumps", ``, ""},
		{master, "GET", "/keys", ``, ""},
		{master, "GET", "/indexes/films/settings", ``, ""},
		{master, "POST", "/indexes/films/documents", `[{"id": 1}]`, ""},
		{master, "POST", "/indexes/films/search", `{}`, ""},
		{master, "PUT", "/keys", ``, ""}, // no such method
	} {
		tt.by.json(tt.method, tt.path, tt.body)
		var want []string
		if tt.want != "" {
			want = []string{tt.want}
		}
		if got := next(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s %s %s: got %q, want %q", tt.method, tt.path, tt.body, got, want)
		}
	}
	hook := master.json("POST", "/webhooks", `{"url": "http://127.0.0.1:1/secret", "headers": {"Authorization": "secret"}}`)
	var w struct{ UUID string }
	if err := json.Unmarshal([]byte(hook.body), &w); err != nil {
		t.Fatal(err)
	}
	if got, want := next(), []string{"master webhooks.create " + w.UUID + " 201 done none"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.server.webhooks = nil // makes the handler panic
	master.json("DELETE", "/webhooks/"+w.UUID, ``)
	if got, want := next(), []string{"master webhooks.delete " + w.UUID + " 500 internal none"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("after a panic: got %q, want %q", got, want)
	}
	b, err := vfs.ReadFile(mem, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{k.Key, masterKey, "secret"} {
		if bytes.Contains(b, []byte(secret)) {
			t.Errorf("the audit log has a secret, %q:\n%s", secret, b)
		}
	}
}

// TestAFullAuditLogIsReported makes the audit log unwritable: the change must succeed, and the server must log that the entry is missing.
func TestAFullAuditLogIsReported(t *testing.T) {
	full := false
	fsys := vfs.Hook(vfs.NewMem(), func(op vfs.Op) error {
		if full && op.Kind == vfs.OpWrite {
			return fmt.Errorf("the disk is full")
		}
		return nil
	})
	log, err := audit.Open(fsys, "audit.log")
	if err != nil {
		t.Fatal(err)
	}
	said := &logstest.Buffer{}
	c := newClient(t, Options{Audit: log, Logger: slog.New(slog.NewTextHandler(said, nil))})
	full = true
	if r := c.json("PATCH", "/experimental-features", `{"network": true}`); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
	if text := said.String(); !strings.Contains(text, "missing in the audit log") || !strings.Contains(text, "network=true") || !strings.Contains(text, "disk is full") {
		t.Errorf("the log says: %s", text)
	}
}
