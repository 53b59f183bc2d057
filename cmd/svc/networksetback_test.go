package main

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// snapshot writes a snapshot, and returns its file.
func (in *member) snapshot() string {
	in.t.Helper()
	var summary struct{ TaskUID int }
	in.must("POST", "/snapshots", "", &summary)
	if status, text := in.finish(summary.TaskUID); status != "succeeded" {
		in.t.Fatal(text)
	}
	return filepath.Join(filepath.Dir(in.data), "snapshots", filepath.Base(in.data)+".snapshot")
}

// setBack kills an instance and restarts it from a snapshot.
func (in *member) setBack(file string) {
	in.t.Helper()
	in.kill()
	in.data = filepath.Join(in.t.TempDir(), "data")
	options := in.options
	in.options = append(in.options[:len(in.options):len(in.options)], "--import-snapshot", file)
	in.start()
	in.options = options
}

// whole waits until an instance reports that it is complete, and calls meanwhile until then.
func (in *member) whole(all []*member, meanwhile func()) {
	in.t.Helper()
	for deadline := time.Now().Add(peace); ; time.Sleep(50 * time.Millisecond) {
		var n struct {
			Remotes map[string]struct{ Status string }
		}
		in.must("GET", "/network", "", &n)
		if n.Remotes[in.name].Status == "available" {
			return
		}
		meanwhile()
		if time.Now().After(deadline) {
			for _, other := range all {
				in.t.Logf("%s:\n%s", other.name, other.log.String())
			}
			in.t.Fatalf("%s does not get its missing writes", in.name)
		}
	}
}

// TestARestoredInstanceIsRebuilt restores an instance from a snapshot: it must get the writes that the leader has delivered since, and
// will not deliver again, from other instances.
func TestARestoredInstanceIsRebuilt(t *testing.T) {
	all := newNetwork(t)
	c := all[2]
	w := newWriter()
	w.steps(all[0], 10)
	settled(t, all, peace)
	file := c.snapshot()
	w.steps(all[0], 20)
	settled(t, all, peace)
	c.setBack(file)
	c.whole(all, func() {
		// Until it is complete, its own answers say so, and the others do not ask it.
		var found struct{ EstimatedTotalHits int }
		all[0].must("POST", "/indexes/m/search", `{"limit":0}`, &found)
		if live := w.live(); found.EstimatedTotalHits != live {
			t.Errorf("during the rebuild, a search at the leader finds %d documents, want %d", found.EstimatedTotalHits, live)
		}
	})
	settled(t, all, peace)
	w.check(t, all)
}

