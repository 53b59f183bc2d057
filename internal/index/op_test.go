package index

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/script"
	"svc/internal/vfs"
	"svc/segment"
)

func TestPointsAreCheckedWhileGeoIsInUse(t *testing.T) {
	bad := []string{`"48,2"`, `[48,2]`, `5`, `true`, `{}`, `{"lat":1}`, `{"lng":1}`, `{"lat":"north","lng":1}`, `{"lat":1,"lng":"east"}`,
		`{"lat":1,"lng":2,"alt":3}`, `{"lat":null,"lng":2}`, `{"lat":[1],"lng":2}`, `{"lat":true,"lng":1}`, `{"lat":"1e999","lng":1}`, `{"lat":"NaN","lng":1}`,
		`{"lat":1,"lng":" 2"}`, `{"lat":"1_0","lng":2}`, `{"lat":"0x1p4","lng":2}`}
	good := []string{`{"lat":48.85,"lng":2.35}`, `{"lat":"45.76","lng":"+4.83e0"}`, `null`, `{"lat":0,"lng":-180}`}
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	points := func(ix *Index) (n int) {
		v := held(ix.View())
		defer v.Release()
		for _, l := range v.Segments {
			if g := l.Geo(); g != nil {
				rows := g.Rows().Clone()
				rows.And(l.LiveRows())
				n += int(rows.GetCardinality())
			}
		}
		return n
	}

	// Without the setting the field may have any value.
	free := b.create("free")
	for i, g := range append(bad, good...) {
		b.apply(free, b.payload(fmt.Sprintf(`{"id":%d,"_geo":%s}`, i, g)))
	}
	b.batch++
	_, err := free.Apply(context.Background(), b.batch, []Op{update(t, `{"sortableAttributes":["_geo"]}`)}, nil)
	wantCode(t, err, "invalid_document_geo_field")
	b.apply(free, update(t, `{"filterableAttributes":["n"]}`))

	// With the setting, each bad point fails its payload.
	ix := b.create("g")
	b.apply(ix, update(t, `{"sortableAttributes":["_geo"]}`))
	for _, g := range bad {
		r := b.try(ix, b.payload(`{"id":1,"_geo":`+g+`}`), b.merge(`{"id":2,"_geo":`+g+`}`))
		wantCode(t, r[0].Err, "invalid_document_geo_field")
		wantCode(t, r[1].Err, "invalid_document_geo_field")
	}
	for i, g := range good {
		b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d,"_geo":%s}`, i, g)))
	}
	if n := points(ix); n != 3 {
		t.Errorf("%d points, want 3", n)
	}
	b.apply(ix, b.merge(`{"id":0,"_geo":null}`))
	if n := points(ix); n != 2 {
		t.Errorf("%d points after one was removed, want 2", n)
	}

	// A later setting finds the existing points.
	late := b.create("late")
	b.apply(late, b.payload(`{"id":1,"_geo":{"lat":1,"lng":2}}`, `{"id":2,"note":"\"_geo\""}`))
	b.apply(late, update(t, `{"filterableAttributes":["_geo"]}`))
	if n := points(late); n != 1 {
		t.Errorf("%d points, want 1", n)
	}
}

func function(t *testing.T, source string) *script.Function {
	t.Helper()
	s, err := script.Compile(source, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func expr(t *testing.T, source string) *filter.Expr {
	t.Helper()
	e, err := filter.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestEditByFunction(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("e")
	b.apply(ix, update(t, `{"filterableAttributes":["kind"],"sortableAttributes":["_geo"]}`))
	b.apply(ix, b.payload(`{"id":1,"n":3,"kind":"a"}`, `{"id":2,"n":10,"kind":"b"}`, `{"id":3,"n":-4,"kind":"a"}`))
	before := held(ix.View())
	all := documents(t, before)
	before.Release()
	for source, code := range map[string]apierr.Code{
		`doc.n = missing`:               "edit_documents_by_function_error",
		`doc.id = 99`:                   "edit_documents_by_function_error",
		`doc.remove("id")`:              "missing_document_id",
		`doc._geo = 5`:                  "invalid_document_geo_field",
		`if doc.id == 3 { throw "no" }`: "edit_documents_by_function_error",
	} {
		r := b.try(ix, EditDocuments{Function: function(t, source)})
		if r[0].Err == nil || r[0].Edited != 0 {
			t.Errorf("%s: %+v", source, r[0])
			continue
		}
		wantCode(t, r[0].Err, code)
		wantDocuments(t, ix, all)
	}
	r := b.try(ix, EditDocuments{Function: function(t, `doc.n = 1`), Filter: expr(t, "n = 1")})
	wantCode(t, r[0].Err, "invalid_document_filter")

	r = b.apply(ix, EditDocuments{Function: function(t, `doc.n = doc.n * 2`), Filter: expr(t, "kind = a")})
	if r[0].Edited != 2 || r[0].Deleted != 0 {
		t.Errorf("%+v, want 2 edited and none deleted", r[0])
	}
	r = b.apply(ix, EditDocuments{Function: function(t, `if doc.n < 0 { doc = () }`)})
	if r[0].Edited != 3 || r[0].Deleted != 1 {
		t.Errorf("%+v, want 3 edited and one deleted", r[0])
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"n":6,"kind":"a"}`, "2": `{"id":2,"n":10,"kind":"b"}`})
	b.checkFresh(ix)

	// A script that changes nothing writes nothing.
	v := held(ix.View())
	segments := len(v.Segments)
	v.Release()
	b.apply(ix, EditDocuments{Function: function(t, `let unused = 5;`)})
	v = held(ix.View())
	defer v.Release()
	if len(v.Segments) != segments {
		t.Errorf("%d segments, want %d as before", len(v.Segments), segments)
	}
	for _, name := range list(t, b.fs, catalogDir) {
		if strings.HasSuffix(name, vfs.TempSuffix) {
			t.Errorf("%s is left", name)
		}
	}
}

