package group

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"svc/internal/commit"
	"svc/internal/consensus"
	"svc/internal/standby"
	"svc/internal/vfs"
)

// proposed returns a change of the queue with payloads, which travel in the log.
func proposed(kind commit.Kind, payloads map[string]string) *proposal {
	p := &proposal{level: 1, inline: map[int][]byte{}, entry: &Entry{Change: commit.Change{Kind: kind, Name: "tasks/queue.db"}}}
	for name, content := range payloads {
		p.inline[len(p.entry.Files)] = []byte(content)
		p.entry.Files = append(p.entry.Files, fileOf(name, []byte(content)))
		p.entry.Change.Files = append(p.entry.Change.Files, name)
	}
	return p
}

// append appends a change to the log.
func (p *positioned) append(x *proposal) {
	p.t.Helper()
	log := p.openLog()
	p.must(log.Append(append([]byte{1, 0, 1, 0, 0}, x.encode()...))) // version, type, term, time, no extensions
	p.must(log.Close())
}

// write creates a file without a sync.
func (p *positioned) write(name, content string) {
	p.t.Helper()
	f, err := p.mem.Create(p.path(name))
	p.must(err)
	_, err = f.Write([]byte(content))
	p.must(errors.Join(err, f.Close()))
}

// payloads returns the payloads of a directory. It ignores temporary files, which the queue removes.
func payloads(t *testing.T, fsys vfs.FS) map[string]string {
	t.Helper()
	names, err := fsys.List("data/" + payloadDir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, name := range names {
		if strings.HasSuffix(name, vfs.TempSuffix) {
			continue
		}
		b, err := vfs.ReadFile(fsys, path.Join("data", payloadDir, name))
		if err != nil {
			t.Fatal(err)
		}
		all[path.Join(payloadDir, name)] = string(b)
	}
	return all
}

// TestPayloadsThatAPowerFailureDamages: a start restores the damaged payloads whose contents are in its log, durably. It does not bring
// removed ones back, and leaves all others as they are. If a start is cut off, the next one finishes the work.
func TestPayloadsThatAPowerFailureDamages(t *testing.T) {
	damaged := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := newPositioned(t)
		p.must(vfs.MakeDir(p.mem, p.path(payloadDir)))
		want := map[string]string{}
		for i := range 4 {
			content := map[string]string{}
			for j := range 3 {
				name := fmt.Sprintf("%s/%d-%d.ndjson", payloadDir, i, j)
				content[name] = strings.Repeat(name, 1+r.IntN(10))
				p.write(name, content[name])
				want[name] = content[name]
			}
			p.append(proposed(commit.Tasks, content))
		}
		other := payloadDir + "/other.ndjson" // of a task that has a payload of its own file, or of none
		p.must(vfs.WriteFile(p.mem, p.path(other), []byte("other")))
		want[other] = "other"
		p.append(proposed(commit.Manifest, map[string]string{other: "a manifest names no payload"}))
		p.must(p.mem.SyncDir(p.path(payloadDir)))
		removed := payloadDir + "/1-1.ndjson"
		p.must(p.mem.Remove(p.path(removed)))
		p.must(p.mem.SyncDir(p.path(payloadDir)))
		delete(want, removed)

		p.mem = p.mem.CrashClone(r)
		if !maps.Equal(payloads(t, p.mem), want) {
			damaged++
		}
		left := r.Int64N(40)
		cut := p.voter(p.mem, p.id)
		p.fail = func(o vfs.Op) bool {
			if o.Kind.Changes() {
				left--
			}
			return left < 0
		}
		_, err := cut.recall()
		if p.fail = nil; err != nil {
			p.mem = p.mem.CrashClone(r)
			if _, err := p.voter(p.mem, p.id).recall(); err != nil {
				t.Fatal(err)
			}
		}
		for what, disk := range map[string]*vfs.MemFS{"now": p.mem, "after another power failure": p.mem.CrashClone(r)} {
			if got := payloads(t, disk); !maps.Equal(got, want) {
				t.Fatalf("seed %d, %s: payloads\n%v, want\n%v", seed, what, got, want)
			}
		}
	}
	if damaged < 50 {
		t.Errorf("payloads were damaged only %d times", damaged)
	}
}

// kept makes payloads that are not synced, as the queue of a leader does, and returns their contents. Their names are durable.
func (p *positioned) kept(n int) map[string]string {
	p.t.Helper()
	p.must(vfs.MakeDir(p.mem, p.path(payloadDir)))
	contents := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("%s/%d.ndjson", payloadDir, i)
		contents[name] = strings.Repeat(name, 3)
		p.write(name, contents[name])
		if !p.Keep(name, []byte(contents[name])) {
			p.t.Fatalf("%s is synced", name)
		}
	}
	p.must(p.mem.SyncDir(p.path(payloadDir)))
	return contents
}

