package segment

import (
	"context"
	"encoding/binary"
	"fmt"
	"iter"
	"math"
	"slices"

	"svc/ann"
	"svc/internal/mapped"
	"svc/simd"
)

const (
	// codeDimensions is from how many dimensions on vectors are coded: below, a row of codes, which is padded to
	// 64 bytes, saves less than half of the full row, and the loss of precision is large.
	codeDimensions = 32

	// quantizerSample is how many vectors the scale of the codes is taken from.
	quantizerSample = 2048

	// shortNorm: vectors with a norm up to it are short. If the product of two norms is at most leastNorms, the similarity is 1
	// whatever the angle. Codes represent only the angle, so they do not find short vectors: these are outliers. A query shorter than
	// shortQuery is compared with every vector.
	shortNorm  = 1.0 / (1 << 10)
	shortQuery = leastNorms / shortNorm

	// maxClippedLoss is how much of a vector of length 1 may be clipped at the ends of the scale. If more is lost, the vector is an
	// outlier, because the error of its products with queries may be as large.
	maxClippedLoss = 0.1

	// Signs are of use as usual if they find leastRecall of the signsHits nearest rows, and otherwise if one row in widestShare, or fewer,
	// have wideRecall of these. This is tried with signsQueries rows, in a sample of signsSample rows, or signsSampled bytes of codes.
	signsSample  = 1 << 14
	signsSampled = 16 << 20
	signsQueries = 64
	signsHits    = 10
	leastRecall  = 0.95
	wideRecall   = 0.99
)

// Tests change these.
var (
	// codeVectors is from how many vectors on they are coded; below, a scan of the full rows is quick and exact.
	codeVectors = 256

	// directVectors is up to how many candidates of a search full rows are compared at once: sifting so few by
	// their codes costs more than it saves.
	directVectors = 400

	// graphVectors is from how many vectors on a graph links them; below, a scan of all codes is as fast. Rows of
	// bits are scanned faster.
	graphVectors    = 5000
	graphBitVectors = 20_000

	// widestShare: there are no signs if a search would have to keep more than one in so many rows of a sample. It is below
	// keptShare, so that searches of a few rows, or for many hits, compare all codes, while searches of more rows compare signs.
	widestShare = 6
)

func appendFloats(dst []byte, floats []float32) []byte {
	for _, x := range floats {
		dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
	}
	return dst
}

// isShort reports whether the norm is at most shortNorm. It does not depend on the kernels that run.
func isShort(vector []float32) bool {
	if !(simd.Dot(vector, vector) <= 4*shortNorm*shortNorm) {
		return false
	}
	sum := 0.0
	for _, x := range vector {
		sum += float64(x) * float64(x)
	}
	return sum <= shortNorm*shortNorm
}

// clippedLoss returns the length of what the codes of a scale cut off from a vector.
func clippedLoss(vector []float32, scale float32) float64 {
	limit := 127 / scale
	sum := 0.0
	for _, x := range vector {
		if beyond := max(x, -x) - limit; beyond > 0 {
			sum += float64(beyond) * float64(beyond)
		}
	}
	return math.Sqrt(sum)
}

// appendNormal appends the vector scaled to length 1; zeros when it has no length, or none that is a number.
func appendNormal(dst, vector []float32) []float32 {
	at := len(dst)
	dst = append(dst, vector...)
	normal := dst[at:]
	if norm := simd.Normalize(normal); norm-norm != 0 {
		clear(normal)
	}
	return dst
}

// coded reports whether the given number of vectors get codes.
func (s *EmbedderShape) coded(vectors int) bool {
	return !s.Binary && s.Dimensions >= codeDimensions && vectors >= codeVectors
}

// linked reports whether the given number of vectors get a graph.
func (s *EmbedderShape) linked(vectors int) bool {
	return s.coded(vectors) && vectors >= graphVectors || s.Binary && vectors >= graphBitVectors
}

// vectorWriter writes the sections of one embedder.
type vectorWriter struct {
	ctx     context.Context
	f       *fileWriter
	shape   EmbedderShape
	rows    int // of the segment
	entries *vectorEntries
	full    func(visit func(rows []byte)) error // calls visit with all full rows in order, some at a time
	threads int
	// base is a graph to extend, nil for none. Its row i is vector renumbered[i] now, or ann.Dropped.
	base       *ann.Graph
	renumbered []uint32

	sample []float32 // vectors of length 1 that the scale and the centre are taken from
	centre []int8    // code of their mean
	wide   []float32 // memory for rows of half precision
}

