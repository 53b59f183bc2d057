package mapped

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"svc/internal/vfs"
)

// fitIn sets the memory size for a test.
func fitIn(t *testing.T, bytes int64) {
	before := memory.Load()
	FitIn(bytes)
	t.Cleanup(func() { FitIn(before) })
}

// TestCrowded checks that files become crowded above a share of the memory, and stay so until they are below a smaller share.
func TestCrowded(t *testing.T) {
	if MappedBytes() != 0 {
		t.Fatalf("%d bytes are mapped before the test", MappedBytes())
	}
	const size = 128 << 10
	dir := t.TempDir()
	var files []*File
	add := func(n int) {
		for ; n > 0; n-- {
			name := filepath.Join(dir, fmt.Sprint(len(files)))
			if err := os.WriteFile(name, make([]byte, size), 0o666); err != nil {
				t.Fatal(err)
			}
			f, err := Open(vfs.OS, name)
			if err != nil {
				t.Fatal(err)
			}
			f.Scatter([]Part{{0, size / 2}})
			files = append(files, f)
		}
		for ; n < 0; n++ {
			last := len(files) - 1
			if err := files[last].Close(); err != nil {
				t.Fatal(err)
			}
			files = files[:last]
		}
	}
	fitIn(t, 12*size)
	for i, step := range []struct {
		add    int
		memory int64 // memory; 0: as before
		want   bool
	}{
		{9, 0, false}, {1, 0, true}, {-1, 0, true}, {-1, 0, false}, {1, 0, false}, {1, 0, true},
		{0, 100, false}, {0, 5, true}, {-7, 0, false}, {1, 0, true}, {-4, 0, false},
	} {
		if step.memory > 0 {
			FitIn(step.memory * size)
		}
		add(step.add)
		if Crowded() != step.want {
			t.Errorf("step %d, %d files: crowded %t, want %t", i, len(files), Crowded(), step.want)
		}
	}
}

// TestAdviceChangesNoByte reads a file while all kinds of advice are given, and while files become crowded and uncrowded.
func TestAdviceChangesNoByte(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	want := make([]byte, 300_000)
	for i := range want {
		want[i] = byte(rng.Uint32())
	}
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, want, 0o666); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	fitIn(t, 0)
	for range 300 {
		at, n := rng.Int64N(int64(len(want))), rng.Int64N(int64(len(want)))
		switch rng.IntN(5) {
		case 0:
			FitIn(rng.Int64N(1 << 20))
		case 1:
			f.Scatter([]Part{{at, n}})
		case 2:
			for _, p := range f.Missing(at, n) {
				if p.At < 0 || p.Length <= 0 || p.At >= int64(len(want)) {
					t.Fatalf("missing in [%d, +%d): %+v", at, n, p)
				}
				f.Advise(p.At, p.Length, WillNeed)
			}
		default:
			f.Advise(at, n, Advice(rng.IntN(int(PageOut)+1)))
		}
		if end := min(at+n, int64(len(want))); !bytes.Equal(f.Bytes()[at:end], want[at:end]) {
			t.Fatalf("the bytes from %d to %d differ", at, end)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	f.Scatter([]Part{{0, 1}}) // too late, but harmless
}

// TestManyFilesAreNotCrowded checks that files do not become crowded when mappings might run short, because advice splits mappings.
func TestManyFilesAreNotCrowded(t *testing.T) {
	if MappedBytes() != 0 {
		t.Fatalf("%d bytes are mapped before the test", MappedBytes())
	}
	defer func(old func() int64) { mostMappings = old }(mostMappings)
	mostMappings = func() int64 { return 8 * manyFiles }
	fitIn(t, 1)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 2*smallFile), 0o666); err != nil {
		t.Fatal(err)
	}
	var files []*File
	for i, step := range []struct {
		files int
		want  bool
	}{{1, true}, {8, true}, {9, false}, {5, false}, {4, true}, {0, false}, {5, true}} {
		for len(files) > step.files {
			if err := files[len(files)-1].Close(); err != nil {
				t.Fatal(err)
			}
			files = files[:len(files)-1]
		}
		for len(files) < step.files {
			f, err := Open(vfs.OS, name)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { f.Close() })
			files = append(files, f)
		}
		if Crowded() != step.want {
			t.Errorf("step %d, %d files: crowded %t, want %t", i, step.files, Crowded(), step.want)
		}
	}
}

// TestColdFiles makes more files cold than the limit, closes one of them, and then reduces the memory. Then no file may be cold. Pages are
// read one by one only while a file is cold or files are crowded.
func TestColdFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, make([]byte, 2*smallFile), 0o666); err != nil {
		t.Fatal(err)
	}
	var files []*File
	for range mostCold + 1 {
		f, err := Open(vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		f.Scatter([]Part{{0, smallFile}})
		files = append(files, f)
	}
	for i, f := range files {
		if got, want := f.SetCold(true), i < mostCold; got != want || !PageByPage() || Crowded() {
			t.Fatalf("file %d: cold %t, page by page %t, crowded %t", i, got, PageByPage(), Crowded())
		}
	}
	if err := files[0].Close(); err != nil {
		t.Fatal(err)
	}
	if files[0].SetCold(true) {
		t.Error("a closed file is cold")
	}
	if !files[mostCold].SetCold(true) {
		t.Error("the closed file still counts")
	}
	fitIn(t, 0)
	for i, f := range files {
		if f.SetCold(false) || f.SetCold(true) {
			t.Errorf("file %d is cold while files are crowded", i)
		}
	}
	FitIn(1 << 40)
	if PageByPage() {
		t.Error("pages are read one by one although no file is cold")
	}
}
