package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// TestSpooledDocuments checks that builds and merges write the same bytes with large documents in a temporary file and in memory.
func TestSpooledDocuments(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 3*spooledDocument)
	for i := range noise {
		noise[i] = byte(rng.IntN(256)) // need not be text to be compressed
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
				t.Errorf("document %d: read %d bytes, copied %d, length %d, want %d: %v %v", row, len(got), copied.Len(), n, len(want), err, lengthErr)
			}
			if copied.longest > pieceBytes {
				t.Errorf("document %d: one write of the copy has %d bytes", row, copied.longest)
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

// pieceByPiece collects writes and records the longest one.
type pieceByPiece struct {
	bytes.Buffer
	longest int
}

func (w *pieceByPiece) Write(b []byte) (int, error) {
	w.longest = max(w.longest, len(b))
	return w.Buffer.Write(b)
}

// TestHeldDocumentsAreSpooled builds segments of random documents in memory and with a temporary file that works, fails at some write, or
// cannot be created. The bytes must be the same, also if the segment is written again.
func TestHeldDocumentsAreSpooled(t *testing.T) {
	const seed = 5
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	defer func(n int) { heldDocuments = n }(heldDocuments)
	noise := make([]byte, spooledDocument)
	for i := range noise {
		noise[i] = byte(rng.IntN(256))
	}
	spilled, stayed := 0, 0
	for round := range 15 {
		docs := make([][]byte, 1+rng.IntN(300))
		for i := range docs {
			docs[i] = fmt.Appendf(nil, `{"id":%d,"text":"%s"}`, i, randomText(rng, 1+rng.IntN(400)))
			switch {
			case rng.IntN(100) == 0:
				docs[i] = largeDoc(rng, 1+rng.IntN(100))
			case rng.IntN(500) == 0: // from spooledDocument bytes on, sometimes incompressible
				docs[i] = fmt.Appendf(nil, `{"id":%d,"text":"%s"}`, i, strings.Repeat("x", spooledDocument))
			case rng.IntN(500) == 0:
				docs[i] = []byte(`{"noise":` + string(noise) + `}`)
			}
		}
		left := -1 // writes until one fails; < 0: none fails
		fsys := vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if o.Name == "/spool" && o.Kind == vfs.OpWrite {
				if left--; left == 0 {
					return errors.New("no room")
				}
			}
			return nil
		})
		build := func(place func() (*mapped.Spool, error)) (file []byte, b *Builder) {
			b = NewBuilder(BuilderOptions{Spool: place})
			for id, doc := range docs {
				b.StartDoc(DocID(id), fmt.Append(nil, id), doc)
				b.EndDoc()
			}
			for range 2 { // a second time, as after an error
				if _, err := b.Write(t.Context(), fsys, "/seg"); err != nil {
					t.Fatal(err)
				}
				again, err := vfs.ReadFile(fsys, "/seg")
				if err != nil || file != nil && !bytes.Equal(again, file) {
					t.Fatalf("round %d: %d bytes, again %d: %v", round, len(file), len(again), err)
				}
				file = again
			}
			return file, b
		}
		want, _ := build(nil)
		heldDocuments = 1 + rng.IntN(20<<10)
		for name, fails := range map[string]int{"takes all": -1, "fails": 1 + rng.IntN(5), "cannot be made": 0} {
			large := slices.ContainsFunc(docs, func(doc []byte) bool { return len(doc) >= spooledDocument })
			if fails >= 0 && large {
				continue // documents that go straight to the file are lost
			}
			left = fails
			got, b := build(func() (*mapped.Spool, error) {
				if fails == 0 {
					return nil, errors.New("no file")
				}
				return mapped.NewSpool(fsys, "/spool")
			})
			if !bytes.Equal(got, want) {
				t.Errorf("round %d, a spool that %s: %d bytes, want %d", round, name, len(got), len(want))
			}
			if most := heldDocuments + pieceBytes; fails < 0 && b.docs.held > most || b.docs.spool == nil && fails < 0 && int(b.docs.stored) > most {
				t.Errorf("round %d: %d of %d bytes are held, want %d at most", round, b.docs.held, b.docs.stored, most)
			}
			if b.docs.chunk != nil {
				spilled++
			}
			if b.docs.stays {
				stayed++
			}
			held := 0
			for _, part := range b.docs.data {
				held += len(part.memory)
			}
			if held != b.docs.held {
				t.Errorf("round %d, a spool that %s: %d bytes are in memory, %d are counted", round, name, held, b.docs.held)
			}
			b.Reset()
		}
	}
	if spilled < 10 || stayed < 10 {
		t.Errorf("documents went to a file %d times, and that failed %d times", spilled, stayed)
	}
}
