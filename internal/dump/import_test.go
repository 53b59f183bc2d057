package dump

import (
	"archive/tar"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/document"
	"svc/internal/task"
	"svc/internal/vfs"
)

// minimal returns the required entries of a dump, with one index.
func minimal() []entry {
	return []entry{
		{name: "./metadata.json", content: `{"dumpVersion":"V6","dbVersion":"1.42.1","dumpDate":"2026-01-02T03:04:05Z"}`},
		{name: "keys.jsonl"},
		{name: "indexes/x/documents.jsonl", content: "{\"id\":1}\n{\"id\":2}"},
		{name: "indexes/x/settings.json", content: `{"stopWords":["a"],"tomorrow":{}}`},
		{name: "indexes/x/metadata.json", content: `{"uid":"x","primaryKey":"id","createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-03T03:04:05Z"}`},
		{name: "tasks/queue.jsonl", content: `{"uid":7,"batchUid":5,"indexUid":"x","status":"succeeded","type":{"settings":{"settings":{"tomorrow":1},"is_deletion":false,"allow_index_creation":true}},"details":null,"enqueuedAt":"2026-01-02T03:04:05Z"}` + "\n" +
			`{"uid":8,"batchUid":6,"indexUid":"x","status":"processing","type":"documentClear","enqueuedAt":"2026-01-02T03:04:05Z","startedAt":"2026-01-02T03:04:05Z"}` + "\n"},
		{name: "batches/queue.jsonl", content: `{"uid":5,"details":{},"stats":{"totalNbTasks":1,"status":{"succeeded":1},"types":{"settingsUpdate":1},"indexUids":{"x":1}},"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z","enqueuedAt":null}` + "\n" +
			`{"uid":4,"stats":{"totalNbTasks":1},"startedAt":"2026-01-02T03:04:05Z","finishedAt":"2026-01-02T03:04:05Z"}`},
		{name: "strange/thing", content: "?"},
	}
}

// with replaces or adds entries.
func with(entries []entry, changed ...entry) []entry {
	for _, c := range changed {
		if i := slices.IndexFunc(entries, func(e entry) bool { return e.name == c.name }); i >= 0 {
			entries[i] = c
		} else {
			entries = append(entries, c)
		}
	}
	return entries
}

func without(entries []entry, name string) []entry {
	return slices.DeleteFunc(entries, func(e entry) bool { return e.name == name })
}

func TestImportMinimal(t *testing.T) {
	in := imported(t, writeTarball(t, minimal()...))
	v := held(in.catalog.Get("x").View())
	defer v.Release()
	if v.Documents() != 2 || v.PrimaryKey != "id" || !slices.Equal(v.Settings.StopWords, []string{"a"}) || v.CreatedAt.Day() != 2 || v.UpdatedAt.Day() != 3 {
		t.Errorf("the index has %d documents, key %q, stop words %q, times %s and %s", v.Documents(), v.PrimaryKey, v.Settings.StopWords, v.CreatedAt, v.UpdatedAt)
	}
	if n := len(in.keys.List()); n != 4 {
		t.Errorf("%d keys, want the default ones", n)
	}
	ended, err := in.queue.Task(7, nil)
	must(t, err)
	if *ended.BatchUID != 5 || ended.Status != task.Succeeded {
		t.Errorf("task 7: %s", ended.AppendJSON(nil))
	}
	waiting, err := in.queue.Task(8, nil)
	must(t, err)
	if waiting.Status != task.Enqueued || waiting.BatchUID != nil || !waiting.StartedAt.IsZero() {
		t.Errorf("task 8: %s", waiting.AppendJSON(nil))
	}
	if _, err := in.queue.Batch(4, nil); err == nil {
		t.Error("a batch without tasks was imported")
	}
	if next := in.enqueue("x", task.ClearDocuments{}, ""); next.UID != 9 {
		t.Errorf("the next task has uid %d, want 9", next.UID)
	}
}

