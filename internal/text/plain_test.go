package text

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestOthers checks each ASCII byte at each place of a word of eight.
func TestOthers(t *testing.T) {
	for b := range byte(utf8.RuneSelf) {
		plain := '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		for _, around := range []uint64{0, 'a', 'Z', 0x7f} {
			for shift := 0; shift < 64; shift += 8 {
				x := around*everyByte&^(0xff<<shift) | uint64(b)<<shift
				if got := others(x)>>shift&0xff == 0; got != plain {
					t.Errorf("byte %q at bit %d of %x is plain: %t", b, shift, x, got)
				}
				if m := others(x); m&^highBits != 0 {
					t.Errorf("others(%x) is %x", x, m)
				}
			}
		}
	}
}

// TestIndexPlain indexes random texts eight bytes at a time and byte by byte.
func TestIndexPlain(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 5))
	folded := 0
	for _, c := range []Config{{}, {NonSeparators: []string{"-", "#"}}, {Separators: []string{"&&"}, StopWords: []string{"aa"}}, {Separators: []string{"x"}}, {Dictionary: []string{"a b"}}} {
		a := New(c)
		if a.plain != (len(c.Dictionary) == 0 && !slices.Contains(c.Separators, "x")) {
			t.Errorf("%+v: letters are plain: %t", c, a.plain)
		}
		slow := New(c)
		slow.plain = false
		for range 3000 {
			var b strings.Builder
			for range rng.IntN(12) {
				for range rng.IntN(1 + rng.IntN(30)) {
					b.WriteByte("aabxzAZ09_~@[`{/:"[rng.IntN(1+rng.IntN(17))])
				}
				if rng.IntN(40) == 0 {
					b.WriteString(strings.Repeat("Ab9", rng.IntN(100)))
				}
				b.WriteByte(" -.,\x01#&\x7f"[rng.IntN(8)])
			}
			s := []byte(b.String())
			words := func(a *Analyzer) (all []string) {
				var p Positions
				a.Index(&p, s, nil, func(word []byte, position uint16) { all = append(all, fmt.Sprintf("%d %s", position, word)) })
				return append(all, fmt.Sprint(p.Words()))
			}
			got, want := words(a), words(slow)
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, %+v: %q has the words\n%q, want\n%q", seed, c, s, got, want)
			}
			if a.plain {
				_, n := foldPlain(make([]byte, maxWord+1), s, 0)
				folded += n
			}
		}
	}
	if folded < 10000 {
		t.Errorf("%d bytes were folded together", folded)
	}
}
