package segment

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync"

	"github.com/cespare/xxhash/v2"
	"github.com/klauspost/compress/dict"
	"github.com/klauspost/compress/zstd"

	"svc/internal/apierr"
)

// Documents are kept in blocks of one or more, compressed together. A row
// names its block and its slot in it, so blocks need not stand in the order of
// rows, and a merge copies them as they are.
const (
	// blockBytes is the size of documents from which a block is closed. See docs/SEGMENT.md for what was measured.
	blockBytes = 4 << 10
	slotBits   = 6
	blockSlots = 1 << slotBits
	maxBlocks  = 1 << (32 - slotBits)

	// trainBytes is how much of the first documents a dictionary is made from.
	trainBytes      = 256 << 10
	minTrainBytes   = 64 << 10
	trainSampleMax  = 4 << 10 // of one document
	dictionaryBytes = 32 << 10

	// maxDocumentBytes bounds what a reader believes of a document's length.
	maxDocumentBytes = 1 << 31
)

// How the documents of a block are kept.
const (
	blockStored = 0
	blockZstd   = 1
)

// documentWriter compresses documents as they come and keeps the blocks until
// they are written.
type documentWriter struct {
	refs      []uint32 // by document: block << slotBits | slot
	offsets   []uint64 // by block
	blocks    []byte
	dicts     [][]byte
	encoder   *zstd.Encoder
	pending   []byte // documents of the open block
	lengths   []int
	waiting   []byte // documents before the dictionary is made
	waitSizes []int
	trained   bool
	rawBytes  int64
	scratch   []byte
}

// add adds the document of the next row.
func (w *documentWriter) add(doc []byte) {
	w.rawBytes += int64(len(doc))
	if !w.trained {
		w.waiting = append(w.waiting, doc...)
		w.waitSizes = append(w.waitSizes, len(doc))
		if len(w.waiting) >= trainBytes {
			w.train()
		}
		return
	}
	w.put(doc)
}

// train makes the dictionary and puts the documents that waited for it.
func (w *documentWriter) train() {
	w.trained = true
	if len(w.waiting) >= minTrainBytes {
		if d := trainDictionary(w.waiting, w.waitSizes); d != nil {
			w.dicts = append(w.dicts, d)
		}
	}
	w.encoder = newEncoder(w.dicts)
	doc := w.waiting
	for _, n := range w.waitSizes {
		w.put(doc[:n])
		doc = doc[n:]
	}
	w.waiting, w.waitSizes = nil, nil
}

func newEncoder(dicts [][]byte) *zstd.Encoder {
	o := []zstd.EOption{
		zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false),
		zstd.WithSingleSegment(true), zstd.WithWindowSize(128 << 10), zstd.WithLowerEncoderMem(true),
	}
	if len(dicts) > 0 {
		if e, err := zstd.NewWriter(nil, append(o, zstd.WithEncoderDict(dicts[0]))...); err == nil {
			return e
		}
	}
	e, err := zstd.NewWriter(nil, o...)
	if err != nil {
		panic(fmt.Sprintf("segment: the options of the zstd encoder: %v", err)) // they are constants
	}
	return e
}

// trainDictionary makes a zstd dictionary of documents laid end to end, or nil when that fails.
func trainDictionary(docs []byte, sizes []int) (d []byte) {
	all := docs
	var samples [][]byte
	for _, n := range sizes {
		if n > 8 {
			samples = append(samples, docs[:min(n, trainSampleMax)])
		}
		docs = docs[n:]
	}
	if len(samples) < 8 {
		return nil
	}
	defer func() {
		// The trainer is young; a segment without dictionary is only larger.
		if recover() != nil {
			d = nil
		}
	}()
	// The id tells dictionaries apart when a merge keeps several: 32768 and up are free for private use.
	id := uint32(xxhash.Sum64(all))&(1<<31-1) | 1<<15
	d, err := dict.BuildZstdDict(samples, dict.Options{MaxDictSize: dictionaryBytes, HashBytes: 6, ZstdDictID: id, ZstdLevel: zstd.SpeedFastest})
	if err != nil {
		return nil
	}
	return d
}

func (w *documentWriter) put(doc []byte) {
	w.pending = append(w.pending, doc...)
	w.lengths = append(w.lengths, len(doc))
	if len(w.pending) >= blockBytes || len(w.lengths) == blockSlots {
		w.closeBlock()
	}
}

