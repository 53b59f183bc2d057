package filter

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"svc/internal/numeric"
	"svc/internal/text"
	"svc/segment"
)

// equalMatch tests for any of several values. A value that parses as a number matches as a number and as a text.
type equalMatch struct {
	id       segment.FieldID
	floats   []float64       // ascending, unique
	integers []numeric.Value // likewise: those that are no float64
	keys     [][]byte        // ascending, unique, not empty: the empty text equals nothing
}

// newEqualMatch sorts the values for all segments: numbers, integers beyond float64, and text keys. A value
// that reads as a number is a text, too. All keys share one allocation.
func newEqualMatch(id segment.FieldID, values []string) equalMatch {
	m := equalMatch{id: id}
	size := 0
	for _, v := range values {
		size += len(v)
	}
	// A key is seldom longer than its value: nearly all of a million values share this memory.
	room := make([]byte, 0, size)
	m.keys = make([][]byte, 0, len(values))
	for _, v := range values {
		if x, ok := numeric.Parse(v); ok && x.Rest == 0 { // nearly all are, and floats are sorted faster
			m.floats = append(m.floats, x.Float)
		} else if ok {
			m.integers = append(m.integers, x)
		}
		at := len(room)
		key := text.FacetKey(room[at:], []byte(v))
		if len(key) == 0 {
			continue
		}
		if len(key) <= cap(room)-at {
			room = room[:at+len(key)]
		}
		m.keys = append(m.keys, slices.Clip(key))
	}
	slices.Sort(m.floats)
	m.floats = slices.Compact(m.floats)
	slices.SortFunc(m.integers, numeric.Value.Compare)
	m.integers = slices.Compact(m.integers)
	m.keys = sortKeys(m.keys)
	return m
}

// headKey is a key with the first bytes after the prefix that all keys share. Most comparisons need only these bytes.
type headKey struct {
	head uint64
	key  []byte
}

// sortKeys sorts the keys and leaves out those that come again.
func sortKeys(keys [][]byte) [][]byte {
	if !slices.IsSortedFunc(keys, bytes.Compare) {
		shared := len(keys[0])
		for _, key := range keys {
			shared = sharedPrefix(keys[0][:shared], key)
		}
		headed := make([]headKey, len(keys))
		for i, key := range keys {
			var head [8]byte
			copy(head[:], key[shared:])
			headed[i] = headKey{binary.BigEndian.Uint64(head[:]), key}
		}
		slices.SortFunc(headed, func(a, b headKey) int {
			if a.head != b.head {
				return cmp.Compare(a.head, b.head)
			}
			return bytes.Compare(a.key[shared:], b.key[shared:])
		})
		for i, h := range headed {
			keys[i] = h.key
		}
	}
	return slices.CompactFunc(keys, bytes.Equal)
}

// sharedPrefix returns how many bytes two texts begin with in common.
func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
