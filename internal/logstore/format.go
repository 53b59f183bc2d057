package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"

	"svc/internal/apierr"
)

// A file, all numbers little-endian:
//
//	header
//	  8 bytes  magic "svclog\x00\x01"; the last byte is the version of the format
//	  u64      number of the file, which is in its name, too
//	  u64      number of the file that it continues, noFile for none
//	  u64      index of its first entry
//	  u64      how many bytes of the file before count
//	  u64      checksum of the last frame that counts there, or of its header
//	  u64      XXH64 of the above
//	frames, one per append
//	  u32      length of the body in bytes
//	  u32      number of entries; 0: the log was closed in order
//	  u64      index of the first entry
//	  u64      checksum of the frame before, or of the header
//	  u64      XXH64 of the above and of the body
//	  body     for each entry a uvarint length and its bytes
//
// A frame names the checksum of the one before, so frames of another log, or of another time, are never taken for the next one. A file
// counts up to where the file that continues it says; the newest one up to its last whole frame.
const (
	magic       = "svclog\x00\x01"
	headerBytes = 8 + 6*8
	frameBytes  = 4 + 4 + 8 + 8 + 8
	noFile      = ^uint64(0)
	suffix      = ".log"
)

// header is the header of a file.
type header struct {
	number, before uint64
	first          uint64
	beforeSize     int64
	beforeSum      uint64
}

// encode returns the header of a file, and its checksum, which the first frame names.
func (h *header) encode() ([]byte, uint64) {
	b := append(make([]byte, 0, headerBytes), magic...)
	for _, n := range []uint64{h.number, h.before, h.first, uint64(h.beforeSize), h.beforeSum} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	sum := xxhash.Sum64(b)
	return binary.LittleEndian.AppendUint64(b, sum), sum
}

// errHeader is the error of bytes that are no header.
var errHeader = errors.New("its header is damaged")

// decodeHeader reads what encode wrote. It returns errHeader for other bytes, which a crash may leave in the newest file.
func decodeHeader(b []byte) (h header, sum uint64, err error) {
	if len(b) < headerBytes || xxhash.Sum64(b[:headerBytes-8]) != binary.LittleEndian.Uint64(b[headerBytes-8:]) || string(b[:7]) != magic[:7] {
		return h, 0, errHeader
	}
	if b[7] != magic[7] {
		return h, 0, fmt.Errorf("it has format version %d, and this svc reads version %d", b[7], magic[7])
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8+8*i:]) }
	h = header{number: at(0), before: at(1), first: at(2), beforeSize: int64(at(3)), beforeSum: at(4)}
	if h.first == 0 || h.beforeSize < 0 {
		return h, 0, errHeader
	}
	return h, at(5), nil
}

// frame is the place of a frame in its file, and its content.
type frame struct {
	offset int64
	length uint32 // of the body
	count  uint32 // 0: the log was closed in order
	first  uint64
	before uint64 // checksum of the frame before
	sum    uint64
}

func (f *frame) end() int64   { return f.offset + frameBytes + int64(f.length) }
func (f *frame) next() uint64 { return f.first + uint64(f.count) }

// encodeFrame appends a frame.
func encodeFrame(b []byte, first, before uint64, entries [][]byte) ([]byte, uint64) {
	start := len(b)
	b = append(b, make([]byte, 4)...) // the length, below
	b = binary.LittleEndian.AppendUint32(b, uint32(len(entries)))
	b = binary.LittleEndian.AppendUint64(b, first)
	b = binary.LittleEndian.AppendUint64(b, before)
	b = append(b, make([]byte, 8)...) // the checksum, below
	for _, e := range entries {
		b = binary.AppendUvarint(b, uint64(len(e)))
		b = append(b, e...)
	}
	own := b[start:]
	binary.LittleEndian.PutUint32(own, uint32(len(own)-frameBytes))
	sum := frameSum(own)
	binary.LittleEndian.PutUint64(own[frameBytes-8:], sum)
	return b, sum
}

// frameSum returns the checksum of a whole frame.
func frameSum(b []byte) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(b[:frameBytes-8])
	_, _ = d.Write(b[frameBytes:])
	return d.Sum64()
}

// frameHead decodes the fixed part of a frame, at an offset of its file.
func frameHead(b []byte, offset int64) frame {
	return frame{
		offset: offset, length: binary.LittleEndian.Uint32(b), count: binary.LittleEndian.Uint32(b[4:]),
		first: binary.LittleEndian.Uint64(b[8:]), before: binary.LittleEndian.Uint64(b[16:]), sum: binary.LittleEndian.Uint64(b[24:]),
	}
}

// plausible reports whether the fixed part may be valid: entries take at least a byte each, and indexes do not overflow.
func (f *frame) plausible(left int64) bool {
	return int64(f.length) <= left && f.count <= f.length && (f.count > 0 || f.length == 0) && f.first > 0 && f.next() >= f.first
}

