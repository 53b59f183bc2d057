package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/vfs"
)

// runCommand runs a command and returns its exit code and output.
func runCommand(args ...string) (code int, out, errs string) {
	var o, e bytes.Buffer
	p := program{getenv: func(string) (string, bool) { return "", false }, out: &o, err: &e}
	code = p.run(args)
	return code, o.String(), e.String()
}

// entriesOf returns the files of a dump.
func entriesOf(t *testing.T, name string) map[string]string {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(h.Name, "/") {
			all[h.Name] = string(b)
		}
	}
}

// byID returns the lines of documents by id.
func byID(t *testing.T, lines string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for line := range strings.Lines(lines) {
		var doc struct{ ID any }
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all[fmt.Sprint(doc.ID)] = line
	}
	return all
}

// treeOf returns the content of all files below a directory by path.
func treeOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(name)
		rel, _ := filepath.Rel(dir, name)
		files[rel] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func writeTree(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, b := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// salvageable returns a data directory with all kinds of content, and its files.
func salvageable(t *testing.T) (dir string, files map[string]string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "db")
	in := start(t, dir, "--max-indexing-threads", "1") // to get one segment
	in.run("PATCH", "/indexes/big/settings", `{"stopWords":["the"],"filterableAttributes":["n"],"embedders":{"m":{"source":"userProvided","dimensions":2}}}`)
	r := rand.New(rand.NewPCG(1, 2))
	var docs []string
	for i := range 400 {
		text := strings.Repeat(fmt.Sprintf("the words of %d and %d, ", i, r.IntN(1000)), 1+r.IntN(20))
		if i%50 == 7 {
			b := make([]byte, 30_000)
			for k := range b {
				b[k] = byte('a' + r.IntN(26))
			}
			text = string(b)
		}
		docs = append(docs, fmt.Sprintf(`{"id":%d,"n":%d,"text":%q,"_vectors":{"m":[%d,1]}}`, i, i%10, text, i))
	}
	in.run("POST", "/indexes/big/documents", "["+strings.Join(docs, ",")+"]")
	in.run("POST", "/indexes/big/documents", `[{"id":3,"text":"replaced","_vectors":{"m":[0,1]}}]`)
	in.run("DELETE", "/indexes/big/documents/5", "")
	in.run("POST", "/indexes/small/documents", `[{"id":"a","name":"one"},{"id":"b","name":"two"}]`)
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	return dir, treeOf(t, dir)
}

