package rowlist

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
)

// OrAll returns the rows of all sets, which it does not change. It may return one of them. The union is made at once: Or for one set after
// the other would make a set each time. Without sets it returns nil.
func OrAll(sets []*roaring.Bitmap) *roaring.Bitmap {
	switch {
	case len(sets) == 0:
		return nil
	case len(sets) == 1:
		return sets[0]
	case len(sets) == 2:
		return Or(sets[0], sets[1])
	case !slices.ContainsFunc(sets, (*roaring.Bitmap).HasRunCompression):
		return flatOrAll(sets)
	}
	all := roaring.Or(sets[0], sets[1])
	for _, b := range sets[2:] {
		all.Or(b)
	}
	return all
}

// flatOrAll is OrAll of at least two sets without runs, with a flat result.
func flatOrAll(sets []*roaring.Bitmap) *roaring.Bitmap {
	m := combineMemories.Get().(*combineMemory)
	defer m.release()
	var few [16]*bitmapLayout
	left, most := few[:0], 0 // of each set the layout, and the containers that were not combined yet
	var fewAt [len(few)]int
	at := slices.Grow(fewAt[:0], len(sets))[:len(sets)]
	for _, b := range sets {
		l := layoutOf(b)
		left, most = append(left, l), most+len(l.keys)
	}
	w := newSetWriter(min(maxContainers, most))
	defer setWriters.Put(w)
	for {
		key, n, values, arrays := maxContainers, 0, 0, true // the lowest key, and what the sets have of it
		for i, l := range left {
			if at[i] < len(l.keys) {
				key = min(key, int(l.keys[at[i]]))
			}
		}
		if key == maxContainers {
			break
		}
		for i, l := range left {
			if at[i] < len(l.keys) && int(l.keys[at[i]]) == key {
				c := m.all.at(n).enter(l, at[i])
				n, values, arrays = n+1, values+c.card, arrays && c.kind == containerArray
				at[i]++
			}
		}
		m.orAll(w, m.all[:n], arrays && values <= mergeMost)
	}
	clear(m.all)
	if set, ok := w.set(); ok {
		return set
	}
	return roaring.FastOr(sets...)
}

// cursors are at containers that are combined.
type cursors []RoaringCursor

// at returns a cursor, which may be the next one.
func (c *cursors) at(i int) *RoaringCursor {
	if i == len(*c) {
		*c = append(*c, RoaringCursor{})
	}
	return &(*c)[i]
}

// orAll adds the values of any of some containers of the same key. few says that they are arrays of at most mergeMost values together.
func (m *combineMemory) orAll(w *setWriter, all []RoaringCursor, few bool) {
	switch {
	case len(all) == 1:
		w.copy(&all[0])
	case len(all) == 2:
		m.or(w, &all[0], &all[1])
	case few:
		merged, spare := m.merged[0][:], m.merged[1][:]
		n := copy(merged, all[0].p) / 2
		for i := range all[1 : len(all)-1] {
			n = mergeValues(spare, merged[:2*n], all[i+1].p)
			merged, spare = spare, merged
		}
		n = mergeValues(w.room(), merged[:2*n], all[len(all)-1].p)
		w.add(int(all[0].key), n, 2*n)
	default:
		bits := m.bits[0][:]
		for i := range all {
			all[i].mark(bits)
		}
		w.addBits(int(all[0].key), bits)
		clear(bits)
	}
}
