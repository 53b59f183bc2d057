// Package logstore keeps an ordered log of entries, which are bytes to it, in the files of a directory. An append is durable when it
// returns, for one sync, and is there after a crash as a whole or not at all. Entries are numbered by consecutive indexes. They leave
// the log at its front, by whole files, and at its back, where others replace them.
//
// Append consists of Write and Sync. A caller that has something to do in between calls these two: what was written can be read at once,
// and is durable after the sync.
//
// It is for the changes of package commit: the readers of a group follow a data directory by them (package group).
//
// A file is only appended to, and never opened for that again: a log that is opened goes on in a new file. What takes entries off the back
// is a new file, too, that says where it continues an older one. The format is described in format.go.
//
// A sync that fails may leave bytes that can be read, and that no later sync makes durable. So an append that fails is written anew
// elsewhere, and so is the last one that Open finds.
package logstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"path"
	"slices"
	"sort"
	"strings"
	"sync"

	"svc/internal/vfs"
)

// Options are the options of a log.
type Options struct {
	FS  vfs.FS
	Dir string
	// FileSize is how large a file becomes before the next one begins, in bytes; 0: 64 MiB.
	FileSize int64
}

const (
	defaultFileSize = 64 << 20
	// maxAppend bounds an append, in bytes.
	maxAppend = 1 << 30
)

// ErrNotStored is the error of entries that the log does not have.
var ErrNotStored = errors.New("the log does not have that entry")

// Log is an open log. Its methods may be called by several goroutines; those that change it run one at a time. Append, Write and Sync are
// among these.
type Log struct {
	o Options

	// changing is held by a method that changes the log, for all of it: what Sync syncs is then what it notes as durable.
	changing sync.Mutex

	// mu is taken after changing, and guards the rest. Fields only change while both are held, so that either suffices to read them.
	mu     sync.RWMutex
	files  []*file  // in order; at most the last one has no entries
	unused []uint64 // files that are no longer part of the log, and are still to be removed
	next   uint64   // number of the next file
	first  uint64   // index of the next entry if there are no files
	out    vfs.File // of the last of files; nil: the next append begins a file
	// unsynced: the last frame was written, and is not known to be durable.
	unsynced bool
	closed   bool
}

// file is a file of the log.
type file struct {
	header
	in     vfs.File
	frames []frame
	size   int64  // up to which it counts, in bytes
	sum    uint64 // of its last frame, or of its header
	end    uint64 // index behind its last entry
}

// Open opens the log of a directory, which it makes if there is none. A damaged file is an *apierr.Corruption. What a crash left of an
// append that did not return is not part of the log.
func Open(o Options) (*Log, error) {
	if o.FileSize == 0 {
		o.FileSize = defaultFileSize
	}
	l := &Log{o: o, first: 1}
	if err := l.load(); err != nil {
		l.closeFiles()
		return nil, fmt.Errorf("cannot open the log %s: %w", o.Dir, err)
	}
	return l, nil
}

func (l *Log) name(number uint64) string { return path.Join(l.o.Dir, fileName(number)) }

