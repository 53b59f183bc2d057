package segment

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/cespare/xxhash/v2"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// A file is written in pieces of writePiece, each at a multiple of this in the file. Linux then caches it in huge pages, which need
// few entries of the TLB. A file of up to writeStep bytes is one piece, in a buffer of that size. While files do not fit into memory,
// all pieces have that size, because a huge page stays in memory as a whole, even if searches use little of it.
const (
	writePiece = 2 << 20
	writeStep  = 256 << 10
)

var (
	pieceBuffers = sync.Pool{New: func() any { return new([writePiece]byte) }}
	stepBuffers  = sync.Pool{New: func() any { return new([writeStep]byte) }}
)

// fileWriter writes a segment file front to back. It keeps the first error for finish and then drops all further data.
type fileWriter struct {
	fs       vfs.FS
	name     string
	f        vfs.File
	buf      []byte
	settled  int   // bytes of buf that are in the checksums
	written  int64 // bytes of the file that were in buf before
	offset   int64 // in the file, of the next byte
	start    int64 // of the open section
	sum      *xxhash.Digest
	sections []section
	features uint32
	throttle func(bytes int) error
	unasked  int // worked since throttle was asked
	spools   int // made so far
	err      error

	// Checksums of the blocks of the file so far. The last one has sumFill bytes.
	sums     []byte
	blockSum *xxhash.Digest
	sumFill  int
}

// createFile creates a file and writes its header. It calls throttle for every writeStep bytes before they are written; an error of
// throttle ends the writing; nil: none. The caller ends with finish or abort.
func createFile(fs vfs.FS, name string, throttle func(bytes int) error) (*fileWriter, error) {
	f, err := fs.Create(name)
	if err != nil {
		return nil, fmt.Errorf("cannot create segment %s: %w", name, err)
	}
	w := &fileWriter{fs: fs, name: name, f: f, buf: stepBuffers.Get().(*[writeStep]byte)[:0], sum: xxhash.New(), blockSum: xxhash.New(), features: featureVersion, throttle: throttle}
	w.raw([]byte(fileMagic))
	w.pad(headerBytes)
	return w, nil
}

// raw writes outside of sections.
func (w *fileWriter) raw(p []byte) {
	w.offset += int64(len(p))
	for len(p) > 0 && w.err == nil {
		end := cap(w.buf) - int(w.written%int64(cap(w.buf))) // the length of this piece
		n := min(len(p), w.settled+writeStep-len(w.buf), end-len(w.buf))
		w.buf = append(w.buf, p[:n]...)
		p = p[n:]
		switch {
		case len(w.buf) == writeStep && cap(w.buf) == writeStep && !mapped.Crowded():
			large := append(pieceBuffers.Get().(*[writePiece]byte)[:0], w.buf...)
			w.release()
			w.buf = large
			w.settle()
		case len(w.buf) == end:
			w.flush()
		case len(w.buf) == w.settled+writeStep:
			w.settle()
		}
	}
}

// settle calls throttle for what was added to the buffer, and computes the checksums of blocks. These are taken from the bytes of the
// file, so they cover padding and header, too.
func (w *fileWriter) settle() {
	p := w.buf[w.settled:]
	if w.err != nil || len(p) == 0 {
		return
	}
	if w.throttle != nil {
		if w.err = w.throttle(len(p)); w.err != nil {
			return
		}
	}
	w.sumBlocks(p)
	w.settled = len(w.buf)
}

// flush writes the buffer.
func (w *fileWriter) flush() {
	w.settle()
	if w.err != nil || len(w.buf) == 0 {
		return
	}
	if _, err := w.f.Write(w.buf); err != nil {
		w.fail(err)
	}
	w.written += int64(len(w.buf))
	w.buf, w.settled = w.buf[:0], 0
}

// askEvery is the number of rows, words or comparisons after which throttle is called while nothing is written. They take a few
// tenths of a millisecond.
const askEvery = 4096

// worked lets throttle also slow down the work before writing: n is about how many rows or words were processed since the last call.
func (w *fileWriter) worked(n int) {
	if w.throttle == nil || w.err != nil {
		return
	}
	if w.unasked += n; w.unasked >= askEvery {
		w.unasked, w.err = 0, w.throttle(0)
	}
}

