package task

import (
	"encoding/json"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/embed"
	"svc/internal/index"
)

func TestDurations(t *testing.T) {
	start := time.Date(2026, 11, 21, 0, 0, 0, 0, time.UTC)
	tests := []struct {
		d    time.Duration
		want string
	}{
		{0, `"PT0S"`},
		{1500 * time.Millisecond, `"PT1.500S"`},
		{12 * time.Microsecond, `"PT0.000012S"`},
		{7, `"PT0.000000007S"`},
		{90061*time.Second + 500*time.Millisecond, `"P1DT3661.500S"`},
		{48 * time.Hour, `"P2D"`},
		{48*time.Hour + 1, `"P2DT0.000000001S"`},
		{-1, "null"},
	}
	for _, tt := range tests {
		if got := string(appendDuration(nil, start, start.Add(tt.d))); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.d, got, tt.want)
		}
	}
	if got := string(appendDuration(nil, start, time.Time{})); got != "null" {
		t.Errorf("unfinished: %s", got)
	}
}

func TestDates(t *testing.T) {
	tests := []struct{ text, before, after string }{
		{"2026-11-21", "2026-11-21T00:00:00Z", "2026-11-22T00:00:00Z"},
		{"2026-12-31", "2026-12-31T00:00:00Z", "2027-01-01T00:00:00Z"},
		{"0001-01-01", "0001-01-01T00:00:00.000000001Z", "0001-01-02T00:00:00Z"}, // the zero time means no date
		{"2026-11-21T10:11:12Z", "2026-11-21T10:11:12Z", "2026-11-21T10:11:12Z"},
		{"2026-11-21T00:00:00Z", "2026-11-21T00:00:00Z", "2026-11-21T00:00:00Z"},
		{"2026-11-21t10:11:12.5z", "2026-11-21T10:11:12.5Z", "2026-11-21T10:11:12.5Z"},
		{"2026-11-21T10:11:12.123456789+02:00", "2026-11-21T08:11:12.123456789Z", "2026-11-21T08:11:12.123456789Z"},
		{text: "2026-11-21T10:11:12"},
		{text: "2026-11-21T1:11:12Z"},
		{text: "2026-11-21T10:11:12,5Z"},
		{text: "2026-11-21T10:11:12+24:00"},
		{text: "2026-11-21T25:11:12Z"},
		{text: "2026-11-21 10:11:12Z"},
		{text: "2026-02-30"},
		{text: "1700000000"},
		{text: ""},
	}
	const code = "invalid_task_before_enqueued_at"
	check := func(text, want string, got time.Time, err error) {
		t.Helper()
		switch {
		case want == "" && err == nil:
			t.Errorf("%q is accepted as a date: %v", text, got)
		case want == "" && apierr.From(err).Code != code:
			t.Errorf("%q: %v", text, err)
		case want != "" && (err != nil || got.UTC().Format(time.RFC3339Nano) != want):
			t.Errorf("%q: %v %v, want %s", text, got, err, want)
		}
	}
	for _, tt := range tests {
		got, err := ParseBefore(tt.text, code)
		check(tt.text, tt.before, got, err)
		got, err = ParseAfter(tt.text, code)
		check(tt.text, tt.after, got, err)
	}
}

func TestDatesFarAway(t *testing.T) {
	o, _ := testOptions(t)
	q := openQueue(t, o)
	enqueue(t, q, New{IndexUID: "a", Content: CreateIndex{}})
	far, long := time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC), time.Date(1, 1, 1, 0, 0, 0, 1, time.UTC)
	for _, tt := range []struct {
		f    Filter
		want int
	}{
		{Filter{BeforeEnqueuedAt: far}, 1}, {Filter{AfterEnqueuedAt: far}, 0},
		{Filter{BeforeEnqueuedAt: long}, 0}, {Filter{AfterEnqueuedAt: long}, 1},
		{Filter{AfterEnqueuedAt: long, BeforeEnqueuedAt: far}, 1},
	} {
		if l, err := q.Tasks(tt.f); err != nil || l.Total != tt.want {
			t.Errorf("after %v and before %v: %d tasks and %v, want %d", tt.f.AfterEnqueuedAt, tt.f.BeforeEnqueuedAt, l.Total, err, tt.want)
		}
	}
}

