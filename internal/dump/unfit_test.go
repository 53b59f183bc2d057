package dump

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"svc/internal/index"
	"svc/internal/task"
)

// unfit returns an instance with vectors of two lengths that no longer fit their embedder, and one that does.
func unfit(t *testing.T, dir string) *instance {
	in := open(t, dir, nil)
	in.run("x", update(t, `{"embedders":{"e":{"source":"userProvided","dimensions":2}}}`), "")
	docs := `{"id":1,"_vectors":{"e":[1,2]}}` + "\n" + `{"id":2,"_vectors":{"e":[[3,4],[5,6]]}}` + "\n" + `{"id":3,"_vectors":{"e":null}}` + "\n"
	in.run("x", add(docs), docs)
	in.run("x", update(t, `{"embedders":{"e":{"dimensions":3}}}`), "")
	docs = `{"id":2,"_vectors":{"e":[7,8,9]}}` + "\n"
	in.run("x", add(docs), docs)
	in.run("x", update(t, `{"embedders":{"e":{"dimensions":1}}}`), "")
	docs = `{"id":4,"_vectors":{"e":[0.5]}}` + "\n"
	in.run("x", add(docs), docs)
	return in
}

// TestVectorsThatDoNotFitOutliveADump checks that dumps and imports keep vectors that do not fit.
func TestVectorsThatDoNotFitOutliveADump(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	unfit(t, dir).close()
	first := open(t, dir, func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 })
	want := withVectors(t, first)
	if !strings.Contains(want, `"embeddings":[[1.0,2.0]]`) || !strings.Contains(want, `"embeddings":[[7.0,8.0,9.0]]`) {
		t.Fatalf("the vectors are missing before the dump: %s", want)
	}
	second := imported(t, dumpNow(t, first))
	_, was, _ := strings.Cut(withVectors(t, first), `{"id":1`)
	if _, is, _ := strings.Cut(withVectors(t, second), `{"id":1`); is != was {
		t.Errorf("imported %s\nwant %s", is, was)
	}
	// After a change of dimensions they fit again.
	fits := index.UpdateSettings{Update: update(t, `{"embedders":{"e":{"dimensions":2}}}`).Update}
	if _, err := second.catalog.Get("x").ApplyBeside(t.Context(), []index.Op{fits}, nil); err != nil {
		t.Fatal(err)
	}
	v := held(second.catalog.Get("x").View())
	defer v.Release()
	e, _ := v.Embedder("e")
	n := 0
	for _, s := range v.Segments {
		if vs := s.Vectors(e.ID); vs != nil {
			n += vs.Count()
		}
	}
	if vectors, documents := v.Embeddings(); n != 1 || vectors != 3 || documents != 3 {
		t.Errorf("%d vectors fit; of %d vectors of %d documents", n, vectors, documents)
	}
}

// TestVectorsThatDoNotFitAreNotExported checks that an export leaves out vectors that the other side would refuse.
func TestVectorsThatDoNotFitAreNotExported(t *testing.T) {
	in, to := unfit(t, filepath.Join(t.TempDir(), "data")), newTarget(t)
	if done := in.run("", export(to.URL, nil), ""); done.Status != task.Succeeded {
		t.Fatalf("%s", done.AppendJSON(nil))
	}
	docs := to.documents["x"]
	slices.Sort(docs)
	want := []string{`{"id":1,"_vectors":{"e":{"regenerate":false,"embeddings":[]}}}`, `{"id":2,"_vectors":{"e":{"regenerate":false,"embeddings":[]}}}`,
		`{"id":3,"_vectors":{"e":{"regenerate":false,"embeddings":[]}}}`, `{"id":4,"_vectors":{"e":{"regenerate":false,"embeddings":[[0.5]]}}}`}
	if !slices.Equal(docs, want) {
		t.Errorf("%q, want %q", docs, want)
	}
}
