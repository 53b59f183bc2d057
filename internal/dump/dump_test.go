package dump

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svc/internal/auth"
	"svc/internal/chat"
	"svc/internal/index"
	"svc/internal/sealedjson"
	"svc/internal/task"
	"svc/internal/vfs"
	"svc/internal/webhook"
)

// filled returns an instance with objects of every kind, whose last tasks are waiting.
func filled(t *testing.T) *instance {
	dir := filepath.Join(t.TempDir(), "data")
	in := open(t, dir, nil)
	in.run("books", update(t, `{"filterableAttributes":["year",{"attributePatterns":["tag*"],"features":{"facetSearch":false,"filter":{"equality":true,"comparison":true}}}],"stopWords":["the"],"synonyms":{"a":["b"]},"chat":{"description":"books"}}`), "")
	docs := `{"id":3,"title":"é\u0000","n":1.50,"z":{"a":[1e2,null]},"_geo":{"lat":1,"lng":2}}` + "\n" + `{"id":"b","title":"two"}` + "\n"
	in.run("books", add(docs), docs)
	in.run("books", task.UpdateIndex{}, "")
	in.run("empty", task.CreateIndex{PrimaryKey: "k"}, "")
	in.run("bare", task.CreateIndex{}, "")
	in.run("gone", task.CreateIndex{}, "")
	in.run("gone", task.DeleteIndex{}, "")
	in.run("books", task.DeleteDocuments{IDs: []string{"nothing", "b"}}, "")
	in.run("books", task.DeleteByFilter{Filter: json.RawMessage(`["year > 3"]`)}, "")
	in.run("", task.SwapIndexes{Swaps: []task.Swap{{Indexes: [2]string{"empty", "bare"}}}}, "")
	in.run("", task.DeleteTasks{Query: "?uids=7", Tasks: []uint32{7}}, "")
	in.run("", task.CancelTasks{Query: "?uids=*", Tasks: []uint32{0, 1, 2}}, "")
	if failed := in.wait(in.enqueue("none", task.ClearDocuments{}, "").UID); failed.Error == nil {
		t.Fatal("clearing no index succeeds")
	}
	name := "reader"
	_, err := in.keys.Create(auth.Key{UID: uuid.New(), Name: &name, Actions: []string{"search"}, Indexes: []string{"b*"}, ExpiresAt: moment.AddDate(1, 0, 0)})
	must(t, err)
	must(t, in.catalog.MoveAliases([]index.AliasMove{{Alias: "shelf", UID: "books"}, {Alias: "nothing", UID: "empty"}}))
	url, value := "https://hooks.test/", "Bearer in-clear"
	_, err = in.hooks.Create(webhook.Change{URL: &url, Headers: map[string]*string{"Authorization": &value}})
	must(t, err)
	key := "sk-in-clear-for-the-provider"
	for _, name := range []string{"help desk", "../up/50%25"} {
		_, err = in.o.Chats.Update(name, func(s *chat.Settings) error { s.APIKey = &key; return nil })
		must(t, err)
	}
	must(t, sealedjson.Write(vfs.OS, in.o.Place.Features, FeaturesVersion, []byte(`{"metrics":true,"network":false}`)))
	must(t, os.MkdirAll(filepath.Join(in.o.Place.Kept, rulesDir), 0o777))
	must(t, os.WriteFile(filepath.Join(in.o.Place.Kept, rulesDir, "000000000.json"), []byte(`{"uid":"r"}`), 0o666))
	in.close()

	// From here on only dumps run: other tasks wait behind one that never runs.
	in = open(t, dir, func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 })
	more := `{"id":9}` + "\n"
	metadata := "noted"
	c := add(more)
	c.Merge, c.SkipCreation, c.PrimaryKey = true, true, "id"
	in.enqueue("books", c, more)
	in.enqueue("books", task.AddDocuments{}, "")
	patch := add(`{"id":9,"set":{"a":1}}` + "\n" + `{"id":8,"unset":["a"]}` + "\n")
	patch.MayCreate, patch.Operations, patch.Atomic, patch.IfMissing = false, true, true, "create"
	in.enqueue("books", patch, `{"id":9,"set":{"a":1}}`+"\n"+`{"id":8,"unset":["a"]}`+"\n")
	in.enqueue("books", task.EditDocuments{Function: "doc.a = 1", Filter: json.RawMessage(`"a = 1"`), Context: json.RawMessage(`{"x":1}`)}, "")
	in.enqueue("books", update(t, `{"searchableAttributes":["title"],"embedders":{"e":{"source":"rest","url":"http://x.test","apiKey":"secret-secret-secret","dimensions":2,"request":"{{text}}","response":"{{embedding}}"}}}`), "")
	in.enqueue("books", task.UpdateIndex{NewUID: "tomes"}, "")
	in.enqueue("books", task.CompactIndex{}, "")
	in.enqueue("", task.ExportTo{URL: "http://b.test", APIKey: "another-secret-key", PayloadSize: 2_000_000, Indexes: map[string]task.ExportIndex{"*": {Filter: json.RawMessage("null")}}}, "")
	in.enqueue("", task.CreateSnapshot{}, "")
	in.enqueue("", task.Upgrade{From: "v1.41.0", To: "v1.42.1"}, "")
	in.enqueue("", task.ChangeTopology{State: json.RawMessage(`{"a":1}`), MovedDocuments: 3, Message: "m"}, "")
	in.enqueue("", task.CancelTasks{Query: "?uids=", Tasks: []uint32{}}, "")
	in.enqueue(task.RulesIndex, task.UpdateRule{UID: "r", Rule: json.RawMessage(`{"precedence":1}`)}, "")
	in.enqueue(task.RulesIndex, task.UpdateRule{UID: "r"}, "")
	in.enqueue(task.RulesIndex, task.ClearRules{}, "")
	_, err = in.queue.Enqueue(t.Context(), task.New{IndexUID: "books", Content: task.ClearDocuments{}, CustomMetadata: &metadata})
	must(t, err)
	return in
}

