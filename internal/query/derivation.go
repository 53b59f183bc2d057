package query

import (
	"bytes"
	"cmp"
	"slices"

	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// derivation is the making of a match of a word or n-gram.
type derivation struct {
	*resolver
	pattern       *pattern
	word          string
	budget        int
	all, tolerant FieldSet
	infix         FieldSet                // where words that contain the word count; nil: nowhere
	parted        bool                    // a live document has the word, or one that begins with it if it is a prefix, as an inner word
	automata      [maxLimit][2]*automaton // by limit; of the word as a whole, and as a prefix
	lookups       []*lookup               // by segment
	runs          [runKinds]wordRun       // of the current segment
}

// keep gives f some of the runs, without empty ones.
func (d *derivation) keep(f *lookup, kinds ...runKind) {
	for _, k := range kinds {
		r := &d.runs[k]
		r.made()
		r.late = d.over
		alone := k == zero && r.lead == len(f.exact) && (r.lead == 0 || r.postings[r.lead-1].Same(f.exact[r.lead-1])) // the word as it is written
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
	if d.pattern.gram() {
		return d.tolerant
	}
	return d.all
}

// fieldsOf is where the words of a run count.
func (d *derivation) fieldsOf(k runKind) FieldSet {
	switch k {
	case zero, prefixed, inner:
		return d.all
	case inside:
		return d.infix
	}
	return d.tolerant
}

// find looks the word up in all segments.
func (d *derivation) find() error {
	d.lookups = make([]*lookup, len(d.Segments))
	for i := range d.lookups {
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
	key, kind := d.appendKey(c.Key(buf[:0]), d.pattern.written), d.pattern.lookupKind()
	if !again {
		if f, ok := kind.Get(c.Scope, key); ok {
			d.lookups[i] = f
			return nil
		}
	}
	f, err := d.look(i, again)
	if err != nil {
		return err
	}
	if f.exact == nil && f.cuts == nil && f.runs == [runKinds]*wordRun{} {
		f = emptyLookup
	} else {
		f.bytes = f.size()
	}
	d.lookups[i] = f
	if !d.over {
		kind.Put(c.Scope, key, f, f.bytes)
	}
	return nil
}

var (
	segmentWords    = resultcache.NewKind[*lookup]("terms that match a word")
	segmentPrefixes = resultcache.NewKind[*lookup]("terms that match a prefix")
)

// lookupKind returns the kind of cached result under which its lookups are cached.
func (s *pattern) lookupKind() resultcache.Kind[*lookup] {
	if s.prefix {
		return segmentPrefixes
	}
	return segmentWords
}

const (
	writtenBudget = 0xff // in keys, marks a word that matches only as written
	insideBudget  = 0x40 // in keys, added for a word that also matches inside other words
)

// appendKey appends a cache key for the lookup of the word. written is for the word as written alone.
func (d *derivation) appendKey(key []byte, written bool) []byte {
	budget := byte(d.budget)
	switch {
	case written:
		budget = writtenBudget
	case d.infix != nil:
		budget |= insideBudget
	}
	return d.pattern.appendWords(append(key, budget))
}

// look looks the word up in a segment. again says that the cached lookup does not have enough words.
func (d *derivation) look(i int, again bool) (*lookup, error) {
	s := d.Segments[i]
	var f *lookup
	if !again && !d.pattern.written {
		var buf [128]byte
		c := d.OfSegment(i)
		if w, ok := d.pattern.lookupKind().Get(c.Scope, d.appendKey(c.Key(buf[:0]), true)); ok {
			copied := *w
			f = &copied
		}
	}
	if f == nil {
		var err error
		if f, err = d.lookWritten(s); err != nil || d.pattern.written {
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
	if d.infix != nil {
		if err := d.lookInside(i); err != nil {
			return nil, err
		}
	}
	f.cuts = cutsOf(s, d.word, d.Settings.ProximityPrecision != settings.ByAttribute)
	d.keep(f, one, two, oneLonger, twoLonger, inside)
	return f, nil
}

// standsAsTyped reports whether a live document of a segment has the word, or one that begins with it if it is a prefix.
func (d *derivation) standsAsTyped(s segment.Live, f *lookup) bool {
	if len(f.exact) > 0 && alive(s, f.exact[0], f.exactRow, d.written()) {
		return true
	}
	longer := f.run(zero).live + f.run(wide).live + f.run(prefixed).live
	return longer > 0 || d.standsInside(s, f)
}

// standsInside reports whether a live document of a segment has the word, or one that begins with it if it is a prefix, as an inner word.
func (d *derivation) standsInside(s segment.Live, f *lookup) bool {
	r := f.run(inner)
	for i := range r.words {
		if r.lives(i, s, d.written()) {
			return true
		}
	}
	return false
}

// lookWritten finds the word as it is written, and words that begin with a prefix.
func (d *derivation) lookWritten(s segment.Live) (*lookup, error) {
	f := &lookup{exactRow: noRow}
	gram := d.pattern.gram()
	tolerable := d.tolerates([]byte(d.word))
	if d.pattern.stop {
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
	d.runs[wide].most, d.runs[prefixed].most = wideWords, maxPrefixWords
	if d.pattern.prefix {
		if err := d.lookPrefixed(s, &d.runs[zero], f.stops); err != nil {
			return nil, err
		}
		if len(d.word) <= shortPrefixBytes {
			if err := d.lookWide(s); err != nil {
				return nil, err
			}
		}
	}
	if !gram && !d.pattern.stop && text.MayBePart(d.word) {
		if err := d.lookParts(s); err != nil {
			return nil, err
		}
	}
	d.keep(f, zero, wide, prefixed, inner)
	return f, nil
}

// lookParts finds the word among inner words, and those that begin with it if it is a prefix of several characters. They count like
// words that begin with a prefix: the word was not written as such.
func (d *derivation) lookParts(s segment.Live) error {
	start, r := []byte(text.PartEntry(d.word)), &d.runs[inner]
	r.most = maxParts
	if d.pattern.prefix && len(d.word) > shortPrefixBytes {
		it := s.Terms(start, after(start), nil)
		defer it.Close()
		for !r.full() && it.Next() && d.spend(wordSteps) {
			r.add(inner, s, it, d.all)
		}
		return it.Err()
	}
	if p, ok := s.Term(start); ok {
		r.addWord(inner, s, start, p, witness(s, p, d.all))
	}
	return nil
}

// most returns an upper bound of the number of documents with the word as written, or with a word that begins with it. A document
// with several such words counts several times.
func (d *derivation) most() (n int) {
	for _, f := range d.lookups {
		postings := f.exact
		if r := f.runs[zero]; r != nil {
			postings = r.postings
		}
		for _, list := range [...][]segment.Posting{postings, f.run(inner).postings} {
			for _, p := range list {
				n += p.Most()
			}
		}
	}
	return n
}

// lookPrefixed finds the words that begin with a prefix, without the prefix itself. A short prefix stands for all of them, by a
// posting of its own if the segment has one. stops is the number of postings of r that belong to stop words.
func (d *derivation) lookPrefixed(s segment.Live, r *wordRun, stops int) error {
	prefix := []byte(d.word)
	gram := d.pattern.gram()
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
	if !gram || d.tolerates(prefix) { // all words with the prefix pass
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

// plain reports whether all words count in all fields, including misspelt ones.
func (d *derivation) plain() bool { p := d.prepared(); return p.exact == nil && !p.numbers }

// lookWide finds words that begin with a short prefix.
func (d *derivation) lookWide(s segment.Live) error {
	prefix := []byte(d.word)
	w, b := &d.runs[wide], &d.runs[prefixed]
	it := s.Terms(prefix, after(prefix), nil)
	defer it.Close()
	for !w.full() && it.Next() {
		tolerates := d.tolerates(it.Word())
		if tolerates {
			w.add(wide, s, it, d.tolerant)
		}
		if !d.plain() && len(it.Word()) > len(prefix) && (tolerates || !d.pattern.gram()) && !b.full() {
			b.add(prefixed, s, it, d.all)
		}
	}
	return it.Err()
}

// automaton returns the automaton of the word, or of the word as a prefix, for up to limit edits.
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

// lookTypos finds the words at one typo and at two typos, in byte order.
//
// A different first letter counts as one more typo, and is only allowed with a budget of two. So the dictionary has three ranges:
// before, with and after the words that begin with the letter. The outer ranges need only the small automaton.
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

// lookEdits finds words of a range with at most limit edits. Words with one edit get the kind kind, words with two the next one.
//
// A misspelt prefix may begin very many words. When enough of these are found, the walk continues with words that are misspelt as a
// whole: there are few, and all of them count.
func (d *derivation) lookEdits(s segment.Live, start, end []byte, limit int, kind runKind) error {
	if !d.spend(s.Words() / indexWords) {
		return nil
	}
	next, err := d.walkEdits(s, start, end, limit, kind, d.pattern.prefix && !d.areFull(kind+toLonger, limit))
	if next != nil && err == nil {
		_, err = d.walkEdits(s, next, end, limit, kind, false)
	}
	return err
}

// walkEdits is lookEdits, with or without longer words. When it has enough longer words, it returns where to continue without them.
func (d *derivation) walkEdits(s segment.Live, start, end []byte, limit int, kind runKind, longer bool) (next []byte, err error) {
	near := d.automaton(limit, d.pattern.prefix)
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

// choose merges the runs of all segments. It takes the first looked words in byte order that are in a live document, and of these the
// at most most words with the most documents. It returns them, and puts their postings in each segment into postings. A word that
// counts in one segment counts in all, whatever fields it is in there, so the result does not depend on how documents are spread over
// segments.
func (d *derivation) choose(k runKind, looked, most int, postings [][]segment.Posting) ([]string, error) {
	words, short := d.mergeRuns(k, looked, postings)
	for range d.lookups { // each segment is looked at again once
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

// mergeRuns is choose. short is a segment whose run was cut before a word that would count, because words before that one have been
// deleted. It is −1 if there is none.
func (d *derivation) mergeRuns(k runKind, most int, postings [][]segment.Posting) (words []string, short int) {
	var few [16]int
	with := few[:0] // segments that have words left
	for i, f := range d.lookups {
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
			r := d.lookups[i].run(k)
			if r.late && at[w] == len(r.words) {
				break merge // a word that was not found may come before all others
			}
			if at[w] < len(r.words) && (first < 0 || r.words[at[w]] < d.lookups[with[first]].run(k).words[at[first]]) {
				first = w
			}
		}
		if first < 0 {
			break
		}
		word := d.lookups[with[first]].run(k).words[at[first]]
		counts := false
		for w := first; w < len(with); w++ {
			r := d.lookups[with[w]].run(k)
			if at[w] < len(r.words) && r.words[at[w]] == word {
				counts = counts || r.lives(at[w], d.Segments[with[w]], fields)
			}
		}
		for w := first; w < len(with); w++ {
			i := with[w]
			r := d.lookups[i].run(k)
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
		r := d.lookups[i].run(k)
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

// mostFrequent returns the words of a run with the most live documents, at most most words, in byte order. It reduces postings to
// theirs. Among equally frequent words, the first ones in byte order win.
func (d *derivation) mostFrequent(k runKind, most int, words []string, postings [][]segment.Posting) []string {
	fields := d.fieldsOf(k)
	documents := make([]uint64, len(words))
	for i, f := range d.lookups {
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
	for i, f := range d.lookups {
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
