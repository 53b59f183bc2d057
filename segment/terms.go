package segment

import (
	"fmt"

	"github.com/blevesearch/vellum"

	"svc/internal/apierr"
)

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
