package segment

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestWordOrder compares the order of words, their prefixes and copies of their lists with the words and lists themselves. Words have few
// byte values, including zeros, and lengths around the 8 bytes that are compared first and the 12 of an entry.
func TestWordOrder(t *testing.T) {
	const seed = 9
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	var v inverter
	for row := range uint32(400) {
		var positions [3]uint16
		for range 1 + rng.IntN(8) {
			word := make([]byte, 1+rng.IntN(15))
			for i := range word {
				word[i] = []byte{0, 'a', 'a', 'a', 0xc3, 0xa4}[rng.IntN(6)]
			}
			f := rng.IntN(3)
			for range 1 + rng.IntN(3) {
				v.add(row, FieldID(f), word, positions[f])
				positions[f] += uint16(1 + rng.IntN(100))
			}
		}
	}
	for row := range uint32(600_000) { // a list longer than half a chunk
		v.add(1001+row, 0, []byte("frequent"), uint16(row%1000))
	}
	order := v.sorted(func(int) {})
	key := func(w wordOrder) []byte { return v.words.word(int(w.number), new([entryWord]byte)) }
	if !slices.IsSortedFunc(order, func(a, b wordOrder) int {
		return cmp.Or(bytes.Compare(key(a), key(b)), cmp.Compare(a.field, b.field))
	}) {
		t.Error("words are not in order")
	}
	var lists sequentialLists
	var few [entryWord]byte
	long := false
	for i := range order {
		w := order[i]
		if i > 0 {
			if got, want := v.compareWords(&order[i-1], &w), bytes.Compare(key(order[i-1]), key(w)); got != want {
				t.Fatalf("%q is compared with %q: %d, want %d", key(order[i-1]), key(w), got, want)
			}
		}
		if got := v.word(&w, &few); !bytes.Equal(got, key(w)) {
			t.Fatalf("%q is read as %q", key(w), got)
		}
		for n := 1; n <= maxPrefixBytes; n++ {
			if _, want := prefixOf(key(w), n); w.begins(n) != want {
				t.Fatalf("%q begins with %d bytes: %v", key(w), n, !want)
			}
		}
		var b listBuffers
		fr := v.field(w, &b)
		long = long || len(b.list) > sequentialChunkBytes/2
		row, list, positions := lists.list(lists.add(fr, b.list))
		if row != fr.rows[0] || !bytes.Equal(list, b.list) || !bytes.Equal(positions, fr.positions) {
			t.Fatalf("%q: the copy has other rows or positions", key(w))
		}
	}
	if !long || len(lists.chunks) < 3 {
		t.Errorf("%d chunks, with a long list: %v", len(lists.chunks), long)
	}
}
