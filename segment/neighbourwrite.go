package segment

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"svc/segment/rowlist"
)

// frequentWord is a word whose neighbours may be written.
type frequentWord struct {
	word    []byte
	offset  uint64 // of its posting
	rows    int    // in the field where it has most
	posting []byte // the posting, from base on; nil where it can be read elsewhere
	base    int
}

// frequentWords gathers them while postings are written.
type frequentWords struct {
	least int  // rows
	keep  bool // the postings
	list  []frequentWord
}

func newFrequentWords(rows int, keep bool) *frequentWords {
	return &frequentWords{least: max(NeighbourRows, rows/neighbourShare), keep: keep}
}

// add is told of a word in byte order. posting is its code, from base on.
func (q *frequentWords) add(word []byte, fields []fieldRows, offset uint64, posting []byte, base int) {
	most := 0
	for _, f := range fields {
		most = max(most, len(f.rows))
	}
	if most < q.least {
		return
	}
	w := frequentWord{word: bytes.Clone(word), offset: offset, rows: most, base: base}
	if q.keep {
		w.posting = bytes.Clone(posting)
	}
	q.list = append(q.list, w)
}

// choose returns the most frequent ones, in byte order, and forgets them all.
func (q *frequentWords) choose() []frequentWord {
	list := q.list
	q.list = nil
	if len(list) > maxNeighbourWords {
		slices.SortStableFunc(list, func(a, b frequentWord) int { return cmp.Compare(b.rows, a.rows) })
		list = list[:maxNeighbourWords]
		slices.SortFunc(list, func(a, b frequentWord) int { return cmp.Compare(a.offset, b.offset) })
	}
	return list
}

// neighbourSource has the postings of the words, in their order, of some rows of the output.
type neighbourSource struct {
	postings []Posting
	rows     int
	to       []uint32 // row → row of the output, or noRow; nil when they are the same
}

// neighbourWindow is of how many rows occurrences are brought into order at once.
const neighbourWindow = 4096

// pairRows are the rows of a pair: zigzag varints, each the distance to the one before.
type pairRows struct {
	code  []byte
	last  uint32
	count int
	mixed bool // they do not ascend
}

func (p *pairRows) add(row uint32) {
	if p.count > 0 && row == p.last {
		return
	}
	p.mixed = p.mixed || p.count > 0 && row < p.last
	p.code = binary.AppendVarint(p.code, int64(row)-int64(p.last))
	p.last = row
	p.count++
}

// appendTo appends the rows in ascending order.
func (p *pairRows) appendTo(dst []uint32) []uint32 {
	begin := len(dst)
	row := int64(0)
	for code := p.code; len(code) > 0; {
		d, n := binary.Varint(code)
		code = code[n:]
		row += d
		dst = append(dst, uint32(row))
	}
	if p.mixed {
		slices.Sort(dst[begin:])
		dst = dst[:begin+len(slices.Compact(dst[begin:]))]
	}
	return dst
}

// eachPair calls f for each field and two words of which one stands behind the other there, with the rows, in the order of keys.
func eachPair(sources []neighbourSource, check func() error, f func(key uint32, rows []uint32) error) error {
	var fields []FieldID
	words := 0
	for _, s := range sources {
		words = max(words, len(s.postings))
		for _, p := range s.postings {
			for k := range p.Fields() {
				fields = append(fields, p.Field(k).ID())
			}
		}
	}
	slices.Sort(fields)
	pairs := make([]pairRows, words*words)
	var rows []uint32
	for _, field := range slices.Compact(fields) {
		for i := range sources {
			if err := sources[i].addPairs(pairs, words, field, check); err != nil {
				return err
			}
		}
		for i := range pairs {
			p := &pairs[i]
			if p.count == 0 {
				continue
			}
			rows = p.appendTo(rows[:0])
			*p = pairRows{code: p.code[:0]}
			if err := f(neighbourKey(field, i/words, i%words), rows); err != nil {
				return err
			}
		}
	}
	return nil
}

