package query

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/blevesearch/vellum"

	"svc/segment/fst"
)

// dictionary builds an FST of words without a filter, and returns the words in order.
func dictionary(t testing.TB, words []string) (fst.FST, []string) {
	t.Helper()
	data, words := dictionaryBytes(t, words)
	f, err := fst.Open(data)
	if err != nil {
		t.Fatal(err)
	}
	return f, words
}

func dictionaryBytes(t testing.TB, words []string) ([]byte, []string) {
	t.Helper()
	slices.Sort(words)
	words = slices.Compact(words)
	var buf bytes.Buffer
	b, err := vellum.New(&buf, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range words {
		if err := b.Insert([]byte(w), uint64(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), words
}

// TestWalksOfTyposAgainstTable compares walks with the words within the limit according to slowDistance, and checks where walks stop.
func TestWalksOfTyposAgainstTable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	lost := 0 // words that a filter with a cleared bit hides
	for n := range 300 {
		alphabet := []rune("abcd")
		switch n % 5 {
		case 1:
			alphabet = []rune("abéèβ漢渢😀")
		case 2:
			alphabet = []rune("abcdefgh")
		case 3:
			alphabet = []rune("abcdefghβγ漢渢漣激\uFFFD")
		}
		var words []string
		for range 200 {
			words = append(words, string(randomWord(r, alphabet, 8)))
		}
		if n%5 == 4 { // states with more transitions than one lookup in the filter covers
			alphabet = []rune("abcdefghijklmnopqrstuvwxyz0123456789+-*/=<>")
			for range 400 {
				words = append(words, string(slices.Concat(randomWord(r, alphabet, 2), randomWord(r, alphabet[:2], 4))))
			}
		}
		f, words := dictionary(t, words)
		none := f
		none.SetFilter(make([]byte, 8))
		if r.IntN(3) > 0 {
			w := fst.NewFilterWriter(len(words))
			for _, word := range words {
				w.Add([]byte(word))
			}
			f.SetFilter(w.Filter())
		}
		for range 20 {
			asked := randomWord(r, alphabet, 9)
			if r.IntN(2) == 0 { // close to some word
				asked = []rune(words[r.IntN(len(words))])
				at := r.IntN(len(asked))
				if n%5 == 4 {
					at = 0
				}
				asked[at] = alphabet[r.IntN(len(alphabet))]
			}
			limit, prefix := r.IntN(3), r.IntN(2) == 0
			var start, end []byte
			if r.IntN(2) == 0 {
				start = []byte(string(randomWord(r, alphabet, 2)))
			}
			if r.IntN(2) == 0 {
				end = []byte(string(randomWord(r, alphabet, 2)))
			}
			var want, got []string
			for _, w := range words {
				if d := slowDistance(asked, []rune(w), prefix); d <= limit && w >= string(start) && (end == nil || w < string(end)) &&
					!(prefix && beginsWith(asked, []rune(w))) {
					want = append(want, w)
				}
			}
			a := newAutomaton(string(asked), limit, prefix)
			var walk fst.Walk
			for walk.Start(&f, a, start, end); walk.Next(); {
				got = append(got, string(walk.Word()))
			}
			if !slices.Equal(got, want) || walk.Err() != nil {
				t.Fatalf("%q, limit %d, prefix %v, from %q to %q: %q, want %q (%v)", string(asked), limit, prefix, start, end, got, want, walk.Err())
			}
			lost += len(got)
			for walk.Start(&none, a, start, end); walk.Next(); {
				lost--
			}
		}
	}
	if lost == 0 {
		t.Error("no walk used a filter")
	}
}

// beginsWith reports whether a word starts with the query exactly: a walk for typos in prefixes skips such words.
func beginsWith(asked, word []rune) bool {
	return len(word) >= len(asked) && slices.Equal(asked, word[:len(asked)])
}

func BenchmarkWalkOfTypos(b *testing.B) {
	r := rand.New(rand.NewPCG(3, 3))
	syllables := []string{"ka", "ro", "mi", "ten", "lo", "sa", "vir", "du", "pel", "no", "gra", "tis", "bel", "uri", "zan", "fo", "str", "ing", "er"}
	word := func() string {
		w := ""
		for range 2 + r.IntN(4) {
			w += syllables[min(r.IntN(len(syllables)), r.IntN(len(syllables)))]
		}
		return w
	}
	var words []string
	for range 200_000 {
		words = append(words, word())
	}
	f, words := dictionary(b, words)
	for _, limit := range []int{1, 2} {
		for _, prefix := range []bool{false, true} {
			b.Run(fmt.Sprintf("limit=%d/prefix=%v", limit, prefix), func(b *testing.B) {
				var walk fst.Walk
				for i := 0; b.Loop(); i++ {
					w := words[i*7919%len(words)]
					end := []byte{w[0] + 1}
					for walk.Start(&f, newAutomaton(w, limit, prefix), []byte(w[:1]), end); walk.Next(); {
					}
				}
			})
		}
	}
}