// load reads the files: from the newest one back to the one that continues no other, or one that was cut off.
func (l *Log) load() error {
	if err := vfs.MakeDir(l.o.FS, l.o.Dir); err != nil {
		return err
	}
	names, err := l.o.FS.List(l.o.Dir)
	if err != nil {
		return err
	}
	var numbers []uint64
	for _, name := range names {
		if n, ok := fileNumber(name); ok {
			numbers = append(numbers, n)
		} else if strings.HasSuffix(name, suffix+vfs.TempSuffix) { // of renew
			if err := l.o.FS.Remove(path.Join(l.o.Dir, name)); err != nil {
				return err
			}
		}
	}
	slices.Sort(numbers)
	var later *file
	for len(numbers) > 0 {
		number := numbers[len(numbers)-1]
		if later != nil && number != later.before {
			if number < later.before {
				return damaged(l.o.Dir, later.before, -1, errors.New("it is missing"))
			}
			l.unused, numbers = append(l.unused, number), numbers[:len(numbers)-1]
			continue
		}
		f, err := l.read(number, later)
		if errors.Is(err, errHeader) && later == nil { // it was being made when the program ended
			l.unused, numbers = append(l.unused, number), numbers[:len(numbers)-1]
			l.next = max(l.next, number+1)
			if len(l.unused) > 1 {
				return damaged(l.o.Dir, number, 0, err)
			}
			continue
		}
		if err != nil {
			return err
		}
		l.files, later, numbers = append(l.files, f), f, numbers[:len(numbers)-1]
		l.next = max(l.next, number+1)
		if f.before == noFile { // the log began anew: all before it is gone
			l.unused = append(l.unused, numbers...)
			break
		}
	}
	slices.Reverse(l.files)
	if err := l.renew(); err != nil {
		return err
	}
	return l.removeUnused()
}

// renew writes the last append that was found anew, in a file of its own, in which the log goes on. The program may have been killed before
// its sync, or that sync may have failed. All before it was synced when it was written, and so was the last one of a log that was closed
// in order.
func (l *Log) renew() error {
	if len(l.files) == 0 {
		return nil
	}
	f := l.files[len(l.files)-1]
	first, all := f.first, [][]byte(nil)
	if n := len(f.frames); n > 0 {
		last := &f.frames[n-1]
		if last.count == 0 {
			return nil
		}
		var err error
		if all, err = l.frameOf(f, last); err != nil {
			return err
		}
		first = last.first
	}
	h, kept := l.continues(first)
	b, sum := h.encode()
	by := &file{header: h, size: headerBytes, sum: sum, end: first}
	if len(all) > 0 {
		b, sum = encodeFrame(b, first, sum, all)
		by.add(len(b)-headerBytes, len(all), sum)
	}
	name := l.name(h.number)
	if _, err := vfs.Replace(l.o.FS, name, b); err != nil {
		return err
	}
	in, err := l.o.FS.Open(name)
	if err != nil {
		return err
	}
	by.in = in
	l.replace(kept, first, by)
	l.next++
	l.out, err = l.o.FS.Append(name)
	return err
}

// read reads a file that counts up to where later says, and whole without it.
func (l *Log) read(number uint64, later *file) (*file, error) {
	in, err := l.o.FS.Open(l.name(number))
	if err != nil {
		return nil, err
	}
	f, err := l.scanned(in, number, later)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	f.in = in
	return f, nil
}

// scanned finds the frames of a file. If a later file continues it, it must have exactly the frames that that
// one says. The newest file ends at its last whole frame.
func (l *Log) scanned(in vfs.File, number uint64, later *file) (*file, error) {
	info, err := in.Stat()
	if err != nil {
		return nil, err
	}
	size := info.Size()
	if later != nil {
		if later.beforeSize > size {
			return nil, damaged(l.o.Dir, number, -1, fmt.Errorf("it has %d bytes, %d of which count", size, later.beforeSize))
		}
		size = later.beforeSize
	}
	c, err := scan(in, size)
	if errors.Is(err, errHeader) && later == nil {
		return nil, err
	}
	if err == nil && c.number != number {
		err = fmt.Errorf("its header is that of file %x", c.number)
	}
	if err != nil {
		return nil, damaged(l.o.Dir, number, -1, err)
	}
	f := &file{header: c.header, frames: c.frames, size: headerBytes, sum: c.sum, end: c.first}
	if n := len(f.frames); n > 0 {
		f.size, f.sum, f.end = f.frames[n-1].end(), f.frames[n-1].sum, f.frames[n-1].next()
	}
	if later == nil {
		return f, nil
	}
	if f.size != later.beforeSize || f.sum != later.beforeSum || later.first > f.end || later.first <= f.first {
		return nil, damaged(l.o.Dir, number, f.size, fmt.Errorf("file %x does not continue it", later.number))
	}
	f.end = later.first
	return f, nil
}

