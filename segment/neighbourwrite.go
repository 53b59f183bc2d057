package segment

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"svc/internal/mapped"
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

// add returns by how many bytes the code has grown.
func (p *pairRows) add(row uint32) int {
	if p.count > 0 && row == p.last {
		return 0
	}
	p.mixed = p.mixed || p.count > 0 && row < p.last
	was := len(p.code)
	p.code = binary.AppendVarint(p.code, int64(row)-int64(p.last))
	p.last = row
	p.count++
	return len(p.code) - was
}

// pairTable has the rows of all pairs of words in a field. Beyond pairTableBytes their codes are in a file.
type pairTable struct {
	words int
	pairs []pairRows // by number of the first word, then of the second
	bytes int        // of their codes

	place func() (*mapped.Spool, error)
	spool *mapped.Spool
	parts []pairPart
}

// pairPart has the codes of all pairs, as they were until then, one after the other.
type pairPart struct {
	at   int64    // in the spool
	ends []uint32 // from there, by pair
}

// pairTableBytes is from how many bytes on what pairs have goes to a file. (A variable, so that tests can lower it.)
var pairTableBytes = 4 << 20

func (t *pairTable) add(first, second int, row uint32) {
	t.bytes += t.pairs[first*t.words+second].add(row)
}

// spill brings codes into the file when they are many.
func (t *pairTable) spill() (err error) {
	if t.bytes < pairTableBytes {
		return nil
	}
	if t.spool == nil {
		if t.spool, err = t.place(); err != nil {
			return err
		}
	}
	part := pairPart{at: t.spool.Len(), ends: make([]uint32, len(t.pairs))}
	buffer := make([]byte, 0, writeBufferBytes)
	end := uint32(0)
	for i := range t.pairs {
		p := &t.pairs[i]
		if len(buffer)+len(p.code) > cap(buffer) {
			if _, err := t.spool.Write(buffer); err != nil {
				return err
			}
			buffer = buffer[:0]
		}
		buffer = append(buffer, p.code...)
		end += uint32(len(p.code))
		part.ends[i] = end
		p.code = p.code[:0]
	}
	t.parts, t.bytes = append(t.parts, part), 0
	_, err = t.spool.Write(buffer)
	return err
}

// each calls f for each pair with rows, in order, with the rows, and empties the table.
func (t *pairTable) each(f func(first, second int, rows []uint32) error) (err error) {
	var spooled []byte
	if len(t.parts) > 0 {
		if spooled, err = t.spool.Bytes(); err != nil {
			return err
		}
	}
	var rows []uint32
	for i := range t.pairs {
		p := &t.pairs[i]
		if p.count == 0 {
			continue
		}
		rows = rows[:0]
		row := int64(0)
		decode := func(code []byte) {
			for len(code) > 0 {
				d, n := binary.Varint(code)
				code = code[n:]
				row += d
				rows = append(rows, uint32(row))
			}
		}
		for _, part := range t.parts {
			from := uint32(0)
			if i > 0 {
				from = part.ends[i-1]
			}
			decode(spooled[part.at:][from:part.ends[i]])
		}
		decode(p.code)
		if p.mixed {
			slices.Sort(rows)
			rows = slices.Compact(rows)
		}
		*p = pairRows{code: p.code[:0]}
		if err := f(i/t.words, i%t.words, rows); err != nil {
			return err
		}
	}
	t.parts, t.bytes = nil, 0
	return nil
}

// fieldsOf returns the fields that the words stand in, ascending.
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

// eachPair calls f for each field and two of some words of which one stands behind the other there, with the rows, in the order of
// keys. What it needs beyond a little memory is in a file of place.
func eachPair(sources []neighbourSource, words int, place func() (*mapped.Spool, error), check func() error, f func(key uint32, rows []uint32) error) (err error) {
	t := pairTable{words: words, pairs: make([]pairRows, words*words), place: place}
	defer func() { err = errors.Join(err, t.spool.Close()) }()
	for _, field := range fieldsOf(sources) {
		for i := range sources {
			err := sources[i].eachNeighbour(field, check, t.spill, t.add)
			if err != nil {
				return err
			}
		}
		if err := t.each(func(first, second int, rows []uint32) error { return f(neighbourKey(field, first, second), rows) }); err != nil {
			return err
		}
	}
	return nil
}

// eachNeighbour calls add for each two words of which one stands behind the other in a field, with the row, in the order of the source's
// rows; a row may come several times. It calls check every some thousand rows of a word, and after those of all words done.
func (s *neighbourSource) eachNeighbour(field FieldID, check, done func() error, add func(first, second int, row uint32)) error {
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
		window = window[:0]
		for row := from; row < min(from+neighbourWindow, s.rows); row++ {
			window = append(window, uint32(row))
		}
		order = order[:0] // index of the row in bits 24 and up, position, word
		for _, p := range places {
			if err := check(); err != nil {
				return err
			}
			occurrences = p.AppendOccurrences(occurrences[:0], window, 0)
			for _, o := range occurrences {
				order = append(order, o<<8|uint64(p.word))
			}
		}
		order, sorted = sortByRow(order, sorted)
		for i, o := range order {
			if i%askEvery == 0 {
				if err := check(); err != nil {
					return err
				}
			}
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
					add(int(o&0xff), int(next&0xff), row)
				}
			}
		}
		if err := done(); err != nil {
			return err
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
func writeNeighbours(f *fileWriter, words []frequentWord, sources []neighbourSource, check func() error) (err error) {
	if len(words) == 0 {
		return nil
	}
	type entry struct {
		key                 uint32
		count, offset, size int
	}
	var entries []entry
	var lists []byte // behind those in the spool
	var spool *mapped.Spool
	defer func() { err = errors.Join(err, spool.Close()) }()
	spooled := 0 // bytes, a multiple of postingAlign
	if err := eachPair(sources, len(words), f.newSpool, check, func(key uint32, rows []uint32) error {
		f.worked(wordWork + len(rows))
		for len(lists)%postingAlign != 0 {
			lists = append(lists, 0)
		}
		if len(lists) >= pairTableBytes {
			if spool == nil {
				if spool, err = f.newSpool(); err != nil {
					return err
				}
			}
			if _, err := spool.Write(lists); err != nil {
				return err
			}
			spooled += len(lists)
			lists = lists[:0]
		}
		at := len(lists)
		var code int
		lists, code = rowlist.Append(lists, rows)
		entries = append(entries, entry{key, len(rows), spooled + at, (len(lists)-at)<<1 | code})
		return nil
	}); err != nil {
		return err
	}
	base := neighbourHeadBytes + len(words)*neighbourWordBytes + len(entries)*neighbourEntryBytes
	base += -base & (postingAlign - 1)
	if base+spooled+len(lists) > math.MaxInt32 {
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
	if spool != nil {
		before, err := spool.Bytes()
		if err != nil {
			return err
		}
		f.Write(before)
	}
	f.Write(lists)
	f.end()
	return nil
}
