package segment

import (
	"bytes"
	"fmt"
	"hash/maphash"
	"testing"
	"unsafe"
)

// TestWordTableNumbersDistinctWords compares numbers, words and entries with a map. Some words differ only in length or field.
func TestWordTableNumbersDistinctWords(t *testing.T) {
	checkWordTable(t, 60000)
}

// TestWordTableComparesWordsOfEqualHash chooses seeds for which all short words of one length and field have the same hash.
func TestWordTableComparesWordsOfEqualHash(t *testing.T) {
	defer func(head, more uint64) { headSeed, moreSeed = head, more }(headSeed, moreSeed)
	const length, field = 7, 1
	moreSeed = length<<16 | field
	var table wordTable
	for i := range 500 {
		e, fresh := table.find(fmt.Appendf(nil, "word%03d", i), field)
		if !fresh || e.hash != 0 {
			t.Fatalf("word %d has the hash %x (new: %v)", i, e.hash, fresh)
		}
	}
	for i := range 500 {
		word := fmt.Appendf(nil, "word%03d", i)
		if e, fresh := table.find(word, field); fresh || e != table.at(i) {
			t.Fatalf("%q is not found", word)
		}
	}
	checkWordTable(t, 3000)
}

// TestHashesOfWordsDependOnSeeds changes one seed at a time. If a hash stayed the same, an attacker could prepare colliding words.
func TestHashesOfWordsDependOnSeeds(t *testing.T) {
	defer func(head, more uint64, tail maphash.Seed) { headSeed, moreSeed, tailSeed = head, more, tail }(headSeed, moreSeed, tailSeed)
	hash := func(word string) uint32 {
		var table wordTable
		e, _ := table.find([]byte(word), 0)
		return e.hash
	}
	for _, tt := range []struct {
		name, word string
		change     func()
	}{
		{"head", "a word", func() { headSeed++ }},
		{"rest", "a word", func() { moreSeed++ }},
		{"tail", "a word that is long", func() { tailSeed = maphash.MakeSeed() }},
	} {
		same := 0
		for range 8 {
			before := hash(tt.word)
			if tt.change(); hash(tt.word) == before {
				same++
			}
		}
		if same > 4 {
			t.Errorf("%s: the hash does not depend on the seed", tt.name)
		}
	}
}

// checkWordTable looks up a number of words.
func checkWordTable(t *testing.T, words int) {
	t.Helper()
	if n := unsafe.Sizeof(wordEntry{}); n != wordEntryBytes {
		t.Errorf("an entry has %d bytes", n)
	}
	rng := testRand(t)
	var table wordTable
	twin := map[string]uint32{}
	var scratch [entryWord]byte
	long := 0
	for n := range words {
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
		e, fresh := table.find(word, field)
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
	if table.count != len(twin) || words > 10000 && len(table.chunks) < 3 || long == 0 {
		t.Fatalf("%d words in %d chunks, want %d", table.count, len(table.chunks), len(twin))
	}
}

// find returns the entry of a word that is in one piece.
func (t *wordTable) find(word []byte, field uint16) (*wordEntry, bool) {
	var k wordKey
	k.set(word, field)
	return t.entry(&k, word[min(len(word), entryWord):])
}
