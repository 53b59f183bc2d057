package rank

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/query"
	"svc/internal/rank/positions"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// search is one ranking: what is asked for, what the query finds, and what is worked in. Functions take the part that they need; those that
// need several take the search.
type search struct {
	job
	scratch
	out     collector
	partial bool // what is ranked is not all that the query finds
	untold  bool // there are too few documents, or too few below view.unknown
}

// job is a request and what its query finds: all that candidates depend on.
type job struct {
	request
	view
}

// request is what is asked for, the rules by which it is ranked, and the time that is left for it.
type request struct {
	ctx    context.Context
	turn   turns.Turn // of ctx
	r      *Request
	rules  []rule
	scored bool // scores are needed, so every hit goes through all rules
	isLate bool
}

// view is what the query finds in the segments of an index. prepare fills it; nothing of it changes from then on.
type view struct {
	ix       *Index
	graph    *query.Graph   // without terms for a placeholder search
	fields   query.FieldSet // searched fields; nil: all
	ranks    []int          // of the terms: when each may be dropped
	docs     []rows         // of the nodes: documents that match at any level
	matches  []bool         // of the nodes: some document does
	onlyAt   []int          // of the nodes: the level at which all of them do; −1 where they do at several
	byTerm   []int          // first node of each term, and the number of nodes
	grams    bool           // some n-gram matches a document
	nested   bool           // documents that miss fewer terms are also among those that miss more
	weights  []int32        // by field: weight, or −1 when it is not searched
	wordsMax uint64
	unknown  int // see firstUnknown
}

// scratch is what a search works in, and what it finds out on the way and asks again.
type scratch struct {
	*memory
	pos           positions.Reader
	usedWeights   []int // of the searched fields, ascending; nil when nobody asked yet
	stands        map[standingKey]*roaring.Bitmap
	begun         rows                // what beginning found; nil when it did not fill the page
	begunWith     int                 // the node of which that is
	declined      map[string]struct{} // keys of classes that this search does without
	readPairs     map[pairKey][]uint8 // what pairs cost, where documents are looked for in rounds
	readPairBytes int                 // that they take
}

// memory is what a search works in; it serves one search after the other.
type memory struct {
	list       lists
	stack      []part // what the rules said on the way to the current bucket
	tokens     []text.Token
	inSet      []uint32    // rows of a set that is gone through
	sifted     []costLists // of a sieve, by segment
	classified costLists   // of classes that are made
	sorting    sorting
}

var memories = sync.Pool{New: func() any { return new(memory) }}

// release forgets all that belongs to the view: mapped memory may go away.
func (m *memory) release() {
	clear(m.tokens[:cap(m.tokens)])
	m.sorting.release()
	clear(m.stack[:cap(m.stack)])
	m.stack = m.stack[:0]
	m.list.paths, m.list.sets, m.list.ids = nil, nil, nil
	m.list.entries.Reset()
	m.list.numbers.Reset()
	memories.Put(m)
}

// Search ranks. Hits beyond the first few, and all that are to be merged, are charged to the account of the context. Errors are
// *apierr.Error (invalid_search_sort, invalid_search_attributes_to_search_on), budget.ErrFull or the context's.
func Search(ctx context.Context, ix *Index, r *Request) (*Result, error) {
	s := &search{
		job: job{
			request: request{ctx: ctx, turn: turns.Of(ctx), r: r, scored: r.Scores || r.Details || r.Values || r.Threshold != nil},
			view:    view{ix: ix},
		},
		scratch: scratch{memory: memories.Get().(*memory)},
	}
	s.pos.Open()
	defer s.release()
	defer s.pos.Release()
	terms, err := read(s)
	if err != nil {
		return nil, err
	}
	s.stage("tokenize query")
	placeholder := len(terms.Terms) == 0
	if err := makeRules(s, placeholder); err != nil {
		return nil, err
	}
	q := (*query.Index)(ix)
	if fewTyposFirst(&s.job, terms) {
		w := *s
		if result, err := rankFewTypos(&w, q, terms); result != nil || err != nil {
			return result, err
		}
		s.pos.Forget()
	}
	s.graph, err = q.Build(ctx, terms, s.fields, s.late)
	if err != nil {
		return nil, err
	}
	if !placeholder {
		s.prepare(q)
	}
	return s.rank(0)
}

