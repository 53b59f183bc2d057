package task

import (
	"encoding/json"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/settings"
)

// paused opens a queue whose scheduler does not run: tests call turn.
func paused(t testing.TB, o Options) *Queue {
	t.Helper()
	q, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	q.done.Add(1)
	go q.commit()
	t.Cleanup(func() {
		if q.ctx.Err() == nil {
			q.Close()
		}
	})
	return q
}

// drain runs batches until none is waiting.
func drain(t testing.TB, q *Queue) {
	t.Helper()
	for {
		ran, _, err := q.turn()
		if err != nil {
			t.Fatal(err)
		}
		if !ran {
			return
		}
	}
}

// letters returns tasks of index x, one per letter. An = gives a primary key or a size.
func letters(t *testing.T, q *Queue, text string) []New {
	var list []New
	for _, word := range strings.Fields(text) {
		key := ""
		word, key, _ = strings.Cut(word, "=")
		n := New{IndexUID: "x"}
		switch word {
		case "a": // addition that may create the index
			n = adding(t, q, "x", AddDocuments{MayCreate: true, PrimaryKey: key}, "1")
		case "a0": // with an empty primary key
			n = adding(t, q, "x", AddDocuments{MayCreate: true, EmptyKey: true}, "1")
		case "A": // addition that may not create the index
			n = adding(t, q, "x", AddDocuments{PrimaryKey: key}, "1")
		case "m":
			n = adding(t, q, "x", AddDocuments{MayCreate: true, Merge: true, SkipCreation: true, PrimaryKey: key}, "1")
		case "p": // partial update
			n = adding(t, q, "x", AddDocuments{Operations: true, IfMissing: "create"}, "1", "9")
		case "i":
			n.Content = DeleteDocuments{IDs: []string{"1"}}
		case "f":
			n.Content = DeleteByFilter{json.RawMessage(`"x = 1"`)}
		case "v":
			n.Content = DeleteByFilter{json.RawMessage(`"_vectors EXISTS"`)}
		case "c":
			n.Content = ClearDocuments{}
		case "s":
			n.Content = UpdateSettings{Update: settings.ResetOne("stop-words"), MayCreate: true}
		case "S":
			n.Content = UpdateSettings{Update: settings.ResetAll(), Reset: true}
		case "d":
			n.Content = DeleteIndex{}
		case "n":
			n.Content = CreateIndex{}
		case "u":
			n.Content = UpdateIndex{}
		case "w":
			n = New{Content: SwapIndexes{[]Swap{{Indexes: [2]string{"x", "other"}}}}}
		case "r":
			n = New{IndexUID: "other", Content: UpdateIndex{NewUID: "x"}}
		case "e":
			n.Content = EditDocuments{Function: "doc.x = 1"}
		case "R":
			n = New{IndexUID: RulesIndex, Content: UpdateRule{UID: "r", Rule: json.RawMessage(`{}`)}}
		case "C":
			n = New{IndexUID: RulesIndex, Content: ClearRules{}}
		case "y":
			n = adding(t, q, "y", AddDocuments{MayCreate: true}, "1")
		case "z":
			n = adding(t, q, "z", AddDocuments{MayCreate: true}, "1")
		default:
			t.Fatalf("no task %q", word)
		}
		list = append(list, n)
	}
	return list
}

