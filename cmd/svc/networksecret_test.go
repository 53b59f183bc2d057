package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKeysOfRemotesStayHidden makes requests to a remote succeed, and fail in several ways, and searches all output of the instances for
// its keys. GET /network, dumps and snapshots contain them on purpose.
func TestKeysOfRemotesStayHidden(t *testing.T) {
	const searchKey, writeKey = "search-key-of-a-remote", "write-key-of-a-remote"
	dir := t.TempDir()
	options := []string{"--log-level", "DEBUG", "--dump-dir", filepath.Join(dir, "dumps"), "--snapshot-dir", filepath.Join(dir, "snapshots"),
		"--experimental-proxy-backoff-timeout-seconds", "1", "--experimental-remote-search-timeout-seconds", "1"}
	all := []*member{newMember(t, "a", options...), newMember(t, "b", options...)}
	var remotes []string
	for _, in := range all {
		in.must("PATCH", "/experimental-features", `{"network":true,"metrics":true}`, nil)
		remotes = append(remotes, fmt.Sprintf(`%q:{"url":"http://%s","searchApiKey":%q,"writeApiKey":%q}`, in.name, in.link.address, searchKey, writeKey))
	}
	a, b := all[0], all[1]
	var said strings.Builder
	note := func(in *member, method, path, body string) (status int) {
		t.Helper()
		status, text, err := in.ask(method, path, body, nil)
		if err != nil {
			t.Errorf("%s %s: %v", method, path, err)
		}
		fmt.Fprintf(&said, "%s %s at %s: %s\n", method, path, in.name, text)
		return status
	}
	a.change(`{"self":"a","leader":"a","remotes":{` + strings.Join(remotes, ",") + `},"shards":{"x":{"remotes":["a"]},"y":{"remotes":["b"]}}}`)
	write := func() { note(a, "POST", "/indexes/m/documents?primaryKey=id", `[{"id":1},{"id":2},{"id":3}]`) }
	write()
	settled(t, all, peace)
	note(a, "POST", "/dumps", "")
	note(a, "POST", "/snapshots", "")
	for _, suffered := range []trouble{{}, {refuse: true}, {cutAfter: 10}, {hole: true}} {
		b.link.suffer(suffered)
		write()
		note(a, "POST", "/indexes/m/search", `{"useNetwork":true,"showPerformanceDetails":true}`)
		note(a, "POST", "/multi-search", `{"federation":{},"queries":[{"indexUid":"m","federationOptions":{"remote":"b"}}]}`)
		if suffered.refuse && note(a, "PATCH", "/network", `{}`) < 400 {
			t.Error("the network changes without a remote")
		}
		note(a, "GET", "/network/outbox", "")
		note(a, "GET", "/tasks?limit=100", "")
	}
	note(a, "PATCH", "/network", `{"remotes":{"b":{"url":"http://`+searchKey+`@[","writeApiKey":7}}}`)
	b.link.suffer(trouble{})
	settled(t, all, peace)
	for _, in := range all {
		for _, path := range []string{"/tasks?limit=100", "/batches?limit=100", "/metrics", "/network/outbox", "/stats", "/indexes", "/experimental-features"} {
			note(in, "GET", path, "")
		}
		fmt.Fprintf(&said, "log of %s: %s\n", in.name, in.log.String())
	}
	text := strings.ReplaceAll(said.String(), searchKey+"@[", "") // a client may get back what it sent
	if !strings.Contains(text, "remote_could_not_send_request") {
		t.Error("no request has failed")
	}
	for _, key := range []string{searchKey, writeKey} {
		if at := strings.Index(text, key); at >= 0 {
			t.Errorf("a key is shown in …%s…", text[max(at-300, 0):min(at+100, len(text))])
		}
	}
	if dumps, err := os.ReadDir(filepath.Join(dir, "dumps")); err != nil || len(dumps) != 1 || strings.Contains(dumps[0].Name(), "key") {
		t.Errorf("the dumps are %v, %v", dumps, err)
	}
}
