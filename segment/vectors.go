package segment

import (
	"cmp"
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
	"svc/internal/invariant"
	"svc/simd"
)

// EmbedderID numbers an embedder inside an index. A number is never used again for another one.
type EmbedderID uint16

// EmbedderShape says what the vectors of an embedder look like.
type EmbedderShape struct {
	ID         EmbedderID
	Dimensions int
	Binary     bool // of each component only whether it is above 0 is kept
	Half       bool // components are kept in half precision (IEEE 754 binary16); false where Binary
}

// DocVectors is what a document has for one embedder.
type DocVectors struct {
	Regenerate bool      // regenerate them when the document's rendered text changes
	Given      bool      // they came with the document, and were not made by the embedder
	Vectors    []float32 // rows of the embedder's dimensions, one behind another; there may be none
	Fragments  []uint16  // number of the fragment that each vector was made of, below MaxFragments; nil when of none
}

// MaxFragments bounds the numbers of fragments.
const MaxFragments = noFragment - fragmentSets

// noFragment marks a vector that was made of no fragment.
const noFragment = 1<<16 - 1

// The head of the section vrow, and what follows it:
//
//	u32 dimensions, u32 flags, u32 entries, u32 vectors, padding to 64
//	vectors × dimensions × f32, or × f16 and padding to 4; of a binary embedder vectors × ⌈dimensions ⁄ 64⌉ × u64
//	entries × u32 row; nothing when every row has an entry
//	entries × u32 end of its vectors, vectors × u32 row; nothing with vectorsOneEach
//	vectors × u16 fragment, padding to 4; only with vectorsFragments
//	entries × u8 kind
const vectorHeadBytes = 64

const (
	vectorsBinary    = 1 << iota
	vectorsOneEach   // each entry has one vector
	vectorsFragments // some vector was made of a fragment
	vectorsHalf      // components have half precision

	vectorFlags = 1<<iota - 1
)

// Bits of the kind of an entry.
const (
	kindRegenerate = 1 << iota
	kindGiven
)

// Numbers of the row lists of the section vset. Those of fragments follow.
const (
	setAny        = iota // rows with a vector
	setGiven             // rows with kindGiven, also without a vector
	setRegenerate        // rows with a vector and kindRegenerate
	fragmentSets
)

// The head of the section vcod, and what follows it:
//
//	u32 dimensions, u32 bytes of a row of codes, u32 vectors, f32 scale, f32 mean cosine, padding to 64
//	vectors × row of codes
//	u32 number of each outlier, up to the end
const codeHeadBytes = 64

// The section vsgc: a row of codes, of the centre, and vectors × ⌈dimensions ⁄ 64⌉ × u64. The section vsgn of earlier programs is the
// same without the centre, which is 0. The section vsgw is vsgc after u32 kept, u32 of (see wideSigns), padding to 64.
const wideHeadBytes = 64

// MaxDimensions is the most that vectors can have.
const MaxDimensions = 1 << 20

// words is how many 64-bit words hold a bit for each dimension.
func (s *EmbedderShape) words() int { return (s.Dimensions + 63) / 64 }

// rowBytes is the length of a full row.
func (s *EmbedderShape) rowBytes() int {
	switch {
	case s.Binary:
		return 8 * s.words()
	case s.Half:
		return 2 * s.Dimensions
	}
	return 4 * s.Dimensions
}

func (s *EmbedderShape) appendRow(dst []byte, vector []float32) []byte {
	switch {
	case s.Binary:
		return appendPacked(dst, vector, s.Dimensions)
	case s.Half:
		at := len(dst)
		dst = slices.Grow(dst, 2*len(vector))[:at+2*len(vector)]
		simd.Halve(alias[uint16](dst[at:]), vector)
		return dst
	}
	return appendFloats(dst, vector)
}

// numbers returns the components of full rows: the rows themselves, or in buf.
func (s *EmbedderShape) numbers(buf []float32, rows []byte) []float32 {
	switch {
	case s.Binary:
		return appendUnpacked(buf[:0], alias[uint64](rows), s.Dimensions)
	case s.Half:
		buf = slices.Grow(buf[:0], len(rows)/2)[:len(rows)/2]
		simd.Widen(buf, alias[uint16](rows))
		return buf
	}
	return alias[float32](rows)
}

