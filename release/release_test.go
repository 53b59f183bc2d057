package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

var test = source{version: "1.2.3", commit: "c0ffee", date: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC)}

// TestArchive: what is in an archive, whose bytes are the same whenever it is made.
func TestArchive(t *testing.T) {
	t.Chdir("..")
	first, err := test.pack("svc-1.2.3-linux-amd64", "svc", []byte("program"), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := test.pack("svc-1.2.3-linux-amd64", "svc", []byte("program"), []byte("{}")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("made again it differs: %v", err)
	}
	zip, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if !zip.ModTime.IsZero() || zip.Name != "" {
		t.Errorf("gzip says when or where: %+v", zip.Header)
	}
	var names []string
	for archive := tar.NewReader(zip); ; {
		h, err := archive.Next()
		if err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		name, ok := strings.CutPrefix(h.Name, "svc-1.2.3-linux-amd64/")
		mode := int64(0o644)
		if name == "svc" {
			mode = 0o755
		}
		if !ok || h.Mode != mode || !h.ModTime.Equal(test.date) || h.Uid != 0 || h.Uname != "root" || h.Size == 0 {
			t.Errorf("%+v", h)
		}
		names = append(names, name)
	}
	want := []string{"svc", "sbom.cdx.json", "LICENSE", "README.md", "LICENSE-german-words/COPYING", "LICENSE-german-words/COPYING.LESSER",
		"LICENSE-german-words/NOTICE.txt"}
	if !slices.Equal(names, want) {
		t.Errorf("holds %q", names)
	}
}

// TestSBOM lists what this test is linked from: no more than the standard library.
func TestSBOM(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := test.sbom(program)
	if err != nil {
		t.Fatal(err)
	}
	var b bom
	if err := json.Unmarshal(text, &b); err != nil {
		t.Fatal(err)
	}
	if b.Format != "CycloneDX" || b.Spec != "1.5" || b.Metadata.Component.Version != "1.2.3" || b.Metadata.Timestamp != "2026-02-03T04:05:06Z" {
		t.Errorf("%s", text)
	}
	if len(b.Components) == 0 || b.Components[0].Name != "std" || !strings.HasPrefix(b.Components[0].PURL, "pkg:golang/std@1.") {
		t.Errorf("components: %+v", b.Components)
	}
}

func TestSource(t *testing.T) {
	b, err := os.ReadFile("../cmd/svc/version.go")
	if err != nil {
		t.Fatal(err)
	}
	if versionLine.Find(b) == nil {
		t.Error("the version is not found")
	}
}

func TestPathsAreRefused(t *testing.T) {
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	if err := checkPaths([]byte("\x00svc/cmd/svc/main.go\x00")); err != nil {
		t.Error(err)
	}
	if err := checkPaths([]byte("\x00" + here + "/main.go\x00")); err == nil {
		t.Error("a path of this directory is let through")
	}
}
