package segment

import (
	"fmt"
	"slices"

	"svc/ann"
)

// keepsVectors reports whether the vectors of an embedder in the inputs go to the output.
func (o *MergeOptions) keepsVectors(e EmbedderID) bool {
	if s := o.vectorSet(e); s != nil {
		return s.keep
	}
	return o.KeepVectors == nil || o.KeepVectors(e)
}

func (o *MergeOptions) vectorSet(e EmbedderID) *VectorSet {
	for _, s := range o.Vectors {
		if s.shape.ID == e {
			return s
		}
	}
	return nil
}

// checkVectorSets validates the sets for an output with the given number of rows.
func (o *MergeOptions) checkVectorSets(rows int) error {
	for i, s := range o.Vectors {
		switch {
		case s.err != nil:
			return s.err
		case s.rows != rows:
			return fmt.Errorf("vectors of %d rows were made for %d", s.rows, rows)
		case len(s.vectorStore.rows) > 0 && int(s.vectorStore.rows[len(s.vectorStore.rows)-1]) >= rows:
			return fmt.Errorf("vectors were made for row %d of %d", s.vectorStore.rows[len(s.vectorStore.rows)-1], rows)
		}
		for _, t := range o.Vectors[:i] {
			if s.shape.ID == t.shape.ID {
				return fmt.Errorf("there are two sets of vectors of embedder %d", s.shape.ID)
			}
		}
	}
	return nil
}

func (m *merger) mergeVectors() error { return m.mergeEmbedders(nil) }

// copyVectors copies the vectors of the only input that stay as they are, and writes the others.
func (m *merger) copyVectors() error {
	copied := make(map[EmbedderID]bool)
	for _, v := range m.in[0].allVectors() {
		if e := v.shape.ID; m.o.vectorSet(e) == nil && m.o.keepsVectors(e) {
			copied[e] = true
		}
	}
	for _, s := range m.in[0].sections {
		if k := kindOf(s.tag); k != nil && (k.tag == tagVectors || k.with == tagVectors) && copied[EmbedderID(s.aux)] {
			if err := m.copySection(s); err != nil {
				return err
			}
		}
	}
	return m.mergeEmbedders(copied)
}

// mergeEmbedders writes the vectors that stay and those that are added. The embedders that
// copied names are in the output already.
func (m *merger) mergeEmbedders(copied map[EmbedderID]bool) error {
	var embedders []EmbedderID
	for _, l := range m.in {
		for _, v := range l.allVectors() {
			if e := v.shape.ID; m.o.keepsVectors(e) && !copied[e] {
				embedders = append(embedders, e)
			}
		}
	}
	for _, s := range m.o.Vectors {
		embedders = append(embedders, s.shape.ID)
	}
	slices.Sort(embedders)
	for _, e := range slices.Compact(embedders) {
		v := vectorMerger{m: m, set: m.o.vectorSet(e), in: make([]*Vectors, len(m.in))}
		if m.o.keepsVectors(e) {
			for i, l := range m.in {
				v.in[i] = l.Vectors(e)
			}
		}
		if err := v.merge(); err != nil {
			return err
		}
	}
	return nil
}

// vectorMerger brings the vectors of one embedder together.
type vectorMerger struct {
	m       *merger
	set     *VectorSet // nil for none
	in      []*Vectors // by input; nil when nothing of it is taken
	shape   EmbedderShape
	entries vectorEntries
	sources []origin // by entry: input and number of the first vector there; fromSet, and none, of the set's
}

// fromSet marks the source of an entry as the set instead of an input.
const fromSet = 1<<32 - 1

// merge writes the vectors of one embedder. The largest graph of the inputs is the base of the new one: its vectors keep their links,
// and the others are linked to them.
func (v *vectorMerger) merge() error {
	if err := v.chooseShape(); err != nil {
		return err
	}
	if err := v.lay(); err != nil {
		return err
	}
	w := vectorWriter{ctx: v.m.ctx, f: v.m.f, shape: v.shape, rows: len(v.m.origins), entries: &v.entries, full: v.full, threads: v.m.o.GraphThreads}
	var err error
	if w.base, w.renumbered, err = v.base(); err != nil {
		return err
	}
	return w.write()
}

