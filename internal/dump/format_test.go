package dump

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/task"
)

// vectored returns an instance with float and bit vectors, and one document without vectors.
func vectored(t *testing.T) *instance {
	dir := filepath.Join(t.TempDir(), "data")
	in := open(t, dir, nil)
	in.run("x", update(t, `{"embedders":{"floats":{"source":"userProvided","dimensions":3},"bits":{"source":"userProvided","dimensions":8,"binaryQuantized":true}}}`), "")
	docs := `{"id":1,"t":"one","_vectors":{"floats":[1,0.1,-3],"bits":[[1,-1,1,1,-1,1,1,1],[1,1,1,1,1,1,1,-1]]}}` + "\n" +
		`{"id":2,"t":"two","_vectors":{"floats":[0.5,2,0],"bits":null}}` + "\n" + `{"id":3,"t":"three","_vectors":{"floats":null,"bits":null}}` + "\n"
	in.run("x", add(docs), docs)
	in.run("x", task.DeleteDocuments{IDs: []string{"2"}}, "")
	in.close()
	return open(t, dir, func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 })
}

// withVectors returns the state of an instance, with documents as in dumps.
func withVectors(t *testing.T, in *instance) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(state(t, in))
	for _, uid := range in.catalog.UIDs() {
		v := held(in.catalog.Get(uid).View())
		must(t, eachDocument(v, nil, func(doc []byte) error {
			b.Write(append(doc, '\n'))
			return nil
		}))
		v.Release()
	}
	return b.String()
}

// TestFilesOfThisFormat reads data directories that earlier versions of svc wrote in this format, as snapshots. When a format changes, the
// version of data directories increases, and with it the number in the names of these files.
func TestFilesOfThisFormat(t *testing.T) {
	for name, make := range map[string]func(*testing.T) *instance{"format-2": filled, "format-2-vectors": vectored} {
		snapshot, text := filepath.Join("testdata", name+".snapshot"), filepath.Join("testdata", name+".txt")
		if os.Getenv("UPDATE_GOLDEN") != "" {
			in := make(t)
			want := withVectors(t, in)
			must(t, snapshotNow(t, in))
			b, err := os.ReadFile(in.o.SnapshotFile)
			must(t, err)
			must(t, os.WriteFile(snapshot, b, 0o666))
			must(t, os.WriteFile(text, []byte(want), 0o666))
		}
		want, err := os.ReadFile(text)
		must(t, err)
		dir := filepath.Join(t.TempDir(), "data")
		must(t, importSnapshot(t, dir, snapshot))
		in := open(t, dir, func(_ *Options, o *task.Options) { o.MaxBatchTasks = 0 })
		if got := withVectors(t, in); got != string(want) {
			t.Errorf("%s holds\n%s\nwant\n%s", snapshot, got, want)
		}
		for _, uid := range in.catalog.UIDs() {
			v := held(in.catalog.Get(uid).View())
			for _, l := range v.Segments {
				must(t, l.Verify())
			}
			v.Release()
		}
	}
}
