package segment

import (
	"math"
	"slices"

	"svc/segment/rowlist"
)

// neighbourSource has the postings of the words, in their order, of some rows of the output.
type neighbourSource struct {
	postings []Posting
	rows     int
	to       []uint32 // row → row of the output, or noRow; nil when they are the same
}

// fieldsOf returns the fields that contain the words, ascending.
func fieldsOf(sources []neighbourSource) []FieldID {
	var fields []FieldID
	for _, s := range sources {
		for _, p := range s.postings {
			for k := range p.Fields() {
				fields = append(fields, p.Field(k).ID())
			}
		}
	}
	slices.Sort(fields)
	return slices.Compact(fields)
}

// wordWalk goes through the occurrences of a word in a field.
type wordWalk struct {
	word      uint16
	rows      rowlist.Walk
	positions []byte // of the rows that come
}

// appendBelow appends, for each position in the rows below end, row << 32 | position << 16 | word. Occurrences of more rows are not
// wanted once there are more than most.
func (w *wordWalk) appendBelow(dst []uint64, end uint32, most int, buf *[]uint32) []uint64 {
	*buf = w.rows.AppendBelow((*buf)[:0], end)
	p := w.positions
	for _, row := range *buf {
		o := uint64(row)<<32 | uint64(w.word)
		if len(p) > 0 && p[0] >= endOfRow|endOfNumber { // one position below 64
			dst = append(dst, o|uint64(p[0]&payload)<<16)
			p = p[1:]
			continue
		}
		for next, v, shift := uint32(0), uint32(0), 0; len(p) > 0; {
			b := p[0]
			p = p[1:]
			v |= uint32(b&payload) << (shift & 31)
			shift += 6
			if b&endOfNumber != 0 {
				next += v
				dst = append(dst, o|uint64(uint16(next))<<16)
				next++
				v, shift = 0, 0
			}
			if b&endOfRow != 0 {
				break
			}
		}
		if len(dst) > most {
			break
		}
	}
	w.positions = p
	return dst
}

const (
	// Occurrences are sorted by row in windows of this many rows, or fewer if they have more occurrences.
	neighbourWindow = 1024
	noSlot          = math.MaxUint16 // no word
)

// windowOccurrences is how many occurrences are sorted at once, unless one row has more. (A variable, so that tests can lower it.)
var windowOccurrences = 128 << 10

// eachNeighbour calls add for each pair of adjacent words in a field, with the row, in the order of the source's rows. A
// row may repeat. It calls step now and then, with the number of occurrences read since.
func (s *neighbourSource) eachNeighbour(field FieldID, step func(n int) error, add func(first, second int, row uint32) error) error {
	var walks []wordWalk
	for w, p := range s.postings {
		if f, ok := p.Find(field); ok {
			walks = append(walks, wordWalk{word: uint16(w), rows: f.rows.Walk(), positions: f.positions[f.skips:]})
		}
	}
	if len(walks) == 0 {
		return nil
	}
	var order, sorted []uint64
	var rows []uint32
	before := make([]wordWalk, len(walks))
	line := newWordLine()
	unasked := 0
	worked := func(n int) error {
		if unasked += n; unasked < askEvery {
			return nil
		}
		n, unasked = unasked, 0
		return step(n)
	}
	for from, window := 0, neighbourWindow; from < s.rows; {
		to := min(from+window, s.rows)
		order = order[:0]
		copy(before, walks)
		for i := range walks {
			n := len(order)
			order = walks[i].appendBelow(order, uint32(to), windowOccurrences, &rows)
			if err := worked(1 + len(order) - n); err != nil {
				return err
			}
			if len(order) > windowOccurrences && to-from > 1 {
				break
			}
		}
		if len(order) > windowOccurrences && to-from > 1 { // texts are long here
			copy(walks, before)
			window = (to - from) / 2
			continue
		}
		order, sorted = sortByRow(order, sorted, from, to-from)
		for rest := order; len(rest) > 0; {
			row, n := rest[0]>>32, 1
			for n < len(rest) && rest[n]>>32 == row {
				n++
			}
			of := rest[:n]
			rest = rest[n:]
			if s.to != nil {
				if row >= uint64(len(s.to)) || s.to[row] == noRow {
					continue
				}
				row = uint64(s.to[row])
			}
			if err := line.pairs(of, uint32(row), add); err != nil {
				return err
			}
			if err := worked(n); err != nil {
				return err
			}
		}
		from = to
		if len(order) < windowOccurrences/4 {
			window = min(2*window, neighbourWindow)
		}
	}
	return step(unasked)
}

// sortByRow sorts occurrences by row, within rows rows from from; it is stable, and drops occurrences of other rows,
// which only damage produces. It returns the sorted slice (the former spare) and the other one.
func sortByRow(order, spare []uint64, from, rows int) (sorted, used []uint64) {
	var ends [neighbourWindow]int
	for _, o := range order {
		if row := int(o>>32) - from; uint(row) < uint(rows) {
			ends[row]++
		}
	}
	at := 0
	for row, n := range ends[:rows] {
		ends[row] = at
		at += n
	}
	spare = slices.Grow(spare[:0], at)[:at]
	for _, o := range order {
		if row := int(o>>32) - from; uint(row) < uint(rows) {
			spare[ends[row]] = o
			ends[row]++
		}
	}
	return spare, order
}

// wordLine has the words of a row by position: quicker than to sort them.
type wordLine struct {
	at [1<<16 + 1]uint16 // word, or noSlot; none behind the last position
}

func newWordLine() *wordLine {
	l := new(wordLine)
	for i := range l.at {
		l.at[i] = noSlot
	}
	return l
}

// pairs calls add for each two words that are neighbours among the occurrences of a row. It may reorder the occurrences.
func (l *wordLine) pairs(of []uint64, row uint32, add func(first, second int, row uint32) error) (err error) {
	shared := false // two words stand at one position
	for _, o := range of {
		slot := &l.at[uint16(o>>16)]
		shared = shared || *slot != noSlot
		*slot = uint16(o)
	}
	if !shared {
		for _, o := range of {
			if next := l.at[int(uint16(o>>16))+1]; next != noSlot && err == nil {
				err = add(int(uint16(o)), int(next), row)
			}
		}
	}
	for _, o := range of {
		l.at[uint16(o>>16)] = noSlot
	}
	if !shared {
		return err
	}
	slices.Sort(of) // by position, as they are of one row
	for i, o := range of {
		for _, next := range of[i+1:] {
			behind := next>>16 - o>>16
			if behind > 1 {
				break
			}
			if behind == 1 {
				if err := add(int(uint16(o)), int(uint16(next)), row); err != nil {
					return err
				}
			}
		}
	}
	return nil
}