// TestARestoredLeader restores the leader from a snapshot with writes that one remote lacks. Nothing that any instance has may be lost or
// exist twice, not even what the leader accepted after the snapshot.
func TestARestoredLeader(t *testing.T) {
	for name, since := range map[string]func(all []*member, w *writer){
		"with nothing written since": func([]*member, *writer) {},
		"with writes since":          func(all []*member, w *writer) { w.steps(all[0], 20) },
		"with another network since": func(all []*member, w *writer) {
			all[2].start()
			settled(t, all, peace)
			all[0].change(`{"shards":` + shapes[1] + `}`)
			w.steps(all[0], 20)
		},
		"with a change under way": func(all []*member, w *writer) {
			all[2].start()
			settled(t, all, peace)
			all[0].announce(`{"shards":` + shapes[1] + `}`)
			all[2].kill()
		},
		"with settings and an index since": func(all []*member, w *writer) {
			all[0].must("PATCH", "/indexes/m/settings", `{"filterableAttributes":["version"]}`, nil)
			all[0].must("DELETE", "/indexes/gone", "", nil)
			w.steps(all[0], 5)
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := newNetwork(t, "--experimental-proxy-backoff-timeout-seconds", "1")
			a, c := all[0], all[2]
			// b has what c lacks.
			a.change(`{"shards":{"x":{"remotes":["a","b"]},"y":{"remotes":["b","c"]},"z":{"remotes":["a","b"]}}}`)
			for _, in := range all {
				in.t = t
			}
			w := newWriter()
			a.must("POST", "/indexes", `{"uid":"gone"}`, nil)
			w.steps(a, 10)
			settled(t, all, peace)
			c.kill()
			w.steps(a, 10)
			file := a.snapshot()
			since(all, w)
			if !strings.Contains(name, "under way") {
				all[1].finishAll()
			}
			a.setBack(file)
			if c.process == nil {
				// The leader does not know what c has.
				if status, text, err := a.ask("POST", "/indexes/m/documents", `[{"id":1}]`, nil); status != 400 || !strings.Contains(text, "unprocessed_network_task") {
					t.Errorf("a restored leader accepts a write: %d %s %v", status, text, err)
				}
				c.start()
			}
			a.whole(all, func() {})
			settled(t, all, peace)
			w.check(t, all)
			w.steps(a, 5)
			settled(t, all, peace)
			w.check(t, all)
			var filterable []string
			a.must("GET", "/indexes/m/settings/filterable-attributes", "", &filterable)
			status, _, err := a.ask("GET", "/indexes/gone", "", nil)
			if changed := strings.Contains(name, "settings"); changed != (len(filterable) == 1) || changed != (status == 404) {
				t.Errorf("filterable attributes of the leader %v, status of the index %d %v", filterable, status, err)
			}
		})
	}
}

// TestARestoredOnlyOwner restores a leader that is the only owner of a shard: only the writes to that shard since the snapshot are lost.
func TestARestoredOnlyOwner(t *testing.T) {
	all := newNetwork(t)
	a := all[0]
	a.change(`{"shards":{"x":{"remotes":["a"]},"y":{"remotes":["b","a"]},"z":{"remotes":["c"]}}}`)
	add := func(from, to int) {
		var docs []string
		for id := from; id < to; id++ {
			docs = append(docs, fmt.Sprintf(`{"id":%d}`, id))
		}
		a.must("POST", "/indexes/m/documents", "["+strings.Join(docs, ",")+"]", nil)
		settled(t, all, peace)
	}
	found := func(shard string) (hits int) {
		var found struct{ EstimatedTotalHits int }
		a.must("POST", "/indexes/m/search", `{"limit":0,"filter":"_shard = `+shard+`"}`, &found)
		return found.EstimatedTotalHits
	}
	add(0, 100)
	before := map[string]int{"x": found("x"), "y": found("y"), "z": found("z")}
	file := a.snapshot()
	add(100, 200)
	after := map[string]int{"x": before["x"], "y": found("y"), "z": found("z")}
	if found("x") == before["x"] || before["x"] == 0 {
		t.Fatalf("no document is in the leader's own shard: %v", before)
	}
	a.setBack(file)
	a.whole(all, func() {})
	settled(t, all, peace)
	for shard, want := range after {
		if got := found(shard); got != want {
			t.Errorf("shard %s has %d documents, want %d", shard, got, want)
		}
	}
	add(100, 200)
	if n := found("x") + found("y") + found("z"); n != 200 {
		t.Errorf("after a second import there are %d documents, want 200", n)
	}
}

