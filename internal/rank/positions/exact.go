package positions

import (
	"cmp"
	"math"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
	"svc/segment"
	"svc/segment/rowlist"
)

// How a document matches the words of a query in their places. Less is better.
const (
	Whole uint32 = iota // a field is the query
	Start               // a field begins with it
	Apart               // neither
)

// MaxWords is the largest field that can be the query: word counts beyond are not kept.
const MaxWords = 30

// Word is a word with its place in the query.
type Word struct {
	posting  segment.Posting
	Position int
	weights  []int32 // by field: −1 where the word does not count
}

// Exact is words in their places, as a document has them that matches the query as it is written.
type Exact struct {
	Words []Word
	Slots int // how many words a field has that is the query, stop words not counted

	Together bool // each row has all words in one searched field
	AtStart  bool // each row is known to have the first word in its place
}

// ExactOf returns the words of some nodes, each a word or a phrase. ok is false when the segment lacks one.
func (r *Reader) ExactOf(nodes []int, seg int) (e Exact, ok bool) {
	for _, n := range nodes {
		if ok = r.addExact(&e, &r.Graph.Nodes[n], seg); !ok {
			return e, false
		}
	}
	return e, len(e.Words) > 0
}

// addExact adds the words of a node; ok is false when the segment lacks one.
func (r *Reader) addExact(e *Exact, v *query.Node, seg int) (ok bool) {
	if !v.Phrase {
		if len(v.Words[seg]) == 0 {
			return false
		}
		e.Slots += v.Counted
		e.Words = append(e.Words, Word{v.Words[seg][0], int(v.Start), r.Words})
		return true
	}
	p, _ := v.PhraseIn(seg)
	if p == nil {
		return false
	}
	e.Slots += p.Counted()
	for i, w := range p.Segments[seg].Words {
		e.Words = append(e.Words, Word{w, int(v.Start) + i, r.Searched})
	}
	return true
}

// Match lowers the matches of two kinds of rows, independently: rows with each word in its place, in any field that counts, and rows
// in which a searched field has all the words.
func (r *Reader) Match(b *Batch, e Exact, matches []uint32) {
	mark := r.Numbers.Mark()
	defer r.Numbers.Release(mark)
	words := append(r.exact[:0], e.Words...)
	r.exact = words
	var begins []Word // searched last
	if e.Together && e.AtStart && len(words) > 1 {
		begins, words = words[:1], words[1:]
	}
	// The rarest word first, so that the others are searched in few rows.
	slices.SortStableFunc(words, func(a, b Word) int { return cmp.Compare(a.posting.Most(), b.posting.Most()) })
	for len(r.wordScratch) < len(e.Words) {
		r.wordScratch = append(r.wordScratch, nil)
	}
	part := *b
	part.Rows = r.Numbers.Take(len(b.Rows))
	copy(part.Rows, b.Rows)
	index := r.Numbers.Take(len(b.Rows))
	for i := range index {
		index[i] = uint32(i)
	}
	all := r.wordScratch[:0] // of each word the occurrences in the rows that were left
	for _, w := range words {
		if all = r.gatherInPlace(all, &part, w, index); len(part.Rows) == 0 {
			return
		}
	}
	if e.Together {
		for _, i := range index[:len(part.Rows)] {
			matches[i] = min(matches[i], Start)
		}
	}
	last := len(all) - 1
	if len(begins) > 0 {
		if all[last] = r.keepWhole(b, e.Slots, all[last]); len(all[last]) == 0 {
			return
		}
		index = index[:0]
		for _, o := range all[last] {
			index = append(index, uint32(IndexOf(o)))
		}
		slices.Sort(index)
		index = slices.Compact(index)
		part.Rows = part.Rows[:0]
		for _, i := range index {
			part.Rows = append(part.Rows, b.Rows[i])
		}
		all = r.gatherInPlace(all, &part, begins[0], index)
		last++
	}
	if segment.PageByPage() {
		r.expectCounts(b, all[last])
	}
	for i, o := range all[last] {
		if i > 0 && sameFieldAndRow(o, all[last][i-1]) {
			continue
		}
		k := IndexOf(o)
		if r.Searched[FieldOf(o)] < 0 || matches[k] == Whole || !stand(all[:last], o>>16) {
			continue
		}
		if matches[k] = Start; r.isWhole(b, o, e.Slots) {
			matches[k] = Whole
		}
	}
}

// isWhole reports whether the field of an occurrence has as many words as there are slots.
func (r *Reader) isWhole(b *Batch, o uint64, slots int) bool {
	return slots <= MaxWords && r.Segments[b.Segment].WordCount(FieldOf(o), segment.Row(b.Rows[IndexOf(o)])) == slots
}

// expectCounts requests the word counts of the fields of occurrences together, so that they are not read one after the other.
func (r *Reader) expectCounts(b *Batch, occurrences []uint64) {
	rows := make(map[segment.FieldID][]uint32)
	for _, o := range occurrences {
		if f := FieldOf(o); r.Searched[f] >= 0 {
			rows[f] = append(rows[f], b.Rows[IndexOf(o)])
		}
	}
	for f, in := range rows {
		slices.Sort(in)
		r.Segments[b.Segment].ExpectWordCounts(f, in)
	}
}

