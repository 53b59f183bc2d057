package index

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// TestFilesOfAnUnknownManifestAreRemoved fails the sync behind a new manifest, and the attempt to write the former one again. The files
// that only the failed commit names stay, and are removed once the manifest is written again.
func TestFilesOfAnUnknownManifestAreRemoved(t *testing.T) {
	var synonyms strings.Builder
	for i := range 500 {
		fmt.Fprintf(&synonyms, `,"word%d":["other%d"]`, i, i)
	}
	for _, what := range []string{"documents", "deletions", "settings", "columns"} {
		unsure, removed := 0, 0
		for n := int64(0); ; n++ {
			armed := func(vfs.Op) error { return nil }
			b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error { return armed(o) }), Options{})
			ix := b.create("a")
			b.c.inlineTombstones = 1
			b.apply(ix, b.payload(`{"id":1,"t":"red"}`, `{"id":2,"t":"blue"}`, `{"id":3,"t":"green"}`, `{"id":4,"t":"grey"}`))
			op := map[string]Op{
				"documents": b.payload(`{"id":5,"t":"white"}`),
				"deletions": DeleteDocuments{IDs: []string{"1", "3"}},
				"settings":  update(t, `{"synonyms":{`+synonyms.String()[1:]+`}}`),
				"columns":   update(t, `{"filterableAttributes":["t"]}`),
			}[what]
			armed = vfs.FailFrom(n, 2, func(o vfs.Op) bool { return o.Kind.Changes() }, errors.New("disk on fire"))
			_, err := ix.Apply(t.Context(), 7, []Op{op}, nil)
			armed = func(vfs.Op) error { return nil }
			if err == nil && !ix.unsure.Load() {
				b.close()
				break
			}
			if ix.unsure.Load() {
				unsure++
				before := len(list(t, b.fs, ix.dir))
				if err := b.c.Settle(); err != nil {
					t.Fatal(err)
				}
				left := list(t, b.fs, ix.dir)
				removed += before - len(left)
				b.reopen()
				held(b.c.Get("a").View()).Release() // opens it
				if kept := list(t, b.fs, b.c.Get("a").dir); !slices.Equal(left, kept) {
					t.Errorf("%s, operation %d: the files are %q, and after a restart %q", what, n, left, kept)
				}
			}
			b.close()
		}
		if unsure == 0 || removed == 0 {
			t.Errorf("%s: the manifest was unknown %d times, and %d files were removed", what, unsure, removed)
		}
	}
}
