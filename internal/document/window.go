package document

import "io"

// A window is the part of a payload that is in memory: from the start of the
// document at hand. It grows to the size of the largest document.
type window struct {
	r    io.Reader
	buf  []byte // buf[pos:end] is unread; padding zero bytes follow
	pos  int
	end  int
	base int64 // offset of buf[0] in the payload
	eof  bool
}

// Holder is a reader that is asked before more than a little memory is taken for what it reads.
type Holder interface {
	Hold(bytes int) error
}

// windowSize is where a window starts; it doubles while a document is larger.
const windowSize = 64 << 10

func (w *window) reset(r io.Reader) {
	w.r, w.pos, w.end, w.base, w.eof = r, 0, 0, 0, false
	if w.buf == nil {
		w.buf = make([]byte, windowSize)
	}
}

// fill reads until the window is full, keeping what is unread. Reading as much
// as fits makes starting a document anew after a fill cheap, however small the
// pieces in which the payload arrives.
func (w *window) fill() error {
	if w.pos > 0 {
		copy(w.buf, w.buf[w.pos:w.end])
		w.base += int64(w.pos)
		w.end -= w.pos
		w.pos = 0
	}
	if w.end+padding >= len(w.buf) {
		if r, ok := w.r.(Holder); ok {
			// As much again is what a document's compact form is written to.
			if err := r.Hold(2 * len(w.buf)); err != nil {
				return err
			}
		}
		grown := make([]byte, 2*len(w.buf))
		copy(grown, w.buf[:w.end])
		w.buf = grown
	}
	room := w.buf[w.end : len(w.buf)-padding]
	empty := 0
	for len(room) > 0 {
		n, err := w.r.Read(room)
		w.end += n
		room = room[n:]
		if err == io.EOF {
			w.eof = true
			break
		}
		if err != nil {
			return err
		}
		if n > 0 {
			empty = 0
		} else if empty++; empty == 100 {
			return io.ErrNoProgress
		}
	}
	clear(w.buf[w.end : w.end+padding])
	return nil
}