// First returns the index of the first entry, and that of the next one where there is none.
func (l *Log) First() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if len(l.files) == 0 {
		return l.first
	}
	return l.files[0].first
}

// Next returns the index of the next entry to be appended.
func (l *Log) Next() uint64 {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return l.end()
}

// end is Next with the lock held.
func (l *Log) end() uint64 {
	if n := len(l.files); n > 0 {
		return l.files[n-1].end
	}
	return l.first
}

// Append adds entries, the first of which has the index Next. They are durable when it returns nil. After an error nobody knows whether
// the next Open finds them, unless others are appended in their place: this log does not have them.
func (l *Log) Append(all ...[]byte) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if err := l.write(all); err != nil {
		return err
	}
	return l.sync()
}

// Write adds entries as Append does, but they are durable only when the next Sync returns nil. Read finds them before. There is one write
// between two syncs at most, so that a crash leaves one torn frame at most: Write syncs what was written before. If that fails, it is the
// error of this Write, and the next Sync has nothing to do: nobody else may change the log between a Write and its Sync.
func (l *Log) Write(all ...[]byte) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.write(all)
}

// write is Write with changing held.
func (l *Log) write(all [][]byte) error {
	if err := l.sync(); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	size := frameBytes
	for _, e := range all {
		size += len(e) + 10
	}
	switch {
	case len(all) == 0:
		return nil
	case size > maxAppend || len(all) > math.MaxInt32:
		return fmt.Errorf("cannot append %d entries to the log %s: an append takes %d bytes at most", len(all), l.o.Dir, maxAppend)
	}
	if l.out == nil || l.files[len(l.files)-1].size >= l.o.FileSize {
		if err := l.begin(l.end(), false); err != nil {
			return err
		}
	}
	f := l.files[len(l.files)-1]
	b, sum := encodeFrame(make([]byte, 0, size), f.end, f.sum, all)
	if _, err := l.out.Write(b); err != nil {
		return l.giveUp(err)
	}
	l.unsynced = true
	f.add(len(b), len(all), sum)
	return nil
}

// add notes a frame that was written behind the others.
func (f *file) add(bytes, entries int, sum uint64) {
	f.frames = append(f.frames, frame{offset: f.size, length: uint32(bytes - frameBytes), count: uint32(entries), first: f.end, before: f.sum, sum: sum})
	f.size, f.sum, f.end = f.size+int64(bytes), sum, f.end+uint64(entries)
}

// Sync makes what Write wrote durable. Others may read the log meanwhile. After an error the log does not have the entries, as after one
// of Append.
func (l *Log) Sync() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	return l.sync()
}

// sync is Sync with changing held.
func (l *Log) sync() error {
	if !l.unsynced {
		return nil
	}
	err := l.out.Sync()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.synced(err)
}

// settle is sync with mu held, too.
func (l *Log) settle() error {
	if !l.unsynced {
		return nil
	}
	return l.synced(l.out.Sync())
}

// synced notes that the last frame is durable, or takes it off the log.
func (l *Log) synced(err error) error {
	l.unsynced = false
	if err == nil {
		return nil
	}
	f := l.files[len(l.files)-1]
	last := f.frames[len(f.frames)-1]
	f.frames = f.frames[:len(f.frames)-1]
	f.size, f.sum, f.end = last.offset, last.before, last.first
	return l.giveUp(err)
}

// giveUp closes the file that is appended to. Nobody knows what it has behind the last frame: the next append begins another one.
func (l *Log) giveUp(err error) error {
	err = errors.Join(err, l.out.Close())
	l.out = nil
	return fmt.Errorf("cannot append to the log %s: %w", l.o.Dir, err)
}

