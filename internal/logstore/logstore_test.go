package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func open(t testing.TB, fsys vfs.FS) *Log {
	t.Helper()
	l, err := Open(Options{FS: fsys, Dir: "log", FileSize: 600})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// model is a log as a slice: entry i has the index first+i.
type model struct {
	first   uint64
	entries [][]byte
}

func (m *model) next() uint64 { return m.first + uint64(len(m.entries)) }

func (m *model) clone() *model { return &model{m.first, slices.Clone(m.entries)} }

// differs describes how a log differs from the model, or returns "". The log may still have removed entries at its front.
func (m *model) differs(l *Log) string {
	first, next := l.First(), l.Next()
	if next != m.next() || first > m.first {
		return fmt.Sprintf("entries %d to %d, want %d to %d", first, next, m.first, m.next())
	}
	want := m.first
	err := l.Read(max(first, m.first), func(index uint64, e []byte) bool {
		if index != want || !bytes.Equal(e, m.entries[index-m.first]) {
			want = 0
			return false
		}
		want++
		return true
	})
	switch {
	case err != nil:
		return err.Error()
	case want != m.next():
		return fmt.Sprintf("the entries end at %d, or one is another, want %d", want, m.next())
	}
	return ""
}

// step is a change of a log and of its model.
type step struct {
	name  string
	log   func(*Log) error
	model func(*model)
}

// randomStep returns a step that is possible on m. Entries have from a few bytes to several frames, and all differ.
func randomStep(r *rand.Rand, m *model) step {
	entry := func() []byte {
		return bytes.Repeat(fmt.Appendf(nil, "%x-", r.Uint64()), r.IntN(1+r.IntN(9)))
	}
	switch n := r.IntN(24); {
	case n >= 20:
		all := [][]byte{entry()}
		return step{"write", func(l *Log) error { return l.Write(all...) }, func(m *model) { m.entries = append(m.entries, all...) }}
	case n < 13:
		all := make([][]byte, 1+r.IntN(4))
		for i := range all {
			all[i] = entry()
		}
		return step{fmt.Sprintf("append %d", len(all)), func(l *Log) error { return l.Append(all...) }, func(m *model) { m.entries = append(m.entries, all...) }}
	case n < 16:
		from := m.next() - uint64(r.IntN(len(m.entries)+1))
		return step{fmt.Sprintf("back to %d", from), func(l *Log) error { return l.TruncateBack(from) }, func(m *model) { m.entries = m.entries[:from-m.first] }}
	case n < 19:
		before := m.first + uint64(r.IntN(len(m.entries)+1))
		return step{fmt.Sprintf("from %d", before), func(l *Log) error { return l.TruncateFront(before) }, func(m *model) { m.first, m.entries = before, m.entries[before-m.first:] }}
	default:
		first := 1 + r.Uint64N(1000)
		return step{fmt.Sprintf("anew at %d", first), func(l *Log) error { return l.Reset(first) }, func(m *model) { m.first, m.entries = first, nil }}
	}
}

// TestAgainstASlice runs random steps, and reopens the log now and then.
func TestAgainstASlice(t *testing.T) {
	for seed := range uint64(30) {
		r := rand.New(rand.NewPCG(seed, 0))
		mem, m := vfs.NewMem(), &model{first: 1}
		l := open(t, mem)
		for n := range 120 {
			s := randomStep(r, m)
			if err := s.log(l); err != nil {
				t.Fatalf("seed %d, step %d, %s: %v", seed, n, s.name, err)
			}
			s.model(m)
			if r.IntN(10) == 0 {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = open(t, mem)
			}
			if d := m.differs(l); d != "" {
				t.Fatalf("seed %d, step %d, %s: %s", seed, n, s.name, d)
			}
		}
		if len(l.files) > 1 {
			if before := len(l.files); l.TruncateFront(l.Next()) != nil || len(l.files) != 1 {
				t.Errorf("seed %d: %d files of %d are left of a log whose entries have all gone", seed, len(l.files), before)
			}
		}
		l.Close()
	}
}

// TestACrashAnywhere cuts the power before every changing operation in the middle of random steps: the log must be as before or after
// the running step.
func TestACrashAnywhere(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		mem, m := vfs.NewMem(), &model{first: 1}
		was := []*model{m.clone()} // before the running step, and before an unsynced write
		clones := 0
		check := func() {
			for _, c := range []*vfs.MemFS{mem.CrashClone(nil), mem.CrashClone(r), mem.CrashClone(r)} {
				clones++
				l, err := Open(Options{FS: c, Dir: "log", FileSize: 600})
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				i := slices.IndexFunc(was, func(m *model) bool { return m.differs(l) == "" })
				if e := m.differs(l); i < 0 && e != "" {
					t.Fatalf("seed %d: the log is neither in the old state (%s) nor in the new one (%s)", seed, was[0].differs(l), e)
				}
				// The log must continue, and a second crash must find that.
				left := m.clone()
				if i >= 0 {
					left = was[i].clone()
				}
				if err := l.Append([]byte("after the crash")); err != nil {
					t.Fatal(err)
				}
				left.entries = append(left.entries, []byte("after the crash"))
				again := open(t, c.CrashClone(nil))
				if d := left.differs(again); d != "" {
					t.Fatalf("seed %d: after a crash and an append: %s", seed, d)
				}
				again.Close()
				l.Close()
			}
		}
		crashing := vfs.Hook(mem, func(o vfs.Op) error {
			if o.Kind.Changes() {
				check()
			}
			return nil
		})
		l := open(t, crashing)
		for n := range 40 {
			s := randomStep(r, m)
			if len(was) > 1 && (strings.HasPrefix(s.name, "back") || strings.HasPrefix(s.name, "from")) { // these may not sync
				if err := l.Sync(); err != nil {
					t.Fatal(err)
				}
				was = was[1:]
			}
			s.model(m)
			if err := s.log(l); err != nil {
				t.Fatalf("seed %d, step %d, %s: %v", seed, n, s.name, err)
			}
			if s.name == "write" {
				was = append(was[len(was)-1:], m.clone())
				check()
				if r.IntN(2) == 0 {
					continue
				}
				if err := l.Sync(); err != nil {
					t.Fatal(err)
				}
			}
			was = []*model{m.clone()}
			check()
			if r.IntN(8) == 0 {
				if err := l.Close(); err != nil {
					t.Fatal(err)
				}
				l = open(t, crashing)
			}
		}
		l.Close()
		if clones < 200 {
			t.Errorf("only %d states were checked", clones)
		}
	}
}

