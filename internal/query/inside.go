package query

import (
	"bytes"
	"encoding/binary"
	"slices"
	"unicode/utf8"

	"svc/internal/resultcache"
	"svc/segment"
)

// A word of a query also stands for words that contain it, in fields with the feature infix. These words count like two typos. They are
// found in a list of the words that such fields have in a segment (wordBlock). It is made of the dictionary when it is first needed, so
// indexing and files know nothing of it.

const (
	insideLevel    = 2 // where words that contain the word count
	minInsideRunes = 3 // shorter words are parts of too many others
)

// Variables, so that tests can lower them.
var (
	maxInsideWords = 1000 // that contain a word: those that most documents have
	wordBlockBytes = 64 << 10
)

// wordBlock is neighbouring words of a segment that stand in fields with the feature infix, a little more than wordBlockBytes.
type wordBlock struct {
	text []byte // the words in byte order, each with a 0 before it and one behind the last: no word has one
	next []byte // the first word of the next block; nil behind the last
}

var wordBlocks = resultcache.NewKind[*wordBlock]("words of fields with infix")

// isInfix reports whether a pattern is looked for inside words.
func (ix *Index) isInfix(s *pattern) bool {
	return ix.prepared().infix != nil && !s.gram() && !s.stop && utf8.RuneCountInString(s.words[0]) >= minInsideRunes
}

// infix returns those of some fields where words that contain a word count.
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
	words, err := d.choose(inside, maxMisspelt, maxInsideWords, postings)
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

// elsewhere adds those of some words to the postings of segment i that stand there in fields without infix alone. They find no rows, but
// have positions: how documents lie in segments changes nothing.
func (d *derivation) elsewhere(i int, words []string, postings []segment.Posting) []segment.Posting {
	s, known := d.Segments[i], d.lookups[i].run(inside).words
	if !slices.ContainsFunc(s.WordFields(), func(f segment.FieldID) bool { return !d.infix.Has(f) }) {
		return postings
	}
	postings = slices.Clip(postings)
	for _, w := range words {
		if _, ok := slices.BinarySearch(known, w); ok {
			continue
		}
		if p, ok := s.Term([]byte(w)); ok {
			postings = append(postings, p)
		}
	}
	return postings
}

// lookInside finds the words of segment i that contain the word.
func (d *derivation) lookInside(i int) error {
	s, r := d.Segments[i], &d.runs[inside]
	r.most = maxMisspelt
	sought := []byte(d.word)
	for n, start := 0, firstWord; start != nil && !r.full(); n++ {
		b, err := d.wordBlock(i, n, start)
		if b == nil || err != nil {
			return err
		}
		b.each(sought, func(word []byte) bool {
			if len(word) == len(sought) || d.pattern.prefix && bytes.HasPrefix(word, sought) {
				return true
			}
			if p, ok := s.Term(word); ok {
				r.addWord(inside, s, word, p, witness(s, p, d.infix))
			}
			return !r.full() && d.spend(wordSteps)
		})
		if !d.spend(1 + len(b.text)/blockStepBytes) {
			return nil
		}
		start = b.next
	}
	return nil
}

// blockStepBytes is how many bytes are searched in the time of a step.
const blockStepBytes = 256

// each calls f for the words of a block that contain a part, in byte order, until it returns false.
func (b *wordBlock) each(part []byte, f func(word []byte) bool) {
	for at := 0; ; {
		i := bytes.Index(b.text[at:], part)
		if i < 0 {
			return
		}
		begin := bytes.LastIndexByte(b.text[:at+i], 0) + 1
		at += i + bytes.IndexByte(b.text[at+i:], 0)
		if !f(b.text[begin:at]) {
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
	for it.Next() {
		if !d.spend(1) {
			return nil, nil
		}
		if !hasField(it.Posting(), d.infix) {
			continue
		}
		if len(b.text) > wordBlockBytes {
			b.next = bytes.Clone(it.Word())
			break
		}
		b.text = append(append(b.text, it.Word()...), 0)
	}
	if err := it.Err(); err != nil {
		return nil, err
	}
	b.text = slices.Clone(b.text)
	wordBlocks.Put(c.Scope, key, b, 100+len(b.text)+len(b.next))
	return b, nil
}

// hasField reports whether a word stands in one of the fields.
func hasField(p segment.Posting, fields FieldSet) bool {
	for k := range p.Fields() {
		if fields.Has(p.Field(k).ID()) {
			return true
		}
	}
	return false
}

// test returns what reports whether a field is in the set; nil for all fields.
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
