package index

import (
	"fmt"
	"path"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/vfs"
)

// tombstones are the deleted rows of one segment, as the manifest stores them. Every commit rewrites the manifest, so it contains
// only few rows. Many rows move to an immutable file, and the manifest has the number of that file and the rows deleted since.
type tombstones struct {
	all   *roaring.Bitmap // as the view has them
	file  uint64          // number of the file that has some of them; 0: none has
	saved *roaring.Bitmap // the rows in the file
	since []byte          // the others, a roaring bitmap in its portable form; nil: none
}

// inlineTombstoneBytes is how much of a manifest the deleted rows of all segments together may take. The file of a segment's rows is
// rewritten after so many bytes of new ones: at least a thousand updates, for at most an eighth of a byte per row.
const inlineTombstoneBytes = 8 << 10

// tombstonesOf returns the tombstones for the manifest of next. made are the numbers of new files, also on an error.
// committing is held.
func (ix *Index) tombstonesOf(next *View) (stones map[*file]tombstones, made []uint64, err error) {
	stones = make(map[*file]tombstones)
	inline := 0
	for i, f := range next.files {
		all := next.Segments[i].Deleted
		if all == nil {
			continue
		}
		t := ix.committing.tombstones[f]
		if t.all != all {
			t.all = all
			if t.since, err = encodeRows(all, t.saved); err != nil {
				return nil, nil, err
			}
		}
		inline += len(t.since)
		stones[f] = t
	}
	for inline > ix.catalog.inlineTombstones {
		var most *file
		for _, f := range next.files {
			if t, ok := stones[f]; ok && (most == nil || len(t.since) > len(stones[most].since)) {
				most = f
			}
		}
		t := stones[most]
		inline -= len(t.since)
		t.file, t.saved, t.since = ix.nextSegment.Add(1)-1, t.all, nil
		made = append(made, t.file)
		if err := ix.writeTombstones(t.file, t.saved); err != nil {
			return nil, made, err
		}
		stones[most] = t
	}
	return stones, made, nil
}

// encodeRows encodes the rows of all that are not in saved (nil: empty). It returns nil if there are none.
func encodeRows(all, saved *roaring.Bitmap) ([]byte, error) {
	if saved != nil {
		all = roaring.AndNot(all, saved)
		all.RunOptimize()
	}
	if all.IsEmpty() {
		return nil, nil
	}
	return all.ToBytes()
}

// writeTombstones writes a list of deleted rows and syncs it. Its name is durable once the manifest that
// names it is.
func (ix *Index) writeTombstones(number uint64, rows *roaring.Bitmap) error {
	b, err := rows.ToBytes()
	if err != nil {
		return err
	}
	return vfs.WriteFile(ix.options.FS, path.Join(ix.dir, tombstonesName(number)), tombstonesSeal.wrap(b))
}

// removeTombstones removes files that no manifest names.
func (ix *Index) removeTombstones(numbers []uint64) {
	for _, n := range numbers {
		name := path.Join(ix.dir, tombstonesName(n))
		if err := ix.options.FS.Remove(name); err != nil {
			ix.options.Logger.Warn("cannot remove an unused list of deleted rows; the next start will", "file", name, "error", err)
		}
	}
}

// replacedTombstones returns the numbers of files that were has and is has not.
func replacedTombstones(was, is map[*file]tombstones) (numbers []uint64) {
	for f, t := range was {
		if t.file != 0 && is[f].file != t.file {
			numbers = append(numbers, t.file)
		}
	}
	return numbers
}

// readTombstones reads what the manifest in dir says of a segment's deleted rows; none is the zero value.
func readTombstones(fsys vfs.FS, dir string, e *segmentEntry, rows int) (t tombstones, err error) {
	if e.Tombstones != 0 {
		name := path.Join(dir, tombstonesName(e.Tombstones))
		b, err := vfs.ReadFile(fsys, name)
		if err != nil {
			return t, fmt.Errorf("cannot read %s: %w", name, err)
		}
		if b, err = tombstonesSeal.unwrap(name, b); err != nil {
			return t, err
		}
		if t.saved, err = decodeRows(name, b, rows); err != nil {
			return t, err
		}
		t.file = e.Tombstones
	}
	t.all, t.since = t.saved, e.Deleted
	if len(e.Deleted) > 0 {
		since, err := decodeRows(path.Join(dir, manifestName), e.Deleted, rows)
		if err != nil {
			return t, fmt.Errorf("segment %d: %w", e.Number, err)
		}
		t.all = union(t.saved, since)
	}
	return t, nil
}

// decodeRows reads a roaring bitmap of rows below a number. name is for errors.
func decodeRows(name string, b []byte, rows int) (*roaring.Bitmap, error) {
	d := roaring.New()
	err := d.UnmarshalBinary(b)
	if err == nil && !d.IsEmpty() && int64(d.Maximum()) >= int64(rows) {
		err = fmt.Errorf("row %d of %d", d.Maximum(), rows)
	}
	if err != nil {
		return nil, &apierr.Corruption{File: name, Offset: -1, Reason: fmt.Sprintf("deleted rows: %v", err)}
	}
	return d, nil
}