// keepWhole keeps, in place, one occurrence for each searched field that has as many words as there are slots. Few fields do.
func (r *Reader) keepWhole(b *Batch, slots int, occurrences []uint64) []uint64 {
	if segment.PageByPage() {
		r.expectCounts(b, occurrences)
	}
	n := 0
	for _, o := range occurrences {
		if r.Searched[FieldOf(o)] >= 0 && (n == 0 || !sameFieldAndRow(o, occurrences[n-1])) && r.isWhole(b, o, slots) {
			occurrences[n] = o
			n++
		}
	}
	return occurrences[:n]
}

// gatherInPlace keeps the rows of a batch that have a word in its place, and appends to all the word's occurrences there. index has
// the index of each row in the original batch.
func (r *Reader) gatherInPlace(all [][]uint64, b *Batch, w Word, index []uint32) [][]uint64 {
	own := r.gatherWord(r.wordScratch[len(all)][:0], b, w.posting, w.weights, nil)
	found := r.Numbers.Take(len(b.Rows))
	clear(found)
	want := Bucketed(w.Position)
	for _, o := range own {
		if Bucketed(PositionOf(o)) == want {
			found[IndexOf(o)] = 1
		}
	}
	n := 0
	for _, o := range own {
		if i := IndexOf(o); found[i] != 0 {
			own[n] = o&^(math.MaxUint32<<16) | uint64(index[i])<<16
			n++
		}
	}
	left := 0
	for i, f := range found {
		if f != 0 {
			b.Rows[left], index[left] = b.Rows[i], index[i]
			left++
		}
	}
	b.Rows = b.Rows[:left]
	return append(all, own[:n])
}

// stand reports whether all words have an occurrence in a field of a row.
func stand(words [][]uint64, place uint64) bool {
	for _, w := range words {
		if i, _ := slices.BinarySearch(w, place<<16); i == len(w) || w[i]>>16 != place {
			return false
		}
	}
	return true
}

// HaveAll returns those of some rows of a segment that have all words somewhere, or nil for none.
func (e *Exact) HaveAll(in *roaring.Bitmap) *roaring.Bitmap {
	for _, w := range e.Words {
		if in = and(in, w.posting.Rows()); in == nil {
			break
		}
	}
	return in
}

// WholeFields returns the rows of a segment, ascending, in which a searched field has all words and exactly as many words as slots.
// Few fields have so many words.
func (r *Reader) WholeFields(seg int, e Exact, in *roaring.Bitmap) (found []uint32) {
	if e.Slots > MaxWords {
		return nil
	}
	n := int(in.GetCardinality())
	var all []uint32 // of in, once a field asks for them
	for k := range e.Words[0].posting.Fields() {
		of, ok := r.searchedField(e.Words, k)
		if !ok {
			continue
		}
		rarest := slices.MinFunc(of, func(a, b segment.FieldPosting) int { return cmp.Compare(a.Count(), b.Count()) })
		begin := len(found)
		if short := r.fieldsOfCount(seg, rarest.ID(), e.Slots, min(n, rarest.Count())); short != nil {
			if both := and(in, short); both != nil {
				found, all = append(found, r.RowsIn(both)...), nil
			}
		} else {
			if all == nil && rarest.Count() >= n {
				all = r.RowsIn(in)
			}
			rows := all
			if rarest.Count() < n {
				r.rows = rarest.AppendRows(r.rows[:0])
				rows = r.rows
			}
			found = r.Segments[seg].AppendOfCount(found, rows, rarest.ID(), e.Slots)
		}
		keep := func(has *roaring.Bitmap) {
			kept := slices.DeleteFunc(found[begin:], func(row uint32) bool { return !has.Contains(row) })
			found = found[:begin+len(kept)]
		}
		for i := 0; i < len(of) && len(found) > begin; i++ {
			keep(of[i].Rows())
		}
		keep(in)
	}
	slices.Sort(found)
	return slices.Compact(found)
}

var shortFields = resultcache.NewKind[*roaring.Bitmap]("rows of a field with some number of words")

// ShortRows is the number of rows from which all rows of a field with a certain number of words are cached. (A variable, so that
// tests can lower it.)
var ShortRows = 4096

// fieldsOfCount returns the rows of a segment in which a field has the given number of words, from the cache or computed now. It
// returns nil if reading n rows costs less, on the first request, or if the field has no words: the segment does not list rows
// without words.
func (r *Reader) fieldsOfCount(seg int, f segment.FieldID, words, n int) *roaring.Bitmap {
	if words == 0 || n < ShortRows {
		return nil
	}
	scope := r.OfSegment(seg).Scope
	key := [...]byte{byte(f), byte(f >> 8), byte(words)}
	short, ok := shortFields.Get(scope, key[:])
	if !ok && shortFields.Admit(scope, key[:]) {
		short = rowlist.Flat(r.Segments[seg].RowsOfCount(f, words))
		shortFields.Put(scope, key[:], short, resultcache.Size(short))
	}
	return short
}

// searchedField returns the parts of the postings of some words in the k-th field of the first; ok is false where it is not searched, or
// another word lacks it.
func (r *Reader) searchedField(words []Word, k int) (of []segment.FieldPosting, ok bool) {
	first := words[0].posting.Field(k)
	if r.Searched[first.ID()] < 0 {
		return nil, false
	}
	of = append(of, first)
	for _, w := range words[1:] {
		f, ok := w.posting.Find(first.ID())
		if !ok {
			return nil, false
		}
		of = append(of, f)
	}
	return of, true
}
