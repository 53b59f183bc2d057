package query

import (
	"math/rand/v2"
	"testing"

	"svc/segment/fst"
)

// TestWalksOfTyposReportDamage checks that damage on the path to a misspelt word is reported and not taken for a missing word.
func TestWalksOfTyposReportDamage(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 2))
	var words []string
	for range 60 {
		words = append(words, "a"+string(randomWord(r, []rune("abcdef"), 6)))
	}
	data, words := dictionaryBytes(t, words)
	damaged := 0
	for at := fst.HeaderBytes; at < len(data)-fst.FooterBytes; at++ {
		was := data[at]
		data[at] = 0xff
		f, err := fst.Open(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			_, _, want := f.Get([]byte(word))
			if want == nil {
				continue
			}
			damaged++
			i := at % len(word)
			var walk fst.Walk
			for walk.Start(&f, newAutomaton(word[:i]+"z"+word[i+1:], 1, at%2 == 0), nil, nil); walk.Next(); {
			}
			if walk.Err() == nil {
				t.Fatalf("byte %d, %q with typo %d: no damage is reported, want %v", at, word, i, want)
			}
		}
		data[at] = was
	}
	if damaged < 20 {
		t.Errorf("damage was found in %d words", damaged)
	}
}

// budgeted is an automaton of typos that stops after some steps: a damaged dictionary may have any number of paths.
type budgeted struct {
	*automaton
	left *int
}

func (b budgeted) CanMatch(s int) bool {
	*b.left--
	return *b.left > 0 && b.automaton.CanMatch(s)
}

// FuzzWalkOfTypos walks arbitrary bytes with any filter for any word. It must not panic, loop forever, or return words outside the bounds.
func FuzzWalkOfTypos(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for n := range 6 {
		var words []string
		for range 12 {
			words = append(words, string(randomWord(r, []rune("abcdefghβ漢渢"), 4)))
		}
		data, words := dictionaryBytes(f, words)
		w := fst.NewFilterWriter(len(words))
		for _, word := range words {
			w.Add([]byte(word))
		}
		f.Add(data, words[n], w.Filter(), uint8(n%3), n%2 == 0, "", "")
		data = append([]byte(nil), data...)
		data[fst.HeaderBytes+r.IntN(len(data)-fst.HeaderBytes-fst.FooterBytes)] = 0xff
		f.Add(data, words[n]+"a", make([]byte, 8), uint8(n%3), n%2 == 1, words[1], words[10])
	}
	f.Fuzz(func(t *testing.T, data []byte, word string, filter []byte, limit uint8, prefix bool, start, end string) {
		x, err := fst.Open(data)
		if err != nil || len(data) > 256 || word == "" || len(word) > 250 || limit > maxLimit {
			return
		}
		x.SetFilter(filter)
		left := 10_000
		a := budgeted{newAutomaton(word, int(limit), prefix), &left}
		var below []byte
		if end != "" {
			below = []byte(end)
		}
		var walk fst.Walk
		walk.Start(&x, a, []byte(start), below)
		for n := 0; n < 10_000 && walk.Next(); n++ {
			if w := string(walk.Word()); w < start || below != nil && w >= end {
				t.Fatalf("%q is not from %q to %q", w, start, end)
			}
		}
	})
}
