package dump

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"path"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// discarding is a payload that is thrown away.
type discarding struct{ io.Writer }

func (discarding) Discard() {}

// FuzzUnpack unpacks any tar file: nothing may be written outside the work directory, and the result must be valid documents.
func FuzzUnpack(f *testing.F) {
	for _, entries := range [][]entry{minimal(), v5("{}\n"), {{name: "../x", content: "y"}}, {{name: "tasks/update_files/1.jsonl", content: `{"a":1}{"b":`}}} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			if err := w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o644}); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, e.content); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if o.Kind.Changes() && path.Dir(o.Name) != "/work" && o.Name != "/work" {
				t.Fatalf("%s", o)
			}
			return nil
		})
		if err := fsys.MkdirAll("/work"); err != nil {
			t.Fatal(err)
		}
		u := newUnpacker(fsys, "/work", func() (payloadSink, error) { return discarding{io.Discard}, nil })
		m := &meter{ctx: t.Context(), names: maxNames}
		if eachFile(tar.NewReader(bytes.NewReader(b)), m, u.entry) != nil {
			return
		}
		for folder, docs := range u.out.documents {
			n := 0
			if err := eachLine(fsys, docs.file, func([]byte) error { n++; return nil }); err != nil || n != docs.count {
				t.Errorf("%s: %d lines, want %d documents: %v", folder, n, docs.count, err)
			}
		}
		for _, name := range u.out.strange {
			if strings.Contains(name, "..") && path.Clean(name) != name {
				t.Errorf("the name %q is not clean", name)
			}
		}
	})
}

// TestSecretsOfFinishedTasks checks that dumps have the secrets of unfinished tasks only.
func TestSecretsOfFinishedTasks(t *testing.T) {
	for _, kind := range []string{
		`{"export":{"url":"http://a.test","api_key":"canary-of-a-key","indexes":{}}},"details":{"Export":{"url":"http://a.test","api_key":"canary-of-a-key","indexes":{}}}`,
		`{"settings":{"settings":{"embedders":{"e":{"source":"rest","apiKey":"canary-of-a-key","headers":{"X-Token":"canary-of-a-key"},"indexingEmbedder":{"apiKey":"canary-of-a-key"}}}},"is_deletion":false,"allow_index_creation":true}},"details":{"SettingsUpdate":{"settings":{}}}`,
	} {
		for status, kept := range map[string]bool{"enqueued": true, "processing": true, "succeeded": false, "failed": false, "canceled": false} {
			read, err := decodeTask([]byte(`{"uid":8,"status":"` + status + `","type":` + kind + `,"enqueuedAt":"2026-01-02T03:04:06Z"}`))
			if err != nil {
				t.Fatal(err)
			}
			line, err := encodeTask(read)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(line), "canary-of") != kept {
				t.Errorf("%s: %s", status, line)
			}
		}
	}
}

