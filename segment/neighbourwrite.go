package segment

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"

	"svc/segment/rowlist"
)

// frequentWord is a word whose neighbours may be stored.
type frequentWord struct {
	word    []byte
	offset  uint64 // of its posting
	rows    int    // in the field where it has most
	posting []byte // the posting, from base on; nil where it can be read elsewhere
	base    int
	at      int // of the posting in apart
	size    int // likewise
}

// frequentWords gathers them while postings are written.
type frequentWords struct {
	least int      // rows
	keep  bool     // the postings
	apart *spooled // has the postings; nil: they are in memory
	list  []frequentWord
	err   error // of apart
}

// spellingMark begins the entries of spellings, whose neighbours are not needed.
var spellingMark = []byte{0, 0}

// newFrequentWords collects the frequent words of a segment with the given number of rows. A segment that is too small for pairs gets
// a threshold that no word reaches. keep says whether to clone postings, because they cannot be read from the file being written.
func newFrequentWords(rows int, keep bool) *frequentWords {
	q := &frequentWords{least: max(NeighbourRows, rows/neighbourShare), keep: keep}
	if rows < NeighbourSegmentRows {
		q.least = math.MaxInt
	}
	return q
}

// add is called for each word in byte order. posting is its code, from base on.
func (q *frequentWords) add(word []byte, fields []fieldRows, offset uint64, posting []byte, base int) {
	most := 0
	for _, f := range fields {
		most = max(most, len(f.rows))
	}
	if most < q.least || bytes.HasPrefix(word, spellingMark) {
		return
	}
	w := frequentWord{word: bytes.Clone(word), offset: offset, rows: most, base: base}
	switch {
	case q.keep && q.apart != nil:
		if err := q.apart.write(zeros[:-q.apart.size&(postingAlign-1)]); err != nil && q.err == nil {
			q.err = err
		}
		w.at, w.size = q.apart.size, len(posting)
		if err := q.apart.write(posting); err != nil && q.err == nil {
			q.err = err
		}
	case q.keep:
		w.posting = bytes.Clone(posting)
	}
	if q.list = append(q.list, w); len(q.list) == 2*maxNeighbourWords {
		q.cut()
	}
}

// cut leaves no more of them than are written: the most frequent ones.
func (q *frequentWords) cut() {
	if len(q.list) <= maxNeighbourWords {
		return
	}
	slices.SortStableFunc(q.list, func(a, b frequentWord) int { return cmp.Compare(b.rows, a.rows) })
	clear(q.list[maxNeighbourWords:])
	q.list = q.list[:maxNeighbourWords]
	slices.SortFunc(q.list, func(a, b frequentWord) int { return cmp.Compare(a.offset, b.offset) })
}

// choose returns the most frequent ones, in byte order, and forgets them all.
func (q *frequentWords) choose() []frequentWord {
	q.cut()
	list := q.list
	q.list = nil
	return list
}

// load sets the postings of words that are in a file.
func (q *frequentWords) load(words []frequentWord) error {
	if q.apart == nil || q.err != nil {
		return q.err
	}
	all, err := q.apart.bytes()
	if err != nil {
		return err
	}
	for i := range words {
		w := &words[i]
		w.posting = all[w.at : w.at+w.size]
	}
	return nil
}

// close removes the file of postings, if there is one.
func (q *frequentWords) close() {
	if q != nil && q.apart != nil {
		_ = q.apart.empty() // the next open of the index removes what is left
	}
}

// buildNeighbours computes pairs from the postings that were just written; frequent has copies of them.
func buildNeighbours(_ context.Context, b *Builder, f *fileWriter) error {
	of := neighbourSource{}
	words := b.frequent.choose()
	if err := b.frequent.load(words); err != nil {
		return err
	}
	for _, w := range words {
		p, _ := readPosting(nil, w.posting, uint64(w.base))
		of.postings = append(of.postings, p)
	}
	of.rows = len(b.docIDs)
	return writeNeighbours(f, words, []neighbourSource{of}, func(n int) error {
		f.worked(n)
		return f.err
	})
}

// mergeNeighbours computes the pairs again from the positions of the inputs: pairs of a word that was not
// frequent in an input are stored nowhere.
func (m *merger) mergeNeighbours() error {
	words := m.frequent.choose()
	var sources []neighbourSource
	for i, l := range m.in {
		of := neighbourSource{rows: l.rows, to: m.rows[i]}
		for _, w := range words {
			p, _ := l.Term(w.word) // without fields where the input does not have it
			of.postings = append(of.postings, p)
		}
		sources = append(sources, of)
	}
	return writeNeighbours(m.f, words, sources, func(n int) error {
		m.read(n) // an occurrence has a byte or two
		m.f.worked(n)
		return m.check()
	})
}

// neighbourWriter makes the blocks of the section.
type neighbourWriter struct {
	f     *fileWriter
	lists spooled // and, behind the lists of each block, what stands ahead of them
	head  []byte  // the directory, with offsets from the first block
	size  uint64  // of the blocks

	field         FieldID // of the current block, and its first word
	first         int
	seconds, ends []byte
	length        int // of its lists
	list          []byte
	parts         []neighbourPart
	full          bool // a block has longer lists than can be written
}