// TestEditAfterOtherOperations checks that a script sees the results of earlier operations of its batch.
func TestEditAfterOtherOperations(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("e")
	b.apply(ix, b.payload(`{"id":1,"n":1}`, `{"id":2,"n":2}`))
	r := b.apply(ix, b.merge(`{"id":1,"m":5}`), DeleteDocuments{[]string{"2"}},
		EditDocuments{Function: function(t, `doc.n += 10`)}, EditDocuments{Function: function(t, `doc.n += 10`)}, b.merge(`{"id":1,"z":0}`))
	if r[2].Edited != 1 {
		t.Errorf("%+v, want 1 edited", r[2])
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"n":21,"m":5,"z":0}`})
}

func TestDeleteByFilter(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("d")
	b.apply(ix, update(t, `{"filterableAttributes":["kind"]}`), b.payload(`{"id":1,"kind":"odd"}`, `{"id":2,"kind":"even"}`, `{"id":3,"kind":"odd"}`))
	b.apply(ix, b.payload(`{"id":5,"kind":"odd"}`))
	r := b.try(ix, DeleteDocuments{[]string{"1"}}, DeleteByFilter{[]byte(`"n = 1"`)}, DeleteByFilter{[]byte(`["kind = odd"]`)}, DeleteByFilter{[]byte(`"kind = odd"`)})
	wantCode(t, r[1].Err, "invalid_document_filter")
	if r[0].Deleted != 1 || r[2].Deleted != 2 || r[3].Deleted != 0 {
		t.Errorf("deleted %v, want 1, 2, 0", r)
	}
	wantDocuments(t, ix, map[string]string{"2": `{"id":2,"kind":"even"}`})
}

func TestTooManyFieldsFailTheBatch(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
	defer b.close()
	ix := b.create("f")
	var doc strings.Builder
	doc.WriteString(`{"id":1`)
	for i := range maxFields - 1 {
		fmt.Fprintf(&doc, `,"f%d":1`, i)
	}
	b.batch++
	_, err := ix.Apply(context.Background(), b.batch, []Op{b.payload(doc.String() + `,"more":1}`)}, nil)
	wantCode(t, err, "max_fields_limit_exceeded")
	b.apply(ix, b.payload(`{"id":1,"few":"fields"}`))
	b.apply(ix, b.payload(`{"id":2,"_vectors":{"not":[0.5]}}`))
	v := held(ix.View())
	defer v.Release()
	if v.Fields.Len() != 3 {
		t.Errorf("%d fields, want id, few and _vectors, without those of the failed batch", v.Fields.Len())
	}
}

// TestLongFieldNamesFailTheBatch adds documents whose paths are longer than those of one field, or of all fields, may be. The paths of
// members repeat the names around them, so a document of a megabyte can have gigabytes of them.
func TestLongFieldNamesFailTheBatch(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
	defer b.close()
	ix := b.create("f")
	long := func(bytes int) string { return strings.Repeat("x", bytes) }
	members := func(name string, n int) string {
		var doc strings.Builder
		fmt.Fprintf(&doc, `{"id":1,"%s":{"a":1`, name)
		for i := range n {
			fmt.Fprintf(&doc, `,"f%d":1`, i)
		}
		return doc.String() + `}}`
	}
	for _, doc := range []string{
		`{"id":1,"` + long(maxPathBytes+1) + `":1}`,
		`{"id":1,"` + long(maxPathBytes-1) + `":{"y":1}}`,
		members(long(maxPathBytes-10), maxNamesBytes/maxPathBytes),
		members(long(1<<20), 5000), // which would be five gigabytes
	} {
		b.batch++
		_, err := ix.Apply(context.Background(), b.batch, []Op{b.payload(doc)}, nil)
		wantCode(t, err, "max_fields_limit_exceeded")
	}
	b.apply(ix, b.payload(`{"id":1,"`+long(maxPathBytes-2)+`":{"y":1}}`))
	b.apply(ix, b.payload(members(long(maxPathBytes-10), maxNamesBytes/maxPathBytes/2)))
	b.batch++
	_, err := ix.Apply(context.Background(), b.batch, []Op{b.payload(members(long(maxPathBytes-11), maxNamesBytes/maxPathBytes/2))}, nil)
	wantCode(t, err, "max_fields_limit_exceeded")                                        // with those that the index has
	b.apply(ix, b.payload(members(long(maxPathBytes-10), maxNamesBytes/maxPathBytes/2))) // which are no more
}

// TestTooLargeDocuments lets updates make documents larger than segments take.
func TestTooLargeDocuments(t *testing.T) {
	defer func(n int) { document.MaxBytes = n }(document.MaxBytes)
	document.MaxBytes = 1000
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("l")
	text := strings.Repeat("x", 400)
	b.apply(ix, b.payload(`{"id":1,"a":"`+text+`"}`, `{"id":2}`))
	b.apply(ix, b.merge(`{"id":1,"b":"`+text+`"}`))
	b.batch++
	_, err := ix.Apply(context.Background(), b.batch, []Op{b.merge(`{"id":1,"c":"` + text + `"}`)}, nil)
	wantCode(t, err, "payload_too_large")
	r := b.apply(ix, b.patch(`{"id":1,"set":{"c":"`+text+`"}}`, `{"id":2,"set":{"c":"`+text+`"}}`))
	if got := r[0].Patched.codes(); !slices.Equal(got, []string{"0 1 inapplicable_document_operation"}) {
		t.Errorf("operations: %v", got)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"a":"` + text + `","b":"` + text + `"}`, "2": `{"id":2,"c":"` + text + `"}`})
}

