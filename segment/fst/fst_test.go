package fst

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/blevesearch/vellum"
	"github.com/blevesearch/vellum/levenshtein"
)

// randomFST builds an FST over random keys with vellum.
func randomFST(t testing.TB, rng *rand.Rand) (data []byte, keys []string) {
	t.Helper()
	n := rng.IntN(2000)
	wide := rng.IntN(3) == 0 // all bytes, so that states have up to 256 transitions
	for range n {
		k := []byte(randomWord(rng))
		if wide {
			for range rng.IntN(3) {
				k = append(k, byte(rng.IntN(256)))
			}
		}
		keys = append(keys, string(k))
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	var buf bytes.Buffer
	b, err := vellum.New(&buf, nil)
	if err != nil {
		t.Fatal(err)
	}
	value := uint64(0)
	for _, k := range keys {
		if err := b.Insert([]byte(k), value); err != nil {
			t.Fatal(err)
		}
		value += uint64(rng.IntN(1 << rng.IntN(30)))
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes(), keys
}

// TestWalksAsVellum compares all lookups and walks with those of vellum's reader.
func TestWalksAsVellum(t *testing.T) {
	rng := testRand(t)
	lev, err := levenshtein.NewLevenshteinAutomatonBuilder(2, true)
	if err != nil {
		t.Fatal(err)
	}
	for range 30 {
		data, keys := randomFST(t, rng)
		twin, err := vellum.Load(data)
		if err != nil {
			t.Fatal(err)
		}
		f, err := Open(data)
		if err != nil || f.Words() != len(keys) {
			t.Fatal(f.Words(), err)
		}
		probe := func() []byte {
			if len(keys) > 0 && rng.IntN(2) == 0 {
				k := keys[rng.IntN(len(keys))]
				return []byte(k[:rng.IntN(len(k)+1)])
			}
			return []byte(randomWord(rng))
		}
		for _, k := range keys {
			want, _, _ := twin.Get([]byte(k))
			if got, ok, err := f.Get([]byte(k)); !ok || got != want || err != nil {
				t.Fatalf("%q is %d (%v, %v), want %d", k, got, ok, err, want)
			}
		}
		for range 50 {
			k := probe()
			want := slices.ContainsFunc(keys, func(key string) bool { return strings.HasPrefix(key, string(k)) })
			if got, err := f.Begins(k); got != want || err != nil {
				t.Fatalf("Begins(%q) is %v (%v), want %v", k, got, err, want)
			}
		}
		for range 50 {
			k := probe()
			want, exists, _ := twin.Get(k)
			if got, ok, err := f.Get(k); ok != exists || ok && got != want || err != nil {
				t.Fatalf("%q is %d (%v, %v), want %d (%v)", k, got, ok, err, want, exists)
			}
		}
		for range 50 { // a cursor follows each prefix of a word, and knows which prefixes are words
			k := probe()
			c := f.Cursor()
			for i := range k {
				prefix := string(k[:i+1])
				at, _ := slices.BinarySearch(keys, prefix)
				goesOn := at < len(keys) && strings.HasPrefix(keys[at], prefix)
				if got := c.Next(k[i]); got != goesOn {
					t.Fatalf("the cursor accepts %q: %v", prefix, got)
				} else if !got {
					break
				}
				want, exists, _ := twin.Get(k[:i+1])
				if got, ok := c.Value(); ok != exists || ok && got != want {
					t.Fatalf("%q is %d (%v), want %d (%v)", prefix, got, ok, want, exists)
				}
			}
		}
		for range 40 {
			var start, end []byte
			if rng.IntN(3) > 0 {
				start = probe()
			}
			if rng.IntN(3) > 0 {
				end = probe()
			}
			if start != nil && end != nil && bytes.Compare(start, end) >= 0 {
				continue // vellum's iterator is at start then
			}
			var a vellum.Automaton
			if rng.IntN(2) == 0 {
				if a, err = lev.BuildDfa(string(probe()), uint8(1+rng.IntN(2))); err != nil {
					t.Fatal(err)
				}
			}
			var want, got []string
			it, err := twin.Search(a, start, end)
			for ; err == nil; err = it.Next() {
				if k, v := it.Current(); end == nil || bytes.Compare(k, end) < 0 {
					want = append(want, fmt.Sprint(string(k), v))
				}
			}
			if !errors.Is(err, vellum.ErrIteratorDone) {
				t.Fatal(err)
			}
			var walk Walk
			told, tells := map[uint32]bool{}, rng.IntN(2) == 0
			if tells {
				walk.Expect(func(at uint32) {
					if s := (state{}); f.decode(at, &s) {
						told[s.bottom] = true
					}
				})
			}
			walk.Start(&f, a, start, end)
			for walk.Next() {
				for _, s := range walk.stack {
					if tells && !told[s.bottom] {
						t.Fatalf("the walk read the state at %d before it called Expect", s.bottom)
					}
				}
				got = append(got, fmt.Sprint(string(walk.word), walk.value))
			}
			if walk.Next() || walk.err != nil {
				t.Fatal(walk.err)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("from %q to %q (automaton %v): %d words, want %d", start, end, a != nil, len(got), len(want))
			}
		}
	}
}

func TestWalkOfAnEmptyRange(t *testing.T) {
	rng := testRand(t)
	data, keys := randomFST(t, rng)
	for len(keys) < 10 {
		data, keys = randomFST(t, rng)
	}
	f, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range []string{keys[5], keys[4], "\x00"} {
		var walk Walk
		walk.Start(&f, nil, []byte(keys[5]), []byte(end))
		if walk.Next() {
			t.Fatalf("the range from %q to %q has %q", keys[5], end, walk.word)
		}
	}
}

// FuzzFST walks arbitrary bytes, which must not panic or loop forever.
func FuzzFST(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 4 {
		data, _ := randomFST(f, rng)
		f.Add(data[:min(len(data), 400)], []byte("ab"))
		f.Add(append(append([]byte(nil), data[:min(len(data), 200)]...), data[len(data)-16:]...), []byte("a"))
	}
	f.Fuzz(func(t *testing.T, data, word []byte) {
		x, err := Open(data)
		if err != nil {
			return
		}
		_, _, _ = x.Get(word)
		c := x.Cursor()
		for _, b := range word {
			if !c.Next(b) {
				break
			}
		}
		var walk Walk
		walk.Start(&x, &Budget{Left: 10000}, word, nil)
		for walk.Next() {
		}
	})
}

func testRand(t testing.TB) *rand.Rand {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	return rand.New(rand.NewPCG(seed, 0))
}

func randomWord(rng *rand.Rand) string {
	letters := []string{"a", "b", "c", "d", "é", "日", "z"}
	var b strings.Builder
	for range 1 + rng.IntN(6) {
		b.WriteString(letters[min(rng.IntN(len(letters)), rng.IntN(len(letters)))])
	}
	return b.String()
}
