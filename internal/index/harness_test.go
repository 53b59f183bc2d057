package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/geo"
	"svc/internal/mapped"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
)

const catalogDir = "data/indexes"

// bed is a catalog on its own file system, with a counter of batches.
type bed struct {
	t        testing.TB
	fs       vfs.FS
	options  Options
	c        *Catalog
	batch    uint64
	payloads int
}

func newBed(t testing.TB, fsys vfs.FS, o Options) *bed {
	b := &bed{t: t, fs: fsys, options: o}
	if err := fsys.MkdirAll("payloads"); err != nil {
		t.Fatal(err)
	}
	b.options.FS = fsys
	if b.options.inlineSettings == 0 {
		b.options.inlineSettings = len(settings.Default().Encode()) + 8 // so that few synonyms need a file
	}
	if b.options.Now == nil {
		now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
		b.options.Now = func() time.Time { now = now.Add(time.Second); return now }
	}
	b.open()
	return b
}

// open opens the catalog without background compaction, so that tests decide when to compact.
func (b *bed) open() {
	b.t.Helper()
	c, err := openCatalog(catalogDir, b.options)
	if err != nil {
		b.t.Fatal(err)
	}
	c.inlineTombstones = 19 // so that few documents lead to every kind of file
	b.c = c
}

func (b *bed) reopen() {
	b.t.Helper()
	b.close()
	b.open()
}

func (b *bed) close() {
	b.t.Helper()
	if err := b.c.Close(); err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) create(uid string) *Index {
	b.t.Helper()
	b.batch++
	ix, err := b.c.Create(uid, "", b.batch)
	if err != nil {
		b.t.Fatal(err)
	}
	return ix
}

// payload writes documents to a payload file.
func (b *bed) payload(docs ...string) AddDocuments {
	b.t.Helper()
	name := fmt.Sprintf("payloads/%d", b.payloads)
	b.payloads++
	var lines bytes.Buffer
	n, err := document.Convert(&lines, strings.NewReader("["+strings.Join(docs, ",")+"]"), document.JSON, ',')
	if err != nil {
		b.t.Fatal(err)
	}
	if err := vfs.WriteFile(b.fs, name, lines.Bytes()); err != nil {
		b.t.Fatal(err)
	}
	return AddDocuments{Payload: name, Documents: n}
}

func (b *bed) merge(docs ...string) AddDocuments {
	a := b.payload(docs...)
	a.Merge = true
	return a
}

func update(t testing.TB, body string) UpdateSettings {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(body), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	return UpdateSettings{u}
}

// apply runs a batch, all of whose operations must succeed.
func (b *bed) apply(ix *Index, ops ...Op) []OpResult {
	b.t.Helper()
	results := b.try(ix, ops...)
	for i, r := range results {
		if r.Err != nil {
			b.t.Fatalf("operation %d: %v", i, r.Err)
		}
	}
	return results
}

