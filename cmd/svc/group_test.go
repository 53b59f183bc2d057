package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/group"
)

const groupKey = "a-master-key-of-16+bytes"

// groupMember is an instance that sends its requests with the master key.
type groupMember struct{ *instance }

func (m groupMember) ask(method, path, body string) (answer string, header http.Header) {
	m.t.Helper()
	_, answer, header = m.answer(method, path, body)
	return answer, header
}

// answer is ask with status and header.
func (m groupMember) answer(method, path, body string) (status int, answer string, header http.Header) {
	m.t.Helper()
	req, err := http.NewRequest(method, m.url+path, strings.NewReader(body))
	if err != nil {
		m.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+groupKey)
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		m.t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return res.StatusCode, string(b), res.Header
}

// found returns the answer of a path. Members without a known leader answer 503, and are asked again.
func (m groupMember) found(path string) string {
	m.t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(20 * time.Millisecond) {
		status, answer, _ := m.answer("GET", path, "")
		if status == http.StatusOK {
			return answer
		}
		if status != http.StatusServiceUnavailable || time.Now().After(deadline) {
			m.t.Fatalf("%s%s: %d %s", m.url, path, status, answer)
		}
	}
}

// until waits until the state of the group satisfies a condition.
func (m groupMember) until(what string, is func(*group.Status) bool) {
	m.t.Helper()
	var last string
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		var s group.Status
		last, _ = m.ask("GET", "/group", "")
		if err := json.Unmarshal([]byte(last), &s); err != nil {
			m.t.Fatalf("%v: %s", err, last)
		}
		if is(&s) {
			return
		}
	}
	m.t.Fatalf("the group is never %s: %s", what, last)
}

// TestAReaderBecomesTheWriter runs a writer and a reader, which forwards writes, promotes the reader, and checks that the
// former writer stops.
func TestAReaderBecomesTheWriter(t *testing.T) {
	port := freePort(t, 2, "127.0.0.1")
	writes := func(n int) []string {
		return []string{"--master-key", groupKey, "--group-name", "shop", "--group-addr", fmt.Sprintf("127.0.0.1:%d", port+n)}
	}
	first, second := filepath.Join(t.TempDir(), "first"), filepath.Join(t.TempDir(), "second")
	writer := groupMember{start(t, first, writes(0)...)}
	reader := groupMember{start(t, second, "--master-key", groupKey, "--group-name", "shop", "--group-role", "reader", "--group-join", fmt.Sprintf("127.0.0.1:%d", port))}
	for id := range 3 {
		if b, h := reader.ask("POST", "/indexes/films/documents", fmt.Sprintf(`[{"id": %d}]`, id)); !strings.Contains(b, "taskUid") || h.Get("Svc-Position") == "" {
			t.Fatalf("a write at the reader: %s %v", b, h)
		}
	}
	want := `"total":3`
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		b, _ := writer.ask("GET", "/indexes/films/documents", "")
		if strings.Contains(b, want) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the writer has %s", b)
		}
	}
	(&pair{t: t, writer: writer, reader: reader}).settle()
	if err := reader.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := tryStart(t, second, "--master-key", groupKey); err == nil || !strings.Contains(err.Error(), "belongs to a reader") {
		t.Errorf("a server without a group starts on the data of a reader: %v", err)
	}
	var out bytes.Buffer
	p := program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: io.Discard}
	c := groupPromoteCommand{DBPath: second, Former: []string{fmt.Sprintf("127.0.0.1:%d", port)}}
	if err := c.Run(p); err != nil || !strings.Contains(out.String(), "in term 2") {
		t.Fatalf("%v: %s", err, out.String())
	}
	promoted := groupMember{start(t, second, writes(1)...)}
	if b, h := promoted.ask("GET", "/indexes/films/documents", ""); !strings.Contains(b, want) || !strings.HasPrefix(h.Get("Svc-Position"), "2.") {
		t.Errorf("the new writer has %s at %v", b, h)
	}
	stopped := make(chan error, 1)
	go func() {
		for writer.alive() {
			time.Sleep(5 * time.Millisecond)
		}
		stopped <- writer.stop()
	}()
	select {
	case err := <-stopped:
		if err == nil || !strings.Contains(err.Error(), "another member of the group has become its writer") {
			t.Errorf("the former writer stops with %v", err)
		}
	case <-time.After(2 * time.Minute):
		t.Fatal("the former writer does not stop")
	}
	if _, err := tryStart(t, first, writes(0)...); err == nil || !strings.Contains(err.Error(), "another member of the group") {
		t.Errorf("the former writer starts again: %v", err)
	}
}

