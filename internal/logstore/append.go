package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"sort"

	"svc/internal/vfs"
)

// Append adds entries. The first one gets the index Next. They are durable when it returns nil. After an error this log does not have
// them, but it is unknown whether the next Open finds them, unless other entries are appended in their place.
func (l *Log) Append(all ...[]byte) error {
	l.changing.Lock()
	defer l.changing.Unlock()
	if err := l.write(all); err != nil {
		return err
	}
	return l.sync()
}

// Write adds entries like Append, but they become durable only when the next Sync returns nil. Read finds them before that. There is
// at most one write between two syncs, so that a crash leaves at most one torn frame: Write first syncs an earlier write. If that
// fails, Write returns the error, and the next Sync has nothing to do. Only the caller may change the log between a Write and its
// Sync.
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

// add records a frame that was appended.
func (f *file) add(bytes, entries int, sum uint64) {
	f.frames = append(f.frames, frame{offset: f.size, length: uint32(bytes - frameBytes), count: uint32(entries), first: f.end, before: f.sum, sum: sum})
	f.size, f.sum, f.end = f.size+int64(bytes), sum, f.end+uint64(entries)
}

// Sync makes the data of Write durable. Others may read the log meanwhile. After an error the log does not have the entries, as after
// an error of Append.
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

// synced records that the last frame is durable, or removes it from the log after an error.
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

// giveUp closes the file that is appended to. Its content after the last frame is unknown, so the next append starts another file.
func (l *Log) giveUp(err error) error {
	err = errors.Join(err, l.out.Close())
	l.out = nil
	return fmt.Errorf("cannot append to the log %s: %w", l.o.Dir, err)
}

// begin creates the file of the entries from an index on, durably. The header is durable before any entry, so a file with an
// incomplete header never had one. The file continues the last file that has entries before the index or, with anew, none.
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

// continues returns the header of the next file, whose entries begin with index first, and how many of the files it continues.
func (l *Log) continues(first uint64) (h header, kept int) {
	h = header{number: l.next, before: noFile, first: first}
	kept = sort.Search(len(l.files), func(i int) bool { return l.files[i].first >= first })
	if kept > 0 {
		h.before, h.beforeSize, h.beforeSum = l.files[kept-1].upTo(first)
	}
	return h, kept
}

// upTo returns the part of a file that counts if another file continues it from an index after its first.
func (f *file) upTo(index uint64) (number uint64, size int64, sum uint64) {
	i := sort.Search(len(f.frames), func(i int) bool { return f.frames[i].next() >= index })
	return f.number, f.frames[i].end(), f.frames[i].sum
}

// replace replaces all files after the first kept by one file. The last of these now ends at the index end.
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
