package index

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"svc/internal/apierr"
	"svc/internal/embed"
	"svc/internal/outbound"
	"svc/internal/script"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
	"svc/simd"
)

// provider is an embedding server. Its vectors depend on the text and on the query of the URL.
type provider struct {
	*httptest.Server
	mu     sync.Mutex
	asked  []string // texts
	status int      // status of the answers; 0: 200
	pool   *embed.Pool
}

func newProvider(t testing.TB) *provider {
	p := new(provider)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Errorf("a request that is no JSON: %v", err)
		}
		p.mu.Lock()
		p.asked = append(p.asked, in.Input...)
		status := p.status
		p.mu.Unlock()
		if status != 0 {
			w.WriteHeader(status)
			return
		}
		var vectors [][]float32
		for _, text := range in.Input {
			vectors = append(vectors, vectorOf(text, r.URL.RawQuery))
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"out": vectors})
	}))
	p.pool = embed.New(embed.Options{Policy: outbound.Any()})
	t.Cleanup(func() {
		if err := p.pool.Close(); err != nil {
			t.Error(err)
		}
		p.Close()
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return p
}

// vectorOf returns a vector of three numbers, or of two if the salt ends in short.
func vectorOf(text, salt string) []float32 {
	h := fnv.New32a()
	fmt.Fprint(h, text, "/", salt)
	n := h.Sum32()
	v := []float32{float32(n & 0xFF), float32(n >> 8 & 0xFF), float32(n >> 16)}
	if strings.HasSuffix(salt, short) {
		v = v[:2]
	}
	return v
}

// short ends the salt of an embedder whose vectors have two numbers.
const short = "-short"

// take returns the texts that were requested since the last call, sorted.
func (p *provider) take() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = nil
	slices.Sort(asked)
	return asked
}

func (p *provider) answer(status int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = status
}

// rest returns the configuration of an embedder that uses the provider.
func (p *provider) rest(salt string, more string) string {
	return fmt.Sprintf(`{"source":"rest","url":"%s/?%s","dimensions":%d,"request":{"input":["{{text}}","{{..}}"]},"response":{"out":["{{embedding}}","{{..}}"]}%s}`,
		p.URL, salt, len(vectorOf("", salt)), more)
}

// vectorState describes the vectors of all documents of a view: id → embedder → text.
func vectorState(t testing.TB, v *View) map[string]map[string]string {
	t.Helper()
	all := make(map[string]map[string]string)
	vectors, documents := 0, 0
	for _, l := range v.Segments {
		for it := l.LiveRows().Iterator(); it.HasNext(); {
			row := segment.Row(it.Next())
			entries := make(map[string]string)
			some := false
			for _, e := range v.Embedders() {
				d, dimensions, ok := e.EntriesOf(l.Vectors).Row(nil, row)
				if !ok {
					continue
				}
				vectors += len(d.Vectors) / dimensions
				some = some || len(d.Vectors) > 0
				var fragments []string
				for _, n := range d.Fragments {
					for _, f := range e.fragments {
						if f.Number == n {
							fragments = append(fragments, f.Name)
						}
					}
				}
				entries[e.Name] = entryText(d.Vectors, d.Regenerate, d.Given) + strings.Join(fragments, ",")
			}
			if some {
				documents++
			}
			all[string(l.ExternalID(row))] = entries
		}
	}
	if a, b := v.Embeddings(); a != vectors || b != documents {
		t.Fatalf("Embeddings() = %d, %d, want %d, %d", a, b, vectors, documents)
	}
	return all
}

func entryText(vectors []float32, regenerate, given bool) string {
	return fmt.Sprintf("%v regenerate %v given %v ", vectors, regenerate, given)
}

// vectorModel is the reference implementation of vectors in an index, one document after the other.
type vectorModel struct {
	docs      map[string]map[string]any // with the raw _vectors of unknown names
	entries   map[string]map[string]*modelEntry
	embedders map[string]*modelEmbedder
	batch     int
}

type modelEntry struct {
	vectors           []float32
	dims              int // dimensions of each vector
	regenerate, given bool
	made              int // number of the batch that embedded them
	text              string
}

type modelEmbedder struct {
	generates, binary, half bool
	dims                    int
	template, salt          string
}

func (e *modelEmbedder) render(doc map[string]any) string {
	return strings.ReplaceAll(strings.ReplaceAll(e.template, "{{doc.t}}", fmt.Sprint(doc["t"])), "{{doc.n}}", fmt.Sprint(doc["n"]))
}

func (m *vectorModel) make(e *modelEmbedder, doc map[string]any) *modelEntry {
	text := e.render(doc)
	return &modelEntry{vectors: vectorOf(text, e.salt), dims: e.dims, regenerate: true, made: m.batch, text: text}
}

// fit converts the vectors of an entry to the form that an embedder stores, if their length fits.
func (m *vectorModel) fit(e *modelEmbedder, entry *modelEntry) {
	if entry.dims == e.dims {
		entry.vectors = m.kept(e, entry.vectors)
	}
}

func (m *vectorModel) kept(e *modelEmbedder, v []float32) []float32 {
	out := slices.Clone(v)
	if e.half && !e.binary {
		h := make([]uint16, len(v))
		simd.Halve(h, v)
		simd.Widen(out, h)
	}
	if e.binary {
		for i := range out {
			if out[i] > 0 {
				out[i] = 1
			} else {
				out[i] = 0
			}
		}
	}
	return out
}

