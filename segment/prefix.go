package segment

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"
	"unicode/utf8"
)

const (
	// maxPrefixBytes is the longest prefix that has postings of its own.
	maxPrefixBytes = 4

	// minPrefixWords is the number of words of the segment that must begin with a prefix for it to have a posting. With fewer,
	// reading the postings of the words costs about as much as reading one.
	minPrefixWords = 32

	prefixEntryBytes = 16
)

// prefixKey packs a prefix so that keys order as the prefixes do as bytes.
func prefixKey(prefix []byte) uint64 {
	var b [4]byte
	n := copy(b[:], prefix)
	return uint64(binary.BigEndian.Uint32(b[:]))<<8 | uint64(n)
}

// prefixOf returns the first n bytes of a word if it has more than one
// character boundary there, that is if they are whole characters.
func prefixOf(word []byte, n int) ([]byte, bool) {
	if n > len(word) || n < len(word) && !utf8.RuneStart(word[n]) {
		return nil, false
	}
	return word[:n], true
}

// Prefix returns the posting of a short prefix (≤ 4 bytes): the occurrences of
// all words that begin with it. It exists only where the segment has at least
// 32 of them and was written with prefixes; otherwise walk Terms.
func (r *Reader) Prefix(prefix []byte) (Posting, bool) {
	offset, ok := r.prefixOffset(prefix)
	if !ok {
		return Posting{}, false
	}
	return readPosting(&r.blocks, r.prefixPostings, offset)
}

// prefixOffset returns where the posting of a short prefix is.
func (r *Reader) prefixOffset(prefix []byte) (uint64, bool) {
	n := len(r.prefixes) / prefixEntryBytes
	if len(prefix) == 0 || len(prefix) > maxPrefixBytes {
		return 0, false
	}
	key := prefixKey(prefix)
	i := sort.Search(n, func(i int) bool {
		return binary.LittleEndian.Uint64(r.prefixes[i*prefixEntryBytes:]) >= key
	})
	if i == n || binary.LittleEndian.Uint64(r.prefixes[i*prefixEntryBytes:]) != key {
		return 0, false
	}
	return binary.LittleEndian.Uint64(r.prefixes[i*prefixEntryBytes+8:]), true
}

// prefixCounter finds the prefixes with enough words, from words in byte order.
type prefixCounter struct {
	open [maxPrefixBytes]struct {
		key   uint64 // 0: none
		words int
	}
	found []uint64 // keys of finished prefixes, not sorted
}

// word counts the next word. Entries that begin with byte 0 are separate: they do not match prefixes.
func (c *prefixCounter) word(w []byte) {
	if len(w) > 0 && w[0] == 0 {
		return
	}
	for i := range c.open {
		var key uint64
		if p, ok := prefixOf(w, i+1); ok {
			key = prefixKey(p)
		}
		o := &c.open[i]
		if o.key != key {
			c.close(i)
			o.key, o.words = key, 0
		}
		o.words++
	}
}

func (c *prefixCounter) close(i int) {
	if o := c.open[i]; o.key != 0 && o.words >= minPrefixWords {
		c.found = append(c.found, o.key)
	}
}

// finish returns the keys of all prefixes with enough words.
func (c *prefixCounter) finish() []uint64 {
	for i := range c.open {
		c.close(i)
		c.open[i].key = 0
	}
	return c.found
}

// keyPrefix unpacks a key.
func keyPrefix(key uint64) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(key>>8))
	return b[:min(key&0xff, maxPrefixBytes)]
}

// afterPrefix returns the smallest key above all keys that begin with a prefix, or nil.
func afterPrefix(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for n := len(end) - 1; n >= 0; n-- {
		if end[n]++; end[n] != 0 {
			return end[:n+1]
		}
	}
	return nil
}

func (r *Reader) openPrefixes() error {
	if r.prefixes = r.section(tagPrefixes); len(r.prefixes)%prefixEntryBytes != 0 {
		return r.damaged(tagPrefixes, "%d bytes", len(r.prefixes))
	}
	r.prefixPostings = r.section(tagPrefixPosts)
	return nil
}

// copyPrefixes copies the prefix postings of the only input. If it has none, and they are requested, it makes them.
func (m *merger) copyPrefixes() error {
	r := m.in[0].Reader
	if !m.o.Prefixes {
		return nil
	}
	if r.meta.prefixes {
		return m.copySections(tagPrefixPosts, tagPrefixes)
	}
	var c prefixCounter
	it := r.Terms(nil, nil, nil)
	for it.Next() {
		c.word(it.Word())
	}
	if err := it.Err(); err != nil {
		return err
	}
	m.prefixes = c.finish()
	return m.mergePrefixes()
}

// mergePrefixes writes the prefix postings. It merges those of the inputs. If an input has no posting for a prefix, it uses the union
// of its words.
func (m *merger) mergePrefixes() error {
	if !m.o.Prefixes {
		return nil
	}
	keys := m.prefixes
	slices.Sort(keys)
	m.f.begin(tagPrefixPosts, 0)
	p := prefixWriter{post: postingWriter{w: m.f}}
	w := wordMerger{m: m}
	for _, key := range keys {
		if err := m.check(); err != nil {
			return err
		}
		w.reset()
		prefix := keyPrefix(key)
		unions := make([]union, len(m.in)) // their rows are used until the posting is written
		for i, l := range m.in {
			if posting, ok := l.Prefix(prefix); ok {
				if err := w.addPosting(i, posting); err != nil {
					return err
				}
				continue
			}
			if err := l.unionOf(prefix, &unions[i], 0, math.MaxUint32); err != nil {
				return err
			}
			for _, f := range unions[i].take() {
				w.add(f.id, fieldSource{in: i, rows: f.rows, positions: f.positions})
			}
		}
		fields, err := w.merge()
		if err != nil {
			return err
		}
		if len(fields) > 0 {
			p.write(key, fields)
		}
	}
	m.f.end()
	m.f.add(tagPrefixes, 0, p.table())
	return nil
}

