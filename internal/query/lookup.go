package query

import (
	"bytes"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"svc/segment"
)

// lookup holds the words that the dictionary of one segment has for a word. Except for the places where its runs are cut, it does not
// depend on which rows are deleted, so that it stays with the segment.
type lookup struct {
	exact    []segment.Posting  // the word as it is written: none or one; of a stop word that of its entry, then of a word of the same form
	stops    int                // how many of these are of stop words
	exactRow uint32             // a row that has it in a field where it counts
	runs     [runKinds]*wordRun // nil: for zero, the word as written alone; for other kinds, nothing
	cuts     []cut              // where the word may be split
	bytes    int                // that all this takes
}

// emptyLookup is what most segments have for most words, above all small ones. It is shared.
var emptyLookup = &lookup{exactRow: noRow}

// noWords is a run without words.
var noWords = new(wordRun)

// run returns a run, which is not modified.
func (f *lookup) run(k runKind) *wordRun {
	if r := f.runs[k]; r != nil {
		return r
	}
	return noWords
}

// lead returns the postings of a run that come before those of its words.
func (f *lookup) lead(k runKind) []segment.Posting {
	switch r := f.runs[k]; {
	case r != nil:
		return r.postings[:r.lead:r.lead]
	case k == zero:
		return f.exact
	}
	return nil
}

// runKind is by what words of a run are found. The first three are levels.
type runKind int

const (
	zero      runKind = iota // they begin with the word, which is a prefix; the word itself is not among them
	one                      // at one typo
	two                      // at two typos
	oneLonger                // they begin with a misspelt prefix at one typo, and have more typos themselves
	twoLonger                // they begin with a misspelt prefix at two typos, and have more typos themselves
	wide                     // they begin with the word, a short prefix, and may be misspelt
	prefixed                 // they begin with the word, a short prefix, and are longer; none where wide says it
	inside                   // they contain the word, and do not begin with it if it is a prefix
	inner                    // the entries of inner words that are the word, or begin with it if it is a prefix
	runKinds
)

// toLonger leads from one to oneLonger, and from two to twoLonger.
const toLonger = oneLonger - one

// wordsOnly reports whether only the words of a run are needed, without their postings.
func (k runKind) wordsOnly() bool { return k == wide || k == prefixed }

// wordRun is words of a dictionary, in byte order.
type wordRun struct {
	words    []string
	postings []segment.Posting // lead ones, then those of the words; without those where only words are asked for
	lead     int               // of the run zero: the word itself, or what a short prefix matches
	rows     []uint32          // of each word: a row that has it in a field where it counts, noRow or unseenRow; atomic
	most     int               // words that are looked at in all segments together
	live     int               // words that were in a live document
	cut      bool              // more words may follow
	dropped  bool              // words with few rows were left out
	late     bool              // there was no time for those that follow
	making   *runMemory        // words added since; nil: none
}

// runMemory collects the words of a run, so that the cached run has no spare capacity.
type runMemory struct {
	text     []byte // the words one behind another
	ends     []int
	postings []segment.Posting
	rows     []uint32
}

var runMemories = sync.Pool{New: func() any { return new(runMemory) }}

const (
	noRow     = math.MaxUint32
	unseenRow = noRow - 1 // not looked up, since all words of the segment count in it

	// spareWords is how many more live words than needed a run has when it is cut. So it is still usable after some of them are
	// deleted.
	spareWords = 8
)

// alive reports whether a word is in one of the fields of a live row. row is a row that once had it there.
func alive(s segment.Live, p segment.Posting, row uint32, fields FieldSet) bool {
	switch {
	case row == noRow:
		return false
	case s.Deleted == nil || !s.Deleted.Contains(row):
		return true
	}
	return isLive(s, p, fields)
}

// witness returns a row that has a word in one of the fields, a live one if there is any; noRow when none has.
func witness(s segment.Live, p segment.Posting, fields FieldSet) uint32 {
	row := uint32(noRow)
	for k := range p.Fields() {
		f := p.Field(k)
		if !fields.Has(f.ID()) {
			continue
		}
		row = uint32(f.First())
		if s.Deleted == nil || !s.Deleted.Contains(row) {
			return row
		}
	}
	if row != noRow {
		rows := rowsIn(s, p, fields)
		if live := rows.AndCardinality(s.Deleted); live < rows.GetCardinality() {
			for it := rows.Iterator(); it.HasNext(); {
				if r := it.Next(); !s.Deleted.Contains(r) {
					return r
				}
			}
		}
	}
	return row
}

// lives reports whether the i-th word occurs in one of the fields of a live row.
func (r *wordRun) lives(i int, s segment.Live, fields FieldSet) bool {
	row := atomic.LoadUint32(&r.rows[i])
	switch {
	case row == noRow:
		return false
	case s.Deleted == nil || row != unseenRow && !s.Deleted.Contains(row):
		return true
	}
	var p segment.Posting
	if r.lead+i < len(r.postings) {
		p = r.postings[r.lead+i]
	} else {
		p, _ = s.Term([]byte(r.words[i]))
	}
	if row == unseenRow {
		row = witness(s, p, fields)
		atomic.StoreUint32(&r.rows[i], row)
	}
	return alive(s, p, row, fields)
}

func (r *wordRun) full() bool { return r.live >= r.most+spareWords }

// add adds the word that an iterator stands at.
func (r *wordRun) add(k runKind, s segment.Live, it *segment.TermIterator, fields FieldSet) {
	var p segment.Posting
	row := uint32(unseenRow)
	if !k.wordsOnly() || fields != nil || s.Deleted != nil {
		p = it.Posting()
		row = witness(s, p, fields)
	}
	r.addWord(k, s, it.Word(), p, row)
}

// addWord adds a word that occurs in a row, noRow or unseenRow.
func (r *wordRun) addWord(k runKind, s segment.Live, word []byte, p segment.Posting, row uint32) {
	if r.making == nil {
		r.making = runMemories.Get().(*runMemory)
	}
	m := r.making
	m.text = append(m.text, word...)
	m.ends = append(m.ends, len(m.text))
	if !k.wordsOnly() {
		m.postings = append(m.postings, p)
	}
	m.rows = append(m.rows, row)
	if row != noRow && (s.Deleted == nil || !s.Deleted.Contains(row)) {
		r.live++
	}
	r.cut = r.full()
}

// made puts the words that were added in their place.
func (r *wordRun) made() {
	m := r.making
	if m == nil {
		return
	}
	text, begin := string(m.text), 0
	r.words = make([]string, len(m.ends))
	for i, end := range m.ends {
		r.words[i] = text[begin:end]
		begin = end
	}
	r.postings = slices.Concat(r.postings, m.postings)
	r.rows = slices.Clone(m.rows)
	clear(m.postings) // they hold a mapped file
	m.text, m.ends, m.postings, m.rows = m.text[:0], m.ends[:0], m.postings[:0], m.rows[:0]
	runMemories.Put(m)
	r.making = nil
}

// size estimates the memory of a lookup.
func (f *lookup) size() int {
	n := 136 + 96*len(f.exact) + 8*len(f.cuts)
	for _, r := range f.runs {
		if r == nil {
			continue
		}
		n += 112 + 112*len(r.postings) + 4*len(r.rows)
		for _, w := range r.words {
			n += 16 + len(w)
		}
	}
	return n
}

// after returns the first string greater than all strings with the prefix, or nil.
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
