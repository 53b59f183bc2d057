package segment

import (
	"bytes"
	"fmt"
	"iter"
	"math"
	"sync"

	"github.com/blevesearch/vellum"

	"svc/internal/apierr"
	"svc/internal/invariant"
	"svc/internal/mapped"
	"svc/segment/fst"
)

func (r *Reader) openWords() error {
	r.postings = r.section(tagPostings)
	if err := r.openTerms(r.section(tagTerms)); err != nil {
		return err
	}
	if p := r.section(tagTermFilter); !r.terms.SetFilter(p) {
		return r.damaged(tagTermFilter, "%d bytes", len(p))
	}
	r.bareTerms = r.terms.Bare()
	r.checkedTerms = r.terms.Checked(r.checkState)
	return nil
}

// openTerms reads the head of the dictionary: word → offset in the postings section.
func (r *Reader) openTerms(section []byte) error {
	r.terms = fst.Empty()
	if len(section) == 0 {
		return nil
	}
	if r.late.Load() && len(section) >= fst.HeaderBytes+fst.FooterBytes {
		r.touchLate(section[:fst.HeaderBytes])
		r.touchLate(section[len(section)-fst.FooterBytes:])
	}
	var err error
	if r.terms, err = fst.Open(section); err != nil {
		return r.damagedTerms(err)
	}
	return nil
}

func (r *Reader) damagedTerms(err error) error {
	return &apierr.Corruption{File: r.name, Section: tagTerms.String(), Offset: -1, Reason: err.Error()}
}

// Term returns the posting of a word.
func (r *Reader) Term(word []byte) (Posting, bool) {
	if invariant.Enabled {
		r.checkOpen()
	}
	offset, ok, err := r.dictionary().Get(word)
	if !ok || err != nil {
		return Posting{}, false
	}
	return readPosting(&r.blocks, r.postings, offset)
}

// Splits returns the positions, ascending, where a word splits into two words of the dictionary, with the postings of the two. It
// reads no posting unless both parts are words, which is rare.
func (r *Reader) Splits(word string) iter.Seq2[int, [2]Posting] {
	return func(yield func(int, [2]Posting) bool) {
		if invariant.Enabled {
			r.checkOpen()
		}
		terms := r.dictionary()
		c, read := terms.Cursor(), 0
		for at := range word {
			for ; read < at; read++ {
				if !c.Next(word[read]) {
					return
				}
			}
			left, ok := c.Value()
			if !ok || at == 0 {
				continue
			}
			right, ok, err := terms.Get([]byte(word[at:]))
			if !ok || err != nil {
				continue
			}
			if p, ok := readPosting(&r.blocks, r.postings, left); ok {
				if q, ok := readPosting(&r.blocks, r.postings, right); ok && !yield(at, [2]Posting{p, q}) {
					return
				}
			}
		}
	}
}

// Begins reports whether some word of the dictionary begins with a prefix.
func (r *Reader) Begins(prefix []byte) (bool, error) {
	if invariant.Enabled {
		r.checkOpen()
	}
	some, err := r.dictionary().Begins(prefix)
	if err != nil {
		return false, r.damagedTerms(err)
	}
	return some, nil
}

// Words returns how many words the dictionary has.
func (r *Reader) Words() int { return r.terms.Words() }

// Terms walks the words w with start ≤ w < end (nil: unbounded) that the automaton
// accepts (nil: all), in byte order.
func (r *Reader) Terms(start, end []byte, a vellum.Automaton) *TermIterator {
	it := termIterators.Get().(*TermIterator)
	it.r, it.asks, it.asked = r, a != nil && mapped.PageByPage(), -1
	terms := r.dictionary()
	if it.asks {
		if terms == &r.terms {
			terms = &r.bareTerms
		}
		it.states = r.termPieces.renewed(len(r.section(tagTerms)))
		it.walk.Expect(it.expect)
	}
	it.walk.Start(terms, a, start, end)
	return it
}

var termIterators = sync.Pool{New: func() any {
	it := new(TermIterator)
	it.expect = it.expectState
	return it
}}

// Close releases the memory of the iterator, which must not be used afterwards. Without Close, the garbage collector does.
func (it *TermIterator) Close() {
	it.r, it.states = nil, nil
	it.walk.Forget()
	termIterators.Put(it)
}

// TermIterator is positioned before the first word.
type TermIterator struct {
	r    *Reader
	walk fst.Walk

	asks  bool // for the first page of each posting: the words are scattered, and so are these
	asked int  // the block that was asked for last

	states *askedPieces // of the dictionary
	expect func(at uint32)
}

