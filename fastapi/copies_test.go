package fastapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/group"
	"svc/internal/logs"
)

// TestCopiesAreDownloaded lists dumps and the snapshot, and reads them completely and in ranges. No name may give access to another file.
// API keys may not read them, whatever their actions, and without a master key, pages of other servers may not either.
func TestCopiesAreDownloaded(t *testing.T) {
	dir := t.TempDir()
	dumps, snapshots := filepath.Join(dir, "dumps"), filepath.Join(dir, "snapshots")
	old := time.Now().Add(-time.Hour)
	for name, text := range map[string]string{"dumps/20261127-1.dump": "0123456789", "dumps/old.dump": "old", "dumps/part.tmp": "x", "snapshots/data.snapshot": "snap", "snapshots/other.snapshot": "x", "secret.dump": "hidden"} {
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
	if got := strings.Join(names("/downloads/dumps"), " "); got != "20261127-1.dump old.dump" || list.Results[0].Bytes != 10 {
		t.Errorf("dumps: %s %v", got, list)
	}
	if got := strings.Join(names("/downloads/snapshots"), " "); got != "data.snapshot" {
		t.Errorf("snapshots: %s", got)
	}
	whole := c.get("/downloads/dumps/20261127-1.dump")
	tag := whole.header.Get("ETag")
	if whole.status != 200 || whole.body != "0123456789" || whole.header.Get("Content-Type") != "application/octet-stream" || tag == "" || !strings.Contains(whole.header.Get("Content-Disposition"), `"20261127-1.dump"`) {
		t.Errorf("%d %v %q", whole.status, whole.header, whole.body)
	}
	for _, tt := range []struct {
		path, wanted, only string
		status             int
		body, part         string
	}{
		{"/downloads/snapshots/data.snapshot", "", "", 200, "snap", ""},
		{"/downloads/dumps/20261127-1.dump", "bytes=4-6", "", 206, "456", "bytes 4-6/10"},
		{"/downloads/dumps/20261127-1.dump", "bytes=4-", tag, 206, "456789", "bytes 4-9/10"},
		{"/downloads/dumps/20261127-1.dump", "bytes=-2", "", 206, "89", "bytes 8-9/10"},
		{"/downloads/dumps/20261127-1.dump", "bytes=4-", `"another"`, 200, "0123456789", ""},
		{"/downloads/dumps/20261127-1.dump", "bytes=10-", "", 416, "", "bytes */10"},
		{"/downloads/dumps/20261127-1.dump", "bytes=-0", "", 416, "", "bytes */10"},
		{"/downloads/dumps/20261127-1.dump", "words=1-2", "", 200, "0123456789", ""},
		{"/downloads/dumps/20261127-1.dump", "bytes=1-2,4-5", "", 200, "0123456789", ""},
		{"/downloads/dumps/20261127-1.dump", "bytes=5-2", "", 200, "0123456789", ""},
	} {
		r := c.send("GET", tt.path, nil, "Range", tt.wanted, "If-Range", tt.only)
		if r.status != tt.status || r.body != tt.body || r.header.Get("Content-Range") != tt.part {
			t.Errorf("%s %s: %d %q %s", tt.path, tt.wanted, r.status, r.body, r.header.Get("Content-Range"))
		}
	}
	for _, path := range []string{"/downloads/dumps/part.tmp", "/downloads/dumps/none.dump", "/downloads/dumps/..%2Fsecret.dump", "/downloads/dumps/..%5Csecret.dump", "/downloads/dumps/%2Fetc%2Fpasswd.dump", "/downloads/dumps/dir.dump", "/downloads/dumps/.dump", "/downloads/snapshots/other.snapshot",
		"/downloads/snapshots/..%2Fsecret.dump", "/downloads/dumps/x%00.dump", "/downloads/dumps/" + strings.Repeat("x", 300) + ".dump"} {
		if r := c.get(path); r.status != 404 || strings.Contains(r.body, "hidden") {
			t.Errorf("%s: %d %s", path, r.status, r.body)
		}
	}
	if r := c.get("/downloads/dumps/link.dump"); linked && r.status != 404 {
		t.Errorf("a link out of the directory: %d %s", r.status, r.body)
	}

	for _, rights := range []string{`["dumps.create", "snapshots.create", "*.get"], "indexes": ["*"]`, `["*"], "indexes": ["*"]`, `["*"], "indexes": ["films"]`} {
		var k struct{ Key string }
		if err := json.Unmarshal([]byte(c.json("POST", "/keys", `{"actions": `+rights+`, "expiresAt": null}`).body), &k); err != nil {
			t.Fatal(err)
		}
		for _, path := range []string{"/downloads/dumps", "/downloads/dumps/old.dump", "/downloads/dumps/none.dump", "/downloads/snapshots", "/downloads/snapshots/data.snapshot"} {
			if r := open.as(k.Key).get(path); r.status != 403 || r.code() != "invalid_api_key" {
				t.Errorf("%s with %s: %d %.200s", path, rights, r.status, r.body)
			}
		}
	}
	if r := c.send("GET", "/downloads/dumps/old.dump", nil, "Origin", "https://page.test"); r.status != 200 {
		t.Errorf("the master key from a page: %d %s", r.status, r.body)
	}
	keyless, _ := newInstance(t, Options{DumpDir: dumps, SnapshotFile: filepath.Join(snapshots, "data.snapshot")})
	for _, path := range []string{"/downloads/dumps", "/downloads/dumps/old.dump", "/downloads/snapshots", "/downloads/snapshots/data.snapshot"} {
		if r := keyless.get(path); r.status != 200 {
			t.Errorf("%s without a master key: %d %s", path, r.status, r.body)
		}
		if r := keyless.send("GET", path, nil, "Origin", "https://page.test"); r.status != 403 {
			t.Errorf("%s from a page, without a master key: %d %s", path, r.status, r.body)
		}
	}

	none, _ := newInstance(t, Options{SnapshotFile: "s3://bucket/data.snapshot"})
	for _, path := range []string{"/downloads/dumps", "/downloads/snapshots"} {
		if r := none.get(path); r.body != `{"results":[]}` {
			t.Errorf("%s where there are none: %s", path, r.body)
		}
	}
	if r := none.get("/downloads/snapshots/data.snapshot"); r.status != 404 {
		t.Errorf("a snapshot in a bucket: %d", r.status)
	}
}

// FuzzByteRange checks that a served range lies within the file.
func FuzzByteRange(f *testing.F) {
	for _, header := range []string{"bytes=0-", "bytes=4-6", "bytes=-2", "bytes=-0", "bytes=5-2", "Bytes= 1-99999999999999999999 ", "bytes=1-2,4-5", "words=1-2", "bytes=+1-2", "bytes=--1", "bytes=-", ""} {
		f.Add(header, int64(10))
		f.Add(header, int64(0))
	}
	f.Fuzz(func(t *testing.T, header string, size int64) {
		if size < 0 {
			t.Skip()
		}
		if first, last, ok := byteRange(header, size); ok && first <= last && (first < 0 || last >= size) {
			t.Errorf("%q of %d bytes: %d to %d", header, size, first, last)
		}
	})
}

// TestByteRanges checks the header Range of RFC 9110 for 10 bytes. "-" marks an ignored header.
func TestByteRanges(t *testing.T) {
	for header, want := range map[string]string{
		"bytes=0-0": "0 0", "bytes=4-6": "4 6", "bytes=4-": "4 9", "bytes=4-99": "4 9", "BYTES= 4-6\t": "4 6", "bytes=-3": "7 9", "bytes=-99": "0 9",
		"bytes=-99999999999999999999": "0 9", "bytes=1-99999999999999999999": "1 9", "bytes=10-": "none", "bytes=10-12": "none", "bytes=-0": "none",
		"bytes=99999999999999999999-": "none", "bytes=5-2": "-", "bytes=-": "-", "bytes=": "-", "bytes": "-", "": "-", "bytes=1": "-", "bytes=x-2": "-",
		"bytes=1-x": "-", "bytes=+1-2": "-", "bytes=1-2,4-5": "-", "bytes=-1,-2": "-", "words=1-2": "-", "bytes=1--2": "-", "bytes =1-2": "-",
	} {
		got := "-"
		if first, last, ok := byteRange(header, 10); ok && first > last {
			got = "none"
		} else if ok {
			got = fmt.Sprint(first, last)
		}
		if got != want {
			t.Errorf("%q: %s, want %s", header, got, want)
		}
	}
	for header, want := range map[string]bool{"bytes=-5": false, "bytes=-0": true, "bytes=0-": true} {
		if _, _, ok := byteRange(header, 0); ok != want {
			t.Errorf("%q of an empty file: %t", header, ok)
		}
	}
}

// TestCopiesOfReboundPages checks that a page whose host name was rebound to this machine can read nothing.
func TestCopiesOfReboundPages(t *testing.T) {
	o := Options{}
	openInstance(t, &o)
	c := newTCPClient(t, o)
	for host, want := range map[string]int{"localhost:7700": 200, "[::1]:7700": 200, "page.test:7700": 403} {
		for _, path := range []string{"/downloads/dumps", "/downloads/snapshots"} {
			req, err := http.NewRequest("GET", "http://svc"+path, nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Host = host
			res, err := c.http.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if res.Body.Close(); res.StatusCode != want {
				t.Errorf("%s by the name %s: %d", path, host, res.StatusCode)
			}
		}
	}
}

// TestFollowersForwardNoReboundDownloads checks that a follower itself refuses a rebound host name: the writer does not see the name that
// the client used.
func TestFollowersForwardNoReboundDownloads(t *testing.T) {
	s := NewStandby(&fakeMember{pos: group.Position{Term: 1, Run: 1, Index: 7}}, &Forwarder{}, "", 0, logs.New(io.Discard, logs.AtLeast(logs.LevelOff), logs.Human))
	l := serveStandby(t, s)
	for path, want := range map[string]int{"/downloads/dumps": 403, "/downloads/snapshots/data.snapshot": 403, "/health": 200} {
		req, err := http.NewRequest("GET", "http://"+l.Addr().String()+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = "page.test"
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != want {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