// alias returns the numbers that lie in p, which must be aligned for them.
func alias[T float32 | uint64 | uint32 | uint16 | int8](p []byte) []T {
	var x T
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(p))), len(p)/int(unsafe.Sizeof(x)))
}

// bytesOf returns the bytes of codes or links.
func bytesOf[T int8 | uint32 | uint64](numbers []T) []byte {
	var x T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(numbers))), len(numbers)*int(unsafe.Sizeof(x)))
}

// Vectors reads the vectors of one embedder. They are in mapped memory.
type Vectors struct {
	r       *Reader
	shape   EmbedderShape
	entries int
	vectors int

	full      []byte   // rows of float32, of half precision, or of bits
	rows      []uint32 // of the entries; nil when every row has one
	ends      []uint32 // of the vectors of each entry; nil when each has one
	owners    []uint32 // row of each vector; nil with ends
	fragments []uint16 // of each vector; nil: none
	kinds     []byte   // of the entries
	sets      presenceReader

	quantizer ann.Quantizer
	codes     []int8          // nil when the full rows are scanned
	cosine    float32         // mean cosine of two vectors; 0 in files of earlier programs
	outliers  []uint32        // vectors that their codes do not stand for
	signs     ann.Signs       // of the codes less their centre; none in some files of earlier programs
	centre    []int8          // code of the mean of the vectors; zeros without a section vsgc
	centred   bool            // there is a section vsgc or vsgw
	signsAre  tag             // the section with the signs
	wide      wideSigns       // of a section vsgw
	all       *roaring.Bitmap // of all vectors; nil without signs
	encoded   []byte          // the graph; nil: none
	link      lazy[linkedGraph]
}

// embedderSections are the sections of one embedder.
type embedderSections struct {
	id      EmbedderID
	vectors lazy[Vectors]
}

// forget makes the next call of Reader.Vectors look at all of it again.
func (e *embedderSections) forget() { e.vectors.forget() }

// openVectors finds the embedders of the segment, ascending, and leaves the rest to the first call of Vectors.
func (r *Reader) openVectors() error {
	for _, s := range r.sections {
		if s.tag != tagVectors {
			continue
		}
		if s.aux > 1<<16-1 || s.length < vectorHeadBytes {
			return r.damaged(tagVectors, "%d bytes of vectors of embedder %d do not fit its counts", s.length, s.aux)
		}
		r.embedders = append(r.embedders, &embedderSections{id: EmbedderID(s.aux)})
	}
	slices.SortFunc(r.embedders, func(a, b *embedderSections) int { return int(a.id) - int(b.id) })
	return nil
}

// readVectors reads the heads of the sections of an embedder, and all about its entries.
func (r *Reader) readVectors(e EmbedderID) *Vectors {
	v := &Vectors{r: r}
	rows := r.sectionOf(tagVectors, uint32(e))
	var signs []byte
	for _, v.signsAre = range [...]tag{tagSigns, tagWideSigns, tagOldSigns} {
		if signs = r.sectionOf(v.signsAre, uint32(e)); signs != nil {
			break
		}
	}
	v.centred = signs != nil && v.signsAre != tagOldSigns
	r.askForHeads(e)
	if !v.openRows(e, rows) {
		r.broken(tagVectors, "%d bytes of vectors of embedder %d do not fit its counts", len(rows), e)
	}
	if codes := r.sectionOf(tagCodes, uint32(e)); codes != nil && !v.openCodes(codes) {
		r.broken(tagCodes, "%d bytes of codes of embedder %d do not fit its %d vectors", len(codes), e, v.vectors)
	}
	if signs != nil && !v.openSigns(signs) {
		r.broken(v.signsAre, "%d bytes of signs of embedder %d do not fit its %d vectors", len(signs), e, v.vectors)
	}
	v.encoded = r.sectionOf(tagGraph, uint32(e))
	var err error
	if v.sets, err = r.presenceIn(tagVectorSets, uint32(e)); err != nil {
		panic(err)
	}
	return v
}

