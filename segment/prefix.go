package segment

import (
	"encoding/binary"
	"sort"
	"unicode/utf8"
)

const (
	// maxPrefixBytes is the longest prefix that has postings of its own.
	maxPrefixBytes = 4

	// minPrefixWords is how many words of the segment must begin with a prefix for it
	// to have a posting. Below, walking the words costs about as much as reading one.
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
	n := len(r.prefixes) / prefixEntryBytes
	if len(prefix) == 0 || len(prefix) > maxPrefixBytes {
		return Posting{}, false
	}
	key := prefixKey(prefix)
	i := sort.Search(n, func(i int) bool {
		return binary.LittleEndian.Uint64(r.prefixes[i*prefixEntryBytes:]) >= key
	})
	if i == n || binary.LittleEndian.Uint64(r.prefixes[i*prefixEntryBytes:]) != key {
		return Posting{}, false
	}
	return readPosting(r.prefixPostings, binary.LittleEndian.Uint64(r.prefixes[i*prefixEntryBytes+8:]))
}

// prefixCounter finds the prefixes with enough words, from words in byte order.
type prefixCounter struct {
	open [maxPrefixBytes]struct {
		key   uint64 // 0: none
		words int
	}
	found []uint64 // keys of finished prefixes, not sorted
}

func (c *prefixCounter) word(w []byte) {
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

// afterPrefix returns the smallest bytes above all that begin with a prefix, or nil when there are none.
func afterPrefix(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for n := len(end) - 1; n >= 0; n-- {
		if end[n]++; end[n] != 0 {
			return end[:n+1]
		}
	}
	return nil
}
