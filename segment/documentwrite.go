package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"

	"svc/internal/mapped"
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

// From tinyDocument bytes on and below shortDocument bytes, documents get the library's encoder. They take a third less time with it than
// with documentEncoder, and a tenth more bytes. For each tiny document, the library clears a table for longer than documentEncoder takes.
const (
	tinyDocument  = 256
	shortDocument = 512
)

// spooledDocument is the size in bytes from which a builder keeps documents in a file.
const spooledDocument = 1 << 20

// heldDocuments is how many bytes of stored documents a builder keeps in memory if it has a file for the rest. The other data has to
// be sorted and needs the memory. (A variable, so that tests can lower it.)
var heldDocuments = 2 << 20

// documentWriter compresses documents as they arrive, and keeps them until they are written.
type documentWriter struct {
	ends     []uint64     // by document, where it ends in data laid end to end
	data     []storedPart // chunks of up to documentChunk bytes or one longer document, so that none is ever moved
	stored   uint64       // bytes of data
	held     int          // those in memory
	raw      int64        // bytes, uncompressed
	dict     *encodingDictionary
	encoder  documentEncoder
	dictByte byte     // in the first byte of documents
	chosen   bool     // a dictionary, or none
	waiting  [][]byte // documents that came before
	size     int      // of waiting, as far as it is sampled
	scratch  []byte
	shared   *DocumentDictionaries // nil: only the segment's own dictionary

	place func() (*mapped.Spool, error) // nil: all is kept in memory
	spool *mapped.Spool                 // nil until there is a large document, or more than heldDocuments
	chunk []byte                        // for the documents that are held, once others are in spool
	stays bool                          // the held data stays in memory: the spool failed
	err   error                         // of spool, the first one that lost a document
}

// storedPart is a part of the stored documents: in memory, or from a place of the spool to another.
type storedPart struct {
	memory   []byte
	from, to int64
}

// add adds the next document.
func (w *documentWriter) add(doc []byte) {
	w.raw += int64(len(doc))
	if w.chosen {
		w.put(doc)
		return
	}
	if w.size += min(len(doc), sampleDocument); w.size >= sampleBytes || len(doc) >= sampleBytes {
		w.waiting = append(w.waiting, doc)
		w.choose()
		return
	}
	w.waiting = append(w.waiting, bytes.Clone(doc))
}

// choose makes the dictionary and puts the documents that waited for it.
func (w *documentWriter) choose() {
	w.chosen = true
	if w.size >= minSampleBytes && len(w.waiting) >= minSampleDocuments {
		w.dict = makeDictionary(w.waiting, min(w.size/dictionaryShare, s2.MaxDictSize))
	}
	if w.dict != nil {
		if w.shared != nil {
			w.dict = w.shared.choose(w.dict, w.waiting)
		}
		w.dictByte = 1 << methodBits
	}
	for _, doc := range w.waiting {
		w.put(doc)
	}
	w.waiting = nil
}

// makeDictionary lays documents at even distances end to end, as S2 takes a
// piece of typical content for a dictionary.
func makeDictionary(docs [][]byte, size int) *encodingDictionary {
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
	return newEncodingDictionary(s2.MakeDict(content, docs[0][:min(len(docs[0]), 16)]))
}

// put stores a document by its size: very large ones in pieces in the spool if there is one, large ones in pieces in memory, others
// as one block.
func (w *documentWriter) put(doc []byte) {
	switch {
	case len(doc) >= spooledDocument && w.place != nil:
		w.spoolPieces(doc)
	case len(doc) >= largeDocument:
		w.putPieces(doc)
	default:
		first, body := w.compress(doc)
		w.append([]byte{first}, body)
	}
	w.ends = append(w.ends, w.stored)
}

// putPieces stores a document in pieces, or plain if that is not smaller. The slices of compressed pieces are
// kept, not copied, once together they are as large as a chunk.
func (w *documentWriter) putPieces(doc []byte) {
	table, pieces, size := compressPieces(doc)
	switch {
	case size >= len(doc):
		w.append([]byte{documentPlain}, doc)
	case size >= documentChunk: // they stay where they are
		w.data = append(w.data, storedPart{memory: append([]byte{documentPieces}, table...)})
		for _, p := range pieces {
			w.data = append(w.data, storedPart{memory: p})
		}
		w.stored += uint64(1 + size)
		w.held += 1 + size
	default:
		w.append([]byte{documentPieces}, table)
		for _, p := range pieces {
			w.append(p, nil)
		}
	}
}

