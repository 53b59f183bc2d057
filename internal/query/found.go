package query

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"svc/internal/resultcache"
	"svc/internal/text"
	"svc/segment"
)

// found is what the dictionary of one segment has for a word. It does not depend on which rows are deleted, so that it stays
// with the segment, apart from where its runs are cut.
type found struct {
	exact    []segment.Posting  // the word as it is written: none or one; of a stop word that of its entry, then of a word of the same form
	stops    int                // how many of these are of stop words
	exactRow uint32             // a row that has it in a field where it counts
	runs     [runKinds]*wordRun // nil: of zero what is written alone, of others nothing
	cuts     []cut              // where the word may be split
	bytes    int                // that all this takes
}

// foundNothing is what most segments have for most words, above all small ones. It is shared.
var foundNothing = &found{exactRow: noRow}

// noWords is a run without words.
var noWords = new(wordRun)

// run returns a run, which is not modified.
func (f *found) run(k runKind) *wordRun {
	if r := f.runs[k]; r != nil {
		return r
	}
	return noWords
}

// lead returns the postings of a run that come before those of its words.
func (f *found) lead(k runKind) []segment.Posting {
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
	begun                    // they begin with the word, a short prefix, and are longer; none where wide says it
	runKinds
)

// toLonger leads from one to oneLonger, and from two to twoLonger.
const toLonger = oneLonger - one

// wordsOnly reports whether of a run only the words are asked for, and not what they find.
func (k runKind) wordsOnly() bool { return k == wide || k == begun }

// wordRun is words of a dictionary, in byte order.
type wordRun struct {
	words    []string
	postings []segment.Posting // lead ones, then those of the words; without those where only words are asked for
	lead     int               // of the run zero: the word itself, or what a short prefix matches
	rows     []uint32          // of each word: a row that has it in a field where it counts, noRow or unseenRow; atomic
	most     int               // words that are looked at in all segments together
	live     int               // words that were in a live document
	cut      bool              // more words may follow
	late     bool              // there was no time for those that follow
	making   *runMemory        // words that were added since; nil when there are none
}

// runMemory is where a run gathers words, so that what is kept has no spare room.
type runMemory struct {
	text     []byte // the words one behind another
	ends     []int
	postings []segment.Posting
	rows     []uint32
}

var runMemories = sync.Pool{New: func() any { return new(runMemory) }}

const (
	noRow     = math.MaxUint32
	unseenRow = noRow - 1 // nobody looked, since all words of the segment count in it

	// spareWords is how many live words more than are looked at a run has when it is cut, so that it serves on when some are deleted.
	spareWords = 8
)

// alive reports whether a word stands in one of the fields of a row that is not deleted. row is one that once had it there.
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

// lives reports whether the i-th word stands in one of the fields of a row that is not deleted.
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
	if r.making == nil {
		r.making = runMemories.Get().(*runMemory)
	}
	m := r.making
	m.text = append(m.text, it.Word()...)
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

