package fst

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// TestFilterKnowsPrefixes checks that a filter has the prefixes of all words, and few others. It must not depend on the announced
// number of words.
func TestFilterKnowsPrefixes(t *testing.T) {
	rng := testRand(t)
	var words []string
	for range 3000 {
		words = append(words, randomWord(rng)+randomWord(rng)+randomWord(rng))
	}
	slices.Sort(words)
	words = slices.Compact(words)
	filters := [][]byte{}
	known := map[beginning]bool{}
	for _, announced := range []int{len(words), 3*len(words) + 5, 50 * len(words)} {
		w := NewFilterWriter(announced)
		for _, word := range words {
			w.Add([]byte(word))
		}
		filters = append(filters, w.Filter())
	}
	if !bytes.Equal(filters[0], filters[1]) || !bytes.Equal(filters[0], filters[2]) {
		t.Fatalf("filters of %d, %d and %d bytes differ", len(filters[0]), len(filters[1]), len(filters[2]))
	}
	var f FST
	if !f.SetFilter(filters[0]) || f.SetFilter(make([]byte, 24)) {
		t.Fatal("SetFilter refused a filter, or accepted one whose size is not a power of two")
	}
	for _, word := range words {
		for _, n := range filterLengths {
			if n <= len(word) {
				known[beginningOf([]byte(word[:n]))] = true
			}
		}
		if n := behindLength([]byte(word)); n > 0 && n <= len(word) {
			known[behindOf(word[0], []byte(word[n-behindFirst:n]))] = true
		}
	}
	want := make([]byte, len(filters[0]))
	for b := range known {
		if !f.mayBegin(b) {
			t.Fatalf("prefix %x is missing", b)
		}
		at, mask := place(b, len(want))
		binary.LittleEndian.PutUint64(want[at:], binary.LittleEndian.Uint64(want[at:])|mask)
	}
	if !bytes.Equal(filters[0], want) {
		t.Error("a filter has bits that no prefix sets")
	}
	if len(known) < 3*len(FilterWriter{}.waiting) {
		t.Errorf("%d prefixes are too few to fill the queue several times", len(known))
	}
	wrong, asked := 0, 0
	for range 20000 {
		b := beginning{rng.Uint64(), 8 << 56}
		if !known[b] {
			asked++
			if f.mayBegin(b) {
				wrong++
			}
		}
	}
	if wrong > asked/20 {
		t.Errorf("%d of %d other prefixes are false positives", wrong, asked)
	}
}