func TestAutoBatching(t *testing.T) {
	tests := []struct {
		name  string
		index string // "": missing; "-": no primary key yet; else its primary key
		tasks string
		want  string // batches in the order in which they ran, separated by "|"
	}{
		// Row "additions (± id deletions)".
		{"additions join", "id", "a a A m", "a a A m"},
		{"additions and deletions by id join", "id", "a i a i", "a i a i"},
		{"partial updates join additions", "id", "a p i p f p a", "a p i p f p a"},
		{"partial updates do not create the index", "", "p a p", "p|a p"},
		{"a filter joins additions", "id", "a i f a f", "a i f a f"},
		{"a filter that finds committed documents closes additions", "id", "a i v a", "a i|v a"},
		{"delete-all closes additions with filters", "id", "a f c", "a f|c"},
		{"settings close additions with filters", "id", "a f s", "a f|s"},
		{"a primary key closes additions with filters", "id", "a f a=other", "a f|a=other"},
		{"an index deletion swallows additions with filters", "id", "a f d a", "a f d|a"},
		{"the others close additions with filters", "id", "a f n a f e", "a f|n|a f|e"},
		{"delete-all joins additions and then closes for them", "id", "a c a", "a c|a"},
		{"settings close additions", "id", "a s", "a|s"},
		{"an index deletion swallows additions and closes", "id", "a a d a", "a a d|a"},
		{"changes of rules share a batch, and so do deletions of all", "id", "R R C C R", "R R|C C|R"},
		{"changes of rules do not hold up an index", "id", "a R a R", "a a|R R"},
		{"a creation closes additions", "id", "a n a", "a|n|a"},
		{"an update closes additions", "id", "a u a", "a|u|a"},
		{"a swap closes additions", "id", "a w a", "a|w|a"},
		{"a rename onto the index closes additions", "id", "a r a", "a|r|a"},
		{"an edit closes additions", "id", "a e a", "a|e|a"},
		// Row "id deletions only".
		{"deletions by id join", "id", "i i", "i i"},
		{"an addition joins deletions by id when the index exists", "id", "i a i", "i a i"},
		{"an addition that may not create joins without the index", "", "i A", "i A"},
		{"an addition that may create does not", "", "i a", "i|a"},
		{"a filter and an addition join deletions by id", "id", "i f a", "i f a"},
		{"delete-all joins deletions by id", "id", "i c f", "i c f"},
		{"settings close deletions by id", "id", "i s", "i|s"},
		{"an index deletion swallows deletions by id", "id", "i d", "i d"},
		{"the others close deletions by id", "id", "i n i u i w i e", "i|n|i|u|i|w|i|e"},
		// Row "deletions with a filter".
		{"an addition joins filters", "id", "f v a f", "f v a f"},
		{"deletions by id and filters join filters", "id", "f i f", "f i f"},
		{"delete-all joins filters", "id", "f c i", "f c i"},
		{"settings close filters", "id", "f s", "f|s"},
		{"an index deletion swallows filters", "id", "f i d i", "f i d|i"},
		{"the others close filters", "id", "f n f u f w f e", "f|n|f|u|f|w|f|e"},
		// Row "delete-all".
		{"an addition closes delete-all", "id", "c a", "c|a"},
		{"all deletions join delete-all", "id", "c i f c", "c i f c"},
		{"settings close delete-all", "id", "c s", "c|s"},
		{"an index deletion swallows delete-all", "id", "c d", "c d"},
		{"the others close delete-all", "id", "c n c u c w c e", "c|n|c|u|c|w|c|e"},
		// Row "settings".
		{"settings join", "id", "s S s", "s S s"},
		{"an addition closes settings", "id", "s a", "s|a"},
		{"a deletion by id closes settings", "id", "s i", "s|i"},
		{"a filter closes settings", "id", "s f", "s|f"},
		{"delete-all joins settings", "id", "s c", "s c"},
		{"an index deletion swallows settings", "id", "s d s", "s d|s"},
		{"the others close settings", "id", "s n s u s w s e", "s|n|s|u|s|w|s|e"},
		// Row "settings and delete-all".
		{"deletions and settings join settings with delete-all", "id", "s c i f c s", "s c i f c s"},
		{"an addition closes settings with delete-all", "id", "s c a", "s c|a"},
		{"an index deletion swallows settings with delete-all", "id", "s c d", "s c d"},
		{"the others close settings with delete-all", "id", "s c n s c u s c w s c e", "s c|n|s c|u|s c|w|s c|e"},
		// Rows "first is …".
		{"nothing joins a creation", "", "n a", "n|a"},
		{"nothing joins an update", "id", "u u a", "u|u|a"},
		{"nothing joins a swap", "id", "w w", "w|w"},
		{"nothing joins an edit", "id", "e e", "e|e"},
		{"nothing joins an index deletion", "id", "d d a", "d|d|a"},
		// Other indexes are skipped, not barriers.
		{"tasks of other indexes are skipped", "", "a y a z y", "a a|y y|z"},
		// Whether the batch may create the index.
		{"a creating addition counts for what follows", "", "a A i a", "a A i a"},
		{"after one that may not create, one that may closes", "", "A a", "A|a"},
		{"settings that create count for resets", "", "s S s", "s S s"},
		{"a failing reset, then an update that creates", "", "S s S", "S|s S"},
		{"a deletion, then settings and delete-all", "", "S c s", "S c|s"},
		{"an index deletion joins a creating addition", "", "a d", "a d"},
		// Primary keys.
		{"an addition without a key joins any key", "id", "a a=id a", "a a=id a"},
		{"another key than the index's is a batch of one", "id", "a=k a a=id", "a=k|a a=id"},
		{"not even a deletion joins it", "id", "a=k i d", "a=k|i d"},
		{"another key than the index's closes", "id", "a a=k a", "a|a=k|a"},
		{"the first key is the batch's", "-", "a=k a a=k i a=l", "a=k a a=k i|a=l"},
		{"a key closes inference", "-", "a a a=k", "a a|a=k"},
		{"a key joins deletions by id and becomes the batch's", "-", "i a=k a a=k a=l", "i a=k a a=k|a=l"},
		{"the empty key is never the index's", "id", "i a0 a a0", "i|a0|a|a0"},
		{"nor does it become the batch's", "-", "a0 a", "a0|a"},
		{"a key closes inference after deletions", "-", "i a a=k", "i a|a=k"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, e := testOptions(t)
			for _, uid := range []string{"x", "other"} {
				switch {
				case uid == "other" || tt.index == "-":
					e.indexes[uid] = &fakeIndex{documents: map[string]bool{}}
				case tt.index != "":
					e.indexes[uid] = &fakeIndex{primaryKey: tt.index, documents: map[string]bool{}}
				}
			}
			var batches []string
			words := strings.Fields(tt.tasks)
			o.OnBatch = func(tasks []*Task) {
				var of []string
				for _, task := range tasks {
					of = append(of, words[task.UID])
				}
				batches = append(batches, strings.Join(of, " "))
			}
			q := paused(t, o)
			for _, n := range letters(t, q, tt.tasks) {
				enqueue(t, q, n)
			}
			drain(t, q)
			if got := strings.Join(batches, "|"); got != tt.want {
				t.Errorf("%s\nran as %s\nwant   %s", tt.tasks, got, tt.want)
			}
		})
	}
}

