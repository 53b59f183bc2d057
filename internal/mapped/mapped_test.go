package mapped

import (
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
