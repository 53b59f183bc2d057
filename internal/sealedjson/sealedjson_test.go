package sealedjson

import (
	"bytes"
	"errors"
	"io/fs"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// golden is the file of the content [1, "<&>"] in version 3.
const golden = `{"version":3,"xxhash64":"449c1c1d71148bb6","content":[1,"<&>"]}` + "\n"

func TestFormat(t *testing.T) {
	mem := vfs.NewMem()
	if _, err := Read(mem, "x", 3); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := Write(mem, "x", 3, []byte("[1,\n \"<&>\"]")); err != nil {
		t.Fatal(err)
	}
	if b, err := vfs.ReadFile(mem, "x"); err != nil || string(b) != golden {
		t.Errorf("%s %v", b, err)
	}
	if content, err := Read(mem, "x", 3); err != nil || string(content) != `[1,"<&>"]` {
		t.Errorf("%s %v", content, err)
	}
	if _, err := Read(mem, "x", 4); err == nil || apierr.IsCorruption(err) || !strings.Contains(err.Error(), "format version 3, and this svc reads version 4") {
		t.Error(err)
	}
	if err := Write(mem, "x", 3, []byte("{")); err == nil {
		t.Error("invalid JSON is written")
	}
}

// TestDamageIsFound flips any bit, or cuts the file anywhere: what is read must be what was written.
func TestDamageIsFound(t *testing.T) {
	for i := range len(golden) {
		for bit := range 8 {
			b := []byte(golden)
			b[i] ^= 1 << bit
			content, err := decode("x", []int{3}, b)
			if err == nil && string(content) != `[1,"<&>"]` {
				t.Errorf("bit %d of byte %d: %s", bit, i, content)
			}
		}
		if content, err := decode("x", []int{3}, []byte(golden)[:i]); err == nil && i < len(golden)-1 {
			t.Errorf("cut at %d: %s", i, content)
		}
	}
}

// TestAFailedWriteChangesNothing fails a write at any operation: the file must stay as it was, also after the rename and after a
// power failure.
func TestAFailedWriteChangesNothing(t *testing.T) {
	for _, exists := range []bool{true, false} {
		failed := 0
		for at := 0; ; at++ {
			mem := vfs.NewMem()
			if err := vfs.MakeDir(mem, "d"); err != nil {
				t.Fatal(err)
			}
			if exists {
				if err := Write(mem, "d/x", 1, []byte(`"old"`)); err != nil {
					t.Fatal(err)
				}
			}
			n := 0
			hooked := vfs.Hook(mem, func(op vfs.Op) error {
				if op.Kind == vfs.OpClose {
					return nil
				}
				if n++; n == at+1 {
					return errors.New("disk on fire")
				}
				return nil
			})
			if err := Write(hooked, "d/x", 1, []byte(`"new"`)); err == nil {
				break // past the last operation
			}
			failed++
			for _, fsys := range []vfs.FS{mem, mem.CrashClone(nil)} {
				b, err := Read(fsys, "d/x", 1)
				if exists && (err != nil || string(b) != `"old"`) || !exists && !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("exists %v, operation %d failed: %s %v", exists, at, b, err)
				}
			}
		}
		if failed < 5 {
			t.Errorf("only %d operations failed", failed)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(golden))
	f.Fuzz(func(t *testing.T, b []byte) {
		content, err := decode("x", []int{3}, b)
		if err == nil && !bytes.Contains(b, content) {
			t.Errorf("%q", content)
		}
	})
}