// read reads the entry of a document.
func (m *vectorModel) read(value any) (vectors []float32, dims int, given, regenerate bool) {
	if object, ok := value.(map[string]any); ok {
		regenerate = object["regenerate"].(bool)
		if value = object["embeddings"]; value == nil {
			return nil, 0, false, regenerate
		}
	}
	if list, ok := value.([]any); ok && len(list) > 0 {
		if one, ok := list[0].([]any); ok {
			list = one
		}
		dims = len(list)
	}
	var walk func(any)
	walk = func(x any) {
		switch x := x.(type) {
		case []any:
			for _, item := range x {
				walk(item)
			}
		case float64:
			vectors = append(vectors, float32(x))
		}
	}
	walk(value)
	return vectors, dims, true, regenerate
}

func (m *vectorModel) add(docs []string, merge bool) {
	for _, text := range docs {
		var doc map[string]any
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			panic(err)
		}
		id := doc["id"].(string)
		old := m.docs[id]
		brought, _ := doc["_vectors"].(map[string]any)
		raw := map[string]any{}
		if merge && old != nil {
			was, _ := old["_vectors"].(map[string]any)
			maps.Copy(raw, was)
			merged := maps.Clone(old)
			maps.Copy(merged, doc)
			doc = merged
		}
		maps.Copy(raw, brought)
		if m.entries[id] == nil {
			m.entries[id] = map[string]*modelEntry{}
		}
		for name, e := range m.embedders {
			delete(raw, name)
			value, there := brought[name]
			m.apply(id, name, e, value, there, old, doc)
		}
		m.setRaw(doc, raw)
		m.docs[id] = doc
	}
}

func (m *vectorModel) setRaw(doc, raw map[string]any) {
	if len(raw) > 0 {
		doc["_vectors"] = raw
	} else {
		delete(doc, "_vectors")
	}
}

func (m *vectorModel) apply(id, name string, e *modelEmbedder, value any, there bool, old, doc map[string]any) {
	was := m.entries[id][name]
	vectors, dims, given, regenerate := m.read(value)
	switch {
	case there && given:
		m.entries[id][name] = &modelEntry{vectors: m.kept(e, vectors), dims: dims, given: true, regenerate: regenerate}
	case there && !regenerate && was == nil:
		m.entries[id][name] = &modelEntry{given: true}
	case there && !regenerate:
		was.regenerate = false
	case was == nil || there && !was.regenerate:
		m.entries[id][name] = m.make(e, doc)
	case was.regenerate && e.generates && e.render(old) != e.render(doc):
		m.entries[id][name] = m.make(e, doc)
	}
}

func (m *vectorModel) remove(name string) {
	delete(m.embedders, name)
	for id, entries := range m.entries {
		if e := entries[name]; e != nil && !e.regenerate {
			raw, _ := m.docs[id]["_vectors"].(map[string]any)
			if raw == nil {
				raw = map[string]any{}
			}
			list := []any{}
			for v := range slices.Chunk(e.vectors, max(e.dims, 1)) {
				var numbers []any
				for _, f := range v {
					numbers = append(numbers, float64(f))
				}
				list = append(list, numbers)
			}
			raw[name] = map[string]any{"regenerate": false, "embeddings": list}
			m.setRaw(m.docs[id], raw)
		}
		delete(entries, name)
	}
}

// install adds an embedder. It returns false if a document has no vectors for it and it cannot embed, or has vectors that do not fit.
func (m *vectorModel) install(name string, e *modelEmbedder) bool {
	for _, doc := range m.docs {
		raw, _ := doc["_vectors"].(map[string]any)
		value, there := raw[name]
		vectors, dims, given, regenerate := m.read(value)
		if len(vectors) > 0 && dims != e.dims || !e.generates && (!there || !given && regenerate) {
			return false
		}
	}
	m.embedders[name] = e
	for id, doc := range m.docs {
		raw, _ := doc["_vectors"].(map[string]any)
		value, there := raw[name]
		delete(raw, name)
		m.apply(id, name, e, value, there, nil, doc)
		m.setRaw(doc, raw)
	}
	return true
}

// change changes the template, the salt or the dimensions.
func (m *vectorModel) change(name string, to modelEmbedder) {
	was := m.embedders[name]
	m.embedders[name] = &to
	for id, entries := range m.entries {
		e := entries[name]
		if e.regenerate && (was.salt != to.salt || was.render(m.docs[id]) != to.render(m.docs[id])) {
			entries[name] = m.make(&to, m.docs[id])
		} else {
			m.fit(&to, e)
		}
	}
}

// asked returns the texts that the batch had to embed.
func (m *vectorModel) asked() []string {
	var texts []string
	for _, entries := range m.entries {
		for _, e := range entries {
			if e.made == m.batch {
				texts = append(texts, e.text)
			}
		}
	}
	slices.Sort(texts)
	return texts
}

func (m *vectorModel) state() map[string]map[string]string {
	all := make(map[string]map[string]string)
	for id, entries := range m.entries {
		all[id] = make(map[string]string)
		for name, e := range entries {
			all[id][name] = entryText(e.vectors, e.regenerate, e.given)
		}
	}
	return all
}

// check compares an index with the model after a batch.
func (m *vectorModel) check(t *testing.T, ix *Index, what string) {
	t.Helper()
	v := held(ix.View())
	defer v.Release()
	got, want := vectorState(t, v), m.state()
	for id := range want {
		if !maps.Equal(got[id], want[id]) {
			t.Fatalf("batch %d, %s\ndocument %s has %v,\nwant %v", m.batch, what, id, got[id], want[id])
		}
	}
	for id, doc := range documents(t, v) {
		if is, _ := json.Marshal(m.docs[id]); !sameDocument(doc, string(is)) {
			t.Fatalf("batch %d, %s\ndocument %s is %s,\nwant %s", m.batch, what, id, doc, is)
		}
	}
	if len(got) != len(want) {
		t.Fatalf("batch %d, %s\n%d documents, want %d", m.batch, what, len(got), len(want))
	}
}