// dumpNow dumps an instance whose queue runs no tasks, and returns the path of the dump.
func dumpNow(t *testing.T, in *instance) string {
	t.Helper()
	own := in.enqueue("", in.createDump(), "")
	m := New(in.o)
	outcomes, err := m.dump(t.Context(), in.queue, []*task.Task{own}, func(int, index.Step) {})
	must(t, err)
	var d struct{ DumpUID string }
	must(t, json.Unmarshal(outcomes[0].Details, &d))
	if left, _ := filepath.Glob(in.o.Place.Work + "/spool*"); len(left) > 0 {
		t.Errorf("the dump leaves %q", left)
	}
	return m.dumpFile(d.DumpUID)
}

func TestLayout(t *testing.T) {
	in := filled(t)
	in.o.Rules = func() [][]byte { return [][]byte{[]byte(`{"uid":"q"}`)} } // beside a stored rule
	file := dumpNow(t, in)
	if got := filepath.Base(file); got != "20260304-050607008.dump" {
		t.Errorf("the dump is called %s", got)
	}
	names, contents := tarball(t, file)
	var listing strings.Builder
	for _, n := range names {
		listing.WriteString(n + "\n")
		switch {
		case strings.HasSuffix(n, "/"), n == keysName, n == webhooksName: // random UUIDs
		default:
			lines := strings.Split(strings.TrimSuffix(contents[n], "\n"), "\n")
			if n == batchesName {
				lines = withoutTrace(t, lines)
			}
			for _, line := range lines {
				listing.WriteString("\t" + uuids.ReplaceAllString(line, "UUID") + "\n")
			}
		}
	}
	golden := filepath.Join("testdata", "layout.txt")
	if os.Getenv("UPDATE_GOLDEN") != "" {
		must(t, os.MkdirAll("testdata", 0o777))
		must(t, os.WriteFile(golden, []byte(listing.String()), 0o666))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	a, b := strings.Split(string(want), "\n"), strings.Split(listing.String(), "\n")
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			t.Fatalf("the dump differs from %s (UPDATE_GOLDEN=1 writes it): line %d is\n%s\nwant\n%s", golden, i+1, b[i], a[i])
		}
	}
	if len(a) != len(b) {
		t.Errorf("the dump has %d lines, want the %d of %s (UPDATE_GOLDEN=1 writes it)", len(b), len(a), golden)
	}
}