// TestEverySyncIsNeeded leaves out the syncs of one kind: a crash must then lose data.
func TestEverySyncIsNeeded(t *testing.T) {
	for _, kind := range []vfs.OpKind{vfs.OpSync, vfs.OpSyncDir} {
		lost := false
		for seed := uint64(0); seed < 200 && !lost; seed++ {
			r := rand.New(rand.NewPCG(seed, 2))
			mem := vfs.NewMem()
			l := open(t, unsynced{mem, kind})
			m := &model{first: 1}
			for range 10 {
				s := randomStep(r, m)
				if err := s.log(l); err != nil {
					t.Fatal(err)
				}
				s.model(m)
			}
			after, err := Open(Options{FS: mem.CrashClone(r), Dir: "log", FileSize: 600})
			lost = err != nil || m.differs(after) != ""
		}
		if !lost {
			t.Errorf("without %s no data are lost", kind)
		}
	}
}

// TestOrderlyEndsAreDurable checks that the mark of a closed log survives a power failure: without it, a damaged last append would be read
// as one that was cut short.
func TestOrderlyEndsAreDurable(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	if err := errors.Join(l.Append([]byte("a")), l.Close()); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List("log")
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	left := mem.CrashClone(nil)
	for _, name := range names {
		want, err := vfs.ReadFile(mem, "log/"+name)
		got, err2 := vfs.ReadFile(left, "log/"+name)
		if err != nil || err2 != nil || !bytes.Equal(got, want) {
			t.Errorf("a power failure leaves %d bytes of %d of %s: %v", len(got), len(want), name, errors.Join(err, err2))
		}
	}
}

// unsynced leaves out the syncs of one kind.
type unsynced struct {
	vfs.FS
	kind vfs.OpKind
}

func (u unsynced) SyncDir(name string) error {
	if u.kind == vfs.OpSyncDir {
		return nil
	}
	return u.FS.SyncDir(name)
}

