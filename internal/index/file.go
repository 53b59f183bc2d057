package index

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/invariant"
	"svc/internal/resultcache"
	"svc/internal/vfs"
	"svc/segment"
)

// file is an open segment file. Each view that shows it holds a reference, and so does its creator until the commit. The
// last release unmaps the file, and unlinks it if no manifest names it.
type file struct {
	*segment.Reader
	ix      *Index
	number  uint64
	refs    atomic.Int64
	unnamed atomic.Bool                   // no manifest names it, or will
	beside  atomic.Pointer[[]*columnFile] // see attachColumns; nil: none
	ahead   atomic.Bool                   // what searches need was asked to be read
	results *resultcache.Scope
	sharded shardRows

	damage struct { // found since it was opened
		sync.Mutex
		named  bool               // by a manifest
		early  *apierr.Corruption // found before; reported only to the caller that opens the file
		places map[string]bool    // reported already: file, section and offset
		failed atomic.Int64       // when rebuilding damaged columns last failed, by the clock of loadedSet; 0: never
	}
}

// openFile opens a segment of the index with one reference. It reads nothing ahead, because the segment may only be inspected or
// copied.
func (ix *Index) openFile(number uint64) (*file, error) { return ix.openFileWith(segment.Open, number) }

// openFileWith is openFile with the function that opens the segment.
func (ix *Index) openFileWith(open func(vfs.FS, string) (*segment.Reader, error), number uint64) (*file, error) {
	r, err := open(ix.options.FS, path.Join(ix.dir, segmentName(number)))
	if err != nil {
		return nil, fmt.Errorf("cannot open a segment of index %s: %w", ix.UID(), err)
	}
	f := &file{Reader: r, ix: ix, number: number, results: ix.catalog.results.Scope()}
	r.OnDamage(f.damaged)
	f.refs.Store(1)
	ix.holds.Add(1)
	ix.catalog.files.Add(1)
	return f, nil
}

// openNew is openFile for a segment that was just written, which no manifest names yet.
func (ix *Index) openNew(number uint64) (*file, error) {
	f, err := ix.openFile(number)
	switch {
	case err == nil:
		f.readAhead()
	case apierr.IsCorruption(err):
		err = misread(err)
	}
	return f, err
}

// misread returns the error of damage in a file that no manifest names: the index is intact, and the file is written again.
func misread(damage error) error {
	return apierr.New("io_error", "A new file does not read back as written: check the disk. The index is unchanged. (%v)", damage)
}

// setNamed says that a manifest names the file.
func (f *file) setNamed() {
	f.damage.Lock()
	f.damage.named = true
	early := f.damage.early
	f.damage.Unlock()
	if early != nil {
		f.damaged(early)
	}
}

// spoiled returns an error when the file was found damaged before a manifest named it.
func (f *file) spoiled() error {
	f.damage.Lock()
	defer f.damage.Unlock()
	if f.damage.named || f.damage.early == nil {
		return nil
	}
	return misread(f.damage.early)
}

// readAhead has what searches need read, once, and reports whether this was the time.
func (f *file) readAhead() bool {
	first := !f.ahead.Swap(true)
	if first {
		f.ReadAhead()
	}
	return first
}

func (f *file) path() string { return path.Join(f.ix.dir, segmentName(f.number)) }

// release gives up a reference. The last one closes the file and its cached results. If no manifest names the
// file, release removes it with its columns. A removal that fails is only logged, because opening the index
// removes what no manifest names.
func (f *file) release() {
	n := f.refs.Add(-1)
	if n > 0 {
		return
	}
	if n < 0 && invariant.Enabled {
		invariant.Fail("%s was released %d times too often", f.path(), -n)
	}
	ix := f.ix
	f.results.Close()
	paths := []string{f.path()}
	for _, c := range f.columnFiles() {
		paths = append(paths, c.Name())
	}
	if err := f.Reader.Close(); err != nil {
		ix.options.Logger.Error("cannot close a segment", "file", f.path(), "error", err)
	}
	if f.unnamed.Load() {
		for _, name := range paths {
			if err := ix.options.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
				ix.options.Logger.Warn("cannot remove an unused file; the next start will", "file", name, "error", err)
			}
		}
	}
	ix.unhold()
	ix.catalog.files.Done()
}

// discard releases a file of a commit that will not happen.
func (f *file) discard() {
	f.unnamed.Store(true)
	f.release()
}

// live returns the file's rows without those of deleted (nil: none), which must not be modified.
func (f *file) live(deleted *roaring.Bitmap) segment.Live {
	if deleted != nil && deleted.IsEmpty() {
		deleted = nil
	}
	return segment.Live{Reader: f.Reader, Deleted: deleted}
}

// liveCount returns how many rows of a segment are not deleted.
func liveCount(l segment.Live) int {
	if l.Deleted == nil {
		return l.Rows()
	}
	return l.Rows() - int(l.Deleted.GetCardinality())
}

// damaged receives each damaged place, including places that are found again.
func (f *file) damaged(d *apierr.Corruption) {
	place := fmt.Sprint(d.File, "\x00", d.Section, d.Offset, d.Fatal)
	f.damage.Lock()
	if !f.damage.named {
		f.damage.early = d
		f.damage.Unlock()
		return
	}
	if f.damage.places == nil {
		f.damage.places = make(map[string]bool)
	}
	known := f.damage.places[place]
	f.damage.places[place] = true
	f.damage.Unlock()
	if !known {
		f.ix.catalog.met.Store(true)
		f.ix.options.Logger.Error("a segment is damaged: requests that need the damaged part fail, and so do dumps and snapshots. "+d.Advice(),
			slog.String("index", f.ix.UID()), slog.Any("error", d))
	}
	if d.Fatal || isColumns(d.File) {
		f.ix.catalog.suspect(f.ix, d)
	}
}

// isDamaged reports whether damage was found in the file, or beside it, since it was opened.
func (f *file) isDamaged() bool { return f.isDamagedBut("") }

// isDamagedBut is isDamaged, ignoring damage in one file.
func (f *file) isDamagedBut(name string) bool {
	f.damage.Lock()
	defer f.damage.Unlock()
	for place := range f.damage.places {
		if in, _, _ := strings.Cut(place, "\x00"); in != name {
			return true
		}
	}
	return false
}
