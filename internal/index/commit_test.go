package index

import (
	"context"
	"fmt"
	"testing"

	"svc/internal/vfs"
)

// TestRowsDeletedDuringAMergeStayDeleted checks that a merge does not bring back a document that was deleted or replaced while it ran.
func TestRowsDeletedDuringAMergeStayDeleted(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("m")
	for i := range 4 {
		b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d,"t":"old"}`, 2*i), fmt.Sprintf(`{"id":%d,"t":"old"}`, 2*i+1)))
	}
	b.apply(ix, DeleteDocuments{[]string{"0"}})
	once := false
	merged, err := ix.compactOnce(t.Context(), b.c.compactor.plan, -1, 1<<40, func(context.Context, int) error {
		if !once {
			once = true
			b.apply(ix, DeleteDocuments{[]string{"3"}}, b.payload(`{"id":4,"t":"new"}`))
		}
		return nil
	})
	if err != nil || !merged || !once {
		t.Fatalf("merged %v, once %v, %v", merged, once, err)
	}
	wantDocuments(t, ix, map[string]string{"1": `{"id":1,"t":"old"}`, "2": `{"id":2,"t":"old"}`,
		"4": `{"id":4,"t":"new"}`, "5": `{"id":5,"t":"old"}`, "6": `{"id":6,"t":"old"}`, "7": `{"id":7,"t":"old"}`})
	b.checkFresh(ix)
}

// TestRowsThatMoveDuringABatchAreDeleted checks that a batch deletes its documents although a merge moves them while it runs.
func TestRowsThatMoveDuringABatchAreDeleted(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("m")
	for i := range 4 {
		b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d}`, 2*i), fmt.Sprintf(`{"id":%d}`, 2*i+1)))
	}
	merges := 0
	b.batch++
	_, err := ix.Apply(t.Context(), b.batch, []Op{b.payload(`{"id":1,"t":"new"}`), DeleteDocuments{[]string{"2"}}}, func(level int, s Step) {
		if s.Name == "finalizing" {
			merges += b.compact(ix)
		}
	})
	if err != nil || merges == 0 {
		t.Fatalf("%d merges, %v", merges, err)
	}
	wantDocuments(t, ix, map[string]string{"0": `{"id":0}`, "1": `{"id":1,"t":"new"}`, "3": `{"id":3}`,
		"4": `{"id":4}`, "5": `{"id":5}`, "6": `{"id":6}`, "7": `{"id":7}`})
	b.checkFresh(ix)
}

// TestAMergeOfClearedSegmentsIsDropped checks that a merge leaves no file if its inputs were cleared while it ran.
func TestAMergeOfClearedSegmentsIsDropped(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("m")
	for i := range 4 {
		b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d}`, i)))
	}
	once := false
	if _, err := ix.compactOnce(t.Context(), b.c.compactor.plan, -1, 1<<40, func(context.Context, int) error {
		if !once {
			once = true
			b.apply(ix, Clear{})
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	wantDocuments(t, ix, map[string]string{})
	if got := list(t, b.fs, catalogDir); len(got) != 2 {
		t.Errorf("files %v, want CATALOG and MANIFEST alone", got)
	}
}

// TestMergesStopForSettingsCompactAndDeletion checks that operations that need all segments stop a merge, and do not wait for its end.
func TestMergesStopForSettingsCompactAndDeletion(t *testing.T) {
	for name, do := range map[string]func(b *bed, ix *Index) error{
		"settings": func(b *bed, ix *Index) error {
			b.batch++
			_, err := ix.Apply(context.Background(), b.batch, []Op{update(b.t, `{"stopWords":["a"]}`)}, nil)
			return err
		},
		"compact": func(b *bed, ix *Index) error {
			_, _, err := ix.Compact(context.Background(), 0, nil)
			return err
		},
		"deletion": func(b *bed, ix *Index) error {
			_, err := b.c.Delete("m", 1000)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, vfs.NewMem(), Options{})
			defer b.close()
			ix := b.create("m")
			for i := range 4 {
				b.apply(ix, b.payload(fmt.Sprintf(`{"id":%d}`, i)))
			}
			running, ended := make(chan struct{}), make(chan error)
			go func() {
				first := true
				_, err := ix.compactOnce(context.Background(), b.c.compactor.plan, -1, 1<<40, func(ctx context.Context, _ int) error {
					if first {
						first = false
						close(running)
					}
					<-ctx.Done()
					return ctx.Err()
				})
				ended <- err
			}()
			<-running
			done := make(chan error)
			go func() { done <- do(b, ix) }()
			if err := <-ended; err == nil {
				t.Error("the merge was not cancelled")
			}
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}
