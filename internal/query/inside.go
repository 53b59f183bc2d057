package query

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"unicode/utf8"

	"svc/internal/resultcache"
	"svc/segment"
)

// A word of a query also stands for words that contain it, in fields with the feature infix. These words count like two typos. They
// are found in a list of the words that such fields have in a segment (wordBlock), which is built from the dictionary on first use.
// Indexing and files know nothing of it.
//
// If very many words of a segment contain the word, only the most frequent ones are candidates. So the result may depend on which
// segments hold the documents.

const (
	insideLevel    = 2 // where words that contain the word count
	minInsideRunes = 3 // shorter words are parts of too many others
)

// Variables, so that tests can lower them.
var (
	maxInsideWords      = 1000 // that contain a word: those that most documents have
	maxInsideCandidates = 4096 // of a segment: those that most rows have, deleted ones included
	wordBlockBytes      = 64 << 10
	wordBlockWords      = 16 << 10
)

// wordBlock is a run of words of a segment that occur in fields with the feature infix. It ends after a little more than
// wordBlockBytes, or after wordBlockWords words of the dictionary, so that a search with little time makes progress.
type wordBlock struct {
	// text is the words in byte order. Each has a 0 before it and one behind the last: no word has one. In front of a word is the number of
	// its rows: digits of 6 bits in bytes 10xxxxxx, the last one first. No word begins with such a byte, and no query finds one.
	text []byte
	next []byte // the first word of the next block; nil behind the last
}

var wordBlocks = resultcache.NewKind[*wordBlock]("words of fields with infix")

// isInfix reports whether a pattern also matches inside words.
func (ix *Index) isInfix(s *pattern) bool {
	return ix.prepared().infix != nil && !s.gram() && !s.stop && utf8.RuneCountInString(s.words[0]) >= minInsideRunes
}

// infix returns those of some fields in which substring matches count.
func (ix *Index) infix(fields FieldSet) FieldSet {
	all := ix.prepared().infix
	if all == nil || fields == nil {
		return all
	}
	some := make(FieldSet, len(all))
	for i := range some {
		some[i] = all[i] && fields[i]
	}
	return some
}

// inside returns how many of the postings of segment i are of words that contain the word.
func (l *Level) inside(i int) int {
	if l.Inside == nil {
		return 0
	}
	return l.Inside[i]
}

// parts returns the postings of segment i: of words that contain the word, and others.
func (l *Level) parts(i int) (others, inside []segment.Posting) {
	at := len(l.Postings[i]) - l.inside(i)
	return l.Postings[i][:at], l.Postings[i][at:]
}

// containing adds the words that contain the word to a match.
func (d *derivation) containing(m *Match) error {
	postings := make([][]segment.Posting, len(d.Segments))
	words, err := d.choose(inside, math.MaxInt, maxInsideWords, postings)
	if err != nil {
		return err
	}
	if len(words) == 0 {
		return nil
	}
	m.forms.inside, m.Budget = words, max(m.Budget, insideLevel)
	l := &m.Levels[insideLevel]
	l.Inside = make([]int, len(postings))
	for i, more := range postings {
		more = d.elsewhere(i, words, more)
		if l.Inside[i] = len(more); len(more) > 0 {
			l.Postings[i] = slices.Concat(l.Postings[i], more)
		}
	}
	return nil
}

// elsewhere adds the postings of words that the run of segment i lacks: they were no candidates, or occur there only in fields
// without infix. The latter add no rows, but positions, so the result does not depend on which segments hold the documents.
func (d *derivation) elsewhere(i int, words []string, postings []segment.Posting) []segment.Posting {
	s, run := d.Segments[i], d.lookups[i].run(inside)
	if !run.dropped && !slices.ContainsFunc(s.WordFields(), func(f segment.FieldID) bool { return !d.infix.Has(f) }) {
		return postings
	}
	postings = slices.Clip(postings)
	for _, w := range words {
		if _, ok := slices.BinarySearch(run.words, w); ok {
			continue
		}
		if p, ok := s.Term([]byte(w)); ok {
			postings = append(postings, p)
		}
	}
	return postings
}

// candidate is a word that contains another.
type candidate struct {
	word []byte
	rows int // that have it in fields with infix; one with several fields counts for each
}