// survive checks that a power failure leaves exactly these payloads.
func (p *positioned) survive(want map[string]string) {
	p.t.Helper()
	if got := payloads(p.t, p.mem.CrashClone(nil)); !maps.Equal(got, want) {
		p.t.Errorf("a power failure leaves %v, want %v", got, want)
	}
}

// TestPayloadsAreDurableBeforeTheirEntriesLeaveTheLog: save syncs the payloads that exist, and does not bring removed ones back. If a sync
// fails, save writes that payload to a new file, and tries again until the new file is durable.
func TestPayloadsAreDurableBeforeTheirEntriesLeaveTheLog(t *testing.T) {
	p := newPositioned(t)
	want := p.kept(3 * maxSyncs)
	gone := payloadDir + "/7.ndjson"
	p.must(toldFS{p.mem, p.Voter}.Remove(p.path(gone)))
	waiting := int64(0)
	for name, content := range want {
		if name != gone {
			waiting += int64(len(content))
		}
	}
	if p.unsynced.names[gone] != nil || p.unsynced.waiting != waiting {
		t.Errorf("%d bytes wait for an entry after a payload was removed, want %d", p.unsynced.waiting, waiting)
	}
	lost := payloadDir + "/8.ndjson" // its directory was replaced
	p.must(p.mem.Remove(p.path(lost)))
	p.must(p.mem.SyncDir(p.path(payloadDir)))
	delete(want, gone)
	delete(want, lost)
	p.unsynced.crowned()

	failed, anew, fails := p.path(payloadDir+"/9.ndjson"), p.path(payloadDir+"/10.ndjson"), true
	lose := p.mem.LoseOnError(func(o vfs.Op) error {
		if o.Kind == vfs.OpSync && (o.Name == anew || fails && (o.Name == failed || o.Name == failed+vfs.TempSuffix)) {
			return errDisk
		}
		return nil
	})
	p.fail = func(o vfs.Op) bool { return lose(o) != nil }
	if err := p.save(); !errors.Is(err, errDisk) {
		t.Errorf("entries may leave the log: %v", err)
	}
	fails = false
	p.must(p.save())
	if len(p.unsynced.names) > 0 || p.unsynced.waiting != 0 {
		t.Errorf("%d payloads are taken for not synced, %d bytes for waiting", len(p.unsynced.names), p.unsynced.waiting)
	}
	p.survive(want)
}

// TestPayloadsOfAKilledVoterAreDurable checks that a start syncs payloads that a killed voter wrote: they can be read but may not be
// durable, and the log may be cut before the next stop.
func TestPayloadsOfAKilledVoterAreDurable(t *testing.T) {
	p := newPositioned(t)
	want := p.kept(20)
	p.append(proposed(commit.Tasks, want))
	v := p.voter(p.mem, p.id)
	if _, err := v.recall(); err != nil {
		t.Fatal(err)
	}
	p.survive(want)
}

// TestChangedPayloadsAreReported checks that save reports a payload whose content has changed, whether or not its sync fails.
func TestChangedPayloadsAreReported(t *testing.T) {
	for _, fails := range []bool{false, true} {
		p := newPositioned(t)
		p.kept(1)
		name := payloadDir + "/0.ndjson"
		p.write(name, "zeros")
		p.fail = func(o vfs.Op) bool { return fails && o.Kind == vfs.OpSync && o.Name == p.path(name) }
		for range 2 {
			if err := p.save(); !errors.Is(err, errSum) {
				t.Errorf("syncs fail: %v; entries may leave the log: %v", fails, err)
			}
		}
	}
}

// TestPayloadsAreRenamedDuringSave checks that a payload which the queue renames while save runs still counts as not synced.
func TestPayloadsAreRenamedDuringSave(t *testing.T) {
	p := newPositioned(t)
	want := p.kept(2)
	name := p.path(payloadDir + "/0.ndjson")
	p.must(p.mem.Rename(name, name+vfs.TempSuffix))
	p.must(p.save())
	p.must(p.mem.Rename(name+vfs.TempSuffix, name))
	p.must(p.mem.SyncDir(p.path(payloadDir)))
	p.must(p.save())
	p.survive(want)
}

// TestPayloadsAreReplacedDuringSync checks that a payload which an entry writes again during its sync still counts as not synced.
func TestPayloadsAreReplacedDuringSync(t *testing.T) {
	p := newPositioned(t)
	want := p.kept(1)
	name := payloadDir + "/0.ndjson"
	again := false
	p.fail = func(o vfs.Op) bool {
		if o.Kind == vfs.OpSync && o.Name == p.path(name) && !again {
			again = true
			p.write(name+vfs.TempSuffix, want[name])
			p.must(p.mem.Rename(p.path(name+vfs.TempSuffix), p.path(name)))
			p.must(p.mem.SyncDir(p.path(payloadDir)))
			p.unsynced.add(&File{name, int64(len(want[name])), hash128([]byte(want[name]))})
		}
		return false
	}
	p.must(p.save())
	p.must(p.save())
	if !again {
		t.Error("the payload was not synced")
	}
	p.survive(want)
}