// TestSettingsChanges checks what a change writes: nothing if nothing is stale, new columns beside the segments, and nothing
// if it is refused.
func TestSettingsChanges(t *testing.T) {
	var log vfs.Log
	b := newBed(t, vfs.Hook(vfs.NewMem(), log.Hook), Options{MaxIndexingThreads: 2})
	defer b.close()
	ix := b.create("s")
	b.apply(ix, b.payload(`{"id":1,"n":4,"t":"the cat"}`, `{"id":2,"t":"the dog"}`))
	b.apply(ix, b.payload(`{"id":3,"n":5}`))
	for _, c := range []struct {
		update            string
		segments, columns int
	}{
		{`{"synonyms":{"cat":["dog"]},"pagination":{"maxTotalHits":5}}`, 0, 0},
		{`{"filterableAttributes":["n"]}`, 0, 2}, // one beside each segment
		{`{"filterableAttributes":["n","none"]}`, 0, 0},
		{`{"filterableAttributes":[]}`, 0, 0},
		{`{"sortableAttributes":["n","t"]}`, 0, 1}, // the first segment still has the column of n, the second has no t
		{`{"prefixSearch":"disabled"}`, 0, 0},
		{`{"prefixSearch":"indexingTime","filterableAttributes":["id"]}`, 2, 0},
		{`{"sortableAttributes":[]}`, 0, 0},
		{`{"stopWords":["the"]}`, 1, 0}, // one segment for all
		{`{"sortableAttributes":["n"]}`, 0, 1},
	} {
		log.Take()
		b.apply(ix, update(t, c.update))
		made := map[string]int{}
		for _, line := range log.Take() {
			if strings.HasPrefix(line, "create ") {
				made[path.Ext(line)]++
			}
		}
		if made[segSuffix] != c.segments || made[colSuffix] != c.columns {
			t.Errorf("%s: %d segments and %d files of columns written, want %d and %d", c.update, made[segSuffix], made[colSuffix], c.segments, c.columns)
		}
		b.checkFresh(ix)
	}
	b.batch++
	_, err := ix.Apply(context.Background(), b.batch, []Op{b.payload(`{"id":9}`),
		update(t, `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":9}}}`), update(t, `{"typoTolerance":{"minWordSizeForTypos":{"twoTypos":5}}}`)}, nil)
	wantCode(t, err, "invalid_settings_typo_tolerance")
	v := held(ix.View())
	defer v.Release()
	if v.Documents() != 3 || v.Settings.TypoTolerance.OneTypo != 5 {
		t.Errorf("a refused batch changed %d documents or the settings %+v", v.Documents(), v.Settings.TypoTolerance)
	}
}

