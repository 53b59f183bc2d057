// Package logstore keeps an ordered log of entries, which are opaque bytes, in the files of a directory. An append takes one sync, is
// durable when it returns, and survives a crash completely or not at all. Entries have consecutive indexes. They are removed at the
// front, by whole files, and at the back, where others replace them.
//
// Append consists of Write and Sync. A caller that has work to do in between calls these two: what was written can be read at once,
// and is durable after the sync.
//
// It is for the changes of package commit: the readers of a group follow a data directory by them (package group).
//
// A file is only appended to, and never reopened for appending: after Open the log continues in a new file. To remove entries at the
// back, a new file says where it continues an older one. format.go describes the format.
//
// A failed sync may leave bytes that can be read but that no later sync makes durable. So a failed append is written again to another
// file, and so is the last append that Open finds.
package logstore

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
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

// Log is an open log. Its methods are safe for concurrent use. Those that change it, including Append, Write and Sync, run one at a
// time.
type Log struct {
	o Options

	// changing is held by each method that changes the log, so that what Sync syncs is what it records as durable.
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

// Open opens the log of a directory, and creates it if there is none. A damaged file is an *apierr.Corruption. The remains of an
// append that a crash interrupted are not part of the log.
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
		if f.before == noFile { // the log started again: everything before is dropped
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

// renew writes the last append that was found again, to a file of its own, in which the log continues. The process may have been
// killed before its sync, or the sync may have failed. Everything before it was synced, and so was the last append of a log that was
// closed properly.
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

// First returns the index of the first entry, or of the next one if the log is empty.
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

// Read calls f with the entries from an index on, in order, until f returns false or there are no more. f may keep entries. The log
// may change while f runs: Read passes the entries that exist at each step, and may wait for appends.
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

// Close closes the log. It records that the log was closed in order, so that the next Open does not mistake a damaged last append for
// one that a crash cut short.
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