func TestBatchLimits(t *testing.T) {
	size := func(q *Queue) int64 {
		task, err := q.Task(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		return task.Content.(AddDocuments).Size
	}
	tests := []struct {
		name  string
		tasks int
		bytes func(one int64) int64
		queue string
		want  string
	}{
		{"unlimited", -1, func(int64) int64 { return -1 }, "a a a a a", "5"},
		{"two tasks", 2, func(int64) int64 { return -1 }, "a a a a a", "2 2 1"},
		{"two payloads and a bit", -1, func(one int64) int64 { return 2*one + one/2 }, "a a a a a", "2 2 1"},
		{"exactly two payloads", -1, func(one int64) int64 { return 2 * one }, "a a a a a", "2 2 1"},
		{"no bytes", -1, func(int64) int64 { return 0 }, "a a a", "1 1 1"},
		{"tasks without payload have no size", -1, func(int64) int64 { return 0 }, "a i i a", "3 1"},
		{"no tasks: nothing runs", 0, func(int64) int64 { return -1 }, "a a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, _ := testOptions(t)
			o.MaxBatchTasks = tt.tasks
			var counts []string
			o.OnBatch = func(tasks []*Task) { counts = append(counts, string(rune('0'+len(tasks)))) }
			q := paused(t, o)
			for _, n := range letters(t, q, tt.queue) {
				enqueue(t, q, n)
			}
			q.o.MaxBatchBytes = tt.bytes(size(q))
			drain(t, q)
			if got := strings.Join(counts, " "); got != tt.want {
				t.Errorf("batches of %s, want %s", got, tt.want)
			}
		})
	}
}

