package mapped

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func TestMappedFile(t *testing.T) {
	mem := vfs.NewMem()
	for name, c := range map[string]struct {
		fs  vfs.FS
		dir string
	}{"os": {vfs.OS, t.TempDir()}, "mem": {mem, "/"}} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(c.dir, "f")
			if err := vfs.WriteFile(c.fs, at, []byte("0123456789")); err != nil {
				t.Fatal(err)
			}
			before := Count()
			f, err := Open(c.fs, at)
			if err != nil {
				t.Fatal(err)
			}
			if Count() != before+1 {
				t.Errorf("%d open, want %d", Count(), before+1)
			}
			if err := c.fs.Remove(at); (err == nil) != (name == "mem" || vfs.ReplacesOpen) {
				t.Fatalf("removed while it is mapped: %v", err)
			}
			if got := string(f.Bytes()); got != "0123456789" {
				t.Errorf("got %q", got)
			}
			for _, a := range []Advice{Random, Sequential, WillNeed, DontNeed} {
				f.Advise(1, math.MaxInt64, a)
				f.Advise(-1, 3, a)
				f.Advise(99, 3, a)
			}
			for _, r := range []struct {
				off, n int64
				want   string
				ok     bool
			}{
				{0, 10, "0123456789", true}, {3, 4, "3456", true}, {10, 0, "", true}, {0, 0, "", true},
				{0, 11, "", false}, {11, 0, "", false}, {9, 2, "", false}, {-1, 2, "", false}, {2, -1, "", false},
				{1, math.MaxInt64, "", false}, {math.MaxInt64, math.MaxInt64, "", false}, {math.MinInt64, math.MinInt64, "", false},
			} {
				got, err := f.Slice(r.off, r.n)
				if string(got) != r.want || (err == nil) != r.ok || err != nil && !apierr.IsCorruption(err) {
					t.Errorf("Slice(%d, %d) = %q, %v", r.off, r.n, got, err)
				}
				if cap(got) != len(got) {
					t.Errorf("Slice(%d, %d) can be grown into what follows", r.off, r.n)
				}
			}
			if err := f.Close(); err != nil {
				t.Error(err)
			}
			if err := f.Close(); !errors.Is(err, os.ErrClosed) {
				t.Errorf("second close: %v", err)
			}
			if Count() != before {
				t.Errorf("%d open after close, want %d", Count(), before)
			}
		})
	}
}

func TestEmptyAndMissingFiles(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if _, err := Open(vfs.OS, name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	if err := vfs.WriteFile(vfs.OS, name, nil); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	if f.Len() != 0 || len(f.Bytes()) != 0 {
		t.Errorf("%d bytes", f.Len())
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if n := Count(); n != 0 {
		t.Errorf("%d files left open", n)
	}
}

// TestSmallFilesAreReadWithoutMappings opens a small and a larger file when the limit of mappings is reached.
func TestSmallFilesAreReadWithoutMappings(t *testing.T) {
	defer func(old func() int64) { mostMappings = old }(mostMappings)
	dir := t.TempDir()
	for _, tt := range []struct {
		what   string
		most   int64
		size   int
		mapped bool
	}{
		{"small, mappings left", 1 << 40, smallFile, true},
		{"small, none left", 0, smallFile, false},
		{"large, none left", 0, smallFile + 1, true},
	} {
		mostMappings = func() int64 { return tt.most }
		at := filepath.Join(dir, tt.what)
		content := bytes.Repeat([]byte("x"), tt.size)
		if err := vfs.WriteFile(vfs.OS, at, content); err != nil {
			t.Fatal(err)
		}
		files, before := mappedFiles.Load(), MappedBytes()
		f, err := Open(vfs.OS, at)
		if err != nil {
			t.Fatal(err)
		}
		if is := MappedBytes() == before+int64(tt.size) && mappedFiles.Load() == files+1; is != tt.mapped {
			t.Errorf("%s: mapped is %v", tt.what, is)
		}
		f.Advise(0, 100, WillNeed)
		if !bytes.Equal(f.Bytes(), content) {
			t.Errorf("%s: the bytes differ", tt.what)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
		if MappedBytes() != before || mappedFiles.Load() != files {
			t.Errorf("%s: %d files with %d bytes are mapped after it was closed, want %d with %d", tt.what, mappedFiles.Load(), MappedBytes(), files, before)
		}
	}
}

// TestHolds checks that a page that was just read is reported as in memory. Bytes outside a mapping are always reported so.
func TestHolds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "a")
	if err := os.WriteFile(name, bytes.Repeat([]byte("abcd"), 50_000), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(vfs.OS, name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, at := range []int64{0, 100_001, 199_999} {
		if f.Bytes()[at] != "abcd"[at%4] || !f.Holds(at) {
			t.Errorf("byte %d is not in memory after it was read", at)
		}
	}
	for _, at := range []int64{-1, 200_000, 1 << 40} {
		if !f.Holds(at) {
			t.Errorf("byte %d is reported as not in memory", at)
		}
	}
}