// try runs a batch whose operations may fail.
func (b *bed) try(ix *Index, ops ...Op) []OpResult {
	b.t.Helper()
	b.batch++
	if b.batch%3 == 0 { // now and then the index has been idle
		ix.evict()
	}
	results, err := ix.Apply(context.Background(), b.batch, ops, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	return results
}

// compact runs all merges that the plan wants.
func (b *bed) compact(ix *Index) (merges int) {
	b.t.Helper()
	for {
		k := b.c.compactor
		again, err := ix.compactOnce(context.Background(), k.plan, -1, k.plan.MaxBytes, unthrottled)
		if err != nil {
			b.t.Fatal(err)
		}
		if !again {
			return merges
		}
		merges++
	}
}

// documents returns id → JSON of all documents, and checks that the view is consistent.
func documents(t testing.TB, v *View) map[string]string {
	t.Helper()
	docs := make(map[string]string)
	byID := make(map[segment.DocID]string)
	for i, l := range v.Segments {
		for it := l.LiveRows().Iterator(); it.HasNext(); {
			row := segment.Row(it.Next())
			doc, err := l.AppendDocument(nil, row)
			if err != nil {
				t.Fatal(err)
			}
			id := string(l.ExternalID(row))
			if _, twice := docs[id]; twice {
				t.Fatalf("document %s is in two segments", id)
			}
			if other, twice := byID[l.DocID(row)]; twice {
				t.Fatalf("documents %s and %s have the number %d", id, other, l.DocID(row))
			}
			docs[id], byID[l.DocID(row)] = string(doc), id
			if seg, r, ok := v.Find([]byte(id)); !ok || seg != i || r != row {
				t.Fatalf("Find(%s) = %d, %d, %v, want %d, %d", id, seg, r, ok, i, row)
			}
		}
	}
	if len(docs) != v.Documents() {
		t.Fatalf("%d documents, Documents() = %d", len(docs), v.Documents())
	}
	return docs
}

// numbers returns id → DocID.
func numbers(v *View) map[string]segment.DocID {
	m := make(map[string]segment.DocID)
	for _, l := range v.Segments {
		for it := l.LiveRows().Iterator(); it.HasNext(); {
			row := segment.Row(it.Next())
			m[string(l.ExternalID(row))] = l.DocID(row)
		}
	}
	return m
}

// dump returns everything that searches can see of a view. The division into segments and the numbers of documents and fields make
// no difference.
func dump(t testing.TB, v *View) string {
	t.Helper()
	lines := make(map[string][]string)
	add := func(key, format string, args ...any) { lines[key] = append(lines[key], fmt.Sprintf(format, args...)) }
	for id, doc := range documents(t, v) {
		add("document "+id, "%s", doc)
	}
	for _, l := range v.Segments {
		alive := l.LiveRows()
		id := func(row uint32) string { return string(l.ExternalID(segment.Row(row))) }
		for f := range v.Fields.Len() {
			info := v.Fields.Info(segment.FieldID(f))
			rows := l.Present(segment.FieldID(f)).Clone()
			rows.And(alive)
			for it := rows.Iterator(); it.HasNext(); {
				add("present "+info.Name, "%s", id(it.Next()))
			}
			keys := l.DottedKey(segment.FieldID(f)).Clone()
			keys.And(alive)
			for it := keys.Iterator(); it.HasNext(); {
				add("key "+info.Name, "%s", id(it.Next()))
			}
			if info.Searchable {
				for it := alive.Iterator(); it.HasNext(); {
					row := it.Next()
					if n := l.WordCount(segment.FieldID(f), segment.Row(row)); n > 0 {
						add("words of "+info.Name, "%s:%d", id(row), n)
					}
				}
			}
			if !info.Column {
				continue
			}
			c := l.Column(segment.FieldID(f))
			if c == nil {
				continue
			}
			for it := alive.Iterator(); it.HasNext(); {
				row := it.Next()
				for _, ord := range c.RowNumbers(nil, segment.Row(row)) {
					add("number of "+info.Name, "%s:%s", id(row), c.Number(int(ord)).AppendText(nil))
				}
				for _, ord := range c.RowStrings(nil, segment.Row(row)) {
					add("string of "+info.Name, "%s:%q", id(row), c.String(int(ord)))
				}
				if c.Null().Contains(row) {
					add("null of "+info.Name, "%s", id(row))
				}
				if c.Empty().Contains(row) {
					add("empty of "+info.Name, "%s", id(row))
				}
			}
		}
		if g := l.Geo(); g != nil {
			for it := alive.Iterator(); it.HasNext(); {
				row := it.Next()
				if lat, lng, ok := g.Point(segment.Row(row)); ok {
					add("points", "%s:%g,%g", id(row), lat, lng)
				}
			}
		}
		if s := l.Shapes(); s != nil {
			for i := range 12 { // stripes of the globe
				rows := roaring.New()
				s.AddRowsMeeting(rows, geo.BoxRegion(90, float64(30*i-180), -90, float64(30*i-150)))
				rows.And(alive)
				for it := rows.Iterator(); it.HasNext(); {
					add(fmt.Sprintf("shapes in stripe %d", i), "%s", id(it.Next()))
				}
			}
		}
		for _, e := range v.Embedders() {
			vs := l.Vectors(e.ID)
			if vs == nil {
				continue
			}
			for it := alive.Iterator(); it.HasNext(); {
				row := it.Next()
				if d, ok := vs.Row(nil, segment.Row(row)); ok {
					add("vectors for "+e.Name, "%s:%v,%v,%v", id(row), d.Vectors, d.Regenerate, d.Given)
				}
			}
		}
		terms := l.Terms(nil, nil, nil)
		for terms.Next() {
			p := terms.Posting()
			for i := range p.Fields() {
				fp := p.Field(i)
				info := v.Fields.Info(fp.ID())
				if !info.Searchable {
					continue
				}
				positions := fp.Positions()
				rows := fp.Rows().Clone()
				rows.And(alive)
				for it := rows.Iterator(); it.HasNext(); {
					row := it.Next()
					add(fmt.Sprintf("word %q in %s", terms.Word(), info.Name), "%s@%v", id(row), positions.Append(nil, segment.Row(row)))
				}
			}
		}
		if err := terms.Err(); err != nil {
			t.Fatal(err)
		}
	}
	var out strings.Builder
	for _, key := range slices.Sorted(maps.Keys(lines)) {
		slices.Sort(lines[key])
		fmt.Fprintf(&out, "%s: %s\n", key, strings.Join(lines[key], " "))
	}
	counts, _ := json.Marshal(v.FieldDistribution())
	fmt.Fprintf(&out, "fields: %s\n", counts)
	return out.String()
}

// copied returns a bed on a copy of frozen indexes.
func (b *bed) copied(frozen *Frozen) *bed {
	b.t.Helper()
	catalog, err := frozen.Catalog()
	if err != nil {
		b.t.Fatal(err)
	}
	files := []CopiedFile{catalog}
	for i := range frozen.Outlines() {
		of, err := frozen.Files(i)
		if err != nil {
			b.t.Fatal(err)
		}
		files = append(files, of...)
	}
	fsys := vfs.NewMem()
	for _, f := range files {
		content := f.Data
		if f.Path != "" {
			if content, err = vfs.ReadFile(b.fs, f.Path); err != nil {
				b.t.Fatal(err)
			}
		}
		to := path.Join(catalogDir, f.Name)
		if err := errors.Join(fsys.MkdirAll(path.Dir(to)), vfs.WriteFile(fsys, to, content)); err != nil {
			b.t.Fatal(err)
		}
	}
	copied := newBed(b.t, fsys, Options{})
	copied.batch = b.batch
	return copied
}

// checkFresh compares the index with one that got all of its documents at once.
func (b *bed) checkFresh(ix *Index) {
	b.t.Helper()
	v := held(ix.View())
	defer v.Release()
	got := dump(b.t, v)
	docs := documents(b.t, v)
	ids := numbers(v)
	order := slices.SortedFunc(maps.Keys(docs), func(x, y string) int { return int(ids[x]) - int(ids[y]) })
	var lines bytes.Buffer
	for _, id := range order {
		lines.WriteString(docs[id] + "\n")
	}
	fsys := vfs.NewMem()
	f := newBed(b.t, fsys, Options{})
	defer f.close()
	if err := vfs.WriteFile(fsys, "payloads/all", lines.Bytes()); err != nil {
		b.t.Fatal(err)
	}
	twin := f.create("twin")
	full, err := settings.UnmarshalUpdate(v.Settings.Full())
	if err != nil {
		b.t.Fatal(err)
	}
	f.apply(twin, UpdateSettings{full})
	f.apply(twin, AddDocuments{Payload: "payloads/all", PrimaryKey: v.PrimaryKey})
	w := held(twin.View())
	defer w.Release()
	b.checkCounts(ix, v)
	if want := dump(b.t, w); got != want {
		b.t.Fatalf("the index differs from one that got all documents at once:\n%s", firstDifference(got, want))
	}
}

// checkCounts compares the statistics of an index with its view.
func (b *bed) checkCounts(ix *Index, v *View) {
	b.t.Helper()
	c, err := ix.Counts()
	if err != nil {
		b.t.Fatal(err)
	}
	if ix.current.Load() != v {
		return // a merge was committed in between
	}
	vectors, embedded := v.Embeddings()
	deleted, bytes := 0, int64(0)
	for _, l := range v.Segments {
		deleted += l.Rows() - liveCount(l)
		bytes += l.Info().Bytes
	}
	if c.Documents != v.Documents() || c.SegmentBytes != bytes || c.Segments != len(v.Segments) || c.DeletedRows != deleted || c.Vectors != vectors || c.Embedded != embedded ||
		!maps.Equal(c.FieldDistribution, v.FieldDistribution()) {
		b.t.Fatalf("statistics %+v of %d documents in %d segments, %d rows deleted, %d vectors of %d, fields %v",
			c, v.Documents(), len(v.Segments), deleted, vectors, embedded, v.FieldDistribution())
	}
}

func firstDifference(got, want string) string {
	g, w := strings.Split(got, "\n"), strings.Split(want, "\n")
	var out []string
	for i := range max(len(g), len(w)) {
		var x, y string
		if i < len(g) {
			x = g[i]
		}
		if i < len(w) {
			y = w[i]
		}
		if x != y {
			out = append(out, "got  "+x, "want "+y)
		}
		if len(out) > 8 {
			break
		}
	}
	return strings.Join(out, "\n")
}

func wantDocuments(t testing.TB, ix *Index, want map[string]string) {
	t.Helper()
	v := held(ix.View())
	defer v.Release()
	if got := documents(t, v); !maps.Equal(got, want) {
		t.Fatalf("documents %v, want %v", got, want)
	}
}

func wantCode(t testing.TB, err error, code apierr.Code) {
	t.Helper()
	var e *apierr.Error
	if !errors.As(err, &e) || e.Code != code {
		t.Errorf("error %v, want code %s", err, code)
	}
}

// list returns the files below dir, without directories.
func list(t testing.TB, fsys vfs.FS, dir string) []string {
	t.Helper()
	names, err := fsys.List(dir)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, name := range names {
		at := path.Join(dir, name)
		info, err := fsys.Stat(at)
		if err != nil {
			t.Fatal(err)
		}
		if info.IsDir() {
			all = append(all, list(t, fsys, at)...)
		} else {
			all = append(all, at)
		}
	}
	return all
}

// TestMain fails when a test leaves a mapped file or a goroutine behind.
func TestMain(m *testing.M) {
	code := m.Run()
	left := goroutines()
	for end := time.Now().Add(2 * time.Minute); len(left) > 0 && time.Now().Before(end); left = goroutines() {
		time.Sleep(10 * time.Millisecond)
	}
	if n := mapped.Count(); code == 0 && n > 0 {
		fmt.Printf("%d mapped files are left\n", n)
		code = 1
	}
	if code == 0 && len(left) > 0 {
		fmt.Printf("%d goroutines are left:\n%s\n", len(left), strings.Join(left, "\n\n"))
		code = 1
	}
	os.Exit(code)
}

// goroutines returns the stacks of goroutines that run code of svc, except the caller.
func goroutines() []string {
	stacks := make([]byte, 1<<20)
	all := strings.Split(string(stacks[:runtime.Stack(stacks, true)]), "\n\n")
	return slices.DeleteFunc(all[1:], func(s string) bool { return !strings.Contains(s, "svc/") })
}

// held returns a view that must not fail.
func held(v *View, err error) *View {
	if err != nil {
		panic(err)
	}
	return v
}

// unthrottled lets a merge run at full speed.
func unthrottled(ctx context.Context, _ int) error { return ctx.Err() }
