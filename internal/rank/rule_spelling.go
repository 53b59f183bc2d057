package rank

import (
	"encoding/binary"
	"slices"

	"svc/internal/numeric"
	"svc/internal/resultcache"
	"svc/segment/rowlist"
)

// spellingSets intersects the documents of each spelling.
const spellingSets accessPath = "sets of spellings"

// spelling is the last tie-break before the ids: among documents that are equal under all rules, it puts those first whose words have
// the accents of the query. prepare adds it after all other rules where documents may differ in accents, so other searches are as
// fast as without it.
//
// For a word typed with accents, documents come first that have it as typed. For a word typed without, documents come last that have
// it only with accents. So a document in which nothing differs has the value 0 whatever else the index contains, and values compare
// across segments, indexes and instances.
//
// A prefix typed with accents means the words that begin with it as typed. A prefix typed without means itself as a word: nearly
// every short prefix begins some word with accents, and a user who types ang expects Ängelholm and Angelholm alike.
type spelling struct{}

func (spelling) name() string { return "spelling" }

func (spelling) traits() *traits { return &spellingTraits }

var spellingTraits = traits{row: lookUpValue, says: ByField, hidden: true}

func (spelling) access(s *search, b *bucket, _ int) (p paths) {
	if b.n > listRows {
		p[0] = access{effort(b.n) * compareRow, openSpellings}
	}
	return p
}

// openSpellings splits a bucket by the documents that have words as typed, or with accents.
func openSpellings(s *search, b *bucket, _ int) split {
	var items []*costClasses
	for i := range s.spelt {
		w := &s.spelt[i]
		rest, covered := 0, make(rows, len(b.rows))
		if w.typed {
			rest = 1
		}
		for seg, in := range b.rows {
			covered[seg] = w.among(&s.findings, seg, in)
		}
		items = append(items, &costClasses{costs: []int{1 - rest}, rows: []rows{covered}, rest: rest, covered: covered})
	}
	sums := bySums(b, items, 0, 1+len(items))
	return split{spellingSets, func() (*bucket, verdict) {
		sub, p := sums.next()
		return sub, verdict{value: spellingValue(&s.findings, p.cost)}
	}}
}

// costs counts the words whose spelling in a row is not the wanted one.
func (spelling) costs(s *search, l *list, _ int, costs []uint32) outcome {
	clear(costs)
	for i := range s.spelt {
		w := &s.spelt[i]
		for k := range l.entries {
			if e := &l.entries[k]; w.has(&s.findings, int(e.segment), e.row) != w.typed {
				costs[k]++
			}
		}
	}
	values := make([]SortValue, 1+len(s.spelt))
	for cost := range values {
		values[cost] = spellingValue(&s.findings, uint64(cost))
	}
	return outcome{values: values}
}

// spellingValue is the value of a document with a cost.
func spellingValue(s *findings, cost uint64) SortValue {
	value := float64(cost)
	for i := range s.spelt {
		if s.spelt[i].typed {
			value--
		}
	}
	return NumberValue(numeric.Value{Float: value})
}

func (spelling) details(*detailWriter, []verdict) int { return 1 } // not shown

func (spelling) value(verdicts []verdict) (ScoreValue, int) {
	return ScoreValue{Kind: ByField, Sort: verdicts[0].value}, 1
}

// breakTies adds the rule of spellings if documents may differ in it.
func (s *job) breakTies() {
	for k := range s.graph.Nodes {
		v := &s.graph.Nodes[k]
		t := &s.graph.Terms[v.Term]
		if v.Len > 1 || !v.Spelt && t.Spellings == nil {
			continue
		}
		forms := t.Phrase
		if !t.IsPhrase() {
			forms = []string{t.Word}
		}
		for i, form := range forms {
			w := writtenWord{form: form, typed: form}
			if t.Spellings != nil {
				w.typed = t.Spellings[i]
			}
			w.prefix = t.Prefix && w.accented()
			if spelt, some := spellingsFor(s, &w); some {
				s.spelt = append(s.spelt, spelt)
				s.typed = append(append(s.typed, w.typed...), byte(k), byte(i), 0)
			}
		}
	}
	if s.spelt != nil {
		s.rules = append(slices.Clip(s.rules), spelling{})
	}
}

// writtenWord is a word of the query.
type writtenWord struct {
	form   string // in the dictionary
	typed  string // with the accents that the user typed
	prefix bool   // it stands for all words that begin so
}

// accented reports whether the word is typed with accents.
func (w *writtenWord) accented() bool { return w.typed != w.form }

// spellingsFor returns the spellings of a word in the segments, and whether they distinguish documents.
func spellingsFor(s *job, w *writtenWord) (spelt speltWord, some bool) {
	spelt = speltWord{typed: w.accented(), in: make([]spellingsIn, len(s.ix.Segments))}
	for seg := range s.ix.Segments {
		if in := spellingsInSegment(s, seg, w); in != nil {
			spelt.in[seg], some = *in, true
		}
	}
	return spelt, some
}

var segmentSpellings = resultcache.NewKind[*spellingsIn]("rows of the spellings of a word")

// spellingsInSegment returns the spellings of a word in a segment, or nil if they do not distinguish documents. The result is cached,
// unless the search is restricted to some fields.
func spellingsInSegment(s *job, seg int, w *writtenWord) *spellingsIn {
	if !s.ix.HasSpellings(seg) {
		return nil
	}
	var buf [128]byte
	cache := s.ix.OfSegment(seg)
	key := w.appendKey(cache.Key(buf[:0]))
	if s.fields == nil {
		if in, ok := segmentSpellings.Get(cache.Scope, key); ok {
			return in
		}
	}
	in, bytes := findSpellings(s, seg, w)
	if s.fields == nil {
		segmentSpellings.Put(cache.Scope, key, in, bytes)
	}
	return in
}

// findSpellings computes the result of spellingsInSegment, and its size in bytes.
func findSpellings(s *job, seg int, w *writtenWord) (in *spellingsIn, bytes int) {
	in = new(spellingsIn)
	for _, spelling := range s.ix.Spellings(seg, w.form, w.prefix) {
		if spelling.Agrees(w.typed, w.prefix) == w.accented() {
			in.spellings = append(in.spellings, spelling.Posting)
		}
	}
	if in.spellings == nil {
		return nil, 0
	}
	live := s.ix.Segments[seg]
	if in.rows = live.Union(in.spellings, s.searches); in.rows.IsEmpty() {
		return nil, 0
	}
	in.rows = rowlist.Flat(in.rows)
	bytes = resultcache.Size(in.rows)
	in.spellings = slices.Clone(in.spellings)
	if !w.accented() {
		in.word, _ = live.Term([]byte(w.form))
	}
	return in, bytes + postingBytes*(1+len(in.spellings))
}

// appendKey appends what identifies the word in cache keys.
func (w *writtenWord) appendKey(key []byte) []byte {
	key = binary.AppendUvarint(key, uint64(len(w.form)))
	key = append(append(key, w.form...), w.typed...)
	if w.prefix {
		key = append(key, 0xff) // no text ends with it
	}
	return key
}

// postingBytes is what a segment.Posting takes.
const postingBytes = 96
