package segment

import (
	"bytes"
	"fmt"
	"math"

	"github.com/blevesearch/vellum"

	"svc/internal/apierr"
)

func (r *Reader) openWords() error {
	r.postings = r.section(tagPostings)
	return r.openTerms(r.section(tagTerms))
}

// openTerms reads the head of the dictionary: word → offset in the postings section.
func (r *Reader) openTerms(section []byte) error {
	r.terms = fst{root: fstNone}
	if len(section) == 0 {
		return nil
	}
	var err error
	if r.terms, err = openFST(section); err != nil {
		return r.damagedTerms(err)
	}
	return nil
}

func (r *Reader) damagedTerms(err error) error {
	return &apierr.Corruption{File: r.name, Section: tagTerms.String(), Offset: -1, Reason: err.Error()}
}

// Term returns the posting of a word.
func (r *Reader) Term(word []byte) (Posting, bool) {
	offset, ok, err := r.terms.get(word)
	if !ok || err != nil {
		return Posting{}, false
	}
	return readPosting(r.postings, offset)
}

// Words returns how many words the dictionary has.
func (r *Reader) Words() int { return r.terms.words }

// Terms walks the words w with start ≤ w < end (nil: unbounded) that the automaton
// accepts (nil: all), in byte order.
func (r *Reader) Terms(start, end []byte, a vellum.Automaton) *TermIterator {
	it := &TermIterator{r: r, walk: fstWalk{f: &r.terms, automaton: a, end: end}}
	it.walk.seek(start)
	return it
}

// TermIterator is positioned before the first word.
type TermIterator struct {
	r    *Reader
	walk fstWalk
}

// Next goes to the next word and reports whether there is one.
func (it *TermIterator) Next() bool { return it.walk.next() }

// Word returns the current word, valid until the next call of Next.
func (it *TermIterator) Word() []byte { return it.walk.word }

// Posting returns the posting of the current word.
func (it *TermIterator) Posting() Posting {
	p, _ := readPosting(it.r.postings, it.walk.value)
	return p
}

// Err returns the damage that ended the walk early, if any.
func (it *TermIterator) Err() error {
	if it.walk.err != nil {
		return fmt.Errorf("cannot walk the words: %w", it.r.damagedTerms(it.walk.err))
	}
	return nil
}

// edgeBudget is an automaton that accepts everything until more transitions
// were tried than a dictionary with these words can have: in a sound one, every
// transition leads to a word. It keeps hostile bytes from being walked for ever.
type edgeBudget struct{ left int }

func (e *edgeBudget) Start() int { return 0 }

func (e *edgeBudget) IsMatch(int) bool { return true }

func (e *edgeBudget) CanMatch(int) bool { return e.left > 0 }

func (e *edgeBudget) WillAlwaysMatch(int) bool { return false }

func (e *edgeBudget) Accept(state int, _ byte) int { e.left--; return state }

func (r *Reader) verifyWords() error {
	budget := &edgeBudget{left: maxWordBytes + 1}
	it := r.Terms(nil, nil, budget)
	words, end := 0, 0
	var last []byte
	for it.Next() {
		if words > 0 && bytes.Compare(last, it.Word()) >= 0 || len(it.Word()) > maxWordBytes || len(it.Word()) == 0 {
			return r.damaged(tagTerms, "%q follows %q", it.Word(), last)
		}
		last = append(last[:0], it.Word()...)
		budget.left = min(budget.left+len(last), math.MaxInt32)
		if it.walk.value != uint64(end) {
			return r.damaged(tagTerms, "%q leads to offset %d, but the posting before ends at %d", last, it.walk.value, end)
		}
		p, ok := readPosting(r.postings, it.walk.value)
		if !ok {
			return r.damaged(tagPostings, "no posting of %q at offset %d", last, it.walk.value)
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
	if budget.left <= 0 {
		return r.damaged(tagTerms, "it has transitions that lead to no word")
	}
	if words != r.terms.words || end != len(r.postings) {
		return r.damaged(tagTerms, "%d words of %d, whose postings end at %d of %d", words, r.terms.words, end, len(r.postings))
	}
	return nil
}

func (i *inspector) terms() {
	i.field(fstHeaderBytes, "header: vellum format 1")
	i.field(len(i.p)-i.at-fstFooterBytes, "states")
	i.field(8, "%d words", i.u64())
	i.field(8, "root state at %d", i.u64())
	it := i.r.Terms(nil, nil, &edgeBudget{left: 1 << 20})
	for n := 0; it.Next(); n++ {
		if n == inspectItems {
			i.t.Note("… %d more", i.r.terms.words-n)
			break
		}
		i.t.Note("%q: posting at %d", it.Word(), it.walk.value)
	}
}

func (i *inspector) postings() {
	it := i.r.Terms(nil, nil, &edgeBudget{left: 1 << 20})
	for n := 0; it.Next(); n++ {
		if n == inspectItems {
			i.t.Note("… of %d more words", i.r.terms.words-n)
			break
		}
		i.posting(fmt.Sprintf("%q", it.Word()), it.walk.value)
	}
}
