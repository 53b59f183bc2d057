package segment

import (
	"bytes"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

func TestVerifyPathFindsTheDamagedFileInADirectory(t *testing.T) {
	fs := vfs.NewMem()
	if err := fs.MkdirAll("data/a"); err != nil {
		t.Fatal(err)
	}
	fixedSegment(t, fs, "data/a/1.seg")
	fixedSegment(t, fs, "data/a/other")
	var out bytes.Buffer
	if err := VerifyPath(&out, fs, "data"); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, ": sound, 4 rows") != 2 {
		t.Fatal(got)
	}
	data := readFile(t, fs, "data/a/1.seg")
	data[len(data)-1] = 0
	f, err := fs.Create("data/a/1.seg")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	out.Reset()
	if err := VerifyPath(&out, fs, "data"); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "data/a/1.seg") {
		t.Fatal(err)
	}
	if got := out.String(); strings.Count(got, "\n") != 2 || strings.Count(got, ": sound") != 1 {
		t.Fatal(got)
	}
	if err := VerifyPath(&out, fs, "nowhere"); err == nil {
		t.Fatal("a path that does not exist is sound")
	}
}
