package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"svc/internal/apierr"
)

// Every document is compressed by itself, so that a search reads the rows it
// shows and no neighbours, and a merge copies the bytes of any row as they
// are. What a document shares with others is in a dictionary of the segment:
// small documents compress against it by S2, whose decoder is several times
// quicker at this size than that of zstd. Large ones compress well alone, by zstd.
// docs/SEGMENT.md has the figures.
const (
	// largeDocument is the size in bytes from which documents are compressed by zstd.
	largeDocument = 16 << 10

	// sampleBytes is how much of the first documents is kept to choose a
	// dictionary from, at most sampleDocument bytes of one; with less than
	// minSampleBytes or minSampleDocuments there is none.
	sampleBytes        = 1 << 20
	sampleDocument     = 4 << 10
	minSampleBytes     = 32 << 10
	minSampleDocuments = 32

	// dictionaryShare is the size of the samples over that of the dictionary.
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
	documentPlain = 0
	documentS2    = 1
	documentZstd  = 2
	methodBits    = 2
	methodMask    = 1<<methodBits - 1
)

// zstdCoders are shared: they hold buffers worth megabytes.
var zstdCoders = sync.OnceValue(func() (c struct {
	*zstd.Encoder
	*zstd.Decoder
}) {
	var err error
	c.Encoder, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedDefault), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false), zstd.WithLowerEncoderMem(true))
	if err == nil {
		c.Decoder, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxDocumentBytes), zstd.WithDecodeAllCapLimit(true))
	}
	if err != nil {
		panic(fmt.Sprintf("segment: options of zstd: %v", err)) // they are constants
	}
	return c
})

// documentWriter compresses documents as they come and keeps them until they are written.
type documentWriter struct {
	ends     []uint64 // by document, where it ends in data laid end to end
	data     [][]byte // chunks of up to documentChunk bytes or one longer document, so that none is ever moved
	stored   uint64   // bytes of data
	raw      int64    // bytes, uncompressed
	dict     *s2.Dict
	dictByte byte     // in the first byte of documents
	chosen   bool     // a dictionary, or none
	waiting  [][]byte // documents that came before
	size     int      // of waiting, as far as it is sampled
	scratch  []byte
}

// add adds the next document.
func (w *documentWriter) add(doc []byte) {
	w.raw += int64(len(doc))
	if w.chosen {
		w.put(doc)
		return
	}
	w.waiting = append(w.waiting, bytes.Clone(doc))
	if w.size += min(len(doc), sampleDocument); w.size >= sampleBytes || len(doc) >= sampleBytes {
		w.choose()
	}
}

// choose makes the dictionary and puts the documents that waited for it.
func (w *documentWriter) choose() {
	w.chosen = true
	if w.size >= minSampleBytes && len(w.waiting) >= minSampleDocuments {
		w.dict = makeDictionary(w.waiting, min(w.size/dictionaryShare, s2.MaxDictSize))
	}
	if w.dict != nil {
		w.dictByte = 1 << methodBits
	}
	for _, doc := range w.waiting {
		w.put(doc)
	}
	w.waiting = nil
}

// makeDictionary lays documents at even distances end to end, as S2 takes a
// piece of typical content for a dictionary.
func makeDictionary(docs [][]byte, size int) *s2.Dict {
	var content []byte
	average := 0
	for _, d := range docs {
		average += min(len(d), sampleDocument)
	}
	average = average/len(docs) + 1
	step := max(1, len(docs)*average/size)
	for i := 0; i < len(docs) && len(content) < size; i += step {
		d := docs[i]
		content = append(content, d[:min(len(d), sampleDocument, size-len(content))]...)
	}
	return s2.MakeDict(content, docs[0][:min(len(docs[0]), 16)])
}

func (w *documentWriter) put(doc []byte) {
	first, body := w.compress(doc)
	n := 1 + len(body)
	last := len(w.data) - 1
	if last < 0 || cap(w.data[last])-len(w.data[last]) < n {
		w.data = append(w.data, make([]byte, 0, max(n, min(documentChunk, 4<<10<<min(len(w.data), 6)))))
		last++
	}
	w.data[last] = append(append(w.data[last], first), body...)
	w.stored += uint64(n)
	w.ends = append(w.ends, w.stored)
}

// compress returns the first byte and the rest of a stored document, valid until the next call.
func (w *documentWriter) compress(doc []byte) (first byte, body []byte) {
	switch {
	case len(doc) >= largeDocument:
		w.scratch = zstdCoders().EncodeAll(doc, w.scratch[:0])
		first, body = documentZstd, w.scratch
	case w.dict != nil:
		if n := s2.MaxEncodedLen(len(doc)); cap(w.scratch) < n {
			w.scratch = make([]byte, n)
		}
		first, body = documentS2|w.dictByte, w.dict.EncodeBetter(w.scratch[:cap(w.scratch)], doc)
	default:
		if n := s2.MaxEncodedLen(len(doc)); cap(w.scratch) < n {
			w.scratch = make([]byte, n)
		}
		first, body = documentS2, s2.EncodeBetter(w.scratch[:cap(w.scratch)], doc)
	}
	if len(body) >= len(doc) {
		return documentPlain, doc
	}
	return first, body
}