func (u unsynced) Create(name string) (vfs.File, error) {
	f, err := u.FS.Create(name)
	if err == nil && u.kind == vfs.OpSync {
		f = unsyncedFile{f}
	}
	return f, err
}

type unsyncedFile struct{ vfs.File }

func (unsyncedFile) Sync() error { return nil }

// TestErrors fails every changing operation once: the log must have its old or its new content, and continue.
func TestErrors(t *testing.T) {
	full := errors.New("no space left")
	for seed := range uint64(20) {
		for n := int64(0); ; n++ {
			r := rand.New(rand.NewPCG(seed, 3))
			mem, m := vfs.NewMem(), &model{first: 1}
			failed, last := false, vfs.OpKind("")
			hook := vfs.FailFrom(n, 1, func(o vfs.Op) bool { return o.Kind.Changes() }, full)
			l, err := Open(Options{FS: vfs.Hook(mem, func(o vfs.Op) error {
				err := hook(o)
				failed = failed || err != nil
				// A removal that is undone loses nothing: Open refuses a log if a file after the removed one is missing.
				if err != nil && (o.Kind != vfs.OpSyncDir || last != vfs.OpRemove) {
					mem.Lose(o.Name)
				}
				last = o.Kind
				return err
			}), Dir: "log", FileSize: 600})
			if err != nil {
				if !errors.Is(err, full) {
					t.Fatal(err)
				}
				continue
			}
			for i := range 15 {
				s := randomStep(r, m)
				before := m.clone()
				s.model(m)
				err := s.log(l)
				if err == nil && s.name == "write" {
					err = l.Sync()
				}
				if err != nil {
					if !errors.Is(err, full) {
						t.Fatalf("seed %d, failure %d, step %d, %s: %v", seed, n, i, s.name, err)
					}
					if before.differs(l) == "" {
						m = before
					}
				}
				if d := m.differs(l); d != "" {
					t.Fatalf("seed %d, failure %d, step %d, %s: %s", seed, n, i, s.name, d)
				}
			}
			for err = full; err != nil; { // after a failure, only a successful append shows the content
				if err = l.Append([]byte("at last")); err != nil && !errors.Is(err, full) {
					t.Fatalf("seed %d, failure %d: %v", seed, n, err)
				}
			}
			m.entries = append(m.entries, []byte("at last"))
			for _, c := range []*vfs.MemFS{mem, mem.CrashClone(nil), mem.CrashClone(r)} {
				after := open(t, c)
				if d := m.differs(after); d != "" {
					t.Fatalf("seed %d, failure %d: after a restart: %s", seed, n, d)
				}
				after.Close()
			}
			l.Close()
			if !failed {
				break
			}
		}
	}
}

// TestConcurrentAppends appends on several goroutines while some syncs fail: acknowledged entries must be durable and stay in the log.
func TestConcurrentAppends(t *testing.T) {
	full := errors.New("no space left")
	for seed := range uint64(10) {
		mem := vfs.NewMem()
		var mu sync.Mutex
		r, failed := rand.New(rand.NewPCG(seed, 5)), 0
		l := open(t, vfs.Hook(mem, func(o vfs.Op) error {
			if o.Kind != vfs.OpSync {
				return nil
			}
			runtime.Gosched() // lets the others run up to the lock
			mu.Lock()
			defer mu.Unlock()
			if r.IntN(8) > 0 {
				return nil
			}
			failed++
			return full
		}))
		has := func(l *Log, entry string) (found bool) {
			err := l.Read(l.First(), func(_ uint64, e []byte) bool {
				found = string(e) == entry
				return !found
			})
			if err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			return found
		}
		var appended []string
		var running sync.WaitGroup
		for g := range 4 {
			running.Go(func() {
				for n := range 15 {
					entry := fmt.Sprintf("%d of %d", n, g)
					if err := l.Append([]byte(entry)); errors.Is(err, full) {
						continue
					} else if err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
					after, err := Open(Options{FS: mem.CrashClone(nil), Dir: "log"})
					if err != nil {
						t.Errorf("seed %d: %v", seed, err)
						return
					}
					if !has(after, entry) {
						t.Errorf("seed %d: a power failure loses the acknowledged entry %s", seed, entry)
					}
					after.Close()
					mu.Lock()
					appended = append(appended, entry)
					mu.Unlock()
				}
			})
		}
		running.Wait()
		for _, entry := range appended {
			if !has(l, entry) {
				t.Errorf("seed %d: the acknowledged entry %s is not in the log", seed, entry)
			}
		}
		l.Close()
		if failed == 0 || len(appended) == 0 {
			t.Errorf("seed %d: %d syncs failed, %d appends succeeded", seed, failed, len(appended))
		}
	}
}

