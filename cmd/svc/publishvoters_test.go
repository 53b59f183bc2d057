package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"svc/internal/bucket/s3test"
	"svc/internal/group"
)

// writeAny sends the next write to servers in turn until one answers.
func (w *publishedWrites) writeAny(t *testing.T, c *http.Client, url string) {
	w.last++
	n := w.last
	req, err := http.NewRequest("POST", url+"/indexes/a/documents", strings.NewReader(fmt.Sprintf(`[{"id":%d,"v":%d}]`, n%publishedDocuments, n)))
	if err != nil {
		t.Error(err)
		return
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+groupKey)
	resp, err := c.Do(req)
	if err != nil {
		t.Errorf("write %d: %v", n, err)
		return
	}
	defer resp.Body.Close()
	var answer struct{ TaskUID *int }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil || answer.TaskUID == nil || *answer.TaskUID != len(w.tasks) {
		t.Errorf("write %d of %d tasks is answered with %d: %v, %+v", n, len(w.tasks), resp.StatusCode, err, answer)
		return
	}
	w.tasks = append(w.tasks, n)
}

// TestVotersPublish has three voters publish to an unreliable store, and kills, stops or deposes the leader while a client writes. The
// next leader must continue where the last one ended. Each published position must restore to documents that agree with its tasks, and a
// follower must have everything in the end.
func TestVotersPublish(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("this system cannot pause processes")
	}
	rounds := max(*publishRounds, 1)
	seed := rand.Uint64()
	t.Logf("seed %d, %d rounds", seed, rounds)
	r, odds := rand.New(rand.NewPCG(seed, 1)), rand.New(rand.NewPCG(seed, 2))
	s := s3test.New()
	defer s.Close()
	s.Fault = func(*http.Request) s3test.Fault {
		if odds.IntN(25) > 0 {
			return s3test.None
		}
		return s3test.Fault(1 + odds.IntN(int(s3test.Cut)))
	}
	c := restoreCommand{From: "s3://backups/svc", MasterKey: groupKey, Endpoint: s.URL, Region: "here-1", AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
	g := newVoterRun(t, seed, append(storeOptions(s)[2:], "--publish", c.From)...) // these have the master key
	t.Cleanup(func() {
		if t.Failed() {
			for _, m := range g.voters {
				t.Logf("%s:\n%s", m.name, m.log.String())
			}
		}
	})
	g.all()
	w := &publishedWrites{}
	claims := func() (n int) {
		for name := range s.Objects() {
			if strings.Contains(name, "/runs/") {
				n++
			}
		}
		return n
	}
	g.until("published", func([]*group.Status) bool { return len(publishedRanges(t, c)) > 0 })
	first := claims()
	restored, done := 0, map[string]int{}
	for range rounds {
		var hosts []string
		for _, u := range g.urls() {
			hosts = append(hosts, strings.TrimPrefix(u, "http://"))
		}
		client := &http.Client{Transport: newFailover(hosts...)}
		stop, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				w.writeAny(t, client, "http://"+hosts[0])
				select {
				case <-stop:
					return
				default:
				}
			}
		}()
		g.wait(300)
		m := g.voters[g.leader()]
		switch n := r.IntN(3); n {
		case 0:
			done["killed"]++
			m.kill()
			g.wait(1500)
			m.start()
		case 1:
			done["stopped"]++
			pause(m.process.Process)
			g.wait(3000)
			resume(m.process.Process)
		default:
			done["deposed"]++
			if status, b, err := m.ask("POST", "/group/transfer", `{}`, nil); err != nil || status >= 300 {
				t.Logf("the transfer is refused: %d: %s: %v", status, b, err) // the voter may lead already
			}
		}
		g.wait(300)
		g.leader()
		close(stop)
		<-ended
		if comparePublished(t, r, c, w) {
			restored++
		}
		if t.Failed() {
			return
		}
	}
	var asked time.Time
	g.until("another leader publishes", func([]*group.Status) bool { // a short pause deposes no leader
		if claims() > first {
			return true
		}
		if time.Since(asked) > 10*time.Second {
			asked = time.Now()
			g.voters[g.leader()].ask("POST", "/group/transfer", `{}`, nil)
		}
		return false
	})
	// In the end everything is published, and a follower has it.
	last := group.Position{}
	g.until("idle and published", func(all []*group.Status) bool {
		_, b, err := g.voters[g.leader()].ask("GET", "/tasks?statuses=enqueued,processing&limit=1", "", nil)
		if last, _ = group.ParsePosition(all[0].Position); err != nil || !strings.Contains(string(b), `"total":0`) {
			return false
		}
		ranges := publishedRanges(t, c)
		return len(ranges) > 0 && ranges[len(ranges)-1].To.Compare(last) >= 0
	})
	f := groupMember{start(t, filepath.Join(t.TempDir(), "follower"), append(storeOptions(s), "--follow", c.From)...)}
	want := groupMember{&instance{t: t, url: g.voters[0].url}}.found("/indexes/a/documents?limit=100")
	var before group.Position
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		got, header := f.ask("GET", "/indexes/a/documents?limit=100", "")
		at, err := group.ParsePosition(header.Get("Svc-Position"))
		if err == nil && at.Compare(before) > 0 { // a busy disk may be slow
			before, deadline = at, time.Now().Add(time.Minute)
		}
		if err == nil && at.Compare(last) >= 0 {
			if !reflect.DeepEqual(got, want) {
				t.Errorf("at %v the follower answers %s, the voters %s", at, got, want)
			}
			break
		}
		if time.Now().After(deadline) {
			b, _ := f.ask("GET", "/group", "")
			t.Fatalf("the follower is never at %v: %s", last, b)
		}
	}
	if err := f.stop(); err != nil {
		t.Error(err)
	}
	for _, m := range g.voters {
		m.kill()
	}
	leaders, images := 0, 0 // leaders that published, and images that they uploaded
	for name := range s.Objects() {
		switch {
		case strings.Contains(name, "/runs/"):
			leaders++
		case strings.Contains(name, "/states/"):
			images++
		}
	}
	s.Fault = nil
	verify := c
	verify.Verify = true
	if out, err := restore(t, verify); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	c.To = filepath.Join(t.TempDir(), "last")
	if _, err := restore(t, c); err != nil {
		t.Fatal(err)
	}
	if n := compareRestored(t, c.To, w); n != len(w.tasks) {
		t.Errorf("%d tasks are restored, %d were acknowledged", n, len(w.tasks))
	}
	t.Logf("leaders were %v: %d published, with %d images; %d positions were restored of %d tasks", done, leaders, images, restored, len(w.tasks))
	if images >= leaders {
		t.Error("no leader continued where the last one ended")
	}
}
