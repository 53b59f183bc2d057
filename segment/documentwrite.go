package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
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
	if len(doc) >= largeDocument {
		w.putPieces(doc)
	} else {
		first, body := w.compress(doc)
		w.append([]byte{first}, body)
	}
	w.ends = append(w.ends, w.stored)
}

func (w *documentWriter) putPieces(doc []byte) {
	table, pieces, size := compressPieces(doc)
	switch {
	case size >= len(doc):
		w.append([]byte{documentPlain}, doc)
	case size >= documentChunk: // they stay where they are
		w.data = append(append(w.data, append([]byte{documentPieces}, table...)), pieces...)
		w.stored += uint64(1 + size)
	default:
		w.append([]byte{documentPieces}, table)
		for _, p := range pieces {
			w.append(p, nil)
		}
	}
}

// append lays a and b behind what there is.
func (w *documentWriter) append(a, b []byte) {
	n := len(a) + len(b)
	last := len(w.data) - 1
	if last < 0 || cap(w.data[last])-len(w.data[last]) < n {
		w.data = append(w.data, make([]byte, 0, max(n, min(documentChunk, 4<<10<<min(len(w.data), 6)))))
		last++
	}
	w.data[last] = append(append(w.data[last], a...), b...)
	w.stored += uint64(n)
}

// compress returns the first byte and the rest of a document that is stored whole, valid until the next call.
func (w *documentWriter) compress(doc []byte) (first byte, body []byte) {
	if n := s2.MaxEncodedLen(len(doc)); cap(w.scratch) < n {
		w.scratch = make([]byte, n)
	}
	if w.dict != nil {
		first, body = documentS2|w.dictByte, w.dict.EncodeBetter(w.scratch[:cap(w.scratch)], doc)
	} else {
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

func buildDocuments(_ context.Context, b *Builder, f *fileWriter) error {
	b.docs.write(f)
	return nil
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