// openRows opens the section vrow, and reports whether its parts match their counts. The parts after the full vectors are verified
// here, and the full vectors row by row when they are read.
func (v *Vectors) openRows(e EmbedderID, p []byte) bool {
	if len(p) < vectorHeadBytes {
		return false
	}
	v.r.blocks.touch(p[:vectorHeadBytes])
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(p[at:]) }
	flags := u32(4)
	v.shape = EmbedderShape{ID: e, Dimensions: int(u32(0)), Binary: flags&vectorsBinary != 0, Half: flags&vectorsHalf != 0}
	v.entries, v.vectors = int(u32(8)), int(u32(12))
	if flags&^vectorFlags != 0 || v.shape.Binary && v.shape.Half || v.shape.Dimensions == 0 || v.shape.Dimensions > MaxDimensions || v.entries == 0 || v.entries > v.r.rows || v.vectors > maxRows {
		return false
	}
	p = p[vectorHeadBytes:]
	ok := true
	take := func(n, size int) []byte {
		padded := (n*size + 3) / 4 * 4
		if padded > len(p) {
			ok = false
			return nil
		}
		part := p[: n*size : n*size]
		p = p[padded:]
		return part
	}
	v.full = take(v.vectors, v.shape.rowBytes())
	v.r.blocks.fetchAll(p)
	v.r.blocks.touch(p)
	if v.entries < v.r.rows {
		v.rows = alias[uint32](take(v.entries, 4))
	}
	if flags&vectorsOneEach == 0 {
		v.ends = alias[uint32](take(v.entries, 4))
		v.owners = alias[uint32](take(v.vectors, 4))
	} else if v.entries != v.vectors {
		return false
	}
	if flags&vectorsFragments != 0 {
		v.fragments = alias[uint16](take(v.vectors, 2))
	}
	if len(p) != v.entries {
		return false
	}
	v.kinds = p
	return ok
}

// openCodes opens the section vcod, and reports whether it matches the vectors. The list of outliers after the codes is verified
// here, and codes when they are read.
func (v *Vectors) openCodes(p []byte) bool {
	if len(p) < codeHeadBytes || v.shape.Binary {
		return false
	}
	v.r.blocks.touch(p[:codeHeadBytes])
	v.quantizer = ann.Quantizer{Dimensions: v.shape.Dimensions, Scale: alias[float32](p[12:16])[0]}
	stride, cosine := v.quantizer.Stride(), alias[float32](p[16:20])[0]
	if int(binary.LittleEndian.Uint32(p)) != v.shape.Dimensions || int(binary.LittleEndian.Uint32(p[4:])) != stride ||
		int(binary.LittleEndian.Uint32(p[8:])) != v.vectors || !(v.quantizer.Scale > 0) {
		return false
	}
	p = p[codeHeadBytes:]
	if len(p) < v.vectors*stride || len(p)%4 != 0 {
		return false
	}
	v.cosine = cosine
	v.codes = alias[int8](p[:v.vectors*stride])
	v.r.blocks.fetchAll(p[v.vectors*stride:])
	v.r.blocks.touch(p[v.vectors*stride:])
	v.outliers = alias[uint32](p[v.vectors*stride:])
	return len(v.outliers) <= v.vectors
}

// openSigns takes the signs; they are read by searches.
func (v *Vectors) openSigns(p []byte) bool {
	stride := v.quantizer.Stride()
	if v.signsAre == tagWideSigns {
		if len(p) < wideHeadBytes {
			return false
		}
		v.r.blocks.touch(p[:wideHeadBytes])
		v.wide = wideSigns{kept: binary.LittleEndian.Uint32(p), of: binary.LittleEndian.Uint32(p[4:])}
		if p = p[wideHeadBytes:]; v.wide.kept == 0 || v.wide.kept > v.wide.of {
			return false
		}
	}
	v.all = roaring.New()
	v.all.AddRange(0, uint64(v.vectors))
	if v.codes == nil || v.centred && len(p) < stride {
		return false
	}
	v.centre = make([]int8, stride)
	if v.centred {
		v.r.blocks.touch(p[:stride])
		copy(v.centre, alias[int8](p[:stride]))
		p = p[stride:]
	}
	v.signs = ann.Signs{Words: alias[uint64](p), Stride: v.quantizer.Stride() / 64, Dimensions: v.shape.Dimensions, Touch: func(words []uint64) { v.r.blocks.touch(bytesOf(words)) }, TouchRows: v.touchSigns}
	return len(p) == 8*v.signs.Stride*v.vectors
}

// coded returns the codes as package ann takes them.
func (v *Vectors) coded() ann.Codes {
	if v.shape.Binary {
		return ann.Codes{Bytes: alias[int8](v.full), Stride: v.shape.rowBytes(), Bits: true, Touch: v.touchRows}
	}
	return ann.Codes{Bytes: v.codes, Stride: v.quantizer.Stride(), Touch: v.touchCodes}
}