// addPairs adds the pairs of a field.
func (s *neighbourSource) addPairs(pairs []pairRows, words int, field FieldID, check func() error) error {
	type place struct {
		word int
		FieldPosting
	}
	var places []place
	for w, p := range s.postings {
		if fp, ok := p.Find(field); ok {
			places = append(places, place{w, fp})
		}
	}
	var occurrences, order, sorted []uint64
	window := make([]uint32, 0, neighbourWindow)
	for from := 0; from < s.rows && len(places) > 0; from += neighbourWindow {
		if err := check(); err != nil {
			return err
		}
		window = window[:0]
		for row := from; row < min(from+neighbourWindow, s.rows); row++ {
			window = append(window, uint32(row))
		}
		order = order[:0] // index of the row in bits 24 and up, position, word
		for _, p := range places {
			occurrences = p.AppendOccurrences(occurrences[:0], window, 0)
			for _, o := range occurrences {
				order = append(order, o<<8|uint64(p.word))
			}
		}
		order, sorted = sortByRow(order, sorted)
		for i, o := range order {
			row := window[o>>24]
			if s.to != nil {
				if int(row) >= len(s.to) || s.to[row] == noRow {
					continue
				}
				row = s.to[row]
			}
			// Several words may stand at one position.
			for _, next := range order[i+1:] {
				if next>>8 > o>>8+1 {
					break
				}
				if next>>8 == o>>8+1 && next>>24 == o>>24 {
					pairs[int(o&0xff)*words+int(next&0xff)].add(row)
				}
			}
		}
	}
	return nil
}

// sortByRow sorts numbers whose bits 24 and up are below neighbourWindow. It returns them in the spare slice, and the other one.
func sortByRow(order, spare []uint64) (sorted, used []uint64) {
	var ends [neighbourWindow]int
	for _, o := range order {
		ends[o>>24]++
	}
	at := 0
	for row, n := range ends {
		ends[row] = at
		at += n
	}
	spare = slices.Grow(spare[:0], len(order))[:len(order)]
	for _, o := range order {
		row := o >> 24
		spare[ends[row]] = o
		ends[row]++
	}
	begin := 0
	for _, end := range ends {
		slices.Sort(spare[begin:end])
		begin = end
	}
	return spare, order
}

// writeNeighbours writes the section; none when there is no word, or more than a section holds.
func writeNeighbours(f *fileWriter, words []frequentWord, sources []neighbourSource, check func() error) error {
	if len(words) == 0 {
		return nil
	}
	type entry struct {
		key                 uint32
		count, offset, size int
	}
	var entries []entry
	var lists []byte
	err := eachPair(sources, check, func(key uint32, rows []uint32) error {
		for len(lists)%postingAlign != 0 {
			lists = append(lists, 0)
		}
		at := len(lists)
		var code int
		lists, code = rowlist.Append(lists, rows)
		entries = append(entries, entry{key, len(rows), at, (len(lists)-at)<<1 | code})
		return nil
	})
	if err != nil {
		return err
	}
	base := neighbourHeadBytes + len(words)*neighbourWordBytes + len(entries)*neighbourEntryBytes
	base += -base & (postingAlign - 1)
	if base+len(lists) > math.MaxInt32 {
		return nil
	}
	head := make([]byte, neighbourHeadBytes, base)
	binary.LittleEndian.PutUint32(head, uint32(len(words)))
	binary.LittleEndian.PutUint32(head[4:], uint32(len(entries)))
	for _, w := range words {
		head = binary.LittleEndian.AppendUint64(head, w.offset)
	}
	for _, e := range entries {
		head = binary.LittleEndian.AppendUint16(head, uint16(e.key>>16))
		head = append(head, byte(e.key>>8), byte(e.key))
		head = binary.LittleEndian.AppendUint32(head, uint32(e.count))
		head = binary.LittleEndian.AppendUint32(head, uint32(base+e.offset))
		head = binary.LittleEndian.AppendUint32(head, uint32(e.size))
	}
	f.begin(tagNeighbours, 0)
	f.Write(head[:base])
	f.Write(lists)
	f.end()
	return nil
}