func TestImportRefuses(t *testing.T) {
	addition := `{"uid":0,"indexUid":"x","status":"enqueued","type":{"documentImport":{"primary_key":null,"method":"ReplaceDocuments","documents_count":2,"allow_index_creation":true}},"enqueuedAt":"2026-01-02T03:04:05Z"}`
	for name, tt := range map[string]struct {
		entries []entry
		want    string // part of the error
	}{
		"no metadata":       {without(minimal(), "./metadata.json"), "metadata.json"},
		"no keys":           {without(minimal(), "keys.jsonl"), "keys.jsonl"},
		"no tasks":          {without(minimal(), "tasks/queue.jsonl"), "tasks/queue.jsonl"},
		"no settings":       {without(minimal(), "indexes/x/settings.json"), "indexes/x/settings.json is missing"},
		"no documents":      {without(minimal(), "indexes/x/documents.jsonl"), "indexes/x/documents.jsonl is missing"},
		"no index metadata": {without(minimal(), "indexes/x/metadata.json"), "indexes/x/metadata.json is missing"},
		"old":               {with(minimal(), entry{name: "./metadata.json", content: `{"dumpVersion":"V2"}`}), "version V2"},
		"new":               {with(minimal(), entry{name: "./metadata.json", content: `{"dumpVersion":"V7"}`}), `version "V7"`},
		"uid":               {with(minimal(), entry{name: "indexes/x/metadata.json", content: `{"uid":"../x","createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z"}`}), "not a valid index uid"},
		"two of one uid":    {with(minimal(), entry{name: "indexes/y/metadata.json", content: `{"uid":"x","createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-02T03:04:05Z"}`}, entry{name: "indexes/y/settings.json", content: "{}"}, entry{name: "indexes/y/documents.jsonl"}), "two"},
		"bad document":      {with(minimal(), entry{name: "indexes/x/documents.jsonl", content: `{"id":1}` + "\n{"}), "document 2"},
		"no id":             {with(minimal(), entry{name: "indexes/x/documents.jsonl", content: `{"a":1}`}), "documents"},
		"bad settings":      {with(minimal(), entry{name: "indexes/x/settings.json", content: `{"stopWords":3}`}), "settings"},
		"status":            {with(minimal(), entry{name: "tasks/queue.jsonl", content: `{"uid":0,"status":"done","type":"documentClear","enqueuedAt":"2026-01-02T03:04:05Z"}`}), `"done" is not a status`},
		"type":              {with(minimal(), entry{name: "tasks/queue.jsonl", content: `{"uid":0,"status":"succeeded","type":"tomorrow","enqueuedAt":"2026-01-02T03:04:05Z"}`}), "type tomorrow"},
		"no date":           {with(minimal(), entry{name: "tasks/queue.jsonl", content: `{"uid":0,"status":"succeeded","type":"documentClear"}`}), "enqueuedAt"},
		"twice":             {with(minimal(), entry{name: "tasks/queue.jsonl", content: strings.Repeat(`{"uid":3,"status":"succeeded","type":"documentClear","enqueuedAt":"2026-01-02T03:04:05Z"}`+"\n", 2)}), "two tasks 3"},
		"missing payload":   {with(minimal(), entry{name: "tasks/queue.jsonl", content: addition}), "the documents of the enqueued task 0 are missing"},
		"short payload":     {with(minimal(), entry{name: "tasks/queue.jsonl", content: addition}, entry{name: "tasks/update_files/0.jsonl", content: `{"id":1}`}), "has 2 documents, but 1"},
		"key":               {with(minimal(), entry{name: "keys.jsonl", content: `{"uid":"x"}`}), "keys.jsonl: line 1"},
		"up":                {with(minimal(), entry{name: "../x", content: "x"}), `"../x"`},
		"up inside":         {with(minimal(), entry{name: "tasks/../../x", content: "x"}), `"tasks/../../x"`},
		"absolute":          {with(minimal(), entry{name: "/etc/x", content: "x"}), `"/etc/x"`},
		"backslash":         {with(minimal(), entry{name: `a\b`, content: "x"}), "archives of svc never have"},
		"symbolic link":     {with(minimal(), entry{name: "link", kind: tar.TypeSymlink, link: "/etc/passwd"}), "neither a file nor a directory"},
		"hard link":         {with(minimal(), entry{name: "link", kind: tar.TypeLink, link: "keys.jsonl"}), "neither a file nor a directory"},
		"one name twice":    {append(minimal(), entry{name: "./keys.jsonl"}), "twice"},
		"set of all tasks":  {with(minimal(), entry{name: "tasks/queue.jsonl", content: `{"uid":0,"status":"succeeded","type":{"tasksDeletion":{"query":"?","tasks":` + allTasks(t) + `}},"enqueuedAt":"2026-01-02T03:04:05Z"}`}), "are the most"},
		"damaged set":       {with(minimal(), entry{name: "tasks/queue.jsonl", content: `{"uid":0,"status":"succeeded","type":{"tasksDeletion":{"query":"?","tasks":[58,48,0,0,1]}},"enqueuedAt":"2026-01-02T03:04:05Z"}`}), "set of tasks"},
		"chat source":       {with(minimal(), entry{name: "chat-completions-settings/w.json", content: `{"source":"gemini"}`}), "chat-completions-settings/w.json"},
		"chat settings":     {with(minimal(), entry{name: "chat-completions-settings/w.json", content: `[]`}), "chat-completions-settings/w.json"},
		"webhook":           {with(minimal(), entry{name: "webhooks.json", content: `{"webhooks":{"00000000-0000-0000-0000-000000000000":{"url":"http://x.test"}}}`}), "webhooks.json"},
		"V5, no indexes":    {without(v5(""), "index_uuids/data.jsonl"), "does not have the index of indexes/aaaa"},
		"V5, one less":      {with(v5(""), entry{name: "indexes/bbbb/documents.jsonl"}), "does not have the index of indexes/bbbb"},
		"V5, one UUID":      {with(v5(""), entry{name: "index_uuids/data.jsonl", content: strings.Repeat(`{"uid":"films","index_meta":{"uuid":"aaaa"}}`+"\n", 2)}), "the same UUID aaaa"},
		"network":           {with(minimal(), entry{name: "network.json", content: `[]`}), "network.json"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "data")
			err := importDump(t.Context(), dir, writeTarball(t, tt.entries...))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one with %q", err, tt.want)
			}
		})
	}
}