// TestPayloadsInTheLog checks that the payloads whose content waits for the log fit into one entry. The queue syncs the others.
func TestPayloadsInTheLog(t *testing.T) {
	p := newPositioned(t)
	p.must(vfs.MakeDir(p.mem, p.path(payloadDir)))
	c := &commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db"}
	var synced []int
	for i := range 8 {
		name := fmt.Sprintf("%s/%d.ndjson", payloadDir, i)
		content := bytes.Repeat([]byte{byte('a' + i)}, maxInlineFile)
		p.write(name, string(content))
		if i == 0 || i == 2 || i == 4 || !p.Keep(name, content) {
			synced = append(synced, i)
		}
		c.Files, c.Contents = append(c.Files, name), append(c.Contents, content)
	}
	if fmt.Sprint(synced) != "[0 2 4 7]" { // that of 7 does not fit into an entry with 1, 3, 5 and 6
		t.Errorf("the queue syncs %v", synced)
	}
	x, err := p.formed(c)
	p.must(err)
	if len(x.inline) != maxInline/maxInlineFile {
		t.Errorf("%d files travel in the log", len(x.inline))
	}
	for _, i := range synced {
		if _, ok := x.inline[i]; ok {
			t.Errorf("file %d travels in the log although it is synced", i)
		}
	}
	if p.unsynced.waiting != 0 {
		t.Errorf("%d bytes wait for an entry", p.unsynced.waiting)
	}
	for name, content := range map[string][]byte{"indexes/0/1.seg": nil, payloadDir + "/x.ndjson": make([]byte, maxInlineFile+1)} {
		if p.Keep(name, content) {
			t.Errorf("%s of %d bytes is not synced", name, len(content))
		}
	}
	waits := payloadDir + "/waits.ndjson"
	for range 2 { // each new reign forgets the payloads that waited for an entry of the one before
		p.write(waits, "waits")
		if !p.Keep(waits, []byte("waits")) || p.unsynced.waiting != 5 {
			t.Errorf("%d bytes wait for an entry, want 5", p.unsynced.waiting)
		}
		p.crown(2)
		if p.unsynced.waiting != 0 {
			t.Errorf("%d bytes wait for an entry of the reign before", p.unsynced.waiting)
		}
	}
	for i := range maxUnsynced {
		p.unsynced.add(&File{Name: fmt.Sprint(payloadDir, "/none-", i)})
	}
	if !p.unsynced.many() || p.Keep(payloadDir+"/more.ndjson", nil) {
		t.Errorf("with %d unsynced payloads, Keep accepts another", len(p.unsynced.names))
	}
}

// followed is an open store without changes.
type followed struct{}

func (followed) Follow(commit.Change) error { return nil }

// TestPayloadsOfAFollower checks that a follower writes payloads of an entry without a sync, over the files of a former leader, and syncs
// them before the entry leaves the log.
func TestPayloadsOfAFollower(t *testing.T) {
	p := newPositioned(t)
	p.must(vfs.MakeDir(p.mem, p.path(payloadDir)))
	want := map[string]string{payloadDir + "/new.ndjson": "new", payloadDir + "/left.ndjson": "left"}
	p.must(vfs.WriteFile(p.mem, p.path(payloadDir+"/left.ndjson"), []byte("\x00\x00\x00\x00")))
	p.must(p.mem.SyncDir(p.path(payloadDir)))
	d := standby.Open(standby.Options{FS: p.o.FS, Dir: p.o.Dir, Stores: map[commit.Kind]standby.Store{commit.Tasks: followed{}}})
	x := proposed(commit.Tasks, want)
	x.entry.Change.Data = []byte{1, 0} // a format without buckets
	e := &consensus.Entry{Index: 2, Term: 1, Data: x.encode()}
	fails := true // the first sync of the names fails, so a second one proves nothing about them
	lose := p.mem.LoseOnError(func(o vfs.Op) error {
		if o.Kind == vfs.OpSyncDir && o.Name == p.path(payloadDir) && fails {
			return errDisk
		}
		return nil
	})
	p.fail = func(o vfs.Op) bool { return lose(o) != nil }
	if err := p.Voter.make(d, e); !errors.Is(err, errDisk) {
		t.Fatalf("payloads without names: %v", err)
	}
	fails = false
	p.must(p.Voter.make(d, e))
	if got := payloads(t, p.mem); !maps.Equal(got, want) {
		t.Errorf("payloads %v, want %v", got, want)
	}
	if left := payloads(t, p.mem.CrashClone(nil)); maps.Equal(left, want) {
		t.Error("a follower has synced payloads whose content is in the log")
	}
	p.must(p.save())
	p.survive(want)
}