// TestRoundTrip dumps an imported dump: everything except the task of the second dump must be the same.
func TestRoundTrip(t *testing.T) {
	first := filled(t)
	file := dumpNow(t, first)
	second := imported(t, file)
	again := dumpNow(t, second)
	names, want := tarball(t, file)
	newNames, got := tarball(t, again)
	if !slices.Equal(names, newNames) {
		t.Fatalf("entries %q, want %q", newNames, names)
	}
	for _, n := range names {
		a, b := strings.Split(want[n], "\n"), strings.Split(got[n], "\n")
		if n == tasksName {
			b = slices.Delete(b, len(b)-2, len(b)-1)
		}
		if n == batchesName {
			a, b = withoutTrace(t, a), withoutTrace(t, b)
		}
		if n == keysName {
			slices.Sort(a)
			slices.Sort(b)
		}
		for i := range max(len(a), len(b)) {
			var x, y string
			if i < len(a) {
				x = a[i]
			}
			if i < len(b) {
				y = b[i]
			}
			if x != y {
				t.Errorf("%s: line %d is\n%s\nwant\n%s", n, i+1, y, x)
			}
		}
	}

	// Compare the objects of the API, which the dump does not show.
	all := func(in *instance) (tasks []*task.Task) {
		must(t, in.queue.Each(func(t *task.Task) error { tasks = append(tasks, t); return nil }, func(*task.Batch) error { return nil }))
		return tasks
	}
	before, after := all(first), all(second)
	for i, x := range before[:len(before)-1] {
		y := after[i]
		if string(x.AppendJSON(nil)) != string(y.AppendJSON(nil)) {
			t.Errorf("task %d is\n%s\nwant\n%s", x.UID, y.AppendJSON(nil), x.AppendJSON(nil))
		}
		a, isAddition := x.Content.(task.AddDocuments)
		b, _ := y.Content.(task.AddDocuments)
		if isAddition {
			a.File, b.File, a.Size, b.Size, a.Sum, b.Sum = "", "", 0, 0, 0, 0
			if a != b {
				t.Errorf("task %d: content %+v, want %+v", x.UID, b, a)
			}
		} else if _, ok := x.Content.(task.UpdateSettings); !ok && !reflect.DeepEqual(x.Content, y.Content) {
			t.Errorf("task %d: content %+v, want %+v", x.UID, y.Content, x.Content)
		}
	}
	for _, uid := range first.catalog.UIDs() {
		a, b := held(first.catalog.Get(uid).View()), held(second.catalog.Get(uid).View())
		if !a.CreatedAt.Equal(b.CreatedAt) || !a.UpdatedAt.Equal(b.UpdatedAt) || string(a.Settings.Encode()) != string(b.Settings.Encode()) {
			t.Errorf("index %s has other times or settings", uid)
		}
		a.Release()
		b.Release()
	}
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`)

// withoutTrace removes measured times from lines of batches.
func withoutTrace(t *testing.T, lines []string) []string {
	t.Helper()
	out := slices.Clone(lines)
	for i, l := range lines {
		if l == "" {
			continue
		}
		var b struct {
			Stats map[string]json.RawMessage `json:"stats"`
		}
		must(t, json.Unmarshal([]byte(l), &b))
		if trace := b.Stats["progressTrace"]; trace != nil {
			out[i] = strings.Replace(l, `,"progressTrace":`+string(trace), "", 1)
		}
	}
	return out
}

// held returns a view that must not fail.
func held(v *index.View, err error) *index.View {
	if err != nil {
		panic(err)
	}
	return v
}