// spoolPieces is putPieces that keeps the pieces in the spool.
func (w *documentWriter) spoolPieces(doc []byte) {
	if w.spool == nil && w.err == nil {
		w.spool, w.err = w.place()
	}
	if w.err != nil {
		return
	}
	from := w.spool.Len()
	members := membersOf(doc)
	var sizes []byte
	if sizes, w.err = eachPiece(doc, members, func(frame []byte, _ int) error {
		_, err := w.spool.Write(frame)
		return err
	}); w.err != nil {
		return
	}
	table := appendMembers(sizes, members)
	table = append(binary.AppendUvarint(nil, uint64(len(table))), table...)
	part := storedPart{from: from, to: w.spool.Len()}
	if part.to-part.from+int64(len(table)) < int64(len(doc)) {
		w.append([]byte{documentPieces}, table)
	} else { // it does not compress
		w.append([]byte{documentPlain}, nil)
		part.from = w.spool.Len()
		_, w.err = w.spool.Write(doc)
		part.to = w.spool.Len()
	}
	w.data = append(w.data, part)
	w.stored += uint64(part.to - part.from)
}

// append lays a and b behind what there is.
func (w *documentWriter) append(a, b []byte) {
	n := len(a) + len(b)
	if w.place != nil && !w.stays && w.held+n > heldDocuments {
		w.spill()
	}
	last := len(w.data) - 1
	if last < 0 || cap(w.data[last].memory)-len(w.data[last].memory) < n {
		w.data = append(w.data, storedPart{memory: make([]byte, 0, max(n, min(documentChunk, 4<<10<<min(len(w.data), 6))))})
		last++
	}
	w.data[last].memory = append(append(w.data[last].memory, a...), b...)
	w.stored += uint64(n)
	w.held += n
}

// spill moves the documents that are held to the spool. If the spool does not take them, they stay in memory with all that follow. The
// builder is then full earlier.
func (w *documentWriter) spill() {
	if w.spool == nil {
		spool, err := w.place()
		if err != nil {
			w.stays = true
			return
		}
		w.spool = spool
	}
	parts := w.data[:0]
	for i, p := range w.data {
		if p.memory != nil {
			from := w.spool.Len()
			if _, err := w.spool.Write(p.memory); err != nil {
				w.stays = true
				w.data = append(parts, w.data[i:]...)
				return
			}
			w.held -= len(p.memory)
			p = storedPart{from: from, to: w.spool.Len()}
		}
		if last := len(parts) - 1; last >= 0 && parts[last].to == p.from {
			parts[last].to = p.to
		} else {
			parts = append(parts, p)
		}
	}
	if w.chunk == nil {
		w.chunk = make([]byte, 0, heldDocuments)
	}
	w.data = append(parts, storedPart{memory: w.chunk})
}

// compress returns the first byte and the rest of a document that is stored whole, valid until the next call.
func (w *documentWriter) compress(doc []byte) (first byte, body []byte) {
	if n := s2.MaxEncodedLen(len(doc)); cap(w.scratch) < n {
		w.scratch = make([]byte, n)
	}
	switch {
	case w.dict != nil && len(doc) >= tinyDocument && len(doc) < shortDocument:
		first, body = documentS2|w.dictByte, w.dict.Encode(w.scratch[:cap(w.scratch)], doc)
	case w.dict != nil && len(doc) < largeDocument:
		first, body = documentS2|w.dictByte, w.encoder.encode(w.dict, doc)
	case w.dict != nil:
		first, body = documentS2|w.dictByte, w.dict.EncodeBetter(w.scratch[:cap(w.scratch)], doc)
	default:
		first, body = documentS2, s2.EncodeBetter(w.scratch[:cap(w.scratch)], doc)
	}
	if len(body) >= len(doc) {
		return documentPlain, doc
	}
	return first, body
}

// memoryBytes counts capacities. Until a dictionary is chosen the first documents wait uncompressed, so they
// count with their raw size.
func (w *documentWriter) memoryBytes() int64 {
	n := int64(cap(w.ends)*8+cap(w.scratch)+cap(w.waiting)*24) + w.encoder.memoryBytes()
	for _, part := range w.data {
		n += int64(cap(part.memory))
	}
	if !w.chosen {
		n += w.raw
	}
	return n
}

func buildDocuments(_ context.Context, b *Builder, f *fileWriter) error { return b.docs.write(f) }

// write writes the three sections.
func (w *documentWriter) write(f *fileWriter) error {
	if !w.chosen {
		w.choose()
	}
	var spooled []byte
	if w.spool != nil && w.err == nil {
		spooled, w.err = w.spool.Bytes()
	}
	if w.err != nil {
		return w.err
	}
	f.begin(tagDocs, 0)
	for _, part := range w.data {
		if part.memory != nil {
			f.Write(part.memory)
			continue
		}
		for p := range slices.Chunk(spooled[part.from:part.to], residentBytes) {
			for step := range slices.Chunk(p, writeStep) {
				f.Write(step)
			}
			w.spool.GiveBack()
		}
	}
	f.end()
	var dicts [][]byte
	if w.dict != nil {
		dicts = append(dicts, w.dict.Bytes())
	}
	writeDocIndex(f, w.ends)
	f.add(tagDicts, 0, appendDictionaries(nil, dicts))
	return nil
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