func TestSizes(t *testing.T) {
	tests := map[int64]string{
		0: "0 B", 1: "1 B", 999: "999 B", 1000: "1 KB", 1023: "1.023 KB", 1024: "1 KiB", 28672: "28 KiB", 2_000_000: "1.9073486328125 MiB",
		1 << 30: "1 GiB", 1<<63 - 1: "8 EiB",
	}
	for n, want := range tests {
		if got := FormatSize(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
	}
}

func TestStatusesAndKindsInAnyCase(t *testing.T) {
	for s, name := range statusNames {
		if got, err := ParseStatus(strings.ToUpper(name)); err != nil || got != Status(s) {
			t.Errorf("%v: %v %v", name, got, err)
		}
	}
	for k, name := range kindNames {
		if got, err := ParseKind(strings.ToLower(name)); err != nil || got != Kind(k) {
			t.Errorf("%v: %v %v", name, got, err)
		}
	}
	if _, err := ParseStatus("done"); apierr.From(err).Code != "invalid_task_statuses" {
		t.Error(err)
	}
	if _, err := ParseKind("done"); apierr.From(err).Code != "invalid_task_types" {
		t.Error(err)
	}
}

func TestPercentage(t *testing.T) {
	p := Progress{[]index.Step{{Name: "a", Total: 2}, {Name: "b", Finished: 3, Total: 4}, {Name: "c", Finished: 5, Total: 20}, {Name: "d", Finished: 2900, Total: 25000}}}
	want := `{"steps":[{"currentStep":"a","finished":0,"total":2},{"currentStep":"b","finished":3,"total":4},` +
		`{"currentStep":"c","finished":5,"total":20},{"currentStep":"d","finished":2900,"total":25000}],"percentage":40.6975}`
	if got := string(p.appendJSON(nil)); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestEnteringAStepDropsDeeperOnes(t *testing.T) {
	now := time.Unix(0, 1)
	p := newProgress(func() time.Time { now = now.Add(time.Second); return now })
	show := func() string {
		var s []string
		for _, step := range p.current().Steps {
			s = append(s, step.Name)
		}
		return strings.Join(s, ">")
	}
	p.outer(0)
	p.inside(0, index.Step{Name: "indexing", Total: 3})
	p.inside(1, index.Step{Name: "extracting", Total: 20})
	p.inside(2, index.Step{Name: "document", Finished: 1, Total: 20})
	if got := show(); got != "processing tasks>indexing>extracting>document" {
		t.Error(got)
	}
	p.inside(2, index.Step{Name: "document", Finished: 2, Total: 20})
	if got := p.current().Steps[3].Finished; got != 2 {
		t.Error(got)
	}
	p.inside(1, index.Step{Name: "merging", Finished: 1, Total: 20})
	if got := show(); got != "processing tasks>indexing>merging" {
		t.Error(got)
	}
	p.outer(1)
	if got := show(); got != "writing tasks to disk" {
		t.Error(got)
	}
	var paths []string
	for _, e := range p.times() {
		paths = append(paths, e.path)
		if e.took <= 0 {
			t.Errorf("%s took %v", e.path, e.took)
		}
	}
	want := "processing tasks > indexing > extracting > document, processing tasks > indexing > extracting, processing tasks > indexing > merging, " +
		"processing tasks > indexing, processing tasks, writing tasks to disk"
	if got := strings.Join(paths, ", "); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestUnionOfDetails(t *testing.T) {
	type part struct {
		k       Kind
		details string
	}
	tests := []struct {
		name              string
		parts             []part
		running, finished string
	}{
		{"counters add up", []part{{DocumentAdditionOrUpdate, `{"receivedDocuments":2,"indexedDocuments":2}`}, {DocumentAdditionOrUpdate, `{"receivedDocuments":3,"indexedDocuments":0}`}},
			`{"receivedDocuments":5,"indexedDocuments":2}`, `{"receivedDocuments":5,"indexedDocuments":2}`},
		{"nulls show while running", []part{{DocumentAdditionOrUpdate, `{"receivedDocuments":2,"indexedDocuments":null}`}, {DocumentDeletion, `{"providedIds":1,"deletedDocuments":null,"originalFilter":null}`}},
			`{"receivedDocuments":2,"indexedDocuments":null,"providedIds":1,"deletedDocuments":null,"originalFilter":null}`, `{"receivedDocuments":2,"providedIds":1}`},
		{"filters join", []part{{TaskCancelation, `{"matchedTasks":1,"canceledTasks":1,"originalFilter":"?a"}`}, {DocumentDeletion, `{"originalFilter":null}`}, {DocumentDeletion, `{"originalFilter":"\"x\""}`}},
			`{"matchedTasks":1,"canceledTasks":1,"originalFilter":"?a&\"x\""}`, `{"matchedTasks":1,"canceledTasks":1,"originalFilter":"?a&\"x\""}`},
		{"swaps follow each other", []part{{IndexSwap, `{"swaps":[1]}`}, {IndexSwap, `{"swaps":[]}`}, {IndexSwap, `{"swaps":[2,3]}`}},
			`{"swaps":[1,2,3]}`, `{"swaps":[1,2,3]}`},
		{"the last settings win, embedders merge", []part{
			{SettingsUpdate, `{"stopWords":["a"],"synonyms":{"a":[]},"embedders":{"b":{"source":"x"},"c":1}}`},
			{SettingsUpdate, `{"stopWords":null,"embedders":{"a":null,"b":{"source":"y"}}}`}},
			`{"stopWords":null,"synonyms":{"a":[]},"embedders":{"a":null,"b":{"source":"y"},"c":1}}`,
			`{"stopWords":null,"synonyms":{"a":[]},"embedders":{"a":null,"b":{"source":"y"},"c":1}}`},
		{"the first of other kinds stays", []part{{IndexUpdate, `{"primaryKey":"a"}`}, {IndexUpdate, `{"primaryKey":"b"}`}, {SnapshotCreation, ""}},
			`{"primaryKey":"a"}`, `{"primaryKey":"a"}`},
		{"nothing", []part{{IndexCreation, `{"primaryKey":null}`}}, `{"primaryKey":null}`, `{}`},
	}
	for _, tt := range tests {
		var u union
		for _, p := range tt.parts {
			u.add(p.k, json.RawMessage(p.details))
		}
		if got := string(u.json(false)); got != tt.running {
			t.Errorf("%s, running: %s, want %s", tt.name, got, tt.running)
		}
		if got := string(u.json(true)); got != tt.finished {
			t.Errorf("%s, finished: %s, want %s", tt.name, got, tt.finished)
		}
	}
}

// exampleContents returns each type of content except UpdateSettings.
func exampleContents() []Content {
	return []Content{
		AddDocuments{Merge: true, SkipCreation: true, PrimaryKey: "k", Documents: 3, MayCreate: true, File: "f", Size: 7},
		AddDocuments{EmptyKey: true, Documents: 1},
		DeleteDocuments{IDs: []string{"a", "b"}, Provided: 2},
		DeleteByFilter{json.RawMessage(`["a = 1"]`)},
		DeleteExpired{1900000000},
		ClearDocuments{},
		EditDocuments{Filter: json.RawMessage(`"a = 1"`), Context: json.RawMessage(`{"a":1}`), Function: "doc.a = \"<\""},
		AddDocuments{Operations: true, Atomic: true, IfMissing: "fail", Contains: true, Documents: 3, File: "f", Size: 5, Sum: 7}, AddDocuments{Operations: true},
		CreateIndex{PrimaryKey: "id"}, UpdateIndex{PrimaryKey: "id", NewUID: "new"}, CreateIndex{EmptyKey: true}, UpdateIndex{EmptyKey: true}, DeleteIndex{},
		SwapIndexes{[]Swap{{[2]string{"a", "b"}, true}}},
		CancelTasks{"?uids=1", []uint32{1, 5, 70000}}, DeleteTasks{"?uids=1", []uint32{3}, 2},
		CreateDump{Keys: json.RawMessage(`[]`), InstanceUID: "u"}, CreateSnapshot{},
		ExportTo{"http://x", "secret", 9, map[string]ExportIndex{"a*": {json.RawMessage(`"x = 1"`), true}}},
		Upgrade{"v1", "v2"}, CompactIndex{}, ChangeTopology{State: json.RawMessage(`{"a":1}`), Message: "m"},
		UpdateRule{UID: "r", Rule: json.RawMessage(`{"precedence":1}`)}, UpdateRule{UID: "r"}, ClearRules{},
	}
}

func TestContentsKeepTheirShape(t *testing.T) {
	for _, c := range exampleContents() {
		b, err := encodeContent(c)
		if err != nil {
			t.Fatal(err)
		}
		back, err := decodeContent(c.Kind(), b)
		if err != nil {
			t.Fatalf("%T: %v", c, err)
		}
		if want, got := mustJSON(t, c), mustJSON(t, back); want != got {
			t.Errorf("%T became %s, want %s", c, got, want)
		}
	}
	u := UpdateSettings{Update: mustUpdate(t, `{"stopWords":["a"]}`), MayCreate: true}
	b, err := encodeContent(u)
	if err != nil {
		t.Fatal(err)
	}
	back, err := decodeContent(SettingsUpdate, b)
	if err != nil {
		t.Fatal(err)
	}
	if got := back.(UpdateSettings); !got.MayCreate || got.Reset || string(got.Update.Full()) != string(u.Update.Full()) {
		t.Errorf("%+v", got)
	}
}

func TestDetailsOfOtherKinds(t *testing.T) {
	tests := []struct {
		c    Content
		want string
	}{
		{CreateDump{}, `{"dumpUid":null}`},
		{CreateSnapshot{}, ``},
		{ExportTo{"http://x", "a-longer-key", 1024, map[string]ExportIndex{"b": {}, "a*": {json.RawMessage(`"x = 1"`), true}}},
			`{"url":"http://x","apiKey":"a-XXXX...","payloadSize":"1 KiB","indexes":{"a*":{"filter":"x = 1","overrideSettings":true},"b":{"filter":null,"overrideSettings":false}}}`},
		{ExportTo{URL: "http://x"}, `{"url":"http://x","indexes":{}}`},
		{Upgrade{"v1.41.0", "v1.42.1"}, `{"upgradeFrom":"v1.41.0","upgradeTo":"v1.42.1"}`},
		{ChangeTopology{MovedDocuments: 3, Message: "m"}, `{"movedDocuments":3,"message":"m"}`},
		{UpdateRule{UID: "r", Rule: json.RawMessage(`{"precedence":1}`)}, `{"rule":{"precedence":1},"updatedRules":1}`},
		{UpdateRule{UID: "r"}, `{"updatedRules":1}`},
		{ClearRules{}, `{"deletedDocuments":null}`},
	}
	for _, tt := range tests {
		if got := string(tt.c.details("", nil)); got != tt.want {
			t.Errorf("%T: %s, want %s", tt.c, got, tt.want)
		}
	}
	edit := EditDocuments{Function: "f", Context: json.RawMessage(`{"a":1}`)}
	for _, tt := range []struct {
		o    *outcome
		want string
	}{
		{nil, `{"editedDocuments":null,"deletedDocuments":null,"originalFilter":null,"context":{"a":1},"function":"f"}`},
		{&outcome{count: 3}, `{"editedDocuments":3,"deletedDocuments":0,"originalFilter":null,"context":{"a":1},"function":"f"}`},
		{&outcome{count: 3, deleted: 2}, `{"editedDocuments":3,"deletedDocuments":2,"originalFilter":null,"context":{"a":1},"function":"f"}`},
		{&outcome{failed: true}, `{"editedDocuments":0,"deletedDocuments":null,"originalFilter":null,"context":{"a":1},"function":"f"}`},
	} {
		if got := string(edit.details("", tt.o)); got != tt.want {
			t.Errorf("edit: %s, want %s", got, tt.want)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func randomRecord(r *rand.Rand) *record {
	rec := &record{head: head{fact: fact{Status(r.Intn(5)), Kind(r.Intn(16)), [3]int64{r.Int63(), r.Int63(), 0}, r.Uint32()}, canceledBy: noUID}, content: []byte("{}")}
	for range r.Intn(4) {
		rec.names = append(rec.names, nameID(r.Uint32()>>r.Intn(32)))
	}
	rec.hasIndex = len(rec.names) > 0 && r.Intn(2) == 0
	if r.Intn(2) == 0 {
		s := strings.Repeat("m", r.Intn(300))
		rec.metadata = &s
	}
	if r.Intn(2) == 0 {
		rec.details = []byte(`{"a":1}`)
	}
	if r.Intn(2) == 0 {
		rec.err = apierr.New("index_not_found", "gone")
	}
	return rec
}

func TestRecordsReadBack(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	for range 500 {
		rec := randomRecord(r)
		b := rec.append(nil)
		back, err := decodeRecord(b)
		if err != nil {
			t.Fatal(err)
		}
		if want, got := recordText(t, rec), recordText(t, back); want != got {
			t.Fatalf("%s\nbecame %s", want, got)
		}
		for cut := range b {
			if _, err := decodeRecord(b[:cut]); err == nil {
				t.Fatalf("a record cut at byte %d of %d is accepted", cut, len(b))
			}
		}
	}
}

func recordText(t *testing.T, r *record) string {
	return mustJSON(t, []any{r.status, r.kind, r.times, r.batch, r.canceledBy, r.hasIndex, len(r.names), append([]nameID{}, r.names...), r.metadata, string(r.details), r.err, string(r.content)})
}

func FuzzRecord(f *testing.F) {
	r := rand.New(rand.NewSource(1))
	for range 10 {
		f.Add(randomRecord(r).append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		rec, err := decodeRecord(b)
		if err != nil {
			return
		}
		if again, err := decodeRecord(rec.append(nil)); err != nil || recordText(t, rec) != recordText(t, again) {
			t.Errorf("encoding a decoded record gives other bytes: %v", err)
		}
		_, _ = decodeContent(rec.kind, rec.content)
	})
}

func TestBatchesKeepTheirCountOfRequests(t *testing.T) {
	const shown = `"embedderRequests":{"total":3,"failed":2,"lastError":"late"}`
	b := &Batch{UID: 1, Details: json.RawMessage(`{}`), Stats: Stats{Total: 1, Requests: &Requests{Total: 3, Failed: 2, LastError: "late"}}}
	rec, err := encodeBatch(b, &batchFact{}, roaring.BitmapOf(1))
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := decodeBatch(1, rec)
	if err != nil || !strings.Contains(string(again.AppendJSON(nil)), shown) {
		t.Errorf("%v: %s, want %s", err, again.AppendJSON(nil), shown)
	}
	var dumped Stats
	stats, _ := b.Stats.MarshalJSON()
	if err := json.Unmarshal(stats, &dumped); err != nil || dumped.Requests == nil || *dumped.Requests != *b.Stats.Requests {
		t.Errorf("%v: %s reads as %+v", err, stats, dumped.Requests)
	}
	if requestsOf(new(embed.Stats)) != nil {
		t.Error("a batch without requests shows a count of them")
	}
}

func FuzzBatchRecord(f *testing.F) {
	b := &Batch{UID: 1, Details: json.RawMessage(`{}`), Stats: Stats{Total: 1, Indexes: map[string]int{"a": 1}}}
	rec, err := encodeBatch(b, &batchFact{}, roaring.BitmapOf(1, 2))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(rec)
	f.Fuzz(func(t *testing.T, rec []byte) {
		if b, _, err := decodeBatch(1, rec); err == nil {
			b.AppendJSON(nil)
		}
	})
}

func FuzzJournal(f *testing.F) {
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) { lastEntry(b) })
}

// FuzzParseDate checks that a parsed date prints as a date that parses to the same time, and that "after" a day means from
// the next day on.
func FuzzParseDate(f *testing.F) {
	for _, seed := range []string{"2026-01-02", "2026-01-02T03:04:05Z", "2026-01-02t03:04:05.123456789+05:30", "0001-01-01", "9999-12-31", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		before, err := ParseBefore(text, "bad_request")
		after, errAfter := ParseAfter(text, "bad_request")
		if (err == nil) != (errAfter == nil) {
			t.Fatalf("%q: %v, but %v", text, err, errAfter)
		}
		if err != nil {
			return
		}
		if d := after.Sub(before); d != 0 && d != 24*time.Hour && before.Year() > 1 || before.IsZero() {
			t.Errorf("%q: before %v, after %v", text, before, after)
		}
		if before.Year() < 1 || before.Year() > 9999 {
			return
		}
		if again, err := ParseBefore(before.Format(time.RFC3339Nano), "bad_request"); err != nil || !again.Equal(before) {
			t.Errorf("%q is %v, and then %v: %v", text, before, again, err)
		}
	})
}

// FuzzParseSize checks that sizes are whole numbers of bytes, and that FormatSize prints nearly the size that it gets.
func FuzzParseSize(f *testing.F) {
	for _, seed := range []string{"1", "100 MB", "1.5GiB", "8 Ebit", "9e99", ".", "1 kib", "９", "18446744073709551615"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		n, err := ParseSize(text)
		if err != nil {
			return
		}
		if n < 0 {
			t.Fatalf("%q is %d bytes", text, n)
		}
		again, err := ParseSize(FormatSize(n))
		if d := float64(again - n); err != nil || d > .01*float64(n)+1 || d < -.01*float64(n)-1 {
			t.Errorf("%q is %d bytes, printed as %s, which is %d: %v", text, n, FormatSize(n), again, err)
		}
	})
}

// TestEveryKindHasARow checks that each kind has its own name, and decodes its contents.
func TestEveryKindHasARow(t *testing.T) {
	names := map[string]bool{}
	for k := range kindCount {
		row := kinds[k]
		if row.name == "" || row.decode == nil {
			t.Errorf("kinds has no row for kind %d, which comes after %v", k, kinds[max(k, 1)-1].name)
			continue
		}
		if names[row.name] {
			t.Errorf("two kinds are named %q", row.name)
		}
		names[row.name] = true
		if c, err := row.decode([]byte("{}")); err == nil && c.Kind() != k {
			t.Errorf("%v reads contents of %v", k, c.Kind())
		}
		if row.alone && !row.global {
			t.Errorf("%v concerns one index, but tasks of others wait for it", k)
		}
	}
}
