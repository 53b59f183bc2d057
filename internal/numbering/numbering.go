// Package numbering numbers the values of a field over all segments of a view. In its column, each segment numbers its own values
// (ordinals). A value that several segments have gets one number here. With these numbers, counting values over segments takes an
// array, and a set of values is a bitmap. No values are compared.
package numbering

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/segment"
)

// Numbers are the numbers of the values of a field, numeric or string values, in the segments of a view.
type Numbers struct {
	Count int // they are below it

	of [][][]uint32 // by segment and chunk of ordinals
}

// Of returns the number of an ordinal of a segment.
func (n *Numbers) Of(seg int, ord uint32) uint32 { return n.of[seg][ord>>chunkBits][ord&chunkMask] }

// Chunks returns the numbers of a segment's ordinals, in their order, part by part.
func (n *Numbers) Chunks(seg int) [][]uint32 { return n.of[seg] }

// Column is what a segment has of the field, or nil. Results are cached in the scope of its file, if there is one.
type Column struct {
	*segment.Column
	Scope *resultcache.Scope
}

// The array is split because a large one would exceed the maximum size of an entry of the cache.
const (
	chunkBits = 15
	chunkMask = 1<<chunkBits - 1
)

var (
	segmentNumbers = resultcache.NewKind[*part]("numbers of the values of a column")
	youngNumbers   = resultcache.NewKind[*added]("numbers of the values of young columns")
)

// keyOf names a chunk of a column: of the strings of a field, or of its numbers.
func keyOf(field segment.FieldID, strings bool, chunk int) []byte {
	key := binary.LittleEndian.AppendUint16(nil, uint16(field))
	kind := byte(0)
	if strings {
		kind = 1
	}
	return binary.LittleEndian.AppendUint32(append(key, kind), uint32(chunk))
}

// base is a numbering of all values of some segments. These keep their parts of it even if other segments disappear.
type base struct{ count int }

// part are the numbers of some ordinals of a segment.
type part struct {
	*base
	numbers []uint32
}

// added are the numbers of segments of a view that are not in the base of the others.
type added struct {
	*base
	count int
	of    [][][]uint32
}

// New numbers the values of the columns of a view's segments. own is the scope of the view, nil if it has none.
func New(columns []Column, field segment.FieldID, strings bool, own *resultcache.Scope) *Numbers {
	n := &numberer{columns: columns, field: field, strings: strings, of: make([][][]uint32, len(columns))}
	n.find()
	var young []int // segments
	var rest, total, parts int
	for i := range columns {
		switch size := n.size(i); {
		case size == 0:
		case n.of[i] != nil:
			total += size
			parts++
		default:
			young = append(young, i)
			total += size
			rest += size
		}
	}
	switch {
	case len(young) == 0 && n.base != nil:
		return &Numbers{n.base.count, n.of}
	case len(young) == 0:
		return &Numbers{of: n.of}
	case n.base != nil && rest*parts*lookUp <= total:
		return n.add(young, own)
	}
	return n.build()
}

// lookUp is how many values are hashed in the time of one lookup of a value in a column.
const lookUp = 10

type numberer struct {
	columns []Column
	field   segment.FieldID
	strings bool
	base    *base
	of      [][][]uint32 // of the segments in the base
}

func (n *numberer) size(seg int) int {
	switch c := n.columns[seg].Column; {
	case c == nil:
		return 0
	case n.strings:
		return c.Strings()
	default:
		return c.Numbers()
	}
}

// find finds the base that most values are in, and the numbers of the segments in it.
func (n *numberer) find() {
	sizes := map[*base]int{}
	for i, c := range n.columns {
		if n.size(i) > 0 && c.Scope != nil {
			if p, ok := segmentNumbers.Get(c.Scope, keyOf(n.field, n.strings, 0)); ok {
				if sizes[p.base] += n.size(i); n.base == nil || sizes[p.base] > sizes[n.base] {
					n.base = p.base
				}
			}
		}
	}
	if n.base == nil {
		return
	}
	for i, c := range n.columns {
		var of [][]uint32
		for from := 0; from < n.size(i) && c.Scope != nil; from += 1 << chunkBits {
			p, ok := segmentNumbers.Get(c.Scope, keyOf(n.field, n.strings, len(of)))
			if !ok || p.base != n.base {
				of = nil
				break
			}
			of = append(of, p.numbers)
		}
		n.of[i] = of
	}
}

// add looks the values of new segments up in the others. The result is cached with the view, because the next view may have other
// segments.
func (n *numberer) add(young []int, own *resultcache.Scope) *Numbers {
	key := keyOf(n.field, n.strings, 0)
	if own != nil {
		if a, ok := youngNumbers.Get(own, key); ok && a.base == n.base && !slices.ContainsFunc(young, func(i int) bool { return a.of[i] == nil }) {
			for _, i := range young {
				n.of[i] = a.of[i]
			}
			return &Numbers{a.count, n.of}
		}
	}
	a := &added{base: n.base, count: n.base.count, of: make([][][]uint32, len(n.columns))}
	size := 64
	for k, of := range n.lookAllUp(young, &a.count) {
		size += 4*len(of) + 64
		a.of[young[k]] = chunks(of)
	}
	if own != nil {
		youngNumbers.Put(own, key, a, size)
	}
	for _, i := range young {
		n.of[i] = a.of[i]
	}
	return &Numbers{a.count, n.of}
}

