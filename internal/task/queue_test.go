package task

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"svc/internal/settings"
	"svc/internal/vfs"
)

// testOptions returns options of a queue in a new directory, over a fake engine.
func testOptions(t testing.TB) (Options, *fakeEngine) {
	e := newFake(vfs.OS)
	return Options{Dir: t.TempDir(), MaxBatchTasks: -1, MaxBatchBytes: -1, noSync: true, engine: e}, e
}

func openQueue(t testing.TB, o Options) *Queue {
	t.Helper()
	q, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { q.Close() })
	return q
}

func enqueue(t testing.TB, q *Queue, n New) *Task {
	t.Helper()
	task, err := q.Enqueue(context.Background(), n)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

// adding returns an addition of documents with these ids.
func adding(t testing.TB, q *Queue, uid string, c AddDocuments, ids ...string) New {
	t.Helper()
	p, err := q.NewPayload()
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		fmt.Fprintf(p, "{\"id\":%q}\n", id)
	}
	c.Documents = len(ids)
	return New{IndexUID: uid, Content: c, Payload: p}
}

func wait(t testing.TB, q *Queue, uid uint32) *Task {
	t.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		task, err := q.Task(uid, nil)
		if err != nil {
			t.Fatal(err)
		}
		if task.Status.Finished() {
			return task
		}
	}
	t.Fatalf("task %d does not finish", uid)
	return nil
}