// TestVectorsAgreeWithAModel runs random batches, settings, compactions and restarts.
func TestVectorsAgreeWithAModel(t *testing.T) {
	for range 6 {
		seed := rand.Uint64()
		t.Run(fmt.Sprint(seed), func(t *testing.T) { runVectorModel(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

func runVectorModel(t *testing.T, r *rand.Rand) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool, MaxIndexingThreads: 2})
	b.c.builderBytes = 1 << 10
	defer func() { b.close() }()
	ix := b.create("a")
	m := &vectorModel{docs: map[string]map[string]any{}, entries: map[string]map[string]*modelEntry{}, embedders: map[string]*modelEmbedder{}}
	number := func() string { return fmt.Sprint(float32(r.IntN(9)-4) / 3) }
	dims := 3
	vector := func() string {
		if dims == 2 {
			return "[" + number() + "," + number() + "]"
		}
		return "[" + number() + "," + number() + "," + number() + "]"
	}
	entry := func(makes bool) string {
		switch r.IntN(8) {
		case 0:
			return vector()
		case 1:
			return "[" + vector() + "," + vector() + "]"
		case 2:
			return []string{"null", "[]"}[r.IntN(2)]
		case 3:
			return `{"regenerate":false}`
		case 4:
			if makes {
				return `{"regenerate":true}`
			}
			return `{"regenerate":false,"embeddings":null}`
		case 5:
			return `{"regenerate":true,"embeddings":` + vector() + `}`
		case 6:
			return `{"regenerate":true,"embeddings":[]}`
		}
		return `{"regenerate":false,"embeddings":[` + vector() + `]}`
	}
	doc := func(id string, merge bool) string {
		parts := []string{fmt.Sprintf(`"id":%q`, id)}
		if !merge || r.IntN(2) == 0 {
			parts = append(parts, fmt.Sprintf(`"t":%q`, words[r.IntN(4)]))
		}
		parts = append(parts, fmt.Sprintf(`"n":%d`, r.IntN(3)))
		var brought []string
		for _, name := range []string{"m", "r", "u"} {
			if needs := name == "m" && m.docs[id] == nil; needs || r.IntN(3) == 0 {
				if dims = 3; m.embedders[name] != nil {
					dims = m.embedders[name].dims
				}
				brought = append(brought, fmt.Sprintf("%q:%s", name, entry(name == "r")))
			}
		}
		if len(brought) > 0 || r.IntN(4) == 0 {
			parts = append(parts, `"_vectors":{`+strings.Join(brought, ",")+`}`)
		}
		return "{" + strings.Join(parts, ",") + "}"
	}
	change := func(body string, must bool) bool {
		b.batch++
		_, err := ix.Apply(context.Background(), b.batch, []Op{update(t, body)}, nil)
		if err == nil {
			return true
		}
		if apierr.From(err).Code != "invalid_vector_dimensions" {
			wantCode(t, err, "vector_embedding_error")
		}
		if must {
			t.Fatalf("%s: %v", body, err)
		}
		return false
	}
	const plain, other = `{{doc.t}}`, `{{doc.t}} and {{doc.n}}`
	for range 60 {
		m.batch++
		what := ""
		switch r.IntN(12) {
		default: // one or two payloads, and deletions
			var ops []Op
			for range 1 + r.IntN(2) {
				merge := r.IntN(2) == 0
				var docs []string
				for range 1 + r.IntN(6) {
					id := fmt.Sprint(r.IntN(25))
					// A document that the payload creates has all fields of the template.
					docs = append(docs, doc(id, merge && m.docs[id] != nil))
					m.add(docs[len(docs)-1:], merge)
				}
				a := b.payload(docs...)
				a.Merge = merge
				ops = append(ops, a)
				what += fmt.Sprintf("merge %v %v; ", merge, docs)
				if r.IntN(4) == 0 {
					id := fmt.Sprint(r.IntN(25))
					ops = append(ops, DeleteDocuments{[]string{id}})
					delete(m.docs, id)
					delete(m.entries, id)
					what += "delete " + id + "; "
				}
			}
			b.apply(ix, ops...)
		case 0:
			if m.embedders["m"] == nil {
				what = "add m"
				dims := 2 + r.IntN(2)
				if change(fmt.Sprintf(`{"embedders":{"m":{"source":"userProvided","dimensions":%d}}}`, dims), false) != m.install("m", &modelEmbedder{dims: dims}) {
					t.Fatal("adding an embedder: index and model disagree on whether vectors are missing")
				}
				break
			}
			if r.IntN(3) > 0 {
				to := *m.embedders["m"]
				to.dims = 5 - to.dims
				what = fmt.Sprintf("%d dimensions of m", to.dims)
				change(fmt.Sprintf(`{"embedders":{"m":{"dimensions":%d}}}`, to.dims), true)
				m.change("m", to)
				break
			}
			if r.IntN(2) == 0 {
				what = "remove m"
				m.remove("m")
				change(`{"embedders":{"m":null}}`, true)
				break
			}
			if to := *m.embedders["m"]; r.IntN(2) == 0 {
				to.half = !to.half
				what = fmt.Sprintf("half precision of m: %v", to.half)
				change(fmt.Sprintf(`{"embedders":{"m":{"halfPrecision":%v}}}`, to.half), true)
				m.change("m", to)
				break
			}
			what = "bits of m"
			change(`{"embedders":{"m":{"binaryQuantized":true}}}`, true)
			to := *m.embedders["m"]
			to.binary = true
			m.change("m", to)
		case 1:
			if m.embedders["r"] == nil {
				what = "add r"
				there := m.install("r", &modelEmbedder{generates: true, template: plain, salt: "a", dims: 3})
				change(`{"embedders":{"r":`+p.rest("a", `,"documentTemplate":"`+plain+`"`)+`}}`, there)
				break
			}
			what = "remove r"
			m.remove("r")
			change(`{"embedders":{"r":null}}`, true)
		case 2:
			if e := m.embedders["r"]; e != nil {
				to := *e
				switch r.IntN(3) {
				case 0:
					to.template = map[string]string{plain: other, other: plain}[e.template]
				case 1:
					to.salt = "b" + to.salt
				case 2:
					if to.salt += short; e.dims == 2 {
						to.salt = strings.ReplaceAll(to.salt, short, "")
					}
				}
				to.dims = len(vectorOf("", to.salt))
				what = fmt.Sprintf("r becomes %v", to)
				m.change("r", to)
				change(`{"embedders":{"r":`+p.rest(to.salt, `,"documentTemplate":"`+to.template+`"`)+`}}`, true)
			}
		case 3:
			what = "other settings"
			change([]string{`{"stopWords":["alpha"]}`, `{"stopWords":[]}`, `{"filterableAttributes":["n"]}`, `{"filterableAttributes":[]}`}[r.IntN(4)], true)
		case 5:
			what = "edit all"
			function, err := script.Compile(`if doc.t == "alpha" { doc.n = 0; } else { doc.n = 2; }`, nil)
			if err != nil {
				t.Fatal(err)
			}
			b.apply(ix, EditDocuments{Function: function})
			for id, doc := range m.docs {
				edited := maps.Clone(doc)
				if edited["n"] = 2.0; doc["t"] == "alpha" {
					edited["n"] = 0.0
				}
				for name, e := range m.embedders {
					m.apply(id, name, e, nil, false, doc, edited)
				}
				m.docs[id] = edited
			}
		case 6:
			what = "update partially"
			var lines []string
			for id, doc := range m.docs {
				if r.IntN(2) == 0 {
					continue
				}
				edited := maps.Clone(doc)
				switch r.IntN(3) {
				case 0: // in no template
					edited["other"] = float64(m.batch)
					lines = append(lines, fmt.Sprintf(`{"id":%q,"set":{"other":%d}}`, id, m.batch))
				case 1: // in the other template
					edited["n"] = float64(m.batch)
					lines = append(lines, fmt.Sprintf(`{"id":%q,"set":{"n":%d}}`, id, m.batch))
				case 2: // changed and changed back
					edited["n"] = doc["n"]
					if doc["n"] == nil {
						continue
					}
					lines = append(lines, fmt.Sprintf(`{"id":%q,"increment":{"n":1}}`, id), fmt.Sprintf(`{"id":%q,"increment":{"n":-1}}`, id))
				}
				for name, e := range m.embedders {
					m.apply(id, name, e, nil, false, doc, edited)
				}
				m.docs[id] = edited
			}
			b.apply(ix, b.patch(lines...))
		case 4:
			what = "compaction and restart"
			b.compact(ix)
			if r.IntN(2) == 0 {
				if _, _, err := ix.Compact(context.Background(), b.batch, nil); err != nil {
					t.Fatal(err)
				}
			}
			b.reopen()
			b.c.builderBytes = 1 << 10
			ix = b.c.Get("a")
		}
		m.check(t, ix, what)
		if asked, want := p.take(), m.asked(); !slices.Equal(asked, want) {
			t.Fatalf("batch %d, %s\nasked for %q, want %q", m.batch, what, asked, want)
		}
	}
}

// sameDocument ignores an empty _vectors, which stays only if there is no embedder.
func sameDocument(a, b string) bool {
	var x, y map[string]any
	_, _ = json.Unmarshal([]byte(a), &x), json.Unmarshal([]byte(b), &y)
	for _, doc := range []map[string]any{x, y} {
		if raw, ok := doc["_vectors"].(map[string]any); ok && len(raw) == 0 {
			delete(doc, "_vectors")
		}
	}
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func TestVectorErrorsFailTheirOperation(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"main":{"source":"userProvided","dimensions":2}}}`))
	for _, test := range []struct {
		doc, says string
		code      apierr.Code
	}{
		{`{"id":"x","_vectors":{"main":[1]}}`, "`x`", "invalid_vector_dimensions"},
		{`{"id":"x","_vectors":{"main":"no"}}`, "`x`", "invalid_vectors_type"},
		{`{"id":"x","_vectors":null}`, "null", "invalid_vectors_type"},
		{`{"id":"x","_vectors":[1]}`, "[1]", "invalid_vectors_type"},
		{`{"id":"x"}`, "`_vectors.main`", "vector_embedding_error"},
		{`{"id":"x","_vector":{}}`, "`_vector` meant", "vector_embedding_error"},
		{`{"id":"x","_vectors":{"mian":[1,2]}}`, "`_vectors.mian` meant", "vector_embedding_error"},
		{`{"id":"x","_vectors":{"other":[1,2]}}`, "`_vectors.main`", "vector_embedding_error"},
		{`{"id":"x","_vectors":{"main":{"regenerate":true}}}`, "`_vectors.main`", "vector_embedding_error"},
	} {
		results := b.try(ix, b.payload(`{"id":"good","_vectors":{"main":[1,2]}}`), b.payload(`{"id":"also","_vectors":{"main":null}}`, test.doc))
		if results[0].Err != nil {
			t.Fatalf("%s: the operation before it failed: %v", test.doc, results[0].Err)
		}
		wantCode(t, results[1].Err, test.code)
		if !strings.Contains(fmt.Sprint(results[1].Err), test.says) {
			t.Errorf("%s: %v does not say %s", test.doc, results[1].Err, test.says)
		}
		wantDocuments(t, ix, map[string]string{"good": `{"id":"good"}`})
	}
	// A document that got vectors from an earlier line or operation needs none.
	b.apply(ix, b.payload(`{"id":"y","_vectors":{"main":[3,4]}}`, `{"id":"y","t":1}`), b.merge(`{"id":"y","u":1}`, `{"id":"good","t":2}`))
	// A document that is not created needs none either.
	skipped := b.payload(`{"id":"never"}`)
	skipped.SkipCreation = true
	b.apply(ix, skipped)
	wantDocuments(t, ix, map[string]string{"good": `{"id":"good","t":2}`, "y": `{"id":"y","t":1,"u":1}`})
	v := held(ix.View())
	defer v.Release()
	if got := vectorState(t, v)["y"]["main"]; got != entryText([]float32{3, 4}, false, true) {
		t.Errorf("y has %s", got)
	}
}

func TestEmbeddersThatCannotBe(t *testing.T) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"m":{"source":"userProvided","dimensions":3},"r":`+p.rest("a", `,"documentTemplate":"{{doc.t}}"`)+`}}`),
		b.payload(`{"id":"1","t":"one","_vectors":{"m":[1,2,3]}}`, `{"id":"2","t":"two","_vectors":{"m":null,"r":[4,5,6]}}`))
	before := func() string {
		v := held(ix.View())
		defer v.Release()
		return fmt.Sprint(vectorState(t, v), documents(t, v), string(v.Settings.Full()))
	}
	was := before()
	for _, test := range []struct {
		body   string
		code   apierr.Code
		status int
		says   string // text in the error
	}{
		{`{"embedders":{"r":{"source":"userProvided","dimensions":3}}}`, "vector_embedding_error", 0, "document `1` has no vectors for the embedder `r`"},
		{`{"embedders":{"r":` + p.rest("a", `,"dimensions":4`) + `}}`, "vector_embedding_error", 0, "embedding the document `1` for the embedder `r`"},
		{`{"embedders":{"new":{"source":"userProvided","dimensions":3}}}`, "vector_embedding_error", 0, "document `1` has no vectors for the embedder `new`"},
		{`{"embedders":{"r":{"documentTemplate":"{{doc.nothing}}"}}}`, "invalid_document_fields", 0, "rendering the document `1` for the embedder `r`"},
		{`{"embedders":{"r":{"documentTemplate":"more {{doc.t}}"}}}`, "vector_embedding_error", 400, "embedding the document `1` for the embedder `r`"},
		{`{"embedders":{"new":` + p.rest("b", "") + `}}`, "vector_embedding_error", 401, "embedding the documents `1`, `2` for the embedder `new`"},
		{`{"embedders":{"new":` + strings.Replace(p.rest("b", ""), `"dimensions":3,`, "", 1) + `}}`, "vector_embedding_error", 401, "opening the embedder `new`"},
	} {
		p.answer(test.status)
		b.batch++
		_, err := ix.Apply(context.Background(), b.batch, []Op{update(t, test.body)}, nil)
		wantCode(t, err, test.code)
		if !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v does not say %s", test.body, err, test.says)
		}
		if is := before(); is != was {
			t.Errorf("%s left %s, want %s", test.body, is, was)
		}
	}
	// A batch of documents fails as a whole and leaves no change.
	p.answer(400)
	b.batch++
	var requests embed.Stats
	_, err := ix.ApplyCounted(context.Background(), b.batch, []Op{b.merge(`{"id":"1","t":"other"}`), DeleteDocuments{[]string{"2"}}}, nil, &requests)
	wantCode(t, err, "vector_embedding_error")
	if total, failed, last := requests.Counts(); total != 1 || failed != 1 || last == "" {
		t.Errorf("%d requests, %d failed, the last with %q", total, failed, last)
	}
	if is := before(); is != was {
		t.Errorf("a failed batch left %s, want %s", is, was)
	}
	p.answer(0)
	b.apply(ix, b.merge(`{"id":"1","t":"other"}`))
	// The dimensions may change if no document has vectors.
	b.apply(ix, b.merge(`{"id":"1","_vectors":{"m":null}}`), update(t, `{"embedders":{"m":{"dimensions":4}}}`))
	b.apply(ix, b.merge(`{"id":"1","_vectors":{"m":[1,2,3,4]}}`))
}