// allTasks returns the set of all uids, which takes few bytes.
func allTasks(t *testing.T) string {
	t.Helper()
	s := allUIDs(t)
	b := make([]int, len(s))
	for i, x := range s {
		b[i] = int(x)
	}
	text, err := json.Marshal(b)
	must(t, err)
	return string(text)
}

// TestBombs reads small archives that unpack to huge ones. The counters start close to their limits.
func TestBombs(t *testing.T) {
	packed := &countingReader{n: 10}
	m := &meter{ctx: t.Context(), packed: packed, unpacked: freeBytes}
	if _, err := io.Copy(io.Discard, m.reader(bytes.NewReader(make([]byte, 1<<20)))); err == nil {
		t.Error("ten bytes that unpack to a gigabyte are accepted")
	}
	packed.n = freeBytes / 10
	if _, err := io.Copy(io.Discard, m.reader(bytes.NewReader(make([]byte, 1<<20)))); err != nil {
		t.Errorf("unpacking to ten times the size: %v", err)
	}
	long := &lineLimit{r: io.LimitReader(zeros{}, 1<<20), line: maxLineBytes - 1<<10}
	if _, err := io.Copy(io.Discard, long); err == nil {
		t.Error("an endless line is accepted")
	}
	u := newUnpacker(vfs.NewMem(), "/", nil)
	if err := u.entry("metadata.json", maxSmall+1, strings.NewReader("{}")); err == nil {
		t.Error("a huge metadata file is accepted")
	}
}