// TestSalvage damages a data directory at random places. What is salvaged must be right, what is missing must be reported, the directory
// must not change, and the dump must be importable.
func TestSalvage(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	sound, files := salvageable(t)
	whole := filepath.Join(t.TempDir(), "whole.dump")
	if code, out, errs := runCommand("dump", "--from", sound, "--out", whole); code != 0 || !strings.Contains(out, "2 indexes, 401 documents, 4 keys, 5 tasks") {
		t.Fatalf("%d\n%s\n%s", code, out, errs)
	}
	want := entriesOf(t, whole)
	documents := map[string]map[string]string{}
	for _, uid := range []string{"big", "small"} {
		documents[uid] = byID(t, want["indexes/"+uid+"/documents.jsonl"])
	}
	if len(documents["big"]) != 399 || len(documents["small"]) != 2 || !strings.Contains(documents["big"]["3"], "replaced") || !strings.Contains(documents["big"]["4"], `"_vectors"`) {
		t.Fatalf("%d documents; %s", len(documents["big"]), documents["big"]["3"])
	}
	names := slices.Sorted(maps.Keys(files))
	names = slices.DeleteFunc(names, func(name string) bool { return len(files[name]) == 0 || name == lockFile })
	segments := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return filepath.Ext(name) != segmentSuffix })
	complete := 0
	for round := range 40 {
		name := names[r.IntN(len(names))]
		if round%2 == 0 {
			name = segments[r.IntN(len(segments))]
		}
		b := []byte(files[name])
		at, kind := r.IntN(len(b)), round/2%4
		what := fmt.Sprintf("%s at %d: ", name, at)
		switch kind {
		case 0, 1:
			what += "a bit"
			b[at] ^= 1 << r.IntN(8)
		case 2:
			what += "a sector"
			clear(b[at/512*512 : min(len(b), at/512*512+512)])
		case 3:
			what += "cut"
			b = b[:at]
		}
		dir := filepath.Join(t.TempDir(), "db")
		damaged := maps.Clone(files)
		damaged[name] = string(b)
		writeTree(t, dir, damaged)
		dump := filepath.Join(filepath.Dir(dir), "out.dump")
		code, out, errs := runCommand("dump", "--from", dir, "--out", dump)
		if !maps.Equal(treeOf(t, dir), damaged) {
			t.Errorf("%s: the directory has changed", what)
		}
		if name == versionFile && code != 0 && strings.Contains(errs, "another product") || strings.Contains(errs, "format version") {
			continue // as expected
		}
		if _, err := os.Stat(dump); err != nil {
			t.Fatalf("%s: %v\n%s%s", what, err, out, errs)
		}
		got := entriesOf(t, dump)
		missing := 0
		for uid, all := range documents {
			have := byID(t, got["indexes/"+uid+"/documents.jsonl"])
			if name == "indexes/CATALOG" && kind > 1 && len(have) == 0 {
				for entry := range got {
					if strings.HasPrefix(entry, "indexes/lost-") && strings.HasSuffix(entry, "documents.jsonl") {
						if lost := byID(t, got[entry]); len(lost) == len(all) {
							have = lost
						}
					}
				}
			}
			for id, line := range all {
				switch {
				case have[id] == line:
				case have[id] == "":
					missing++
					if !strings.Contains(out, " "+id) && !strings.Contains(out, filepath.Base(name)) {
						t.Errorf("%s: missing document %s of %s is not reported:\n%s", what, id, uid, out)
					}
				case !strings.Contains(line, have[id][:len(have[id])/2]) && !strings.Contains(have[id], "replaced"):
					// Vectors may be lost, and without a manifest the last replaced documents come back.
					t.Errorf("%s: document %s of %s is %.200s", what, id, uid, have[id])
				case !strings.Contains(out, "missing: "):
					t.Errorf("%s: document %s of %s is %.200s, which is not reported:\n%s", what, id, uid, have[id], out)
				}
			}
		}
		isSegment := filepath.Ext(name) == segmentSuffix
		switch {
		case kind < 2 && isSegment && (missing > 0 || code != 0):
			t.Errorf("%s: %d documents are missing\n%s", what, missing, out)
		case !isSegment && missing > 0:
			t.Errorf("%s: %d documents are missing\n%s", what, missing, out)
		case code == 0 && strings.Contains(out, "missing: ") || code != 0 && !strings.Contains(out, "missing: "):
			t.Errorf("%s: exit code %d\n%s", what, code, out)
		}
		if code == 0 {
			complete++
		}
		if round%8 == 0 {
			importSalvaged(t, what, dump, got)
		}
	}
	if complete == 0 || complete == 40 {
		t.Errorf("%d of 40 were salvaged completely", complete)
	}
}

// importSalvaged imports a dump into a new server, which must have all of its content.
func importSalvaged(t *testing.T, what, dump string, entries map[string]string) {
	t.Helper()
	in, err := tryStart(t, filepath.Join(t.TempDir(), "db"), "--import-dump", dump)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	defer in.stop()
	for name, lines := range entries {
		uid, ok := strings.CutPrefix(strings.TrimSuffix(name, "/documents.jsonl"), "indexes/")
		if !ok || !strings.HasSuffix(name, "/documents.jsonl") {
			continue
		}
		_, body := in.ask("GET", "/indexes/"+uid+"/documents?limit=0", "")
		if n := fmt.Sprintf(`"total":%d`, strings.Count(lines, "\n")); !strings.Contains(body, n) {
			t.Errorf("%s: index %s: %s, want %s", what, uid, body, n)
		}
	}
}

