package main

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/group"
)

// TestARunningReaderBecomesTheWriter promotes a reader while clients write to it and search it. No request may fail, no write may be lost,
// and the former writer must follow the new one afterwards.
func TestARunningReaderBecomesTheWriter(t *testing.T) {
	p := newPair(t)
	next := freePort(t, 2, "127.0.0.1") + 1
	reads := []string{"--group-role", "reader", "--group-join", fmt.Sprintf("127.0.0.1:%d,127.0.0.1:%d", p.port, next), "--group-addr", fmt.Sprintf("127.0.0.1:%d", next)}
	if err := p.reader.stop(); err != nil {
		t.Fatal(err)
	}
	p.reader = groupMember{start(t, p.home[1], append(p.common, reads...)...)}
	p.writer.ask("POST", "/indexes/a/documents", `[{"id":0,"text":"word"}]`)
	p.settle()
	stop := make(chan struct{})
	var writing sync.WaitGroup
	var mu sync.Mutex
	acked := map[string]bool{}
	for c := range 2 {
		writing.Go(func() {
			client := http.Client{Timeout: time.Minute}
			defer client.CloseIdleConnections()
			for n := 1; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprintf("%d-%d", c, n)
				req, _ := http.NewRequest("POST", p.reader.url+"/indexes/a/documents?customMetadata="+id, strings.NewReader(fmt.Sprintf(`[{"id":%q,"text":"word"}]`, id)))
				req.Header.Set("Authorization", "Bearer "+groupKey)
				req.Header.Set("Content-Type", "application/json")
				res, err := client.Do(req)
				if err != nil {
					t.Errorf("a write: %v", err)
					return
				}
				b, _ := io.ReadAll(res.Body)
				res.Body.Close()
				if res.StatusCode != 202 {
					t.Errorf("a write: %d %s", res.StatusCode, b)
				}
				mu.Lock()
				acked[id] = true
				mu.Unlock()
			}
		})
	}
	s := p.search("/indexes/a/search?q=word")
	count := func() int {
		mu.Lock()
		defer mu.Unlock()
		return len(acked)
	}
	until := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); count() < n; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) || t.Failed() {
				t.Fatalf("%d writes were acknowledged", count())
			}
		}
	}
	until(20)
	var out strings.Builder
	c := groupPromoteCommand{remoteOptions: remoteOptions{URL: p.reader.url, Key: groupKey}}
	if err := c.Run(program{getenv: func(string) (string, bool) { return "", false }, out: &out, err: io.Discard}); err != nil || !strings.Contains(out.String(), "in term 2") {
		t.Fatalf("%v: %s\n%s", err, out.String(), p.reader.log)
	}
	until(count() + 20)
	close(stop)
	writing.Wait()
	if n := s.end(); n == 0 {
		t.Error("no search ran")
	}
	if err := p.writer.stopped(); err == nil || !strings.Contains(err.Error(), "another member of the group has become its writer") {
		t.Errorf("the former writer stops with %v", err)
	}
	if b, h := p.reader.ask("POST", "/group/promote", "{}"); !strings.Contains(b, "not_a_reader") || !strings.HasPrefix(h.Get("Svc-Position"), "2.") {
		t.Errorf("the writer is promoted: %s", b)
	}

	// The new writer restarts with its old options, and the former one as a reader.
	if err := p.reader.stop(); err != nil {
		t.Fatal(err)
	}
	was := p.home
	p.home = [2]string{was[1], was[0]}
	p.writer = groupMember{start(t, was[1], append(p.common, reads...)...)}
	p.port = next
	p.startReader()
	p.idle()
	b, _ := p.writer.ask("GET", "/tasks?indexUids=a&limit=100000", "")
	for id := range acked {
		if n := strings.Count(b, fmt.Sprintf(`"customMetadata":%q`, id)); n != 1 {
			t.Errorf("the acknowledged write %s exists %d times", id, n)
		}
	}
	if b, _ := p.writer.ask("GET", "/indexes/a/documents?limit=0", ""); !strings.Contains(b, fmt.Sprintf(`"total":%d}`, len(acked)+1)) {
		t.Errorf("%d documents were acknowledged: %s", len(acked)+1, b)
	}
	p.same()
}

// stopped waits until a member has stopped by itself.
func (m groupMember) stopped() error {
	m.t.Helper()
	for deadline := time.Now().Add(time.Minute); m.alive(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			m.t.Fatal("the member does not stop")
		}
	}
	return m.stop()
}

// TestAReaderIsPromotedByForce promotes a reader whose writer is gone.
func TestAReaderIsPromotedByForce(t *testing.T) {
	p := newPair(t)
	p.writer.ask("POST", "/indexes/a/documents", `[{"id":0,"text":"word"}]`)
	p.settle()
	if b, _ := p.reader.ask("POST", "/group/promote", "{}"); !strings.Contains(b, "--group-addr") {
		t.Errorf("without an address: %s", b)
	}
	if err := p.reader.stop(); err != nil {
		t.Fatal(err)
	}
	next := freePort(t, 2, "127.0.0.1") + 1
	p.reader = groupMember{start(t, p.home[1], append(p.common, "--group-role", "reader", "--group-join", fmt.Sprintf("127.0.0.1:%d", p.port), "--group-addr", fmt.Sprintf("127.0.0.1:%d", next))...)}
	p.reader.until("there", func(s *group.Status) bool { return s.Reader.State == group.StateFollows && s.Reader.AnswersReads })
	if err := p.writer.stop(); err != nil {
		t.Fatal(err)
	}
	if b, _ := p.reader.ask("POST", "/group/promote", `{"force":1}`); !strings.Contains(b, "invalid_group_force") {
		t.Errorf("a number: %s", b)
	}
	if b, _ := p.reader.ask("POST", "/group/promote", `{}`); !strings.Contains(b, "writer_unreachable") || !strings.Contains(b, "force") {
		t.Errorf("without the writer: %s", b)
	}
	if b, _ := p.reader.ask("POST", "/group/promote", `{"force":true}`); !strings.Contains(b, `"role":"writer"`) {
		t.Errorf("by force: %s", b)
	}
	if b, h := p.reader.ask("POST", "/indexes/a/documents", `[{"id":1,"text":"word"}]`); !strings.Contains(b, "taskUid") || !strings.HasPrefix(h.Get("Svc-Position"), "2.1.") {
		t.Errorf("a write: %s", b)
	}
	// The former writer learns of it and stops.
	former, err := tryStart(t, p.home[0], append(p.common, "--group-addr", fmt.Sprintf("127.0.0.1:%d", p.port))...)
	if err == nil {
		err = groupMember{former}.stopped()
	}
	if err == nil || !strings.Contains(err.Error(), "has become its writer") {
		t.Errorf("the former writer ends with %v", err)
	}
}