// chooseShape takes the shape of the set. Without a set, the shape is binary if that of an input is, and otherwise has half precision
// if that of an input does.
func (v *vectorMerger) chooseShape() error {
	if v.set != nil {
		v.shape = v.set.shape
	}
	for _, in := range v.in {
		switch {
		case in == nil:
		case v.shape.Dimensions == 0:
			v.shape = in.shape
		case in.shape.Dimensions != v.shape.Dimensions:
			return fmt.Errorf("vectors of embedder %d have %d and %d dimensions", in.shape.ID, v.shape.Dimensions, in.shape.Dimensions)
		case in.shape.Binary && v.set != nil && !v.shape.Binary:
			return fmt.Errorf("of the vectors of embedder %d only bits were kept", in.shape.ID)
		default:
			v.shape.Binary = v.shape.Binary || in.shape.Binary
			if v.set == nil {
				v.shape.Half = v.shape.Half || in.shape.Half
			}
		}
	}
	v.shape.Half = v.shape.Half && !v.shape.Binary
	return nil
}

// lay makes the entries of the output, and records the source of their vectors.
func (v *vectorMerger) lay() error {
	own, given := 0, 0 // entries of the set taken; vectors that the inputs have
	for _, in := range v.in {
		if in != nil {
			given += in.vectors
		}
	}
	fromInputs := 0
	for row, o := range v.m.origins {
		if set := v.set; set != nil && own < len(set.vectorStore.rows) && set.vectorStore.rows[own] == uint32(row) {
			first, end := set.span(own)
			v.entries.add(uint32(row), set.kinds[own], end-first, partOf(set.fragments, first, end))
			v.sources = append(v.sources, origin{fromSet, uint32(first)})
			own++
			continue
		}
		in := v.in[o.in]
		if in == nil {
			continue
		}
		entry, ok := in.find(Row(o.row))
		if !ok {
			continue
		}
		first, end := in.span(entry)
		if fromInputs += end - first; fromInputs > given {
			return in.r.damaged(tagVectors, "embedder %d: its entries have more than its %d vectors", v.shape.ID, in.vectors)
		}
		v.entries.add(uint32(row), in.kinds[entry], end-first, partOf(in.fragments, first, end))
		v.sources = append(v.sources, origin{o.in, uint32(first)})
	}
	return nil
}

// partOf returns the fragments of some vectors, or nil if there are none.
func partOf(fragments []uint16, first, end int) []uint16 {
	if len(fragments) == 0 || first == end || fragments[first] == noFragment {
		return nil
	}
	return fragments[first:end]
}

// full calls visit with the full rows of all entries.
func (v *vectorMerger) full(visit func(rows []byte)) error {
	var again []byte // rows of another shape
	var wide []float32
	slab, at := 0, 0 // of the set, what comes next
	for i, from := range v.sources {
		if i%1024 == 0 {
			if err := v.m.check(); err != nil {
				return err
			}
		}
		first, end := v.entries.span(i)
		if from.in == fromSet {
			for range end - first {
				for at == len(v.set.slabs[slab]) {
					slab, at = slab+1, 0
				}
				visit(v.set.slabs[slab][at : at+v.shape.rowBytes()])
				at += v.shape.rowBytes()
			}
			continue
		}
		in := v.in[from.in]
		rows := in.bytes(int(from.row), int(from.row)+end-first)
		if v.shape.Binary != in.shape.Binary || v.shape.Half != in.shape.Half {
			again = again[:0]
			for row := range slices.Chunk(rows, in.shape.rowBytes()) {
				vector := in.shape.numbers(wide, row)
				if in.shape.Half {
					wide = vector
				}
				again = v.shape.appendRow(again, vector)
			}
			rows = again
		}
		visit(rows)
	}
	return nil
}

// base returns the largest graph of the inputs, and which vector of the output each of its rows is.
func (v *vectorMerger) base() (*ann.Graph, []uint32, error) {
	largest := -1
	for i, in := range v.in {
		if in != nil && in.encoded != nil && in.shape.Binary == v.shape.Binary && (largest < 0 || in.vectors > v.in[largest].vectors) {
			largest = i
		}
	}
	if largest < 0 || !v.shape.linked(v.entries.vectors()) {
		return nil, nil, nil
	}
	g, err := v.in[largest].wholeGraph()
	if err != nil {
		return nil, nil, err
	}
	renumbered := make([]uint32, g.Rows())
	for i := range renumbered {
		renumbered[i] = ann.Dropped
	}
	for i, from := range v.sources {
		if from.in == uint32(largest) {
			first, end := v.entries.span(i)
			for j := range end - first {
				renumbered[int(from.row)+j] = uint32(first + j)
			}
		}
	}
	return g, renumbered, nil
}
