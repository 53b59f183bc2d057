package dump

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"svc/internal/index"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/segment"
)

// snapshotNow makes a snapshot of an instance whose queue runs no tasks.
func snapshotNow(t *testing.T, in *instance) error {
	t.Helper()
	own := in.enqueue("", task.CreateSnapshot{}, "")
	_, err := New(in.o).snapshot(t.Context(), in.queue, []*task.Task{own}, func(int, index.Step) {})
	return err
}

// isVersion returns a check that accepts one content of VERSION.
func isVersion(want string) func([]byte) (string, error) {
	return func(b []byte) (string, error) {
		if string(b) != want {
			return "", fmt.Errorf("VERSION says %q, want %q", b, want)
		}
		return "", nil
	}
}

func importSnapshot(t *testing.T, dir, file string) error {
	t.Helper()
	must(t, os.MkdirAll(dir, 0o777))
	return ImportSnapshot(t.Context(), SnapshotImportOptions{FS: vfs.OS, Place: PlaceIn(dir), File: file, CheckVersion: isVersion("svc test\n"), Index: limits()})
}

// state returns everything in an instance as text.
func state(t *testing.T, in *instance) string {
	t.Helper()
	var b strings.Builder
	for _, alias := range in.catalog.Aliases().All() {
		fmt.Fprintf(&b, "alias %s of %s\n", alias, in.catalog.Aliases().Index(alias))
	}
	must(t, in.queue.Each(func(x *task.Task) error {
		b.Write(x.AppendJSON(nil))
		if c, ok := x.Content.(task.AddDocuments); ok && c.File != "" && !x.Status.Finished() {
			r, err := in.queue.Documents(x.UID)
			must(t, err)
			_, err = io.Copy(&b, r)
			must(t, err)
			must(t, r.Close())
		}
		b.WriteByte('\n')
		return nil
	}, func(x *task.Batch) error {
		b.Write(x.AppendJSON(nil))
		b.WriteByte('\n')
		return nil
	}))
	for _, k := range in.keys.List() {
		b.WriteString(k.UID.String() + in.keys.Value(k) + "\n")
	}
	for _, h := range in.hooks.List() {
		b.WriteString(h.UUID.String() + h.URL + "\n")
	}
	for _, uid := range in.catalog.UIDs() {
		v := held(in.catalog.Get(uid).View())
		b.WriteString(uid + v.PrimaryKey + v.CreatedAt.String() + v.UpdatedAt.String() + string(v.Settings.Encode()) + "\n")
		must(t, v.EachDocument(nil, func(_ int, _ segment.Row, doc []byte) error {
			b.Write(append(doc, '\n'))
			return nil
		}))
		v.Release()
	}
	return b.String()
}

func TestSnapshot(t *testing.T) {
	for _, compact := range []bool{true, false} {
		in := filled(t)
		in.o.CompactInSnapshot = compact
		before := state(t, in)
		must(t, snapshotNow(t, in))
		info, err := os.Stat(in.o.SnapshotFile)
		must(t, err)
		if vfs.ReplacesOpen && info.Mode().Perm() != snapshotMode {
			t.Errorf("the snapshot has mode %s", info.Mode())
		}
		must(t, os.Chmod(in.o.SnapshotFile, snapshotMode)) // as earlier versions did on each system
		must(t, snapshotNow(t, in))                        // replaces the first
		if _, err := os.Stat(in.o.Place.Work); err == nil {
			t.Error("the work directory is left")
		}
		names, _ := tarball(t, in.o.SnapshotFile)
		if names[0] != VersionFile || !slices.Contains(names, "kept/dynamic-search-rules/000000000.json") || !slices.Contains(names, "chats.json") {
			t.Errorf("the snapshot holds %q", names)
		}

		dir := filepath.Join(t.TempDir(), "data")
		must(t, importSnapshot(t, dir, in.o.SnapshotFile))
		back := open(t, dir, func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 })
		// The task of the first snapshot is still enqueued here: it never ran in this instance.
		want := before + ""
		got := state(t, back)
		lines := strings.SplitAfter(got, "\n")
		extra := slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, `"uid":29,`) })
		if extra < 0 {
			t.Fatal("the task of the first snapshot is not in the second")
		}
		if got = strings.Join(slices.Delete(lines, extra, extra+1), ""); got != want {
			t.Errorf("the snapshot holds\n%s\nwant\n%s", got, want)
		}
	}
}

// TestSnapshotDuringCompaction replaces the segments of an index while its snapshot is written.
func TestSnapshotDuringCompaction(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	in := open(t, dir, nil)
	for i := range 6 {
		docs := strings.Repeat(`{"id":`+string(rune('0'+i))+`,"text":"some words to index"}`+"\n", 1)
		in.run("x", add(docs), docs)
	}
	frozen, err := in.catalog.Freeze()
	must(t, err)
	files, err := frozen.Files(0)
	must(t, err)
	in.run("x", task.CompactIndex{}, "")
	for _, f := range files {
		if f.Path == "" {
			continue
		}
		if _, err := os.Stat(f.Path); err != nil {
			t.Errorf("a segment of the frozen view was removed: %v", err)
		}
	}
	frozen.Release()
	left := 0
	for _, f := range files {
		if f.Path != "" {
			if _, err := os.Stat(f.Path); err == nil {
				left++
			}
		}
	}
	if len(files) > 2 && left == len(files)-1 {
		t.Error("the replaced segments are left after the release")
	}
}