func TestBatchOperationsAndCounts(t *testing.T) {
	tests := []struct {
		name  string
		tasks string
		setup string // ids in the index
		want  string // the calls of the index
		ends  []string
	}{
		{"additions and deletions in order", "a i a", "7", "x: add 1 delete 1 add 1",
			[]string{`{"receivedDocuments":1,"indexedDocuments":1}`, `{"providedIds":1,"deletedDocuments":1,"originalFilter":null}`, `{"receivedDocuments":1,"indexedDocuments":1}`}},
		{"delete-all does not read payloads and counts what there was", "a i c c", "1 2 3", "x: delete 1 clear clear",
			[]string{`{"receivedDocuments":1,"indexedDocuments":1}`, `{"providedIds":1,"deletedDocuments":1,"originalFilter":null}`, `{"deletedDocuments":3}`, `{"deletedDocuments":0}`}},
		{"deletions go before settings", "s c s i", "1 2", "x: clear delete 1 settings settings",
			[]string{`{"stopWords":null}`, `{"deletedDocuments":2}`, `{"stopWords":null}`, `{"providedIds":1,"deletedDocuments":0,"originalFilter":null}`}},
		{"an index deletion does nothing else", "a i d", "1 2", "delete x",
			[]string{`{"receivedDocuments":1,"indexedDocuments":0}`, `{"providedIds":1,"deletedDocuments":0,"originalFilter":null}`, `{"deletedDocuments":2}`}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			o, e := testOptions(t)
			e.indexes["x"] = &fakeIndex{primaryKey: "id", documents: map[string]bool{}}
			for _, id := range strings.Fields(tt.setup) {
				e.indexes["x"].documents[id] = true
			}
			q := paused(t, o)
			for _, n := range letters(t, q, tt.tasks) {
				enqueue(t, q, n)
			}
			drain(t, q)
			if got := strings.Join(e.took(), "; "); got != tt.want {
				t.Errorf("the calls are %s, want %s", got, tt.want)
			}
			for uid, want := range tt.ends {
				task, err := q.Task(uint32(uid), nil)
				if err != nil || task.Status != Succeeded || string(task.Details) != want {
					t.Errorf("task %d: %+v %v, want %s", uid, task, err, want)
				}
			}
		})
	}
}

func TestAnIndexDeletionSwallowsItsCreation(t *testing.T) {
	o, e := testOptions(t)
	q := paused(t, o)
	for _, n := range letters(t, q, "a d i d") {
		enqueue(t, q, n)
	}
	drain(t, q)
	for uid, want := range []Status{Succeeded, Succeeded, Failed, Failed} {
		if task, err := q.Task(uint32(uid), nil); err != nil || task.Status != want {
			t.Errorf("task %d: %+v %v, want %v", uid, task, err, want)
		}
	}
	if log := e.took(); len(log) != 0 {
		t.Errorf("the calls of the catalog are %v", log)
	}
}

func TestABatchThatFailsAsAWholeCountsNothing(t *testing.T) {
	o, e := testOptions(t)
	e.fail = func(index.Op) error { return apierr.New("vector_embedding_error", "no answer") }
	q := paused(t, o)
	for _, n := range letters(t, q, "a i a") {
		enqueue(t, q, n)
	}
	drain(t, q)
	for uid, want := range []string{
		`{"receivedDocuments":1,"indexedDocuments":0}`, `{"providedIds":1,"deletedDocuments":0,"originalFilter":null}`, `{"receivedDocuments":1,"indexedDocuments":0}`,
	} {
		task, err := q.Task(uint32(uid), nil)
		if err != nil || task.Status != Failed || string(task.Details) != want || task.Error.Code != "vector_embedding_error" {
			t.Errorf("task %d: %+v %v", uid, task, err)
		}
	}
	if ix, _ := e.info("x"); ix.documents != 0 {
		t.Errorf("%d documents", ix.documents)
	}
}

func TestAPanicFailsTheBatch(t *testing.T) {
	o, e := testOptions(t)
	q := paused(t, o)
	for _, n := range letters(t, q, "a y") {
		enqueue(t, q, n)
	}
	e.fail = func(op index.Op) error {
		e.fail = nil
		panic("broken")
	}
	drain(t, q)
	if task, err := q.Task(0, nil); err != nil || task.Status != Failed || task.Error.Code != apierr.Internal {
		t.Errorf("%+v %v", task, err)
	}
	if task, err := q.Task(1, nil); err != nil || task.Status != Succeeded {
		t.Errorf("%+v %v", task, err)
	}
}
