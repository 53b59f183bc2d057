package query

import (
	"bytes"
	"cmp"
	"container/heap"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// Near is a word of the index that a misspelt word may stand for.
type Near struct {
	Word      string
	Typos     int
	Documents int // that have the word
}

const (
	maxNearLooked = 4096 // words of a segment that are compared
	maxNearAmong  = 64   // words whose documents are counted
)

// nearTypos is how many typos a word may have to be suggested.
func nearTypos(word string) int {
	switch n := utf8.RuneCountInString(word); {
	case n < 3:
		return 0
	case n < 5:
		return 1
	}
	return maxLimit
}

// Near returns up to most words that a misspelt word may stand for: words with fewer typos first, then those with the same first
// letter, then those of more documents. It counts only documents among the given rows, and only the given fields. When late reports
// that time is over, words may be missing.
func (ix *Index) Near(word string, fields FieldSet, among []*roaring.Bitmap, most int, late func() bool) ([]Near, error) {
	limit := nearTypos(word)
	if limit == 0 || len(word) > maxWordBytes {
		return nil, nil
	}
	a := newAutomaton(word, limit, false)
	defer automata.Put(a)
	p := &pace{stop: late}
	type candidate struct {
		Near
		bound int // documents at most
	}
	found := map[string]*candidate{}
	for i, s := range ix.Segments {
		if among[i].IsEmpty() || !p.spend(s.Words()/indexWords) {
			continue
		}
		it := s.Terms(firstWord, nil, a)
		for looked := 0; looked < maxNearLooked && it.Next() && p.spend(wordSteps); looked++ {
			w := it.Word()
			typos, _ := a.distances(w)
			if typos == 0 || typos > limit {
				continue
			}
			c := found[string(w)]
			if c == nil {
				c = &candidate{Near: Near{Word: string(w), Typos: typos}}
				found[c.Word] = c
			}
			c.bound += it.Posting().Most()
		}
		err := it.Err()
		it.Close()
		if err != nil {
			return nil, err
		}
	}
	order := byLikeness(word)
	all := make([]*candidate, 0, len(found))
	for _, c := range found {
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *candidate) int {
		return cmp.Or(order(&a.Near, &b.Near), b.bound-a.bound, strings.Compare(a.Word, b.Word))
	})
	var near []Near
	for _, c := range all[:min(len(all), maxNearAmong)] {
		if !p.spend(wordSteps) {
			break
		}
		if c.Documents = ix.Documents(c.Word, fields, among); c.Documents > 0 {
			near = append(near, c.Near)
		}
	}
	sortNear(word, near)
	return near[:min(most, len(near))], nil
}

// byLikeness compares words by their typos, and by whether they begin as a word does.
func byLikeness(word string) func(a, b *Near) int {
	first := firstLetter(word)
	other := func(n *Near) int {
		if strings.HasPrefix(n.Word, first) {
			return 0
		}
		return 1
	}
	return func(a, b *Near) int { return cmp.Or(a.Typos-b.Typos, other(a)-other(b)) }
}

func sortNear(word string, near []Near) {
	order := byLikeness(word)
	slices.SortFunc(near, func(a, b Near) int {
		return cmp.Or(order(&a, &b), b.Documents-a.Documents, strings.Compare(a.Word, b.Word))
	})
}

// MergeNear merges the results of Near from several parts of the documents. It adds up the documents of equal words, and returns up
// to most words in the order of Near. It modifies near.
func MergeNear(word string, near []Near, most int) []Near {
	slices.SortStableFunc(near, func(a, b Near) int { return strings.Compare(a.Word, b.Word) })
	merged := near[:0]
	for _, n := range near {
		if last := len(merged) - 1; last >= 0 && merged[last].Word == n.Word {
			merged[last].Documents += n.Documents
		} else {
			merged = append(merged, n)
		}
	}
	sortNear(word, merged)
	return merged[:min(most, len(merged))]
}

