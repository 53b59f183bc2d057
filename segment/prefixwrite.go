package segment

import (
	"encoding/binary"
	"slices"
)

// prefixWriter writes the postings of short prefixes.
type prefixWriter struct {
	entries []prefixEntry
	post    postingWriter
}

type prefixEntry struct{ key, offset uint64 }

// occurrence is a row and a position in it, as numbers that sort in that
// order. The upper 16 bits of the row are apart: they number the window of rows it is in.
type occurrence uint32

const windowRows = 1 << 16

// union gathers the occurrences of several words field by field, as numbers, sorts them and leaves repetitions out. prefixGroup does so for
// many prefixes at once.
type union struct {
	fields []unionField // ascending by id
	spare  []unionField
	aux    []occurrence
	set    occurrenceSet
	rows   []uint32
	pos    []byte
	out    []fieldRows
	worked func(n int) // called for processed occurrences; may be nil
}

// work reports n more processed occurrences.
func (u *union) work(n int) {
	if u.worked != nil {
		u.worked(n)
	}
}

type unionField struct {
	id      FieldID
	windows [][]occurrence
}

// window returns the occurrences in a window.
func (f *unionField) window(n uint32) *[]occurrence {
	for uint32(len(f.windows)) <= n {
		f.windows = append(f.windows, nil)
	}
	return &f.windows[n]
}

// field returns the occurrences of a field.
func (u *union) field(f FieldID) *unionField {
	i, ok := slices.BinarySearchFunc(u.fields, f, func(x unionField, f FieldID) int { return int(x.id) - int(f) })
	if !ok {
		var x unionField
		if n := len(u.spare); n > 0 {
			x, u.spare = u.spare[n-1], u.spare[:n-1]
		}
		x.id = f
		u.fields = slices.Insert(u.fields, i, x)
	}
	return &u.fields[i]
}

// add adds the rows of one word in a field.
func (u *union) add(f FieldID, rows []uint32, positions []byte) {
	if len(rows) == 0 {
		return
	}
	field := u.field(f)
	i := 0
	window, high := rows[0]/windowRows, occurrence(rows[0])<<16
	list := *field.window(window)
	next, v, shift := uint32(0), uint32(0), 0
	for _, b := range positions {
		v |= uint32(b&payload) << shift
		shift += 6
		if b&endOfNumber == 0 {
			continue
		}
		next += v
		list = append(list, high|occurrence(next&0xffff))
		next++
		v, shift = 0, 0
		if b&endOfRow == 0 {
			continue
		}
		next = 0
		if i++; i == len(rows) {
			break
		}
		high = occurrence(rows[i]) << 16
		if w := rows[i] / windowRows; w != window {
			*field.window(window) = list
			window, list = w, *field.window(w)
		}
	}
	*field.window(window) = list
}

// take returns the union, ascending by field, valid until the next call of add, and empties u.
func (u *union) take() []fieldRows {
	u.rows, u.pos, u.out = u.rows[:0], u.pos[:0], u.out[:0]
	type span struct{ r0, r1, p0, p1 int }
	var few [8]span
	spans := few[:0]
	for i := range u.fields {
		s := span{r0: len(u.rows), p0: len(u.pos)}
		for w := range u.fields[i].windows {
			u.sortWindow(&u.fields[i].windows[w], uint32(w)*windowRows)
		}
		s.r1, s.p1 = len(u.rows), len(u.pos)
		spans = append(spans, s)
	}
	for i := range u.fields {
		s := spans[i]
		u.out = append(u.out, fieldRows{id: u.fields[i].id, rows: u.rows[s.r0:s.r1], positions: u.pos[s.p0:s.p1]})
	}
	u.spare = append(u.spare, u.fields...)
	u.fields = u.fields[:0]
	return u.out
}

// sortWindow appends rows and positions of a window that begins at a row, and empties it.
func (u *union) sortWindow(window *[]occurrence, first uint32) {
	if len(*window) == 0 {
		return
	}
	list, dense := u.set.sort(*window)
	if dense {
		u.work(len(list))
	} else {
		list, u.aux = sortOccurrences(*window, u.aux, u.work)
	}
	row, next := uint32(windowRows), uint32(0) // no row of a window has this number
	for i, o := range list {
		if i%askEvery == askEvery-1 {
			u.work(askEvery)
		}
		p := uint32(o & 0xffff)
		if r := uint32(o >> 16); r != row {
			if row != windowRows {
				u.pos[len(u.pos)-1] |= endOfRow
			}
			row, next = r, 0
			u.rows = append(u.rows, first+r)
		} else if p < next {
			continue // the same position again
		}
		u.pos = appendNumber(u.pos, p-next)
		next = p + 1
	}
	u.pos[len(u.pos)-1] |= endOfRow
	*window = list[:0]
}

const radixBits = 11

// sortOccurrences sorts by least significant digits first, skipping digits in which all are equal. It returns the sorted list and the
// other buffer. It calls worked for each pass.
func sortOccurrences(list, aux []occurrence, worked func(n int)) (sorted, other []occurrence) {
	if len(list) < 256 {
		slices.Sort(list)
		return list, aux
	}
	var differ occurrence
	for _, o := range list {
		differ |= o ^ list[0]
	}
	aux = slices.Grow(aux[:0], len(list))[:len(list)]
	for shift := 0; differ>>shift != 0; shift += radixBits {
		const mask = 1<<radixBits - 1
		if differ>>shift&mask == 0 {
			continue
		}
		var count [1 << radixBits]uint32
		for _, o := range list {
			count[o>>shift&mask]++
		}
		at := uint32(0)
		for i, n := range count {
			count[i] = at
			at += n
		}
		for _, o := range list {
			d := o >> shift & mask
			aux[count[d]] = o
			count[d]++
		}
		list, aux = aux, list
		worked(len(list))
	}
	return list, aux
}

// write writes the posting of one prefix.
func (w *prefixWriter) write(key uint64, fields []fieldRows) {
	w.entries = append(w.entries, prefixEntry{key, w.post.write(fields)})
}

// table returns the section of keys.
func (w *prefixWriter) table() []byte {
	slices.SortFunc(w.entries, func(a, b prefixEntry) int {
		if a.key < b.key {
			return -1
		}
		return 1
	})
	b := make([]byte, 0, len(w.entries)*prefixEntryBytes)
	for _, e := range w.entries {
		b = binary.LittleEndian.AppendUint64(b, e.key)
		b = binary.LittleEndian.AppendUint64(b, e.offset)
	}
	return b
}
