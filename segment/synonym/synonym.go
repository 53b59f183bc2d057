// Package synonym holds the synonyms of an index as a sorted table of bytes: a lookup is a binary search that decodes one entry. The
// table is in a file of settings, so opening an index does not analyse or decode the synonyms.
//
// A table, little-endian:
//
//	u32 entries n
//	n × u64: end of each entry, from the start of the first one
//	n × { uvarint length, key; uvarint values; values × { uvarint words; words × { uvarint length, word } } }, keys ascending
package synonym

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sort"
)

// Table maps keys to lists of values, which are lists of words. It is immutable. A nil table is empty. The table of a file is valid
// until the file is closed. The results of Lookup stay valid.
type Table struct {
	encoded []byte
	ends    []byte
	entries []byte
}

// Make returns the table of some synonyms, or nil if there are none. The values of a key keep their order.
func Make(synonyms map[string][][]string) *Table {
	if len(synonyms) == 0 {
		return nil
	}
	keys := make([]string, 0, len(synonyms))
	for key := range synonyms {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(keys)))
	var entries []byte
	for _, key := range keys {
		entries = appendString(entries, key)
		entries = binary.AppendUvarint(entries, uint64(len(synonyms[key])))
		for _, words := range synonyms[key] {
			entries = binary.AppendUvarint(entries, uint64(len(words)))
			for _, w := range words {
				entries = appendString(entries, w)
			}
		}
		b = binary.LittleEndian.AppendUint64(b, uint64(len(entries)))
	}
	b = append(b, entries...)
	return split(b, len(keys))
}

func appendString(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// split returns the table of n entries in b, which is long enough for their ends.
func split(b []byte, n int) *Table {
	return &Table{encoded: b, ends: b[4 : 4+8*n], entries: b[4+8*n:]}
}

// parse returns the table in b, which it keeps. No bytes give nil. It checks no entry: where one is wrong, Lookup finds less.
func parse(b []byte) (*Table, error) {
	if len(b) == 0 {
		return nil, nil
	}
	if len(b) < 4 || uint64(len(b)-4)/8 < uint64(binary.LittleEndian.Uint32(b)) {
		return nil, fmt.Errorf("a table of synonyms in %d bytes", len(b))
	}
	return split(b, int(binary.LittleEndian.Uint32(b))), nil
}

// check validates the entries of a table.
func (t *Table) check() error {
	if t == nil {
		return nil
	}
	if t.Len() == 0 {
		return errors.New("the table of synonyms has no entries")
	}
	last := uint64(0)
	before := []byte(nil)
	for i := range t.Len() {
		end := t.end(i)
		if end < last || end > uint64(len(t.entries)) {
			return fmt.Errorf("entry %d of the synonyms ends at %d, after %d of %d bytes", i, end, last, len(t.entries))
		}
		d := decoder{b: t.entries[last:end]}
		key := d.string()
		if d.skipValues(); d.failed || len(d.b) > 0 {
			return fmt.Errorf("entry %d of the synonyms is not an entry", i)
		}
		if i > 0 && bytes.Compare(before, key) >= 0 {
			return fmt.Errorf("entry %d of the synonyms is out of order", i)
		}
		last, before = end, key
	}
	if last != uint64(len(t.entries)) {
		return fmt.Errorf("%d bytes follow the synonyms", uint64(len(t.entries))-last)
	}
	return nil
}

// bytes returns the table as parse reads it. It is shared.
func (t *Table) bytes() []byte {
	if t == nil {
		return nil
	}
	return t.encoded
}

// Len returns the number of keys.
func (t *Table) Len() int {
	if t == nil {
		return 0
	}
	return len(t.ends) / 8
}

func (t *Table) end(i int) uint64 { return binary.LittleEndian.Uint64(t.ends[8*i:]) }

// entry returns the bytes of an entry; none when its ends are wrong.
func (t *Table) entry(i int) []byte {
	begin := uint64(0)
	if i > 0 {
		begin = t.end(i - 1)
	}
	end := t.end(i)
	if begin > end || end > uint64(len(t.entries)) {
		return nil
	}
	return t.entries[begin:end]
}

// Lookup returns the values of a key, nil when it has none. It decodes at most the first most values.
func (t *Table) Lookup(key string, most int) [][]string {
	n := t.Len()
	i := sort.Search(n, func(i int) bool {
		d := decoder{b: t.entry(i)}
		return string(d.string()) >= key
	})
	if i == n {
		return nil
	}
	d := decoder{b: t.entry(i)}
	if string(d.string()) != key {
		return nil
	}
	return d.values(most)
}

// decoder reads an entry. After damage it returns nothing and has failed.
type decoder struct {
	b      []byte
	failed bool
}

func (d *decoder) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.b, d.failed = nil, true
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *decoder) string() []byte {
	n := d.uvarint()
	if n > uint64(len(d.b)) {
		d.b, d.failed = nil, true
		return nil
	}
	s := d.b[:n]
	d.b = d.b[n:]
	return s
}

// skipValues reads values without keeping them.
func (d *decoder) skipValues() {
	for values := d.uvarint(); values > 0 && !d.failed; values-- {
		for words := d.uvarint(); words > 0 && !d.failed; words-- {
			d.string()
		}
	}
}

func (d *decoder) values(most int) (values [][]string) {
	for n := d.uvarint(); n > 0 && len(values) < most && !d.failed; n-- {
		var words []string
		for k := d.uvarint(); k > 0 && !d.failed; k-- {
			words = append(words, string(d.string()))
		}
		values = append(values, words)
	}
	return values
}
