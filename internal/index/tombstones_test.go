package index

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// TestUpdatesWriteLittleAfterManyDeletions checks that the bytes which an update of one document writes do not grow with
// earlier deletions.
func TestUpdatesWriteLittleAfterManyDeletions(t *testing.T) {
	const documents = 50_000
	perUpdate := func(deletions int) int64 {
		written, counting := int64(0), false
		b := newBed(t, vfs.Hook(vfs.NewMem(), func(o vfs.Op) error {
			if counting && o.Kind == vfs.OpWrite && strings.HasPrefix(o.Name, catalogDir) {
				written += int64(o.Bytes)
			}
			return nil
		}), Options{})
		defer b.close()
		b.c.inlineTombstones = inlineTombstoneBytes
		ix := b.create("a")
		docs := make([]string, documents)
		for i := range docs {
			docs[i] = fmt.Sprintf(`{"id":%d}`, i)
		}
		b.apply(ix, b.payload(docs...))
		rng := rand.New(rand.NewPCG(1, 2))
		var ids []string
		for _, i := range rng.Perm(documents)[:deletions] {
			ids = append(ids, fmt.Sprint(i))
		}
		b.apply(ix, DeleteDocuments{ids})
		counting = true
		const updates = 10
		for i := range updates {
			b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d}`, documents+i)))
		}
		return written / updates
	}
	few, many := perUpdate(10), perUpdate(documents/3)
	if many > few+few/4 {
		t.Errorf("an update writes %d bytes after few deletions and %d after many", few, many)
	}
}

// TestListsOfDeletedRowsAreRemoved checks that a list is removed when the manifest names another, and with its segment.
func TestListsOfDeletedRowsAreRemoved(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	lists := func() (lists []string) {
		for _, name := range list(t, b.fs, ix.dir) {
			if strings.HasSuffix(name, delSuffix) {
				lists = append(lists, path.Base(name))
			}
		}
		return lists
	}
	var docs []string
	for i := range 400 {
		docs = append(docs, fmt.Sprintf(`{"id":%d}`, i))
	}
	b.apply(ix, b.payload(docs...))
	seen := map[string]bool{}
	for i := range 100 {
		b.apply(ix, DeleteDocuments{[]string{fmt.Sprint(3 * i)}})
		now := lists()
		if len(now) > 1 {
			t.Fatalf("after %d deletions the lists are %v", i+1, now)
		}
		for _, name := range now {
			seen[name] = true
		}
	}
	if len(seen) < 3 {
		t.Errorf("saw only the lists %v", seen)
	}
	b.reopen()
	ix = b.c.Get("a")
	if got := ix.current.Load().Documents(); got != 300 {
		t.Errorf("%d documents after a start, want 300", got)
	}
	b.apply(ix, Clear{})
	if now := lists(); len(now) > 0 {
		t.Errorf("%v are left of a cleared index", now)
	}
}

// TestManifestsWithAllDeletedRowsAreRead reads a manifest of an svc that kept all deleted rows there. They move to a list with
// the next commit.
func TestManifestsWithAllDeletedRowsAreRead(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.c.inlineTombstones = 1 << 20
	b.apply(ix, b.payload(`{"id":1}`, `{"id":2}`, `{"id":3}`))
	b.apply(ix, DeleteDocuments{[]string{"1", "3"}})
	m, err := readManifest(b.fs, ix.dir)
	if err != nil {
		t.Fatal(err)
	}
	old := manifestSeal
	old.version = 1
	content, err := m.encode()
	if err != nil {
		t.Fatal(err)
	}
	if err := vfs.WriteFile(b.fs, path.Join(ix.dir, manifestName), old.wrap(content[sealBytes:])); err != nil {
		t.Fatal(err)
	}
	b.reopen()
	ix = b.c.Get("a")
	b.apply(ix, b.payload(`{"id":4}`))
	if m, err = readManifest(b.fs, ix.dir); err != nil || m.Segments[0].Tombstones == 0 {
		t.Errorf("manifest %+v after a commit, error %v", m, err)
	}
	if got := ix.current.Load().Documents(); got != 2 {
		t.Errorf("%d documents, want 2", got)
	}
}

func TestDamagedListsOfDeletedRowsAreRefused(t *testing.T) {
	rows := func(rows ...uint32) []byte {
		b, err := roaring.BitmapOf(rows...).ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		return tombstonesSeal.wrap(b)
	}
	flipped := rows(1, 2)
	flipped[len(flipped)-1] ^= 1
	for name, content := range map[string][]byte{
		"empty": {}, "cut": rows(1, 2)[:sealBytes+3], "flipped": flipped, "of more rows than there are": rows(1, 10), "another kind": catalogSeal.wrap([]byte("{}")),
	} {
		fsys := vfs.NewMem()
		if err := errors.Join(fsys.MkdirAll("d"), vfs.WriteFile(fsys, "d/000007.del", content)); err != nil {
			t.Fatal(err)
		}
		if _, err := readTombstones(fsys, "d", &segmentEntry{Number: 1, Tombstones: 7}, 10); !apierr.IsCorruption(err) {
			t.Errorf("%s: error %v", name, err)
		}
	}
	if _, err := readTombstones(vfs.NewMem(), "d", &segmentEntry{Number: 1, Tombstones: 7}, 10); err == nil {
		t.Error("a missing list is read as empty")
	}
}
