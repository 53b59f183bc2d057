package logstore

import (
	"errors"
	"fmt"
	"io/fs"
)

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

// removeUnused removes the files that are no longer part of the log, durably.
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
