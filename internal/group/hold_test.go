package group

import (
	"math/rand/v2"
	"path"
	"testing"
	"time"

	"svc/internal/vfs"
)

// TestHeldFilesStay removes files while a reader is behind: they stay until the reader has gone on.
func TestHeldFilesStay(t *testing.T) {
	mem := vfs.NewMem()
	last, behind := uint64(7), true
	h := newHoldFS(mem, "data", func() (uint64, bool) { return last, behind }, func(string) {})
	make := func(name string) {
		t.Helper()
		if err := h.MkdirAll(path.Dir(name)); err != nil {
			t.Fatal(err)
		}
		if err := vfs.WriteFile(h, name, []byte(name)); err != nil {
			t.Fatal(err)
		}
	}
	there := func(name string, want bool) {
		t.Helper()
		if _, err := mem.Stat(name); (err == nil) != want {
			t.Errorf("%s exists: %v, want %v", name, err == nil, want)
		}
	}
	remove := func(name string, all bool) {
		t.Helper()
		f := h.Remove
		if all {
			f = h.RemoveAll
		}
		if err := f(name); err != nil {
			t.Fatal(err)
		}
	}
	const segment, payload, sealed, directory, temporary = "data/indexes/000001/a.seg", "data/tasks/payloads/x", "data/a.json", "data/indexes/000002", "data/indexes/000001/a.tmp"
	for _, name := range []string{segment, payload, sealed, directory + "/MANIFEST", temporary} {
		make(name)
	}
	remove(segment, false)
	remove(sealed, false)
	remove(temporary, false)
	there(segment, true)
	there(sealed, false)
	there(temporary, false)
	last = 9
	remove(payload, false)
	remove(directory, true)
	if err := h.Remove("data/indexes/000001/none.seg"); err == nil {
		t.Error("a missing file can be removed")
	}
	if err := h.release(6); err != nil {
		t.Fatal(err)
	}
	there(segment, true)
	if err := h.release(8); err != nil {
		t.Fatal(err)
	}
	there(segment, false)
	there(payload, true)
	make(directory + "/MANIFEST") // the number is used again
	if h.count() != 1 {
		t.Errorf("%d files are held", h.count())
	}
	if err := h.release(100); err != nil {
		t.Fatal(err)
	}
	there(payload, false)
	there(directory+"/MANIFEST", true)
	behind = false
	remove(directory, true)
	there(directory, false)
}

// TestHeldFilesAreNeverTakenForNewOnes creates and removes files at random, with few names. In the end the directory must be the same as
// without holding files.
func TestHeldFilesAreNeverTakenForNewOnes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	mem, naive := vfs.NewMem(), vfs.NewMem()
	last := uint64(0)
	h := newHoldFS(mem, "data", func() (uint64, bool) { return last, r.IntN(3) > 0 }, func(string) {})
	dirs := []string{"data/indexes/000000", "data/indexes/000001"}
	name := func() string { return path.Join(dirs[r.IntN(2)], []string{"a.seg", "b.seg"}[r.IntN(2)]) }
	for i := range 2000 {
		last++
		a, b, dir := name(), name(), dirs[r.IntN(2)]
		kind := r.IntN(7)
		for _, fsys := range []vfs.FS{h, naive} {
			switch kind {
			case 0, 1:
				_ = fsys.MkdirAll(path.Dir(a))
				_ = vfs.WriteFile(fsys, a, []byte{byte(i), byte(i >> 8)})
			case 2:
				if _, err := naive.Stat(a); err == nil || fsys == naive {
					_ = fsys.Remove(a)
				}
			case 3:
				_ = fsys.RemoveAll(dir)
			case 4:
				temp := a + vfs.TempSuffix
				_ = fsys.MkdirAll(path.Dir(a))
				_ = vfs.WriteFile(fsys, temp, []byte{byte(i)})
				_ = fsys.Rename(temp, b)
				_ = fsys.Remove(temp)
			case 5:
				_ = fsys.MkdirAll(path.Dir(b))
			}
		}
		if kind == 6 {
			if err := h.release(last - uint64(r.IntN(5))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := h.release(last); err != nil {
		t.Fatal(err)
	}
	for _, dir := range dirs {
		for _, file := range []string{"a.seg", "b.seg"} {
			got, err := vfs.ReadFile(mem, path.Join(dir, file))
			want, e := vfs.ReadFile(naive, path.Join(dir, file))
			if string(got) != string(want) || (err == nil) != (e == nil) {
				t.Errorf("%s/%s is %x (%v), want %x (%v)", dir, file, got, err, want, e)
			}
		}
	}
}