// touchCodes verifies the codes of some vectors.
func (v *Vectors) touchCodes(vectors []uint32) {
	if a := &v.r.ahead; !a.checked.Load() {
		v.r.blocks.touchRows(bytesOf(v.codes), v.quantizer.Stride(), vectors, a.asked.Load())
	}
}

// touchSigns verifies the signs of some vectors.
func (v *Vectors) touchSigns(vectors []uint32) {
	if a := &v.r.ahead; !a.checked.Load() {
		v.r.blocks.touchRows(bytesOf(v.signs.Words), 8*v.signs.Stride, vectors, a.asked.Load())
	}
}

// touchLinks verifies some links of the graph.
func (v *Vectors) touchLinks(links []uint32) {
	if b := &v.r.blocks; !b.sound.Load() && !v.r.ahead.checked.Load() {
		p := bytesOf(links)
		if !v.r.ahead.asked.Load() {
			b.fetchAll(p)
		}
		b.touch(p)
	}
}

// touchRows verifies the full rows of some vectors.
func (v *Vectors) touchRows(vectors []uint32) {
	v.r.blocks.touchRows(v.full, v.shape.rowBytes(), vectors, false)
}

// graph returns the graph over the codes, or nil. The first call reads its upper levels. Searches read the links of level
// 0 on demand, so nothing waits for a large graph.
func (v *Vectors) graph() (*ann.Graph, error) {
	if v.encoded == nil {
		return nil, nil
	}
	l := v.link.get(func() *linkedGraph {
		head, _, upper := ann.Parts(v.encoded)
		v.r.blocks.fetchAll(upper)
		if err := cmp.Or(v.r.blocks.verify(head), v.r.blocks.verify(upper)); err != nil {
			return &linkedGraph{err: err}
		}
		g, err := ann.Open(v.encoded, v.coded(), v.touchLinks)
		switch {
		case err != nil:
			err = v.r.damaged(tagGraph, "%v", err)
		case g.Rows() != v.vectors:
			err = v.r.damaged(tagGraph, "a graph of %d rows over %d vectors", g.Rows(), v.vectors)
		}
		return &linkedGraph{g, err}
	})
	return l.graph, l.err
}

// wholeGraph is graph with all of its links read and found to lead to rows.
func (v *Vectors) wholeGraph() (*ann.Graph, error) {
	g, err := v.graph()
	if g == nil || err != nil {
		return nil, err
	}
	if err := v.r.blocks.verify(v.encoded); err != nil {
		return nil, err
	}
	if err := g.Check(); err != nil {
		return nil, v.r.damaged(tagGraph, "%v", err)
	}
	return g, nil
}

// linkedGraph is an opened graph, or the error of opening it.
type linkedGraph struct {
	graph *ann.Graph
	err   error
}

// Vectors returns what the segment has of an embedder; nil when no row has an entry.
func (r *Reader) Vectors(e EmbedderID) *Vectors {
	if invariant.Enabled {
		r.checkOpen()
	}
	for _, s := range r.embedders {
		if s.id == e {
			return s.vectors.get(func() *Vectors { return r.readVectors(e) })
		}
	}
	return nil
}

// allVectors returns those of all embedders, ascending.
func (r *Reader) allVectors() []*Vectors {
	all := make([]*Vectors, len(r.embedders))
	for i, s := range r.embedders {
		all[i] = r.Vectors(s.id)
	}
	return all
}

// Embedders returns the embedders for which some row has an entry, ascending.
func (r *Reader) Embedders() []EmbedderShape {
	all := make([]EmbedderShape, len(r.embedders))
	for i, v := range r.allVectors() {
		all[i] = v.shape
	}
	return all
}

// Dimensions returns the length of each vector.
func (v *Vectors) Dimensions() int { return v.shape.Dimensions }

// Binary reports whether only bits are kept of the vectors.
func (v *Vectors) Binary() bool { return v.shape.Binary }

// Half reports whether the vectors are kept in half precision.
func (v *Vectors) Half() bool { return v.shape.Half }

// Linked reports whether there is a graph, with which searches may miss some of the nearest vectors.
func (v *Vectors) Linked() bool { return v.encoded != nil }

