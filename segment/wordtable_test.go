package segment

import (
	"bytes"
	"fmt"
	"testing"
	"unsafe"
)

// TestWordTableNumbersDistinctWords compares numbers, words and entries with a map's. Words are of few bytes, so that some are the same
// but for their length or field.
func TestWordTableNumbersDistinctWords(t *testing.T) {
	if n := unsafe.Sizeof(wordEntry{}); n != wordEntryBytes {
		t.Errorf("an entry has %d bytes", n)
	}
	rng := testRand(t)
	var table wordTable
	twin := map[string]uint32{}
	var scratch [entryWord]byte
	long := 0
	for n := range 60000 {
		word := make([]byte, 1+rng.IntN(18))
		for i := range word {
			if word[i] = "aab\x00"[rng.IntN(4)]; i > 6 {
				word[i] = 'c'
			}
		}
		if rng.IntN(3) == 0 {
			word = fmt.Appendf(word[:0], "%0*d", 1+rng.IntN(20), rng.IntN(9000))
		}
		field := uint16(rng.IntN(3))
		if len(word) > entryWord {
			long++
		}
		id := fmt.Sprint(string(word), "/", field)
		want, known := twin[id]
		if !known {
			want = uint32(len(twin))
			twin[id] = want
		}
		e, fresh := table.entry(word, field)
		if fresh == known || !fresh && e.count != want || e.field != field || int(e.size) != len(word) {
			t.Fatalf("%q is %+v (new: %v), want %d", id, e, fresh, want)
		}
		if e.count = want; !bytes.Equal(table.word(int(want), &scratch), word) {
			t.Fatalf("%q is read as %q", word, table.word(int(want), &scratch))
		}
		if n%1000 == 0 {
			if got := table.memoryBytes(); got < int64(len(twin))*wordEntryBytes || got > 1<<20+int64(len(twin))*3*wordEntryBytes {
				t.Fatalf("%d bytes for %d words", got, len(twin))
			}
		}
	}
	if table.count != len(twin) || len(table.chunks) < 3 || long == 0 {
		t.Fatalf("%d words in %d chunks, want %d", table.count, len(table.chunks), len(twin))
	}
}