// TestFlippedBytes flips every byte of a log that was closed in order: each relevant change must be detected.
func TestFlippedBytes(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 4))
	mem, m := vfs.NewMem(), &model{first: 1}
	l := open(t, mem)
	for range 60 {
		s := randomStep(r, m)
		if err := s.log(l); err != nil {
			t.Fatal(err)
		}
		s.model(m)
	}
	for range 3 {
		if err := l.Append([]byte("at the end")); err != nil {
			t.Fatal(err)
		}
		m.entries = append(m.entries, []byte("at the end"))
	}
	counts := map[string]int{} // relevant bytes by file
	for _, f := range l.files {
		counts[fileName(f.number)] = int(f.size)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	names, err := mem.List("log")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		whole, err := vfs.ReadFile(mem, "log/"+name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range whole {
			c := mem.CrashClone(nil)
			b := slices.Clone(whole)
			b[i] ^= 1 << r.IntN(8)
			if err := vfs.WriteFile(c, "log/"+name, b); err != nil {
				t.Fatal(err)
			}
			after, err := Open(Options{FS: c, Dir: "log", FileSize: 600})
			var damage *apierr.Corruption
			switch {
			case errors.As(err, &damage):
			case err != nil:
				t.Fatalf("byte %d of %s: %v", i, name, err)
			case i < counts[name]:
				t.Errorf("byte %d of %s, of which %d count: the change is not detected", i, name, counts[name])
				after.Close()
			default:
				if d := m.differs(after); d != "" {
					t.Errorf("byte %d of %s: %s", i, name, d)
				}
				after.Close()
			}
		}
		for _, cut := range []int{0, 1, len(whole) / 2} {
			c := mem.CrashClone(nil)
			if err := vfs.WriteFile(c, "log/"+name, whole[:cut]); err != nil {
				t.Fatal(err)
			}
			if after, err := Open(Options{FS: c, Dir: "log", FileSize: 600}); err == nil {
				if d := m.differs(after); d != "" && name != names[len(names)-1] {
					t.Errorf("%s cut to %d bytes: %s", name, cut, d)
				}
				after.Close()
			}
		}
		if name != names[0] && name != names[len(names)-1] {
			c := mem.CrashClone(nil)
			if err := c.Remove("log/" + name); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(Options{FS: c, Dir: "log", FileSize: 600}); err == nil {
				t.Errorf("the missing %s is not detected", name)
			}
		}
	}
	if len(names) < 3 {
		t.Errorf("only %d files", len(names))
	}
}

