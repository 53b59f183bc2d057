package segment

import (
	"fmt"
	"math"
)

// embedder returns the vectors that the section is about.
func (i *inspector) embedder() *Vectors { return i.r.Vectors(EmbedderID(i.aux)) }

func (i *inspector) vectors() {
	v := i.embedder()
	i.field(4, "%d dimensions", v.shape.Dimensions)
	flags := i.u32()
	i.field(4, "flags: binary %v, one vector an entry %v, fragments %v, half precision %v",
		flags&vectorsBinary != 0, flags&vectorsOneEach != 0, flags&vectorsFragments != 0, flags&vectorsHalf != 0)
	i.field(4, "%d entries", v.entries)
	i.field(4, "%d vectors", v.vectors)
	i.field(vectorHeadBytes-i.at, "padding")
	end := i.at + len(v.full)
	i.t.List(v.vectors, inspectItems, func(n int) {
		row := v.bytes(n, n+1)
		if v.shape.Binary {
			i.field(len(row), "vector %d of row %d: bits %016x", n, v.owner(n), alias[uint64](row))
		} else {
			full := v.shape.numbers(nil, row)
			i.field(len(row), "vector %d of row %d: %v", n, v.owner(n), full[:min(len(full), 8)])
		}
	})
	i.at = end
	if n := len(v.full) % 4; n > 0 {
		i.field(4-n, "padding")
	}
	i.numbers(len(v.rows), func(n int) { i.field(4, "entry %d: row %d", n, i.u32()) })
	i.numbers(len(v.ends), func(n int) { i.field(4, "the vectors of entry %d end at %d", n, i.u32()) })
	i.numbers(len(v.owners), func(n int) { i.field(4, "vector %d: row %d", n, i.u32()) })
	if n := len(v.fragments); n > 0 {
		end := i.at + (2*n+3)/4*4
		i.t.List(n, inspectItems, func(n int) {
			if f := v.fragments[n]; f == noFragment {
				i.field(2, "vector %d: no fragment", n)
			} else {
				i.field(2, "vector %d: fragment %d", n, f)
			}
		})
		if n%2 > 0 {
			i.field(end-i.at, "padding")
		}
		i.at = end
	}
	i.t.List(v.entries, inspectItems, func(n int) {
		kind := v.kinds[n]
		i.field(1, "entry %d: regenerate %v, given %v", n, kind&kindRegenerate != 0, kind&kindGiven != 0)
	})
}

// numbers prints n numbers of 32 bits.
func (i *inspector) numbers(n int, print func(n int)) {
	end := i.at + 4*n
	i.t.List(n, inspectItems, print)
	i.at = end
}

func (i *inspector) codes() {
	v := i.embedder()
	stride := v.quantizer.Stride()
	i.field(4, "%d dimensions", i.u32())
	i.field(4, "%d bytes a row of codes", i.u32())
	i.field(4, "%d vectors", i.u32())
	i.field(4, "scale %v", math.Float32frombits(i.u32()))
	i.field(4, "mean cosine %v", math.Float32frombits(i.u32()))
	i.field(codeHeadBytes-i.at, "padding")
	end := i.at + len(v.codes)
	i.t.List(v.vectors, inspectItems, func(n int) {
		codes := v.codes[n*stride:]
		i.field(stride, "vector %d: %d", n, codes[:min(stride, 16)])
	})
	i.at = end
	i.numbers(len(v.outliers), func(int) { i.field(4, "vector %d is an outlier", i.u32()) })
}

func (i *inspector) signs() {
	v := i.embedder()
	if v.signsAre == tagWideSigns {
		i.field(4, "%d rows kept", i.u32())
		i.field(4, "of %d rows of a sample", i.u32())
		i.field(wideHeadBytes-i.at, "padding")
	}
	if v.centred {
		i.field(len(v.centre), "centre: %d", v.centre[:min(len(v.centre), 16)])
	}
	stride, p := 8*v.signs.Stride, i.p[i.at:]
	i.t.List(len(p)/max(stride, 1), inspectItems, func(n int) {
		i.field(stride, "vector %d: below the centre at %016x", n, alias[uint64](p[n*stride:(n+1)*stride]))
	})
}

func (i *inspector) graph() {
	g, err := i.embedder().wholeGraph()
	if err != nil {
		i.t.Note("%v", err)
		return
	}
	i.field(len(i.p), "graph over %d vectors, as the package ann writes it", g.Rows())
}

// vectorSets prints the row lists of what vectors are.
func (i *inspector) vectorSets() {
	i.rowsByField(&i.embedder().sets, func(f FieldID) string {
		if f < fragmentSets {
			return [...]string{"with a vector", "given", "to regenerate"}[f]
		}
		return fmt.Sprintf("fragment %d", f-fragmentSets)
	})
}
