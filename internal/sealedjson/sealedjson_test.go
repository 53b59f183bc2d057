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
		t.Error("what is no JSON is written")
	}
}

// Any bit may flip, and the file may be cut anywhere: what is read is what was written.
func TestDamageIsFound(t *testing.T) {
	for i := range len(golden) {
		for bit := range 8 {
			b := []byte(golden)
			b[i] ^= 1 << bit
			content, err := decode("x", 3, b)
			if err == nil && string(content) != `[1,"<&>"]` {
				t.Errorf("bit %d of byte %d: %s", bit, i, content)
			}
		}
		if content, err := decode("x", 3, []byte(golden)[:i]); err == nil && i < len(golden)-1 {
			t.Errorf("cut at %d: %s", i, content)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(golden))
	f.Fuzz(func(t *testing.T, b []byte) {
		content, err := decode("x", 3, b)
		if err == nil && !bytes.Contains(b, content) {
			t.Errorf("%q", content)
		}
	})
}