// write writes the sections of one embedder. It writes nothing if there are no entries. It always writes vectors and row lists, codes
// if they save time, and a graph if there are enough vectors. The vectors of a binary embedder are their own codes.
func (w *vectorWriter) write() error {
	vectors := w.entries.vectors()
	switch {
	case len(w.entries.rows) == 0:
		return nil
	case vectors > maxRows:
		return fmt.Errorf("%d vectors of embedder %d are more than a segment holds", vectors, w.shape.ID)
	}
	offset, err := w.writeRows(vectors)
	if err != nil {
		return err
	}
	w.writeSets()
	if !w.shape.linked(vectors) {
		if !w.shape.coded(vectors) {
			return w.f.err
		}
		_, err = w.writeCodes(vectors)
		return err
	}
	rows := ann.Codes{Stride: w.shape.rowBytes(), Bits: true} // those of a binary embedder are codes
	if !w.shape.Binary {
		rows = ann.Codes{Stride: ann.Quantizer{Dimensions: w.shape.Dimensions}.Stride()}
		if offset, err = w.writeCodes(vectors); err != nil {
			return err
		}
	}
	return w.writeGraph(rows, offset, vectors)
}

// writeRows writes the section vrow and returns where the rows begin in the file. On the way it takes the sample.
func (w *vectorWriter) writeRows(vectors int) (offset int64, err error) {
	e := w.entries
	flags := uint32(0)
	if w.shape.Binary {
		flags |= vectorsBinary
	}
	if w.shape.Half {
		flags |= vectorsHalf
	}
	oneEach := vectors == len(e.rows)
	for i, end := range e.ends {
		oneEach = oneEach && int(end) == i+1
	}
	if oneEach {
		flags |= vectorsOneEach
	}
	if len(e.fragments) > 0 {
		flags |= vectorsFragments
	}
	w.f.begin(tagVectors, uint32(w.shape.ID))
	head := make([]byte, 0, vectorHeadBytes)
	for _, x := range [...]uint32{uint32(w.shape.Dimensions), flags, uint32(len(e.rows)), uint32(vectors)} {
		head = binary.LittleEndian.AppendUint32(head, x)
	}
	w.f.Write(head[:vectorHeadBytes])
	offset = w.f.offset
	number, step := 0, max(1, vectors/quantizerSample)
	if err := w.full(func(rows []byte) {
		w.f.Write(rows)
		if w.shape.Binary {
			return
		}
		for vector := range w.vectorsIn(rows) {
			if number%step == 0 {
				w.sample = appendNormal(w.sample, vector)
			}
			number++
		}
	}); err != nil {
		return 0, err
	}
	if n := vectors * w.shape.rowBytes() % 4; n > 0 {
		w.f.Write(make([]byte, 4-n))
	}
	if len(e.rows) < w.rows {
		w.f.writeUint32s(len(e.rows), func(i int) uint32 { return e.rows[i] })
	}
	if !oneEach {
		w.f.writeUint32s(len(e.ends), func(i int) uint32 { return e.ends[i] })
		entry := 0
		w.f.writeUint32s(vectors, func(i int) uint32 {
			for int(e.ends[entry]) <= i {
				entry++
			}
			return e.rows[entry]
		})
	}
	if n := len(e.fragments); n > 0 {
		w.f.writeUint32s((n+1)/2, func(i int) uint32 {
			pair := uint32(e.fragments[2*i])
			if 2*i+1 < n {
				pair |= uint32(e.fragments[2*i+1]) << 16
			}
			return pair
		})
	}
	w.f.Write(e.kinds)
	w.f.end()
	return offset, w.f.err
}

// vectorsIn yields the vectors of full rows that are not bits.
func (w *vectorWriter) vectorsIn(rows []byte) iter.Seq[[]float32] {
	return func(yield func([]float32) bool) {
		for row := range slices.Chunk(rows, w.shape.rowBytes()) {
			if w.shape.Half {
				w.wide = w.shape.numbers(w.wide, row)
				if !yield(w.wide) {
					return
				}
			} else if !yield(alias[float32](row)) {
				return
			}
		}
	}
}

// sets returns the row lists of the section vset, ascending.
func (e *vectorEntries) sets() []fieldValue[rowSet] {
	var sets fieldTable[rowSet]
	for i, row := range e.rows {
		if e.kinds[i]&kindGiven != 0 {
			sets.get(setGiven).add(row)
		}
		first, end := e.span(i)
		if first == end {
			continue
		}
		sets.get(setAny).add(row)
		if e.kinds[i]&kindRegenerate != 0 {
			sets.get(setRegenerate).add(row)
		}
		if len(e.fragments) > 0 {
			for _, f := range e.fragments[first:end] {
				if f != noFragment {
					sets.get(fragmentSets + FieldID(f)).add(row)
				}
			}
		}
	}
	return sets.sorted()
}

