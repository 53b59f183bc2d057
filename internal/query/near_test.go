package query

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestNearAndFrequentWordsAgainstAllWords compares the corrections of a misspelt word, and the most frequent words, with a scan of all
// words of all documents.
func TestNearAndFrequentWordsAgainstAllWords(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 7))
	letters := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteString([]string{"a", "b", "é", "5"}[r.IntN(4)])
		}
		return b.String()
	}
	found, frequent := 0, 0
	for range 20 {
		ix := emptyIndex(t, `{}`)
		parts := make([][]string, 1+r.IntN(3))
		for i := range parts {
			for range 1 + r.IntN(10) { // so few words that all are counted
				parts[i] = append(parts[i], letters(2+r.IntN(6))+" "+letters(2+r.IntN(6)))
			}
		}
		ix.Segments = textSegments(t, ix, parts)
		among := make([]*roaring.Bitmap, len(parts))
		documents := map[string]int{}
		for i, part := range parts {
			among[i] = roaring.New()
			for row, doc := range part {
				if r.IntN(4) == 0 {
					continue
				}
				among[i].Add(uint32(row))
				words := strings.Fields(strings.ReplaceAll(doc, "é", "e"))
				slices.Sort(words)
				for _, w := range slices.Compact(words) {
					documents[w]++
				}
			}
		}
		fields := FieldSet(nil)
		if r.IntN(2) == 0 {
			fields = FieldSet{true}
		}
		for range 20 {
			asked := strings.ReplaceAll(letters(2+r.IntN(6)), "é", "e")
			var want []Near
			for w, n := range documents {
				typos := slowDistance([]rune(asked), []rune(w), false)
				if typos > 0 && typos <= nearTypos(asked) {
					want = append(want, Near{w, typos, n})
				}
			}
			slices.SortFunc(want, func(a, b Near) int {
				other := func(n Near) int {
					if n.Word[0] == asked[0] {
						return 0
					}
					return 1
				}
				return cmp.Or(a.Typos-b.Typos, other(a)-other(b), b.Documents-a.Documents, strings.Compare(a.Word, b.Word))
			})
			got, err := ix.Near(asked, fields, among, 3, never)
			if err != nil {
				t.Fatal(err)
			}
			if want = want[:min(3, len(want))]; !slices.Equal(got, want) {
				t.Fatalf("%q: %v, want %v", asked, got, want)
			}
			found += len(got)
		}
		least, highest, most := 1+r.IntN(2), 2+r.IntN(9), 1+r.IntN(10)
		var want []Near
		for w, n := range documents {
			if utf8.RuneCountInString(w) >= 3 && strings.Trim(w, "5") != "" && n >= least && n <= highest {
				want = append(want, Near{Word: w, Documents: n})
			}
		}
		slices.SortFunc(want, byFrequency)
		got, err := ix.Frequent(fields, among, most, least, highest, func(string) bool { return true }, func() error { return nil })
		if want = want[:min(most, len(want))]; err != nil || !slices.Equal(got, want) {
			t.Fatalf("%d most frequent words of %d to %d documents: %v, want %v, %v", most, least, highest, got, want, err)
		}
		frequent += len(got)
	}
	if found == 0 || frequent == 0 {
		t.Errorf("%d near words, %d frequent ones", found, frequent)
	}
}