// begin makes the file of the entries from an index on, durably: a header is there before any entry, so that a file whose header is not
// whole never had one. It continues the last file that has entries before the index. anew has it continue none.
func (l *Log) begin(first uint64, anew bool) error {
	if err := l.settle(); err != nil && !anew && first > l.end() {
		return err
	}
	if l.out != nil {
		err := l.out.Close()
		if l.out = nil; err != nil {
			return fmt.Errorf("cannot close a file of the log %s: %w", l.o.Dir, err)
		}
	}
	h, kept := header{number: l.next, before: noFile, first: first}, 0
	if !anew {
		h, kept = l.continues(first)
	}
	b, sum := h.encode()
	name := l.name(h.number)
	// A try that failed may have left the file, and a sync of the directory that succeeds later says nothing about its name.
	if err := l.o.FS.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("cannot begin a file of the log %s: %w", l.o.Dir, err)
	}
	out, err := l.o.FS.Create(name)
	if err == nil {
		if _, err = out.Write(b); err == nil {
			err = out.Sync()
		}
		if err == nil {
			err = l.o.FS.SyncDir(l.o.Dir)
		}
		var in vfs.File
		if err == nil {
			in, err = l.o.FS.Open(name)
		}
		if err == nil {
			l.replace(kept, first, &file{header: h, in: in, size: headerBytes, sum: sum, end: first})
			l.out, l.next = out, l.next+1
			return nil
		}
		err = errors.Join(err, out.Close())
	}
	return fmt.Errorf("cannot begin a file of the log %s: %w", l.o.Dir, err)
}

// continues returns the header of the next file, whose entries begin with an index, and how many of the files it continues.
func (l *Log) continues(first uint64) (h header, kept int) {
	h = header{number: l.next, before: noFile, first: first}
	kept = sort.Search(len(l.files), func(i int) bool { return l.files[i].first >= first })
	if kept > 0 {
		h.before, h.beforeSize, h.beforeSum = l.files[kept-1].upTo(first)
	}
	return h, kept
}

// upTo returns what of a file counts where another one continues it with an index, which is behind its first.
func (f *file) upTo(index uint64) (number uint64, size int64, sum uint64) {
	i := sort.Search(len(f.frames), func(i int) bool { return f.frames[i].next() >= index })
	return f.number, f.frames[i].end(), f.frames[i].sum
}

// replace puts a file in the place of all behind the first kept, of which the last one ends at an index now.
func (l *Log) replace(kept int, end uint64, by *file) {
	for _, f := range l.files[kept:] {
		_ = f.in.Close() // it was only read
		l.unused = append(l.unused, f.number)
	}
	l.files = append(l.files[:kept], by)
	if kept > 0 {
		f := l.files[kept-1]
		number, size, sum := f.upTo(end)
		i := sort.Search(len(f.frames), func(i int) bool { return f.frames[i].next() >= end })
		f.frames, f.number, f.size, f.sum, f.end = f.frames[:i+1], number, size, sum, end
	}
}

// TruncateBack takes the entries from an index on off the log, durably. The next one to be appended has that index.
func (l *Log) TruncateBack(from uint64) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
		return fs.ErrClosed
	case from == l.end():
		return nil
	case len(l.files) == 0 || from > l.end() || from < l.files[0].first:
		return fmt.Errorf("cannot take the entries from %d on off the log %s: %w", from, l.o.Dir, ErrNotStored)
	}
	if err := l.begin(from, from == l.files[0].first); err != nil {
		return err
	}
	return l.removeUnused()
}

// Reset empties the log, durably. The next entry to be appended has the index first, which is at least 1.
func (l *Log) Reset(first uint64) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	if err := l.begin(first, true); err != nil {
		return err
	}
	return l.removeUnused()
}

