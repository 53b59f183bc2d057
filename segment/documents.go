package segment

import (
	"encoding/binary"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"svc/internal/apierr"
	"svc/internal/binfmt"
	"svc/simd"
)

// Every document is compressed by itself, so a search reads only the rows that it shows, and a merge copies the bytes of any row. A
// dictionary of the segment has what documents have in common: small documents are compressed against it with S2, whose decoder is
// several times as fast at this size as that of zstd. Large documents compress well alone, with zstd. docs/SEGMENT.md has the
// figures.
const (
	// largeDocument is the size in bytes from which documents are compressed by zstd.
	largeDocument = 16 << 10

	// sampleBytes is how much of the first documents is kept to choose a dictionary from, at most sampleDocument bytes of each. With
	// less than minSampleBytes or minSampleDocuments there is no dictionary.
	sampleBytes        = 1 << 20
	sampleDocument     = 4 << 10
	minSampleBytes     = 32 << 10
	minSampleDocuments = 32

	// dictionaryShare is the size of the samples divided by the size of the dictionary.
	dictionaryShare = 16

	// maxDictionaries bounds the dictionaries of a segment: each costs its bytes in the file and in memory.
	maxDictionaries = 4

	// maxDocumentBytes bounds what a reader believes of a document's length.
	maxDocumentBytes = 1 << 31

	// documentChunk is the size of the pieces in which a builder keeps stored documents; the first ones are smaller.
	documentChunk = 256 << 10

	docOffsetBytes = 5 // of an offset in the documents section: it holds 1 TiB
)

// The first byte of a stored document: how it is compressed in the lower 2
// bits, and above them the number of its dictionary from 1, or 0.
const (
	documentPlain  = 0
	documentS2     = 1
	documentZstd   = 2 // large documents, up to format 1
	documentPieces = 3
	methodBits     = 2
	methodMask     = 1<<methodBits - 1
)

// documentReader reads documents from their sections.
type documentReader struct {
	number uint32 // of the reader in the process
	file   string
	blocks *blocks
	index  []byte
	data   []byte
	rows   int
	limit  uint64   // of a document's bytes: those of all documents
	frames [][]byte // of the dictionaries, compressed

	concordances *concordanceReader // of the same file; nil: none

	once  sync.Once
	dicts []*dictionary
	err   error
}

