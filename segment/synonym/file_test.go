package synonym

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/binfmt"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

var rewrite = flag.Bool("rewrite", false, "write the golden files anew")

func smallFile() *Content {
	return &Content{Stamp: 0x0102030405060708, Settings: []byte(`{"settings":1}`), Synonyms: []byte(`{"red":["blue"]}`), Table: Make(small)}
}

// opened writes a file and opens it.
func opened(t *testing.T, b []byte) (*File, error) {
	t.Helper()
	fsys := vfs.NewMem()
	if err := vfs.WriteFile(fsys, "a.set", b); err != nil {
		t.Fatal(err)
	}
	return Open(fsys, "a.set")
}

// TestFileFormat fixes the layout: existing directories have such files, so another layout needs a new version.
func TestFileFormat(t *testing.T) {
	fsys := vfs.NewMem()
	if err := vfs.WriteFile(fsys, "a.set", smallFile().Encode()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := errors.Join(Summarize(&out, fsys, "a.set"), Inspect(&out, fsys, "a.set")); err != nil {
		t.Error(err)
	}
	golden := filepath.Join("testdata", "settings.txt")
	if *rewrite {
		if err := os.WriteFile(golden, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the file is\n%s, want\n%s", out.String(), want)
	}
}

func TestFileRoundTrip(t *testing.T) {
	for _, c := range []*Content{smallFile(), {Settings: []byte("{}")}, {}} {
		f, err := opened(t, c.Encode())
		if err != nil {
			t.Fatal(err)
		}
		settings, err1 := f.Settings()
		synonyms, err2 := f.Synonyms()
		table, err3 := f.Table()
		if err := errors.Join(err1, err2, err3); err != nil {
			t.Fatal(err)
		}
		if f.Stamp() != c.Stamp || !bytes.Equal(settings, c.Settings) || !bytes.Equal(synonyms, c.Synonyms) || !bytes.Equal(table.bytes(), c.Table.bytes()) {
			t.Errorf("%+v is read as %x, %q, %q, %x", c, f.Stamp(), settings, synonyms, table.bytes())
		}
		if err := f.Check(); err != nil {
			t.Error(err)
		}
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}
	if n := mapped.Count(); n > 0 {
		t.Errorf("%d files are left open", n)
	}
}

// TestDamagedFiles flips each bit and cuts the file at each byte. Open or the accessor of the damaged part must report it; the other parts
// stay readable.
func TestDamagedFiles(t *testing.T) {
	good := smallFile().Encode()
	verify := func(b []byte) (parts int, err error) {
		f, err := opened(t, b)
		if err != nil {
			return 0, err
		}
		defer f.Close()
		_, err1 := f.Settings()
		_, err2 := f.Synonyms()
		_, err3 := f.Table()
		for _, err := range []error{err1, err2, err3} {
			if err == nil {
				parts++
			} else if !apierr.IsCorruption(err) {
				t.Errorf("the error of a damaged part is no corruption: %v", err)
			}
		}
		checked := f.Check()
		if (parts == 3) != (checked == nil) {
			t.Errorf("%d parts are sound, Check returns %v", parts, checked)
		}
		return parts, checked
	}
	for at := range good {
		for bit := range 8 {
			bad := bytes.Clone(good)
			bad[at] ^= 1 << bit
			parts, err := verify(bad)
			if err == nil {
				t.Errorf("a flip of bit %d of byte %d is not detected", bit, at)
			}
			if want := 2; at >= headBytes && parts != want {
				t.Errorf("byte %d: %d parts are sound, want %d", at, parts, want)
			}
			if other := new(UnknownVersion); errors.As(err, &other) != (at >= 8 && at < 12) {
				t.Errorf("byte %d: %v", at, err)
			}
		}
		if _, err := verify(good[:at]); err == nil {
			t.Errorf("a file of the first %d bytes is accepted", at)
		}
	}
	if _, err := verify(append(bytes.Clone(good), 0)); err == nil {
		t.Error("a byte after the file is accepted")
	}
	fsys := vfs.NewMem()
	bad := bytes.Clone(good)
	bad[headBytes] ^= 1
	if err := vfs.WriteFile(fsys, "a.set", bad); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := Summarize(&out, fsys, "a.set"); !apierr.IsCorruption(err) || !strings.Contains(out.String(), "settings  DAMAGED\n") {
		t.Errorf("the summary of a damaged file is %s (%v)", out.String(), err)
	}
	if err := VerifyFile(fsys, "a.set"); !apierr.IsCorruption(err) {
		t.Errorf("verification returns %v", err)
	}
	if err := Inspect(io.Discard, fsys, "a.set"); !apierr.IsCorruption(err) {
		t.Errorf("inspection returns %v", err)
	}
}

// FuzzFile puts arbitrary parts behind valid checksums: they are reported as corruption, or lookups find less.
func FuzzFile(f *testing.F) {
	c := smallFile()
	f.Add(c.Stamp, c.Settings, c.Synonyms, c.Table.bytes())
	f.Add(uint64(0), []byte{}, []byte{}, []byte{0, 0, 0, 0})
	f.Add(uint64(0), []byte{}, []byte{}, append([]byte{1, 0, 0, 0}, bytes.Repeat([]byte{255}, 8)...))
	f.Fuzz(func(t *testing.T, stamp uint64, settings, synonyms, table []byte) {
		written := Content{Stamp: stamp, Settings: settings, Synonyms: synonyms, Table: &Table{encoded: table}}
		file, err := opened(t, written.Encode())
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		got, err := file.Table()
		if err != nil && !apierr.IsCorruption(err) {
			t.Errorf("the table fails with %v", err)
		}
		got.Lookup("red", 3)
		if err := file.Check(); err == nil && !bytes.Equal(got.bytes(), table) {
			t.Errorf("the table %x is read as %x", table, got.bytes())
		}
		file.print(binfmt.New(io.Discard))
	})
}

// FuzzOpen opens arbitrary bytes, which must not panic.
func FuzzOpen(f *testing.F) {
	f.Add(smallFile().Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := opened(t, b)
		if err != nil {
			return
		}
		defer file.Close()
		_, _ = file.Settings()
		_, _ = file.Synonyms()
		if table, err := file.Table(); err == nil {
			table.Lookup("red", 3)
		}
		if err := file.Check(); err == nil && !bytes.Equal(reencoded(t, file), b) {
			t.Errorf("%x is read and written as %x", b, reencoded(t, file))
		}
	})
}

func reencoded(t *testing.T, f *File) []byte {
	t.Helper()
	settings, err1 := f.Settings()
	synonyms, err2 := f.Synonyms()
	table, err3 := f.Table()
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	c := Content{Stamp: f.Stamp(), Settings: settings, Synonyms: synonyms, Table: table}
	return c.Encode()
}