// closeBlock appends the open block.
func (w *documentWriter) closeBlock() {
	if len(w.lengths) == 0 {
		return
	}
	for slot := range w.lengths {
		w.refs = append(w.refs, uint32(len(w.offsets))<<slotBits|uint32(slot))
	}
	w.offsets = append(w.offsets, uint64(len(w.blocks)))
	w.blocks = appendBlock(w.blocks, w.encoder, w.pending, w.lengths, &w.scratch)
	w.pending, w.lengths = w.pending[:0], w.lengths[:0]
}

// appendBlock appends a block of documents laid end to end.
func appendBlock(dst []byte, e *zstd.Encoder, docs []byte, lengths []int, scratch *[]byte) []byte {
	*scratch = e.EncodeAll(docs, (*scratch)[:0])
	method, body := uint64(blockZstd), *scratch
	if len(body) >= len(docs) {
		method, body = blockStored, docs
	}
	dst = binary.AppendUvarint(dst, uint64(len(lengths))<<1|method)
	for _, n := range lengths {
		dst = binary.AppendUvarint(dst, uint64(n))
	}
	return append(dst, body...)
}

func (w *documentWriter) memoryBytes() int64 {
	return int64(cap(w.refs)*4 + cap(w.offsets)*8 + cap(w.blocks) + cap(w.pending) + cap(w.waiting) + cap(w.waitSizes)*8)
}

// finish closes the last block.
func (w *documentWriter) finish() {
	if !w.trained {
		w.train()
	}
	w.closeBlock()
}

// write writes the three sections.
func (w *documentWriter) write(f *fileWriter) {
	f.add(tagDicts, 0, appendDictionaries(nil, w.dicts))
	f.begin(tagDocIndex, 0)
	writeDocIndex(f, w.refs, append(w.offsets, uint64(len(w.blocks))))
	f.end()
	f.add(tagDocs, 0, w.blocks)
}

func writeDocIndex(f *fileWriter, refs []uint32, offsets []uint64) {
	b := make([]byte, 0, 64<<10)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(refs)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(offsets)-1))
	flush := func() {
		if len(b) > 63<<10 {
			f.Write(b)
			b = b[:0]
		}
	}
	for _, o := range offsets {
		b = binary.LittleEndian.AppendUint64(b, o)
		flush()
	}
	for _, r := range refs {
		b = binary.LittleEndian.AppendUint32(b, r)
		flush()
	}
	f.Write(b)
}

func appendDictionaries(dst []byte, dicts [][]byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(dicts)))
	for _, d := range dicts {
		dst = binary.LittleEndian.AppendUint32(dst, uint32(len(d)))
		dst = append(dst, d...)
	}
	return dst
}

// documentReader reads documents from their sections.
type documentReader struct {
	file    string
	dicts   [][]byte
	offsets []byte // blocks + 1 of 8 bytes
	refs    []byte // 4 bytes a row
	blocks  []byte
	once    sync.Once
	decoder *zstd.Decoder
	err     error
}

