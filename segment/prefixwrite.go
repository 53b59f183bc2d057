package segment

import (
	"encoding/binary"
	"slices"
)

// prefixWriter writes the postings of short prefixes. It is fed with the
// fields of every word in byte order, or of every longer prefix, and unites
// them: occurrences are gathered as numbers, sorted and written without repetition.
type prefixWriter struct {
	keys    []byte // the table, by ascending key at the end
	entries []prefixEntry
	post    postingWriter
}

type prefixEntry struct{ key, offset uint64 }

// occurrence packs row and position so that they sort in that order.
type occurrence uint64

func newOccurrence(row uint32, position uint16) occurrence {
	return occurrence(row)<<16 | occurrence(position)
}

// union gathers the occurrences of several words field by field.
type union struct {
	fields map[FieldID][]occurrence
	spare  [][]occurrence
	order  []FieldID
	aux    []occurrence
	rows   []uint32
	pos    []byte
	out    []fieldRows
}

// add adds the rows of one word in a field.
func (u *union) add(f FieldID, rows []uint32, positions []byte) {
	if u.fields == nil {
		u.fields = map[FieldID][]occurrence{}
	}
	list, ok := u.fields[f]
	if !ok {
		u.order = append(u.order, f)
		if n := len(u.spare); n > 0 {
			list, u.spare = u.spare[n-1], u.spare[:n-1]
		}
	}
	next, v, shift, i := uint32(0), uint32(0), 0, 0
	for _, b := range positions {
		v |= uint32(b&payload) << shift
		shift += 6
		if b&endOfNumber == 0 {
			continue
		}
		next += v
		list = append(list, newOccurrence(rows[i], uint16(next)))
		next++
		v, shift = 0, 0
		if b&endOfRow != 0 {
			next = 0
			i++
		}
	}
	u.fields[f] = list
}

// take returns the union, ascending by field, valid until the next call of add, and empties u.
func (u *union) take() []fieldRows {
	slices.Sort(u.order)
	u.rows, u.pos, u.out = u.rows[:0], u.pos[:0], u.out[:0]
	type span struct{ r0, r1, p0, p1 int }
	spans := make([]span, 0, 8)
	for _, f := range u.order {
		list := u.fields[f]
		list, u.aux = sortOccurrences(list, u.aux)
		s := span{r0: len(u.rows), p0: len(u.pos)}
		last := occurrence(1<<64 - 1)
		next := uint32(0)
		for _, o := range list {
			if o == last {
				continue
			}
			if row := uint32(o >> 16); uint32(last>>16) != row || last == 1<<64-1 {
				if len(u.rows) > s.r0 {
					u.pos[len(u.pos)-1] |= endOfRow
				}
				u.rows = append(u.rows, row)
				next = 0
			}
			last = o
			p := uint32(o & 0xffff)
			u.pos = appendNumber(u.pos, p-next)
			next = p + 1
		}
		u.pos[len(u.pos)-1] |= endOfRow
		s.r1, s.p1 = len(u.rows), len(u.pos)
		spans = append(spans, s)
		u.spare = append(u.spare, list[:0])
	}
	for i, f := range u.order {
		s := spans[i]
		u.out = append(u.out, fieldRows{id: f, rows: u.rows[s.r0:s.r1], positions: u.pos[s.p0:s.p1]})
	}
	clear(u.fields)
	u.order = u.order[:0]
	return u.out
}

const radixBits = 11

// sortOccurrences sorts by least significant digits first, skipping the
// digits in which all are equal. It returns the sorted list and the other buffer.
func sortOccurrences(list, aux []occurrence) (sorted, other []occurrence) {
	if len(list) < 256 {
		slices.Sort(list)
		return list, aux
	}
	var all occurrence
	for _, o := range list {
		all |= o ^ list[0]
	}
	aux = slices.Grow(aux[:0], len(list))[:len(list)]
	for shift := 0; all>>shift != 0; shift += radixBits {
		const mask = 1<<radixBits - 1
		if all>>shift&mask == 0 {
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
