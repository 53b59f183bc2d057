package mapped

import (
	"bytes"
	"errors"
	"io/fs"
	"path/filepath"
	"testing"

	"svc/internal/vfs"
)

func TestSpool(t *testing.T) {
	before := Count()
	for name, fsys := range map[string]vfs.FS{"os": vfs.OS, "memory": vfs.NewMem()} {
		t.Run(name, func(t *testing.T) {
			file := filepath.ToSlash(filepath.Join(t.TempDir(), "spool.tmp"))
			if err := fsys.MkdirAll(filepath.ToSlash(filepath.Dir(file))); err != nil {
				t.Fatal(err)
			}
			s, err := NewSpool(fsys, file)
			if err != nil {
				t.Fatal(err)
			}
			var want []byte
			for i := range 5 {
				piece := bytes.Repeat([]byte{byte('a' + i)}, 3000*i)
				if n, err := s.Write(piece); n != len(piece) || err != nil {
					t.Fatal(n, err)
				}
				want = append(want, piece...)
				got, err := s.Bytes()
				if err != nil || !bytes.Equal(got, want) || s.Len() != int64(len(want)) {
					t.Fatalf("%d bytes of %d: %v", len(got), len(want), err)
				}
				if s.GiveBack(); !bytes.Equal(got, want) {
					t.Fatalf("%d bytes changed after they were released", len(got))
				}
				if len(got) > 0 { // only for a mapping
					got[len(got)-1] = 0
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := fsys.Stat(file); !errors.Is(err, fs.ErrNotExist) {
				t.Error("the file is left:", err)
			}
		})
	}
	if err := (*Spool)(nil).Close(); err != nil {
		t.Error(err)
	}
	if n := Count(); n != before {
		t.Errorf("%d mappings are open, %d were before", n, before)
	}
}
