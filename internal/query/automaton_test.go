package query

import (
	"math/rand/v2"
	"testing"
	"time"
)

// slowDistance is the reference distance, computed with the full table. With prefix, it is the distance to the nearest prefix of b.
func slowDistance(a, b []rune, prefix bool) int {
	t := make([][]int, len(b)+1)
	for j := range t {
		t[j] = make([]int, len(a)+1)
		for i := range t[j] {
			switch {
			case i == 0 || j == 0:
				t[j][i] = i + j
				continue
			case a[i-1] == b[j-1]:
				t[j][i] = t[j-1][i-1]
			default:
				t[j][i] = t[j-1][i-1] + 1
			}
			t[j][i] = min(t[j][i], t[j-1][i]+1, t[j][i-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				t[j][i] = min(t[j][i], t[j-2][i-2]+1)
			}
		}
	}
	best := t[len(b)][len(a)]
	if prefix {
		for j := range t {
			best = min(best, t[j][len(a)])
		}
	}
	return best
}

func randomWord(r *rand.Rand, alphabet []rune, longest int) []rune {
	w := make([]rune, 1+r.IntN(longest))
	for i := range w {
		w[i] = alphabet[r.IntN(len(alphabet))]
	}
	return w
}

func TestAutomatonAgainstTable(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for n := range 60000 {
		alphabet := []rune("abc")
		if n%3 == 1 {
			alphabet = []rune("aéβ漢😀")
		}
		longest := 9
		if n%500 == 2 {
			longest = 200
		}
		a, b := randomWord(r, alphabet, longest), randomWord(r, alphabet, longest)
		if longest > 9 { // similar words, so that the automaton reaches their ends
			b = append([]rune(nil), a...)
			for range r.IntN(4) {
				b[r.IntN(len(b))] = 'x'
			}
		}
		limit, prefix := r.IntN(3), r.IntN(2) == 0
		want := slowDistance(a, b, prefix)
		m := newAutomaton(string(a), limit, prefix)
		got, gotWhole := m.distances([]byte(string(b)))
		if want := slowDistance(a, b, false); (want <= limit || gotWhole <= limit) && gotWhole != want {
			t.Fatalf("distance of %q and the whole of %q, limit %d, prefix %v: %d, want %d", string(a), string(b), limit, prefix, gotWhole, want)
		}
		if (want <= limit || got <= limit) && got != want {
			t.Fatalf("distance of %q and %q, limit %d, prefix %v: %d, want %d", string(a), string(b), limit, prefix, got, want)
		}
		if s := run(m, string(b)); m.IsMatch(s) != (want <= limit) {
			t.Fatalf("match of %q and %q, limit %d, prefix %v: %v", string(a), string(b), limit, prefix, m.IsMatch(s))
		}
		if prefix {
			if got := PrefixDistance(a, string(b), limit); got != min(want, limit+1) {
				t.Fatalf("PrefixDistance of %q and %q, limit %d: %d, want %d", string(a), string(b), limit, got, want)
			}
		}
		if got, want := Distance(a, string(b), limit), min(slowDistance(a, b, false), limit+1); got != want {
			t.Fatalf("Distance of %q and %q, limit %d: %d, want %d", string(a), string(b), limit, got, want)
		}
	}
}

func run(a *automaton, w string) int {
	s := a.Start()
	for _, b := range []byte(w) {
		s = a.Accept(s, b)
	}
	return s
}

func TestAutomatonOfExamples(t *testing.T) {
	for _, c := range []struct {
		query, word string
		prefix      bool
		want        int
	}{
		{"planet", "plamet", false, 1}, {"planet", "plnaet", false, 1}, {"planet", "plaet", false, 1},
		{"planet", "planets", false, 1}, {"planet", "planetarium", true, 0}, {"planet", "plmnetarium", true, 1},
		{"astronomy", "zstronomy", false, 1}, {"astronomy", "astronomyxx", false, 2}, {"astronomy", "axtronoxy", false, 2},
		{"astronomy", "zztronomy", false, 2}, {"ab", "", true, 2}, {"gâteau", "gateau", false, 1},
	} {
		if got, _ := newAutomaton(c.query, 2, c.prefix).distances([]byte(c.word)); got != c.want {
			t.Errorf("%q, %q, prefix %v: %d, want %d", c.query, c.word, c.prefix, got, c.want)
		}
	}
}

func TestAutomatonCanMatch(t *testing.T) {
	for _, c := range []struct {
		query, word string
		prefix      bool
		want        bool
	}{
		{"planet", "plane", true, true}, {"planet", "planet", true, false}, {"planet", "planet", false, true},
		{"planet", "plamet", true, true}, {"planet", "zzz", true, false}, {"gâteau", "gâteau", true, false},
	} {
		a := newAutomaton(c.query, 1, c.prefix)
		if got := a.CanMatch(run(a, c.word)); got != c.want {
			t.Errorf("%q, %q, prefix %v: %v, want %v", c.query, c.word, c.prefix, got, c.want)
		}
	}
}

// TestAutomatonCachesSteps compares cached steps with computed ones. The automata are reused for several words.
func TestAutomatonCachesSteps(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	alphabet := []rune("abcdefghij0123456789éβ漢😀")
	known := 0
	for range 300 {
		a := newAutomaton(string(randomWord(r, alphabet[r.IntN(20):], 12)), 1+r.IntN(2), r.IntN(2) == 0)
		for range 40 {
			s := a.Start()
			for _, c := range randomWord(r, alphabet, 14) {
				if s == 0 {
					break
				}
				if r.IntN(8) == 0 {
					c = noCharacter
				}
				before := a.steps
				want := a.compute(s, c)
				if s = a.step(s, c); s != want {
					t.Fatalf("word %q: state %x after %q, want %x", string(a.word), s, c, want)
				}
				if a.steps == before {
					known++
				}
			}
		}
		automata.Put(a)
	}
	if known == 0 {
		t.Error("no step was cached")
	}
}
