package format

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"svc/internal/document"
	"svc/internal/index"
	"svc/internal/settings"
	"svc/internal/vfs"
)

// viewOf returns a view of an index in memory with some settings and documents. The view is released at the end of the test.
func viewOf(t testing.TB, change string, docs ...string) *index.View {
	t.Helper()
	fs := vfs.NewMem()
	c, err := index.OpenCatalog("indexes", index.Options{FS: fs})
	if err != nil {
		t.Fatal(err)
	}
	ix, err := c.Create("a", "id", 1)
	if err != nil {
		t.Fatal(err)
	}
	var ops []index.Op
	if change != "" {
		u, err := settings.ParseUpdate([]byte(change), settings.Features{})
		if err != nil {
			t.Fatal(err)
		}
		ops = append(ops, index.UpdateSettings{Update: u})
	}
	var lines bytes.Buffer
	n, err := document.Convert(&lines, strings.NewReader("["+strings.Join(docs, ",")+"]"), document.JSON, ',')
	if err == nil {
		err = vfs.WriteFile(fs, "payload", lines.Bytes())
	}
	if err != nil {
		t.Fatal(err)
	}
	results, err := ix.Apply(context.Background(), 1, append(ops, index.AddDocuments{Payload: "payload", Documents: n}), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Err != nil {
			t.Fatal(r.Err)
		}
	}
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.Release()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return v
}
