package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"svc/internal/vfs"
)

// frequentTexts returns documents whose words take much more memory than the rest of them: the same words come in many documents.
func frequentTexts(documents, words int) []string {
	rng := rand.New(rand.NewPCG(7, 0))
	docs := make([]string, documents)
	for i := range docs {
		var text strings.Builder
		for range words {
			fmt.Fprintf(&text, "%x ", rng.IntN(1<<13)*977)
		}
		docs[i] = fmt.Sprintf(`{"id":%d,"t":%q}`, i, text.String())
	}
	return docs
}

// spoolWrite reports whether an operation writes to a temporary file of a builder.
func spoolWrite(o vfs.Op) bool { return o.Kind == vfs.OpWrite && strings.Contains(o.Name, "spool-") }

// temporary returns the temporary files of a catalog.
func temporary(t *testing.T, fsys vfs.FS) []string {
	return slices.DeleteFunc(list(t, fsys, catalogDir), func(name string) bool { return !strings.HasSuffix(name, vfs.TempSuffix) })
}

// TestLargeBatchesSpillWords writes a batch whose words do not fit into the memory of a worker. It must leave one segment, with the
// same content as a batch with more memory. If a temporary file cannot be written, the batch leaves several segments, or fails and can be
// repeated. If the power fails, nothing of the batch and no temporary file must be left.
func TestLargeBatchesSpillWords(t *testing.T) {
	docs := frequentTexts(800, 200)
	run := func(share int64, hook func(vfs.Op) error) (b *bed, ix *Index, err error) {
		on := false
		b = newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if !on || hook == nil {
				return nil
			}
			return hook(o)
		}), Options{MaxIndexingMemory: 1, MaxIndexingThreads: 1})
		b.c.builderBytes = share
		ix = b.create("a")
		payload := b.payload(docs...)
		b.batch++
		on = true
		_, err = ix.Apply(t.Context(), b.batch, []Op{payload}, nil)
		on = false
		if left := temporary(t, b.fs); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
		if err != nil {
			if files := segmentFiles(t, b.fs); len(files) > 0 || ix.Outline().size.Segments > 0 {
				t.Errorf("%v: left %v", err, files)
			}
			if _, err := ix.Apply(t.Context(), b.batch, []Op{payload}, nil); err != nil {
				t.Fatal(err)
			}
		}
		return b, ix, err
	}
	content := func(ix *Index) string {
		v := held(ix.View())
		defer v.Release()
		return dump(t, v)
	}
	b, ix, err := run(64<<20, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := content(ix)
	b.close()

	const share = 2 << 20
	writes := int64(0)
	b, ix, err = run(share, func(o vfs.Op) error {
		if spoolWrite(o) {
			writes++
		}
		return nil
	})
	if n := ix.Outline().size.Segments; err != nil || n != 1 || writes < 3 || content(ix) != want {
		t.Fatalf("%d segments, %d writes of words: %v", n, writes, err)
	}
	b.close()

	failed, several := 0, 0
	for at := range writes {
		b, ix, err := run(share, vfs.FailFrom(at, 1<<40, spoolWrite, syscall.ENOSPC))
		if err != nil && !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if err != nil {
			failed++
		} else if ix.Outline().size.Segments > 1 {
			several++
		}
		if content(ix) != want {
			t.Errorf("write %d failed: other content", at)
		}
		b.close()
	}
	if failed == 0 || several == 0 {
		t.Errorf("%d batches failed, %d left several segments", failed, several)
	}
}

// TestPowerFailureWhileWordsAreSpilled cuts the power at each write to a temporary file.
func TestPowerFailureWhileWordsAreSpilled(t *testing.T) {
	docs := frequentTexts(800, 200)
	for n, cut := int64(0), true; cut; n++ {
		cut = false
		mem := vfs.NewMem()
		var after *vfs.MemFS
		fail := vfs.FailFrom(n, 1, spoolWrite, errPower)
		b := newBed(t, vfs.Hook(mem, func(o vfs.Op) error {
			if after != nil {
				return errPower
			}
			err := fail(o)
			if err != nil {
				after, cut = mem.CrashClone(rand.New(rand.NewPCG(uint64(n), 0))), true
			}
			return err
		}), Options{MaxIndexingMemory: 1, MaxIndexingThreads: 1})
		b.c.builderBytes = 2 << 20
		ix := b.create("a")
		payload := b.payload(docs...)
		b.batch++
		if _, err := ix.Apply(t.Context(), b.batch, []Op{payload}, nil); (err != nil) != cut {
			t.Fatal(err)
		}
		_ = b.c.Close() // without power
		if !cut {
			if n < 3 {
				t.Errorf("%d writes", n)
			}
			break
		}
		a := &bed{t: t, fs: after, options: b.options}
		a.options.FS = after
		a.open()
		held(a.c.Get("a").View()).Release() // opens the index
		if left := slices.Concat(temporary(t, after), segmentFiles(t, after)); len(left) > 0 {
			t.Errorf("write %d: left %v", n, left)
		}
		a.close()
	}
}
