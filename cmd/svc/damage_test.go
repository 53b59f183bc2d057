package main

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"svc/internal/mapped"
	"svc/internal/vfs"
	"svc/segment"
)

// unpack extracts a .tar.gz into a new directory.
func unpack(t *testing.T, name string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, filepath.FromSlash(h.Name))
		if h.FileInfo().IsDir() {
			err = os.MkdirAll(to, 0o777)
		} else {
			var b []byte
			if b, err = io.ReadAll(r); err == nil {
				err = os.WriteFile(to, b, 0o600)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// ask sends a request and returns status and body.
func (in *instance) ask(method, path, body string) (int, string) {
	in.t.Helper()
	req, err := http.NewRequest(method, in.url+path, strings.NewReader(body))
	if err != nil {
		in.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		in.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		in.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// run sends a request for a task, and waits for its end.
func (in *instance) run(method, path, body string) {
	in.t.Helper()
	var summary struct{ TaskUID int }
	status, answer := in.ask(method, path, body)
	if err := json.Unmarshal([]byte(answer), &summary); err != nil || status != http.StatusAccepted {
		in.t.Fatalf("%s %s: %d %s", method, path, status, answer)
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		_, answer := in.ask("GET", fmt.Sprint("/tasks/", summary.TaskUID), "")
		switch {
		case strings.Contains(answer, `"status":"succeeded"`):
			return
		case strings.Contains(answer, `"status":"failed"`), time.Now().After(deadline):
			in.t.Fatalf("%s %s: %s", method, path, answer)
		}
	}
}

// segmentFiles returns the segment files of the index in directory n.
func segmentFiles(t *testing.T, db string, n int) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(db, "indexes", fmt.Sprintf("%06d", n), "*"+segmentSuffix))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	return names
}

// TestDirectoriesOfAllFormats opens directories that servers of each format left, searches them, writes to them and compacts them.
func TestDirectoriesOfAllFormats(t *testing.T) {
	for _, format := range append(olderFormats, formatVersion) {
		t.Run(format, func(t *testing.T) { testDirectoryOfFormat(t, unpack(t, "testdata/format"+format+".tar.gz")) })
	}
}

// TestDirectoryWithColumnsBesideSegments opens a directory from a server after attributes had become filterable, searches with their
// columns, and compacts it.
func TestDirectoryWithColumnsBesideSegments(t *testing.T) {
	db := unpack(t, "testdata/format3columns.tar.gz")
	columns := func() int {
		names, err := filepath.Glob(filepath.Join(db, "indexes", "*", "*"+columnsSuffix))
		if err != nil {
			t.Fatal(err)
		}
		return len(names)
	}
	if n := columns(); n != 2 {
		t.Fatalf("%d files of columns, want 2", n)
	}
	if code, out, errs := runCommand("segment", "verify", db); code != 0 || !strings.Contains(out, columnsSuffix+": ok") {
		t.Errorf("%s%s", out, errs)
	}
	in := start(t, db)
	_, got := in.ask("POST", "/indexes/docs/search", `{"q":"","filter":"title = 'changed title' AND id < 5","facets":["id"],"limit":1,"attributesToRetrieve":["id"]}`)
	if !strings.Contains(got, `"hits":[{"id":4}]`) || !strings.Contains(got, `"facetDistribution":{"id":{"4":1}}`) {
		t.Error(got)
	}
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	testDirectoryOfFormat(t, db)
	if n := columns(); n != 0 {
		t.Errorf("%d files of columns after a compaction", n)
	}
}

// TestDirectoryWithSettingsInTheManifest opens a directory with large settings in a manifest: they must be used, and move to their own
// file with the next change of the index.
func TestDirectoryWithSettingsInTheManifest(t *testing.T) {
	db := unpack(t, "testdata/format4settings.tar.gz")
	files := func() []string {
		names, err := filepath.Glob(filepath.Join(db, "indexes", "*", "*"+settingsSuffix))
		if err != nil {
			t.Fatal(err)
		}
		return names
	}
	for _, moved := range []bool{false, true, true} {
		in := start(t, db)
		for q, want := range map[string]string{"kitty": `"hits":[{"id":1}]`, "the big apple": `"hits":[{"id":2}]`, "other7": `"hits":[]`} {
			if _, got := in.ask("POST", "/indexes/s/search", `{"q":"`+q+`","attributesToRetrieve":["id"]}`); !strings.Contains(got, want) {
				t.Errorf("%q, moved %v: %s", q, moved, got)
			}
		}
		if _, got := in.ask("GET", "/indexes/s/settings", ""); !strings.Contains(got, `"stopWords":["the"]`) || !strings.Contains(got, `"word399":["other399"]`) {
			t.Errorf("moved %v: settings %s", moved, got)
		}
		in.run("POST", "/indexes/s/documents", `[{"id":3,"title":"another"}]`)
		if names := files(); len(names) != 1 {
			t.Errorf("moved %v: files of settings %v, want one", moved, names)
		}
		if err := in.stop(); err != nil {
			t.Fatal(err)
		}
	}
	if code, out, errs := runCommand("segment", "verify", db); code != 0 || !strings.Contains(out, settingsSuffix+": ok") {
		t.Errorf("%s%s", out, errs)
	}
	name := files()[0]
	if code, out, errs := runCommand("segment", "inspect", "--bytes", name); code != 0 || !strings.Contains(out, "synonyms  402\n") || !strings.Contains(out, "402 entries") {
		t.Errorf("%s%s", out, errs)
	}
	if err := os.WriteFile(name, []byte("svcSETNG"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := runCommand("segment", "verify", db); code == 0 || !strings.Contains(out, settingsSuffix+": DAMAGED") {
		t.Error(out)
	}
}

// TestDirectoryWithRoundedIntegers opens a directory whose columns rounded integers: soon after the start they must have the integers of
// the documents.
func TestDirectoryWithRoundedIntegers(t *testing.T) {
	db := unpack(t, "testdata/format3integers.tar.gz")
	if code, out, errs := runCommand("segment", "verify", db); code != 0 {
		t.Errorf("%s%s", out, errs)
	}
	in := start(t, db)
	tests := map[string]string{
		`{"filter":"n = 9007199254740993","attributesToRetrieve":["id"]}`:         `"hits":[{"id":9007199254740993}]`,
		`{"filter":"late >= 18446744073709551615","attributesToRetrieve":["id"]}`: `"hits":[{"id":9007199254740992}]`,
		`{"filter":"o.k = 9007199254741033","attributesToRetrieve":["id"]}`:       `"hits":[{"id":9007199254741033}]`,
		`{"filter":"id = 9007199254740994","facets":["n"],"limit":0}`:             `"facetDistribution":{"n":{"2.5":1,"9007199254740994":1}},"facetStats":{"n":{"min":2.5,"max":9007199254740994}}`,
		`{"sort":["n:desc"],"limit":2,"attributesToRetrieve":["id"]}`:             `"hits":[{"id":9007199254741031},{"id":9007199254741030}]`,
	}
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		wrong := ""
		for body, want := range tests {
			if _, got := in.ask("POST", "/indexes/n/search", body); !strings.Contains(got, want) {
				wrong = body + ": " + got + ", want " + want
			}
		}
		if wrong == "" {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal(wrong)
		}
	}
	in.run("POST", "/indexes/n/documents/delete", `{"filter":"n = 9007199254740993"}`)
	if _, got := in.ask("GET", "/indexes/n/stats", ""); !strings.Contains(got, `"numberOfDocuments":63`) {
		t.Error(got)
	}
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
}

func testDirectoryOfFormat(t *testing.T, db string) {
	in := start(t, db)
	if b, err := os.ReadFile(filepath.Join(db, versionFile)); err != nil || string(b) != string(versionContent()) {
		t.Errorf("VERSION says %q (%v)", b, err)
	}
	check := func() {
		t.Helper()
		for body, want := range map[string]string{
			`{"q":"","limit":0}`: `"estimatedTotalHits":297`,
			`{"q":"quick fox","filter":"price > 400","attributesToRetrieve":["id"],"limit":1}`:                 `"hits":[{"id":`,
			`{"q":"","filter":"tags = red AND _geoRadius(10,70,2000000)","facets":["tags"],"limit":0}`:         `"red":2`,
			`{"q":"changed title","attributesToRetrieve":["id"],"limit":1,"matchingStrategy":"all"}`:           `"hits":[{"id":4}]`,
			`{"vector":[1,0,0,0],"hybrid":{"embedder":"mine"},"attributesToRetrieve":["id"],"limit":1}`:        `"hits":[{"id":`,
			`{"q":"","filter":"nothing IS NULL","limit":0}`:                                                    `"code":"invalid_search_filter"`,
			`{"q":"wa","attributesToRetrieve":["id"],"sort":["price:desc"],"limit":1,"filter":"price EXISTS"}`: `"hits":[{"id":298}]`,
		} {
			if _, got := in.ask("POST", "/indexes/docs/search", body); !strings.Contains(got, want) {
				t.Errorf("%s: %s, want %s", body, got, want)
			}
		}
		for id, want := range map[string]string{"4": `{"id":4,"title":"changed title"`, "3": "document_not_found", "50": `"long":"`} {
			if _, got := in.ask("GET", "/indexes/docs/documents/"+id, ""); !strings.Contains(got, want) {
				t.Errorf("document %s: %.200s, want %s", id, got, want)
			}
		}
		if _, got := in.ask("GET", "/indexes/small/documents", ""); !strings.Contains(got, `"results":[{"id":"a","name":"one"},{"id":"b","name":"two"}]`) {
			t.Error(got)
		}
	}
	in.run("POST", "/indexes/docs/documents", `[{"id":1000,"title":"one more","_vectors":{"mine":null}}]`)
	check()
	in.run("POST", "/indexes/docs/compact", "")
	check()
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	names := segmentFiles(t, db, 0)
	if len(names) != 1 {
		t.Errorf("%d segments after a compaction", len(names))
	}
	for _, name := range names {
		var printed strings.Builder
		if err := segment.Inspect(&printed, vfs.OS, name); err != nil || !strings.Contains(printed.String(), "format version "+formatVersion) {
			t.Errorf("%s: %v\n%.300s", name, err, printed.String())
		}
	}
	in = start(t, db)
	check()
}

// TestWordsOfOlderVersionsAreFound opens directories with texts in many languages from servers of each format. Every word must be found in
// quotes after reanalysis, and words of ASCII letters also during it.
func TestWordsOfOlderVersionsAreFound(t *testing.T) {
	for _, format := range []string{"2", "3"} {
		t.Run(format, func(t *testing.T) { testWordsOfFormat(t, unpack(t, "testdata/words"+format+".tar.gz")) })
	}
}

func testWordsOfFormat(t *testing.T, db string) {
	lines, err := os.ReadFile("testdata/words.ndjson")
	if err != nil {
		t.Fatal(err)
	}
	in := start(t, db)
	check := func(which func(word string) bool) {
		t.Helper()
		asked := 0
		for line := range strings.Lines(string(lines)) {
			var doc map[string]any
			if err := json.Unmarshal([]byte(line), &doc); err != nil {
				t.Fatal(err)
			}
			id := doc["id"]
			delete(doc, "id")
			for language, text := range doc {
				locales := `["` + language + `"]`
				if language == "any" {
					locales = "null"
				}
				for _, word := range strings.Fields(text.(string)) {
					if word == "?" || !which(word) {
						continue
					}
					body := fmt.Sprintf(`{"q":"\"%s\"","locales":%s,"attributesToRetrieve":["id"],"filter":null,"limit":50}`, word, locales)
					if _, got := in.ask("POST", "/indexes/words/search", body); !strings.Contains(got, fmt.Sprintf(`{"id":%v}`, id)) {
						t.Errorf("document %v in %s: %s is not found in quotes: %s", id, language, word, got)
					}
					asked++
				}
			}
		}
		if asked < 50 {
			t.Errorf("only %d words were searched", asked)
		}
	}
	// Words that svc cannot analyse as older versions did, such as ß as its own letter, are found after reanalysis.
	check(func(word string) bool {
		return !strings.ContainsFunc(word, func(r rune) bool { return r >= utf8.RuneSelf })
	})
	every := func(string) bool { return true }
	const done = "all words are indexed by this version"
	for deadline := time.Now().Add(time.Minute); !strings.Contains(in.log.String(), done); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the words are not reanalysed: ", in.log.String())
		}
	}
	check(every)
	in.run("POST", "/indexes/words/compact", "")
	check(every)
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	in = start(t, db)
	check(every)
	if err := in.stop(); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(in.log.String(), done) {
		t.Error("the words were reanalysed again at the second start")
	}
}

func TestDirectoryOfANewerFormatIsRefused(t *testing.T) {
	db := t.TempDir()
	for content, want := range map[string]string{
		"svc 5\n":                    "it has format version 5, but svc " + svcVersion + " reads versions 2, 3 and 4. Use the svc that wrote it, or a later one",
		"svc 5 0.9.1\n":              "it has format version 5, but svc " + svcVersion + " reads versions 2, 3 and 4. Use svc 0.9.1, or a later one",
		"svc 5 " + svcVersion + "\n": "it has format version 5, but svc " + svcVersion + " reads versions 2, 3 and 4. Use the build of svc " + svcVersion + " that wrote it, or a later one",
		"other 3\n":                  "belongs to another product",
		"svc\n":                      "belongs to another product",
		"":                           "is empty",
	} {
		if err := os.WriteFile(filepath.Join(db, versionFile), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openDataDir(vfs.OS, db, "", nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", content, err)
		}
		if code, _, errs := runCommand("dump", "--from", db, "--out", filepath.Join(t.TempDir(), "x.dump")); code != exitFailure || !strings.Contains(errs, want) {
			t.Errorf("%q: %s", content, errs)
		}
	}
}

// TestSegmentTruncatedInUse truncates a file that a running server has mapped, so that reads beyond the end raise SIGBUS.
func TestSegmentTruncatedInUse(t *testing.T) {
	db := t.TempDir()
	in := start(t, db)
	var docs strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&docs, `{"id":%d,"title":"word%d and more of a title","text":"%d %[1]d %[2]d"}`+"\n", i, i%50, i*7919)
	}
	for _, uid := range []string{"a", "b"} {
		req, err := http.NewRequestWithContext(context.Background(), "POST", in.url+"/indexes/"+uid+"/documents", strings.NewReader(docs.String()))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-ndjson")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	in.idle()
	const search = `{"q":"word7","attributesToRetrieve":["id"]}`
	for _, uid := range []string{"a", "b"} {
		if _, got := in.ask("POST", "/indexes/"+uid+"/search", search); !strings.Contains(got, `"hits":[{"id":7}`) {
			t.Fatal(got)
		}
	}
	name := segmentFiles(t, db, 0)[0]
	if err := os.Truncate(name, 64); err != nil {
		t.Fatal(err)
	}
	status, got := in.ask("GET", "/indexes/a/documents/2900", "")
	for deadline := time.Now().Add(2 * time.Minute); !strings.Contains(got, "was not opened"); _, got = in.ask("POST", "/indexes/a/search", search) {
		if !strings.Contains(got, `"code":"invalid_store_file"`) || time.Now().After(deadline) {
			t.Fatalf("%d %s", status, got)
		}
		time.Sleep(10 * time.Millisecond)
	}
	if _, got := in.ask("POST", "/indexes/b/search", search); !strings.Contains(got, `"hits":[{"id":7}`) {
		t.Errorf("the other index: %s", got)
	}
	if _, got := in.ask("GET", "/health", ""); !strings.Contains(got, `"status":"available","details":{"indexesSetAside":1,"damagedSegments":0,"parkedIndexes":0}`) {
		t.Error(got)
	}
	if said := in.log.String(); !strings.Contains(said, "an index is quarantined") || !strings.Contains(said, name) {
		t.Error(said)
	}
	in.run("DELETE", "/indexes/a", "")
	in.run("POST", "/indexes/a/documents", `{"id":1,"title":"again"}`)
	if _, got := in.ask("POST", "/indexes/a/search", `{"q":"again"}`); !strings.Contains(got, `"hits":[{"id":1`) {
		t.Error(got)
	}
	if _, got := in.ask("GET", "/health", ""); got != `{"status":"available"}` {
		t.Error(got)
	}
	if err := in.stop(); err != nil {
		t.Error(err)
	}
	if n := mapped.Count(); n != 0 {
		t.Errorf("%d files are still mapped", n)
	}
}
