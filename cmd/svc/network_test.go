package main

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"svc/internal/logs/logstest"
)

var networkRounds = flag.Int("network-rounds", 4, "how often TestNetworkKeepsItsPromises kills an instance or troubles a link")

// member is one server of a network. The others reach it through a link that tests can cut.
type member struct {
	t       *testing.T
	name    string
	options []string
	data    string
	process *exec.Cmd
	url     string
	log     logstest.Buffer
	link    *link
	room    *namespace // namespace in which it runs; nil: this one, reached through link
	address string     // where it listens; "": another address after each start
	key     string     // sent with each request; "": none
	program string     // "": the one of this test
}

func newMember(t *testing.T, name string, options ...string) *member {
	t.Helper()
	in := &member{t: t, name: name, options: options, data: filepath.Join(t.TempDir(), "data"), link: newLink(t)}
	in.start()
	t.Cleanup(in.kill)
	return in
}

func (in *member) start() {
	in.t.Helper()
	address := in.room.listens()
	switch {
	case in.address != "":
		address = in.address
	case in.room == nil:
		address = freeAddress()
	}
	beside := filepath.Dir(in.data)
	in.process = in.room.command(cmp.Or(in.program, os.Args[0]), "--db-path", in.data, "--snapshot-dir", filepath.Join(beside, "snapshots"), "--http-addr", address, "--log-level", "WARN", "--experimental-allowed-ip-networks", "127.0.0.0/8,10.0.0.0/8")
	in.process.Args = append(in.process.Args, in.options...)
	in.process.Env = append(os.Environ(), asProgram+"=1")
	in.process.Stdout, in.process.Stderr = &in.log, &in.log
	if err := in.process.Start(); err != nil {
		in.t.Fatal(err)
	}
	in.url = "http://" + address
	for deadline := time.Now().Add(peace); ; time.Sleep(5 * time.Millisecond) {
		if resp, err := http.Get(in.url + "/health"); err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("%s does not answer:\n%s", in.name, in.log.String())
		}
	}
	if in.link != nil {
		in.link.lead(address)
	}
}

// reached returns the address at which the others reach it.
func (in *member) reached() string {
	if in.room != nil {
		return in.room.address
	}
	return in.link.address
}

func (in *member) kill() {
	if in.process != nil {
		_ = in.process.Process.Signal(syscall.SIGKILL)
		_ = in.process.Wait()
		in.process = nil
	}
}

var networkClient = http.Client{Timeout: peace}

// ask sends JSON and decodes the answer into v.
func (in *member) ask(method, path, body string, v any) (status int, text string, err error) {
	req, err := http.NewRequest(method, in.url+path, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if in.key != "" {
		req.Header.Set("Authorization", "Bearer "+in.key)
	}
	resp, err := networkClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err == nil && v != nil {
		err = json.Unmarshal(b, v)
	}
	return resp.StatusCode, string(b), err
}

// must is ask for requests that must be accepted.
func (in *member) must(method, path, body string, v any) {
	in.t.Helper()
	status, text, err := in.ask(method, path, body, v)
	if err != nil || status >= 300 {
		in.t.Fatalf("%s: %s %s: %d %s %v\n%s", in.name, method, path, status, text, err, in.log.String())
	}
}

// finish waits for the task of a summary.
func (in *member) finish(uid int) (status, text string) {
	in.t.Helper()
	for deadline := time.Now().Add(peace); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var task struct{ Status string }
		_, text, _ = in.ask("GET", fmt.Sprintf("/tasks/%d", uid), "", &task)
		if task.Status != "enqueued" && task.Status != "processing" && task.Status != "" {
			return task.Status, text
		}
	}
	in.t.Fatalf("%s: task %d does not end: %s\n%s", in.name, uid, text, in.log.String())
	return "", ""
}

// finishAll waits until an instance has no tasks left.
func (in *member) finishAll() {
	in.t.Helper()
	for deadline := time.Now().Add(peace); ; time.Sleep(10 * time.Millisecond) {
		var list struct{ Total int }
		in.must("GET", "/tasks?statuses=enqueued,processing&limit=1", "", &list)
		if list.Total == 0 {
			return
		}
		if time.Now().After(deadline) {
			in.t.Fatalf("%s has tasks that do not end:\n%s", in.name, in.log.String())
		}
	}
}

