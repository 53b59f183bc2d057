package search

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/embed"
	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/outbound"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// library is an in-memory catalog for settings and documents.
type library struct {
	t     testing.TB
	fs    vfs.FS
	c     *index.Catalog
	batch uint64
}

func newLibrary(t testing.TB) *library {
	t.Helper()
	l := &library{t: t, fs: vfs.NewMem()}
	var err error
	pool := embed.New(embed.Options{Policy: outbound.Any()})
	t.Cleanup(func() {
		if err := pool.Close(); err != nil {
			t.Error(err)
		}
	})
	if l.c, err = index.OpenCatalog("indexes", index.Options{FS: l.fs, Embedders: pool}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			return // Close waits for all views, and a failed test may hold one
		}
		l.checkLiveRows()
		if err := l.c.Close(); err != nil { // waits for unreleased views
			t.Error(err)
		}
	})
	return l
}

// checkLiveRows reports searches that modified the live rows of a view, which all its searches share.
func (l *library) checkLiveRows() {
	for _, uid := range l.c.UIDs() {
		v := held(l.c.Get(uid).View())
		for i, rows := range v.LiveRows() {
			if want := v.Segments[i].LiveRows(); !rows.Equals(want) {
				l.t.Errorf("the live rows of segment %d of %s are %v after the searches, want %v", i, uid, rows, want)
			}
		}
		v.Release()
	}
}

// put applies settings, if any, and then documents to an index, which it creates if missing.
func (l *library) put(uid, change string, docs ...string) {
	l.t.Helper()
	l.batch++
	ix := l.c.Get(uid)
	var err error
	if ix == nil {
		if ix, err = l.c.Create(uid, "id", l.batch); err != nil {
			l.t.Fatal(err)
		}
	}
	var ops []index.Op
	if change != "" {
		u, err := settings.ParseUpdate([]byte(change), settings.Features{ForeignKeys: true, Chat: true})
		if err != nil {
			l.t.Fatal(err)
		}
		ops = append(ops, index.UpdateSettings{Update: u})
	}
	if len(docs) > 0 {
		var lines bytes.Buffer
		n, err := document.Convert(&lines, strings.NewReader("["+strings.Join(docs, ",")+"]"), document.JSON, ',')
		if err != nil {
			l.t.Fatal(err)
		}
		if err := vfs.WriteFile(l.fs, "payload", lines.Bytes()); err != nil {
			l.t.Fatal(err)
		}
		ops = append(ops, index.AddDocuments{Payload: "payload", Documents: n})
	}
	results, err := ix.Apply(context.Background(), l.batch, ops, nil)
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			l.t.Fatal(r.Err)
		}
	}
}

func sameJSON(t *testing.T, got []byte, want string) bool {
	t.Helper()
	var a, b any
	if err := json.Unmarshal(got, &a); err != nil {
		t.Fatalf("%s: %v", got, err)
	}
	if err := json.Unmarshal([]byte(want), &b); err != nil {
		t.Fatalf("%s: %v", want, err)
	}
	return reflect.DeepEqual(a, b)
}