// Displayed returns the displayed fields of a set (nil: all searchable fields), or nil for all.
func (ix *Index) Displayed(fields FieldSet) FieldSet {
	all := ix.in(fields)
	shown, hides := make(FieldSet, ix.Fields.Len()), false
	for i := range shown {
		f := ix.Fields.Info(segment.FieldID(i))
		shown[i] = f.Displayed && all.Has(segment.FieldID(i))
		hides = hides || f.Searchable && !f.Displayed
	}
	if !hides {
		return all
	}
	return shown
}

// Documents returns how many documents among some rows, by segment, have a word in some fields.
func (ix *Index) Documents(word string, fields FieldSet, among []*roaring.Bitmap) (n int) {
	for i, s := range ix.Segments {
		if p, ok := s.Term([]byte(word)); ok && !among[i].IsEmpty() {
			n += int(rowsIn(s, p, fields).AndCardinality(among[i]))
		}
	}
	return n
}

// Begins reports whether a document among some rows, by segment, has a word in some fields that begins with a prefix. It looks at the first
// thousand words of a segment.
func (ix *Index) Begins(prefix string, fields FieldSet, among []*roaring.Bitmap) (bool, error) {
	for i, s := range ix.Segments {
		if among[i].IsEmpty() {
			continue
		}
		begins, err := beginsIn(s, []byte(prefix), fields, among[i])
		if begins || err != nil {
			return begins, err
		}
	}
	return false, nil
}

func beginsIn(s segment.Live, prefix []byte, fields FieldSet, among *roaring.Bitmap) (bool, error) {
	it := s.Terms(prefix, after(prefix), nil)
	defer it.Close()
	for looked := 0; looked < maxPrefixWords && it.Next(); looked++ {
		if rowsIn(s, it.Posting(), fields).Intersects(among) {
			return true, nil
		}
	}
	return false, it.Err()
}

// frequentHeap has the words of the most documents so far, the one of the fewest first.
type frequentHeap []Near

func (h frequentHeap) Len() int           { return len(h) }
func (h frequentHeap) Less(i, j int) bool { return byFrequency(h[i], h[j]) > 0 }
func (h frequentHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *frequentHeap) Push(x any)        { *h = append(*h, x.(Near)) }
func (h *frequentHeap) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func byFrequency(a, b Near) int {
	return cmp.Or(b.Documents-a.Documents, strings.Compare(a.Word, b.Word))
}

// Frequent returns up to most words in the given fields that most of the given rows have. It leaves out words of fewer than three
// characters, numbers, and words with fewer than least or more than highest documents. It calls rest now and then, and stops with its
// error.
func (ix *Index) Frequent(fields FieldSet, among []*roaring.Bitmap, most, least, highest int, wanted func(word string) bool, rest func() error) ([]Near, error) {
	walks := make([]*segment.TermIterator, len(ix.Segments))
	left := make([]bool, len(walks))
	for i, s := range ix.Segments {
		walks[i] = s.Terms(firstWord, nil, nil)
		defer walks[i].Close()
		left[i] = walks[i].Next()
	}
	var best frequentHeap
	var word []byte
	for words := 0; ; words++ {
		if words%1024 == 0 {
			if err := rest(); err != nil {
				return nil, err
			}
		}
		word = word[:0]
		for i, it := range walks {
			if left[i] && (len(word) == 0 || bytes.Compare(it.Word(), word) < 0) {
				word = append(word[:0], it.Word()...)
			}
		}
		if len(word) == 0 {
			break
		}
		bound := 0
		for i, it := range walks {
			if left[i] && bytes.Equal(it.Word(), word) {
				bound += it.Posting().Most()
				left[i] = it.Next()
			}
		}
		if bound < least || len(best) == most && bound < best[0].Documents || utf8.RuneCount(word) < 3 || isNumber(word) {
			continue
		}
		w := Near{Word: string(word)}
		if w.Documents = ix.Documents(w.Word, fields, among); w.Documents < least || w.Documents > highest || !wanted(w.Word) {
			continue
		}
		if len(best) < most {
			heap.Push(&best, w)
		} else if byFrequency(w, best[0]) < 0 {
			best[0] = w
			heap.Fix(&best, 0)
		}
	}
	for _, it := range walks {
		if err := it.Err(); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(best, byFrequency)
	return best, nil
}
