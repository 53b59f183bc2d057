package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"svc/internal/bucket"
	"svc/internal/bucket/s3test"
	"svc/internal/group"
	"svc/internal/publish"
)

var publishRounds = flag.Int("publish-rounds", 0, "rounds of TestPublishedPositionsOutliveKills, for each kind of store")

// publishedWrites are the writes of one client in sequence: write n puts n into a document.
type publishedWrites struct {
	tasks   []int // the write of each task, by uid
	pending int   // the write without an answer; 0: none
	last    int
}

const publishedDocuments = 20

// write sends the next write.
func (w *publishedWrites) write(m *member) {
	w.last++
	n := w.last
	var answer struct{ TaskUID *int }
	_, _, err := m.ask("POST", "/indexes/a/documents", fmt.Sprintf(`[{"id":%d,"v":%d}]`, n%publishedDocuments, n), &answer)
	if err != nil || answer.TaskUID == nil {
		w.pending = n
		return
	}
	if *answer.TaskUID == len(w.tasks)+1 && w.pending > 0 { // enqueued before the kill
		w.tasks = append(w.tasks, w.pending)
	}
	w.pending = 0
	if *answer.TaskUID != len(w.tasks) {
		m.t.Fatalf("write %d is task %d, and there are %d", n, *answer.TaskUID, len(w.tasks))
	}
	w.tasks = append(w.tasks, n)
}

// model returns the documents after a number of tasks, as v by id, without tasks that failed because the server was killed while they ran.
func (w *publishedWrites) model(tasks int, failed map[int]bool) map[int]int {
	documents := map[int]int{}
	for uid, n := range append(w.tasks[:len(w.tasks):len(w.tasks)], w.pending)[:tasks] {
		if !failed[uid] {
			documents[n%publishedDocuments] = n
		}
	}
	return documents
}

// TestPublishedPositionsOutliveKills kills a publishing server at random moments. Each published position must restore to a server whose
// documents agree with its tasks.
func TestPublishedPositionsOutliveKills(t *testing.T) {
	if *publishRounds == 0 {
		t.Skip("make publish-test ROUNDS=N kills a server N times")
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := s3test.New()
	defer s.Close()
	odds := rand.New(rand.NewPCG(seed, 1))
	s.Fault = func(*http.Request) s3test.Fault {
		if odds.IntN(25) > 0 {
			return s3test.None
		}
		return s3test.Fault(1 + odds.IntN(int(s3test.Cut)))
	}
	access := []string{"--publish-endpoint", s.URL, "--publish-region", "here-1", "--publish-access-key", s3test.AccessKey, "--publish-secret-key", s3test.SecretKey}
	for to, more := range map[string][]string{"file://" + filepath.ToSlash(t.TempDir()): nil, "s3://backups/svc": access} {
		r := rand.New(rand.NewPCG(seed, 2))
		c := restoreCommand{From: to, MasterKey: groupKey}
		if more != nil {
			c.Endpoint, c.Region, c.AccessKey, c.SecretKey = s.URL, "here-1", s3test.AccessKey, s3test.SecretKey
		}
		m := &member{t: t, name: "the writer", data: filepath.Join(t.TempDir(), "data"), key: groupKey}
		m.options = append([]string{"--master-key", groupKey, "--publish", to, "--publish-interval", "10ms"}, more...)
		t.Cleanup(m.kill)
		w := &publishedWrites{}
		restored := 0
		for range *publishRounds {
			m.start()
			if w.write(m); w.pending > 0 { // at most one answer may be missing
				t.Fatal("a write has no answer")
			}
			killed := time.After(time.Duration(r.IntN(300)) * time.Millisecond)
			for running := true; running; {
				select {
				case <-killed:
					running = false
				default:
					w.write(m)
				}
			}
			go m.process.Process.Kill() // possibly during a write
			w.write(m)
			m.kill()
			if comparePublished(t, r, c, w) {
				restored++
			}
			if t.Failed() {
				return
			}
		}
		// In the end everything is published.
		m.start()
		_, header := groupMember{&instance{t: t, url: m.url}}.ask("GET", "/health", "")
		at, err := group.ParsePosition(header.Get("Svc-Position"))
		if err != nil {
			t.Fatal(err)
		}
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
			if all := publishedRanges(t, c); len(all) > 0 && all[len(all)-1].To.Compare(at) >= 0 {
				break
			}
			if time.Now().After(deadline) {
				t.Fatalf("position %v is never published", at)
			}
		}
		m.kill()
		c.At, c.To = "", filepath.Join(t.TempDir(), "last")
		if _, err := restore(t, c); err != nil {
			t.Fatal(err)
		}
		if n := compareRestored(t, c.To, w); n < len(w.tasks) {
			t.Errorf("%d tasks are restored, %d were acknowledged", n, len(w.tasks))
		}
		t.Logf("%s: %d positions were restored of %d tasks", to[:4], restored, len(w.tasks))
	}
}

