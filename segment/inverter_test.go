package segment

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// TestInvertedLists compares the lists of words with a map. Encoded lists take one byte to several slices, and are read twice, as
// after a failed write.
func TestInvertedLists(t *testing.T) {
	rng := testRand(t)
	var v inverter
	type list struct {
		rows      []uint32
		positions [][]uint16
	}
	twin := map[string]*list{}
	row := uint32(rng.IntN(1000))
	for range 3000 {
		row += uint32(1 + rng.IntN(1<<rng.IntN(22)))
		position := 0
		for range 1 + rng.IntN(12) {
			n := rng.IntN(1 << rng.IntN(11))
			word := fmt.Sprint(n)
			if n%5 == 0 {
				word = fmt.Sprintf("%0*d", entryWord+n%7, n) // some are too long for an entry
			}
			if position += rng.IntN(1 << rng.IntN(14)); position > 0xffff {
				break
			}
			v.add(row, FieldID(len(word)), []byte(word), uint16(position))
			l := twin[word]
			if l == nil {
				l = new(list)
				twin[word] = l
			}
			if n := len(l.rows); n == 0 || l.rows[n-1] != row {
				l.rows, l.positions = append(l.rows, row), append(l.positions, nil)
			}
			last := &l.positions[len(l.positions)-1]
			if n := len(*last); n == 0 || (*last)[n-1] != uint16(position) {
				*last = append(*last, uint16(position))
			}
		}
	}
	held, long, longest := 0, 0, 0
	var b listBuffers
	for range 2 {
		order := v.sorted(func(int) {})
		v.load(order)
		for _, w := range order {
			word := string(v.words.word(int(w.number), new([entryWord]byte)))
			want := twin[word]
			l := v.words.at(int(w.number))
			if l.level == 0 {
				held++
			}
			if l.size > entryWord {
				long++
			}
			longest = max(longest, len(v.read(nil, &l.wordList)))
			before := len(b.rows)
			fr := v.field(w, &b)
			if int(fr.id) != len(word) || !slices.Equal(fr.rows, want.rows) || len(b.rows) != before+len(want.rows) || int(l.count) != len(want.rows) {
				t.Fatalf("%q has the rows %v, want %v", word, fr.rows, want.rows)
			}
			var code []byte
			for i, row := range want.rows[1:] {
				code = binary.AppendUvarint(code, uint64(row-want.rows[i]-1))
			}
			if !bytes.Equal(b.list, code) {
				t.Fatalf("%q has the distances % x, want % x", word, b.list, code)
			}
			at := 0
			for i, positions := range want.positions {
				var got []uint16
				if got, at = decodePositions(nil, fr.positions, at); !slices.Equal(got, positions) {
					t.Fatalf("%q has the positions %v in row %d, want %v", word, got, fr.rows[i], positions)
				}
			}
			if at != len(fr.positions) {
				t.Fatalf("%q has %d bytes of positions, want %d", word, len(fr.positions), at)
			}
		}
	}
	if held == 0 || long == 0 || long == v.words.count || longest < 2*int(sliceBytes[len(sliceBytes)-1]) {
		t.Errorf("%d lists without slices and %d of long words, the longest has %d bytes", held, long, longest)
	}
}

// TestTooManyWords checks that queued words count towards the limit of words in memory.
func TestTooManyWords(t *testing.T) {
	defer func(before int) { mostOffset = before }(mostOffset)
	mostOffset = 0
	b := NewBuilder(BuilderOptions{})
	b.StartDoc(1, []byte("a"), []byte("{}"))
	b.Word(1, []byte(strings.Repeat("x", entryWord+1)), 0)
	b.EndDoc()
	if _, err := b.Write(context.Background(), vfs.NewMem(), "a.seg"); err == nil || !strings.Contains(err.Error(), "words in memory") {
		t.Errorf("got %v, want an error about words", err)
	}
}