// search returns the hits as in the answer. It fills in the defaults of a request.
func (l *library) search(uid string, r Request, mayRead func(string) bool) ([]string, error) {
	l.t.Helper()
	v := held(l.c.Get(uid).View())
	defer v.Release()
	r.Foreign = &Foreign{Views: l.c.Views(), MayRead: mayRead}
	defer r.Foreign.Release()
	r.Limit, r.HighlightPreTag, r.HighlightPostTag = 20, "<em>", "</em>"
	found, err := Search(context.Background(), v, &r)
	if err != nil {
		return nil, err
	}
	body, err := found.AppendJSON(context.Background(), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	var answer struct{ Hits []json.RawMessage }
	if err := json.Unmarshal(body, &answer); err != nil {
		l.t.Fatalf("%v: %s", err, body)
	}
	hits := []string{}
	for _, h := range answer.Hits {
		hits = append(hits, string(h))
	}
	return hits, nil
}

func TestHydration(t *testing.T) {
	l := newLibrary(t)
	l.put("authors", `{"displayedAttributes":["name","born"]}`, `{"id":"ann","name":"Ann Vey","born":1950,"secret":"x"}`, `{"id":7,"name":"Cy","secret":"z"}`)
	l.put("authors", "", `{"id":"bo","name":"Bo","place":1}`, `{"id":"mute"}`) // another segment
	l.put("places", "", `{"id":1,"town":"Lyon","_geo":{"lat":45.7,"lng":4.8},"_vectors":{"manual":[1,2]},"in":2}`, `{"id":2,"town":"Rhône"}`)
	l.put("hidden", `{"displayedAttributes":[]}`, `{"id":1,"x":1}`)
	keys := ""
	for _, key := range []string{"author authors", "helpers authors", "credit.main authors", "credit.main.deep authors", "at places", "author places", "id places", "next books", "veil hidden", "a.b places"} {
		field, uid, _ := strings.Cut(key, " ")
		keys += fmt.Sprintf(`,{"fieldName":%q,"foreignIndexUid":%q}`, field, uid)
	}
	l.put("books", `{"sortableAttributes":["_geo"],"foreignKeys":[`+keys[1:]+`]}`)
	const ann, bo, cy = `{"name":"Ann Vey","born":1950}`, `{"name":"Bo"}`, `{"name":"Cy"}`
	const lyon = `{"id":1,"town":"Lyon","_geo":{"lat":45.7,"lng":4.8},"in":2}`
	for _, tt := range []struct {
		name, doc, want string
		request         Request
	}{
		{"text and number", `{"id":"a","author":"ann","at":1}`, `{"id":{},"author":` + ann + `,"at":` + lyon + `}`, Request{}},
		{"number as text", `{"id":"b","author":"7"}`, `{"id":{},"author":` + cy + `}`, Request{}},
		{"escaped", `{"id":"c","auth\u006fr":"\u0061nn"}`, `{"id":{},"auth\u006fr":` + ann + `}`, Request{}},
		{"unknown", `{"id":"d","author":"nobody","at":99}`, `{"id":{},"author":{},"at":{}}`, Request{}},
		{"nothing displayed", `{"id":"e","author":"mute","veil":1}`, `{"id":{},"author":{},"veil":{}}`, Request{}},
		{"no ids", `{"id":"f","author":null,"helpers":[true,null,7.0,1e0,-0,"a b","",[],{}]}`, `{"id":{},"author":null,"helpers":[true,null,7.0,1e0,-0,"a b","",[],{}]}`, Request{}},
		{"arrays", `{"id":"g","helpers":["bo",7,["ann",[]],"nobody"]}`, `{"id":{},"helpers":[` + bo + `,` + cy + `,[` + ann + `,[]],{}]}`, Request{}},
		{"objects are no ids", `{"id":"h","author":{"id":"ann"},"helpers":[{"deep":"ann"},"bo"]}`, `{"id":{},"author":{"id":"ann"},"helpers":[{"deep":"ann"},` + bo + `]}`, Request{}},
		{"nested", `{"id":"i","credit":{"main":"bo","other":"bo"}}`, `{"id":{},"credit":{"main":` + bo + `,"other":"bo"}}`, Request{}},
		{"nested in arrays", `{"id":"j","credit":[{"main":["bo",{"deep":7,"x":7}]},"bo",[{"main":7}]]}`, `{"id":{},"credit":[{"main":[` + bo + `,{"deep":` + cy + `,"x":7}]},"bo",[{"main":` + cy + `}]]}`, Request{}},
		{"dots in names", `{"id":"k","a.b":1,"a":{"b":1},"credit.main":{"deep":"bo"}}`, `{"id":{},"a.b":` + lyon + `,"a":{"b":` + lyon + `},"credit.main":{"deep":` + bo + `}}`, Request{}},
		{"no second level", `{"id":"l","next":"l","at":2}`, `{"id":{},"next":{"id":"l","next":"l","at":2},"at":{"id":2,"town":"Rhône"}}`, Request{}},
		{"selected", `{"id":"m","author":"ann","at":1}`, `{"at":` + lyon + `}`, Request{AttributesToRetrieve: []string{"at", "author.name"}}},
		{"nothing selected", `{"id":"n","author":"ann"}`, `{}`, Request{AttributesToRetrieve: []string{"x"}}},
		{"formatted", `{"id":"o","n":7,"author":"ann","helpers":[7,7.5,{"x":7}],"credit":{"main":"nobody"},"title":"Tide"}`,
			`{"n":7,"author":` + ann + `,"_formatted":{"n":"7","author":` + ann + `,"title":"<em>Tide</em>","helpers":[` + cy + `,"7.5",{"x":"7"}],"credit":{"main":{}}}}`,
			Request{Query: "tide", AttributesToRetrieve: []string{"n", "author"}, AttributesToHighlight: []string{"title", "author", "helpers", "credit"}}},
		{"matches in ids", `{"id":"p","author":"ann"}`, `{"author":` + ann + `,"_formatted":{"author":` + ann + `},"_matchesPosition":{"author":[{"start":0,"length":3}]}}`,
			Request{Query: "ann", AttributesToRetrieve: []string{"author"}, AttributesToHighlight: []string{"author"}, ShowMatchesPosition: true}},
		{"distance of foreign points", `{"id":"q","_geo":{"lat":1,"lng":1},"at":1}`, `{"at":` + lyon + `}`, Request{Sort: []string{"_geoPoint(1,1):asc"}, AttributesToRetrieve: []string{"at"}}},
		{"distance", `{"id":"r","_geo":{"lat":1,"lng":1},"at":2}`, `{"_geo":{"lat":1,"lng":1},"at":{"id":2,"town":"Rhône"},"_geoDistance":0}`,
			Request{Sort: []string{"_geoPoint(1,1):asc"}, AttributesToRetrieve: []string{"at", "_geo"}}},
		{"distance to half a point", `{"id":"t","_geo":{"lat":1,"lng":1},"in":{"_geo":{"lat":1,"lng":1}}}`, `{"_geo":{"lat":1},"in":{"_geo":{"lat":1,"lng":1}}}`,
			Request{Sort: []string{"_geoPoint(1,1):asc"}, AttributesToRetrieve: []string{"in", "_geo.lat"}}},
		{"a score after nothing", `{"id":"s"}`, `{"_rankingScore":1.0}`, Request{AttributesToRetrieve: []string{"x"}, ShowRankingScore: true}},
	} {
		l.put("books", "", tt.doc)
		hits, err := l.search("books", tt.request, nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) != 1 || !sameJSON(t, []byte(hits[0]), tt.want) {
			t.Errorf("%s:\ngot  %s\nwant %s", tt.name, hits, tt.want)
		}
		l.clear("books")
	}
}

func (l *library) clear(uid string) {
	l.t.Helper()
	l.batch++
	if _, err := l.c.Get(uid).Apply(context.Background(), l.batch, []index.Op{index.Clear{}}, nil); err != nil {
		l.t.Fatal(err)
	}
}

// TestForeignAccess searches with foreign indexes that are missing, and with ones that the caller may not read.
func TestForeignAccess(t *testing.T) {
	l := newLibrary(t)
	l.put("authors", `{"filterableAttributes":["land"]}`, `{"id":1,"land":"FR"}`)
	l.put("books", `{"filterableAttributes":["author","lost"],"foreignKeys":[{"fieldName":"author","foreignIndexUid":"authors"},{"fieldName":"lost","foreignIndexUid":"nowhere"}]}`, `{"id":5,"author":1,"lost":1}`)
	all := func(string) bool { return true }
	none := func(string) bool { return false }
	notAuthors := func(uid string) bool { return uid != "authors" }
	notLost := func(uid string) bool { return uid != "nowhere" }
	const raw = `{"id":5,"author":1,"lost":1}`
	for _, tt := range []struct {
		filter  string
		mayRead func(string) bool
		want    string // a hit or a code
	}{
		{"", all, "index_not_found"},
		{"", notAuthors, "index_not_found"},
		{"", none, raw},
		{"", notLost, `{"id":5,"author":{"id":1,"land":"FR"},"lost":1}`},
		{"_foreign(author, land = FR)", notLost, `{"id":5,"author":{"id":1,"land":"FR"},"lost":1}`},
		{"_foreign(author, land = FR)", none, "index_not_found"},
		{"_foreign(author, x = 1)", none, "index_not_found"}, // without disclosing what is filterable there
		{"_foreign(lost, x = 1)", notLost, "index_not_found"},
		{"_foreign(author, x = 1)", notLost, "invalid_search_filter"},
		{"_foreign(author, x = 1)", nil, "invalid_search_filter"}, // errors of the request itself come first
	} {
		var r Request
		if tt.filter != "" {
			var err error
			if r.Filter, err = filter.Parse(tt.filter); err != nil {
				t.Fatal(err)
			}
		}
		hits, err := l.search("books", r, tt.mayRead)
		if err != nil {
			hits = []string{string(apierr.From(err).Code)}
		}
		if len(hits) != 1 || hits[0] != tt.want {
			t.Errorf("%q: got %v, want %s", tt.filter, hits, tt.want)
		}
	}

	// A hidden index must give the same error as a missing one.
	message := func(mayRead func(string) bool) string {
		expr, err := filter.Parse("_foreign(author, land = FR)")
		if err != nil {
			t.Fatal(err)
		}
		_, err = l.search("books", Request{Filter: expr}, mayRead)
		if err == nil {
			t.Fatal("no error")
		}
		return err.Error()
	}
	hidden := message(none)
	l.batch++
	if _, err := l.c.Delete("authors", l.batch); err != nil {
		t.Fatal(err)
	}
	if missing := message(all); missing != hidden {
		t.Errorf("the errors of a hidden and a missing index differ:\n%s\n%s", hidden, missing)
	}
}

// hydrated is the reference implementation of appendHydrated on decoded documents. keys are paths, authors has foreign documents by id.
func hydrated(value any, path string, keys map[string]bool, authors map[string]any) any {
	switch x := value.(type) {
	case map[string]any:
		is := map[string]any{}
		for name, member := range x {
			below := name
			if path != "" {
				below = path + "." + name
			}
			is[name] = hydrated(member, below, keys, authors)
		}
		return is
	case []any:
		is := []any{}
		for _, element := range x {
			is = append(is, hydrated(element, path, keys, authors))
		}
		return is
	case json.Number, string:
		id := fmt.Sprint(x)
		if !keys[path] || strings.Contains(id, ".") {
			return x
		}
		if author, ok := authors[id]; ok {
			return author
		}
		return map[string]any{}
	}
	return value
}

// TestHydrationAgainstDecoded hydrates random documents by random keys.
func TestHydrationAgainstDecoded(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLibrary(t)
	authors := map[string]any{}
	var docs []string
	for i := range 6 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"name":"n%d"}`, i, i))
		authors[fmt.Sprint(i)] = map[string]any{"id": json.Number(fmt.Sprint(i)), "name": fmt.Sprintf("n%d", i)}
	}
	l.put("authors", "", docs[:3]...)
	l.put("authors", "", docs[3:]...)
	names := []string{"a", "b", "a.b", "c"}
	var value func(depth int) any
	value = func(depth int) any {
		kind := r.IntN(10)
		if depth > 3 {
			kind = r.IntN(6)
		}
		switch {
		case kind < 2:
			return json.Number(fmt.Sprint(r.IntN(8)))
		case kind < 4:
			return fmt.Sprint(r.IntN(8))
		case kind == 4:
			return []any{nil, true, "1.5", json.Number("2.5")}[r.IntN(4)]
		case kind == 5:
			return []any{map[string]any{}, []any{}}[r.IntN(2)]
		case kind < 8:
			var list []any
			for range 1 + r.IntN(3) {
				list = append(list, value(depth+1))
			}
			return list
		}
		object := map[string]any{}
		for range 1 + r.IntN(3) {
			object[names[r.IntN(len(names))]] = value(depth + 1)
		}
		return object
	}
	v := held(l.c.Get("authors").View())
	defer v.Release()
	for range 2000 {
		doc := map[string]any{"id": json.Number("1")}
		for _, name := range names {
			doc[name] = value(0)
		}
		s := settings.Default()
		keys := map[string]bool{}
		for range 1 + r.IntN(3) {
			path := names[r.IntN(len(names))]
			for range r.IntN(3) {
				path += "." + names[r.IntN(len(names))]
			}
			keys[path] = true
			s.ForeignKeys = append(s.ForeignKeys, settings.ForeignKey{FieldName: path, ForeignIndexUID: "authors"})
		}
		foreign := &Foreign{Views: l.c.Views()}
		h, err := foreign.hydration(&index.View{Outline: index.Outline{UID: "books", Settings: s}})
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		got, err := h.appendObject(nil, raw)
		if err != nil {
			t.Fatal(err)
		}
		foreign.Release()
		var is any
		d := json.NewDecoder(bytes.NewReader(got))
		d.UseNumber()
		if err := d.Decode(&is); err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if want := hydrated(doc, "", keys, authors); !reflect.DeepEqual(is, want) {
			text, _ := json.Marshal(want)
			t.Fatalf("%s by %v:\ngot  %s\nwant %s", raw, s.ForeignKeys, got, text)
		}
	}
}