// TestFilesOfAnotherLog replaces a file by one of another log with the same length, and an append by one of another log.
func TestFilesOfAnotherLog(t *testing.T) {
	fill := func(text string) (*vfs.MemFS, []string) {
		mem := vfs.NewMem()
		l := open(t, mem)
		for i := range 30 {
			if err := l.Append(fmt.Appendf(nil, "%s %20d", text, i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		names, err := mem.List("log")
		if err != nil {
			t.Fatal(err)
		}
		return mem, names
	}
	own, names := fill("own")
	other, _ := fill("not")
	if len(names) < 3 {
		t.Fatalf("only the files %q", names)
	}
	for _, name := range names {
		a, err := vfs.ReadFile(own, "log/"+name)
		if err != nil {
			t.Fatal(err)
		}
		b, err := vfs.ReadFile(other, "log/"+name)
		if err != nil || len(a) != len(b) {
			t.Fatalf("%d and %d bytes (%v)", len(a), len(b), err)
		}
		first := frameHead(a[headerBytes:], headerBytes)
		for what, bytes := range map[string][]byte{"the file": b, "its first append": slices.Concat(a[:headerBytes], b[headerBytes:first.end()], a[first.end():])} {
			c := own.CrashClone(nil)
			if err := vfs.WriteFile(c, "log/"+name, bytes); err != nil {
				t.Fatal(err)
			}
			var damage *apierr.Corruption
			if _, err := Open(Options{FS: c, Dir: "log", FileSize: 600}); !errors.As(err, &damage) {
				t.Errorf("%s %s of another log is not detected: %v", what, name, err)
			}
		}
	}
}

// TestDamageWhileOpen flips a byte of an append that was checked at the start.
func TestDamageWhileOpen(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	defer l.Close()
	if err := l.Append([]byte("first"), []byte("second")); err != nil {
		t.Fatal(err)
	}
	name := "log/" + fileName(0)
	b, err := vfs.ReadFile(mem, name)
	if err != nil {
		t.Fatal(err)
	}
	b = slices.Clone(b)
	b[len(b)-2] ^= 1
	if err := vfs.WriteFile(mem, name, b); err != nil {
		t.Fatal(err)
	}
	var damage *apierr.Corruption
	if err := l.Read(1, func(uint64, []byte) bool { return true }); !errors.As(err, &damage) {
		t.Errorf("a damaged append is read: %v", err)
	}
}

// golden is a file with one append of two entries that was closed in order.
const golden = "svclog\x00\x01" + // header
	"\x00\x00\x00\x00\x00\x00\x00\x00" + "\xff\xff\xff\xff\xff\xff\xff\xff" + "\x01\x00\x00\x00\x00\x00\x00\x00" +
	"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x99\x47\x1d\x49\x21\x67\xc1\x6b" +
	"\x06\x00\x00\x00" + "\x02\x00\x00\x00" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x99\x47\x1d\x49\x21\x67\xc1\x6b" + "\x25\x85\xe4\xd9\xc0\x9f\xe7\x87" + "\x03one" + "\x01x" +
	"\x00\x00\x00\x00" + "\x00\x00\x00\x00" + "\x03\x00\x00\x00\x00\x00\x00\x00" + "\x25\x85\xe4\xd9\xc0\x9f\xe7\x87" + "\x91\x57\x1e\x09\xfe\x5d\xff\xe6"

func TestFormat(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	if err := l.Append([]byte("one"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	b, err := vfs.ReadFile(mem, "log/"+fileName(0))
	if err != nil || string(b) != golden {
		t.Errorf("%q: %v, want\n%q", b, err, golden)
	}
}

// TestAnAppendCostsOneSync appends to an existing file.
func TestAnAppendCostsOneSync(t *testing.T) {
	mem, operations := vfs.NewMem(), new(vfs.Log)
	l := open(t, vfs.Hook(mem, operations.Hook))
	defer l.Close()
	if err := l.Append([]byte("first")); err != nil {
		t.Fatal(err)
	}
	operations.Take()
	if err := l.Append([]byte("second"), []byte("third")); err != nil {
		t.Fatal(err)
	}
	if got := operations.Take(); len(got) != 2 {
		t.Errorf("an append is %q, want one write and one sync", got)
	}
}

// TestATornAppendOfFrames truncates an append whose entry is itself a frame. That counts as damage only if the frame may
// follow the append.
func TestATornAppendOfFrames(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	defer l.Close()
	if err := l.Append([]byte("first"), []byte("second")); err != nil {
		t.Fatal(err)
	}
	name := "log/" + fileName(0)
	before, err := vfs.ReadFile(mem, name)
	if err != nil {
		t.Fatal(err)
	}
	for first, damage := range map[uint64]bool{1: false, 2: false, 3: false, 4: true, 5: true, 1 << 40: false} {
		inner, _ := encodeFrame(nil, first, 7, [][]byte{[]byte("x")})
		outer, _ := encodeFrame(slices.Clone(before), 3, l.files[0].sum, [][]byte{inner, []byte("y")})
		torn := outer[:len(outer)-1]
		c, err := scan(bytes.NewReader(torn), int64(len(torn)))
		switch {
		case damage && err == nil:
			t.Errorf("a frame with entry %d behind an append with entry 3 that is not whole: %+v", first, c)
		case !damage && (err != nil || !c.torn || len(c.frames) != 1):
			t.Errorf("an append with entry 3 that is cut short, and has a frame with entry %d in it: %+v %v", first, c, err)
		}
	}
}

// TestReadersHoldNoLock checks that a reader which receives entries may wait for a goroutine that appends.
func TestReadersHoldNoLock(t *testing.T) {
	l := open(t, vfs.NewMem())
	if err := l.Append([]byte("1"), []byte("2")); err != nil {
		t.Fatal(err)
	}
	var got []string
	err := l.Read(l.First(), func(_ uint64, e []byte) bool {
		got = append(got, string(e))
		if len(got) < 4 {
			appended := make(chan error)
			go func() { appended <- l.Append(fmt.Append(nil, len(got)+2)) }()
			if err := <-appended; err != nil {
				t.Fatal(err)
			}
		}
		return true
	})
	if want := []string{"1", "2", "3", "4", "5"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

func TestMissingEntries(t *testing.T) {
	l := open(t, vfs.NewMem())
	if err := l.Reset(10); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("ten")); err != nil {
		t.Fatal(err)
	}
	none := func(uint64, []byte) bool { return true }
	for _, err := range []error{l.Read(9, none), l.Read(12, none), l.TruncateBack(9), l.TruncateBack(12)} {
		if !errors.Is(err, ErrNotStored) {
			t.Errorf("%v, want %v", err, ErrNotStored)
		}
	}
	if err := l.Read(11, none); err != nil {
		t.Errorf("the next entry: %v", err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	if err := l.Append([]byte("late")); err == nil {
		t.Error("a closed log accepts entries")
	}
}

// FuzzScan reads any bytes as a file: encoding the entries found must give the same frames.
func FuzzScan(f *testing.F) {
	mem := vfs.NewMem()
	l := open(f, mem)
	for _, all := range [][][]byte{{[]byte("a"), nil}, {bytes.Repeat([]byte("b"), 700)}, {[]byte("c")}} {
		if err := l.Append(all...); err != nil {
			f.Fatal(err)
		}
	}
	if err := l.TruncateBack(2); err != nil {
		f.Fatal(err)
	}
	l.Append([]byte("d"))
	l.Close()
	names, _ := mem.List("log")
	for _, name := range names {
		b, err := vfs.ReadFile(mem, "log/"+name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := scan(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		again, sum := c.header.encode()
		for i := range c.frames {
			fr := &c.frames[i]
			var buf []byte
			if _, ok, err := readFrame(bytes.NewReader(b), fr.offset, fr.end(), &buf); !ok || err != nil {
				t.Fatalf("a frame that was found cannot be read: %v", err)
			}
			all, err := entries(buf[frameBytes:], fr.count)
			if err != nil {
				t.Fatal(err)
			}
			again, sum = encodeFrame(again, fr.first, sum, all)
		}
		if len(again) > len(b) || !c.torn && len(again) != len(b) {
			t.Fatalf("%d bytes of %d are frames, torn %v", len(again), len(b), c.torn)
		}
	})
}

// TestAppendsOfAKilledProgramAreDurable checks that what Open finds is durable, even if the program was killed before the sync.
func TestAppendsOfAKilledProgramAreDurable(t *testing.T) {
	mem := vfs.NewMem()
	if err := open(t, mem).Write([]byte("a")); err != nil {
		t.Fatal(err)
	}
	want := &model{first: 1, entries: [][]byte{[]byte("a")}}
	l := open(t, mem)
	if d := want.differs(l); d != "" {
		t.Fatal(d)
	}
	again := open(t, mem.CrashClone(nil))
	if d := want.differs(again); d != "" {
		t.Error(d)
	}
}

// TestFilesAreDurableBeforeTheNext checks that unsynced data are durable before a next file states that they exist.
func TestFilesAreDurableBeforeTheNext(t *testing.T) {
	mem := vfs.NewMem()
	l := open(t, mem)
	if err := l.Write([]byte("a"), []byte("b")); err != nil {
		t.Fatal(err)
	}
	if err := l.TruncateBack(2); err != nil {
		t.Fatal(err)
	}
	want := &model{first: 1, entries: [][]byte{[]byte("a")}}
	if d := want.differs(open(t, mem.CrashClone(nil))); d != "" {
		t.Error(d)
	}
}

// TestFailedSync checks that an append whose sync failed is not in the log, and that others may take its place. A second, successful sync
// makes no difference.
func TestFailedSync(t *testing.T) {
	for _, by := range []string{"sync", "write", "truncate", "reset", "close"} {
		mem := vfs.NewMem()
		failed, fails := errors.New("failed"), false
		l := open(t, vfs.Hook(mem, func(o vfs.Op) error {
			if o.Kind == vfs.OpSync && fails {
				fails = false
				return failed
			}
			return nil
		}))
		if err := errors.Join(l.Append([]byte("a")), l.Write([]byte("b"))); err != nil {
			t.Fatal(err)
		}
		if n := l.Next(); n != 3 {
			t.Errorf("the next entry is %d before the sync", n)
		}
		fails = true
		var err error
		switch by {
		case "sync":
			err = l.Sync()
		case "write":
			err = l.Write([]byte("c"))
		case "truncate":
			err = l.TruncateBack(3)
			if err == nil { // removes nothing
				err = l.Sync()
			}
		case "reset":
			if err := l.Reset(1); err != nil {
				t.Error(err)
			}
			err = failed
		case "close":
			err = l.Close()
			l = open(t, mem.CrashClone(nil))
		}
		if !errors.Is(err, failed) {
			t.Errorf("%s: %v", by, err)
		}
		want := &model{first: 1, entries: [][]byte{[]byte("a"), []byte("d")}}
		if by == "reset" {
			want.entries = want.entries[1:]
		}
		if err := l.Append([]byte("d")); err != nil {
			t.Fatal(err)
		}
		if d := want.differs(l); d != "" {
			t.Errorf("%s: %s", by, d)
		}
		l.Close()
	}
}

// TestAFailedSyncBeforeAnOpen checks that an append whose sync failed, but which Open can read, is made durable by Open, although another
// sync of that file would have no effect.
func TestAFailedSyncBeforeAnOpen(t *testing.T) {
	for _, before := range []int{0, 1, 3, 40} {
		mem := vfs.NewMem()
		fails := false
		l := open(t, vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error {
			if o.Kind == vfs.OpSync && fails {
				return errors.New("injected failure")
			}
			return nil
		})))
		m := &model{first: 1}
		for range before {
			m.entries = append(m.entries, []byte("an entry before"))
			if err := l.Append([]byte("an entry before")); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Write([]byte("a"), []byte("b")); err != nil {
			t.Fatal(err)
		}
		fails = true
		if l.Sync() == nil {
			t.Fatal("a failed sync gives no error")
		}
		l.Close() // cannot close in order
		l = open(t, mem)
		m.entries = append(m.entries, []byte("a"), []byte("b"))
		if d := m.differs(l); d != "" {
			t.Errorf("%d entries before: the log lacks the unsynced append: %s", before, d)
		}
		if d := m.differs(open(t, mem.CrashClone(nil))); d != "" {
			t.Errorf("%d entries before: a crash after the open: %s", before, d)
		}
		m.entries = append(m.entries, []byte("c"))
		if err := l.Append([]byte("c")); err != nil {
			t.Fatal(err)
		}
		if d := m.differs(open(t, mem.CrashClone(nil))); d != "" {
			t.Errorf("%d entries before: a crash after another append: %s", before, d)
		}
	}
}

// TestCrashesOfAnOpen cuts the power at any point while a log is opened: everything durable before must stay.
func TestCrashesOfAnOpen(t *testing.T) {
	for _, size := range []int{10, 700} { // several appends in a file, and one
		mem, m := vfs.NewMem(), &model{first: 1}
		l := open(t, mem)
		for i := range 5 {
			m.entries = append(m.entries, bytes.Repeat([]byte{byte(i)}, size))
			if err := l.Append(m.entries[i]); err != nil {
				t.Fatal(err)
			}
		}
		r, crashes := rand.New(rand.NewPCG(1, uint64(size))), 0
		open(t, vfs.Hook(mem, func(o vfs.Op) error {
			if o.Kind.Changes() {
				for _, c := range []*vfs.MemFS{mem.CrashClone(nil), mem.CrashClone(r), mem.CrashClone(r)} {
					crashes++
					if d := m.differs(open(t, c)); d != "" {
						t.Errorf("entries of %d bytes: before %v: %s", size, o, d)
					}
				}
			}
			return nil
		}))
		if crashes < 15 {
			t.Errorf("only %d crashes", crashes)
		}
	}
}