// rank ranks all documents that the graph finds; nil without an error when there are fewer than so many, or the page is untold.
func (s *search) rank(least int) (*Result, error) {
	r, placeholder := s.r, len(s.graph.Terms) == 0
	var result *Result
	m := memoOf(&s.job)
	if m != nil {
		result = recall(s, m)
	}
	if result == nil && s.out.full == nil {
		s.untold = false
		result = s.rankAll(m, least)
	}
	if s.untold = s.untold || result != nil && result.Total < least; s.untold {
		return nil, nil
	}
	if r.Values { // many lists of hits are kept to be merged
		s.out.hold(len(s.out.hits))
	}
	if s.out.full != nil {
		return nil, s.out.full
	}
	switch {
	case r.Vectors != nil:
		s.stage("semantic ranking")
	case placeholder:
		s.stage("placeholder ranking")
	default:
		s.stage("keyword ranking")
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	result.Highlights = s.graph.Highlights
	result.Degraded = s.isLate
	return result, nil
}

// rankAll ranks all documents that the query finds, and remembers the first of them; nil when there are fewer than so many, or the page is
// untold.
func (s *search) rankAll(m *memo, least int) *Result {
	root := find(&s.job, func(int) bool { return true }, true, hitsAlone(&s.request))
	for seg := range root.rows {
		root.n += countIn(&s.view, root, seg)
	}
	s.stage("evaluate query")
	if s.untold = root.n < least; s.untold {
		return nil
	}
	s.out.start(s, root.rows, root.n)
	if s.out.wants() {
		s.rankBucket(root, 0)
	}
	if s.untold {
		return nil
	}
	if m != nil && s.out.full == nil {
		remember(s, m, root)
	}
	result := s.out.result()
	result.Total = min(result.Total, root.n) // a raw bucket has more
	return result
}

// hitsAlone reports whether of the documents that miss the most terms only those are asked for that it takes to fill the page.
func hitsAlone(s *request) bool {
	r := s.r
	return r.HitsOnly && r.Distinct == "" && r.Threshold == nil && len(s.rules) > 0 && s.rules[0] == rule(words{})
}

// stage says what just ended.
func (s *request) stage(name string) {
	if s.r.Stage != nil {
		s.r.Stage(name)
	}
}

// read turns the query string into terms and finds the searched fields.
func read(s *search) (*query.Terms, error) {
	q := (*query.Index)(s.ix)
	fields, err := searchOn(&s.job)
	if err != nil || s.r.Query == "" || s.r.Vectors != nil {
		return &query.Terms{}, err
	}
	s.fields = fields
	locales := s.r.Locales
	if locales == nil {
		locales = q.Locales(s.fields)
	}
	readable := query.Readable(s.r.Query)
	s.tokens = s.ix.Analyzer.Tokens(s.tokens[:0], readable, locales, true)
	return query.Read(s.tokens, readable, s.ix.Settings.PrefixSearch != settings.PrefixDisabled), nil
}

// searchOn resolves attributesToSearchOn; nil means no restriction.
func searchOn(s *job) (query.FieldSet, error) {
	names := s.r.SearchOn
	if names == nil {
		return nil, nil
	}
	set := make(query.FieldSet, s.ix.Fields.Len())
	for _, name := range names {
		if strings.HasPrefix(name, "*") || strings.HasSuffix(name, "*") {
			for i := range set {
				f := s.ix.Fields.Info(segment.FieldID(i))
				set[i] = set[i] || f.Searchable && settings.Covers(name, f.Name)
			}
			continue
		}
		if id, ok := s.ix.Fields.ID(name); ok && s.ix.Fields.Info(id).Searchable {
			set[id] = true
			continue
		}
		if all := s.ix.Settings.SearchableAttributes; all != nil && !slices.Contains(all, name) {
			return nil, apierr.New("invalid_search_attributes_to_search_on",
				"Attribute %q is not searchable in this index. Use one of its `searchableAttributes`, or add it there.", name)
		}
	}
	if slices.Contains(names, "*") {
		return nil, nil
	}
	return set, nil
}

// prepare looks at the graph once.
func (s *search) prepare(q *query.Index) {
	s.ranks = s.graph.Ranks(s.r.Strategy)
	removable, phraseWords := 0, 0
	for i, t := range s.graph.Terms {
		if s.ranks[i] != query.Mandatory {
			removable++
		}
		if t.IsPhrase() {
			phraseWords += t.Words()
		}
	}
	s.wordsMax = uint64(1 + max(0, phraseWords-1) + removable)

	s.docs = make([]rows, len(s.graph.Nodes))
	s.matches = make([]bool, len(s.graph.Nodes))
	s.onlyAt = make([]int, len(s.graph.Nodes))
	s.byTerm = make([]int, len(s.graph.Terms)+1)
	for n := len(s.graph.Nodes) - 1; n >= 0; n-- {
		v := &s.graph.Nodes[n]
		s.byTerm[v.Term] = n
		s.docs[n] = make(rows, len(s.ix.Segments))
		s.onlyAt[n] = onlyLevel(v)
		for i := range s.docs[n] {
			if r := v.Segments[i].Any; !r.IsEmpty() {
				s.docs[n][i] = r
				s.matches[n] = true
			}
		}
		s.grams = s.grams || v.Len > 1 && s.matches[n]
	}
	s.byTerm[len(s.graph.Terms)] = len(s.graph.Nodes)
	s.nested = s.r.Strategy != query.Frequency && !s.grams
	searchable := q.Weights()
	s.weights = searchable
	if s.fields != nil {
		s.weights = slices.Clone(s.weights)
		for i := range s.weights {
			if !s.fields[i] {
				s.weights[i] = -1
			}
		}
	}
	s.pos.Index, s.pos.Graph, s.pos.Words, s.pos.Searched, s.pos.Restricted = q, s.graph, searchable, s.weights, s.fields != nil
	if s.r.Plan != nil {
		s.pos.Dense = func(measure string) { s.r.Plan.note("", accessPath(measure+" in all rows of a range")) }
	}
}

// asksAll reports whether all rules are asked of each document, be it alone in its bucket.
func asksAll(s *search) bool { return s.scored || s.out.keepsParts }

// late lets others work, and reports whether the deadline has passed or the caller is gone.
func (s *request) late() bool {
	if !s.isLate {
		s.isLate = s.turn.Yield() != nil || !s.r.Deadline.IsZero() && !time.Now().Before(s.r.Deadline)
	}
	return s.isLate
}
