package query

import (
	"bytes"
	"slices"

	"github.com/blevesearch/vellum"

	"svc/segment"
)

// walk goes over the words of all segments in byte order, each once.
type walk struct {
	its  []*segment.TermIterator
	open []bool
	word []byte
	at   []int // segments that have word
	err  error
}

// newWalk walks the words w with start ≤ w < end (nil: unbounded) that a accepts (nil: all).
func (ix *Index) newWalk(start, end []byte, a vellum.Automaton) *walk {
	w := &walk{
		its:  make([]*segment.TermIterator, len(ix.Segments)),
		open: make([]bool, len(ix.Segments)),
	}
	for i, s := range ix.Segments {
		w.its[i] = s.Terms(start, end, a)
		w.advance(i)
	}
	return w
}

func (w *walk) advance(i int) {
	if w.open[i] = w.its[i].Next(); !w.open[i] && w.err == nil {
		w.err = w.its[i].Err()
	}
}

// next goes to the next word. word is valid until the next call.
func (w *walk) next() bool {
	for _, i := range w.at {
		w.advance(i)
	}
	w.at = w.at[:0]
	if w.err != nil {
		return false
	}
	for i, it := range w.its {
		if !w.open[i] {
			continue
		}
		c := -1
		if len(w.at) > 0 {
			c = bytes.Compare(it.Word(), w.word)
		}
		if c < 0 {
			w.at, w.word = w.at[:0], it.Word()
		}
		if c <= 0 {
			w.at = append(w.at, i)
		}
	}
	return len(w.at) > 0
}

// after returns the first string that is greater than all with the prefix; nil when there is none.
func after(prefix []byte) []byte {
	for n := len(prefix); n > 0; n-- {
		if prefix[n-1] != 0xff {
			end := bytes.Clone(prefix[:n])
			end[n-1]++
			return end
		}
	}
	return nil
}

// wordList collects words and, by segment, their postings.
type wordList struct {
	words    []string
	postings [][]segment.Posting
	fields   FieldSet // where the words count
	limit    int
}

func (ix *Index) newWordList(fields FieldSet, limit int) *wordList {
	return &wordList{postings: make([][]segment.Posting, len(ix.Segments)), fields: fields, limit: limit}
}

func (l *wordList) full() bool { return len(l.words) >= l.limit }

// take adds the current word of w unless it is dead. A word that counts in one segment
// counts in all, whatever fields it stands in there: how documents lie in segments changes nothing.
func (l *wordList) take(ix *Index, w *walk) {
	if !slices.ContainsFunc(w.at, func(i int) bool { return isLive(ix.Segments[i], w.its[i].Posting(), l.fields) }) {
		return
	}
	l.words = append(l.words, string(w.word))
	for _, i := range w.at {
		l.postings[i] = append(l.postings[i], w.its[i].Posting())
	}
}

// typos fills the lists with the words at one and at two typos from word, in byte order.
//
// A word whose first letter differs counts one typo more, and only with a budget of
// two. So the dictionary falls into three stretches: before, with and after the words that begin
// with the letter, and the outer ones need the small automaton only.
func (ix *resolver) typos(word string, prefix bool, budget int, one, two *wordList) error {
	first := firstLetter(word)
	begin, end := []byte(first), after([]byte(first))
	near := newAutomaton(word, budget, prefix)
	if budget == 1 {
		return ix.collect(begin, end, near, func(w *walk) bool {
			if near.Distance(w.word) == 1 {
				one.take(ix.Index, w)
			}
			return !one.full()
		})
	}
	far := newAutomaton(word, 1, prefix)
	outer := func(w *walk) bool {
		if far.Distance(w.word) == 1 {
			two.take(ix.Index, w)
		}
		return !two.full()
	}
	if err := ix.collect(nil, begin, far, outer); err != nil {
		return err
	}
	err := ix.collect(begin, end, near, func(w *walk) bool {
		switch d := near.Distance(w.word); {
		case d == 1 && !one.full():
			one.take(ix.Index, w)
		case d == 2 && !two.full():
			two.take(ix.Index, w)
		}
		return !one.full() || !two.full()
	})
	if err != nil || end == nil || two.full() {
		return err
	}
	return ix.collect(end, nil, far, outer)
}

// collect calls take for the words in a range that a accepts and that may be misspelt, until it returns
// false or time is over.
func (ix *resolver) collect(start, end []byte, a *automaton, take func(*walk) bool) error {
	if !ix.spend(ix.words() / indexWords) {
		return nil
	}
	w := ix.newWalk(start, end, a)
	for w.next() && ix.spend(wordSteps) {
		if ix.tolerates(w.word) && !take(w) {
			return nil
		}
	}
	return w.err
}