// entries splits the body of a frame. The entries alias it.
func entries(body []byte, count uint32) ([][]byte, error) {
	all := make([][]byte, 0, count)
	for range count {
		length, n := binary.Uvarint(body)
		if n <= 0 || length > uint64(len(body)-n) {
			return nil, errors.New("an entry is longer than its frame")
		}
		all = append(all, body[n:n+int(length)])
		body = body[n+int(length):]
	}
	if len(body) > 0 {
		return nil, errors.New("a frame has trailing bytes")
	}
	return all, nil
}

// content is what a file holds.
type content struct {
	header
	sum    uint64 // of the header
	frames []frame
	torn   bool // the last complete frame is followed by an incomplete one
}

// scan reads a file of size bytes. If an incomplete frame is not followed by a complete one, it is an append that a crash cut short,
// and the frames before it count. If a complete frame follows, the file is damaged, because there is one append at a time. errHeader
// means that a crash cut the file short before its first frame.
func scan(r io.ReaderAt, size int64) (*content, error) {
	b := make([]byte, min(headerBytes, size))
	if _, err := r.ReadAt(b, 0); err != nil && err != io.EOF {
		return nil, err
	}
	c := &content{}
	var err error
	if c.header, c.sum, err = decodeHeader(b); err != nil {
		if errors.Is(err, errHeader) {
			var buf []byte
			if _, found, e := readFrame(r, headerBytes, size, &buf); e != nil || found {
				return nil, errors.Join(e, errors.New("its header is damaged, and entries follow it"))
			}
		}
		return nil, err
	}
	before, next := c.sum, c.first
	body := make([]byte, 0, 4096)
	for offset := int64(headerBytes); offset < size; {
		f, ok, err := readFrame(r, offset, size, &body)
		if err != nil {
			return nil, err
		}
		if !ok || f.before != before || f.first != next {
			c.torn = true
			found, err := frameBehind(r, offset+1, size, next)
			if err == nil && (ok || found) {
				err = fmt.Errorf("the bytes at %d differ from what was appended there, and complete appends follow", offset)
			}
			if err != nil {
				return nil, err
			}
			break
		}
		if _, err := entries(body[frameBytes:], f.count); err != nil {
			return nil, fmt.Errorf("the append at %d: %w", offset, err)
		}
		c.frames = append(c.frames, f)
		before, next, offset = f.sum, f.next(), f.end()
	}
	return c, nil
}

// readFrame reads a frame, including its fixed part, into buf. ok is false if there is no complete frame.
func readFrame(r io.ReaderAt, offset, size int64, buf *[]byte) (f frame, ok bool, err error) {
	if size-offset < frameBytes {
		return f, false, nil
	}
	b := append((*buf)[:0], make([]byte, frameBytes)...)
	if _, err := r.ReadAt(b, offset); err != nil {
		return f, false, err
	}
	f = frameHead(b, offset)
	if !f.plausible(size - offset - frameBytes) {
		return f, false, nil
	}
	b = append(b, make([]byte, f.length)...)
	*buf = b
	if _, err := r.ReadAt(b[frameBytes:], offset+frameBytes); err != nil && (err != io.EOF || f.length > 0) {
		return f, false, err
	}
	return f, frameSum(b) == f.sum, nil
}

// frameBehind reports whether a complete frame begins at or after from whose first entry comes after an index. A frame takes more
// bytes than it has entries, which bounds the index. So a checksum is rarely computed for bytes that are no frame, however long the
// rest is.
func frameBehind(r io.ReaderAt, from, size int64, after uint64) (bool, error) {
	if size-from < frameBytes {
		return false, nil
	}
	b := make([]byte, size-from)
	if _, err := r.ReadAt(b, from); err != nil && err != io.EOF {
		return false, err
	}
	for ; len(b) >= frameBytes; b = b[1:] {
		f := frameHead(b, 0)
		if f.first <= after || f.first-after > uint64(size) || !f.plausible(int64(len(b)-frameBytes)) {
			continue
		}
		if frameSum(b[:f.end()]) == f.sum {
			return true, nil
		}
	}
	return false, nil
}

// fileName returns the name of a file in its directory.
func fileName(number uint64) string { return fmt.Sprintf("%016x%s", number, suffix) }

// fileNumber returns the number of a file of a name.
func fileNumber(name string) (uint64, bool) {
	text, ok := strings.CutSuffix(name, suffix)
	n, err := strconv.ParseUint(text, 16, 64)
	return n, ok && err == nil && fileName(n) == name && n != noFile
}

func damaged(dir string, number uint64, offset int64, reason error) error {
	return &apierr.Corruption{File: path.Join(dir, fileName(number)), Section: "log", Offset: offset, Reason: reason.Error()}
}
