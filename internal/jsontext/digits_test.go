package jsontext

import (
	"math/rand/v2"
	"testing"
)

// digitsOneByOne is the reference implementation of ReadDigits.
func digitsOneByOne(n uint64, b []byte, i int) (uint64, int) {
	for i < len(b) && '0' <= b[i] && b[i] <= '9' {
		n = n*10 + uint64(b[i]-'0')
		i++
	}
	return n, i
}

func TestDigits(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	joined := map[int]int{} // how often this many digits of an eight-byte word were read at once
	for range 100_000 {
		b := make([]byte, r.IntN(40))
		for i := range b {
			b[i] = '0' + byte(r.IntN(10))
		}
		for range r.IntN(4) {
			if len(b) > 0 { // characters next to the digits, and bytes that differ from digits in one bit
				b[r.IntN(len(b))] = []byte{'/', ':', ',', '.', '-', 'e', ']', 0, 0xb0, 0xb9, 0x10, 0xff, byte(r.Uint32())}[r.IntN(13)]
			}
		}
		n, i := uint64(r.IntN(1000)), r.IntN(len(b)+1)
		want, end := digitsOneByOne(n, b, i)
		if got, at := ReadDigits(n, b, i); got != want || at != end {
			t.Fatalf("%q from %d on: %d, ends at %d, want %d, %d", b, i, got, at, want, end)
		}
		if at := DigitsEnd(b, i); at != end {
			t.Fatalf("%q from %d on: ends at %d, want %d", b, i, at, end)
		}
		for ; i+8 <= len(b); i += 8 {
			joined[min(end-i, 8)]++
			if end-i < 8 {
				break
			}
		}
	}
	for digits := range 9 {
		if joined[digits] < 100 {
			t.Errorf("%d digits at once: %d times", digits, joined[digits])
		}
	}
}