// FuzzTask decodes any line as a task: encoding and decoding the result must give the same task.
func FuzzTask(f *testing.F) {
	for _, line := range []string{
		`{"uid":4,"batchUid":null,"indexUid":"birds","status":"enqueued","type":{"documentImport":{"primary_key":"id","method":"ReplaceDocuments","documents_count":2,"allow_index_creation":true}},"details":{"DocumentAdditionOrUpdate":{"received_documents":2,"indexed_documents":null}},"enqueuedAt":"2026-01-02T03:04:05Z"}`,
		`{"uid":5,"batchUid":3,"indexUid":"birds","status":"succeeded","type":"documentClear","details":{"ClearAll":{"deleted_documents":4}},"enqueuedAt":"2026-01-02T03:04:06Z","startedAt":"2026-01-02T03:04:07Z","finishedAt":"2026-01-02T03:04:08Z"}`,
		`{"uid":6,"status":"failed","type":{"settings":{"settings":{"stopWords":null,"embedders":{"e":{"apiKey":"secret"}}},"is_deletion":true,"allow_index_creation":false}},"error":{"message":"m","code":"c","type":"t","link":"l"},"enqueuedAt":"2026-01-02T03:04:06Z"}`,
		`{"uid":7,"status":"canceled","canceledBy":9,"type":{"taskCancelation":{"query":"?","tasks":[58,48,0,0,1,0,0,0,0,0,0,0,16,0,0,0,0,0]}},"details":{"TaskCancelation":{"matched_tasks":1,"canceled_tasks":1,"original_filter":"?"}},"enqueuedAt":"2026-01-02T03:04:06Z"}`,
		`{"uid":8,"status":"succeeded","type":{"export":{"url":"u","api_key":"k","payload_size":"2 MB","indexes":{"a*":{"filter":"x","overrideSettings":true}}}},"details":{"Export":{"url":"u","api_key":"k","indexes":{}}},"enqueuedAt":"2026-01-02T03:04:06Z"}`,
		`{"uid":9,"status":"succeeded","type":{"upgradeDatabase":{"from":[1,41,0]}},"details":{"UpgradeDatabase":{"from":[1,41,0],"to":[1,42,0]}},"enqueuedAt":"2026-01-02T03:04:06Z"}`,
		`{"uid":1,"status":"processing","type":{"networkTopologyChange":{"x":1}},"enqueuedAt":"2026-01-02T03:04:06Z"}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		first, err := decodeTask(line)
		if err != nil {
			return
		}
		dumped, err := encodeTask(first)
		if err != nil {
			t.Skip() // a time that JSON cannot express
		}
		second, err := decodeTask(dumped)
		if err != nil {
			t.Fatalf("%s is written as %s: %v", line, dumped, err)
		}
		again, err := encodeTask(second)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(dumped, again) {
			t.Errorf("%s is written as\n%s and then as\n%s", line, dumped, again)
		}
	})
}

// FuzzOldTask decodes any line as a task of a dump of version 5: the result must be encodable as version 6.
func FuzzOldTask(f *testing.F) {
	for _, line := range []string{
		`{"id":0,"indexUid":"films","content":{"DocumentAddition":{"content_uuid":"bbbb","merge_strategy":"ReplaceDocuments","primary_key":null,"documents_count":1,"allow_index_creation":true}},"events":[{"Created":"2022-10-05T11:00:00Z"},{"Processing":"2022-10-05T11:00:01Z"},{"Succeeded":{"result":{"DocumentAddition":{"indexed_documents":1}},"timestamp":"2022-10-05T11:00:02Z"}}]}`,
		`{"id":1,"content":{"SettingsUpdate":{"index_uid":"films","settings":{"stopWords":["the"]},"is_deletion":false,"allow_index_creation":true}},"events":[{"Created":"2022-10-05T11:00:00Z"}]}`,
		`{"id":2,"content":{"Dump":{"uid":"20221005"}},"events":[]}`,
		`{"id":3,"content":"IndexDeletion","events":[{"Failed":{"error":{"message":"m","code":"index_not_found"},"timestamp":"2022-10-05T11:00:02Z"}}]}`,
	} {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		var l taskV5
		if json.Unmarshal(line, &l) != nil || l.ID == nil {
			return
		}
		read, _, err := l.task()
		if err != nil || read == nil {
			return
		}
		if _, err := encodeTask(read); err != nil && !strings.Contains(err.Error(), "year") {
			t.Errorf("%s cannot be written: %v", line, err)
		}
	})
}

// FuzzSnapshot unpacks any tar file as a snapshot: nothing may be written outside the data directory, or over one of its own files.
func FuzzSnapshot(f *testing.F) {
	for _, entries := range [][]entry{
		{{name: "VERSION", content: "svc 1\n"}, {name: "tasks/queue.db", content: "x"}, {name: "indexes/a/manifest", content: "y"}},
		{{name: "VERSION", content: "svc 1\n"}, {name: "indexes/../../x", content: "y"}},
		{{name: "VERSION", content: "svc 1\n"}, {name: "LOCK", content: "y"}, {name: "IMPORTING", content: "y"}},
	} {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, e := range entries {
			if err := w.WriteHeader(&tar.Header{Name: e.name, Size: int64(len(e.content)), Mode: 0o644}); err != nil {
				f.Fatal(err)
			}
			if _, err := io.WriteString(w, e.content); err != nil {
				f.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			inside := strings.HasPrefix(o.Name, "/data/") && path.Clean(o.Name) == o.Name || o.Name == "/data"
			if o.Kind.Changes() && (!inside || o.Name == "/data/VERSION" || o.Name == "/data/LOCK" || o.Name == "/data/IMPORTING") {
				t.Fatalf("%s", o)
			}
			return nil
		})
		if err := fsys.MkdirAll("/data"); err != nil {
			t.Fatal(err)
		}
		x := extraction{SnapshotImportOptions: &SnapshotImportOptions{FS: fsys, Place: PlaceIn("/data"), CheckVersion: isVersion("svc 1\n")}, dirs: []string{"/data"}}
		_ = eachFile(tar.NewReader(bytes.NewReader(b)), &meter{ctx: t.Context(), names: maxNames}, x.entry)
	})
}

// TestNamesAreBounded imports an archive with many empty entries, which is small, but whose names would take much memory.
func TestNamesAreBounded(t *testing.T) {
	long := strings.Repeat("x", maxNameBytes-20)
	pipe, w := io.Pipe()
	go func() {
		a := tar.NewWriter(w)
		for i := 0; ; i++ {
			if a.WriteHeader(&tar.Header{Name: fmt.Sprintf("%s/%d", long, i)}) != nil {
				return
			}
		}
	}()
	defer pipe.Close()
	err := eachFile(tar.NewReader(pipe), &meter{ctx: t.Context(), names: 1 << 20}, func(string, int64, io.Reader) error { return nil })
	if err == nil || !strings.Contains(err.Error(), "names of its entries") {
		t.Error(err)
	}
}
