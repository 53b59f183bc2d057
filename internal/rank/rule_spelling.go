package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/query"
	"svc/segment"
)

// spelling is the last tie-break before the ids: of documents that are equal under all rules, those come first whose words have the accents
// that the query has. prepare adds it behind all others where documents may differ in it, so other searches are as fast as without it.
//
// A word that is typed with accents puts documents first that have it as typed. One that is typed without puts documents last that have it
// with accents alone. So a document in which nothing is spelt has the value 0 whatever else the index has, and values compare across
// segments, indexes and instances.
//
// A prefix that is typed with accents means the words that begin so. One that is typed without means itself as a word: nearly every short
// prefix begins some word with accents, and whoever types ang expects Ängelholm and Angelholm alike.
type spelling struct{ words []speltWord }

func (*spelling) name() string { return "spelling" }

func (*spelling) traits() *traits { return &spellingTraits }

var spellingTraits = traits{row: lookUpValue, says: ByField, hidden: true}

// speltWord is a word of the query with the spellings that documents have of it.
type speltWord struct {
	typed bool          // with accents
	in    []spellingsIn // by segment
}

// spellingsIn is what a segment has of a word.
type spellingsIn struct {
	rows      *roaring.Bitmap   // that have it as typed or, if it is typed without accents, with some; nil for none
	spellings []segment.Posting // with the accents
	word      segment.Posting   // of a word that is typed without accents: however it is spelt
}

func (r *spelling) access(s *search, b *bucket, _ int) (p paths) {
	if b.n > listRows {
		p[0] = access{effort(b.n) * compareRow, r.open}
	}
	return p
}

func (r *spelling) open(s *search, b *bucket, _ int) split {
	var items []*classes
	for i := range r.words {
		w := &r.words[i]
		rest, covered := 0, make(rows, len(b.rows))
		if w.typed {
			rest = 1
		}
		for seg, in := range b.rows {
			covered[seg] = w.among(&s.view, seg, in)
		}
		items = append(items, &classes{costs: []int{1 - rest}, rows: []rows{covered}, rest: rest, covered: covered})
	}
	sums := bySums(b, items, 0, 1+len(items))
	return split{spellingSets, func() (*bucket, part) {
		sub, p := sums.next()
		return sub, part{value: r.valueOf(p.cost)}
	}}
}

func (r *spelling) costs(s *search, l *list, _ int, costs []uint32) outcome {
	clear(costs)
	for i := range r.words {
		w := &r.words[i]
		for k := range l.entries {
			if e := &l.entries[k]; w.has(&s.view, int(e.segment), e.row) != w.typed {
				costs[k]++
			}
		}
	}
	values := make([]SortValue, 1+len(r.words))
	for cost := range values {
		values[cost] = r.valueOf(uint64(cost))
	}
	return outcome{values: values}
}

// valueOf is the value of a document with a cost.
func (r *spelling) valueOf(cost uint64) SortValue {
	value := float64(cost)
	for i := range r.words {
		if r.words[i].typed {
			value--
		}
	}
	return NumberValue(numeric.Value{Float: value})
}

func (*spelling) details(*detailWriter, []part) int { return 1 } // nobody sees it

func (*spelling) value(parts []part) (ScoreValue, int) {
	return ScoreValue{Kind: ByField, Sort: parts[0].value}, 1
}

// among returns the rows of a set that has tells from others.
func (w *speltWord) among(s *view, seg int, in *roaring.Bitmap) *roaring.Bitmap {
	found := and(in, w.in[seg].rows)
	if found == nil || w.typed {
		return found
	}
	out := roaring.New()
	for it := found.Iterator(); it.HasNext(); {
		if row := it.Next(); w.has(s, seg, row) {
			out.Add(row)
		}
	}
	if out.IsEmpty() {
		return nil
	}
	return out
}

// has reports whether a row has the word as it is typed with accents; of one that is typed without, whether it has the word with accents
// wherever it stands.
func (w *speltWord) has(s *view, seg int, row uint32) bool {
	in := &w.in[seg]
	if in.rows == nil || !in.rows.Contains(row) {
		return false
	}
	if w.typed {
		return true
	}
	return !in.plain(s, segment.Row(row))
}

// plain reports whether a row has the word in a searched field, and none of the spellings stands there.
func (in *spellingsIn) plain(s *view, row segment.Row) bool {
	var spelt, at []uint16
	for i := range in.word.Fields() {
		f := in.word.Field(i)
		if !s.searches(f.ID()) {
			continue
		}
		p := f.Positions()
		if at = p.Append(at[:0], row); len(at) == 0 {
			continue
		}
		spelt = spelt[:0]
		for _, posting := range in.spellings {
			if other, ok := posting.Find(f.ID()); ok {
				p := other.Positions()
				spelt = p.Append(spelt, row)
			}
		}
		if slices.ContainsFunc(at, func(position uint16) bool { return !slices.Contains(spelt, position) }) {
			return true
		}
	}
	return false
}

// searches reports whether words of a field count.
func (s *view) searches(f segment.FieldID) bool { return int(f) < len(s.weights) && s.weights[f] >= 0 }

// breakTies adds the rule of spellings where documents may differ in it.
func (s *job) breakTies() {
	var words []speltWord
	q := (*query.Index)(s.ix)
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
			typed := form
			if t.Spellings != nil {
				typed = t.Spellings[i]
			}
			if w, some := spellingsFor(s, q, form, typed, t.Prefix && typed != form); some {
				words = append(words, w)
				s.typed = append(append(s.typed, typed...), byte(k), byte(i), 0)
			}
		}
	}
	if words != nil {
		s.rules = append(slices.Clip(s.rules), &spelling{words})
	}
}

// spellingsFor returns what the segments have of a word, and whether that tells documents apart.
func spellingsFor(s *job, q *query.Index, form, typed string, prefix bool) (w speltWord, some bool) {
	w = speltWord{typed: typed != form, in: make([]spellingsIn, len(s.ix.Segments))}
	for seg, live := range s.ix.Segments {
		in := &w.in[seg]
		for _, spelling := range q.Spellings(seg, form, prefix) {
			if spelling.Agrees(typed, prefix) == w.typed {
				in.spellings = append(in.spellings, spelling.Posting)
			}
		}
		if in.spellings == nil {
			continue
		}
		if in.rows = live.Union(in.spellings, s.searches); in.rows.IsEmpty() {
			in.rows = nil
			continue
		}
		if some = true; !w.typed {
			in.word, _ = live.Term([]byte(form))
		}
	}
	return w, some
}