// publishedRanges returns the ranges that can be restored, or nil if the store fails.
func publishedRanges(t *testing.T, c restoreCommand) []publish.Range {
	t.Helper()
	store, err := bucket.Open(bucket.Options{URL: c.From, Endpoint: c.Endpoint, Region: c.Region, AccessKey: c.AccessKey, SecretKey: c.SecretKey})
	if err != nil {
		t.Fatal(err)
	}
	archive, err := publish.Open(t.Context(), store, c.MasterKey)
	if err != nil {
		return nil
	}
	ranges, _ := archive.Ranges(t.Context())
	return ranges
}

// comparePublished restores a published position, or returns false if there is none.
func comparePublished(t *testing.T, r *rand.Rand, c restoreCommand, w *publishedWrites) bool {
	t.Helper()
	ranges := publishedRanges(t, c)
	if len(ranges) == 0 {
		return false
	}
	x := ranges[r.IntN(len(ranges))]
	at := group.Position{Term: x.From.Term, Run: x.From.Run, Index: x.From.Index + r.Uint64N(x.To.Index-x.From.Index+1)}
	c.At, c.To = at.String(), filepath.Join(t.TempDir(), "restored")
	if _, err := restore(t, c); err != nil {
		t.Errorf("position %v is not restored: %v", at, err)
		return false
	}
	compareRestored(t, c.To, w)
	return true
}

// compareRestored serves a restored directory until its tasks have ended, and returns their number.
func compareRestored(t *testing.T, dir string, w *publishedWrites) int {
	t.Helper()
	m := groupMember{start(t, dir, "--master-key", groupKey)}
	defer m.stop()
	(&pair{t: t, writer: m}).idle()
	var tasks struct{ Total int }
	var ended struct {
		Results []struct {
			UID   int
			Error struct{ Message string }
		}
	}
	var documents struct{ Results []struct{ ID, V int } }
	for path, v := range map[string]any{"/tasks?limit=1": &tasks, "/tasks?limit=1000&statuses=failed": &ended, "/indexes/a/documents?limit=1000": &documents} {
		b, _ := m.ask("GET", path, "")
		if err := json.Unmarshal([]byte(b), v); err != nil {
			t.Fatalf("%s: %s: %v", path, b, err)
		}
	}
	got := map[int]int{}
	for _, d := range documents.Results {
		got[d.ID] = d.V
	}
	failed := map[int]bool{}
	for _, x := range ended.Results {
		if failed[x.UID] = true; !strings.Contains(x.Error.Message, "The process ended") {
			t.Errorf("task %d failed: %s", x.UID, x.Error.Message)
		}
	}
	if want := w.model(tasks.Total, failed); !reflect.DeepEqual(got, want) {
		t.Errorf("after %d tasks the documents are %v, want %v", tasks.Total, got, want)
	}
	return tasks.Total
}