// lookAllUp numbers the values of segments without numbers: it looks each value up in the segments that have numbers, and gives new
// numbers to the rest.
func (n *numberer) lookAllUp(segments []int, count *int) [][]uint32 {
	freshStrings, freshFloats, freshNumbers := map[string]uint32{}, map[float64]uint32{}, map[numeric.Value]uint32{}
	all := make([][]uint32, len(segments))
	for k, i := range segments {
		of := make([]uint32, n.size(i))
		for ord := range of {
			found, ok := n.lookUp(i, ord)
			switch {
			case ok:
			case n.strings:
				found = number(freshStrings, string(n.columns[i].String(ord)), count)
			default:
				if x := n.columns[i].Number(ord); x.Rest == 0 { // maps of floats are quicker
					found = number(freshFloats, x.Float, count)
				} else {
					found = number(freshNumbers, x, count)
				}
			}
			of[ord] = found
		}
		all[k] = of
	}
	return all
}

// number returns the number of a value, a new one if it has none yet.
func number[V comparable](of map[V]uint32, value V, count *int) uint32 {
	found, ok := of[value]
	if !ok {
		found = uint32(*count)
		*count++
		of[value] = found
	}
	return found
}

// lookUp looks a value of a segment up in those of the base.
func (n *numberer) lookUp(seg, ord int) (uint32, bool) {
	for i, c := range n.columns {
		if n.of[i] == nil || c.Column == nil || i == seg {
			continue
		}
		var at int
		var same bool
		if n.strings {
			value := n.columns[seg].String(ord)
			at = c.SearchString(value)
			same = at < c.Strings() && bytes.Equal(c.String(at), value)
		} else {
			x := n.columns[seg].Number(ord)
			at = c.SearchNumber(x)
			same = at < c.Numbers() && c.Number(at) == x
		}
		if same {
			return n.of[i][at>>chunkBits][at&chunkMask], true
		}
	}
	return 0, false
}

// build makes a new base of all segments.
func (n *numberer) build() *Numbers {
	var order []int // segments, the largest first: most numbers ascend with the ordinals there
	total := 0
	for i := range n.columns {
		n.of[i] = nil
		if size := n.size(i); size > 0 {
			order = append(order, i)
			total += size
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return n.size(b) - n.size(a) })
	b := &base{}
	if largest := order[0]; (total-n.size(largest))*lookUp <= total {
		// One segment has nearly all values, as after a merge: its ordinals are their numbers, and the others are looked up in it.
		of := make([]uint32, n.size(largest))
		for ord := range of {
			of[ord] = uint32(ord)
		}
		b.count = len(of)
		n.of[largest] = chunks(of)
		for k, of := range n.lookAllUp(order[1:], &b.count) {
			n.of[order[1+k]] = chunks(of)
		}
		n.put(order, b)
		return &Numbers{b.count, n.of}
	}
	// Values are matched by hash: half of a hash is in the table beside a number, and first says where the value is.
	shift := 64 - bits.Len(uint(2*total))
	table := make([]uint64, 1<<(64-shift))
	first := make([]uint64, 0, total) // segment and ordinal by number
	for _, seg := range order {
		of := make([]uint32, n.size(seg))
		for ord := range of {
			h := n.hash(seg, ord)
			half := h << 32
			for slot := h >> shift; ; slot = (slot + 1) & uint64(len(table)-1) {
				e := table[slot]
				if e == 0 {
					of[ord] = uint32(len(first))
					first = append(first, uint64(seg)<<32|uint64(ord))
					table[slot] = half | uint64(len(first)) // from 1
					break
				}
				if e&^math.MaxUint32 != half {
					continue
				}
				found := uint32(e) - 1
				at := first[found]
				if other := int(at >> 32); other != seg && n.same(seg, ord, other, int(uint32(at))) {
					of[ord] = found
					break
				}
			}
		}
		n.of[seg] = chunks(of)
	}
	b.count = len(first)
	n.put(order, b)
	return &Numbers{b.count, n.of}
}

// put keeps the numbers of a finished base with the segments.
func (n *numberer) put(segments []int, b *base) {
	for _, seg := range segments {
		for chunk, numbers := range n.of[seg] {
			if scope := n.columns[seg].Scope; scope != nil {
				segmentNumbers.Put(scope, keyOf(n.field, n.strings, chunk), &part{b, numbers}, 4*len(numbers)+64)
			}
		}
	}
}

func (n *numberer) hash(seg, ord int) uint64 {
	if n.strings {
		return xxhash.Sum64(n.columns[seg].String(ord))
	}
	return n.columns[seg].Number(ord).Hash()
}

func (n *numberer) same(seg, ord, other, at int) bool {
	if n.strings {
		return bytes.Equal(n.columns[seg].String(ord), n.columns[other].String(at))
	}
	return n.columns[seg].Number(ord) == n.columns[other].Number(at)
}

func chunks(of []uint32) (all [][]uint32) {
	for c := range slices.Chunk(of, 1<<chunkBits) {
		all = append(all, c)
	}
	return all
}