// alive reports whether the member accepts connections.
func (m groupMember) alive() bool {
	res, err := http.Get(m.url + "/health")
	if err != nil {
		return false
	}
	return res.Body.Close() == nil
}

func TestGroupOptions(t *testing.T) {
	name, addr := []string{"--group-name", "shop"}, []string{"--group-addr", "127.0.0.1:7701"}
	reader := []string{"--group-role", "reader", "--group-join", "127.0.0.1:7701"}
	voter := []string{"--group-role", "voter", "--group-addr", "127.0.0.1:7701", "--group-join", "127.0.0.1:7701,127.0.0.1:7702,127.0.0.1:7703"}
	publish := []string{"--publish", "file:///" + strings.TrimPrefix(filepath.ToSlash(t.TempDir()), "/")}
	follow := []string{"--follow", publish[1]}
	tls := []string{"--group-tls-cert", "a", "--group-tls-key", "b", "--group-tls-ca", "c"}
	for _, tt := range []struct {
		args []string
		want string
	}{
		{slices.Concat(name, addr, tls), ""},
		{slices.Concat(name, reader, tls), ""},
		{slices.Concat(name, reader), ""},
		{slices.Concat(name, voter), ""},
		{slices.Concat(name, voter, publish), ""},
		{slices.Concat(name, reader, publish), ""}, // used after a promotion
		{slices.Concat(name, reader, []string{"--import-dump", "a"}), "a reader copies the data of its writer"},
		{slices.Concat(name, voter, []string{"--import-snapshot", "a"}), "import into a server without a group"},
		{append(follow, "--import-snapshot", "a"), "do not work with --follow"},
		{addr, "need --group-name"},
		{tls, "need --group-name"},
		{name, "needs --group-addr"},
		{slices.Concat(name, reader[:2]), "needs --group-join"},
		{slices.Concat(name, addr, reader[2:]), "--group-join is for readers"},
		{slices.Concat(name, reader[:3], []string{"somewhere"}), "missing port"},
		{slices.Concat(name, addr, tls[:4]), "must be set together"},
		{slices.Concat(name, addr, tls[4:]), "must be set together"},
		{slices.Concat(name, voter, []string{"--group-drain", "5s"}), ""},
		{slices.Concat(name, voter, []string{"--group-drain=-5s"}), "must be at least 0s, got -5s"},
		{slices.Concat(name, reader, []string{"--group-drain", "5s"}), "--group-drain is for voters"},
		{[]string{"--group-drain", "5s"}, "--group-drain is for voters"},
	} {
		_, err := parseServe(t, tt.args, nil, "")
		if got := fmt.Sprint(err); tt.want == "" && err != nil || !strings.Contains(got, tt.want) {
			t.Errorf("%v: %v, want %q", tt.args, err, tt.want)
		}
	}
}

// TestRecoverNeedsAnAddress checks that the address of a voter is validated before its directory is changed.
func TestRecoverNeedsAnAddress(t *testing.T) {
	err := (&groupRecoverCommand{DBPath: t.TempDir(), Addr: "somewhere"}).Run(program{})
	if err == nil || !strings.Contains(err.Error(), "missing port") {
		t.Error(err)
	}
}