// Next moves to the next word and reports whether there is one.
func (it *TermIterator) Next() bool {
	if !it.walk.Next() {
		return false
	}
	if it.asks {
		it.ask()
	}
	return true
}

// ask requests the beginning of the posting while the walk continues.
func (it *TermIterator) ask() {
	at := it.walk.Value()
	if block := int(at >> blockBits); block != it.asked && at < uint64(len(it.r.postings)) {
		it.asked = block
		it.r.blocks.request(it.r.postings[at : at+1])
	}
}

// expectState requests the data around a state. States on the way to a word are close together, and so are the states after its
// transitions.
func (it *TermIterator) expectState(at uint32) {
	if !it.states.ask(int(at >> pieceBits)) {
		return
	}
	terms := it.r.section(tagTerms)
	if from := int(at) >> pieceBits << pieceBits; from < len(terms) {
		it.r.blocks.request(terms[from:min(from+1<<pieceBits, len(terms))])
	}
}

// Word returns the current word, valid until the next call of Next.
func (it *TermIterator) Word() []byte { return it.walk.Word() }

// Posting returns the posting of the current word.
func (it *TermIterator) Posting() Posting {
	p, _ := readPosting(&it.r.blocks, it.r.postings, it.walk.Value())
	return p
}

// Err returns the damage that ended the walk early, if any.
func (it *TermIterator) Err() error {
	if it.walk.Err() != nil {
		return fmt.Errorf("cannot walk the words: %w", it.r.damagedTerms(it.walk.Err()))
	}
	return nil
}

// verifyWords walks the dictionary and all postings. Words ascend, and the posting of each begins where the previous one ends. The
// budget stops a forged automaton whose transitions lead to no word.
func (r *Reader) verifyWords() error {
	budget := &fst.Budget{Left: maxWordBytes + 1}
	it := r.Terms(nil, nil, budget)
	words, end := 0, 0
	var last []byte
	stored := r.section(tagTermFilter)
	filter := fst.NewFilterWriterOf(max(len(stored), 8))
	for it.Next() {
		if words > 0 && bytes.Compare(last, it.Word()) >= 0 || len(it.Word()) > maxWordBytes || len(it.Word()) == 0 {
			return r.damaged(tagTerms, "%q follows %q", it.Word(), last)
		}
		last = append(last[:0], it.Word()...)
		filter.Add(last)
		budget.Left = min(budget.Left+len(last), math.MaxInt32)
		if it.walk.Value() != uint64(end) {
			return r.damaged(tagTerms, "%q leads to offset %d, but the posting before ends at %d", last, it.walk.Value(), end)
		}
		p, ok := readPosting(&r.blocks, r.postings, it.walk.Value())
		if !ok {
			return r.damaged(tagPostings, "no posting of %q at offset %d", last, it.walk.Value())
		}
		var err error
		if end, err = r.verifyPosting(tagPostings, p); err != nil {
			return fmt.Errorf("posting of %q: %w", last, err)
		}
		words++
	}
	if err := it.Err(); err != nil {
		return err
	}
	if budget.Left <= 0 {
		return r.damaged(tagTerms, "it has transitions that lead to no word")
	}
	if words != r.terms.Words() || end != len(r.postings) {
		return r.damaged(tagTerms, "%d words of %d, whose postings end at %d of %d", words, r.terms.Words(), end, len(r.postings))
	}
	if len(stored) > 0 && !bytes.Equal(stored, filter.Filter()) {
		return r.damaged(tagTermFilter, "it is not that of the words")
	}
	return nil
}

func (i *inspector) terms() {
	i.field(fst.HeaderBytes, "header: vellum format 1")
	i.field(len(i.p)-i.at-fst.FooterBytes, "states")
	i.field(8, "%d words", i.u64())
	i.field(8, "root state at %d", i.u64())
	it := i.r.Terms(nil, nil, &fst.Budget{Left: 1 << 20})
	for n := 0; it.Next(); n++ {
		if n == inspectItems {
			i.t.Note("… %d more", i.r.terms.Words()-n)
			break
		}
		i.t.Note("%q: posting at %d", it.Word(), it.walk.Value())
	}
}

func (i *inspector) termFilter() {
	i.field(len(i.p), "bits of the beginnings of words")
}

func (i *inspector) postings() {
	it := i.r.Terms(nil, nil, &fst.Budget{Left: 1 << 20})
	for n := 0; it.Next(); n++ {
		if n == inspectItems {
			i.t.Note("… of %d more words", i.r.terms.Words()-n)
			break
		}
		i.posting(fmt.Sprintf("%q", it.Word()), it.walk.Value())
	}
}
