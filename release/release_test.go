package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/md5"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var test = source{version: "1.2.3", commit: "c0ffee", date: time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC), maintainer: "A. B. <a@b.test>"}

// TestArchive checks the content of an archive, and that building it twice gives the same bytes.
func TestArchive(t *testing.T) {
	t.Chdir("..")
	first, err := test.pack("svc-1.2.3-linux-amd64", "svc", []byte("program"), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := test.pack("svc-1.2.3-linux-amd64", "svc", []byte("program"), []byte("{}")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("a second build differs: %v", err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(first))
	if err != nil {
		t.Fatal(err)
	}
	if !unpacked.ModTime.IsZero() || unpacked.Name != "" {
		t.Errorf("the gzip header has a time or name: %+v", unpacked.Header)
	}
	var names []string
	for archive := tar.NewReader(unpacked); ; {
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
		"LICENSE-german-words/NOTICE.txt", "svc.service", "man/svc.1", "completions/svc.bash", "completions/svc.fish", "completions/_svc"}
	if !slices.Equal(names[:min(len(names), len(want))], want) {
		t.Errorf("holds %q", names)
	}
	for _, page := range []string{"CHANGELOG.md", "docs/TUTORIAL.md", "docs/operations/install.md", "docs/search.png"} { // the README links to these
		if !slices.Contains(names, page) {
			t.Errorf("lacks %s", page)
		}
	}
}

// TestSBOM lists what this test is linked from: only the standard library.
func TestSBOM(t *testing.T) {
	t.Chdir("..")
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
	if last := b.Components[len(b.Components)-1]; last.Type != "data" || len(last.Licenses) != 1 || last.Licenses[0].License.ID != "LGPL-3.0-or-later" || len(last.Hashes) != 1 {
		t.Errorf("the German words: %+v", last)
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

func TestMaintainers(t *testing.T) {
	for _, maintainer := range []string{"", "a@b.test", "A", "A <a@b.test>\nDepends: x"} {
		if err := run(t.TempDir(), maintainer, nil); err == nil || !strings.Contains(err.Error(), "is no maintainer") {
			t.Errorf("%q: %v", maintainer, err)
		}
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
		t.Error("a path of this directory is accepted")
	}
}

// TestWindowsArchive checks the zip file with the same content.
func TestWindowsArchive(t *testing.T) {
	t.Chdir("..")
	first, err := test.pack("svc", "svc.exe", []byte("program"), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := test.pack("svc", "svc.exe", []byte("program"), []byte("{}")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("a second build differs: %v", err)
	}
	archive, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	all, err := besides()
	if err != nil {
		t.Fatal(err)
	}
	if len(archive.File) != 2+len(all) {
		t.Errorf("%d files, want %d", len(archive.File), 2+len(all))
	}
	b, err := fs.ReadFile(archive, "svc/svc.exe")
	if err != nil || string(b) != "program" {
		t.Errorf("%q, %v", b, err)
	}
}

// TestDeb reads the package as deb(5) describes it, and with dpkg-deb if it is installed.
func TestDeb(t *testing.T) {
	t.Chdir("..")
	first, err := test.deb("amd64", []byte("program"), []byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	if second, err := test.deb("amd64", []byte("program"), []byte("{}")); err != nil || !bytes.Equal(first, second) {
		t.Errorf("a second build differs: %v", err)
	}
	rest, ok := bytes.CutPrefix(first, []byte("!<arch>\n"))
	if !ok {
		t.Fatalf("the package begins with %q", first[:8])
	}
	members := map[string][]byte{}
	var order []string
	for len(rest) > 0 {
		size, err := strconv.Atoi(strings.TrimSpace(string(rest[48:58])))
		if err != nil || string(rest[58:60]) != "`\n" {
			t.Fatalf("header %q", rest[:60])
		}
		name := strings.TrimSpace(string(rest[:16]))
		members[name], order = rest[60:60+size], append(order, name)
		rest = rest[60+size+size%2:]
	}
	if !slices.Equal(order, []string{"debian-binary", "control.tar.gz", "data.tar.gz"}) || string(members["debian-binary"]) != "2.0\n" {
		t.Fatalf("members %q", order)
	}
	control, data := untar(t, members["control.tar.gz"]), untar(t, members["data.tar.gz"])
	if text := control["./control"]; !strings.Contains(text, "\nVersion: 1.2.3\nArchitecture: amd64\nMaintainer: A. B. <a@b.test>\n") {
		t.Errorf("control: %s", text)
	}
	if data["./usr/bin/svc"] != "program" || !strings.Contains(data["./usr/lib/systemd/system/svc.service"], "\nExecStart=/usr/bin/svc\n") {
		t.Error("the program or its unit is missing")
	}
	for line := range strings.Lines(control["./md5sums"]) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if got := fmt.Sprintf("%x", md5.Sum([]byte(data["./"+name]))); got != sum {
			t.Errorf("%s has the sum %s, want %s", name, got, sum)
		}
	}
	tool, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return
	}
	file := filepath.Join(t.TempDir(), "svc.deb")
	if err := os.WriteFile(file, first, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"--info", "--contents"} {
		if out, err := exec.Command(tool, what, file).CombinedOutput(); err != nil || !bytes.Contains(out, []byte("svc")) {
			t.Errorf("dpkg-deb %s: %v: %s", what, err, out)
		}
	}
}

func untar(t *testing.T, packed []byte) map[string]string {
	t.Helper()
	unpacked, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for archive := tar.NewReader(unpacked); ; {
		h, err := archive.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if dir := path.Dir(strings.TrimSuffix(h.Name, "/")); dir != "." {
			if _, ok := files["./"+dir+"/"]; !ok {
				t.Errorf("%s comes before its directory", h.Name)
			}
		}
		b, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = string(b)
	}
}