func (w *vectorWriter) writeSets() {
	writePresence(w.f, tagVectorSets, uint32(w.shape.ID), w.entries.sets())
}

// meanOf returns the mean of vectors and its squared length. For vectors of length 1 or 0 this is the mean cosine of two of them. It
// is above 0.
func meanOf(vectors []float32, dimensions int) (mean []float32, cosine float32) {
	sums := make([]float64, dimensions)
	for vector := range slices.Chunk(vectors, dimensions) {
		for i, x := range vector {
			sums[i] += float64(x)
		}
	}
	squares, n := 0.0, float64(len(vectors)/dimensions)
	for _, x := range sums {
		squares += x * x
		mean = append(mean, float32(x/n))
	}
	return mean, float32(max(squares/(n*n), 1e-6))
}

// writeCodes writes the section vcod and returns where its codes begin in the file.
func (w *vectorWriter) writeCodes(vectors int) (offset int64, err error) {
	q := ann.NewQuantizer(w.shape.Dimensions, w.sample)
	mean, cosine := meanOf(w.sample, w.shape.Dimensions)
	w.centre = q.AppendCode(nil, mean)
	w.sample = nil
	w.f.begin(tagCodes, uint32(w.shape.ID))
	head := make([]byte, 0, codeHeadBytes)
	for _, x := range [...]uint32{uint32(q.Dimensions), uint32(q.Stride()), uint32(vectors), math.Float32bits(q.Scale), math.Float32bits(cosine)} {
		head = binary.LittleEndian.AppendUint32(head, x)
	}
	w.f.Write(head[:codeHeadBytes])
	offset = w.f.offset
	var outliers []uint32
	number := uint32(0)
	var normal []float32
	codes := make([]int8, 0, q.Stride())
	if err := w.full(func(rows []byte) {
		for vector := range w.vectorsIn(rows) {
			normal = appendNormal(normal[:0], vector)
			codes = q.AppendCode(codes[:0], normal)
			w.f.Write(bytesOf(codes))
			if isShort(vector) || clippedLoss(normal, q.Scale) > maxClippedLoss {
				outliers = append(outliers, number)
			}
			number++
		}
	}); err != nil {
		return 0, err
	}
	w.f.writeUint32s(len(outliers), func(i int) uint32 { return outliers[i] })
	w.f.end()
	return offset, w.f.err
}

// writeGraph writes the sections vsgc or vsgw, if signs are useful, and vgrf for codes that begin at an offset of the file. It maps
// the codes from the file being written, so that apart from the graph no vectors are in memory.
func (w *vectorWriter) writeGraph(codes ann.Codes, offset int64, vectors int) error {
	w.f.flush()
	if w.f.err != nil {
		return w.f.err
	}
	file, err := mapped.Open(w.f.fs, w.f.name)
	if err != nil {
		return err
	}
	defer file.Close()
	written, err := file.Slice(offset, int64(vectors)*int64(codes.Stride))
	if err != nil {
		return err
	}
	codes.Bytes = alias[int8](written)
	if !codes.Bits {
		w.writeSigns(codes)
	}
	o := ann.BuildOptions{Threads: w.threads}
	var g *ann.Graph
	if w.base != nil {
		g, err = ann.Extend(w.ctx, w.base, w.renumbered, codes, o)
	} else {
		g, err = ann.Build(w.ctx, codes, o)
	}
	if err != nil {
		return fmt.Errorf("cannot link the vectors of embedder %d: %w", w.shape.ID, err)
	}
	w.f.begin(tagGraph, uint32(w.shape.ID))
	if _, err := g.WriteTo(w.f); err != nil {
		return err
	}
	w.f.end()
	return w.f.err
}

// buildVectors writes the vectors of all embedders, and returns the error of the first one that got an entry
// it could not take.
func buildVectors(ctx context.Context, b *Builder, f *fileWriter) error {
	for i := range b.vectors {
		s := &b.vectors[i]
		if s.err != nil {
			return fmt.Errorf("cannot write segment %s: %w", f.name, s.err)
		}
		w := vectorWriter{ctx: ctx, f: f, shape: s.shape, rows: len(b.docIDs), entries: &s.vectorEntries, full: s.full, threads: b.options.GraphThreads}
		if err := w.write(); err != nil {
			return err
		}
	}
	return ctx.Err()
}