// Count returns the number of vectors.
func (v *Vectors) Count() int { return v.vectors }

// find returns the number of a row's entry.
func (v *Vectors) find(row Row) (entry int, ok bool) {
	if v.rows == nil {
		return int(row), int(row) < v.entries
	}
	return slices.BinarySearch(v.rows, uint32(row))
}

// span returns the numbers of the vectors of an entry: from first up to end.
func (v *Vectors) span(entry int) (first, end int) {
	if v.ends == nil {
		return entry, entry + 1
	}
	if entry > 0 {
		first = int(v.ends[entry-1])
	}
	end = min(int(v.ends[entry]), v.vectors)
	return min(first, end), end
}

// owner returns the row of a vector.
func (v *Vectors) owner(vector int) uint32 {
	switch {
	case v.owners != nil:
		return v.owners[vector]
	case v.rows != nil:
		return v.rows[vector]
	}
	return uint32(vector)
}

// bytes returns full rows as they are stored.
func (v *Vectors) bytes(first, end int) []byte {
	n := v.shape.rowBytes()
	return v.full[first*n : end*n : end*n]
}

// CountIn returns how many vectors the rows have.
func (v *Vectors) CountIn(rows *roaring.Bitmap) int {
	if v.ends == nil {
		return int(v.Rows().AndCardinality(rows))
	}
	n := 0
	for it := rows.Iterator(); it.HasNext(); {
		if entry, ok := v.find(Row(it.Next())); ok {
			first, end := v.span(entry)
			n += end - first
		}
	}
	return n
}

// Row returns the entry of a row, and whether it has one (an entry may have no vectors). It appends the vectors to dst[:0], exactly
// as sent or rounded to half precision, and those of a binary embedder as 0.0 and 1.0. Fragments may alias mapped memory.
func (v *Vectors) Row(dst []float32, row Row) (DocVectors, bool) {
	entry, ok := v.find(row)
	if !ok {
		return DocVectors{}, false
	}
	first, end := v.span(entry)
	d := DocVectors{Regenerate: v.kinds[entry]&kindRegenerate != 0, Given: v.kinds[entry]&kindGiven != 0, Vectors: dst[:0]}
	v.r.blocks.touch(v.bytes(first, end))
	if v.shape.Binary || v.shape.Half {
		d.Vectors = v.shape.numbers(d.Vectors, v.bytes(first, end))
	} else {
		d.Vectors = append(d.Vectors, alias[float32](v.bytes(first, end))...)
	}
	if v.fragments != nil && first < end && v.fragments[first] != noFragment {
		d.Fragments = v.fragments[first:end:end]
	}
	return d, true
}

// appendPacked appends a bit for each component of rows with the given number of dimensions: whether it is above 0.
func appendPacked(dst []byte, rows []float32, dimensions int) []byte {
	for row := range slices.Chunk(rows, dimensions) {
		for part := range slices.Chunk(row, 64) {
			word := uint64(0)
			for i, x := range part {
				if x > 0 {
					word |= 1 << i
				}
			}
			dst = binary.LittleEndian.AppendUint64(dst, word)
		}
	}
	return dst
}

// appendUnpacked appends 0 and 1 for the bits of rows.
func appendUnpacked(dst []float32, rows []uint64, dimensions int) []float32 {
	for row := range slices.Chunk(rows, (dimensions+63)/64) {
		for i := range dimensions {
			dst = append(dst, float32(row[i/64]>>(i%64)&1))
		}
	}
	return dst
}

// Rows returns the rows that have a vector. Its bitmap, and those of the three methods that follow, are never nil, are shared, must
// not be modified, and may use mapped memory.
func (v *Vectors) Rows() *roaring.Bitmap { return v.sets.bitmap(setAny) }

// Given returns the rows whose vectors came with the document, including those that came with none.
func (v *Vectors) Given() *roaring.Bitmap { return v.sets.bitmap(setGiven) }

// Regenerate returns the rows with a vector that is regenerated when their text changes.
func (v *Vectors) Regenerate() *roaring.Bitmap { return v.sets.bitmap(setRegenerate) }

// Fragment returns the rows that have a vector made of the fragment.
func (v *Vectors) Fragment(f uint16) *roaring.Bitmap {
	if f >= MaxFragments {
		return roaring.New()
	}
	return v.sets.bitmap(fragmentSets + FieldID(f))
}
