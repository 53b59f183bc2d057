package group

import (
	"bytes"
	"errors"
	"os"
	"path"
	"testing"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// TestAFileIsSentOnceAtATime checks that a second sender of a file waits for the first, and sends the file only if that failed.
func TestAFileIsSentOnceAtATime(t *testing.T) {
	t.Parallel()
	v := &Voter{shipped: map[string]*shipments{}}
	want := func(keys map[string]uint64, own, others int) []chan struct{} {
		t.Helper()
		got, going := v.claim("m", keys)
		if len(got) != own || len(going) != others {
			t.Fatalf("%d files to be sent, %d on their way; want %d, %d", len(got), len(going), own, others)
		}
		return going
	}
	first, both := map[string]uint64{"a": 1}, map[string]uint64{"a": 2, "b": 2}
	want(first, 1, 0)
	going := want(both, 1, 1)
	select {
	case <-going[0]:
		t.Error("the file counts as arrived before arrived was called")
	default:
	}
	v.arrived("m", first, nil) // the first sender failed
	<-going[0]
	want(first, 1, 0)
	v.arrived("m", first, []string{"a"})
	v.arrived("m", map[string]uint64{"b": 2}, []string{"b"})
	want(both, 0, 0)
	v.unship("m")
	v.unship("other")
	want(both, 2, 0)
}

// TestFilesGoAhead checks that the other voters get the files of a change before its entry. Only files that were sent count as received.
func TestFilesGoAhead(t *testing.T) {
	all := newElectors(t, 3)
	voting(t, all, 3)
	for i, name := range []string{"tasks/payloads/0", "tasks/payloads/1"} {
		content := bytes.Repeat([]byte{byte(i)}, maxInlineFile+1)
		f := fileOf(name, content)
		key := fileKey(f.Size, f.Sum)
		within(t, "a file goes ahead", func() bool {
			l := leaderOf(t, all)
			if err := os.WriteFile(path.Join(l.o.Dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
			l.v.mu.Lock()
			r := l.v.reign
			l.v.mu.Unlock()
			index := l.v.node.Last() + 1
			p := &proposal{entry: &Entry{Files: []File{f}}}
			if added, err := l.v.spoolFiles(p, nil, index); r == nil || err != nil || !added {
				return false
			}
			l.v.push(r, p, index)
			there := 0
			for _, e := range all {
				if e.v.spool.has(key, index) {
					there++
				}
			}
			return there == len(all)
		})
	}
	l := leaderOf(t, all)
	l.v.mu.Lock()
	r := l.v.reign
	l.v.mu.Unlock()
	if r == nil {
		return // the lead was just lost, so nothing is pushed
	}
	me := l.v.hello().Member
	f := fileOf("tasks/payloads/2", bytes.Repeat([]byte{2}, maxInlineFile+1))
	l.v.mu.Lock()
	for _, m := range l.v.node.Members() {
		l.v.shipment(m.ID).ahead += maxPushes
	}
	l.v.mu.Unlock()
	l.v.push(r, &proposal{entry: &Entry{Files: []File{f}}}, l.v.node.Last()+1)
	l.v.mu.Lock()
	for id, s := range l.v.shipped {
		if s.ahead < maxPushes || s.going[fileKey(f.Size, f.Sum)] != nil {
			t.Errorf("%d pushes to member %s run, more than allowed", s.ahead, id)
		}
		s.ahead -= maxPushes
	}
	l.v.mu.Unlock()
	keys := map[string]uint64{"0000000000000000000000000000000a-1": 0} // of an entry that all voters have applied
	for _, m := range l.v.node.Members() {
		if m.ID == me {
			continue
		}
		if err := l.v.shipKeys(t.Context(), m.ID, m.Addr, keys, false); err != nil {
			t.Error(err)
		}
		if own, _ := l.v.claim(m.ID, keys); len(own) != 1 {
			t.Error("a file that was not sent counts as received")
		} else {
			l.v.arrived(m.ID, own, nil)
		}
	}
}

// TestSmallFilesOfAChange checks that small returns the content at hand, or else reads the file, if the content fits.
func TestSmallFilesOfAChange(t *testing.T) {
	t.Parallel()
	fsys := vfs.NewMem()
	v := &Voter{o: VoterOptions{FS: fsys, Dir: "data"}}
	if err := errors.Join(fsys.MkdirAll("data"), vfs.WriteFile(fsys, "data/b", []byte("file")), vfs.WriteFile(fsys, "data/c", make([]byte, maxInlineFile+1))); err != nil {
		t.Fatal(err)
	}
	change := &commit.Change{Files: []string{"a", "b", "c", "a"}, Contents: [][]byte{[]byte("hand"), nil, nil, make([]byte, maxInlineFile+1)}}
	for _, tt := range []struct {
		i, left int
		name    string
		want    string
		ok      bool
	}{
		{0, 4, "a", "hand", true},
		{0, 3, "a", "hand", false},
		{1, 4, "b", "file", true},
		{1, 3, "b", "", false},
		{0, 4, "b", "file", true}, // another file of the change has this number
		{4, 4, "b", "file", true},
		{2, maxInline, "c", "", false},
		{3, maxInline, "a", string(make([]byte, maxInlineFile+1)), false},
	} {
		content, size, ok, err := v.small(change, tt.i, tt.name, tt.left)
		if string(content) != tt.want || ok != tt.ok || err != nil || ok && size != int64(len(content)) {
			t.Errorf("%+v: %q, %d bytes, %v, %v", tt, content, size, ok, err)
		}
	}
	if _, _, _, err := v.small(change, 9, "missing", maxInline); err == nil {
		t.Error("a missing file has a content")
	}
}
