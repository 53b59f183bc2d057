package publish

import (
	"path"
	"path/filepath"
	"strings"
	"testing"

	"svc/internal/task"
	"svc/internal/vfs"
)

// TestEntriesBeforeTheLastCatalogAreFetchedOnce restores one index and counts the reads of each object with entries.
func TestEntriesBeforeTheLastCatalogAreFetchedOnce(t *testing.T) {
	t.Parallel()
	store := directory(t)
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	for _, uid := range []string{"a", "b", "c"} {
		if _, err := h.queue.Enqueue(t.Context(), task.New{IndexUID: uid, Content: task.CreateIndex{}}); err != nil {
			t.Fatal(err)
		}
		h.idle()
		h.published(h.w.Position())
	}
	h.stop()
	a, err := Open(t.Context(), store, masterKey)
	if err != nil {
		t.Fatal(err)
	}
	opened := map[string]int{}
	a.store = hooked{store, func(name string) {
		if strings.HasPrefix(name, logPrefix) {
			opened[name]++
		}
	}}
	if _, err := a.Restore(t.Context(), RestoreOptions{FS: vfs.OS, Dir: path.Join(filepath.ToSlash(t.TempDir()), "restored"), Index: "b"}); err != nil {
		t.Fatal(err)
	}
	logs := objectNames(t, store, logPrefix)
	if len(logs) < 3 || len(opened) != len(logs) || opened[logs[0]] != 1 || opened[logs[1]] != 1 || opened[logs[len(logs)-1]] != 2 {
		t.Errorf("objects %q, reads %v", logs, opened)
	}
}
