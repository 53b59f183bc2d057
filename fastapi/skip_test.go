package fastapi

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// TestSkip checks that skip passes over flat lists of numbers at once, and over nothing else.
func TestSkip(t *testing.T) {
	pieces := []string{`1`, `-2.5e-3`, `0`, `"]"`, `"\""`, `null`, `[`, `]`, `{`, `}`, `,`, ` `, `:`, `[]`, `{}`, `[1,2]`, `[-1, 2`, `"[1`}
	r := rand.New(rand.NewPCG(rand.Uint64(), 7))
	flat := 0
	for range 200_000 {
		var b strings.Builder
		b.WriteString([]string{"[", "[1", "[-1"}[r.IntN(3)])
		for range r.IntN(8) {
			b.WriteString(pieces[r.IntN(len(pieces))])
		}
		b.WriteString("]")
		text := []byte(b.String())
		if !valid(text) {
			continue
		}
		if got := skip(append(text, `,"]`...), 0); got != len(text) {
			t.Fatalf("%s: skips %d bytes of %d", text, got, len(text))
		}
		if flatEnd(text, 0) > 0 {
			flat++
		}
	}
	if flat == 0 {
		t.Error("no list was skipped")
	}
}