// neighbourPart is a block in lists.
type neighbourPart struct{ lists, head int }

// add appends a pair. All pairs of a block are added before those of the next.
func (w *neighbourWriter) add(second int, rows []uint32) error {
	w.list = binary.AppendUvarint(w.list[:0], uint64(len(rows))<<1|rowlist.Delta)
	w.list = rowlist.AppendDelta(w.list, rows)
	if len(rows) >= manyNeighbours || len(w.list) > denseList(rows) {
		w.list = binary.AppendUvarint(w.list[:0], uint64(len(rows))<<1|rowlist.Roaring)
		for (w.length+len(w.list))%postingAlign != 0 {
			w.list = append(w.list, 0)
		}
		w.list = rowlist.AppendRoaring(w.list, rows)
	}
	w.length += len(w.list)
	w.seconds = binary.LittleEndian.AppendUint16(w.seconds, uint16(second))
	w.ends = binary.LittleEndian.AppendUint32(w.ends, uint32(w.length))
	w.full = w.full || w.length > math.MaxUint32
	return w.lists.write(w.list)
}

// manyNeighbours is the number of rows from which a list is in Roaring format, even if that is larger. Only about a hundred lists
// among half a million rows are that long, and decoding such a list takes much of the time of its search.
const manyNeighbours = 8192

// denseList returns how many bytes a list has as a bitmap, at most.
func denseList(rows []uint32) int {
	if len(rows) < rowlist.RoaringFrom {
		return math.MaxInt
	}
	return binary.MaxVarintLen32 + postingAlign - 1 + rowlist.RoaringBytes(rows)
}

// end ends a block.
func (w *neighbourWriter) end() error {
	if w.length == 0 {
		return nil
	}
	head := append(w.seconds, w.ends...)
	for len(head)%postingAlign != 0 {
		head = append(head, 0)
	}
	w.head = binary.LittleEndian.AppendUint16(w.head, uint16(w.field))
	w.head = binary.LittleEndian.AppendUint16(w.head, uint16(w.first))
	w.head = binary.LittleEndian.AppendUint32(w.head, uint32(len(w.ends)/4))
	w.head = binary.LittleEndian.AppendUint64(w.head, w.size)
	padding := -w.length & (postingAlign - 1)
	w.size += uint64(len(head) + w.length + padding)
	w.parts = append(w.parts, neighbourPart{w.length + padding, len(head)})
	w.seconds, w.ends, w.length = head[:0], w.ends[:0], 0
	return errors.Join(w.lists.write(zeros[:padding]), w.lists.write(head))
}

// write writes the section.
func (w *neighbourWriter) write(words []frequentWord) error {
	blocks, err := w.lists.bytes()
	if err != nil {
		return err
	}
	var head []byte
	head = binary.LittleEndian.AppendUint32(head, uint32(len(words)))
	head = binary.LittleEndian.AppendUint32(head, uint32(len(w.parts)))
	for _, of := range words {
		head = binary.LittleEndian.AppendUint64(head, of.offset)
	}
	base := uint64(len(head) + len(w.head))
	for i := range w.parts {
		offset := w.head[i*neighbourBlockBytes+8:]
		binary.LittleEndian.PutUint64(offset, base+binary.LittleEndian.Uint64(offset))
	}
	w.f.begin(tagNeighbours, 0)
	w.f.Write(head)
	w.f.Write(w.head)
	read := 0
	for _, p := range w.parts {
		w.f.Write(blocks[p.lists : p.lists+p.head])
		w.f.Write(blocks[:p.lists])
		blocks = blocks[p.lists+p.head:]
		if read += p.lists; read >= residentBytes {
			read = 0
			w.lists.giveBack()
		}
	}
	w.f.end()
	return nil
}

// writeNeighbours writes the section, unless there are no words or more than a section can hold. It calls step regularly, with the
// approximate number of occurrences and rows read since the last call.
func writeNeighbours(f *fileWriter, words []frequentWord, sources []neighbourSource, step func(n int) error) (err error) {
	if len(words) == 0 {
		return nil
	}
	w := neighbourWriter{f: f, lists: spooled{place: f.newSpool}}
	pairs := pairRows{step: step, written: spooled{place: f.newSpool}}
	defer func() { err = errors.Join(err, w.lists.empty(), pairs.written.empty()) }()
	for _, w.field = range fieldsOf(sources) {
		for i := range sources {
			if err := sources[i].eachNeighbour(w.field, step, pairs.add); err != nil {
				return err
			}
		}
		if err := pairs.each(func(first, second int, rows []uint32) error {
			if first != w.first {
				if err := w.end(); err != nil {
					return err
				}
				w.first = first
			}
			if err := step(wordWork + len(rows)); err != nil {
				return err
			}
			return w.add(second, rows)
		}); err != nil {
			return err
		}
		if err := w.end(); err != nil {
			return err
		}
	}
	if w.full {
		return nil
	}
	return w.write(words)
}
