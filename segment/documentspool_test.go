package segment

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// TestSpooledDocumentsAreTheSame builds and merges a segment with its large documents in a file, and in memory: the bytes are the same.
func TestSpooledDocumentsAreTheSame(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3*spooledDocument)
	for i := range noise {
		noise[i] = byte(rng.IntN(256)) // to be compressed it need not be text
	}
	docs := [][]byte{
		[]byte(`{"id":0}`),
		[]byte(`{"id":1,"text":"` + strings.Repeat("so many words ", spooledDocument/10) + `"}`),
		[]byte(`{"id":2,"noise":` + string(noise) + `}`),
		[]byte(`{"id":3}`),
		[]byte(`{"id":4,"text":"` + strings.Repeat("x", spooledDocument) + `"}`),
		largeDoc(rng, 300),
	}
	fsys := vfs.NewMem()
	open := mapped.Count()
	spools := 0
	place := func() (*mapped.Spool, error) {
		spools++
		return mapped.NewSpool(fsys, fmt.Sprint("/spool", spools))
	}
	var files [2][]byte
	for i, spool := range []func() (*mapped.Spool, error){nil, place} {
		b := NewBuilder(BuilderOptions{Spool: spool})
		for range 2 { // the second time after Reset
			for id, doc := range docs {
				b.StartDoc(DocID(id), fmt.Append(nil, id), doc)
				b.EndDoc()
			}
			if memory := b.MemoryBytes(); spool != nil && memory > spooledDocument {
				t.Errorf("%d bytes in memory", memory)
			}
			if _, err := b.Write(t.Context(), fsys, "/seg"); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
		var err error
		if files[i], err = vfs.ReadFile(fsys, "/seg"); err != nil {
			t.Fatal(err)
		}
	}
	if spools != 2 || !bytes.Equal(files[0], files[1]) {
		t.Errorf("%d spools, %d bytes, in memory %d", spools, len(files[1]), len(files[0]))
	}
	r, err := Open(fsys, "/seg")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
	if _, err := Merge(t.Context(), fsys, "/merged", []Live{{Reader: r}}, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	merged, err := Open(fsys, "/merged")
	if err != nil {
		t.Fatal(err)
	}
	defer merged.Close()
	for _, r := range []*Reader{r, merged} {
		for row, want := range docs {
			var copied pieceByPiece
			got, err := r.AppendDocument(nil, Row(row))
			if err == nil {
				err = r.CopyDocument(&copied, Row(row))
			}
			n, lengthErr := r.DocumentLength(Row(row))
			if err != nil || lengthErr != nil || n != len(want) || !bytes.Equal(got, want) || !bytes.Equal(copied.Bytes(), want) {
				t.Errorf("document %d: %d bytes, copied %d, %d are told, %d were written: %v %v", row, len(got), copied.Len(), n, len(want), err, lengthErr)
			}
			if copied.longest > pieceBytes {
				t.Errorf("document %d is copied %d bytes at once", row, copied.longest)
			}
		}
	}
	if names, err := fsys.List("/"); err != nil || len(names) != 2 {
		t.Errorf("%v %v", names, err)
	}
	if n := mapped.Count(); n != open+2 {
		t.Errorf("%d mappings are open, %d were before", n, open)
	}
}

// pieceByPiece keeps what is written to it, and how much of that was in memory at once.
type pieceByPiece struct {
	bytes.Buffer
	longest int
}

func (w *pieceByPiece) Write(b []byte) (int, error) {
	w.longest = max(w.longest, len(b))
	return w.Buffer.Write(b)
}
