package publish

import (
	"context"
	"errors"
	"io"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"svc/internal/bucket"
	"svc/internal/task"
	"svc/internal/vfs"
)

// archiveOf publishes the creation of each index apart, and opens the publication.
func archiveOf(t *testing.T, store bucket.Store, uids ...string) *Archive {
	t.Helper()
	h := newHost(t, store, nil)
	h.published(h.w.Position())
	for _, uid := range uids {
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
	return a
}

// TestEntriesBeforeTheLastCatalogAreFetchedOnce restores one index and counts the reads of each object with entries.
func TestEntriesBeforeTheLastCatalogAreFetchedOnce(t *testing.T) {
	t.Parallel()
	store := directory(t)
	a := archiveOf(t, store, "a", "b", "c")
	var mu sync.Mutex // objects are read side by side
	opened := map[string]int{}
	a.store = hooked{store, func(name string) {
		mu.Lock()
		defer mu.Unlock()
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

// stumbling is a store in which every other read of each object with entries fails, beginning with the first one.
type stumbling struct {
	bucket.Store
	mu   sync.Mutex
	read map[string]int // attempts
}

func (s *stumbling) Open(ctx context.Context, name string, from int64) (io.ReadCloser, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !strings.HasPrefix(name, logPrefix) {
		return s.Store.Open(ctx, name, from)
	}
	if s.read[name]++; s.read[name]%2 == 1 {
		return nil, errors.New("the store is busy")
	}
	return s.Store.Open(ctx, name, from)
}

// TestAnIndexIsRestoredFromABusyStore restores one index although every other read of an object with entries fails.
func TestAnIndexIsRestoredFromABusyStore(t *testing.T) {
	t.Parallel()
	store := directory(t)
	a := archiveOf(t, store, "a", "b")
	s := &stumbling{Store: store, read: map[string]int{}}
	a.store = s
	o := RestoreOptions{FS: vfs.OS, Dir: path.Join(filepath.ToSlash(t.TempDir()), "restored"), Index: "a", pause: time.Millisecond}
	if _, err := a.Restore(t.Context(), o); err != nil {
		t.Error(err)
	}
	if len(s.read) < 2 {
		t.Errorf("only %v were read", s.read)
	}
}