func (r *documentReader) damaged(t tag, format string, args ...any) error {
	return &apierr.Corruption{File: r.file, Section: t.String(), Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

// open checks the sizes of the sections and cuts ddic into the frames of its dictionaries, without decoding
// them: dictionaries does that on first use. Offsets of documents are checked when a document is read.
func (r *documentReader) open(file string, blocks *blocks, dicts, index, data []byte, m meta) error {
	*r = documentReader{number: readers.Add(1), file: file, blocks: blocks, index: index, data: data, rows: m.rows, limit: min(uint64(m.documentBytes), maxDocumentBytes)}
	if len(index) != docOffsetBytes*(m.rows+1) {
		return r.damaged(tagDocIndex, "%d bytes for %d rows", len(index), m.rows)
	}
	if len(dicts) < 4 {
		return r.damaged(tagDicts, "%d bytes", len(dicts))
	}
	count := binary.LittleEndian.Uint32(dicts)
	if count > maxDictionaries {
		return r.damaged(tagDicts, "%d dictionaries", count)
	}
	for dicts = dicts[4:]; count > 0; count-- {
		if len(dicts) < 4 || uint64(len(dicts)) < 4+uint64(binary.LittleEndian.Uint32(dicts)) {
			return r.damaged(tagDicts, "it is cut")
		}
		size := 4 + binary.LittleEndian.Uint32(dicts)
		r.frames = append(r.frames, dicts[4:size])
		dicts = dicts[size:]
	}
	return nil
}

// dictionaries decodes the dictionaries, once.
func (r *documentReader) dictionaries() ([]*dictionary, error) {
	r.once.Do(func() {
		for i, frame := range r.frames {
			b, err := zstdCoders().DecodeAll(frame, make([]byte, 0, binary.MaxVarintLen16+s2.MaxDictSize+simd.ElementRoom))
			d := newDictionary(b)
			if err != nil || d == nil {
				r.err = r.damaged(tagDicts, "dictionary %d: %d bytes, %v", i, len(b), err)
				return
			}
			r.dicts = append(r.dicts, d)
		}
	})
	return r.dicts, r.err
}

// documentOffset returns an offset of the index.
func documentOffset(b []byte) uint64 { return uint64(binary.LittleEndian.Uint32(b)) | uint64(b[4])<<32 }

// stored returns the stored bytes of a row's document. If the document is in pieces, only its first byte is verified. Their spare
// capacity is in the page of the last one, so it may be read.
func (r *documentReader) stored(row uint32) ([]byte, error) {
	if int64(row) >= int64(r.rows) {
		return nil, fmt.Errorf("cannot read document: %s has no row %d", r.file, row)
	}
	i := r.index[docOffsetBytes*int(row):][:2*docOffsetBytes]
	if err := r.blocks.verify(i); err != nil {
		return nil, err
	}
	from, to := documentOffset(i), documentOffset(i[docOffsetBytes:])
	if from >= to || to > uint64(len(r.data)) {
		return nil, r.damaged(tagDocIndex, "the document of row %d is not inside its section", row)
	}
	p := r.data[from:to]
	last := r.blocks.offset(p) + len(p) - 1
	p = r.data[from:to:min(to+uint64(blockBytes-1-last%blockBytes), uint64(len(r.data)))]
	if err := r.blocks.verify(p[:1]); err != nil {
		return nil, err
	}
	if p[0]&methodMask == documentPieces && len(p) > blockBytes {
		return p, nil // each piece is checked by itself
	}
	return p, r.blocks.verify(p)
}

// Room is asked before memory is taken for a large document. Its error is returned.
type Room interface {
	Hold(bytes int) error
}

// LargeDocument is how many bytes documents have from which on there has to be room for them.
const LargeDocument = 32 << 10

// append appends the document of a row.
func (r *documentReader) append(dst []byte, row uint32) ([]byte, error) {
	return r.appendWithin(dst, row, nil)
}

// appendWithin is append. Before it decodes a large document, it calls room, unless that is nil.
func (r *documentReader) appendWithin(dst []byte, row uint32, room Room) ([]byte, error) {
	p, err := r.stored(row)
	if err != nil {
		return dst, err
	}
	dst, _, err = r.appendStored(dst, p, row, Wanted{}, room)
	return dst, err
}

// appendStored is appendWithin of a stored document. It may leave out what follows the last wanted member: then whole is false.
func (r *documentReader) appendStored(dst, p []byte, row uint32, wanted Wanted, room Room) (_ []byte, whole bool, err error) {
	n, err := r.length(p, row)
	if err != nil {
		return dst, false, err
	}
	if n >= LargeDocument && room != nil {
		if err := room.Hold(n); err != nil {
			return dst, false, err
		}
	}
	at := len(dst)
	if p[0]&methodMask == documentPieces {
		var d pieces
		if err := d.open(r, p, row); err != nil {
			return dst, false, err
		}
		dst, err := d.all(Grow(dst, n))
		if err != nil {
			return dst[:at], false, err
		}
		return dst, true, nil
	}
	if cap(dst)-at < n {
		dst = Grow(dst, n+simd.DecodedRoom)
	}
	out := dst[at : at : at+n]
	switch p[0] & methodMask {
	case documentPlain:
		out = append(out, p[1:]...)
	case documentZstd:
		out, err = zstdCoders().DecodeAll(p[1:], out)
	default:
		dict := int(p[0] >> methodBits)
		if dict == 0 {
			out, err = s2.Decode(out[:n], p[1:])
			break
		}
		var dicts []*dictionary
		if dicts, err = r.dictionaries(); err != nil {
			return dst, false, err
		}
		if dict > len(dicts) {
			return dst, false, r.damaged(tagDocs, "row %d uses dictionary %d of %d", row, dict, len(dicts))
		}
		if out, err = dicts[dict-1].decodeWanted(dst[at:at+n], p[1:], wanted); err == nil && len(out) < n {
			return dst[:at+len(out)], false, nil
		}
	}
	if err != nil || len(out) != n {
		return dst, false, r.damaged(tagDocs, "row %d: %d bytes of a document expected, %d found: %v", row, n, len(out), err)
	}
	return dst[:at+n], true, nil
}

// length returns the length of a stored document when it is not compressed.
func (r *documentReader) length(p []byte, row uint32) (int, error) {
	var n uint64
	switch p[0] & methodMask {
	case documentPlain:
		n = uint64(len(p) - 1)
	case documentS2:
		v, err := s2.DecodedLen(p[1:])
		if err != nil {
			return 0, r.damaged(tagDocs, "row %d: %v", row, err)
		}
		n = uint64(v)
	case documentZstd:
		var h zstd.Header
		if err := h.Decode(p[1:]); err != nil || !h.HasFCS {
			return 0, r.damaged(tagDocs, "row %d: a zstd frame without length: %v", row, err)
		}
		n = h.FrameContentSize
	default:
		var d pieces
		if err := d.open(r, p, row); err != nil {
			return 0, err
		}
		n = uint64(d.length)
	}
	if n > r.limit {
		return 0, r.damaged(tagDocs, "row %d claims %d bytes, all documents have %d", row, n, r.limit)
	}
	return int(n), nil
}

// AppendDocument appends the document's JSON to dst.
func (r *Reader) AppendDocument(dst []byte, row Row) ([]byte, error) {
	return r.appendDocument(dst, row, nil)
}

// AppendUncached is AppendDocument without the cache of decoded documents, for reading many documents.
func (r *Reader) AppendUncached(dst []byte, row Row) ([]byte, error) {
	return r.docs.append(dst, uint32(row))
}

// appendDocument appends the document of a row, from the cache of decoded documents if possible. It calls room before it allocates
// memory for a large one.
func (r *Reader) appendDocument(dst []byte, row Row, room Room) ([]byte, error) {
	if doc := documents.get(cacheKey(r.docs.number, uint32(row))); doc != nil {
		return append(Grow(dst, len(doc)), doc...), nil
	}
	p, err := r.docs.stored(uint32(row))
	if err != nil {
		return dst, err
	}
	return r.decodeDocument(dst, p, row, Wanted{}, room)
}

// doubledBytes is the size up to which the buffer of documents doubles when it grows.
const doubledBytes = 4 << 20

// Grow returns a buffer of documents with room for n more bytes. If it has less, the new one has at least twice the size up to 4 MiB,
// and a quarter more above: an answer that grew by a quarter each time would allocate five times its size in total.
func Grow(dst []byte, n int) []byte {
	if cap(dst)-len(dst) >= n {
		return dst
	}
	more := cap(dst)
	if more >= doubledBytes {
		more /= 4
	}
	return append(make([]byte, 0, max(len(dst)+n, cap(dst)+more)), dst...)
}

// decodeDocument appends a stored document that is not in the cache of decoded ones, at least its wanted members.
func (r *Reader) decodeDocument(dst, p []byte, row Row, wanted Wanted, room Room) ([]byte, error) {
	at := len(dst)
	dst, whole, err := r.docs.appendStored(dst, p, uint32(row), wanted, room)
	if whole {
		documents.put(cacheKey(r.docs.number, uint32(row)), dst[at:])
	}
	return dst, err
}

// DocumentLength returns how many bytes the document's JSON has.
func (r *Reader) DocumentLength(row Row) (int, error) {
	p, err := r.docs.stored(uint32(row))
	if err != nil {
		return 0, err
	}
	return r.docs.length(p, uint32(row))
}

// CopyDocument writes the document's JSON to w, a large one in pieces.
func (r *Reader) CopyDocument(w io.Writer, row Row) error {
	buffer := pieceTexts.Get().(*[]byte)
	defer keepPieceText(buffer)
	return r.docs.copy(w, uint32(row), buffer)
}

// copy writes the document of a row, a large one in pieces, which it lays in buffer.
func (r *documentReader) copy(w io.Writer, row uint32, buffer *[]byte) error {
	p, err := r.stored(row)
	if err != nil {
		return err
	}
	if p[0]&methodMask == documentPlain {
		for text := p[1:]; len(text) > 0; text = text[len(*buffer):] {
			*buffer = append((*buffer)[:0], text[:min(len(text), pieceBytes)]...) // where a page that cannot be read is a fault, and not an error of w
			if _, err = w.Write(*buffer); err != nil {
				return err
			}
		}
		return nil
	}
	if p[0]&methodMask != documentPieces {
		if *buffer, err = r.append((*buffer)[:0], row); err == nil {
			_, err = w.Write(*buffer)
		}
		return err
	}
	var d pieces
	if err := d.open(r, p, row); err != nil {
		return err
	}
	for d.next() {
		if *buffer, err = d.decode((*buffer)[:0]); err == nil {
			_, err = w.Write(*buffer)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) openDocuments() error {
	return r.docs.open(r.name, &r.blocks, r.section(tagDicts), r.section(tagDocIndex), r.section(tagDocs), r.meta)
}

// verifyDocuments decodes every document, and compares the sums of the stored and of the decoded bytes with
// what the segment counts.
func (r *Reader) verifyDocuments() error {
	if _, err := r.docs.dictionaries(); err != nil {
		return err
	}
	var buffer []byte
	var sum byteCount
	stored := 0
	for row := range r.rows {
		p, err := r.docs.stored(uint32(row))
		if err != nil {
			return err
		}
		stored += len(p)
		if err := r.docs.copy(&sum, uint32(row), &buffer); err != nil {
			return err
		}
	}
	if stored != len(r.docs.data) || int64(sum) != r.meta.documentBytes {
		return r.damaged(tagDocs, "%d bytes of %d hold %d bytes of documents, %d expected", stored, len(r.docs.data), sum, r.meta.documentBytes)
	}
	return nil
}

// byteCount is an io.Writer that counts.
type byteCount int64

func (n *byteCount) Write(p []byte) (int, error) {
	*n += byteCount(len(p))
	return len(p), nil
}

func (i *inspector) documents() {
	i.t.List(i.r.rows, inspectItems, func(row int) {
		p, err := i.r.docs.stored(uint32(row))
		if err != nil {
			i.t.Note("%v", err)
			return
		}
		doc, err := i.r.docs.append(nil, uint32(row))
		if err != nil {
			i.t.Note("%v", err)
			return
		}
		method := [...]string{"plain", "s2", "zstd", "pieces"}[p[0]&methodMask]
		i.field(len(p), "row %d: %s, dictionary %d, %d bytes: %s", row, method, p[0]>>methodBits, len(doc), binfmt.Text(doc, 40))
	})
}

func (i *inspector) docIndex() {
	i.t.List(i.r.rows+1, inspectItems, func(row int) {
		i.field(docOffsetBytes, "documents of rows before %d end at %d", row, uint64(i.u32())|uint64(i.p[i.at+4])<<32)
	})
}

func (i *inspector) dictionaries() {
	n := int(i.u32())
	i.field(4, "%d dictionaries", n)
	i.t.List(n, inspectItems, func(int) {
		size := int(i.u32())
		i.field(4, "%d bytes follow", size)
		i.field(size, "zstd frame of a dictionary of S2")
	})
}