// TestSalvageRefusesDirectoriesInUse checks that salvage refuses a directory that a server has open, and directories that svc
// did not create.
func TestSalvageRefusesDirectoriesInUse(t *testing.T) {
	db := filepath.Join(t.TempDir(), "db")
	in := start(t, db)
	out := filepath.Join(t.TempDir(), "out.dump")
	for _, remove := range []string{"", lockFile} {
		if remove != "" {
			if err := os.Remove(filepath.Join(db, remove)); err != nil {
				t.Fatal(err)
			}
		}
		if code, _, errs := runCommand("dump", "--from", db, "--out", out); code != exitFailure || !strings.Contains(errs, "a server is running") {
			t.Errorf("without %q: %d %s", remove, code, errs)
		}
	}
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ dir, out, want string }{
		{filepath.Dir(db), out, "is not a data directory"},
		{filepath.Join(db, "nowhere"), out, "no such file"},
		{db, filepath.Join(db, "x.dump"), "is in the data directory"},
		{db, filepath.Join(db, "..", "db", "x.dump"), "is in the data directory"},
	} {
		if code, _, errs := runCommand("dump", "--from", c.dir, "--out", c.out); code != exitFailure || !strings.Contains(errs, c.want) {
			t.Errorf("%s: %d %s", c.dir, code, errs)
		}
	}
	held, err := holdDataDir(db)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openDataDir(vfs.OS, db, "", nil); err == nil || !strings.Contains(err.Error(), "another svc") {
		t.Errorf("a server starts during a salvage: %v", err)
	}
	if err := held.Close(); err != nil {
		t.Error(err)
	}
	if code, _, errs := runCommand("dump", "--from", db, "--out", out); code != 0 {
		t.Errorf("%d %s", code, errs)
	}
	if code, _, errs := runCommand("dump", "--from", db, "--out", out); code != exitFailure || !strings.Contains(errs, "already exists") {
		t.Errorf("%d %s", code, errs)
	}
}

// TestSalvageOfASegment finds the documents of a segment without its manifest and its table.
func TestSalvageOfASegment(t *testing.T) {
	dir, files := salvageable(t)
	var name string
	for n := range files {
		if filepath.Ext(n) == segmentSuffix && (name == "" || len(files[n]) > len(files[name])) {
			name = n
		}
	}
	file := filepath.Join(dir, name)
	_, sound, _ := runCommand("segment", "salvage", file)
	all := byID(t, sound)
	if len(all) != 400 {
		t.Fatalf("%d documents", len(all))
	}
	if err := os.WriteFile(file, []byte(files[name])[:len(files[name])-200], 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "docs.ndjson")
	code, printed, errs := runCommand("segment", "salvage", file, "--out", out)
	b, err := os.ReadFile(out)
	if code != exitFailure || printed != "" || err != nil || !maps.Equal(byID(t, string(b)), all) || !strings.Contains(errs, "400 documents, which are decoded without verification") {
		t.Errorf("%d %s %v", code, errs, err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(file), "MANIFEST")); err != nil {
		t.Fatal(err)
	}
	dump := filepath.Join(t.TempDir(), "x.dump")
	code, printed, errs = runCommand("dump", "--from", dir, "--out", dump)
	entries := entriesOf(t, dump)
	if code != exitFailure || len(byID(t, entries["indexes/big/documents.jsonl"])) != 400 || !strings.Contains(entries["indexes/big/metadata.json"], `"primaryKey":"id"`) {
		t.Errorf("%d %s %s %s", code, printed, errs, entries["indexes/big/metadata.json"])
	}
}

// TestPromisesNameTheirTests checks that the tests which the documentation names exist.
func TestPromisesNameTheirTests(t *testing.T) {
	b, err := os.ReadFile("../../docs/operations/failures.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[string]bool{}
	for _, name := range regexp.MustCompile("`(Test[A-Za-z0-9]+)`").FindAllStringSubmatch(string(b), -1) {
		missing[name[1]] = true
	}
	if len(missing) < 15 {
		t.Errorf("only %d tests are named", len(missing))
	}
	err = filepath.WalkDir("../..", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, "_test.go") {
			return err
		}
		b, err := os.ReadFile(name)
		for test := range missing {
			if bytes.Contains(b, []byte("func "+test+"(")) {
				delete(missing, test)
			}
		}
		return err
	})
	if err != nil || len(missing) > 0 {
		t.Errorf("tests named in the documentation do not exist: %v (%v)", slices.Sorted(maps.Keys(missing)), err)
	}
}
