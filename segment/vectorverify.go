package segment

import (
	"bytes"
	"fmt"
	"slices"

	"svc/ann"
)

// verifyVectors verifies each embedder: entries, row lists, codes, signs and graph. Sections of an embedder
// without vectors are damage.
func (r *Reader) verifyVectors() error {
	have := map[EmbedderID]bool{}
	for _, v := range r.allVectors() {
		have[v.shape.ID] = true
		for _, check := range []func() error{v.verifyEntries, v.verifySets, v.verifyCodes, v.verifySigns} {
			if err := check(); err != nil {
				return fmt.Errorf("embedder %d: %w", v.shape.ID, err)
			}
		}
		if _, err := v.wholeGraph(); err != nil {
			return fmt.Errorf("embedder %d: %w", v.shape.ID, err)
		}
	}
	for _, s := range r.sections {
		switch s.tag {
		case tagVectorSets, tagCodes, tagSigns, tagWideSigns, tagOldSigns, tagGraph:
			if s.aux >= 1<<16 || !have[EmbedderID(s.aux)] {
				return r.damaged(s.tag, "there are no vectors of embedder %d", s.aux)
			}
		}
	}
	return nil
}

// verifyEntries checks the arrays about entries and vectors.
func (v *Vectors) verifyEntries() error {
	r := v.r
	for i, row := range v.rows {
		if int(row) >= r.rows || i > 0 && row <= v.rows[i-1] {
			return r.damaged(tagVectors, "entry %d is of row %d of %d", i, row, r.rows)
		}
	}
	last := uint32(0)
	for entry, end := range v.ends {
		if end < last || int(end) > v.vectors {
			return r.damaged(tagVectors, "the vectors of entry %d go from %d to %d of %d", entry, last, end, v.vectors)
		}
		row := uint32(entry)
		if v.rows != nil {
			row = v.rows[entry]
		}
		for i := last; i < end; i++ {
			if v.owners[i] != row {
				return r.damaged(tagVectors, "vector %d is of row %d and of row %d", i, row, v.owners[i])
			}
		}
		last = end
	}
	if v.ends != nil && int(last) != v.vectors {
		return r.damaged(tagVectors, "the entries have %d vectors of %d", last, v.vectors)
	}
	for entry, kind := range v.kinds {
		if kind&^(kindRegenerate|kindGiven) != 0 {
			return r.damaged(tagVectors, "entry %d is of kind %d", entry, kind)
		}
		if v.fragments == nil {
			continue
		}
		first, end := v.span(entry)
		for i := first; i < end; i++ {
			if f := v.fragments[i]; f >= MaxFragments && f != noFragment || (f == noFragment) != (v.fragments[first] == noFragment) {
				return r.damaged(tagVectors, "vector %d is made of fragment %d", i, f)
			}
		}
	}
	if v.shape.Binary && v.shape.Dimensions%64 != 0 {
		words, n := alias[uint64](v.full), v.shape.words()
		for i := n - 1; i < len(words); i += n {
			if words[i]>>(v.shape.Dimensions%64) != 0 {
				return r.damaged(tagVectors, "vector %d has bits beyond %d dimensions", i/n, v.shape.Dimensions)
			}
		}
	}
	return nil
}

// verifySets compares the row lists with the entries.
func (v *Vectors) verifySets() error {
	var entries vectorEntries
	for entry := range v.entries {
		row := uint32(entry)
		if v.rows != nil {
			row = v.rows[entry]
		}
		first, end := v.span(entry)
		entries.add(row, v.kinds[entry], end-first, partOf(v.fragments, first, end))
	}
	want := entries.sets()
	if v.sets.fields() != len(want) {
		return v.r.damaged(tagVectorSets, "%d row lists, %d expected", v.sets.fields(), len(want))
	}
	for i, w := range want {
		l, ok := v.sets.rows(i)
		if !ok || v.sets.field(i) != w.field {
			return v.r.damaged(tagVectorSets, "list %d is not that of %d", i, w.field)
		}
		rows, err := v.r.verifyRows(tagVectorSets, l, v.r.rows)
		if err != nil {
			return err
		}
		if !slices.Equal(rows, w.value.appendTo(nil)) {
			return v.r.damaged(tagVectorSets, "the rows of list %d are not those of the entries", w.field)
		}
	}
	return nil
}

// verifyCodes compares the codes with the full rows. Kernels round differently when they compute norms, so a code may differ by one.
func (v *Vectors) verifyCodes() error {
	if v.codes == nil {
		return nil
	}
	for i, vector := range v.outliers {
		if int(vector) >= v.vectors || i > 0 && vector <= v.outliers[i-1] {
			return v.r.damaged(tagCodes, "outlier %d is vector %d of %d", i, vector, v.vectors)
		}
	}
	var normal, wide []float32
	var want []int8
	stride := v.quantizer.Stride()
	for i := range v.vectors {
		full := v.shape.numbers(wide, v.bytes(i, i+1))
		if v.shape.Half {
			wide = full
		}
		if _, listed := slices.BinarySearch(v.outliers, uint32(i)); !listed && isShort(full) {
			return v.r.damaged(tagCodes, "vector %d is short and no outlier", i)
		}
		normal = appendNormal(normal[:0], full)
		want = v.quantizer.AppendCode(want[:0], normal)
		got := v.codes[i*stride : (i+1)*stride]
		if bytes.Equal(bytesOf(got), bytesOf(want)) {
			continue
		}
		for j := range want {
			if d := int(got[j]) - int(want[j]); d < -1 || d > 1 || d != 0 && j >= v.shape.Dimensions {
				return v.r.damaged(tagCodes, "vector %d has code %d, %d expected, in dimension %d", i, got[j], want[j], j)
			}
		}
	}
	return nil
}

// verifySigns compares the signs with the codes.
func (v *Vectors) verifySigns() error {
	var want []uint64
	stride := v.quantizer.Stride()
	for i := range len(v.signs.Words) / max(v.signs.Stride, 1) {
		want = ann.AppendSigns(want[:0], v.codes[i*stride:(i+1)*stride], v.centre)
		if got := v.signs.Words[i*v.signs.Stride : (i+1)*v.signs.Stride]; !slices.Equal(got, want) {
			return v.r.damaged(v.signsAre, "vector %d has signs %016x, %016x expected", i, got, want)
		}
	}
	return nil
}
