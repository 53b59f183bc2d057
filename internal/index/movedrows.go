package index

import (
	"sync"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"svc/internal/mapped"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/segment"
)

// movedRows returns the stored documents whose vectors or bytes change with the embedders. These are rewritten; all others stay in
// place.
func (b *batch) movedRows() (map[*file]*roaring.Bitmap, error) {
	var plans []int
	for i, p := range b.plans {
		if p.moves() {
			plans = append(plans, i)
		}
	}
	moved := make(map[*file]*roaring.Bitmap)
	if len(plans) == 0 {
		return moved, nil
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(b.ctx)
	crew := b.newCrew(group)
	progress := b.counter(2, b.base.Documents())
	for i, f := range b.base.files {
		l := f.live(union(b.base.Segments[i].Deleted, b.gone[f]))
		live := l.LiveRows().ToArray()
		for len(live) > 0 {
			n := min(len(live), chunkMoved)
			rows := live[:n]
			live = live[n:]
			crew.Go(func(w *pace.Worker) error {
				if err := ctx.Err(); err != nil {
					return err
				}
				var found *roaring.Bitmap
				err := mapped.Guard(func() (err error) {
					found, err = b.moved(w, l, int32(i), rows, plans)
					return err
				})
				if err != nil {
					return err
				}
				progress(n)
				if !found.IsEmpty() {
					mu.Lock()
					defer mu.Unlock()
					moved[f] = union(found, moved[f])
				}
				return nil
			})
		}
	}
	return moved, group.Wait()
}

// moved returns the rows of a segment, among rows, that one of the plans changes.
func (b *batch) moved(w *pace.Worker, l segment.Live, seg int32, rows []uint32, plans []int) (*roaring.Bitmap, error) {
	found := roaring.New()
	z := newVectorizer(b)
	defer z.close()
	for _, row := range rows {
		w.Yield()
		z.id, z.seg, z.row, z.stored, z.doc = l.ExternalID(segment.Row(row)), seg, segment.Row(row), nil, nil
		for _, i := range plans {
			changes, err := z.changes(i, l)
			if err != nil {
				return nil, err
			}
			if changes {
				found.Add(row)
				break
			}
		}
	}
	return found, nil
}

// changes reports whether the current stored document gets a different entry for an embedder, or a change of its own bytes.
func (z *vectorizer) changes(plan int, l segment.Live) (bool, error) {
	p := z.b.plans[plan]
	v, shape, ok := z.entryOf(l, p.was)
	z.floats = v.Vectors[:0]
	switch {
	case p.is == nil:
		return ok && !v.Regenerate, nil
	case !ok, shape.ID != p.is.ID && !p.is.keepsUnfit(shape.ID):
		return true, nil
	case !v.Regenerate:
		return false, nil
	case p.work == settings.RemakeVectors:
		return true, nil
	case !p.is.generates():
		return false, nil
	}
	if z.doc == nil {
		var err error
		if z.doc, err = l.AppendDocument(z.edited[:0], z.row); err != nil {
			return false, err
		}
		z.edited = z.doc
	}
	_, _, same, err := z.compare(p, ofStored, ofStored)
	return !same, err
}
