package document

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"
)

// Helped is a reader whose documents several goroutines may convert at the same time.
type Helped interface {
	// Helpers returns how many goroutines may help the caller of Convert now, and charges the given memory for each.
	Helpers(bytes int) int
}

// (Variables, so that tests can lower them.)
var (
	// blocksFrom is the number of bytes of NDJSON after which helpers are requested. Most payloads are shorter.
	blocksFrom = int64(1 << 20)

	// blockBytes is how much one of them converts at once.
	blockBytes = 128 << 10
)

// block is a part of a payload of NDJSON that begins behind a newline, or where a document begins. Whether it begins with a
// document is a guess: white space in documents may have newlines. The guess is right if the block before ends with a document.
type block struct {
	text      []byte // Padding zero bytes follow
	scan      scanner
	documents int
	clean     bool // the text is whole documents, and scan.out has them
	done      chan struct{}
}

// convert converts the documents of the block. It stops at the first document that is invalid or needs more than a scan, and leaves
// it to the sequential conversion.
func (b *block) convert() {
	s := &b.scan
	s.data, s.end, s.out = b.text[:len(b.text)+Padding], len(b.text), s.out[:0]
	s.most, s.over, b.documents, b.clean = 0, false, 0, false
	for i := 0; ; b.documents++ {
		for i < s.end && isSpace(s.data[i]) {
			i++
		}
		if i == s.end {
			b.clean = true
			return
		}
		if s.data[i] != '{' {
			return
		}
		if i = s.document(i); i < 0 || s.twice {
			return
		}
		s.out = append(s.out, '\n')
	}
}

// blocks converts what follows of a payload of NDJSON with helpers, in blocks.
type blocks struct {
	c      *converter
	r      io.Reader
	helped Helped // r
	carry  []byte // read, but not part of a block yet
	err    error  // of r; io.EOF at its end

	work  chan *block // to helpers
	order chan *block // to the writer
	free  chan *block
	stop  atomic.Bool // no more is to be read

	// Of the writer.
	left    []*block // the first block that is not clean, and all after it
	written int64    // bytes of the payload that are converted
	failed  error
}

// blocks converts the rest of the payload as far as it can. Then the window is at the start of the unconverted rest.
func (c *converter) blocks() error {
	helped, ok := c.in.r.(Helped)
	if !ok {
		return nil
	}
	// A helper converts one block while another waits for it. One more block is being read, and one is being written.
	helpers := helped.Helpers(5 * blockBytes)
	if helpers < 1 {
		return nil
	}
	most := 2*helpers + 2
	if err := c.flush(); err != nil {
		return err
	}
	b := &blocks{c: c, r: c.in.r, helped: helped, carry: append([]byte(nil), c.in.buf[c.in.pos:c.in.end]...),
		work: make(chan *block, most), order: make(chan *block, most), free: make(chan *block, most)}
	if c.in.eof {
		b.err = io.EOF
	}
	for range most {
		b.free <- &block{done: make(chan struct{}, 1)}
	}
	var group sync.WaitGroup
	for range helpers {
		group.Go(func() {
			for t := range b.work {
				t.convert()
				t.done <- struct{}{}
			}
		})
	}
	group.Go(b.write)
	b.read()
	close(b.work)
	close(b.order)
	group.Wait()
	if b.failed != nil {
		return b.failed
	}
	var rest []io.Reader
	for _, t := range b.left {
		rest = append(rest, bytes.NewReader(t.text))
	}
	rest = append(rest, bytes.NewReader(b.carry))
	if b.err != nil {
		rest = append(rest, failing{b.err})
	} else {
		rest = append(rest, b.r)
	}
	c.in.base += int64(c.in.pos) + b.written
	c.in.pos, c.in.end, c.in.eof = 0, 0, false
	clear(c.in.buf[:Padding])
	c.in.r = &remainder{io.MultiReader(rest...), b.r}
	return nil
}

// read cuts the payload into blocks until it ends or has none any more.
func (b *blocks) read() {
	for !b.stop.Load() && (b.err == nil || len(b.carry) > 0) {
		if b.helped.Helpers(0) < 1 {
			return
		}
		t := <-b.free
		t.text = append(slices.Grow(t.text[:0], max(blockBytes, len(b.carry))+Padding), b.carry...)
		b.carry = b.carry[:0]
		for empty := 0; b.err == nil && len(t.text) < blockBytes; {
			var n int
			n, b.err = b.r.Read(t.text[len(t.text):blockBytes])
			t.text = t.text[:len(t.text)+n]
			if n > 0 {
				empty = 0
			} else if empty++; empty == 100 && b.err == nil {
				b.err = io.ErrNoProgress
			}
		}
		end := len(t.text)
		if b.err != io.EOF {
			if end = bytes.LastIndexByte(t.text, '\n') + 1; end == 0 { // a large document, or an error of the reader
				b.carry = append(b.carry, t.text...)
				return
			}
		}
		b.carry = append(b.carry, t.text[end:]...)
		t.text = t.text[:end]
		clear(t.text[:end+Padding][end:])
		b.work <- t
		b.order <- t
	}
}

// write writes the documents of the blocks in order, up to the first block that is not clean.
func (b *blocks) write() {
	for t := range b.order {
		<-t.done
		if len(b.left) > 0 || b.failed != nil || !t.clean {
			b.stop.Store(true)
			b.left = append(b.left, t)
			select { // a reader may be waiting for a block
			case b.free <- &block{done: make(chan struct{}, 1)}:
			default:
			}
			continue
		}
		if _, err := b.c.w.Write(t.scan.out); err != nil {
			b.failed = fmt.Errorf("cannot write documents: %w", err)
			b.stop.Store(true)
		}
		b.c.documents += t.documents
		b.written += int64(len(t.text))
		b.free <- t
	}
}

// remainder reads the rest of a payload. It takes memory through the payload's reader.
type remainder struct {
	io.Reader
	of io.Reader
}

// Hold implements Holder.
func (r *remainder) Hold(bytes int) error {
	if h, ok := r.of.(Holder); ok {
		return h.Hold(bytes)
	}
	return nil
}

// failing is a reader with an error.
type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
