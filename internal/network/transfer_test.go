package network

import (
	"bytes"
	"compress/gzip"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"svc/internal/index"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// TestAnExportWithoutAViewIsDropped drops an export whose index could not be opened: it has no view.
func TestAnExportWithoutAViewIsDropped(t *testing.T) {
	x := &export{}
	e := exports{all: map[string]*export{"x": x}}
	e.drop()
	if e.all != nil || !e.mu.TryLock() || !x.mu.TryLock() {
		t.Errorf("left after drop: %v, or a lock that is held", e.all)
	}
}

// TestAPageAfterOneThatFailed requests a page of documents, one of which cannot be read. Once it can be read, the page has all documents,
// also those before it.
func TestAPageAfterOneThatFailed(t *testing.T) {
	dir := filepath.ToSlash(t.TempDir())
	catalog, err := index.OpenCatalog(dir+"/indexes", index.Options{FS: vfs.OS})
	if err != nil {
		t.Fatal(err)
	}
	defer catalog.Close()
	ix, err := catalog.Create("i", "id", 1)
	if err != nil {
		t.Fatal(err)
	}
	const second = "qzjxkvbwpy"
	if err := vfs.WriteFile(vfs.OS, dir+"/payload", []byte(`{"id":1,"t":"a"}`+"\n"+`{"id":2,"t":"`+strings.Repeat(second, 200)+`"}`+"\n"+`{"id":3,"t":"c"}`+"\n")); err != nil {
		t.Fatal(err)
	}
	if _, err := ix.Apply(t.Context(), 2, []index.Op{index.AddDocuments{Payload: dir + "/payload", Documents: 3}}, nil); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(dir + "/indexes/*/*.seg")
	if err != nil || len(files) != 1 {
		t.Fatalf("%v, %v", files, err)
	}
	content, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	const before = 16 // bytes of the compressed document
	at := int64(bytes.Index(content, []byte(second)) - before)
	if at < 0 {
		t.Fatal("the file does not have the text of a document")
	}
	write := func(text string) {
		f, err := os.OpenFile(files[0], os.O_WRONLY, 0)
		if err == nil {
			_, err = f.WriteAt([]byte(text), at)
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	leader := "a"
	to := &Network{Leader: &leader, Version: uuid.New(), Remotes: map[string]*Remote{"a": {}, "b": {}}, Shards: map[string]*Shard{"x": {Remotes: []string{"b"}}}}
	n := &Node{o: Options{Catalog: catalog}, stored: &stored{Network: to, Change: &change{Phase: moving, Before: empty(), Previous: empty()}}}
	defer n.exports.drop()
	page := func() (p *Page, err error) {
		err = mapped.Guard(func() (err error) {
			p, err = n.Export(context.Background(), &Transfer{Version: to.Version, Remote: "b", Index: "i"})
			return err
		})
		return p, err
	}
	write(strings.Repeat("\xff", before+len(second)))
	if _, err := page(); err == nil {
		t.Fatal("a damaged document is sent")
	}
	write(string(content[at:][:before+len(second)]))
	p, err := page()
	if err != nil {
		t.Fatal(err)
	}
	z, err := gzip.NewReader(bytes.NewReader(p.Body))
	if err != nil {
		t.Fatal(err)
	}
	docs, err := io.ReadAll(z)
	if lines := bytes.Count(docs, []byte{'\n'}); err != nil || lines != 3 {
		t.Errorf("the page has %d documents of 3, error %v", lines, err)
	}
}