// newNetwork starts three instances, the first of which leads.
func newNetwork(t *testing.T, options ...string) []*member {
	t.Helper()
	all := []*member{newMember(t, "a", options...), newMember(t, "b", options...), newMember(t, "c", options...)}
	joined(all)
	return all
}

// joined makes instances a network, the first of which leads.
func joined(all []*member) {
	var remotes []string
	for _, in := range all {
		in.must("PATCH", "/experimental-features", `{"network":true}`, nil)
		remotes = append(remotes, fmt.Sprintf(`%q:{"url":"http://%s"}`, in.name, in.reached()))
	}
	all[0].change(`{"self":"a","leader":"a","remotes":{` + strings.Join(remotes, ",") + `},"shards":` + shapes[0] + `}`)
}

// change changes the network, and waits for the end of the change.
func (in *member) change(body string) {
	in.t.Helper()
	if status, text := in.finish(in.announce(body)); status != "succeeded" {
		in.t.Fatalf("the change of the network: %s", text)
	}
}

// announce starts a change of the network, and returns its task. It retries while the change is refused because another one is running, or
// because a remote of a loaded machine answers too late.
func (in *member) announce(body string) (uid int) {
	in.t.Helper()
	for deadline := time.Now().Add(peace); ; time.Sleep(50 * time.Millisecond) {
		var summary struct {
			TaskUID int
			Code    string
		}
		status, text, err := in.ask("PATCH", "/network", body, &summary)
		if err == nil && status == 202 {
			return summary.TaskUID
		}
		passes := summary.Code == "unprocessed_network_task" || strings.HasPrefix(summary.Code, "remote_")
		if !passes || time.Now().After(deadline) {
			in.t.Fatalf("PATCH /network: %d %s %v", status, text, err)
		}
	}
}

// shapes are shards with two owners each.
var shapes = []string{
	`{"x":{"remotes":["a","b"]},"y":{"remotes":["b","c"]},"z":{"remotes":["c","a"]},"w":null}`,
	`{"x":{"remotes":["b","c"]},"y":{"remotes":["a","c"]},"z":null,"w":{"remotes":["a","b"]}}`,
	`{"x":{"remotes":["a","c"]},"y":{"remotes":["a","b"]},"z":{"remotes":["b","c"]},"w":{"remotes":["b","a"]}}`,
}

// written is what is known of one document: the version of its last acknowledged write, and the versions sent since. Version 0
// is no document.
type written struct {
	acknowledged int
	open         []int
}

// writer writes documents and remembers them.
type writer struct {
	random  *rand.Rand
	version int
	docs    map[int]*written
}

