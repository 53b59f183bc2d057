package publish

import (
	"io"
	"math/rand/v2"
	"path"
	"path/filepath"
	"reflect"
	"testing"

	"svc/internal/group"
)

// TestLeadersPublishTheSameEntries has a later leader publish entries of a former one again, in other objects. Restores, verification and
// followers must use each entry once.
func TestLeadersPublishTheSameEntries(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	store := directory(t)
	h := newHost(t, store, nil)
	for range 6 {
		h.goOn(r, 1+r.IntN(3))
	}
	want := documents(t, h.catalog)
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	all, err := a.history(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	last, err := all.latest() // segments may have been merged after it
	if err != nil {
		t.Fatal(err)
	}
	image := &all.images[len(all.images)-1]
	logs := all.after(image)
	if len(logs) < 4 {
		t.Fatalf("%d objects with entries", len(logs))
	}
	at := 2 + r.IntN(len(logs)-3)
	var before [][]byte
	for i := range logs[:at] {
		b, err := a.batch(t.Context(), &logs[i])
		if err != nil {
			t.Fatal(err)
		}
		before = append(before, b.Entries[logs[i].begin-b.Run.Index:]...)
	}
	lost, err := a.batch(t.Context(), &logs[at])
	if err != nil {
		t.Fatal(err)
	}
	n := 2 + r.IntN(min(len(before), 8)-1) // number of entries published again
	again := *lost
	again.Run.Index -= uint64(n)
	again.Entries = append(before[len(before)-n:], lost.Entries...)
	kept := map[string][]byte{} // objects published after the follower started
	for _, l := range logs[at:] {
		in, err := store.Open(t.Context(), l.name, 0)
		if err != nil {
			t.Fatal(err)
		}
		if kept[l.name], err = io.ReadAll(in); err != nil {
			t.Fatal(err)
		}
		if err := in.Close(); err != nil {
			t.Fatal(err)
		}
		if err := store.Remove(t.Context(), l.name); err != nil {
			t.Fatal(err)
		}
	}
	f := &follower{t: t, dir: path.Join(filepath.ToSlash(t.TempDir()), "follower"), store: store}
	f.start()
	end := group.Position{Term: last.Term, Run: last.Run, Index: logs[at-1].last}
	await(t, "the follower is before those entries", func() bool { return f.r.Position() == end })
	if _, err := a.createOnce(t.Context(), logName(again.Run, logs[at].last, logs[at].at), again.Encode()); err != nil {
		t.Fatal(err)
	}
	end.Index = logs[at].last
	await(t, "the follower has those entries, while there is nothing else", func() bool { return f.r.Position().Compare(end) >= 0 })
	for _, l := range logs[at+1:] {
		if err := store.Create(t.Context(), l.name, kept[l.name]); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "the follower has all", func() bool { return f.r.Position().Compare(last) >= 0 })
	f.stop()
	if f.times > 0 {
		t.Error("the follower copied the data again")
	}
	if got := damages(t, store, nil); got != nil {
		t.Errorf("%q are damaged", got)
	}
	for _, target := range []Target{{}, {Position: last}} {
		if got, _ := restored(t, store, target); !reflect.DeepEqual(got, want) {
			t.Errorf("%v is restored as %v, want %v", target, got, want)
		}
	}
	for index := max(again.Run.Index, image.whole); index <= logs[at].last; index++ { // each is still a position
		restored(t, store, Target{Position: group.Position{Term: last.Term, Run: last.Run, Index: index}})
	}
	// A leader that publishes the same entries once more finds them, even if it combined them differently.
	led := *a
	led.led = true
	again.Now++
	if _, err := led.createOnce(t.Context(), logName(again.Run, logs[at].last, logs[at].at), again.Encode()); err != nil {
		t.Errorf("the same entries are refused: %v", err)
	}
	if _, err := a.createOnce(t.Context(), logName(again.Run, logs[at].last, logs[at].at), again.Encode()); err == nil {
		t.Error("a second publisher of a directory without voters is not detected")
	}
}
