package segment

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestWordHead compares the first bytes of words with and without room behind them.
func TestWordHead(t *testing.T) {
	rng := testRand(t)
	for n := range 40 {
		for range 50 {
			room := make([]byte, n+rng.IntN(3*entryWord))
			for i := range room {
				room[i] = byte(1 + rng.IntN(255))
			}
			var padded [entryWord]byte
			copy(padded[:], room[:n])
			for _, word := range [][]byte{room[:n], room[:n:n]} {
				head, more := wordHead(word)
				if head != binary.BigEndian.Uint64(padded[:]) || more != binary.BigEndian.Uint32(padded[8:]) {
					t.Fatalf("%q with room for %d: %x %x, want %x", word, cap(word), head, more, padded)
				}
			}
			if bytes.IndexByte(room[:n], 0) >= 0 {
				t.Fatal("a zero byte")
			}
		}
	}
}
