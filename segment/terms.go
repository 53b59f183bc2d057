package segment

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"

	"github.com/blevesearch/vellum"

	"svc/internal/apierr"
)

// The parts of vellum's format 1 that are checked here: a header of version
// and type, and a footer of the number of words and the address of the root state.
const (
	fstHeaderBytes = 16
	fstFooterBytes = 16
)

// dictionary is the word list of a segment: an FST (vellum format 1) whose
// values are offsets in the postings section.
//
// vellum indexes its bytes unchecked, so every call goes through a function
// that turns a panic into damage found.
type dictionary struct {
	fst     *vellum.FST // nil when the segment has no words
	readers sync.Pool   // of *vellum.Reader, which keep the state of a lookup
	file    string
}

func (d *dictionary) damaged(format string, args ...any) error {
	return &apierr.Corruption{File: d.file, Section: tagTerms.String(), Offset: -1, Reason: fmt.Sprintf(format, args...)}
}

func (d *dictionary) open(file string, section []byte) (err error) {
	d.file = file
	if len(section) == 0 {
		return nil
	}
	defer d.guard(&err)
	if len(section) < fstHeaderBytes+fstFooterBytes {
		return d.damaged("%d bytes", len(section))
	}
	// vellum takes these two on trust.
	tail := section[len(section)-fstFooterBytes:]
	if root := binary.LittleEndian.Uint64(tail[8:]); root >= uint64(len(section)-fstFooterBytes) {
		return d.damaged("its root at %d is not among its %d bytes", root, len(section))
	}
	if n := binary.LittleEndian.Uint64(tail); n > math.MaxUint32 {
		return d.damaged("it claims %d words", n)
	}
	if d.fst, err = vellum.Load(section); err != nil {
		return d.damaged("%v", err)
	}
	d.readers.New = func() any {
		r, _ := d.fst.Reader() // its error is always nil
		return r
	}
	return nil
}

func (d *dictionary) guard(err *error) {
	if e := recover(); e != nil {
		*err = d.damaged("the dictionary cannot be walked: %v", e)
	}
}

func (d *dictionary) words() int {
	if d.fst == nil {
		return 0
	}
	return d.fst.Len()
}

func (d *dictionary) get(word []byte) (offset uint64, ok bool, err error) {
	if d.fst == nil {
		return 0, false, nil
	}
	defer d.guard(&err)
	r := d.readers.Get().(*vellum.Reader)
	offset, ok, err = r.Get(word)
	d.readers.Put(r)
	if err != nil {
		return 0, false, d.damaged("%v", err)
	}
	return offset, ok, nil
}

// Term returns the posting of a word.
func (r *Reader) Term(word []byte) (Posting, bool) {
	offset, ok, err := r.terms.get(word)
	if !ok || err != nil {
		return Posting{}, false
	}
	return readPosting(r.postings, offset)
}

// Terms walks the words w with start ≤ w < end (nil: unbounded) that the automaton
// accepts (nil: all), in byte order.
func (r *Reader) Terms(start, end []byte, a vellum.Automaton) *TermIterator {
	return &TermIterator{r: r, start: start, end: end, automaton: a}
}

// TermIterator is positioned before the first word.
type TermIterator struct {
	r          *Reader
	start, end []byte
	automaton  vellum.Automaton
	it         *vellum.FSTIterator
	word       []byte
	offset     uint64
	err        error
	done       bool
}

// Next goes to the next word and reports whether there is one.
func (it *TermIterator) Next() bool {
	if it.done {
		return false
	}
	it.done = !it.next()
	return !it.done
}

func (it *TermIterator) next() (ok bool) {
	d := &it.r.terms
	if d.fst == nil || it.start != nil && it.end != nil && bytes.Compare(it.start, it.end) >= 0 {
		return false
	}
	defer func() {
		if it.err != nil {
			ok = false
		}
	}()
	defer d.guard(&it.err)
	var err error
	if it.it == nil {
		it.it, err = d.fst.Search(it.automaton, it.start, it.end)
	} else {
		err = it.it.Next()
	}
	if errors.Is(err, vellum.ErrIteratorDone) {
		return false
	}
	if err != nil {
		it.err = d.damaged("%v", err)
		return false
	}
	it.word, it.offset = it.it.Current()
	// vellum stands on start itself even when it is not below end.
	return it.end == nil || bytes.Compare(it.word, it.end) < 0
}

// Word returns the current word, valid until the next call of Next.
func (it *TermIterator) Word() []byte { return it.word }

// Posting returns the posting of the current word.
func (it *TermIterator) Posting() Posting {
	p, _ := readPosting(it.r.postings, it.offset)
	return p
}

// Err returns the damage that ended the walk early, if any.
func (it *TermIterator) Err() error { return it.err }