func (r *documentReader) damaged(t tag, format string, args ...any) error {
	return &apierr.Corruption{File: r.file, Section: t.String(), Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

func (r *documentReader) open(file string, dicts, index, blocks []byte, rows int) error {
	r.file, r.blocks = file, blocks
	if len(index) < 8 {
		return r.damaged(tagDocIndex, "%d bytes", len(index))
	}
	n := uint64(binary.LittleEndian.Uint32(index[4:]))
	if got := int(binary.LittleEndian.Uint32(index)); got != rows || uint64(len(index)) != 8+8*(n+1)+4*uint64(rows) {
		return r.damaged(tagDocIndex, "%d bytes for %d rows and %d blocks", len(index), got, n)
	}
	r.offsets, r.refs = index[8:8+8*(n+1)], index[8+8*(n+1):]
	if len(dicts) < 4 {
		return r.damaged(tagDicts, "%d bytes", len(dicts))
	}
	count := binary.LittleEndian.Uint32(dicts)
	for dicts = dicts[4:]; count > 0; count-- {
		if len(dicts) < 4 || uint64(len(dicts)) < 4+uint64(binary.LittleEndian.Uint32(dicts)) {
			return r.damaged(tagDicts, "it is cut")
		}
		size := 4 + binary.LittleEndian.Uint32(dicts)
		r.dicts = append(r.dicts, dicts[4:size])
		dicts = dicts[size:]
	}
	return nil
}

// close ends the decoder.
func (r *documentReader) close() {
	r.once.Do(func() {}) // no decoder is made from here on
	if r.decoder != nil {
		r.decoder.Close()
	}
}

func (r *documentReader) decoders() (*zstd.Decoder, error) {
	r.once.Do(func() {
		r.decoder, r.err = zstd.NewReader(nil, zstd.WithDecoderDicts(r.dicts...), zstd.WithDecoderConcurrency(runtime.GOMAXPROCS(0)),
			zstd.WithDecoderMaxMemory(blockSlots*maxDocumentBytes), zstd.WithDecodeAllCapLimit(true))
		if r.err != nil {
			r.err = r.damaged(tagDicts, "%v", r.err)
		}
	})
	return r.decoder, r.err
}

// block is a parsed document block.
type block struct {
	method  int
	count   int
	lengths []byte // uvarints
	body    []byte
	total   int
}

// block returns the block of a number.
func (r *documentReader) block(n uint32) (block, error) {
	if uint64(n)*8+16 > uint64(len(r.offsets)) {
		return block{}, r.damaged(tagDocIndex, "there is no block %d", n)
	}
	from, to := binary.LittleEndian.Uint64(r.offsets[n*8:]), binary.LittleEndian.Uint64(r.offsets[n*8+8:])
	if from > to || to > uint64(len(r.blocks)) {
		return block{}, r.damaged(tagDocIndex, "block %d is not inside its section", n)
	}
	s := scan{p: r.blocks[from:to]}
	h := s.uvarint()
	b := block{method: int(h & 1), count: int(min(h>>1, blockSlots+1))}
	begin := s.at
	total := uint64(0)
	for range min(b.count, blockSlots) {
		v := s.uvarint()
		if v > maxDocumentBytes {
			s.bad = true
			break
		}
		total += v
	}
	if s.bad || b.count == 0 || b.count > blockSlots {
		return block{}, r.damaged(tagDocs, "block %d has a bad header", n)
	}
	b.total = int(total)
	b.lengths, b.body = s.p[begin:s.at], s.p[s.at:]
	return b, nil
}

// slot returns where in the block's documents one of them stands.
func (b *block) slot(i int) (from, to int) {
	p := b.lengths
	for ; ; i-- {
		v, n := binary.Uvarint(p)
		p = p[n:]
		if to = from + int(v); i == 0 {
			return from, to
		}
		from = to
	}
}

var blockBuffers = sync.Pool{New: func() any { return new([]byte) }}

// appendDocuments appends all documents of a block, laid end to end.
func (r *documentReader) appendDocuments(dst []byte, n uint32, b *block) ([]byte, error) {
	if b.method == blockStored {
		if len(b.body) != b.total {
			return dst, r.damaged(tagDocs, "block %d has %d bytes of documents, %d expected", n, len(b.body), b.total)
		}
		return append(dst, b.body...), nil
	}
	d, err := r.decoders()
	if err != nil {
		return dst, err
	}
	if b.total > len(b.body)<<17 { // more than zstd can compress: do not make room for it
		return dst, r.damaged(tagDocs, "block %d claims %d bytes of documents in %d", n, b.total, len(b.body))
	}
	at := len(dst)
	if cap(dst)-at < b.total {
		dst = append(make([]byte, 0, at+b.total), dst...)
	}
	out, err := d.DecodeAll(b.body, dst[at:at:at+b.total])
	if err != nil || len(out) != b.total {
		return dst, r.damaged(tagDocs, "block %d: %d bytes of documents expected, %d found: %v", n, b.total, len(out), err)
	}
	return dst[:at+b.total], nil
}

// append appends the document of a row.
func (r *documentReader) append(dst []byte, row Row) ([]byte, error) {
	if uint64(row)*4+4 > uint64(len(r.refs)) {
		return dst, fmt.Errorf("cannot read document: %s has no row %d", r.file, row)
	}
	ref := binary.LittleEndian.Uint32(r.refs[row*4:])
	n, slot := ref>>slotBits, int(ref&(blockSlots-1))
	b, err := r.block(n)
	if err != nil {
		return dst, err
	}
	if slot >= b.count {
		return dst, r.damaged(tagDocIndex, "row %d is in slot %d of a block of %d", row, slot, b.count)
	}
	if b.count == 1 {
		return r.appendDocuments(dst, n, &b)
	}
	buf := blockBuffers.Get().(*[]byte)
	defer blockBuffers.Put(buf)
	docs, err := r.appendDocuments((*buf)[:0], n, &b)
	if err != nil {
		return dst, err
	}
	*buf = docs
	from, to := b.slot(slot)
	return append(dst, docs[from:to]...), nil
}

// AppendDocument appends the document's JSON to dst.
func (r *Reader) AppendDocument(dst []byte, row Row) ([]byte, error) { return r.docs.append(dst, row) }