// unionOf gathers the occurrences of all words with a prefix in the rows from lo up to hi.
func (r *Reader) unionOf(prefix []byte, u *union, lo, hi uint32) error {
	it := r.Terms(prefix, afterPrefix(prefix), nil)
	defer it.Close()
	var rows []uint32
	for it.Next() {
		if _, ok := prefixOf(it.Word(), len(prefix)); !ok {
			continue
		}
		p := it.Posting()
		at := p.first
		if p.fields >= directoryFields {
			at += 4 * p.fields
		}
		for range p.fields {
			var f FieldPosting
			f, at = p.readField(at)
			rows = f.rows.AppendTo(rows[:0])
			if !validPositions(f.positions[f.skips:], len(rows)) {
				return r.damaged(tagPostings, "positions of %q are not those of %d rows", it.Word(), len(rows))
			}
			some, positions := between(rows, f.positions[f.skips:], lo, hi)
			u.add(f.id, some, positions)
		}
	}
	return it.Err()
}

// between returns the rows from lo up to hi, with their positions.
func between(rows []uint32, positions []byte, lo, hi uint32) (some []uint32, theirs []byte) {
	from, _ := slices.BinarySearch(rows, lo)
	to, _ := slices.BinarySearch(rows, hi)
	if from == 0 && to == len(rows) {
		return rows, positions
	}
	begin := skipRows(positions, 0, from)
	return rows[from:to], positions[begin:skipRows(positions, begin, to-from)]
}

// verifyPrefixes checks that keys ascend and are real prefixes, that postings follow each other without a
// gap, and that each is the union of the postings of the words with its prefix.
func (r *Reader) verifyPrefixes() error {
	end, last := 0, uint64(0)
	for i := range len(r.prefixes) / prefixEntryBytes {
		e := r.prefixes[i*prefixEntryBytes:]
		key, offset := binary.LittleEndian.Uint64(e), binary.LittleEndian.Uint64(e[8:])
		if key <= last || key != prefixKey(keyPrefix(key)) || len(keyPrefix(key)) == 0 || offset != uint64(end) {
			return r.damaged(tagPrefixes, "%q at offset %d follows %q, which ends at %d", keyPrefix(key), offset, keyPrefix(last), end)
		}
		last = key
		p, ok := readPosting(&r.blocks, r.prefixPostings, offset)
		if !ok {
			return r.damaged(tagPrefixPosts, "no posting of %q at offset %d", keyPrefix(key), offset)
		}
		var err error
		if end, err = r.verifyPosting(tagPrefixPosts, p); err != nil {
			return fmt.Errorf("posting of prefix %q: %w", keyPrefix(key), err)
		}
		if err := r.verifyUnion(keyPrefix(key), p); err != nil {
			return err
		}
	}
	if end != len(r.prefixPostings) {
		return r.damaged(tagPrefixPosts, "it goes on after %d of %d bytes", end, len(r.prefixPostings))
	}
	return nil
}

// unionBytes is the maximum number of position bytes of a prefix that Verify unites at once. This needs several times as much memory.
// (A variable, so that tests can lower it.)
var unionBytes = 8 << 20

// verifyUnion checks that a posting is the union of those of the words with a prefix, in one pass or in several over parts of the
// rows.
func (r *Reader) verifyUnion(prefix []byte, p Posting) error {
	size := 0
	for i := range p.fields {
		size += len(p.Field(i).positions)
	}
	passes := size/unionBytes + 1
	for pass := range passes {
		lo, hi := uint32(r.rows*pass/passes), uint32(r.rows*(pass+1)/passes)
		var u union
		if err := r.unionOf(prefix, &u, lo, hi); err != nil {
			return err
		}
		want := u.take()
		for i := range p.fields {
			f := p.Field(i)
			rows, positions := between(f.rows.AppendTo(nil), f.positions[f.skips:], lo, hi)
			if len(rows) == 0 && passes > 1 {
				continue
			}
			if len(want) == 0 || f.id != want[0].id || !slices.Equal(rows, want[0].rows) || !bytes.Equal(positions, want[0].positions) {
				return r.damaged(tagPrefixPosts, "%q is not the union of its words in field %d", prefix, f.id)
			}
			want = want[1:]
		}
		if len(want) > 0 {
			return r.damaged(tagPrefixPosts, "%q has no field %d, which words have that begin with it", prefix, want[0].id)
		}
	}
	return nil
}

func (i *inspector) prefixPostings() {
	i.t.List(len(i.r.prefixes)/prefixEntryBytes, inspectItems, func(n int) {
		e := i.r.prefixes[n*prefixEntryBytes:]
		i.posting(fmt.Sprintf("prefix %q", keyPrefix(binary.LittleEndian.Uint64(e))), binary.LittleEndian.Uint64(e[8:]))
	})
}

func (i *inspector) prefixes() {
	i.t.List(len(i.p)/prefixEntryBytes, inspectItems, func(int) {
		i.field(8, "prefix %q", keyPrefix(i.u64()))
		i.field(8, "posting at %d", i.u64())
	})
}