// size estimates the memory of what was found.
func (f *found) size() int {
	n := 112 + 96*len(f.exact) + 8*len(f.cuts)
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

// derivation is the making of a match of a word or n-gram.
type derivation struct {
	*resolver
	source        *source
	word          string
	budget        int
	all, tolerant FieldSet
	automata      [maxLimit][2]*automaton // by limit; of the word as a whole, and as a prefix
	found         []*found                // by segment
	runs          [runKinds]wordRun       // of the segment at hand
}

// keep gives f some of the runs that were made, as far as they have anything.
func (d *derivation) keep(f *found, kinds ...runKind) {
	for _, k := range kinds {
		r := &d.runs[k]
		r.made()
		r.late = d.over
		alone := k == zero && r.lead == len(f.exact) && (r.lead == 0 || r.postings[0].Same(f.exact[0])) // the word as it is written
		if len(r.words) > 0 || len(r.postings) > 0 && !alone || r.late {
			kept := *r
			f.runs[k] = &kept
		}
		*r = wordRun{}
	}
}

// release gives back what the derivation works in.
func (d *derivation) release() {
	for _, pair := range d.automata {
		for _, a := range pair {
			if a != nil {
				automata.Put(a)
			}
		}
	}
	d.automata = [maxLimit][2]*automaton{}
}

// written is where the word counts as it is written.
func (d *derivation) written() FieldSet {
	if d.source.gram() {
		return d.tolerant
	}
	return d.all
}

// fieldsOf is where the words of a run count.
func (d *derivation) fieldsOf(k runKind) FieldSet {
	if k == zero || k == begun {
		return d.all
	}
	return d.tolerant
}

// find looks the word up in all segments.
func (d *derivation) find() error {
	d.found = make([]*found, len(d.Segments))
	for i := range d.found {
		if err := d.findIn(i, false); err != nil {
			return err
		}
	}
	return nil
}

// findIn looks the word up in a segment. again: also when that was done before.
func (d *derivation) findIn(i int, again bool) error {
	c := d.OfSegment(i)
	var buf [128]byte
	key, kind := d.appendKey(c.Key(buf[:0]), d.source.written), d.source.foundKind()
	if !again {
		if f, ok := kind.Get(c.Scope, key); ok {
			d.found[i] = f
			return nil
		}
	}
	f, err := d.look(i, again)
	if err != nil {
		return err
	}
	if f.exact == nil && f.cuts == nil && f.runs == [runKinds]*wordRun{} {
		f = foundNothing
	} else {
		f.bytes = f.size()
	}
	d.found[i] = f
	if !d.over {
		kind.Put(c.Scope, key, f, f.bytes)
	}
	return nil
}

var (
	segmentWords    = resultcache.NewKind[*found]("terms that match a word")
	segmentPrefixes = resultcache.NewKind[*found]("terms that match a prefix")
)

// foundKind is the kind of what a segment finds.
func (s *source) foundKind() resultcache.Kind[*found] {
	if s.prefix {
		return segmentPrefixes
	}
	return segmentWords
}

// writtenBudget stands in keys for a word that is looked for as it is written.
const writtenBudget = 0xff

// appendKey appends what tells what is found for the word, or for the word as it is written, from what is found for others.
func (d *derivation) appendKey(key []byte, written bool) []byte {
	budget := byte(d.budget)
	if written {
		budget = writtenBudget
	}
	return d.source.appendWords(append(key, budget))
}

// look looks the word up in a segment. again: what was found of it before is not enough.
func (d *derivation) look(i int, again bool) (*found, error) {
	s := d.Segments[i]
	var f *found
	if !again && !d.source.written {
		var buf [128]byte
		c := d.OfSegment(i)
		if w, ok := d.source.foundKind().Get(c.Scope, d.appendKey(c.Key(buf[:0]), true)); ok {
			copied := *w
			f = &copied
		}
	}
	if f == nil {
		var err error
		if f, err = d.lookWritten(s); err != nil || d.source.written {
			return f, err
		}
	}
	if d.budget > 0 {
		for _, k := range []runKind{one, two} {
			d.runs[k].most, d.runs[k+toLonger].most = maxMisspelt, maxMisspelt
			if d.standsAsTyped(s, f) {
				d.runs[k+toLonger].most = maxTypoWords[k]
			}
		}
		if err := d.lookTypos(s); err != nil {
			return nil, err
		}
	}
	f.cuts = cutsOf(s, d.word)
	d.keep(f, one, two, oneLonger, twoLonger)
	return f, nil
}

// standsAsTyped reports whether a live document of a segment has the word, or one that begins with it if it is a prefix.
func (d *derivation) standsAsTyped(s segment.Live, f *found) bool {
	return len(f.exact) > 0 && alive(s, f.exact[0], f.exactRow, d.written()) || f.run(zero).live+f.run(wide).live+f.run(begun).live > 0
}

// lookWritten finds the word as it is written, and words that begin with a prefix.
func (d *derivation) lookWritten(s segment.Live) (*found, error) {
	f := &found{exactRow: noRow}
	gram := d.source.gram()
	tolerable := d.tolerates([]byte(d.word))
	if d.source.stop {
		if p, ok := s.Term([]byte(text.StopEntry(d.word))); ok {
			f.exact, f.stops = []segment.Posting{p}, 1
		}
	}
	if !gram || tolerable {
		if p, ok := s.Term([]byte(d.word)); ok {
			f.exact = append(f.exact, p)
		}
	}
	if len(f.exact) > 0 {
		f.exactRow = witness(s, f.exact[0], d.written())
	}
	d.runs[zero] = wordRun{most: maxPrefixWords, postings: f.exact, lead: len(f.exact)}
	d.runs[wide].most, d.runs[begun].most = wideWords, maxPrefixWords
	if d.source.prefix {
		if err := d.lookPrefixed(s, &d.runs[zero], f.stops); err != nil {
			return nil, err
		}
		if len(d.word) <= shortPrefixBytes {
			if err := d.lookWide(s); err != nil {
				return nil, err
			}
		}
	}
	d.keep(f, zero, wide, begun)
	return f, nil
}

// most returns how many documents may have the word as it is written, or begin with it, at most: one with several words counts for each.
func (d *derivation) most() (n int) {
	for _, f := range d.found {
		postings := f.exact
		if r := f.runs[zero]; r != nil {
			postings = r.postings
		}
		for _, p := range postings {
			n += p.Most()
		}
	}
	return n
}

// lookPrefixed finds the words that begin with a prefix, without the prefix itself. A short
// prefix matches them all, through its own posting where the segment has one. So many of the postings that r has are of stop words.
func (d *derivation) lookPrefixed(s segment.Live, r *wordRun, stops int) error {
	prefix := []byte(d.word)
	gram := d.source.gram()
	passes := func(word []byte) bool { return len(word) > len(prefix) && (!gram || d.tolerates(word)) }
	it := s.Terms(prefix, after(prefix), nil)
	defer it.Close()
	if len(prefix) > shortPrefixBytes {
		for !r.full() && it.Next() && d.spend(wordSteps) {
			if passes(it.Word()) {
				r.add(zero, s, it, d.all)
			}
		}
		return it.Err()
	}
	if !gram || d.tolerates(prefix) { // no word among them needs to be told apart
		if p, ok := s.Prefix(prefix); ok {
			r.postings = append(r.postings[:stops:stops], p) // the prefix itself is in it
			r.lead = len(r.postings)
			return nil
		}
	}
	r.postings = slices.Clip(r.postings)
	for it.Next() && d.spend(wordSteps) {
		if passes(it.Word()) {
			r.postings = append(r.postings, it.Posting())
		}
	}
	r.lead = len(r.postings)
	return it.Err()
}

// plain reports whether all words count wherever they stand, and as misspelt ones, too.
func (d *derivation) plain() bool { p := d.prepared(); return p.exact == nil && !p.numbers }

// lookWide finds words that begin with a short prefix.
func (d *derivation) lookWide(s segment.Live) error {
	prefix := []byte(d.word)
	w, b := &d.runs[wide], &d.runs[begun]
	it := s.Terms(prefix, after(prefix), nil)
	defer it.Close()
	for !w.full() && it.Next() {
		tolerates := d.tolerates(it.Word())
		if tolerates {
			w.add(wide, s, it, d.tolerant)
		}
		if !d.plain() && len(it.Word()) > len(prefix) && (tolerates || !d.source.gram()) && !b.full() {
			b.add(begun, s, it, d.all)
		}
	}
	return it.Err()
}

// automaton returns the automaton of the word, or of the word as a prefix, with so many edits.
func (d *derivation) automaton(limit int, prefix bool) *automaton {
	a := &d.automata[limit-1][0]
	if prefix {
		a = &d.automata[limit-1][1]
	}
	if *a == nil {
		*a = newAutomaton(d.word, limit, prefix)
	}
	return *a
}

// lookTypos finds the words at one and at two typos, in byte order.
//
// A word whose first letter differs counts one typo more, and only with a budget of
// two. So the dictionary falls into three ranges: before, with and after the words that begin
// with the letter, and the outer ones need the small automaton only.
func (d *derivation) lookTypos(s segment.Live) error {
	first := firstLetter(d.word)
	begin, end := []byte(first), after([]byte(first))
	if d.budget == 1 {
		return d.lookEdits(s, begin, end, 1, one)
	}
	if err := d.lookEdits(s, firstWord, begin, 1, two); err != nil {
		return err
	}
	if err := d.lookEdits(s, begin, end, 2, one); err != nil || end == nil {
		return err
	}
	return d.lookEdits(s, end, nil, 1, two)
}

// firstWord is not above any word, and above the entries of stop words.
var firstWord = []byte{1}

// lookEdits finds the words of a range that may be misspelt and need at most limit edits; those with one edit count as kind, one or two.
//
// A misspelt prefix may begin very many words. When enough of these are found, the walk goes on with the words that are
// misspelt as a whole: there are few, and none of them drops out.
func (d *derivation) lookEdits(s segment.Live, start, end []byte, limit int, kind runKind) error {
	if !d.spend(s.Words() / indexWords) {
		return nil
	}
	next, err := d.walkEdits(s, start, end, limit, kind, d.source.prefix && !d.areFull(kind+toLonger, limit))
	if next != nil && err == nil {
		_, err = d.walkEdits(s, next, end, limit, kind, false)
	}
	return err
}

// walkEdits is lookEdits with or without longer words. When there are enough longer ones, it returns from where on to go on without them.
func (d *derivation) walkEdits(s segment.Live, start, end []byte, limit int, kind runKind, longer bool) (next []byte, err error) {
	near := d.automaton(limit, d.source.prefix)
	it := s.Terms(start, end, d.automaton(limit, longer))
	defer it.Close()
	for it.Next() && d.spend(wordSteps) {
		word := it.Word()
		edits, whole := near.distances(word)
		if edits == 0 || edits > limit || whole > edits && !longer || !d.tolerates(word) {
			continue
		}
		k := kind + runKind(edits-1)
		if whole > edits {
			k += toLonger
		}
		r := &d.runs[k]
		if r.full() {
			continue
		}
		if r.add(k, s, it, d.tolerant); !r.full() {
			continue
		}
		switch enough := !longer || d.areFull(kind+toLonger, limit); {
		case enough && d.areFull(kind, limit):
			return nil, it.Err()
		case enough && longer:
			return append(bytes.Clone(word), 0), it.Err()
		}
	}
	return nil, it.Err()
}

// areFull reports whether n runs from kind on have enough words.
func (d *derivation) areFull(kind runKind, n int) bool {
	for k := kind; k < kind+runKind(n); k++ {
		if !d.runs[k].full() {
			return false
		}
	}
	return true
}

// choose brings the runs of all segments together: the first words in byte order that are in a live document, as many as are looked at,
// and of these at most so many, those that most documents have. It returns them, and puts the postings of each segment in their place. A
// word that counts in one segment counts in all, whatever fields it stands in there: how documents lie in segments changes nothing.
func (d *derivation) choose(k runKind, looked, most int, postings [][]segment.Posting) ([]string, error) {
	words, short := d.mergeRuns(k, looked, postings)
	for range d.found { // each segment is looked at again once
		if short < 0 {
			break
		}
		if err := d.findIn(short, true); err != nil || d.over {
			return words, err
		}
		words, short = d.mergeRuns(k, looked, postings)
	}
	if len(words) > most {
		words = d.mostFrequent(k, most, words, postings)
	}
	return words, nil
}

// mergeRuns is choose. short is a segment whose run was cut before a word that would count, since words before it have died; -1 for none.
func (d *derivation) mergeRuns(k runKind, most int, postings [][]segment.Posting) (words []string, short int) {
	var few [16]int
	with := few[:0] // segments that have words left
	for i, f := range d.found {
		r := f.run(k)
		if postings != nil {
			postings[i] = f.lead(k)
		}
		if len(r.words) > 0 || r.late {
			with = append(with, i)
		}
	}
	var next [16]int
	at := next[:] // by place in with: the next word
	if len(with) > len(at) {
		at = make([]int, len(with))
	}
	fields := d.fieldsOf(k)
merge:
	for len(words) < most {
		first := -1
		for w, i := range with {
			r := d.found[i].run(k)
			if r.late && at[w] == len(r.words) {
				break merge // a word that was not found may come before all others
			}
			if at[w] < len(r.words) && (first < 0 || r.words[at[w]] < d.found[with[first]].run(k).words[at[first]]) {
				first = w
			}
		}
		if first < 0 {
			break
		}
		word := d.found[with[first]].run(k).words[at[first]]
		counts := false
		for w := first; w < len(with); w++ {
			r := d.found[with[w]].run(k)
			if at[w] < len(r.words) && r.words[at[w]] == word {
				counts = counts || r.lives(at[w], d.Segments[with[w]], fields)
			}
		}
		for w := first; w < len(with); w++ {
			i := with[w]
			r := d.found[i].run(k)
			if at[w] == len(r.words) || r.words[at[w]] != word {
				continue
			}
			if counts && postings != nil && fields != nil {
				postings[i] = append(postings[i], r.postings[r.lead+at[w]])
			}
			at[w]++
		}
		if counts {
			words = append(words, word)
		}
	}
	for w, i := range with {
		r := d.found[i].run(k)
		if r.cut && at[w] == len(r.words) && (len(words) < most || r.words[at[w]-1] < words[most-1]) {
			return words, i
		}
		// Dead words find nothing but deleted rows, unless they live on in fields where they do not count.
		if postings != nil && fields == nil {
			postings[i] = r.postings[: r.lead+at[w] : r.lead+at[w]]
		}
	}
	return words, -1
}

// mostFrequent returns those words of a run that most live documents have, at most so many, in byte order, and leaves the postings of
// these. Of words that as many documents have, the first ones in byte order count.
func (d *derivation) mostFrequent(k runKind, most int, words []string, postings [][]segment.Posting) []string {
	fields := d.fieldsOf(k)
	documents := make([]uint64, len(words))
	for i, f := range d.found {
		r, next := f.run(k), 0
		for at, word := range r.words {
			for next < len(words) && words[next] < word {
				next++
			}
			if next < len(words) && words[next] == word {
				s := d.Segments[i]
				documents[next] += countLive(s, rowsIn(s, r.postings[r.lead+at], fields))
			}
		}
	}
	order := make([]int, len(words))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(documents[b], documents[a]) })
	order = order[:most]
	slices.Sort(order)
	chosen := make([]string, len(order))
	for i, at := range order {
		chosen[i] = words[at]
	}
	for i, f := range d.found {
		r := f.run(k)
		postings[i] = nil
		for at, word := range r.words {
			if _, ok := slices.BinarySearch(chosen, word); ok {
				postings[i] = append(postings[i], r.postings[r.lead+at])
			}
		}
	}
	return chosen
}
