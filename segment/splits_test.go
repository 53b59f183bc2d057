package segment

import (
	"context"
	"fmt"
	"testing"

	"svc/internal/vfs"
)

// TestSplits checks that Splits finds the splits whose parts Term finds.
func TestSplits(t *testing.T) {
	rng := testRand(t)
	found := 0
	for n := range 40 {
		fs := vfs.NewMem()
		b := NewBuilder(BuilderOptions{})
		letters := []string{"a", "b", "é", "漢", "\x00", "\xff"}[:2+rng.IntN(5)]
		random := func() (word string) {
			for range 1 + rng.IntN(4) {
				word += letters[rng.IntN(len(letters))]
			}
			return word
		}
		b.StartDoc(0, []byte("0"), []byte("{}"))
		for range rng.IntN(60) {
			b.Word(3, []byte(random()), uint16(rng.IntN(100)))
		}
		b.EndDoc()
		name := fmt.Sprint(n)
		if _, err := b.Write(context.Background(), fs, name); err != nil {
			t.Fatal(err)
		}
		r := openSegment(t, fs, name)
		for range 50 {
			word := random() + random()
			var want, got []string
			for at := range word {
				p, ok := r.Term([]byte(word[:at]))
				q, also := r.Term([]byte(word[at:]))
				if at > 0 && ok && also {
					want = append(want, fmt.Sprint(at, p.start, q.start))
				}
			}
			for at, parts := range r.Splits(word) {
				got = append(got, fmt.Sprint(at, parts[0].start, parts[1].start))
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Fatalf("%q: %v, want %v", word, got, want)
			}
			found += len(want)
			for range r.Splits(word) {
				break
			}
		}
	}
	if found < 100 {
		t.Errorf("%d places", found)
	}
}
