package standby

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// TestChangesThatAreRefused applies changes of unknown kinds, or of files outside the directory.
func TestChangesThatAreRefused(t *testing.T) {
	m := newMember(t)
	none := func(string) (io.ReadCloser, error) { return nil, fs.ErrNotExist }
	for _, tt := range []struct {
		change commit.Change
		want   string
	}{
		{commit.Change{Kind: 7, Name: "x"}, "a later version of svc wrote it"},
		{commit.Change{Name: "x"}, "a later version of svc wrote it"},
		{commit.Change{Kind: commit.Sealed, Name: "../x"}, "outside the data directory"},
		{commit.Change{Kind: commit.Sealed, Name: "/x"}, "outside the data directory"},
		{commit.Change{Kind: commit.Sealed, Name: "."}, "outside the data directory"},
		{commit.Change{Kind: commit.Sealed, Name: ""}, "outside the data directory"},
		{commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x00"), Files: []string{"a/../../x"}}, "outside the data directory"},
		{commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x00"), Files: []string{"tasks/payloads/x"}}, "cannot copy tasks/payloads/x"},
		{commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x01\x01a\x09")}, "damaged"},
		{commit.Change{Kind: commit.Manifest, Name: "indexes/000000/MANIFEST", Data: []byte("x")}, "damaged"},
		{commit.Change{Kind: commit.Catalog, Name: "indexes/CATALOG", Data: []byte("x")}, "damaged"},
	} {
		err := m.Apply(tt.change, none)
		if err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%v %q: %v, want %q", tt.change.Kind, tt.change.Name, err, tt.want)
		}
	}
	if files := tree(t, m.disk, m.dir); len(files) > 0 {
		t.Errorf("refused changes leave %v", files)
	}
}

// TestFilesAreCopiedConcurrently checks that files are copied concurrently, and that no more are copied after an error.
func TestFilesAreCopiedConcurrently(t *testing.T) {
	m := newMember(t)
	if err := vfs.MakeDir(m.disk, path.Join(m.dir, "a")); err != nil {
		t.Fatal(err)
	}
	var names []string
	for i := range 3 * maxCopies {
		names = append(names, fmt.Sprintf("a/%d", i))
	}
	var asked sync.WaitGroup
	asked.Add(maxCopies)
	first := atomic.Int64{}
	err := m.copyAll(names, func(name string) (io.ReadCloser, error) {
		if first.Add(1) <= maxCopies { // these copies run together
			asked.Done()
			asked.Wait()
		}
		return io.NopCloser(strings.NewReader(name)), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if b, err := vfs.ReadFile(m.disk, path.Join(m.dir, name)); err != nil || string(b) != name {
			t.Errorf("%s has %q, %v", name, b, err)
		}
	}
	failed, calls := errors.New("failed"), atomic.Int64{}
	err = m.copyAll(names, func(string) (io.ReadCloser, error) {
		calls.Add(1)
		return nil, failed
	})
	if n := calls.Load(); !errors.Is(err, failed) || n > maxCopies {
		t.Errorf("%v after %d files", err, n)
	}
	if err := m.copyAll(nil, nil); err != nil {
		t.Error(err)
	}
}

// TestPayloadsAfterAFailedSync fails the sync of the name of a payload. The retry must apply the change durably, even if another process
// does it, or if the payload is a hard link of the source.
func TestPayloadsAfterAFailedSync(t *testing.T) {
	const name = "tasks/payloads/x"
	for _, links := range []bool{false, true} {
		for _, reopens := range []bool{false, true} {
			m := newMember(t)
			fails := false
			o := Options{Dir: m.dir, noSync: true, Stores: map[commit.Kind]Store{commit.Tasks: storeFunc(func() error { return nil })},
				FS: vfs.Hook(m.disk, m.disk.LoseOnError(func(o vfs.Op) error {
					if fails && o.Kind == vfs.OpSyncDir && path.Base(o.Name) == "payloads" {
						return errStopped
					}
					return nil
				}))}
			m.Directory = Open(o)
			from := sourceOf(t, m, "a payload", links)
			c := commit.Change{Kind: commit.Tasks, Name: "tasks/queue.db", Data: []byte("\x02\x00"), Files: []string{name}}
			for _, fails = range []bool{true, false} {
				if err := m.Apply(c, from); (err != nil) != fails {
					t.Fatal(err)
				}
				if reopens {
					m.Directory = Open(o)
				}
			}
			if b, err := vfs.ReadFile(m.disk.CrashClone(nil), path.Join(m.dir, name)); err != nil || string(b) != "a payload" {
				t.Errorf("linked: %v, another process: %v: a power failure leaves %q, %v", links, reopens, b, err)
			}
		}
	}
}

// TestCopiesAgain checks that copying a file again makes its name durable again, also if both names are hard links of one file.
func TestCopiesAgain(t *testing.T) {
	for _, links := range []bool{false, true} {
		m := newMember(t)
		from, name := sourceOf(t, m, "content", links), path.Join(m.dir, "x")
		if err := m.copy("x", from); err != nil {
			t.Fatal(err)
		}
		m.disk.Lose(m.dir)
		if err := errors.Join(m.copy("x", from), m.disk.SyncDir(m.dir)); err != nil {
			t.Fatal(err)
		}
		if b, err := vfs.ReadFile(m.disk.CrashClone(nil), name); err != nil || string(b) != "content" {
			t.Errorf("linked: %v: a power failure leaves %q, %v", links, b, err)
		}
		if _, err := m.disk.Stat(name + vfs.TempSuffix); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("linked: %v: a temporary file is left: %v", links, err)
		}
	}
}

// sourceOf returns a source with one file, to link or to copy.
func sourceOf(t *testing.T, m *member, content string, links bool) Source {
	t.Helper()
	name := path.Join(path.Dir(m.dir), "source")
	if err := vfs.WriteFile(m.disk, name, []byte(content)); err != nil {
		t.Fatal(err)
	}
	return func(string) (io.ReadCloser, error) {
		if links {
			return linkedFile{io.NopCloser(strings.NewReader("")), m.disk, name}, nil
		}
		return io.NopCloser(strings.NewReader(content)), nil
	}
}

// linkedFile implements Linked.
type linkedFile struct {
	io.ReadCloser
	disk *vfs.MemFS
	name string
}

func (f linkedFile) Link(to string) error { return f.disk.Link(f.name, to) }