// step sends one write to the leader.
func (w *writer) step(leader *member) {
	w.version++
	var ids []int
	for range w.random.IntN(20) + 1 {
		ids = append(ids, w.random.IntN(400))
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	version := w.version
	method, path := "POST", "/indexes/m/documents?primaryKey=id"
	var body any
	switch w.random.IntN(6) {
	case 0:
		version, path, body = 0, "/indexes/m/documents/delete-batch", ids
	case 1:
		method = "PUT"
		fallthrough
	default:
		var docs []map[string]any
		for _, id := range ids {
			docs = append(docs, map[string]any{"id": id, "version": version, "text": fmt.Sprint("version ", version)})
		}
		body = docs
	}
	for _, id := range ids {
		if w.docs[id] == nil {
			w.docs[id] = &written{}
		}
		w.docs[id].open = append(w.docs[id].open, version)
	}
	raw, err := json.Marshal(body)
	if err != nil {
		panic(err)
	}
	var summary struct{ TaskUID *int }
	status, _, err := leader.ask(method, path, string(raw), &summary)
	if err != nil || status != 202 || summary.TaskUID == nil {
		return
	}
	for _, id := range ids {
		*w.docs[id] = written{acknowledged: version}
	}
}

// peace is longer than a loaded machine needs for all remaining work.
const peace = 2 * time.Minute

// settled waits until no instance has work left, and the leader nothing to deliver.
func settled(t *testing.T, all []*member, limit time.Duration) {
	t.Helper()
	began := time.Now()
	for {
		busy := ""
		var n struct {
			Remotes map[string]struct{ PendingTasks int }
		}
		if _, _, err := all[0].ask("GET", "/network/outbox", "", &n); err != nil {
			busy += err.Error()
		}
		for name, r := range n.Remotes {
			if r.PendingTasks > 0 {
				busy += fmt.Sprintf("%s lacks %d; ", name, r.PendingTasks)
			}
		}
		for _, in := range all {
			var list struct{ Total int }
			if _, _, err := in.ask("GET", "/tasks?statuses=enqueued,processing&limit=1", "", &list); err != nil || list.Total > 0 {
				busy += fmt.Sprintf("%s has %d tasks (%v); ", in.name, list.Total, err)
			}
		}
		if busy == "" {
			return
		}
		if time.Since(began) > limit {
			for _, in := range all {
				_, text, _ := in.ask("GET", "/tasks?statuses=enqueued,processing&limit=3", "", nil)
				_, net, _ := in.ask("GET", "/network", "", nil)
				t.Logf("%s: %s\n%s\n%s", in.name, text, net, in.log.String())
			}
			t.Fatalf("after %s of peace: %s", limit, busy)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// check compares all documents of all instances with what was written.
func (w *writer) check(t *testing.T, all []*member) {
	t.Helper()
	copies := map[int][]int{} // versions by id, one per copy
	for _, in := range all {
		var list struct {
			Results []struct{ ID, Version int }
		}
		in.must("GET", "/indexes/m/documents?limit=100000&fields=id,version&useNetwork=false", "", &list)
		for _, d := range list.Results {
			copies[d.ID] = append(copies[d.ID], d.Version)
		}
		var tasks struct {
			Results []struct {
				UID     int
				Network struct {
					Origin *struct {
						TaskUID        int
						NetworkVersion string
					}
				}
			}
		}
		in.must("GET", "/tasks?limit=100000", "", &tasks)
		seen := map[string]int{} // a restored leader reuses its numbers, under another version
		for _, task := range tasks.Results {
			if o := task.Network.Origin; o != nil {
				key := fmt.Sprint(o.TaskUID, o.NetworkVersion)
				if other, twice := seen[key]; twice {
					t.Errorf("%s has task %d of the leader as %d and %d", in.name, o.TaskUID, other, task.UID)
				}
				seen[key] = task.UID
			}
		}
	}
	live := 0
	for id, d := range w.docs {
		got := copies[id]
		version := 0
		if len(got) > 0 {
			version = got[0]
			live++
		}
		if len(got) != 0 && len(got) != 2 || len(got) == 2 && got[0] != got[1] {
			t.Errorf("document %d has the copies %v, want two equal ones", id, got)
		}
		if version != d.acknowledged && !slices.Contains(d.open, version) {
			t.Errorf("document %d has version %d, want %d or one of %v", id, version, d.acknowledged, d.open)
		}
		delete(copies, id)
	}
	if len(copies) > 0 {
		t.Errorf("documents that were never written: %v", copies)
	}
	for _, in := range all {
		var found struct {
			EstimatedTotalHits int
			RemoteErrors       map[string]any
		}
		in.must("POST", "/indexes/m/search", `{"limit":0}`, &found)
		if found.EstimatedTotalHits != live || len(found.RemoteErrors) > 0 {
			t.Errorf("a search at %s finds %d documents, want %d (%v)", in.name, found.EstimatedTotalHits, live, found.RemoteErrors)
		}
	}
}

// TestNetworkKeepsItsPromises writes to a network of three, kills its instances, disturbs their links, and changes its shape. In the end
// all documents are compared with what was acknowledged: none may be lost, and none may exist twice.
func TestNetworkKeepsItsPromises(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, %d rounds", seed, *networkRounds)
	random := rand.New(rand.NewPCG(seed, 0))
	// Use short timeouts: links swallow bytes for a while.
	all := newNetwork(t, "--experimental-proxy-backoff-timeout-seconds", "1", "--experimental-proxy-request-timeout-seconds", "2")
	w := &writer{random: random, docs: map[int]*written{}}
	for range 5 {
		w.step(all[0])
	}
	for round := range *networkRounds {
		in := all[random.IntN(len(all))]
		changing := random.IntN(2) == 0
		var changed sync.WaitGroup
		if changing { // may be refused while an instance is away
			shape := shapes[random.IntN(len(shapes))]
			changed.Go(func() { _, _, _ = all[0].ask("PATCH", "/network", `{"shards":`+shape+`}`, nil) })
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond)
		}
		if random.IntN(2) == 0 {
			in.link.suffer(troubles[random.IntN(len(troubles))](random))
			for range random.IntN(5) {
				w.step(all[0])
			}
			changed.Wait()
			in.link.suffer(trouble{})
		} else {
			in.kill()
			for range random.IntN(3) {
				if in != all[0] {
					w.step(all[0])
				}
			}
			changed.Wait()
			in.start()
		}
		for range random.IntN(5) {
			w.step(all[0])
		}
		if round%8 == 7 || round == *networkRounds-1 {
			settled(t, all, peace)
			all[0].change(`{}`) // the next change removes what an abandoned one left
			w.check(t, all)
			if t.Failed() {
				for _, in := range all {
					t.Logf("%s:\n%s", in.name, in.log.String())
				}
				t.FailNow()
			}
		}
	}
}

// TestARemoteThatWasAwayForTooLongIsRebuilt stops an instance until the leader gives up its missing writes.
func TestARemoteThatWasAwayForTooLongIsRebuilt(t *testing.T) {
	all := newNetwork(t, "--network-outbox-limit", "20 KB", "--experimental-proxy-backoff-timeout-seconds", "1")
	w := newWriter()
	for range 20 {
		w.step(all[0])
	}
	all[2].kill()
	given := func() bool { return strings.Contains(all[0].log.String(), "unavailable for too long") }
	for deadline := time.Now().Add(peace); !given(); w.step(all[0]) {
		if time.Now().After(deadline) {
			t.Fatalf("no writes are given up:\n%s", all[0].log.String())
		}
	}
	for range 10 {
		w.step(all[0])
	}
	var n struct {
		Remotes map[string]struct{ Status string }
	}
	for deadline := time.Now().Add(peace); n.Remotes["b"].Status != "available"; time.Sleep(10 * time.Millisecond) { // b may take some seconds
		if all[0].must("GET", "/network", "", &n); n.Remotes["c"].Status != "unavailable" || time.Now().After(deadline) {
			t.Fatalf("the states are %v", n.Remotes)
		}
	}
	all[2].start()
	for deadline := time.Now().Add(peace); ; w.step(all[0]) { // c also gets the writes that arrive while it is rebuilt
		all[0].must("GET", "/network", "", &n)
		seen := n.Remotes["c"].Status
		all[2].must("GET", "/network", "", &n)
		if seen == "available" && n.Remotes["c"].Status == seen {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("c is not rebuilt: %v\n%s\n%s", n.Remotes, all[0].log.String(), all[2].log.String())
		}
	}
	settled(t, all, peace)
	w.check(t, all)
}

// TestLostRemotesAreRebuiltOneByOne stops two of four instances until their writes are given up, and restarts one of them, then the other.
func TestLostRemotesAreRebuiltOneByOne(t *testing.T) {
	options := []string{"--network-outbox-limit", "20 KB", "--experimental-proxy-backoff-timeout-seconds", "1"}
	all := newNetwork(t, options...)
	a, b, c, d := all[0], all[1], all[2], newMember(t, "d", options...)
	all = append(all, d)
	d.must("PATCH", "/experimental-features", `{"network":true}`, nil)
	a.change(fmt.Sprintf(`{"remotes":{"d":{"url":"http://%s"}},"shards":{"x":{"remotes":["a","b"]},"y":{"remotes":["a","c"]},"z":{"remotes":["a","d"]}}}`, d.reached()))
	w := newWriter()
	w.steps(a, 20)
	settled(t, all, peace)
	b.kill()
	c.kill()
	for deadline := time.Now().Add(time.Minute); strings.Count(a.log.String(), "unavailable for too long") < 2; w.step(a) {
		if time.Now().After(deadline) {
			t.Fatalf("the remotes are not lost:\n%s", a.log.String())
		}
	}
	w.steps(a, 5)
	for _, in := range []*member{b, c} {
		in.start()
		in.whole(all, func() { w.step(a) })
		w.steps(a, 5)
	}
	settled(t, all, peace)
	w.check(t, all)
}

// TestSearchesAskAnotherOwner disconnects and kills an owner of shards with other owners: no search may find fewer documents or
// report an error.
func TestSearchesAskAnotherOwner(t *testing.T) {
	all := newNetwork(t, "--experimental-remote-search-timeout-seconds", "20") // each owner but the last has half of the shards
	a := all[0]
	a.change(`{"shards":{"x":{"remotes":["b","c"]},"y":{"remotes":["b","c"]},"z":{"remotes":["b","c"]}}}`)
	w := newWriter()
	for range 20 {
		w.step(a)
	}
	settled(t, all, peace)
	search := func(what string) {
		t.Helper()
		for range 10 {
			var found struct {
				EstimatedTotalHits int
				RemoteErrors       map[string]any
			}
			a.must("POST", "/indexes/m/search", `{"q":"version","limit":1}`, &found)
			if found.EstimatedTotalHits != w.live() || len(found.RemoteErrors) > 0 {
				t.Fatalf("%s: a search finds %d documents, want %d (%v)", what, found.EstimatedTotalHits, w.live(), found.RemoteErrors)
			}
		}
	}
	search("all well")
	all[1].link.suffer(trouble{hole: true})
	search("b is silent")
	all[1].link.suffer(trouble{})
	a.kill() // forgets the failed remotes
	a.start()
	all[2].kill()
	search("c is gone")
}

// TestACanceledChangeIsUndone cancels a change that one instance delays, at once or when the others may have committed it. In the latter
// case the change stays, and its task says so.
func TestACanceledChangeIsUndone(t *testing.T) {
	for _, pause := range []time.Duration{0, 15 * time.Millisecond, 40 * time.Millisecond} {
		t.Run(pause.String(), func(t *testing.T) { cancelChange(t, pause) })
	}
}

func cancelChange(t *testing.T, pause time.Duration) {
	all := newNetwork(t)
	w := newWriter()
	for range 10 {
		w.step(all[0])
	}
	shards := func(in *member) string {
		var n struct{ Shards json.RawMessage }
		in.must("GET", "/network", "", &n)
		return string(n.Shards)
	}
	before := shards(all[0])
	change := all[0].announce(`{"shards":` + shapes[1] + `}`)
	time.Sleep(pause)
	all[2].kill()
	var cancelation struct{ TaskUID int }
	all[0].must("POST", fmt.Sprintf("/tasks/cancel?uids=%d", change), "", &cancelation)
	all[0].finish(cancelation.TaskUID)
	status, text := all[0].finish(change)
	all[2].start()
	settled(t, all, peace)
	after := shards(all[0])
	switch {
	case status == "succeeded" && after != before: // the change was quicker
	case status == "canceled" && after == before:
	default:
		t.Errorf("the canceled change: %s, with the shards %s, before %s", text, after, before)
	}
	for _, in := range all {
		if got := shards(in); got != after {
			t.Errorf("%s has the shards %s after a canceled change, others have %s", in.name, got, after)
		}
	}
	w.step(all[0])
	settled(t, all, peace)
	all[0].change(`{}`)
	w.check(t, all)
}

// live returns the number of existing documents, if no write failed.
func (w *writer) live() (n int) {
	for _, d := range w.docs {
		if d.acknowledged > 0 {
			n++
		}
	}
	return n
}
