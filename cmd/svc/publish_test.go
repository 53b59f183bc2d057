package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAPublishedServerIsRestored publishes a server, restores it, and serves the restored directory.
func TestAPublishedServerIsRestored(t *testing.T) {
	to := "file://" + filepath.ToSlash(t.TempDir())
	options := func(more ...string) []string { return append([]string{"--master-key", groupKey}, more...) }
	dir, restored := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "restored")
	first := groupMember{start(t, dir, options("--publish", to)...)}
	first.ask("POST", "/indexes/films/documents", `[{"id": 1}, {"id": 2}]`)
	first.ask("PATCH", "/experimental-features", `{"metrics": true, "dynamicSearchRules": true}`)
	first.ask("PATCH", "/dynamic-search-rules/first", `{"actions": [{"selector": {"id": "1"}, "action": {"type": "pin", "position": 0}}]}`)
	first.ask("POST", "/webhooks", `{"url": "http://127.0.0.1:1/hook", "headers": {"Authorization": "hidden"}}`)
	first.ask("POST", "/keys", `{"name": "shop", "actions": ["search"], "indexes": ["films"], "expiresAt": null}`)
	published := func(text string) bool {
		b, _ := first.ask("GET", "/metrics", "")
		return strings.Contains(b, text)
	}
	for deadline := time.Now().Add(time.Minute); !published(`svc_index_docs_count{index="films"} 2`); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the documents are not indexed")
		}
	}
	if !published("svc_publish_failing 0") || !published("svc_publish_objects_total") {
		t.Error("the metrics do not show the publication")
	}
	if b, _ := first.ask("GET", "/metrics/recent", ""); !strings.Contains(b, `"publication":{"store":"file://`) {
		t.Errorf("the status lacks the publication: %s", b)
	}
	want := storedElsewhere(first)
	// The image of the next start has everything.
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	first = groupMember{start(t, dir, options("--publish", to)...)}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		out, err := restore(t, restoreCommand{From: to, MasterKey: groupKey, List: true})
		if err == nil && strings.Contains(out, " 1.2.") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the list is %s, %v", out, err)
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		restoreCommand
		want string
	}{
		{restoreCommand{MasterKey: groupKey, To: restored}, "--from"},
		{restoreCommand{From: to, MasterKey: groupKey}, "--to"},
		{restoreCommand{From: to, MasterKey: groupKey, To: restored, At: "yesterday"}, "--at"},
		{restoreCommand{From: "s3://backups", MasterKey: groupKey, To: restored}, "--from"},
		{restoreCommand{From: to, To: restored}, "encrypted with a master key"},
	} {
		if _, err := restore(t, c.restoreCommand); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.restoreCommand, err)
		}
	}
	if out, err := restore(t, restoreCommand{From: to, MasterKey: groupKey, Verify: true}); err != nil || !strings.Contains(out, " objects intact, ") {
		t.Errorf("%v: %s", err, out)
	}
	damageOne(t, to)
	verify := restoreCommand{From: to, MasterKey: groupKey, Verify: true}
	if out, err := restore(t, verify); err == nil || !strings.Contains(err.Error(), "missing or damaged: 1 object, ") || !strings.Contains(out, "damaged: files/") {
		t.Errorf("%v: %s", err, out)
	}
	verify.At = "9.9.9"
	if out, err := restore(t, verify); err == nil || !strings.Contains(err.Error(), "does not have the position") {
		t.Errorf("%v: %s", err, out)
	}
	// The next start sends the object again, and then its image, possibly later.
	first = groupMember{start(t, dir, options("--publish", to)...)}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		out, err := restore(t, restoreCommand{From: to, MasterKey: groupKey, Verify: true})
		list, err2 := restore(t, restoreCommand{From: to, MasterKey: groupKey, List: true})
		if err == nil && err2 == nil && strings.Contains(list, " 1.3.") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the object or the image is never complete: %v: %s\n%v: %s", err, out, err2, list)
		}
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	if out, err := restore(t, restoreCommand{From: to, MasterKey: groupKey, To: restored}); err != nil || !strings.Contains(out, "position 1.3.") {
		t.Fatalf("%v: %s", err, out)
	}
	second := groupMember{start(t, restored, options()...)}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		b, _ := second.ask("GET", "/indexes/films/documents", "")
		if strings.Contains(b, `"total":2`) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the restored server has %s", b)
		}
	}
	if got := storedElsewhere(second); !slices.Equal(got, want) {
		t.Errorf("the restored server has %q, want %q", got, want)
	}
}

// storedElsewhere creates one feature, rule, webhook and key each, and returns how the server shows them.
func storedElsewhere(m groupMember) (answers []string) {
	for _, x := range []struct{ method, path, body, has string }{
		{"GET", "/experimental-features", "", `"dynamicSearchRules":true`},
		{"POST", "/dynamic-search-rules", "{}", `"first"`},
		{"GET", "/webhooks", "", "/hook"},
		{"GET", "/keys", "", `"shop"`},
	} {
		b, _ := m.ask(x.method, x.path, x.body)
		if !strings.Contains(b, x.has) {
			m.t.Errorf("%s %s: %s", x.method, x.path, b)
		}
		answers = append(answers, b)
	}
	return answers
}

// damageOne truncates the object of an index file.
func damageOne(t *testing.T, to string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(filepath.FromSlash(strings.TrimPrefix(to, "file://")), "files", "*", "*"))
	if err != nil {
		t.Fatal(err)
	}
	largest := ""
	size := int64(-1)
	for _, name := range all {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > size {
			largest, size = name, info.Size()
		}
	}
	if err := os.Truncate(largest, size/2); err != nil {
		t.Fatal(err)
	}
}

func restore(t *testing.T, c restoreCommand) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := c.Run(program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: io.Discard})
	return out.String(), err
}
