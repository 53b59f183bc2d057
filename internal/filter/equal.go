package filter

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"svc/internal/text"
	"svc/segment"
)

// equalMatch tests for any of some values. A value that reads as a number is looked for as number and as text.
type equalMatch struct {
	id      segment.FieldID
	numbers []float64 // ascending, unique
	keys    [][]byte  // ascending, unique, not empty: the empty text equals nothing
}

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
		if x, ok := ParseNumber(v); ok {
			m.numbers = append(m.numbers, x)
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
	slices.Sort(m.numbers)
	m.numbers = slices.Compact(m.numbers)
	m.keys = sortKeys(m.keys)
	return m
}

// headKey is a key with its first bytes behind what all keys begin with: most comparisons need no more.
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

func sharedPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