// TestManySettings imports indexes whose settings together are larger than the memory for entries. Those of the first index stay in memory,
// and those of the others wait in files.
func TestManySettings(t *testing.T) {
	defer func(sum, settings int) { maxSmallSum, settingsMemory = sum, settings }(maxSmallSum, settingsMemory)
	maxSmallSum, settingsMemory = 4000, 1500
	dump := minimal()
	uids := []string{"a", "b", "c", "d", "e"}
	for _, uid := range uids {
		dump = append(dump,
			entry{name: "indexes/" + uid + "/documents.jsonl"},
			entry{name: "indexes/" + uid + "/settings.json", content: `{"stopWords":["` + strings.Repeat(uid, 1000) + `"]}`},
			entry{name: "indexes/" + uid + "/metadata.json", content: `{"uid":"` + uid + `","createdAt":"2026-01-02T03:04:05Z","updatedAt":"2026-01-03T03:04:05Z"}`})
	}
	in := imported(t, writeTarball(t, dump...))
	for _, uid := range uids {
		if words := in.catalog.Get(uid).Outline().Settings.StopWords; !slices.Equal(words, []string{strings.Repeat(uid, 1000)}) {
			t.Errorf("index %s has the stop words %.20q", uid, words)
		}
	}
	u := newUnpacker(vfs.NewMem(), "/", nil)
	if err := u.entry("indexes/a/settings.json", maxSmall+1, strings.NewReader("{}")); err == nil {
		t.Error("huge settings are accepted")
	}
}