// TruncateFront removes files that have only entries before an index; the newest one stays. So entries before the index may stay, too.
func (l *Log) TruncateFront(before uint64) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return fs.ErrClosed
	}
	if err := l.removeUnused(); err != nil {
		return err
	}
	// One after the other from the oldest on, each durably: a file that is missing between others is a loss.
	for len(l.files) > 1 && l.files[0].end <= before {
		f := l.files[0]
		_ = f.in.Close() // it was only read
		l.files = l.files[1:]
		l.unused = append(l.unused, f.number)
		if err := l.removeUnused(); err != nil {
			return err
		}
	}
	return nil
}

// removeUnused removes what is no longer part of the log, durably.
func (l *Log) removeUnused() error {
	if len(l.unused) == 0 {
		return nil
	}
	for _, number := range l.unused {
		if err := l.o.FS.Remove(l.name(number)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("cannot remove a file of the log %s: %w", l.o.Dir, err)
		}
	}
	if err := l.o.FS.SyncDir(l.o.Dir); err != nil {
		return fmt.Errorf("cannot remove files of the log %s: %w", l.o.Dir, err)
	}
	l.unused = nil
	return nil
}

// Read calls f with the entries from an index on, in order, until f returns false or there are no more. Entries are f's to keep. The log
// may change while f runs: f gets what is there when its turn comes, and may wait for others who append.
func (l *Log) Read(from uint64, f func(index uint64, entry []byte) (more bool)) error {
	for {
		all, err := l.from(from)
		if err != nil || len(all) == 0 {
			return err
		}
		for _, e := range all {
			if !f(from, e) {
				return nil
			}
			from++
		}
	}
}

// from returns the entries from an index on that one frame has. None: the log ends there.
func (l *Log) from(index uint64) ([][]byte, error) {
	l.mu.RLock()
	defer l.mu.RUnlock()
	switch {
	case l.closed:
		return nil, fs.ErrClosed
	case index == l.end():
		return nil, nil
	case len(l.files) == 0 || index > l.end() || index < l.files[0].first:
		return nil, fmt.Errorf("cannot read entry %d of the log %s: %w", index, l.o.Dir, ErrNotStored)
	}
	file := l.files[sort.Search(len(l.files), func(i int) bool { return l.files[i].end > index })]
	f := &file.frames[sort.Search(len(file.frames), func(i int) bool { return file.frames[i].next() > index })]
	all, err := l.frameOf(file, f)
	if err != nil {
		return nil, err
	}
	return all[index-f.first : min(f.next(), file.end)-f.first], nil // the next file replaces those behind its end
}

// frameOf reads a frame again and returns its entries.
func (l *Log) frameOf(file *file, f *frame) ([][]byte, error) {
	var b []byte
	got, ok, err := readFrame(file.in, f.offset, f.end(), &b)
	switch {
	case err == io.EOF || err == nil && (!ok || got != *f):
		return nil, damaged(l.o.Dir, file.number, f.offset, errors.New("an append differs from what was written"))
	case err != nil:
		return nil, fmt.Errorf("cannot read the log %s: %w", l.o.Dir, err)
	}
	all, err := entries(b[frameBytes:], f.count)
	if err != nil {
		err = damaged(l.o.Dir, file.number, f.offset, err)
	}
	return all, err
}

// Close closes the log. It notes that it was closed in order, so that the next Open does not take a damaged last append for one that
// a crash cut short.
func (l *Log) Close() error {
	l.changing.Lock()
	defer l.changing.Unlock()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil
	}
	l.closed = true
	err := l.settle()
	if l.out != nil {
		f := l.files[len(l.files)-1]
		b, _ := encodeFrame(nil, f.end, f.sum, nil)
		if _, err = l.out.Write(b); err == nil {
			err = l.out.Sync()
		}
		err = errors.Join(err, l.out.Close())
	}
	return errors.Join(err, l.closeFiles())
}

func (l *Log) closeFiles() (err error) {
	for _, f := range l.files {
		err = errors.Join(err, f.in.Close())
	}
	return err
}
