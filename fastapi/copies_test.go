package fastapi

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestCopiesAreDownloaded lists dumps and the snapshot, reads them whole and in ranges, and finds nothing else of the machine, by whatever
// name. Keys that may create dumps, or that do not reach all indexes, read none.
func TestCopiesAreDownloaded(t *testing.T) {
	dir := t.TempDir()
	dumps, snapshots := filepath.Join(dir, "dumps"), filepath.Join(dir, "snapshots")
	old := time.Now().Add(-time.Hour)
	for name, text := range map[string]string{"dumps/20261127-1.dump": "0123456789", "dumps/old.dump": "old", "dumps/part.tmp": "x", "snapshots/data.snapshot": "snap", "snapshots/other.snapshot": "x", "secret.dump": "secret"} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(filepath.Join(dumps, "old.dump"), old, old); err != nil {
		t.Fatal(err)
	}
	linked := os.Symlink(filepath.Join(dir, "secret.dump"), filepath.Join(dumps, "link.dump")) == nil // Windows may refuse it
	if err := os.Mkdir(filepath.Join(dumps, "dir.dump"), 0o777); err != nil {
		t.Fatal(err)
	}
	open, _ := newInstance(t, Options{Keys: openKeys(t, masterKey), DumpDir: dumps, SnapshotFile: filepath.Join(snapshots, "data.snapshot")})
	c := open.as(masterKey)

	var list struct {
		Results []struct {
			Name  string
			Bytes int
		}
	}
	names := func(path string) (all []string) {
		t.Helper()
		if err := json.Unmarshal([]byte(c.get(path).body), &list); err != nil {
			t.Fatal(err)
		}
		for _, r := range list.Results {
			all = append(all, r.Name)
		}
		return all
	}
	if got := strings.Join(names("/dumps"), " "); got != "20261127-1.dump old.dump" || list.Results[0].Bytes != 10 {
		t.Errorf("dumps: %s %v", got, list)
	}
	if got := strings.Join(names("/snapshots"), " "); got != "data.snapshot" {
		t.Errorf("snapshots: %s", got)
	}
	whole := c.get("/dumps/20261127-1.dump")
	tag := whole.header.Get("ETag")
	if whole.status != 200 || whole.body != "0123456789" || whole.header.Get("Content-Type") != "application/octet-stream" || tag == "" || !strings.Contains(whole.header.Get("Content-Disposition"), `"20261127-1.dump"`) {
		t.Errorf("%d %v %q", whole.status, whole.header, whole.body)
	}
	for _, tt := range []struct {
		path, wanted, only string
		status             int
		body, part         string
	}{
		{"/snapshots/data.snapshot", "", "", 200, "snap", ""},
		{"/dumps/20261127-1.dump", "bytes=4-6", "", 206, "456", "bytes 4-6/10"},
		{"/dumps/20261127-1.dump", "bytes=4-", tag, 206, "456789", "bytes 4-9/10"},
		{"/dumps/20261127-1.dump", "bytes=-2", "", 206, "89", "bytes 8-9/10"},
		{"/dumps/20261127-1.dump", "bytes=4-", `"another"`, 200, "0123456789", ""},
		{"/dumps/20261127-1.dump", "bytes=10-", "", 416, "", "bytes */10"},
		{"/dumps/20261127-1.dump", "words=1-2", "", 416, "", "bytes */10"},
	} {
		r := c.send("GET", tt.path, nil, "Range", tt.wanted, "If-Range", tt.only)
		if r.status != tt.status || r.body != tt.body || r.header.Get("Content-Range") != tt.part {
			t.Errorf("%s %s: %d %q %s", tt.path, tt.wanted, r.status, r.body, r.header.Get("Content-Range"))
		}
	}
	for _, path := range []string{"/dumps/part.tmp", "/dumps/none.dump", "/dumps/..%2Fsecret.dump", "/dumps/..%5Csecret.dump", "/dumps/%2Fetc%2Fpasswd.dump", "/dumps/dir.dump", "/dumps/.dump", "/snapshots/other.snapshot",
		"/snapshots/..%2Fsecret.dump", "/dumps/x%00.dump"} {
		if r := c.get(path); r.status != 404 || strings.Contains(r.body, "secret\n") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := c.get("/dumps/link.dump"); linked && r.status != 404 {
		t.Errorf("a link out of the directory: %d %s", r.status, r.body)
	}

	for actions, status := range map[string]int{`["dumps.create", "snapshots.create", "*.get"]`: 403, `["*"]`: 200} {
		var k struct{ Key string }
		if err := json.Unmarshal([]byte(c.json("POST", "/keys", `{"actions": `+actions+`, "indexes": ["*"], "expiresAt": null}`).body), &k); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/dumps", "/dumps/old.dump", "/snapshots", "/snapshots/data.snapshot"} {
			if r := open.as(k.Key).get(path); r.status != status {
				t.Errorf("%s with %s: %d %.200s", path, actions, r.status, r.body)
			}
		}
	}
	var k struct{ Key string }
	if err := json.Unmarshal([]byte(c.json("POST", "/keys", `{"actions": ["*"], "indexes": ["films"], "expiresAt": null}`).body), &k); err != nil {
		t.Fatal(err)
	}
	if r := open.as(k.Key).get("/dumps/old.dump"); r.status != 403 {
		t.Errorf("a key for one index: %d %s", r.status, r.body)
	}

	none, _ := newInstance(t, Options{SnapshotFile: "s3://bucket/data.snapshot"})
	for _, path := range []string{"/dumps", "/snapshots"} {
		if r := none.get(path); r.body != `{"results":[]}` {
			t.Errorf("%s where there are none: %s", path, r.body)
		}
	}
	if r := none.get("/snapshots/data.snapshot"); r.status != 404 {
		t.Errorf("a snapshot in a bucket: %d", r.status)
	}
}