// TestARestoredOnlyOwnerBeforeAChange restores the only owner of a shard from a snapshot from before a change of the network. No other
// instance has its missing writes: it must continue with what it has, in the current network.
func TestARestoredOnlyOwnerBeforeAChange(t *testing.T) {
	all := newNetwork(t, "--experimental-proxy-backoff-timeout-seconds", "1")
	a, c := all[0], all[2]
	a.change(`{"shards":{"x":{"remotes":["a"]},"y":{"remotes":["b"]},"z":{"remotes":["c"]}}}`)
	add := func(from, to int) {
		var docs []string
		for id := from; id < to; id++ {
			docs = append(docs, fmt.Sprintf(`{"id":%d}`, id))
		}
		a.must("POST", "/indexes/m/documents", "["+strings.Join(docs, ",")+"]", nil)
	}
	add(0, 100)
	settled(t, all, peace)
	file := c.snapshot()
	a.change(`{"shards":{"y":null,"w":{"remotes":["c"]}}}`)
	c.kill()
	add(100, 200)
	c.setBack(file)
	c.whole(all, func() {})
	add(200, 300)
	settled(t, all, peace)
	add(0, 100) // sent again
	settled(t, all, peace)
	var found struct{ EstimatedTotalHits int }
	a.must("POST", "/indexes/m/search", `{"limit":0}`, &found)
	if found.EstimatedTotalHits != 300 {
		t.Errorf("found %d documents, want 300", found.EstimatedTotalHits)
	}
	a.change(`{"shards":{"w":{"remotes":["a"]}}}`)
}

// TestARestoredNetwork restores all instances from snapshots of one time.
func TestARestoredNetwork(t *testing.T) {
	all := newNetwork(t)
	w := newWriter()
	w.steps(all[0], 10)
	settled(t, all, peace)
	var files []string
	for _, in := range all {
		files = append(files, in.snapshot())
	}
	before := newWriter()
	for id, d := range w.docs {
		before.docs[id] = &written{acknowledged: d.acknowledged}
	}
	w.steps(all[0], 10)
	settled(t, all, peace)
	for _, in := range all {
		in.kill()
	}
	for i, in := range all {
		in.setBack(files[i])
	}
	for _, in := range all {
		in.whole(all, func() {})
	}
	settled(t, all, peace)
	before.check(t, all)
	before.steps(all[0], 5)
	settled(t, all, peace)
	before.check(t, all)
}

// TestALeaderRestoredElsewhere restores the leader at another address.
func TestALeaderRestoredElsewhere(t *testing.T) {
	all := newNetwork(t)
	w := newWriter()
	w.steps(all[0], 5)
	settled(t, all, peace)
	file := all[0].snapshot()
	w.steps(all[0], 5)
	settled(t, all, peace)
	all[0].kill()
	all[0].link.suffer(trouble{refuse: true})
	a := newMember(t, "a", "--import-snapshot", file)
	all[0] = a
	a.change(fmt.Sprintf(`{"remotes":{"a":{"url":"http://%s"}}}`, a.link.address))
	a.whole(all, func() {})
	settled(t, all, peace)
	w.check(t, all)
}

// TestACopyOfTheLeaderDoesNotLead starts a server from a snapshot of the leader beside the leader.
func TestACopyOfTheLeaderDoesNotLead(t *testing.T) {
	all := newNetwork(t)
	a := all[0]
	w := newWriter()
	w.steps(a, 5)
	settled(t, all, peace)
	file := a.snapshot()
	version := func() (v string) {
		var n struct{ Version string }
		all[1].must("GET", "/network", "", &n)
		return n.Version
	}
	before := version()
	other := newMember(t, "copy", "--import-snapshot", file)
	for deadline := time.Now().Add(peace); !strings.Contains(other.log.String(), "This one is a copy of it"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the copy does not detect that it is one:\n%s", other.log.String())
		}
	}
	if status, text, err := other.ask("POST", "/indexes/m/documents", `[{"id":1}]`, nil); status != 400 {
		t.Errorf("the copy accepts a write: %d %s %v", status, text, err)
	}
	w.steps(a, 5)
	settled(t, all, peace)
	w.check(t, all)
	if after := version(); after != before {
		t.Errorf("the network has version %s after a copy started, want %s", after, before)
	}
}

func newWriter() *writer {
	return &writer{random: rand.New(rand.NewPCG(1, 2)), docs: map[int]*written{}}
}

// steps sends writes to the leader.
func (w *writer) steps(leader *member, n int) {
	for range n {
		w.step(leader)
	}
}