func mustUpdate(t testing.TB, body string) *settings.Update {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(body), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestATaskOfEachKindThatRunsHere(t *testing.T) {
	o, e := testOptions(t)
	q := openQueue(t, o)
	steps := []struct {
		new     New
		status  Status
		code    string
		before  string
		details string
	}{
		{New{IndexUID: "a", Content: CreateIndex{PrimaryKey: "id"}}, Succeeded, "", `{"primaryKey":"id"}`, `{"primaryKey":"id"}`},
		{New{IndexUID: "a", Content: CreateIndex{}}, Failed, "index_already_exists", `{"primaryKey":null}`, `{"primaryKey":null}`},
		{adding(t, q, "a", AddDocuments{}, "1", "2"), Succeeded, "", `{"receivedDocuments":2,"indexedDocuments":null}`, `{"receivedDocuments":2,"indexedDocuments":2}`},
		{adding(t, q, "a", AddDocuments{EmptyKey: true}, "1"), Failed, "index_primary_key_already_exists", `{"receivedDocuments":1,"indexedDocuments":null}`, `{"receivedDocuments":1,"indexedDocuments":0}`},
		{adding(t, q, "b", AddDocuments{EmptyKey: true, MayCreate: true}, "1"), Failed, "missing_document_id", `{"receivedDocuments":1,"indexedDocuments":null}`, `{"receivedDocuments":1,"indexedDocuments":0}`},
		{adding(t, q, "b", AddDocuments{}, "1"), Failed, "index_not_found", `{"receivedDocuments":1,"indexedDocuments":null}`, `{"receivedDocuments":1,"indexedDocuments":0}`},
		{adding(t, q, "b", AddDocuments{MayCreate: true}, "bad"), Failed, "invalid_document_id", `{"receivedDocuments":1,"indexedDocuments":null}`, `{"receivedDocuments":1,"indexedDocuments":0}`},
		{New{IndexUID: "a", Content: DeleteDocuments{IDs: []string{"1", "x"}}}, Succeeded, "", `{"providedIds":2,"deletedDocuments":null,"originalFilter":null}`, `{"providedIds":2,"deletedDocuments":1,"originalFilter":null}`},
		{New{IndexUID: "a", Content: DeleteByFilter{json.RawMessage(`["x = \"é\"" ]`)}}, Succeeded, "", `{"providedIds":0,"deletedDocuments":null,"originalFilter":"[\"x = \\\"é\\\"\"]"}`, `{"providedIds":0,"deletedDocuments":1,"originalFilter":"[\"x = \\\"é\\\"\"]"}`},
		{New{IndexUID: "a", Content: ClearDocuments{}}, Succeeded, "", `{"deletedDocuments":null}`, `{"deletedDocuments":0}`},
		{New{IndexUID: "a", Content: UpdateSettings{Update: mustUpdate(t, `{"stopWords":["the"],"synonyms":null}`)}}, Succeeded, "", `{"stopWords":["the"],"synonyms":null}`, `{"stopWords":["the"],"synonyms":null}`},
		{New{IndexUID: "a", Content: UpdateIndex{}}, Succeeded, "", `{"primaryKey":null}`, `{"primaryKey":null}`},
		{New{IndexUID: "a", Content: UpdateIndex{PrimaryKey: "k", NewUID: "c"}}, Succeeded, "", `{"primaryKey":"k","oldIndexUid":"a","newIndexUid":"c"}`, `{"primaryKey":"k","oldIndexUid":"a","newIndexUid":"c"}`},
		{New{IndexUID: "b", Content: UpdateIndex{NewUID: "c"}}, Failed, "index_already_exists", `{"primaryKey":null,"oldIndexUid":"b","newIndexUid":"c"}`, `{"primaryKey":null,"oldIndexUid":"b","newIndexUid":"c"}`},
		{New{IndexUID: "none", Content: UpdateIndex{}}, Failed, "index_not_found", `{"primaryKey":null}`, `{"primaryKey":null}`},
		{New{Content: SwapIndexes{[]Swap{{Indexes: [2]string{"b", "c"}}}}}, Succeeded, "", `{"swaps":[{"indexes":["b","c"],"rename":false}]}`, `{"swaps":[{"indexes":["b","c"],"rename":false}]}`},
		{New{Content: SwapIndexes{}}, Succeeded, "", `{"swaps":[]}`, `{"swaps":[]}`},
		{New{IndexUID: "b", Content: CompactIndex{}}, Succeeded, "", `{}`, `{"preCompactionSize":"1.9073486328125 MiB","postCompactionSize":"1 KiB"}`},
		{New{IndexUID: "none", Content: CompactIndex{}}, Failed, "index_not_found", `{}`, `{}`},
		{New{Content: CreateSnapshot{}}, Failed, "internal", "", ""},
		{New{IndexUID: "b", Content: DeleteIndex{}}, Succeeded, "", `{"deletedDocuments":null}`, `{"deletedDocuments":0}`},
		{New{IndexUID: "b", Content: DeleteIndex{}}, Failed, "index_not_found", `{"deletedDocuments":null}`, `{"deletedDocuments":0}`},
	}
	for i, s := range steps {
		task := enqueue(t, q, s.new)
		if string(task.Details) != s.before {
			t.Errorf("task %d, enqueued: details %s, want %s", i, task.Details, s.before)
		}
		task = wait(t, q, task.UID)
		code := ""
		if task.Error != nil {
			code = string(task.Error.Code)
		}
		if task.Status != s.status || code != s.code || string(task.Details) != s.details {
			t.Errorf("task %d: %v %q %s, want %v %q %s (%v)", i, task.Status, code, task.Details, s.status, s.code, s.details, task.Error)
		}
	}
	if _, there := e.info("c"); !there {
		t.Error("index c is missing")
	}
	files, err := os.ReadDir(filepath.Join(o.Dir, "payloads"))
	if err != nil || len(files) != 0 {
		t.Errorf("payload files left: %v %v", files, err)
	}
}

func TestTheEndOfBatchesIsLogged(t *testing.T) {
	o, _ := testOptions(t)
	var logged bytes.Buffer
	o.Logger = slog.New(slog.NewTextHandler(&logged, nil))
	q := openQueue(t, o)
	for _, n := range []New{
		{IndexUID: "a", Content: CreateIndex{}},
		{IndexUID: "a", Content: CreateIndex{}},
		{Content: CreateSnapshot{}},
	} {
		wait(t, q, enqueue(t, q, n).UID)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(logged.String()), "\n")
	for i, want := range [][]string{
		{"level=INFO", `msg="batch finished" batch=0 type=indexCreation index=a tasks=1 took=`},
		{"level=INFO", "batch=1", "task=1", "there is `a`", "failed=1"},
		{"level=WARN", "batch=2", "type=snapshotCreation tasks=1", "failed=1"}, // there is no executor for snapshots
	} {
		for _, part := range want {
			if i >= len(lines) || !strings.Contains(lines[i], part) {
				t.Errorf("line %d has no %s:\n%s", i, part, logged.String())
			}
		}
	}
}

func TestTheObjectsOfTheAPI(t *testing.T) {
	o, _ := testOptions(t)
	now := time.Date(2026, 11, 21, 10, 0, 0, 405652140, time.UTC)
	o.Now = func() time.Time { now = now.Add(1500 * time.Millisecond); return now }
	q := openQueue(t, o)
	meta := "m\"<"
	n := adding(t, q, "films", AddDocuments{MayCreate: true}, "1", "2")
	n.CustomMetadata = &meta
	task := enqueue(t, q, n)
	if got, want := string(task.Summary()), `{"taskUid":0,"indexUid":"films","status":"enqueued","type":"documentAdditionOrUpdate","enqueuedAt":"2026-11-21T10:00:01.90565214Z","customMetadata":"m\"<"}`; got != want {
		t.Errorf("summary\n%s\nwant\n%s", got, want)
	}
	wait(t, q, 0)
	list, err := q.listTasks(Filter{Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"results":[{"uid":0,"batchUid":0,"indexUid":"films","status":"succeeded","type":"documentAdditionOrUpdate","canceledBy":null,` +
		`"details":{"receivedDocuments":2,"indexedDocuments":2},"error":null,"duration":"PT`
	if !strings.HasPrefix(string(got), want) || !strings.HasSuffix(string(got), `Z","customMetadata":"m\"\u003c"}],"total":1,"limit":20,"from":0,"next":null}`) {
		t.Errorf("list %s", got)
	}
	batches, err := q.listBatches(Filter{Limit: 20})
	if err != nil {
		t.Fatal(err)
	}
	b := batches.Results[0].AppendJSON(nil)
	want = `{"uid":0,"progress":null,"details":{"receivedDocuments":2,"indexedDocuments":2},"stats":{"totalNbTasks":1,"status":{"succeeded":1},` +
		`"types":{"documentAdditionOrUpdate":1},"indexUids":{"films":1},"progressTrace":{"processing tasks > indexing":"`
	if !strings.HasPrefix(string(b), want) || !strings.Contains(string(b), `"duration":"PT`) || !strings.HasSuffix(string(b), `"batchStrategy":"no other task was waiting"}`) {
		t.Errorf("batch %s", b)
	}
}