// TestDocumentsAndSettingsInOneBatch checks that documents in one batch with a change of settings are written under the new settings.
func TestDocumentsAndSettingsInOneBatch(t *testing.T) {
	for _, change := range []string{`{"stopWords":["old"]}`, `{"filterableAttributes":["t"]}`} {
		b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
		ix := b.create("s")
		b.apply(ix, b.payload(`{"id":1,"t":"old one"}`, `{"id":2,"t":"old two"}`, `{"id":3,"t":"old three"}`))
		b.apply(ix, b.payload(`{"id":2,"t":"new old two"}`), DeleteDocuments{[]string{"1"}}, update(t, change), b.payload(`{"id":4,"t":"old four"}`))
		wantDocuments(t, ix, map[string]string{"2": `{"id":2,"t":"new old two"}`, "3": `{"id":3,"t":"old three"}`, "4": `{"id":4,"t":"old four"}`})
		b.checkFresh(ix)
		b.close()
	}
}

// TestSmallMemoryMakesMoreSegments checks that each worker writes a segment whenever its share of the memory is full, and that one commit
// covers all of them.
func TestSmallMemoryMakesMoreSegments(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 3, MaxIndexingMemory: 1})
	defer b.close()
	b.c.builderBytes = 1
	b.c.importPlan.MinRun, b.c.importPlan.MinLargeRun = 1000, 1000 // so that they are not merged
	ix := b.create("m")
	var docs []string
	for i := range 4 * chunkDocuments {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":%q}`, i, strings.Repeat(fmt.Sprint("word", i%50, " "), 10)))
	}
	b.apply(ix, b.payload(docs...))
	v := held(ix.View())
	n := len(v.Segments)
	v.Release()
	if n < 100 {
		t.Errorf("%d segments, want about one per document", n)
	}
	b.checkFresh(ix)
	if merges := b.compact(ix); merges == 0 {
		t.Error("nothing was merged")
	}
	b.checkFresh(ix)
}

func TestProgressNamesTheSteps(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	outer := func(ops ...Op) []string {
		t.Helper()
		b.batch++
		var names []string
		if _, err := ix.Apply(context.Background(), b.batch, ops, func(level int, s Step) {
			if level == 0 && (len(names) == 0 || names[len(names)-1] != s.Name) {
				names = append(names, s.Name)
				if s.Finished != len(names)-1 {
					t.Errorf("%s is step %d, want %d", s.Name, s.Finished, len(names)-1)
				}
			}
			if s.Finished > s.Total || s.Finished < 0 {
				t.Errorf("%+v is more than all", s)
			}
		}); err != nil {
			t.Fatal(err)
		}
		return names
	}
	for _, c := range []struct {
		op   Op
		want string
	}{
		{b.payload(`{"id":1}`), "retrieving config, computing document changes, reading payload stats, indexing"},
		{EditDocuments{Function: function(t, `doc.x = 1`)}, "retrieving config, computing document changes, indexing"},
		{DeleteDocuments{[]string{"1"}}, "retrieving config, delete documents, indexing"},
		{update(t, `{"stopWords":["a"]}`), "retrieving and merging the settings, apply the settings"},
	} {
		if got := strings.Join(outer(c.op), ", "); got != c.want {
			t.Errorf("steps %q, want %q", got, c.want)
		}
	}
}

