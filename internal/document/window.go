package document

import (
	"errors"
	"fmt"
	"io"

	"svc/internal/mapped"
)

// A window is the visible part of a payload, from the start of the current document. It grows to the size of the largest document;
// beyond spoolBytes it is in a file if there is a place for one.
type window struct {
	r    io.Reader
	buf  []byte // buf[pos:end] is unread; Padding zero bytes follow
	pos  int
	end  int
	base int64 // offset of buf[0] in the payload
	eof  bool

	copies int // how many buffers as large as a document there are, this one included

	place Spooler       // nil: all is in memory
	spool *mapped.Spool // that buf is a mapping of; nil: it is in memory
	heap  []byte        // while there is a spool: what buf was before
	tail  [Padding]byte // of the text in the spool, in whose place the mapping has zeros
}

// Holder is a reader that is asked before more than a little memory is allocated for what it reads.
type Holder interface {
	Hold(bytes int) error
}

// Spooler is a writer of documents with a place for the text of one that is too large for memory.
type Spooler interface {
	Spool() (*mapped.Spool, error)
}

const (
	// windowSize is where a window starts; it doubles while a document is larger.
	windowSize = 64 << 10

	// spoolBytes is the maximum size of a window in memory if there is a place for spools.
	spoolBytes = 1 << 20
)

func (w *window) reset(r io.Reader) {
	w.r, w.pos, w.end, w.base, w.eof = r, 0, 0, 0, false
	if w.buf == nil {
		w.buf = make([]byte, windowSize)
	}
}

// close removes the spool.
func (w *window) close() error {
	if w.spool == nil {
		return nil
	}
	err := w.spool.Close()
	w.buf, w.heap, w.spool = w.heap, nil, nil
	w.pos, w.end = 0, 0
	return err
}

// hold asks for memory.
func (w *window) hold(n int) error {
	if r, ok := w.r.(Holder); ok {
		return r.Hold(n)
	}
	return nil
}

// fill reads until the window is full, keeping unread bytes. Because it reads as much as fits, rescanning a document after a fill is
// cheap, however small the pieces in which the payload arrives.
func (w *window) fill() error {
	if w.spool != nil {
		if unread := w.end - w.pos + Padding; unread+Padding >= len(w.heap) {
			return w.respool()
		}
		// The rest is small again.
		text := append(append(w.heap[:0], w.buf[w.pos:w.end]...), w.tail[:]...)
		base := w.base + int64(w.pos)
		if err := w.close(); err != nil {
			return err
		}
		w.base, w.end = base, len(text)
	}
	if w.pos > 0 {
		copy(w.buf, w.buf[w.pos:w.end])
		w.base += int64(w.pos)
		w.end -= w.pos
		w.pos = 0
	}
	if w.end+Padding >= len(w.buf) {
		if w.place != nil && 2*len(w.buf) > spoolBytes {
			return w.respool()
		}
		if err := w.hold(w.copies * len(w.buf)); err != nil {
			return err
		}
		grown := make([]byte, 2*len(w.buf))
		copy(grown, w.buf[:w.end])
		w.buf = grown
	}
	n, err := w.read(w.buf[w.end : len(w.buf)-Padding])
	if w.end += n; err != nil {
		return err
	}
	clear(w.buf[w.end : w.end+Padding])
	return nil
}

// read fills room, or less when the payload ends.
func (w *window) read(room []byte) (total int, err error) {
	for empty := 0; total < len(room); {
		n, err := w.r.Read(room[total:])
		total += n
		if err == io.EOF {
			w.eof = true
			break
		}
		if err != nil {
			return total, err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 {
			return total, io.ErrNoProgress
		}
	}
	return total, nil
}

// respool moves the unread bytes into a spool, with room for as many more. It reuses an existing spool of which nothing was read.
func (w *window) respool() (err error) {
	unread, old := w.buf[w.pos:w.end], w.spool
	if old == nil || w.pos > 0 {
		s, err := w.place.Spool()
		if err == nil {
			_, err = s.Write(unread)
		}
		if err == nil && old != nil {
			_, err = s.Write(w.tail[:])
		}
		if err != nil {
			return errors.Join(err, s.Close())
		}
		if old == nil {
			w.heap = w.buf
		} else if err := old.Close(); err != nil {
			return errors.Join(err, s.Close())
		}
		w.spool = s
		w.base += int64(w.pos)
		w.pos = 0
	}
	w.buf, w.end = nil, 0 // its mapping goes
	for more := max(w.spool.Len(), spoolBytes); more > 0 && !w.eof; {
		n, err := w.read(w.heap[:min(more, int64(len(w.heap)))])
		if err == nil {
			_, err = w.spool.Write(w.heap[:n])
		}
		if err != nil {
			return err
		}
		more -= int64(n)
	}
	if w.eof {
		if _, err := w.spool.Write(make([]byte, Padding)); err != nil {
			return err
		}
	}
	if w.buf, err = w.spool.Bytes(); err != nil {
		return fmt.Errorf("cannot read documents: %w", err)
	}
	w.end = len(w.buf) - Padding
	copy(w.tail[:], w.buf[w.end:])
	clear(w.buf[w.end:])
	return nil
}
