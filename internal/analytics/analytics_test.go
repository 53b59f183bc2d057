package analytics

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/internal/vfs"
)

// clock is a clock that tests set.
type clock struct{ now time.Time }

var noon = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// newRecorder opens a recorder that writes only when the test calls it.
func newRecorder(t testing.TB, fsys vfs.FS, c *clock, log *slog.Logger) *Recorder {
	t.Helper()
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	r, err := open(Options{FS: fsys, Dir: "analytics", Retention: 48 * time.Hour, Now: func() time.Time { return c.now }, Log: log})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// shut stops a recorder without a write.
func shut(t *testing.T, r *Recorder) {
	t.Helper()
	if err := r.journal.close(); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, r *Recorder) {
	t.Helper()
	if err := r.write(); err != nil {
		t.Fatal(err)
	}
}

// rows formats a report with one row per line.
func rows(t *testing.T, r *Recorder, q Range, o Order) string {
	t.Helper()
	report, err := r.Queries(context.Background(), q, o, 100)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, row := range report.Rows {
		all = append(all, fmt.Sprintf("%s/%s=%d", row.Index, row.Text, row.Searches))
	}
	if report.Other > 0 {
		all = append(all, fmt.Sprintf("other=%d", report.Other))
	}
	return strings.Join(all, " ")
}

func TestReports(t *testing.T) {
	c := &clock{noon}
	r := newRecorder(t, vfs.NewMem(), c, nil)
	count := func(index, query, filter string, none bool, took time.Duration, times int) {
		for range times {
			r.Count(&Search{Index: index, Query: query, Filter: []byte(filter), None: none, Took: took, At: c.now})
		}
	}
	count("films", "Dune", "", false, 2*time.Millisecond, 2)
	count("films", " dune \t", `"genre = \"SF\""`, false, 8*time.Millisecond, 1)
	count("films", "alien", `genre =  "SF"`, true, time.Millisecond, 2)
	write(t, r)
	c.now = c.now.Add(time.Hour)
	write(t, r)
	count("books", "dune", `["a = 1", ["b = 2"]]`, false, 50*time.Millisecond, 1)
	count("films", "dune", "", false, 4*time.Millisecond, 1)
	for _, tt := range []struct {
		of    Range
		order Order
		want  string
	}{
		{Range{}, MostSearched, "films/dune=4 films/alien=2 books/dune=1"},
		{Range{}, MostOftenNone, "films/alien=2"},
		{Range{}, Slowest, "books/dune=1 films/dune=4 films/alien=2"},
		{Range{Index: "books"}, MostSearched, "books/dune=1"},
		{Range{Reaches: func(uid string) bool { return uid == "films" }}, MostSearched, "films/dune=4 films/alien=2"},
		{Range{From: c.now}, MostSearched, "books/dune=1 films/dune=1"},
		{Range{To: c.now}, MostSearched, "films/dune=3 films/alien=2"},
		{Range{From: noon.Add(59 * time.Minute), To: noon.Add(time.Minute)}, MostSearched, "films/dune=3 films/alien=2"},
		{Range{From: c.now.Add(time.Hour)}, MostSearched, ""},
		{Range{To: noon}, MostSearched, ""},
	} {
		if got := rows(t, r, tt.of, tt.order); got != tt.want {
			t.Errorf("%+v, %d: %s, want %s", tt.of, tt.order, got, tt.want)
		}
	}
	report, err := r.Filters(context.Background(), Range{}, 10)
	if want := `[{films genre = "SF" {3 2 10000 8000 0 0 0 0 0 0}} {books ["a = 1", ["b = 2"]] {1 0 50000 50000 0 0 0 0 0 0}}]`; err != nil || fmt.Sprint(report.Rows) != want {
		t.Errorf("%v %v, want %s", report.Rows, err, want)
	}
	if report, err = r.Queries(context.Background(), Range{}, MostSearched, 1); err != nil || len(report.Rows) != 1 || report.Rows[0].Mean() != 4*time.Millisecond {
		t.Errorf("%+v %v", report, err)
	}
	// A limit on memory leaves the most frequent queries.
	m := merge{rows: map[string]*Counts{}}
	for i := range maxMerged + 1 {
		m.take([]*entry{{key: string(appendKey(nil, queryKind, "i")) + fmt.Sprint(i), Counts: Counts{Searches: uint64(1 + i%7)}}})
	}
	if n := len(m.rows); n != maxMerged/2 || m.report(1).Rows[0].Searches != 7 || m.other == 0 {
		t.Errorf("%d rows, %d other searches", n, m.other)
	}
}

func TestTexts(t *testing.T) {
	long := strings.Repeat("é", maxQueryBytes)
	for _, tt := range [][2]string{
		{"", ""}, {"  ", ""}, {"A  b\n\tC ", "a b c"}, {"ÄRGER Ünder", "ärger ünder"}, {"a\x00b", "a b"}, {"日本 語", "日本 語"}, {"a\xffb", "a\uFFFDb"},
		{long, long[:maxQueryBytes] + cutMark}, {strings.Repeat("x", maxQueryBytes), strings.Repeat("x", maxQueryBytes)}, {strings.Repeat("x", maxQueryBytes) + " ", strings.Repeat("x", maxQueryBytes)},
		{strings.Repeat("x", maxQueryBytes-1) + " y", strings.Repeat("x", maxQueryBytes-1) + cutMark},
	} {
		c := &clock{noon}
		r := newRecorder(t, vfs.NewMem(), c, nil)
		r.Count(&Search{Index: "i", Query: tt[0], At: noon})
		if got, want := rows(t, r, Range{}, MostSearched), "i/"+tt[1]+"=1"; got != want {
			t.Errorf("%q: %q, want %q", tt[0], got, want)
		}
	}
	for in, want := range map[string]string{
		`"a = 1"`: "a = 1", `"a = \u0041\n\"x\""`: `a = A "x"`, `a = "x"`: `a = "x"`, `""`: "", `["a"]`: `["a"]`,
		`"` + strings.Repeat(`\u0041`, 1000) + `"`: strings.Repeat("A", 128) + "", `"` + strings.Repeat(`\\`, 1000) + `"`: strings.Repeat(`\`, 256) + cutMark,
	} {
		if got := string(appendFilter(nil, []byte(in))); got != want {
			t.Errorf("%.40s: %q (%d), want %q", in, got, len(got), want)
		}
	}
}

func TestEvents(t *testing.T) {
	c := &clock{noon}
	r := newRecorder(t, vfs.NewMem(), c, nil)
	uid := [16]byte{1, 9: 7}
	for i, index := range []string{"films", "books"} {
		r.Count(&Search{Index: index, Query: "dune", Request: uid, Position: i, At: c.now})
	}
	r.Count(&Search{Index: "films", Query: "dune", Request: [16]byte{2}, At: c.now})
	all := func(string) bool { return true }
	counted, unknown := r.AddEvents([]Event{
		{Request: uid, Kind: Click, Position: 3}, {Request: uid, Kind: Click, Position: 5}, {Request: uid, Kind: Click}, {Request: uid, Query: 1, Kind: Conversion},
		{Request: uid, Query: 2}, {Request: [16]byte{3}},
	}, all)
	if counted != 4 || unknown != 2 {
		t.Errorf("%d events are counted, %d are unknown", counted, unknown)
	}
	if counted, _ := r.AddEvents([]Event{{Request: uid}}, func(index string) bool { return index != "films" }); counted != 0 {
		t.Error("an event of an index without access is counted")
	}
	check := func(want string) {
		t.Helper()
		report, err := r.Queries(context.Background(), Range{}, MostSearched, 10)
		if got := fmt.Sprint(report.Rows); err != nil || got != want {
			t.Errorf("%s %v, want %s", got, err, want)
		}
	}
	check("[{films dune {2 0 0 0 3 1 0 0 2 8}} {books dune {1 0 0 0 0 0 1 1 0 0}}]")
	// An event in the next hour belongs to the query of the previous hour.
	c.now = c.now.Add(20 * time.Minute)
	r.advance(r.hour + 1)
	if counted, _ := r.AddEvents([]Event{{Request: uid, Query: 1, Kind: Click, Position: 1}}, all); counted != 1 {
		t.Error("an event of a search in the hour before is not counted")
	}
	check("[{films dune {2 0 0 0 3 1 0 0 2 8}} {books dune {1 0 0 0 1 1 1 1 1 1}}]")
	c.now = c.now.Add(11 * time.Minute)
	if counted, _ := r.AddEvents([]Event{{Request: uid, Query: 1}}, all); counted != 0 {
		t.Error("an event half an hour after its search is counted")
	}
	n := r.Numbers()
	if n.Events != 5 || n.Unknown != 4 {
		t.Errorf("%+v", n)
	}
}

// TestRareQueries counts more queries than are kept apart: frequent ones must stay, and every search must be counted.
func TestRareQueries(t *testing.T) {
	c := &clock{noon}
	r := newRecorder(t, vfs.NewMem(), c, nil)
	total := 0
	for i := range 3 * maxQueries {
		r.Count(&Search{Index: "i", Query: fmt.Sprint("rare ", i), Filter: fmt.Appendf(nil, "f = %d", i), At: c.now})
		r.Count(&Search{Index: "i", Query: "frequent", At: c.now})
		total += 2
		if i%1000 == 0 {
			write(t, r)
		}
	}
	if n := r.Numbers(); n.Queries > maxQueries || n.Filters > maxFilters || n.Folded == 0 {
		t.Errorf("%+v", n)
	}
	check := func(most int) {
		t.Helper()
		report, err := r.Queries(context.Background(), Range{}, MostSearched, 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		sum := report.Other
		for _, row := range report.Rows {
			sum += row.Searches
		}
		if row := report.Rows[0]; sum != uint64(total) || len(report.Rows) > most || row.Text != "frequent" || row.Searches != 3*maxQueries {
			t.Errorf("%d searches of %d, %d rows, first %+v", sum, total, len(report.Rows), row)
		}
	}
	check(maxQueries)
	c.now = c.now.Add(time.Hour)
	write(t, r)
	check(keptQueries)
	// Any number of indexes share one rest.
	for i := range maxRests + 50 {
		r.live.addRest(queryKind, fmt.Sprint("index", i), &Counts{Searches: 1})
		total++
	}
	check(keptQueries)
	if n := r.live.distinct[restOf+queryKind].Load(); n != maxRests+1 {
		t.Errorf("%d rests", n)
	}
}

func TestTheEndOfAnHour(t *testing.T) {
	c := &clock{noon}
	mem := vfs.NewMem()
	r := newRecorder(t, mem, c, nil)
	if names, _ := mem.List("analytics"); len(names) != 0 {
		t.Errorf("%v before a search", names)
	}
	r.Count(&Search{Index: "films", Query: "dune", None: true, Took: 3 * time.Millisecond, At: noon})
	write(t, r)
	const journal = "737663616e6c79318c9c070000000000b19acab5de277b40" + "18000000c3512d06d0fe1ebb" + "0b0066696c6d730064756e65" + "0101b817b817000000000000"
	if b, err := vfs.ReadFile(mem, "analytics/journal"); err != nil || hex.EncodeToString(b) != journal {
		t.Errorf("the journal is %x %v", b, err)
	}
	r.Count(&Search{Index: "films", Filter: []byte("a = 1"), At: noon})
	c.now = c.now.Add(time.Hour)
	write(t, r)
	const want = `{"version":1,"xxhash64":"2e2c0df85b019ae1","content":{"hour":"2026-11-27T12:00:00Z","queries":[{"index":"films","searches":1},{"index":"films","text":"dune","searches":1,"none":1,"micros":3000,"longest":3000}],` +
		`"filters":[{"index":"films","text":"a = 1","searches":1}],"otherQueries":[],"otherFilters":[]}}` + "\n"
	if b, err := vfs.ReadFile(mem, "analytics/2026-11-27T12.json"); err != nil || string(b) != want {
		t.Errorf("got  %s\nwant %s%v", b, want, err)
	}
	if b, err := vfs.ReadFile(mem, "analytics/journal"); err != nil || len(b) != headerBytes {
		t.Errorf("the next journal has %d bytes: %v", len(b), err)
	}
	// The clock is set back: the hour continues.
	c.now = noon.Add(59 * time.Minute)
	r.Count(&Search{Index: "films", Query: "alien", At: c.now})
	write(t, r)
	r.Count(&Search{Index: "films", Query: "dune", At: c.now})
	c.now = noon.Add(2 * time.Hour)
	write(t, r)
	if got := rows(t, r, Range{To: noon.Add(time.Hour)}, MostSearched); got != "films/dune=2 films/=1" {
		t.Errorf("the hour has %s", got)
	}
	if got := rows(t, r, Range{}, MostSearched); got != "films/dune=2 films/=1 films/alien=1" {
		t.Errorf("all hours have %s", got)
	}
}

func TestRetention(t *testing.T) {
	c := &clock{noon}
	mem := vfs.NewMem()
	r := newRecorder(t, mem, c, nil)
	for range 60 {
		write(t, r)
		r.Count(&Search{Index: "i", Query: "q", At: c.now})
		write(t, r)
		c.now = c.now.Add(time.Hour)
	}
	write(t, r)
	files := func() int {
		hours, err := r.hours()
		if err != nil {
			t.Fatal(err)
		}
		return len(hours)
	}
	if got := rows(t, r, Range{}, MostSearched); got != "i/q=48" || files() != 60 {
		t.Errorf("%s are within the retention, %d files", got, files())
	}
	// A clock that is ahead for some minutes removes nothing.
	right := c.now
	c.now = c.now.AddDate(10, 0, 0)
	for range retainAfter / 2 {
		write(t, r)
	}
	c.now = right
	for range retainAfter {
		write(t, r)
	}
	if got := files(); got != 48 {
		t.Errorf("%d files are left", got)
	}
}

// TestRetentionOfAServerThatRestarts has processes that end before each of them alone would remove old hours.
func TestRetentionOfAServerThatRestarts(t *testing.T) {
	c := &clock{noon}
	mem := vfs.NewMem()
	r := newRecorder(t, mem, c, nil)
	for range 60 {
		r.Count(&Search{Index: "i", Query: "q", At: c.now})
		write(t, r)
		c.now = c.now.Add(time.Hour)
	}
	write(t, r)
	files := func() int {
		t.Helper()
		hours, err := r.hours()
		if err != nil {
			t.Fatal(err)
		}
		return len(hours)
	}
	// run has processes with so many writes each. The first one ends as a killed one, the next one in order.
	run := func(processes, writes int) {
		t.Helper()
		for n := range processes {
			if n%2 == 0 {
				shut(t, r)
			} else {
				r.stop = make(chan struct{})
				if err := r.Close(); err != nil {
					t.Fatal(err)
				}
			}
			r = newRecorder(t, mem, c, nil)
			for i := range writes {
				if i%7 == n {
					r.Count(&Search{Index: "i", Query: "q", At: c.now})
				}
				write(t, r)
			}
		}
	}
	right := c.now
	c.now = c.now.AddDate(10, 0, 0)
	run(4, retainAfter/5)
	c.now = right
	run(4, retainAfter/5)
	if got := files(); got != 61 { // with one of the clock that was ahead
		t.Errorf("%d files are left too early", got)
	}
	run(2, retainAfter/5)
	if got := files(); got != 49 {
		t.Errorf("%d files are left", got)
	}
	if b, err := vfs.ReadFile(mem, "analytics/"+journalName); err != nil || len(b) > headerBytes+frameBytes*retainAfter/markEvery+1000 {
		t.Errorf("the journal has %d bytes, %v", len(b), err)
	}
}

func TestDelete(t *testing.T) {
	c := &clock{noon}
	mem := vfs.NewMem()
	r := newRecorder(t, mem, c, nil)
	uid := [16]byte{4}
	fill := func() {
		for range 3 {
			write(t, r)
			for _, index := range []string{"films", "books"} {
				r.Count(&Search{Index: index, Query: "q", Request: uid, At: c.now})
			}
			write(t, r)
			c.now = c.now.Add(time.Hour)
		}
		c.now = c.now.Add(-time.Hour)
		write(t, r)
	}
	fill() // 12 to 14 o'clock
	for _, tt := range []struct {
		of   Range
		want string
	}{
		{Range{Index: "books", To: noon.Add(time.Hour)}, "films/q=3 books/q=2"},
		{Range{From: noon.Add(2 * time.Hour)}, "films/q=2 books/q=1"},
		{Range{Reaches: func(index string) bool { return index == "films" }}, "books/q=1"},
		{Range{}, ""},
	} {
		if err := r.Delete(context.Background(), tt.of); err != nil {
			t.Fatal(err)
		}
		shut(t, r)
		r = newRecorder(t, mem.CrashClone(nil), c, nil)
		if got := rows(t, r, Range{}, MostSearched); got != tt.want {
			t.Errorf("after %+v: %s, want %s", tt.of, got, tt.want)
		}
		shut(t, r)
		r = newRecorder(t, mem, c, nil)
	}
	names, err := mem.List("analytics")
	if err != nil || len(names) != 3 {
		t.Errorf("%v are left: %v", names, err)
	}
	for _, name := range names {
		if b, err := vfs.ReadFile(mem, "analytics/"+name); err != nil || strings.Contains(string(b), "films") || strings.Contains(string(b), "books") {
			t.Errorf("%s has %q: %v", name, b, err)
		}
	}
	// Events do not bring a deleted query back.
	r.Count(&Search{Index: "films", Query: "q", Request: uid, At: c.now})
	r.advance(r.hour + 1)
	c.now = c.now.Add(time.Hour)
	if err := r.Delete(context.Background(), Range{}); err != nil {
		t.Fatal(err)
	}
	if counted, _ := r.AddEvents([]Event{{Request: uid}}, func(string) bool { return true }); counted != 0 {
		t.Error("an event of a deleted search is counted")
	}
}

// TestDamage damages each byte of an hour and of a journal: what is read must be what was written, or less.
func TestDamage(t *testing.T) {
	c := &clock{noon}
	mem := vfs.NewMem()
	r := newRecorder(t, mem, c, nil)
	r.Count(&Search{Index: "i", Query: "first", At: noon})
	write(t, r)
	c.now = c.now.Add(time.Hour)
	write(t, r)
	for _, query := range []string{"second", "third"} {
		r.Count(&Search{Index: "i", Query: query, At: c.now})
		write(t, r)
	}
	shut(t, r)
	good := map[string]bool{}
	for _, list := range []string{"", "first", "second", "first second", "second third", "first second third"} {
		var all []string
		for _, query := range strings.Fields(list) {
			all = append(all, "i/"+query+"=1")
		}
		good[strings.Join(all, " ")] = true
	}
	seen := map[string]int{}
	for _, name := range []string{"analytics/journal", "analytics/2026-11-27T12.json"} {
		b, err := vfs.ReadFile(mem, name)
		if err != nil {
			t.Fatal(err)
		}
		for i := range b {
			for _, cut := range []bool{false, true} {
				damaged := slices.Clone(b)
				if damaged[i] ^= 0x10; cut {
					damaged = b[:i]
				}
				clone := mem.CrashClone(nil)
				if err := vfs.WriteFile(clone, name, damaged); err != nil {
					t.Fatal(err)
				}
				r := newRecorder(t, clone, c, nil)
				write(t, r)
				got := rows(t, r, Range{}, MostSearched)
				if seen[got]++; !good[got] {
					t.Errorf("byte %d of %s: %s", i, name, got)
				}
				shut(t, r)
			}
		}
	}
	if len(seen) < 4 {
		t.Errorf("only %v", seen)
	}
}

// model holds what a recorder must have: at least the written counts, at most the counted ones.
type model struct{ written, counted map[string]uint64 }

// TestCrashes crashes before each file operation. Each query must have at least its last written count, and at most what was counted.
func TestCrashes(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	type state struct {
		fs vfs.FS
		model
		now      time.Time
		deleting bool
		kind     vfs.OpKind
	}
	c := &clock{noon}
	mem := vfs.NewMem()
	m := model{map[string]uint64{}, map[string]uint64{}}
	var states []state
	deleting := false
	r := newRecorder(t, vfs.Hook(mem, func(op vfs.Op) error {
		if op.Kind.Changes() {
			for _, of := range []*rand.Rand{rng, nil} {
				states = append(states, state{mem.CrashClone(of), model{maps.Clone(m.written), maps.Clone(m.counted)}, c.now, deleting, op.Kind})
			}
		}
		return nil
	}), c, nil)
	for step := range 60 {
		for range 1 + rng.IntN(4) {
			query := fmt.Sprint("q", rng.IntN(5))
			r.Count(&Search{Index: "i", Query: query, At: c.now})
			m.counted[query]++
		}
		switch rng.IntN(12) {
		case 0, 1, 2:
			c.now = c.now.Add(time.Hour)
		case 3:
			c.now = c.now.Add(-time.Hour)
		case 4:
			r.journal.rewrite = true
		case 5:
			if step%2 == 0 {
				break
			}
			deleting = true
			if err := r.Delete(context.Background(), Range{}); err != nil {
				t.Fatal(err)
			}
			deleting = false
			clear(m.written)
			clear(m.counted)
		}
		write(t, r)
		m.written = maps.Clone(m.counted)
	}
	shut(t, r)
	if len(states) < 150 {
		t.Fatalf("only %d states", len(states))
	}
	for i, st := range states {
		c.now = st.now
		r := newRecorder(t, st.fs, c, nil)
		write(t, r)
		report, err := r.Queries(context.Background(), Range{From: noon.Add(-1000 * time.Hour)}, MostSearched, 100)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]uint64{}
		for _, row := range report.Rows {
			got[row.Text] = row.Searches
		}
		for query, counted := range st.counted {
			if got[query] > counted || !st.deleting && got[query] < st.written[query] {
				t.Errorf("state %d of %d, before %s: %s has %d, written %d, counted %d", i, len(states), st.kind, query, got[query], st.written[query], counted)
			}
		}
		for query := range got {
			if st.counted[query] == 0 {
				t.Errorf("state %d of %d: %s is back", i, len(states), query)
			}
		}
		shut(t, r)
	}
}

// TestAStopOnAFullDisk closes a recorder whose disk is full: that is no error of the program, but the log says what is lost.
func TestAStopOnAFullDisk(t *testing.T) {
	var said strings.Builder
	armed := false
	fsys := vfs.Hook(vfs.NewMem(), func(op vfs.Op) error {
		if armed && op.Kind == vfs.OpWrite {
			return errors.New("no space left on device")
		}
		return nil
	})
	r := newRecorder(t, fsys, &clock{noon}, slog.New(slog.NewTextHandler(&said, nil)))
	armed = true
	r.Count(&Search{Index: "i", Query: "q", At: noon})
	if err := r.Close(); err != nil || !strings.Contains(said.String(), "before the stop") {
		t.Errorf("%v, %s", err, said.String())
	}
}

// TestAFullDisk fails the operations of some seconds, starting at each one. The log must report it once, searches must be counted, and
// nothing may be lost when there is room again.
func TestAFullDisk(t *testing.T) {
	full := errors.New("no space left on device")
	for from := int64(1); ; from++ {
		var said strings.Builder
		mem, c := vfs.NewMem(), &clock{noon}
		armed := false
		fail := vfs.FailFrom(from, 6, func(op vfs.Op) bool { return armed && op.Kind.Changes() }, full)
		r := newRecorder(t, vfs.Hook(mem, fail), c, slog.New(slog.NewTextHandler(&said, nil)))
		armed = true
		failed, failures, recoveries := false, 0, 0
		for i := range 20 {
			r.Count(&Search{Index: "i", Query: fmt.Sprint("q", i%3), At: c.now})
			err := r.write()
			if err != nil && !errors.Is(err, full) {
				t.Fatal(err)
			}
			switch {
			case err != nil && !failed:
				failures++
			case err == nil && failed:
				recoveries++
			}
			failed = err != nil
			if i%5 == 4 {
				c.now = c.now.Add(time.Hour)
			}
		}
		errs, ends := strings.Count(said.String(), "level=ERROR"), strings.Count(said.String(), "written again")
		if errs != failures || ends != recoveries || failures > 0 && r.Numbers().WriteFailures == 0 {
			t.Errorf("operations fail from %d on, %d times in a row, which end %d times: %s", from, failures, recoveries, said.String())
		}
		armed = false
		write(t, r)
		shut(t, r)
		r = newRecorder(t, mem.CrashClone(nil), c, nil)
		if got := rows(t, r, Range{}, MostSearched); got != "i/q0=7 i/q1=7 i/q2=6" {
			t.Errorf("operations fail from %d on: %s", from, got)
		}
		shut(t, r)
		if failures == 0 {
			if from < 20 {
				t.Errorf("only %d operations", from)
			}
			return
		}
	}
}

func TestTheRecorderWrites(t *testing.T) {
	mem := vfs.NewMem()
	o := Options{FS: mem, Dir: "analytics", Retention: time.Hour, Now: time.Now, Log: slog.New(slog.DiscardHandler)}
	r, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	r.Count(&Search{Index: "i", Query: "q", At: time.Now()})
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if r, err = Open(o); err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got := rows(t, r, Range{From: time.Now().Add(-time.Hour)}, MostSearched); got != "i/q=1" {
		t.Errorf("after Close there is %q", got)
	}
}

func TestCountAllocatesNothing(t *testing.T) {
	r := newRecorder(t, vfs.NewMem(), &clock{noon}, nil)
	q := Search{Index: "films", Query: "The Lord of the Ringés", Filter: []byte(`"genre = \"Fantasy\" AND year > 2000"`), Took: time.Millisecond, At: noon}
	r.Count(&q)
	if n := testing.AllocsPerRun(100, func() { r.Count(&q) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func FuzzParseJournal(f *testing.F) {
	e := &entry{key: string(appendKey(nil, filterKind, "i")) + "x", Counts: Counts{Searches: 300, Longest: 1}}
	b, payload := beginFrame(appendHeader(nil, 495000))
	b = appendRecord(b, e)
	endFrame(b, payload)
	f.Add(b)
	f.Add(append(b, b[headerBytes:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		found, err := parseJournal(b)
		if found == nil {
			if err == nil {
				t.Error("no entry and no error")
			}
			return
		}
		again, payload := beginFrame(appendHeader(nil, found.hour))
		for key, n := range found.counts {
			again = appendRecord(again, &entry{key: key, Counts: n})
		}
		endFrame(again, payload)
		if same, err := parseJournal(again); err != nil || same.hour != found.hour || !maps.Equal(same.counts, found.counts) {
			t.Errorf("%v, read again %v, %v", found, same, err)
		}
	})
}

func FuzzDecodeHour(f *testing.F) {
	f.Add([]byte(`{"hour":"2026-11-27T12:00:00Z","queries":[{"index":"i","text":"q","searches":1}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		entries, err := decodeHour(hourOf(noon), b)
		if err != nil {
			return
		}
		again, err := encodeHour(hourOf(noon), entries)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := decodeHour(hourOf(noon), again); err != nil || len(same) != len(entries) {
			t.Errorf("%d entries, read again %d, %v", len(entries), len(same), err)
		}
	})
}

func BenchmarkCount(b *testing.B) {
	r := newRecorder(b, vfs.NewMem(), &clock{noon}, nil)
	filter := []byte(`"genre = \"Fantasy\" AND year > 2000"`)
	queries := make([]string, 1000)
	for i := range queries {
		queries[i] = fmt.Sprintf("Query number %d", i)
	}
	for _, of := range []struct {
		name   string
		filter []byte
	}{{"query", nil}, {"query and filter", filter}} {
		b.Run(of.name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				q := Search{Index: "films", Query: queries[i%len(queries)], Filter: of.filter, Took: time.Millisecond, At: noon, Request: [16]byte{8: byte(i), byte(i >> 8), byte(i >> 16)}}
				r.Count(&q)
			}
		})
	}
}
