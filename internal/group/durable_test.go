package group

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"path"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/zeebo/xxh3"

	"svc/internal/vfs"
)

// lost returns the names of files that a power failure now would remove or change.
func lost(t *testing.T, mem *vfs.MemFS, files map[string]string) (names []string) {
	t.Helper()
	left := mem.CrashClone(nil)
	for name, want := range files {
		if got, err := vfs.ReadFile(left, name); err != nil || string(got) != want {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// unlinkableFS has no hard links, like some file systems.
type unlinkableFS struct{ vfs.FS }

func (unlinkableFS) Link(string, string) error { return errors.ErrUnsupported }

// TestPositionsAreDurable checks that add makes a position durable before it returns.
func TestPositionsAreDurable(t *testing.T) {
	mem := vfs.NewMem()
	if err := vfs.MakeDir(mem, "data"); err != nil {
		t.Fatal(err)
	}
	p := positions{fs: mem, name: "data/position"}
	for i := range uint64(5) {
		want := Position{1, 2, i}
		if err := p.add(want); err != nil {
			t.Fatal(err)
		}
		left := positions{fs: mem.CrashClone(nil), name: p.name}
		if at, ok, err := left.read(); at != want || !ok || err != nil {
			t.Errorf("a power failure leaves %v, %v, %v, want %v", at, ok, err, want)
		}
	}
	// settle makes a position durable that was written without a sync.
	want := Position{1, 2, 9}
	if err := errors.Join(p.write(want), p.settle(), p.close()); err != nil {
		t.Fatal(err)
	}
	left := positions{fs: mem.CrashClone(nil), name: p.name}
	if at, ok, err := left.read(); at != want || !ok || err != nil {
		t.Errorf("a power failure leaves %v, %v, %v, want %v", at, ok, err, want)
	}
}

// imageSource serves an image and no entries.
type imageSource struct {
	image Image
	files map[string]string
}

func (s *imageSource) state(context.Context, Position) (*Image, error) { return &s.image, nil }
func (s *imageSource) log(context.Context, Position, time.Duration) (*Batch, error) {
	return nil, ErrCut
}
func (s *imageSource) sum(_ context.Context, name string) (int64, xxh3.Uint128, error) {
	f := fileOf(name, []byte(s.files[name]))
	return f.Size, f.Sum, nil
}
func (s *imageSource) open(_ context.Context, f File) io.ReadCloser {
	return io.NopCloser(newBytes([]byte(s.files[f.Name])))
}
func (s *imageSource) resume(_ context.Context, f *ImageFile, from int64) io.ReadCloser {
	return io.NopCloser(newBytes([]byte(s.files[f.Name][from:])))
}
func (s *imageSource) next() bool      { return false }
func (s *imageSource) address() string { return "test" }
func (s *imageSource) close()          {}

// TestCopiedDirectoriesAreDurable checks that a copy of another member's data is durable before it replaces the old data, and that the
// replacement is durable when it is complete.
func TestCopiedDirectoriesAreDurable(t *testing.T) {
	payload := payloadDir + "/1.ndjson" // the log of this member holds its content, and is about to be cut
	files := map[string]string{
		"indexes/000000/000000.seg": "kept", "indexes/000000/000001.seg": "fetched", "indexes/000001/000000.seg": "in a directory of its own", payload: "a payload",
	}
	contents := map[string]string{"VERSION": "svc 4", "indexes/CATALOG": "a catalog", "indexes/000000/MANIFEST": "a manifest"}
	for _, linkable := range []bool{true, false} {
		mem := vfs.NewMem()
		fsys := vfs.FS(mem)
		if !linkable {
			fsys = unlinkableFS{mem}
		}
		must := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		for _, dir := range []string{"data/" + workDir, "data/indexes/000000", "data/indexes/000007", "data/" + payloadDir} {
			must(vfs.MakeDir(mem, dir))
		}
		for name, content := range map[string]string{"data/indexes/000000/000000.seg": "kept", "data/indexes/000007/000000.seg": "of nobody"} {
			must(vfs.WriteFile(mem, name, []byte(content)))
			must(mem.SyncDir(path.Dir(name)))
		}
		f, err := mem.Create("data/" + payload)
		must(err)
		_, err = f.Write([]byte(files[payload]))
		must(errors.Join(err, f.Close(), mem.SyncDir("data/"+payloadDir)))
		source := &imageSource{image: Image{Run: Position{3, 4, 5}, Whole: 5}, files: files}
		whole := map[string]string{}
		for name, content := range files {
			source.image.Files = append(source.image.Files, ImageFile{fileOf(name, []byte(content)), name, true})
			whole[name] = content
		}
		for name, content := range contents {
			source.image.Contents = append(source.image.Contents, Content{name, []byte(content)})
			whole[name] = content
		}
		id := Identity{Name: "shop", Group: "g", Member: newID(), Role: RoleVoter, Term: 1}
		must(id.write(mem, "data"))
		r := &Reader{o: ReaderOptions{FS: fsys, Dir: "data", Logger: slog.New(slog.DiscardHandler)}, source: source, changed: make(chan struct{}), id: id}
		r.position = positions{fs: mem, name: r.path(positionFile)}
		must(r.stage(t.Context(), Position{}))
		at := func(dir string) map[string]string {
			all := map[string]string{}
			for name, content := range whole {
				all[path.Join(dir, name)] = content
			}
			return all
		}
		if names := lost(t, mem, at("data/"+joinDir)); len(names) > 0 {
			t.Errorf("linkable %v: a power failure loses %q of the copy", linkable, names)
		}
		left := &Reader{o: ReaderOptions{FS: mem.CrashClone(nil), Dir: "data"}}
		if x, err := left.staged(); x == nil || err != nil {
			t.Errorf("a power failure loses the note of the copy: %v", err)
		}
		must(r.Replace())
		must(r.position.close())
		if names := lost(t, mem, at("data")); len(names) > 0 {
			t.Errorf("linkable %v: a power failure loses %q", linkable, names)
		}
		crashed := mem.CrashClone(nil)
		for _, name := range []string{replaceFile, joinDir, "indexes/000007/000000.seg"} {
			if _, err := crashed.Stat(path.Join("data", name)); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after a power failure %s is there again: %v", name, err)
			}
		}
		kept := positions{fs: crashed, name: r.path(positionFile)}
		if p, ok, err := kept.read(); p != (Position{3, 4, 5}) || !ok || err != nil {
			t.Errorf("after a power failure the position is %v, %v, %v", p, ok, err)
		}
	}
}

// TestRejoinsAreDurable checks that a power failure after Rejoin does not bring back the old member id, its log or its position.
func TestRejoinsAreDurable(t *testing.T) {
	mem := vfs.NewMem()
	id := Identity{Name: "shop", Group: "g", Member: newID(), Role: RoleVoter, Term: 1}
	if err := errors.Join(vfs.MakeDir(mem, "data/"+ballotDir), id.write(mem, "data"), vfs.WriteFile(mem, "data/"+positionFile, []byte("x")), mem.SyncDir("data/"+workDir)); err != nil {
		t.Fatal(err)
	}
	again, err := Rejoin(mem, "data")
	if err != nil {
		t.Fatal(err)
	}
	left := mem.CrashClone(nil)
	if got, err := ReadIdentity(left, "data"); err != nil || got.Member != again.Member {
		t.Errorf("a power failure leaves %+v, %v", got, err)
	}
	for _, name := range []string{ballotDir, positionFile} {
		if _, err := left.Stat(path.Join("data", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after a power failure %s is there again: %v", name, err)
		}
	}
}

// TestCopiesAfterFailuresAreDurable fails each file operation of a copy, alone or together with the next one. A failed sync loses the data
// that it would have made durable. The retries must make everything durable.
func TestCopiesAfterFailuresAreDurable(t *testing.T) {
	files := map[string]string{"indexes/000000/000000.seg": "fetched", "indexes/000001/000000.seg": "in another directory"}
	failures, broken := 0, errors.New("injected failure")
	for n := int64(0); ; n++ {
		count := 1 + n%2
		mem := vfs.NewMem()
		source := &imageSource{image: Image{Run: Position{3, 4, 5}, Whole: 5}, files: files}
		whole := map[string]string{}
		for name, content := range files {
			source.image.Files = append(source.image.Files, ImageFile{fileOf(name, []byte(content)), name, true})
			whole[path.Join("data", joinDir, name)] = content
		}
		id := Identity{Name: "shop", Group: "g", Member: newID(), Role: RoleVoter, Term: 1}
		if err := errors.Join(vfs.MakeDir(mem, "data/"+workDir), id.write(mem, "data")); err != nil {
			t.Fatal(err)
		}
		var failed atomic.Bool // files are copied side by side
		fail := vfs.FailFrom(n/2, count, func(o vfs.Op) bool { return o.Kind.Changes() }, broken)
		fsys := vfs.Hook(mem, mem.LoseOnError(func(o vfs.Op) error {
			err := fail(o)
			if err != nil {
				failed.Store(true)
			}
			return err
		}))
		r := &Reader{o: ReaderOptions{FS: fsys, Dir: "data", Logger: slog.New(slog.DiscardHandler)}, source: source, changed: make(chan struct{}), id: id}
		r.position = positions{fs: mem, name: r.path(positionFile)}
		err := r.stage(t.Context(), Position{})
		for range 3 {
			if err != nil {
				failures++
				err = r.stage(t.Context(), Position{})
			}
		}
		if err != nil {
			t.Fatalf("operation %d and %d more failed: %v", n/2, count-1, err)
		}
		if names := lost(t, mem, whole); len(names) > 0 {
			t.Errorf("operation %d and %d more failed: a power failure loses %q of the copy", n/2, count-1, names)
		}
		if !failed.Load() {
			break
		}
	}
	if failures < 10 {
		t.Errorf("only %d failures", failures)
	}
}