func TestFailuresThatAreIgnoredLeaveOldVectors(t *testing.T) {
	p := newProvider(t)
	pool := embed.New(embed.Options{Policy: outbound.Any(), Failures: embed.FailureModes{IgnoreTemplates: true, IgnoreProviders: true}})
	defer pool.Close()
	b := newBed(t, vfs.NewMem(), Options{Embedders: pool})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", `,"documentTemplate":"{{doc.t}}"`)+`}}`), b.payload(`{"id":"1","t":"one"}`, `{"id":"2"}`))
	p.answer(400)
	b.apply(ix, b.merge(`{"id":"1","t":"other"}`, `{"id":"3","t":"three"}`))
	check := func(what, embedder string, want map[string]string) {
		t.Helper()
		v := held(ix.View())
		defer v.Release()
		got := vectorState(t, v)
		for id, text := range want {
			if got[id][embedder] != text {
				t.Errorf("%s: document %s has %s, want %s", what, id, got[id][embedder], text)
			}
		}
	}
	check("texts", "r", map[string]string{"1": entryText(vectorOf("one", "a"), true, false), "2": entryText(nil, true, false), "3": entryText(nil, true, false)})

	// Vectors of another length cannot stay.
	b.apply(ix, update(t, `{"embedders":{"r":{"dimensions":4}}}`))
	check("dimensions", "r", map[string]string{"1": entryText(nil, true, false), "3": entryText(nil, true, false)})

	multimodal := func(body string) UpdateSettings {
		u, err := settings.ParseUpdate([]byte(body), settings.Features{Multimodal: true})
		if err != nil {
			t.Fatal(err)
		}
		return UpdateSettings{u}
	}
	p.answer(0)
	config := strings.ReplaceAll(p.rest("a", `,"indexingFragments":{"t":{"value":"{{doc.t}}"},"u":{"value":"{{doc.t}}!"}},"searchFragments":{"q":{"value":"{{q}}"}}`), "{{text}}", "{{fragment}}")
	b.apply(ix, multimodal(`{"embedders":{"f":`+config+`}}`))
	both := append(vectorOf("other", "a"), vectorOf("other!", "a")...)
	check("fragments", "f", map[string]string{"1": entryText(both, true, false) + "t,u", "2": entryText(nil, true, false)})
	p.answer(400)
	b.apply(ix, multimodal(`{"embedders":{"f":{"request":{"input":["{{text}}","{{..}}"]},"indexingFragments":null,"searchFragments":null}}}`))
	check("no fragments", "f", map[string]string{"1": entryText(both, true, false), "2": entryText(nil, true, false)})
	p.answer(0)
	b.apply(ix, multimodal(`{"embedders":{"f":null}}`), multimodal(`{"embedders":{"f":`+config+`}}`))
	p.answer(400)
	b.apply(ix, multimodal(`{"embedders":{"f":{"dimensions":4}}}`))
	check("dimensions of fragments", "f", map[string]string{"1": entryText(nil, true, false), "2": entryText(nil, true, false)})
}

