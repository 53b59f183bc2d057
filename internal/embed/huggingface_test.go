package embed

import (
	"context"
	"encoding/binary"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/settings"
	"svc/internal/transformer"
	"svc/internal/transformer/transformertest"
)

const tinyTokenizer = "../transformer/testdata/wordpiece.json"

func makeTiny(t *testing.T, dir string) {
	transformertest.Make(t, dir, "bert", "F32", tinyTokenizer, 300, 7)
}

func TestHuggingFace(t *testing.T) {
	dir := t.TempDir()
	makeTiny(t, filepath.Join(dir, "org", "tiny"))
	makeTiny(t, filepath.Join(dir, "org", "other", "v1"))
	pool, _ := testPool(t, Options{ModelsDir: dir})
	cfg := &settings.Embedder{Source: settings.HuggingFace, Model: "org/tiny", DocumentTemplate: new("{{doc.t}}")}
	e := open(t, pool, cfg, 0)
	if e.Dimensions() != transformertest.Hidden {
		t.Fatalf("%d dimensions", e.Dimensions())
	}
	if _, _, ok := e.Distribution(); ok {
		t.Error("an unknown model has a distribution")
	}
	if mean, sigma, ok := open(t, pool, &settings.Embedder{Source: settings.HuggingFace}, 768).Distribution(); mean != .85 || sigma != .10 || !ok {
		t.Errorf("the default model's distribution: %g, %g, %t", mean, sigma, ok)
	}
	list := texts("hello", "hello world", "hello", "")
	var stats Stats
	vectors, err := e.EmbedDocuments(t.Context(), list, &stats)
	if err != nil || !slices.Equal(vectors[0], vectors[2]) || slices.Equal(vectors[0], vectors[1]) || len(vectors[3]) != transformertest.Hidden {
		t.Fatalf("%v, %v", vectors, err)
	}
	q := "hello"
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range []*settings.Embedder{cfg, {Source: settings.HuggingFace, Model: "org/other", Revision: "v1"}} {
		v, err := embedQuery(limited, open(t, pool, c, transformertest.Hidden), Query{Q: &q})
		if err != nil || len(v) != len(vectors[0]) {
			t.Fatalf("%v, %v", v, err)
		}
		for i := range v {
			if d := v[i] - vectors[0][i]; d > 1e-5 || d < -1e-5 {
				t.Fatalf("a query has %v, a document %v", v, vectors[0])
			}
		}
	}
	// An embedder with another pooling returns other vectors from the same model in memory.
	forced := *cfg
	forced.Pooling = string(transformer.ForceCLS)
	if v, err := embedQuery(limited, open(t, pool, &forced, 0), Query{Q: &q}); err != nil || slices.Equal(v, vectors[0]) {
		t.Errorf("%v, %v", v, err)
	}
	_, err = open(t, pool, cfg, 5).EmbedDocuments(t.Context(), list, &stats)
	wantError(t, err, "16 dimensions")

	// Weights that are NaN must give an error, not NaN vectors.
	damaged := filepath.Join(dir, "org", "damaged")
	makeTiny(t, damaged)
	weights, err := os.ReadFile(filepath.Join(damaged, "model.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 8 + int(binary.LittleEndian.Uint64(weights)); i < len(weights); i++ {
		weights[i] = 0xff
	}
	transformertest.Write(t, filepath.Join(damaged, "model.safetensors"), weights)
	_, err = pool.Open(t.Context(), &settings.Embedder{Source: settings.HuggingFace, Model: "org/damaged"}, 0, nil)
	wantError(t, err, "org/damaged", "damaged")
}

func TestMissingModel(t *testing.T) {
	dir := t.TempDir()
	makeTiny(t, filepath.Join(dir, "org", "tiny"))
	makeTiny(t, filepath.Join(dir, "org", "other", "v1"))
	pool, _ := testPool(t, Options{ModelsDir: dir})
	local := func(model, revision string) *settings.Embedder {
		return &settings.Embedder{Source: settings.HuggingFace, Model: model, Revision: revision}
	}
	usual := local("", "").Complete()
	for _, test := range []struct {
		cfg  *settings.Embedder
		want string
	}{
		{local("org/tiny", ""), ""},
		{local("org/other", "v1"), ""},
		{local("org/other", ""), "org/other/main"},
		{local("org/none", "r2"), "org/none/r2"},
		{local("", ""), usual.Model + "/" + usual.Revision},
		{local("../etc", ""), ""},
		{&settings.Embedder{Source: settings.UserProvided, Dimensions: 2}, ""},
		{&settings.Embedder{Source: settings.Composite, IndexingEmbedder: local("org/none", ""), SearchEmbedder: local("org/tiny", "")}, ""},
		{&settings.Embedder{Source: settings.Composite, IndexingEmbedder: local("org/tiny", ""), SearchEmbedder: local("org/none", "")}, "org/none/main"},
	} {
		want := ""
		if test.want != "" {
			want = filepath.Join(dir, filepath.FromSlash(test.want))
		}
		if got := pool.MissingModel(test.cfg); got != want {
			t.Errorf("%s %s: %q is missing, want %q", test.cfg.Source, test.cfg.Model, got, want)
		}
	}
}

// TestHub downloads a model from a hub that redirects to its files, and fails in several ways.
func TestHub(t *testing.T) {
	source := t.TempDir()
	makeTiny(t, source)
	transformertest.Write(t, filepath.Join(source, "1_Pooling", "config.json"), []byte(`{"pooling_mode_cls_token":true}`))
	var mu sync.Mutex
	var asked []string
	hub := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		asked = append(asked, r.URL.Path)
		mu.Unlock()
		path := r.URL.Path
		switch {
		case strings.HasPrefix(path, "/files/"):
			http.ServeFile(w, r, filepath.Join(source, strings.TrimPrefix(path, "/files/")))
		case strings.HasPrefix(path, "/org/tiny/resolve/main/"):
			http.Redirect(w, r, "/files/"+strings.TrimPrefix(path, "/org/tiny/resolve/main/"), http.StatusFound)
		case strings.HasPrefix(path, "/org/pickled/resolve/r1/") && !strings.HasSuffix(path, ".safetensors"):
			http.ServeFile(w, r, filepath.Join(source, strings.TrimPrefix(path, "/org/pickled/resolve/r1/")))
		case strings.HasPrefix(path, "/org/cut/"):
			w.Header().Set("Content-Length", "100")
			w.Write([]byte("{"))
		case strings.HasPrefix(path, "/org/slow/"):
			<-r.Context().Done()
		case strings.HasPrefix(path, "/org/ill/"):
			w.WriteHeader(500)
		default:
			http.NotFound(w, r)
		}
	}))
	defer hub.Close()
	dir := t.TempDir()
	pool, _ := testPool(t, Options{ModelsDir: dir})
	pool.models.hub = hub.URL
	config := func(model, revision string) *settings.Embedder {
		return &settings.Embedder{Source: settings.HuggingFace, Model: model, Revision: revision}
	}
	q := "hello"
	limited, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := embedQuery(limited, open(t, pool, config("org/tiny", ""), transformertest.Hidden), Query{Q: &q})
	if wantError(t, err, "runtime error", "not in"); len(asked) != 0 {
		t.Errorf("a search downloads %v", asked)
	}
	e := open(t, pool, config("org/tiny", ""), 0)
	if e.Dimensions() != transformertest.Hidden || len(asked) != 2*(len(transformer.Files)+len(transformer.OptionalFiles)) {
		t.Errorf("%d dimensions, asked for %v", e.Dimensions(), asked)
	}
	if _, err := embedQuery(limited, e, Query{Q: &q}); err != nil {
		t.Error(err)
	}
	if _, err := transformer.Load(filepath.Join(dir, "org", "tiny", "main")); err != nil {
		t.Error(err)
	}
	before := len(asked)
	if open(t, pool, config("org/tiny", "main"), 0); len(asked) != before {
		t.Error("a model is downloaded twice")
	}
	for model, words := range map[string]string{"org/pickled": "no file model.safetensors", "org/none": "no file config.json", "org/cut": "unexpected EOF", "org/ill": "status 500"} {
		_, err := pool.Open(t.Context(), config(model, "r1"), 0, nil)
		wantError(t, err, words, filepath.Join(dir, filepath.FromSlash(model), "r1"), "tokenizer.json")
	}
	cancelled, stop := context.WithCancel(t.Context())
	time.AfterFunc(30*time.Millisecond, stop)
	if _, err := pool.Open(cancelled, config("org/slow", ""), 0, nil); err != context.Canceled {
		t.Errorf("cancelled: %v", err)
	}
	for _, model := range []string{"../etc", "a/../../b", "/abs", "a/b/c", ".hidden/x", "a b"} {
		_, err := pool.Open(t.Context(), config(model, ""), 0, nil)
		wantError(t, err, "not the name of a model")
	}
	_, err = pool.Open(t.Context(), config("a/b", "../c"), 0, nil)
	wantError(t, err, "not a revision")
	left, err := filepath.Glob(filepath.Join(dir, "*", "*", "*"))
	if err != nil || len(left) != 1 || filepath.Base(left[0]) != "main" {
		t.Errorf("left: %v, %v", left, err)
	}
	nowhere, _ := testPool(t, Options{})
	_, err = nowhere.Open(t.Context(), config("a/b", ""), 0, nil)
	wantError(t, err, "no directory")
	if _, err := os.Stat(filepath.Join(dir, "org", "tiny", "main", "1_Pooling", "config.json")); err != nil {
		t.Error(err)
	}
}