func TestDamageInAPayloadFailsTheBatch(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("p")
	for _, line := range []string{"no json\n", `{"id":1,"a":}` + "\n"} {
		if err := vfs.WriteFile(b.fs, "payloads/bad", []byte(line)); err != nil {
			t.Fatal(err)
		}
		b.batch++
		r, err := ix.Apply(context.Background(), b.batch, []Op{AddDocuments{Payload: "payloads/bad", PrimaryKey: "id"}}, nil)
		if err == nil && r[0].Err == nil {
			t.Errorf("%q was accepted", line)
		}
	}
	wantDocuments(t, ix, map[string]string{})
}

// TestIDTableAgreesWithAMap compares the id table with a map.
func TestIDTableAgreesWithAMap(t *testing.T) {
	var table idTable
	seen := map[string]int{}
	for i := range 20000 {
		if i%5000 == 1 {
			table.reserve(i / 2)
		}
		id := fmt.Sprint("doc-", (i*7919)%9000)
		n, added := table.find([]byte(id))
		want, known := seen[id]
		if !known {
			want = len(seen)
			seen[id] = want
		}
		if n != want || added == known {
			t.Fatalf("find(%s) = %d, %v, want %d, %v", id, n, added, want, !known)
		}
	}
	for id, n := range seen {
		if string(table.id(n)) != id {
			t.Fatalf("id %d is %s, want %s", n, table.id(n), id)
		}
	}
}

func TestLinesOfAnyLength(t *testing.T) {
	fsys := vfs.NewMem()
	lines := []string{"a", strings.Repeat("b", readAhead-2), strings.Repeat("c", 3*readAhead), "", "d", strings.Repeat("e", readAhead), "f",
		strings.Repeat("g", largeBytes-1), strings.Repeat("h", largeBytes), "i", strings.Repeat("j", 3*largeBytes)}
	for _, end := range []string{"", "\n"} {
		if err := vfs.WriteFile(fsys, "/lines", []byte(strings.Join(lines, "\n")+end)); err != nil {
			t.Fatal(err)
		}
		f, err := fsys.Open("/lines")
		if err != nil {
			t.Fatal(err)
		}
		read := payloadReader{fs: fsys}
		var got []string
		if err := eachLine(fsys, "/lines", f, func(offset int64, line []byte) error {
			got = append(got, string(line))
			again, err := read.read("/lines", offset, len(line))
			if err == nil && string(again) != string(line) {
				err = errors.New("another line is at its offset")
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := read.read("/lines", 0, 1); err != nil { // back to the start
			t.Error(err)
		}
		if _, err := read.read("/lines", 1<<30, 1); err == nil {
			t.Error("a read beyond the end succeeded")
		}
		read.close()
		f.Close()
		if want := slices.DeleteFunc(slices.Clone(lines), func(s string) bool { return s == "" }); !slices.Equal(got, want) {
			t.Errorf("%d lines, want %d", len(got), len(want))
		}
	}
}

func TestAllocatorGivesTheLowestFreeNumber(t *testing.T) {
	a := newAllocator(&View{})
	take := func(want ...segment.DocID) {
		t.Helper()
		for _, w := range want {
			if id, err := a.take(); id != w || err != nil {
				t.Fatalf("took %d, %v, want %d", id, err, w)
			}
		}
	}
	take(0, 1, 2, 3)
	a.begin() // as after a failed batch
	take(0, 1, 2)
	a.committed()
	a.free(1)
	take(3)
	a.committed()
	take(1, 4)
	a.startOver()
	take(0, 1)
	a.committed()
	take(2)
}