func TestFragmentsAreMadeOneByOne(t *testing.T) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
	defer b.close()
	ix := b.create("a")
	multimodal := func(body string) UpdateSettings {
		u, err := settings.ParseUpdate([]byte(body), settings.Features{Multimodal: true})
		if err != nil {
			t.Fatal(err)
		}
		return UpdateSettings{u}
	}
	config := strings.ReplaceAll(p.rest("a", `,"indexingFragments":{"name":{"value":"{{doc.name}}"},"both":{"value":"{{doc.name}} {{doc.color}}"}},"searchFragments":{"q":{"value":"{{q}}"}}`), "{{text}}", "{{fragment}}")
	b.apply(ix, multimodal(`{"embedders":{"f":`+config+`}}`), b.payload(`{"id":"1","name":"cup","color":"teal"}`, `{"id":"2","name":"jug"}`, `{"id":"3","name":"pot","_vectors":{"f":[1,0,0]}}`, `{"id":"4"}`))
	join := func(texts ...string) (all []float32) {
		for _, text := range texts {
			all = append(all, vectorOf(text, "a")...)
		}
		return all
	}
	check := func(what string, asked []string, want map[string]string) {
		t.Helper()
		if got := p.take(); !slices.Equal(got, asked) {
			t.Errorf("%s: asked for %q, want %q", what, got, asked)
		}
		v := held(ix.View())
		defer v.Release()
		got := vectorState(t, v)
		for id, text := range want {
			if got[id]["f"] != text {
				t.Errorf("%s: document %s has %s, want %s", what, id, got[id]["f"], text)
			}
		}
	}
	check("added", []string{"cup", "cup teal", "jug"}, map[string]string{
		"1": entryText(join("cup teal", "cup"), true, false) + "both,name", "2": entryText(join("jug"), true, false) + "name",
		"3": entryText([]float32{1, 0, 0}, false, true), "4": entryText(nil, true, false)})
	b.apply(ix, b.merge(`{"id":"1","color":"red"}`))
	check("another color", []string{"cup red"}, map[string]string{"1": entryText(join("cup red", "cup"), true, false) + "both,name"})
	b.apply(ix, multimodal(`{"embedders":{"f":{"indexingFragments":{"both":null}}}}`))
	check("one fragment less", nil, map[string]string{"1": entryText(join("cup"), true, false) + "name", "3": entryText([]float32{1, 0, 0}, false, true)})
	b.apply(ix, multimodal(`{"embedders":{"f":{"indexingFragments":{"third":{"value":"a {{doc.color}}"}}}}}`))
	check("one fragment more", []string{"a red"}, map[string]string{"1": entryText(join("a red", "cup"), true, false) + "third,name", "4": entryText(nil, true, false)})

	// Vectors that a document keeps no longer belong to a fragment, whatever becomes of the fragments.
	b.apply(ix, b.merge(`{"id":"1","_vectors":{"f":{"regenerate":false}}}`), b.merge(`{"id":"2","color":"blue","_vectors":{"f":{"regenerate":false}}}`))
	b.apply(ix, multimodal(`{"embedders":{"f":{"indexingFragments":{"third":null,"fourth":{"value":"{{doc.name}}!"}}}}}`))
	check("frozen", []string{}, map[string]string{"1": entryText(join("a red", "cup"), false, false), "2": entryText(join("jug"), false, false)})

	// A composite embedder uses the fragments of its indexing half.
	half := strings.TrimSuffix(config, "}")
	half = half[:strings.Index(half, `,"searchFragments"`)] + "}"
	both, err := settings.ParseUpdate([]byte(`{"embedders":{"f":null,"c":{"source":"composite","indexingEmbedder":`+half+`,"searchEmbedder":`+p.rest("a", "")+`}}}`),
		settings.Features{Multimodal: true, CompositeEmbedders: true})
	if err != nil {
		t.Fatal(err)
	}
	b.apply(ix, UpdateSettings{both})
	v := held(ix.View())
	defer v.Release()
	if list := v.FilterEmbedders(); len(list) != 1 || len(list[0].Fragments) != 2 {
		t.Errorf("%v", list)
	}
}