func (w *documentWriter) memoryBytes() int64 {
	n := int64(cap(w.ends)*8 + cap(w.scratch) + cap(w.waiting)*24)
	for _, chunk := range w.data {
		n += int64(cap(chunk))
	}
	if !w.chosen {
		n += w.raw
	}
	return n
}

// write writes the three sections.
func (w *documentWriter) write(f *fileWriter) {
	if !w.chosen {
		w.choose()
	}
	f.begin(tagDocs, 0)
	for _, chunk := range w.data {
		f.Write(chunk)
	}
	f.end()
	var dicts [][]byte
	if w.dict != nil {
		dicts = append(dicts, w.dict.Bytes())
	}
	writeDocIndex(f, w.ends)
	f.add(tagDicts, 0, appendDictionaries(nil, dicts))
}

// writeDocIndex writes the offset of every document in its section, and the end of the last one.
func writeDocIndex(f *fileWriter, ends []uint64) {
	f.begin(tagDocIndex, 0)
	b := make([]byte, docOffsetBytes, 64<<10)
	for _, end := range ends {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(end)), byte(end>>32))
		if len(b) > cap(b)-8 {
			f.Write(b)
			b = b[:0]
		}
	}
	f.Write(b)
	f.end()
}

// appendDictionaries appends "u32 number, then for each u32 length, zstd frame".
func appendDictionaries(dst []byte, dicts [][]byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dicts)))
	for _, d := range dicts {
		frame := zstdCoders().EncodeAll(d, nil)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(frame)))
		dst = append(dst, frame...)
	}
	return dst
}

// documentReader reads documents from their sections.
type documentReader struct {
	number uint32 // of the reader in the process
	file   string
	index  []byte
	data   []byte
	rows   int
	limit  uint64   // of a document's bytes: those of all documents
	frames [][]byte // of the dictionaries, compressed

	once  sync.Once
	dicts []*s2.Dict
	err   error
}

func (r *documentReader) damaged(t tag, format string, args ...any) error {
	return &apierr.Corruption{File: r.file, Section: t.String(), Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

func (r *documentReader) open(file string, dicts, index, data []byte, m meta) error {
	*r = documentReader{number: readers.Add(1), file: file, index: index, data: data, rows: m.rows, limit: min(uint64(m.documentBytes), maxDocumentBytes)}
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
func (r *documentReader) dictionaries() ([]*s2.Dict, error) {
	r.once.Do(func() {
		for i, frame := range r.frames {
			b, err := zstdCoders().DecodeAll(frame, make([]byte, 0, s2.MaxDictSize+8))
			d := s2.NewDict(b)
			if err != nil || d == nil {
				r.err = r.damaged(tagDicts, "dictionary %d: %d bytes, %v", i, len(b), err)
				return
			}
			r.dicts = append(r.dicts, d)
		}
	})
	return r.dicts, r.err
}

// stored returns the bytes of a row's document as they are stored.
func (r *documentReader) stored(row uint32) ([]byte, error) {
	if int64(row) >= int64(r.rows) {
		return nil, fmt.Errorf("cannot read document: %s has no row %d", r.file, row)
	}
	i := r.index[docOffsetBytes*int(row):]
	from := uint64(binary.LittleEndian.Uint32(i)) | uint64(i[4])<<32
	to := uint64(binary.LittleEndian.Uint32(i[5:])) | uint64(i[9])<<32
	if from >= to || to > uint64(len(r.data)) {
		return nil, r.damaged(tagDocIndex, "the document of row %d is not inside its section", row)
	}
	return r.data[from:to:to], nil
}

// append appends the document of a row.
func (r *documentReader) append(dst []byte, row uint32) ([]byte, error) {
	p, err := r.stored(row)
	if err != nil {
		return dst, err
	}
	n, err := r.length(p, row)
	if err != nil {
		return dst, err
	}
	at := len(dst)
	if cap(dst)-at < n {
		dst = append(make([]byte, 0, max(at+n, 2*cap(dst))), dst...)
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
		var dicts []*s2.Dict
		if dicts, err = r.dictionaries(); err != nil {
			return dst, err
		}
		if dict > len(dicts) {
			return dst, r.damaged(tagDocs, "row %d uses dictionary %d of %d", row, dict, len(dicts))
		}
		out, err = dicts[dict-1].Decode(out[:n], p[1:])
	}
	if err != nil || len(out) != n {
		return dst, r.damaged(tagDocs, "row %d: %d bytes of a document expected, %d found: %v", row, n, len(out), err)
	}
	return dst[:at+n], nil
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
		return 0, r.damaged(tagDocs, "row %d is compressed in an unknown way", row)
	}
	if n > r.limit {
		return 0, r.damaged(tagDocs, "row %d claims %d bytes, all documents have %d", row, n, r.limit)
	}
	return int(n), nil
}

// AppendDocument appends the document's JSON to dst.
func (r *Reader) AppendDocument(dst []byte, row Row) ([]byte, error) {
	key := cacheKey(r.docs.number, uint32(row))
	if doc := documents.get(key); doc != nil {
		return append(dst, doc...), nil
	}
	at := len(dst)
	dst, err := r.docs.append(dst, uint32(row))
	if err == nil {
		documents.put(key, dst[at:])
	}
	return dst, err
}