func TestSnapshotImportRefuses(t *testing.T) {
	in := open(t, filepath.Join(t.TempDir(), "data"), nil)
	docs := `{"id":1}` + "\n"
	in.run("x", add(docs), docs)
	in.run("", task.CreateSnapshot{}, "")
	names, contents := tarball(t, in.o.SnapshotFile)
	entries := func(change func(e *entry)) (list []entry) {
		for _, n := range names {
			e := entry{name: n, content: contents[n]}
			change(&e)
			if e.name != "" {
				list = append(list, e)
			}
		}
		return list
	}
	for name, tt := range map[string]struct {
		entries []entry
		want    string
	}{
		"whole":            {entries(func(*entry) {}), ""},
		"other version":    {entries(func(e *entry) { e.content = strings.Replace(e.content, "svc test\n", "svc 9\n", 1) }), `"svc 9\n"`},
		"a dump":           {minimal(), "VERSION"},
		"no queue":         {entries(func(e *entry) { e.name = strings.TrimSuffix(e.name, "tasks/queue.db") }), "task queue"},
		"damaged queue":    {entries(func(e *entry) { cut(e, "queue.db") }), "queue.db"},
		"damaged keys":     {entries(func(e *entry) { cut(e, "auth.db") }), "auth.db"},
		"damaged catalog":  {entries(func(e *entry) { flip(e, "indexes/CATALOG") }), "CATALOG"},
		"damaged manifest": {entries(func(e *entry) { flip(e, "MANIFEST") }), "MANIFEST"},
		"missing segment":  {entries(func(e *entry) { drop(e, ".seg") }), ".seg"},
		"strange":          {append(entries(func(*entry) {}), entry{name: "LOCK"}), "LOCK"},
		"strange below":    {append(entries(func(*entry) {}), entry{name: "tasks/x"}), "tasks/x"},
		"leads out":        {append(entries(func(*entry) {}), entry{name: "indexes/../../x"}), "archives of svc never have"},
	} {
		t.Run(name, func(t *testing.T) {
			err := importSnapshot(t, filepath.Join(t.TempDir(), "data"), writeTarball(t, tt.entries...))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

func flip(e *entry, name string) {
	if strings.HasSuffix(e.name, name) {
		b := []byte(e.content)
		b[len(b)-1] ^= 1
		e.content = string(b)
	}
}

func cut(e *entry, name string) {
	if strings.HasSuffix(e.name, name) {
		e.content = e.content[:len(e.content)/2]
	}
}

func drop(e *entry, suffix string) {
	if strings.HasSuffix(e.name, suffix) {
		e.name = ""
	}
}

// TestCanceled cancels each kind of task in the middle: no file may stay.
func TestCanceled(t *testing.T) {
	in := filled(t)
	for name, f := range map[string]task.Executor{"dump": New(in.o).dump, "snapshot": New(in.o).snapshot} {
		ctx, cancel := context.WithCancelCause(t.Context())
		steps := 0
		own := in.enqueue("", in.createDump(), "")
		_, err := f(ctx, in.queue, []*task.Task{own}, func(level int, s index.Step) {
			if steps++; steps == 3 {
				cancel(errStopped)
			}
		})
		if err == nil || !strings.Contains(err.Error(), errStopped.Error()) {
			t.Errorf("%s: error %v", name, err)
		}
		left, err := os.ReadDir(in.o.DumpDir)
		must(t, err)
		if len(left) > 0 {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

var errStopped = context.DeadlineExceeded

// TestInterrupted creates the leftovers of a killed program: the next task must remove them.
func TestInterrupted(t *testing.T) {
	in := filled(t)
	must(t, os.MkdirAll(in.o.Place.Work, 0o777))
	must(t, os.MkdirAll(in.o.DumpDir, 0o777))
	part := filepath.Join(in.o.DumpDir, "20200101-000000000.dump.part")
	must(t, os.WriteFile(part, bytes.Repeat([]byte("x"), 100), 0o666))
	must(t, os.WriteFile(filepath.Join(in.o.Place.Work, partName), []byte(part), 0o666))
	must(t, os.WriteFile(filepath.Join(in.o.Place.Work, "spool"), []byte("x"), 0o666))
	dumpNow(t, in)
	if _, err := os.Stat(part); err == nil {
		t.Error("the unfinished file of the interrupted dump is still there")
	}
}

// damageQuietly flips a bit of a segment that opening does not check.
func damageQuietly(t *testing.T, name string) {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	for i := 64; i < len(b); i++ {
		b[i] ^= 4
		must(t, os.WriteFile(name, b, 0o600))
		r, err := segment.Open(vfs.OS, name)
		if err == nil {
			err = r.CheckSums(t.Context())
			must(t, r.Close())
			if err != nil {
				return
			}
		}
		b[i] ^= 4
	}
	t.Fatal("opening detects a change of any byte")
}

// TestADamagedSegmentIsNotCopied checks that no dump, snapshot or export is made of a damaged segment: the copy would look sound, and
// could replace a good one.
func TestADamagedSegmentIsNotCopied(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	in := open(t, dir, nil)
	docs := `{"id":1,"t":"some words"}` + "\n" + `{"id":2,"t":"other words"}` + "\n"
	in.run("x", add(docs), docs)
	in.run("", task.CreateSnapshot{}, "")
	before, err := os.ReadFile(in.o.SnapshotFile)
	must(t, err)
	in.close()
	found, err := filepath.Glob(filepath.Join(dir, "indexes", "*", "*.seg"))
	must(t, err)
	if len(found) != 1 {
		t.Fatalf("%d segments", len(found))
	}
	damageQuietly(t, found[0])

	in = open(t, dir, nil)
	rewriting := update(t, `{"stopWords":["some"]}`)
	to := newTarget(t)
	for name, done := range map[string]*task.Task{
		"snapshot": in.wait(in.enqueue("", task.CreateSnapshot{}, "").UID),
		"dump":     in.wait(in.enqueue("", in.createDump(), "").UID),
		"export":   in.wait(in.enqueue("", export(to.URL, nil), "").UID),
	} {
		if done.Status != task.Failed || !strings.Contains(done.Error.Message, filepath.Base(found[0])) {
			t.Errorf("%s: %s: %v", name, done.Status, done.Error)
		}
	}
	// A write to the index waits until it is repaired or deleted.
	in.enqueue("x", rewriting, "")
	for deadline := time.Now().Add(2 * time.Minute); len(in.queue.Parked()) == 0 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
	}
	if parked := in.queue.Parked(); len(parked) != 1 || !strings.Contains(parked[0].Reason.Message, filepath.Base(found[0])) {
		t.Errorf("settings: %+v", parked)
	}
	in.wait(in.enqueue("x", task.DeleteIndex{}, "").UID)
	after, err := os.ReadFile(in.o.SnapshotFile)
	must(t, err)
	if !bytes.Equal(before, after) {
		t.Error("the snapshot was replaced")
	}
	if len(to.documents) > 0 {
		t.Errorf("exported: %q", to.documents)
	}
	if left, err := filepath.Glob(filepath.Join(in.o.DumpDir, "*")); err != nil || len(left) != 1 {
		t.Errorf("%q %v", left, err)
	}
}

// TestErrorsAtEveryOperationOfACopy fails each file operation of a snapshot and of a dump, once or permanently. The previous copy must
// stay complete unless the new one has replaced it, and no unfinished file may stay.
func TestErrorsAtEveryOperationOfACopy(t *testing.T) {
	in := filled(t)
	must(t, snapshotNow(t, in))
	own := in.enqueue("", in.createDump(), "")
	fails, succeeds := 0, 0
	for name, run := range map[string]func(*Maker) error{
		"snapshot": func(m *Maker) error {
			_, err := m.snapshot(t.Context(), in.queue, []*task.Task{own}, func(int, index.Step) {})
			return err
		},
		"dump": func(m *Maker) error {
			_, err := m.dump(t.Context(), in.queue, []*task.Task{own}, func(int, index.Step) {})
			return err
		},
	} {
		for _, count := range []int64{1, 1 << 40} {
			for n, failed := int64(0), true; failed; n++ {
				full := vfs.FailFrom(n, count, func(o vfs.Op) bool { return o.Kind.Changes() }, syscall.ENOSPC)
				var hit atomic.Bool
				o := in.o
				o.FS = vfs.Hook(vfs.OS, func(op vfs.Op) error {
					err := full(op)
					if err != nil {
						hit.Store(true)
					}
					return err
				})
				err := run(New(o))
				failed = hit.Load()
				if err == nil {
					succeeds++
				} else {
					fails++
					if !errors.Is(err, syscall.ENOSPC) {
						t.Fatalf("%s, operation %d: %v", name, n, err)
					}
				}
				// The next copy removes what this one could not.
				must(t, New(in.o).workspace())
				must(t, os.RemoveAll(in.o.Place.Work))
				left, err := os.ReadDir(in.o.DumpDir)
				must(t, err)
				for _, f := range left {
					file := filepath.Join(in.o.DumpDir, f.Name())
					if strings.HasSuffix(file, ".part") {
						t.Errorf("%s, operation %d: %s is left", name, n, file)
						continue
					}
					tarball(t, file) // reads to the end
					if strings.HasSuffix(file, ".dump") {
						must(t, os.Remove(file))
					}
				}
			}
		}
	}
	if fails < 20 || succeeds < 2 {
		t.Errorf("%d fail, %d succeed", fails, succeeds)
	}
}
