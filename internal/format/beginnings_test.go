package format

import (
	"math/rand/v2"
	"slices"
	"testing"

	"svc/internal/query"
)

// TestHighlighterFindsForms compares lookups of forms with a scan of all lists.
func TestHighlighterFindsForms(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	form := func() string {
		b := make([]byte, 1+r.IntN(4))
		for i := range b {
			b[i] = "abcdé"[r.IntN(6)]
		}
		return string(b)
	}
	for range 200 {
		h := &query.Highlights{}
		for range 1 + r.IntN(3) {
			w := query.Words{Word: form(), Forms: map[string]struct{}{}, Chars: 1}
			for range r.IntN(4) {
				w.Forms[form()] = struct{}{}
			}
			for range r.IntN(3) {
				w.Prefixes = append(w.Prefixes, form())
			}
			slices.Sort(w.Prefixes)
			h.Words = append(h.Words, w)
		}
		m := newHighlighter(nil, h)
		for range 200 {
			f := form()
			want := -1
			for i := range m.words {
				_, whole := m.words[i].Forms[f]
				if whole || m.words[i].prefixOf(f) > 0 {
					want = i
					break
				}
			}
			if got := m.word(f); got.list != want {
				t.Fatalf("%q is found in list %d, want %d of %v", f, got.list, want, h.Words)
			}
		}
	}
}