// fail records the first error; later ones are dropped.
func (w *fileWriter) fail(err error) {
	if w.err == nil {
		w.err = fmt.Errorf("cannot write segment %s: %w", w.name, err)
	}
}

// mostOffset is the largest offset of 32 bits. Tests lower it.
var mostOffset = math.MaxUint32

// limit fails if something with 32-bit offsets is larger than they can address.
func (w *fileWriter) limit(bytes int, what string) {
	if bytes > mostOffset {
		w.fail(fmt.Errorf("%d bytes of %s are more than a segment holds", bytes, what))
	}
}

var zeros [sectionAlign]byte

// pad writes zeros up to a multiple of align, at most sectionAlign.
func (w *fileWriter) pad(align int64) {
	if n := w.offset % align; n > 0 {
		w.raw(zeros[:align-n])
	}
}

// begin opens a section; its bytes come by Write.
func (w *fileWriter) begin(t tag, aux uint32) {
	w.pad(sectionAlign)
	w.start = w.offset
	w.sum.Reset()
	w.sections = append(w.sections, section{tag: t, aux: aux, offset: w.offset})
}

// Write implements io.Writer for the open section. It always succeeds: see finish.
func (w *fileWriter) Write(p []byte) (int, error) {
	w.sum.Write(p)
	w.raw(p)
	return len(p), nil
}

// at returns the offset of the next byte in the open section.
func (w *fileWriter) at() int64 { return w.offset - w.start }

func (w *fileWriter) end() {
	s := &w.sections[len(w.sections)-1]
	s.length = w.offset - w.start
	s.checksum = w.sum.Sum64()
}

// add writes a whole section.
func (w *fileWriter) add(t tag, aux uint32, p []byte) {
	w.begin(t, aux)
	w.Write(p)
	w.end()
}

// writeUint32s writes n numbers to the open section.
func (w *fileWriter) writeUint32s(n int, number func(i int) uint32) {
	b := make([]byte, 0, min(4*n, 16<<10))
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, number(i))
		if len(b) == cap(b) || i == n-1 {
			w.Write(b)
			b = b[:0]
		}
	}
}

// finish writes table and footer, syncs and closes. On an error, also one met
// before, it removes the file.
func (w *fileWriter) finish() (int64, error) {
	w.pad(sectionAlign)
	f := footer{tableOffset: w.offset, sections: uint32(len(w.sections)), version: formatVersion, features: w.features}
	var table []byte
	for _, s := range w.sections {
		table = appendEntry(table, s)
	}
	f.tableChecksum = xxhash.Sum64(table)
	f.fileLength = w.offset + int64(len(table)) + footerBytes
	w.raw(appendFooter(table, f))
	w.flush()
	w.release()
	if w.err == nil {
		if err := w.f.Sync(); err != nil {
			w.fail(err)
		}
	}
	if err := w.f.Close(); err != nil {
		w.fail(err)
	}
	if w.err != nil {
		_ = w.fs.Remove(w.name) // the first error says more than a second one
		return 0, w.err
	}
	return f.fileLength, nil
}

// abort closes and removes the file and returns err, or the error met before it.
func (w *fileWriter) abort(err error) error {
	if w.err == nil {
		w.err = err
	}
	w.release()
	_ = w.f.Close()
	_ = w.fs.Remove(w.name)
	return w.err
}

// newSpool creates a temporary file beside the file that is being written.
func (w *fileWriter) newSpool() (*mapped.Spool, error) {
	w.spools++
	return mapped.NewSpool(w.fs, fmt.Sprintf("%s-%d%s", w.name, w.spools, vfs.TempSuffix))
}

// release gives the buffer back; nothing is written after it.
func (w *fileWriter) release() {
	if cap(w.buf) == writePiece {
		pieceBuffers.Put((*[writePiece]byte)(w.buf[:writePiece]))
	} else {
		stepBuffers.Put((*[writeStep]byte)(w.buf[:writeStep]))
	}
	w.buf = nil
}
