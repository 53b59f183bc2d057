package fst

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/blevesearch/vellum"
)

// numbered is a word and its number.
type numbered struct {
	word   string
	number uint64
}

// built returns the FST of words.
func built(t testing.TB, b *Builder, words []numbered) []byte {
	t.Helper()
	for _, w := range words {
		if err := b.Add([]byte(w.word), w.number); err != nil {
			t.Fatal(err)
		}
	}
	data, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// builtByVellum returns the FST that vellum builds with a registry that has room for all states.
func builtByVellum(t testing.TB, words []numbered) []byte {
	t.Helper()
	var buf bytes.Buffer
	b, err := vellum.New(&buf, &vellum.BuilderOpts{Encoder: Version, RegistryTableSize: 20011, RegistryMRUSize: 16})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range words {
		if err := b.Insert([]byte(w.word), w.number); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// randomNumbered makes up to n words of few letters, so that they share prefixes and suffixes. Numbers ascend, like addresses of postings,
// or are in random order.
func randomNumbered(rng *rand.Rand, n int) []numbered {
	var words []string
	wide := rng.IntN(3) == 0 // states with up to 256 transitions
	for range rng.IntN(n) {
		w := randomWord(rng)
		if wide {
			w = string([]byte{byte(rng.IntN(256))}) + w
		}
		if rng.IntN(4) == 0 {
			w += strings.Repeat(w, rng.IntN(4)) + "zzz"
		}
		words = append(words, w)
	}
	if rng.IntN(2) == 0 {
		words = append(words, "")
	}
	slices.Sort(words)
	words = slices.Compact(words)
	ascend, width := rng.IntN(2) == 0, rng.IntN(60)
	var all []numbered
	number := uint64(0)
	for _, w := range words {
		step := rng.Uint64N(1 << rng.IntN(width+1))
		if ascend {
			number += step
		} else {
			number = step
		}
		all = append(all, numbered{w, number})
	}
	return all
}

// TestBuilderWritesAsVellum compares bytes with vellum's. Both builders find all equal states.
func TestBuilderWritesAsVellum(t *testing.T) {
	rng := testRand(t)
	for n := range 60 {
		words := randomNumbered(rng, 1<<(n%12))
		got, want := built(t, newBuilder(1<<18), words), builtByVellum(t, words)
		if !bytes.Equal(got, want) {
			t.Fatalf("%d words: %d bytes differ from the %d bytes of vellum", len(words), len(got), len(want))
		}
	}
}

// TestBuilderWritesExtremes compares bytes with vellum's for words of more than 255 bytes, the largest numbers, and states with each
// transition count that has its own encoding.
func TestBuilderWritesExtremes(t *testing.T) {
	long := strings.Repeat("a", 255)
	of := func(letters int) (words []numbered) {
		for i := range letters {
			words = append(words, numbered{string([]byte{byte(i)}) + "end", math.MaxUint64 - uint64(i)})
		}
		return words
	}
	for name, words := range map[string][]numbered{
		"long words":      {{long, 1}, {long + "a", 2}, {long + "ab", 3}, {strings.Repeat("ab", maxWordTested/2), 4}},
		"largest number":  {{"", math.MaxUint64}, {"a", math.MaxUint64}, {"ab", 0}, {"ac", math.MaxUint64}, {"b", math.MaxUint64 - 1}},
		"only the empty":  {{"", math.MaxUint64}},
		"63 transitions":  of(63),
		"64 transitions":  of(64),
		"255 transitions": of(255),
		"256 transitions": of(256),
	} {
		t.Run(name, func(t *testing.T) {
			data := built(t, newBuilder(1<<10), words)
			if !bytes.Equal(data, builtByVellum(t, words)) {
				t.Error("the bytes differ from vellum's")
			}
			f, err := Open(data)
			if err != nil {
				t.Fatal(err)
			}
			for _, w := range words {
				if n, ok, err := f.Get([]byte(w.word)); n != w.number || !ok || err != nil {
					t.Fatalf("%.20q is %d (%v, %v), want %d", w.word, n, ok, err, w.number)
				}
			}
		})
	}
}

// maxWordTested is the length of the longest word that a segment accepts.
const maxWordTested = 1<<16 - 1

// TestBuilderComparesStatesOfEqualHash gives all registry slots the hash of the state that is searched.
func TestBuilderComparesStatesOfEqualHash(t *testing.T) {
	rng := testRand(t)
	b := newBuilder(1)
	states := map[uint32]string{}
	addresses := []uint32{emptyState}
	found, compared := 0, 0
	for range 2000 {
		s := openState{final: rng.IntN(2) == 0}
		for key := range rng.IntN(3) {
			s.closed = append(s.closed, transition{rng.Uint64N(3), addresses[rng.IntN(min(len(addresses), 3))], byte(key)})
		}
		if s.final {
			s.count = rng.Uint64N(3)
		} else if len(s.closed) == 0 {
			continue
		}
		h := s.hash()
		for i, slot := range b.registry {
			if slot != 0 {
				b.registry[i] = h>>32<<32 | uint64(uint32(slot))
				compared++
			}
		}
		at, want := b.address(&s), fmt.Sprint(s)
		switch got, known := states[at]; {
		case !known:
			states[at] = want
			addresses = append(addresses, at)
		case got != want:
			t.Fatalf("the state %s has the address of %s", want, got)
		default:
			found++
		}
	}
	if found == 0 || compared == 0 || len(states) < 100 {
		t.Errorf("%d states, %d found, %d equal hashes", len(states), found, compared)
	}
}

// TestBuilderWithSmallRegistry checks that an FST from too small a registry is larger but has the same words.
func TestBuilderWithSmallRegistry(t *testing.T) {
	rng := testRand(t)
	larger := 0
	for range 20 {
		words := randomNumbered(rng, 3000)
		data := built(t, newBuilder(1), words)
		f, err := Open(data)
		if err != nil || f.Words() != len(words) {
			t.Fatal(f.Words(), err)
		}
		twin, err := vellum.Load(data)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range words {
			n, ok, err := f.Get([]byte(w.word))
			m, okTwin, errTwin := twin.Get([]byte(w.word))
			if !ok || !okTwin || n != w.number || m != w.number || err != nil || errTwin != nil {
				t.Fatalf("%q is %d (%v, %v), for vellum %d (%v, %v); want %d", w.word, n, ok, err, m, okTwin, errTwin, w.number)
			}
		}
		var walk Walk
		walk.Start(&f, nil, nil, nil)
		i := 0
		for ; walk.Next(); i++ {
			if got := (numbered{string(walk.word), walk.value}); got != words[i] {
				t.Fatalf("word %d is %v, want %v", i, got, words[i])
			}
		}
		if i != len(words) || walk.err != nil {
			t.Fatal(i, walk.err)
		}
		if least := built(t, newBuilder(1<<14), words); len(data) > len(least) {
			larger++
		} else if len(data) < len(least) {
			t.Fatalf("%d bytes, with a large registry %d", len(data), len(least))
		}
	}
	if larger == 0 {
		t.Error("no registry evicted a state")
	}
}

// TestBuilderRejectsUnorderedWords checks that words out of order are an error and leave the builder unchanged.
func TestBuilderRejectsUnorderedWords(t *testing.T) {
	b := NewBuilder(3)
	var words []numbered
	for i, w := range []string{"", "", "b", "a", "b", "bc", "b", "bb", "c", "bcd"} {
		if err := b.Add([]byte(w), uint64(i)); err == nil {
			words = append(words, numbered{w, uint64(i)})
		}
	}
	if want := "[{ 0} {b 2} {bc 5} {c 8}]"; fmt.Sprint(words) != want {
		t.Fatalf("the builder has %v, want %s", words, want)
	}
	data, err := b.Finish()
	if err != nil || !bytes.Equal(data, builtByVellum(t, words)) {
		t.Error(err, len(data))
	}
}

func FuzzBuilder(f *testing.F) {
	f.Add([]byte("a\nab\nabc\nb"), uint64(3))
	f.Add([]byte("station\nnation\nration\n\nstations"), uint64(1)<<50)
	f.Fuzz(func(t *testing.T, text []byte, seed uint64) {
		lines := strings.Split(string(text), "\n")
		slices.Sort(lines)
		lines = lines[:min(len(lines), 200)]
		rng := rand.New(rand.NewPCG(seed, 0))
		var words []numbered
		for _, w := range slices.Compact(lines) {
			words = append(words, numbered{w, rng.Uint64() >> rng.IntN(64)})
		}
		if !bytes.Equal(built(t, newBuilder(1<<16), words), builtByVellum(t, words)) {
			t.Fatal("the bytes differ from vellum's")
		}
	})
}

func BenchmarkBuilder(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	var words []numbered
	for range 200000 {
		words = append(words, numbered{word: fmt.Sprintf("%s%s%x", randomWord(rng), randomWord(rng), rng.IntN(1<<rng.IntN(16)))})
	}
	slices.SortFunc(words, func(a, b numbered) int { return strings.Compare(a.word, b.word) })
	words = slices.CompactFunc(words, func(a, b numbered) bool { return a.word == b.word })
	at := uint64(0)
	for i := range words {
		words[i].number = at
		at += 5 + uint64(rng.IntN(60))
	}
	b.Run("own", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			b.ReportMetric(float64(len(built(b, NewBuilder(len(words)), words))), "size")
		}
	})
	b.Run("vellum", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var buf bytes.Buffer
			v, _ := vellum.New(&buf, nil)
			for _, w := range words {
				_ = v.Insert([]byte(w.word), w.number)
			}
			_ = v.Close()
			b.ReportMetric(float64(buf.Len()), "size")
		}
	})
}