// TestEmbeddersChange checks what each change of an embedder requests from its provider. If the dimensions change, vectors that documents
// brought stay as they are until their document asks for others. These documents need not fit the template.
func TestEmbeddersChange(t *testing.T) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool, inlineSettings: 1 << 20})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"m":{"source":"userProvided","dimensions":2}}}`),
		b.payload(`{"id":"1","_vectors":{"m":[1,2]}}`, `{"id":"2","_vectors":{"m":null}}`,
			`{"id":"3","_vectors":{"m":{"embeddings":[[1,2],[3,4]],"regenerate":false}}}`))
	check := func(step string, want map[string]string, asked ...string) {
		t.Helper()
		if got := slices.DeleteFunc(p.take(), func(s string) bool { return s == "test" }); !slices.Equal(got, asked) {
			t.Errorf("%s: asked for %q, want %q", step, got, asked)
		}
		v := held(ix.View())
		defer v.Release()
		got := vectorState(t, v)
		for id, state := range want {
			if got[id]["m"] != state {
				t.Errorf("%s: document %s has %s, want %s", step, id, got[id]["m"], state)
			}
		}
	}
	given := map[string]string{"1": entryText([]float32{1, 2}, false, true), "2": entryText(nil, false, true), "3": entryText([]float32{1, 2, 3, 4}, false, true)}
	b.apply(ix, update(t, `{"embedders":{"m":`+p.rest("a", `,"documentTemplate":"{{doc.t}}"`)+`}}`))
	check("another source", given)
	b.apply(ix, b.merge(`{"id":"3","u":"three"}`), b.payload(`{"id":"1"}`))
	check("documents change", given)
	b.apply(ix, update(t, `{"embedders":{"m":`+p.rest("b", `,"documentTemplate":"{{doc.t}}!"`)+`}}`))
	check("another URL and template", given)
	if formatOf(t, b, ix) != unfitVersion {
		t.Error("an older svc can read the index")
	}
	b.compact(ix)
	if _, _, err := ix.Compact(context.Background(), b.batch, nil); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	ix = b.c.Get("a")
	check("a restart", given)
	b.apply(ix, b.merge(`{"id":"3","t":"drei","_vectors":{"m":{"regenerate":true}}}`, `{"id":"1","_vectors":{"m":[7,8,9]}}`))
	check("vectors are asked for, and given", map[string]string{"1": entryText([]float32{7, 8, 9}, false, true), "2": given["2"], "3": entryText(vectorOf("drei!", "b"), true, false)}, "drei!")
}

// TestOnlyManifestsWithHalfPrecisionHaveItsFormat checks that an svc without half precision refuses an index that has it, and no other.
func TestOnlyManifestsWithHalfPrecisionHaveItsFormat(t *testing.T) {
	older := manifestSeal
	older.version = settingsVersion
	for usual, inline := range map[byte]int{tombstonesVersion: 1 << 12, settingsVersion: 1} {
		b := newBed(t, vfs.NewMem(), Options{inlineSettings: inline})
		ix := b.create("a")
		for _, step := range []struct {
			change string
			want   byte
		}{
			{`{"source":"userProvided","dimensions":2}`, usual},
			{`{"halfPrecision":true}`, halfVersion},
			{`{"halfPrecision":false}`, halfVersion}, // named in the settings
			{`{"halfPrecision":null}`, usual},
			{`{"halfPrecision":true,"binaryQuantized":true}`, halfVersion},
		} {
			b.apply(ix, update(t, `{"embedders":{"m":`+step.change+`}}`), b.payload(`{"id":"1","_vectors":{"m":[1,2]}}`))
			if got := formatOf(t, b, ix); got != step.want {
				t.Errorf("%s: format %d, want %d", step.change, got, step.want)
			}
			content, err := vfs.ReadFile(b.fs, path.Join(ix.dir, manifestName))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := older.unwrap(manifestName, content); (err != nil) != (step.want == halfVersion) {
				t.Errorf("%s: an older svc: %v", step.change, err)
			}
			b.reopen()
			ix = b.c.Get("a")
		}
		b.close()
	}
	// Documents may keep vectors after the dimensions of their embedder changed.
	unfit := manifest{Embedders: []embedderEntry{{Name: "m", Unfit: []unfitEntry{{ID: 1, Dimensions: 2, Half: true}}}}}
	if got := unfit.version(); got != halfVersion {
		t.Errorf("format %d with vectors that do not fit", got)
	}
}

func TestChangesOfAnEmbedderEmbedAgain(t *testing.T) {
	const one, two, given = "t: one\n", "t: two\nn: 2\n", `{"id":"3","t":"three","_vectors":{"r":[1,2,3]}}`
	for _, test := range []struct {
		body  string
		asked []string
	}{
		{`"apiKey":"secret"`, nil},
		{`"headers":{"a":"b"}`, nil},
		{`"distribution":{"mean":0.5,"sigma":0.5}`, nil},
		{`"dimensions":null`, []string{"test"}},
		{`"binaryQuantized":true`, nil},
		{`"halfPrecision":true`, nil},
		{`"url":"URL/?b"`, []string{one, two}},
		{`"request":{"input":["{{text}}","{{..}}"],"more":1}`, []string{one, two}},
		{`"request": { "input" : ["{{text}}", "{{..}}"] }`, nil},
		{`"documentTemplate":"{{doc.t}}"`, []string{"one", "two"}},
		{`"documentTemplate":"t: {{doc.t}}\n"`, []string{"t: two\n"}},
		{`"documentTemplate":""`, []string{"", ""}},
		{`"documentTemplateMaxBytes":9`, []string{"t: two\nn:"}},
		{`"documentTemplateMaxBytes":500`, nil},
	} {
		p := newProvider(t)
		b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
		ix := b.create("a")
		b.apply(ix, update(t, `{"searchableAttributes":["t","n"],"embedders":{"r":`+p.rest("a", "")+`}}`),
			b.payload(`{"id":"1","t":"one"}`, `{"id":"2","t":"two","n":2}`, given))
		if asked := p.take(); !slices.Equal(asked, []string{one, two}) {
			t.Fatalf("asked for %q at first", asked)
		}
		v := held(ix.View())
		files := slices.Clone(v.files)
		v.Release()
		b.apply(ix, update(t, `{"embedders":{"r":{`+strings.ReplaceAll(test.body, "URL", p.URL)+`}}}`))
		if asked := p.take(); !slices.Equal(asked, test.asked) {
			t.Errorf("%s: asked for %q, want %q", test.body, asked, test.asked)
		}
		v = held(ix.View())
		if got := vectorState(t, v)["3"]["r"]; got != entryText([]float32{1, 2, 3}, false, true) && !strings.Contains(test.body, "binary") {
			t.Errorf("%s: the given vectors are %s", test.body, got)
		}
		// Only changed documents are written, beside the existing segments.
		if kept := len(v.files) > 0 && v.files[0].number == files[0].number; !kept && !strings.Contains(test.body, "binary") && !strings.Contains(test.body, "half") {
			t.Errorf("%s: a segment was rewritten", test.body)
		}
		v.Release()
		b.close()
	}

	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", "")+`}}`), b.payload(`{"id":"1","t":"one"}`, `{"id":"2","t":"two","n":2}`, given))
	for _, test := range []struct {
		attributes string
		asked      []string
	}{
		{`["t","id"]`, []string{"id: 2\nt: two\n"}}, // the first document did not change
		{`["id","t"]`, nil},
		{`["t"]`, []string{"t: one\n", "t: two\n"}},
		{`["t","n.x"]`, nil},
	} {
		p.take()
		b.apply(ix, update(t, `{"searchableAttributes":`+test.attributes+`}`))
		if asked := p.take(); !slices.Equal(asked, test.asked) {
			t.Errorf("searching %s asked for %q, want %q", test.attributes, asked, test.asked)
		}
	}
}

func TestCompactionDropsVectorsOfRemovedEmbedders(t *testing.T) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", "")+`}}`), b.payload(`{"id":"1","t":"one"}`))
	b.apply(ix, update(t, `{"embedders":null}`))
	strays := func() bool {
		v := held(ix.View())
		defer v.Release()
		return v.hasStrayVectors()
	}
	if !strays() {
		t.Fatal("a removed embedder rewrote its documents")
	}
	if _, _, err := ix.Compact(context.Background(), b.batch, nil); err != nil {
		t.Fatal(err)
	}
	if strays() {
		t.Error("a compacted index has vectors of a removed embedder")
	}
	// The number of a removed embedder is not reused.
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", "")+`}}`))
	v := held(ix.View())
	defer v.Release()
	if e, ok := v.Embedder("r"); !ok || e.ID != 1 {
		t.Errorf("the new embedder is %+v", e)
	}
}

func TestABatchThatEmbedsCanBeCanceled(t *testing.T) {
	p := newProvider(t)
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", `,"documentTemplate":"{{doc.t}}"`)+`}}`))
	p.answer(503) // retried for minutes
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() {
		_, err := ix.Apply(ctx, b.batch+1, []Op{b.payload(`{"id":"1","t":"one"}`)}, nil)
		done <- err
	}()
	for len(p.take()) == 0 {
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
	wantDocuments(t, ix, map[string]string{})
}

// TestRenderedTextsAreNotGathered uses a template that renders large texts from small documents: few texts are held at a time, so that one
// request has few.
func TestRenderedTextsAreNotGathered(t *testing.T) {
	p := newProvider(t)
	most := 0
	answers := p.Config.Handler
	p.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		most = max(most, len(body))
		r.Body = io.NopCloser(bytes.NewReader(body))
		answers.ServeHTTP(w, r)
	})
	b := newBed(t, vfs.NewMem(), Options{Embedders: p.pool, MaxIndexingThreads: 1})
	defer b.close()
	ix := b.create("a")
	template := `{% for i in (1..8192) %}` + strings.Repeat("x", 128) + `{% endfor %}{{ doc.id }}`
	b.apply(ix, update(t, `{"embedders":{"r":`+p.rest("a", `,"documentTemplateMaxBytes":10000000,"documentTemplate":"`+template+`"`)+`}}`))
	var docs []string
	for i := range 20 {
		docs = append(docs, fmt.Sprintf(`{"id":"%d"}`, i))
	}
	b.apply(ix, b.payload(docs...))
	if asked := len(p.take()); asked != 20 || most > gatherBytes+1<<20 || most < 1<<20 {
		t.Errorf("%d texts, largest request %d bytes", asked, most)
	}
}

// TestPayloadsWithVectorsThatDoNotFit checks that only a payload from another svc may have vectors of other lengths.
func TestPayloadsWithVectorsThatDoNotFit(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"embedders":{"e":{"source":"userProvided","dimensions":2}}}`))
	docs := []string{`{"id":"1","_vectors":{"e":[1,2,3]}}`, `{"id":"2","_vectors":{"e":[1,2]}}`, `{"id":"3","_vectors":{"e":[[1],[2]]}}`}
	plain := b.payload(docs...)
	wantCode(t, b.try(ix, plain)[0].Err, "invalid_vector_dimensions")
	unfit := b.payload(docs...)
	unfit.Unfit = true
	b.apply(ix, unfit)
	mixed := b.payload(`{"id":"4","_vectors":{"e":[[1],[2,3,4]]}}`)
	mixed.Unfit = true
	wantCode(t, b.try(ix, mixed)[0].Err, "invalid_vector_dimensions")
	b.reopen()
	ix = b.c.Get("a")
	b.apply(ix, b.merge(`{"id":"3","t":"x"}`))
	v := held(ix.View())
	defer v.Release()
	got := vectorState(t, v)
	for id, want := range map[string][]float32{"1": {1, 2, 3}, "2": {1, 2}, "3": {1, 2}} {
		if got[id]["e"] != entryText(want, false, true) {
			t.Errorf("document %s has %s", id, got[id]["e"])
		}
	}
	e, _ := v.Embedder("e")
	if shapes := e.Shapes(); len(shapes) != 3 || shapes[0].Dimensions != 2 {
		t.Errorf("shapes %+v", shapes)
	}
}