// lookInside finds the words of segment i that contain the word.
func (d *derivation) lookInside(i int) error {
	s, r := d.Segments[i], &d.runs[inside]
	r.most = math.MaxInt - spareWords // the candidates are limited, not the run
	sought := []byte(d.word)
	if !utf8.RuneStart(sought[0]) {
		return nil
	}
	var found []candidate
	fewest := 0 // rows that a candidate needs more than, once some were dropped: words come in byte order
	for n, start := 0, firstWord; start != nil; n++ {
		b, err := d.wordBlock(i, n, start)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		b.each(sought, func(c candidate) bool {
			if len(c.word) == len(sought) || d.pattern.prefix && bytes.HasPrefix(c.word, sought) {
				return true
			}
			if c.rows > fewest {
				found = append(found, c)
			}
			if len(found) >= 2*maxInsideCandidates {
				found = mostRows(found)
				r.dropped, fewest = true, found[len(found)-1].rows
			}
			return d.spend(1)
		})
		if !d.spend(1 + len(b.text)/blockStepBytes) {
			break
		}
		start = b.next
	}
	if len(found) > maxInsideCandidates {
		found = mostRows(found)
		r.dropped = true
	}
	slices.SortFunc(found, func(x, y candidate) int { return bytes.Compare(x.word, y.word) })
	for _, c := range found {
		if p, ok := s.Term(c.word); ok {
			r.addWord(inside, s, c.word, p, witness(s, p, d.infix))
		}
		if !d.spend(wordSteps) {
			break
		}
	}
	return nil
}

// mostRows returns the candidates with most rows; of those with as many, the first ones in byte order.
func mostRows(all []candidate) []candidate {
	slices.SortFunc(all, func(x, y candidate) int {
		return cmp.Or(cmp.Compare(y.rows, x.rows), bytes.Compare(x.word, y.word))
	})
	return all[:maxInsideCandidates]
}

// blockStepBytes is how many bytes are searched in the time of a step.
const blockStepBytes = 256

// add appends a word that some rows have.
func (b *wordBlock) add(word []byte, rows int) {
	for ; rows > 0; rows >>= 6 {
		b.text = append(b.text, utf8.RuneSelf|byte(rows&0x3f))
	}
	b.text = append(append(b.text, word...), 0)
}

// each calls f for the words of a block that contain a part, in byte order, until it returns false. The words are parts of the block.
func (b *wordBlock) each(part []byte, f func(candidate) bool) {
	for at := 0; ; {
		i := bytes.Index(b.text[at:], part)
		if i < 0 {
			return
		}
		begin := bytes.LastIndexByte(b.text[:at+i], 0) + 1
		at += i + bytes.IndexByte(b.text[at+i:], 0)
		var c candidate
		for shift := 0; !utf8.RuneStart(b.text[begin]); shift += 6 {
			c.rows |= int(b.text[begin]&0x3f) << shift
			begin++
		}
		if c.word = b.text[begin:at]; !f(c) {
			return
		}
	}
}

// wordBlock returns the n-th block of segment i, which begins with a word. It returns nil if time is over.
func (d *derivation) wordBlock(i, n int, start []byte) (*wordBlock, error) {
	c := d.OfSegment(i)
	var buf [16]byte
	key := binary.LittleEndian.AppendUint32(c.Key(buf[:0]), uint32(n))
	if b, ok := wordBlocks.Get(c.Scope, key); ok {
		return b, nil
	}
	it := d.Segments[i].Terms(start, nil, nil)
	defer it.Close()
	b := &wordBlock{text: []byte{0}}
	for words := 0; it.Next(); words++ {
		if words >= wordBlockWords || len(b.text) > wordBlockBytes {
			b.next = bytes.Clone(it.Word())
			break
		}
		if !d.spend(1) {
			return nil, nil
		}
		if rows := rowsAtMost(it.Posting(), d.infix); rows > 0 {
			b.add(it.Word(), rows)
		}
	}
	if err := it.Err(); err != nil {
		return nil, err
	}
	b.text = slices.Clone(b.text)
	wordBlocks.Put(c.Scope, key, b, 100+len(b.text)+len(b.next))
	return b, nil
}

// rowsAtMost returns how many rows have a word in some fields. A row counts for each of its fields.
func rowsAtMost(p segment.Posting, fields FieldSet) (n int) {
	for k := range p.Fields() {
		if f := p.Field(k); fields.Has(f.ID()) {
			n += f.Count()
		}
	}
	return n
}

// test returns the predicate of the set, or nil if it has all fields.
func (s FieldSet) test() func(segment.FieldID) bool {
	if s == nil {
		return nil
	}
	return s.Has
}

// wordFields are the fields where words of a match count.
type wordFields struct {
	all      FieldSet // as they are written
	tolerant FieldSet // misspelt
	infix    FieldSet // inside others
}