// TestLargeDocuments unpacks documents that are too large for memory, and one that is too large for an index.
func TestLargeDocuments(t *testing.T) {
	defer func(n int) { document.MaxBytes = n }(document.MaxBytes)
	document.MaxBytes = 4 << 20
	for _, tt := range []struct {
		bytes   int
		refused bool
	}{{3 << 20, false}, {5 << 20, true}} {
		mem := vfs.NewMem()
		must(t, mem.MkdirAll("w"))
		u := newUnpacker(mem, "w", nil)
		line := `{"id":1,"x":"` + strings.Repeat("x", tt.bytes) + "\"}\n"
		err := u.documents("i", strings.NewReader(line+`{"id":2}`))
		if tt.refused != (err != nil) || !tt.refused && u.out.documents["i"].count != 2 {
			t.Errorf("%d bytes: %+v, %v", tt.bytes, u.out.documents["i"], err)
		}
		if names, err := mem.List("w"); err != nil || len(names) != 1 || u.files < 2 {
			t.Errorf("%d bytes: left %v (%v), made %d files", tt.bytes, names, err, u.files)
		}
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// TestTruncated truncates a dump at many places, each of which must give an error.
func TestTruncated(t *testing.T) {
	whole, err := os.ReadFile(writeTarball(t, minimal()...))
	must(t, err)
	for _, cut := range []int{0, 5, 20, len(whole) / 2, len(whole) - 9, len(whole) - 1} {
		name := filepath.Join(t.TempDir(), "cut.dump")
		must(t, os.WriteFile(name, whole[:cut], 0o666))
		if err := importDump(t.Context(), filepath.Join(t.TempDir(), "data"), name); err == nil {
			t.Errorf("a dump cut to %d of %d bytes is imported", cut, len(whole))
		}
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)-6] ^= 1 // the checksum
	name := filepath.Join(t.TempDir(), "flipped.dump")
	must(t, os.WriteFile(name, flipped, 0o666))
	if err := importDump(t.Context(), filepath.Join(t.TempDir(), "data"), name); err == nil {
		t.Error("a dump with a wrong checksum is imported")
	}
}

func TestImportCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := importDump(ctx, filepath.Join(t.TempDir(), "data"), writeTarball(t, minimal()...))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

func v5(tasks string) []entry {
	return []entry{
		{name: "metadata.json", content: `{"dumpVersion":"V5","dbVersion":"0.29.0","indexDbSize":1,"updateDbSize":1,"dumpDate":"2022-10-05T11:00:00Z"}`},
		{name: "instance-uid", content: "9e15e977-f2ae-4761-943f-1eaf75fd736d"},
		{name: "keys", content: `{"description":"d","name":"n","uid":"9e15e977-f2ae-4761-943f-1eaf75fd736d","actions":["search","yesterday"],"indexes":["*"],"expires_at":null,"created_at":"2022-10-05T11:00:00Z","updated_at":"2022-10-05T11:00:00Z"}` + "\n"},
		{name: "index_uuids/data.jsonl", content: `{"uid":"films","index_meta":{"uuid":"aaaa","creation_task_id":0}}` + "\n"},
		{name: "indexes/aaaa/meta.json", content: `{"settings":{"rankingRules":["words","wordsPosition","typo"],"stopWords":["the"]},"primary_key":"id"}`},
		{name: "indexes/aaaa/documents.jsonl", content: `{"id":1}` + "\n"},
		{name: "updates/data.jsonl", content: tasks},
		{name: "updates/updates_files/bbbb", content: `{"id":2}` + "\n"},
	}
}

func TestImportV5(t *testing.T) {
	in := imported(t, writeTarball(t, v5(`{"id":4,"content":{"Dump":{"uid":"20221005-110000"}},"events":[{"Created":"2022-10-05T10:05:00Z"},{"Processing":"2022-10-05T10:05:01Z"}]}
{"id":3,"content":{"DocumentAddition":{"index_uid":"films","content_uuid":"bbbb","merge_strategy":"UpdateDocuments","primary_key":null,"documents_count":1,"allow_index_creation":true}},"events":[{"Created":"2022-10-05T10:04:00Z"},{"Batched":{"timestamp":"2022-10-05T10:04:01Z","batch_id":3}},{"Processing":"2022-10-05T10:04:02Z"}]}
{"id":2,"content":{"DocumentDeletion":{"index_uid":"films","deletion":{"Ids":["a"]}}},"events":[{"Created":"2022-10-05T10:03:00Z"},{"Failed":{"error":{"message":"m","code":"index_not_found","type":"invalid_request","link":"l"},"timestamp":"2022-10-05T10:03:09Z"}}]}
{"id":1,"content":{"SettingsUpdate":{"index_uid":"films","settings":{"stopWords":["the"]},"is_deletion":false,"allow_index_creation":true}},"events":[{"Created":"2022-10-05T10:02:00Z"},{"Succeeded":{"result":"Other","timestamp":"2022-10-05T10:02:09Z"}}]}
{"id":0,"content":{"DocumentAddition":{"index_uid":"films","content_uuid":"cccc","merge_strategy":"ReplaceDocuments","primary_key":"id","documents_count":1,"allow_index_creation":true}},"events":[{"Created":"2022-10-05T10:01:00Z"},{"Processing":"2022-10-05T10:01:02Z"},{"Succeeded":{"result":{"DocumentAddition":{"indexed_documents":1}},"timestamp":"2022-10-05T10:01:09Z"}}]}
`)...))
	v := held(in.catalog.Get("films").View())
	defer v.Release()
	if v.Documents() != 1 || len(v.Settings.RankingRules) != 2 || v.CreatedAt.Minute() != 1 || v.UpdatedAt.Minute() != 2 {
		t.Errorf("the index has %d documents, rules %v, times %s and %s", v.Documents(), v.Settings.RankingRules, v.CreatedAt, v.UpdatedAt)
	}
	if k := in.keys.List(); len(k) != 1 || !slices.Equal(k[0].Actions, []string{"search"}) {
		t.Errorf("keys %v", k)
	}
	for uid, want := range []string{
		`{"uid":0,"batchUid":null,"indexUid":"films","status":"succeeded","type":"documentAdditionOrUpdate","canceledBy":null,"details":{"receivedDocuments":1,"indexedDocuments":1},"error":null,"duration":"PT7S","enqueuedAt":"2022-10-05T10:01:00Z","startedAt":"2022-10-05T10:01:02Z","finishedAt":"2022-10-05T10:01:09Z"}`,
		`{"uid":1,"batchUid":null,"indexUid":"films","status":"succeeded","type":"settingsUpdate","canceledBy":null,"details":{"stopWords":["the"]},"error":null,"duration":"PT0S","enqueuedAt":"2022-10-05T10:02:00Z","startedAt":"2022-10-05T10:02:09Z","finishedAt":"2022-10-05T10:02:09Z"}`,
		`{"uid":2,"batchUid":null,"indexUid":"films","status":"failed","type":"documentDeletion","canceledBy":null,"details":{"providedIds":1,"deletedDocuments":0,"originalFilter":null},"error":{"message":"m","code":"index_not_found","type":"invalid_request","link":"/docs/errors#index_not_found"},"duration":"PT0S","enqueuedAt":"2022-10-05T10:03:00Z","startedAt":"2022-10-05T10:03:09Z","finishedAt":"2022-10-05T10:03:09Z"}`,
		`{"uid":3,"batchUid":null,"indexUid":"films","status":"enqueued","type":"documentAdditionOrUpdate","canceledBy":null,"details":{"receivedDocuments":1,"indexedDocuments":null},"error":null,"duration":null,"enqueuedAt":"2022-10-05T10:04:00Z","startedAt":null,"finishedAt":null}`,
		`{"uid":4,"batchUid":null,"indexUid":null,"status":"succeeded","type":"dumpCreation","canceledBy":null,"details":{"dumpUid":"20221005-110000"},"error":null,"duration":"PT0S","enqueuedAt":"2022-10-05T10:05:00Z","startedAt":"2022-10-05T10:05:01Z","finishedAt":"2022-10-05T10:05:01Z"}`,
	} {
		got, err := in.queue.Task(uint32(uid), nil)
		must(t, err)
		if string(got.AppendJSON(nil)) != want {
			t.Errorf("task %d is\n%s\nwant\n%s", uid, got.AppendJSON(nil), want)
		}
	}
	r, err := in.queue.Documents(3)
	must(t, err)
	defer r.Close()
	if b, _ := io.ReadAll(r); string(b) != `{"id":2}`+"\n" {
		t.Errorf("the payload is %q", b)
	}
}

func TestImportV4(t *testing.T) {
	entries := with(v5(`{"id":1,"index_uid":"films","content":{"DocumentDeletion":"Clear"},"events":[{"Created":"2022-10-05T10:01:00Z"},{"Succeded":{"result":{"DocumentDeletion":{"deleted_documents":5}},"timestamp":"2022-10-05T10:01:09Z"}}]}`+"\n"),
		entry{name: "metadata.json", content: `{"dumpVersion":"V4","dbVersion":"0.27.0"}`},
		entry{name: "keys", content: `{"description":"d","id":[1,2,3],"actions":["search","dumps.get"],"indexes":["*"],"expires_at":null,"created_at":"2022-10-05T11:00:00Z","updated_at":"2022-10-05T11:00:00Z"}` + "\n"})
	in := imported(t, writeTarball(t, entries...))
	if k := in.keys.List(); len(k) != 1 || *k[0].Description != "d" || !slices.Contains(k[0].Actions, "search") {
		t.Errorf("keys %v", k)
	}
	got, err := in.queue.Task(1, nil)
	must(t, err)
	if string(got.Details) != `{"deletedDocuments":5}` || got.Status != task.Succeeded {
		t.Errorf("task 1: %s", got.AppendJSON(nil))
	}
}

func allUIDs(t *testing.T) []byte {
	t.Helper()
	set := roaring.New()
	set.AddRange(0, 1<<32)
	set.RunOptimize()
	b, err := set.ToBytes()
	must(t, err)
	return b
}
