package rank

import (
	"context"
	"slices"
	"strings"

	"svc/internal/apierr"
	"svc/internal/invariant"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// Search ranks. The memory of hits beyond the first few, and of all hits to be merged, is charged to the account of the context.
// Errors are *apierr.Error (invalid_search_sort, invalid_search_attributes_to_search_on), budget.ErrFull or the context's.
func Search(ctx context.Context, ix *Index, r *Request) (*Result, error) {
	s := &search{
		job: job{
			request:  request{ctx: ctx, turn: turns.Of(ctx), r: r, scored: r.Scores || r.Details || r.Values || r.Threshold != nil},
			findings: findings{ix: ix},
		},
		scratch: scratch{memory: memories.Get().(*memory)},
	}
	s.pos.Open()
	defer s.release()
	defer s.pos.Release()
	defer s.giveBack()
	terms, err := read(s)
	if err != nil {
		return nil, err
	}
	s.stage("tokenize query")
	placeholder := len(terms.Terms) == 0
	if err := makeRules(s, placeholder); err != nil {
		return nil, err
	}
	few, err := buildFewTypos(s, terms)
	if err == nil && !few {
		err = buildAll(s, terms)
	}
	if err != nil {
		return nil, err
	}
	if invariant.Enabled && s.lazy.bound == nil {
		sums := checkShared(&s.findings, r, nil)
		defer func() { checkShared(&s.findings, r, sums) }()
	}
	result, err := s.rank()
	if err == nil && s.lazy.bound != nil && r.Marks {
		err = markForms(s, terms, result)
	}
	return result, err
}

// rank ranks all documents that the graph finds.
func (s *search) rank() (*Result, error) {
	countAll(s)
	begin(s)
	s.out.fill()
	if s.r.Values { // many lists of hits are held until they are merged
		s.out.hold(len(s.out.hits))
	}
	switch {
	case s.r.Vectors != nil:
		s.stage("semantic ranking")
	case len(s.graph.Terms) == 0:
		s.stage("placeholder ranking")
	default:
		s.stage("keyword ranking")
	}
	if s.out.err != nil {
		return nil, s.out.err
	}
	if err := s.ctx.Err(); err != nil {
		return nil, err
	}
	var result *Result
	if s.cached.hits != nil {
		result = recalled(s)
	} else {
		if s.memo != nil {
			remember(s, s.memo, s.root)
		}
		result = collected(s)
		result.Total = min(result.Total, s.root.n) // a raw bucket has more
	}
	result.Highlights = s.graph.Highlights
	result.Degraded = s.isLate
	return result, nil
}

// giveBack returns the memory that only the search needs to the account of the request, which may search again.
func (s *search) giveBack() {
	if s.scores != nil {
		_ = s.turn.Account().Hold(-s.scores.held) // giving back does not fail
	}
}

// read parses the query string into terms and finds the searched fields.
func read(s *search) (*query.Terms, error) {
	fields, err := SearchOn(s.ix, s.r.SearchOn)
	if err != nil || s.r.Query == "" || s.r.Vectors != nil {
		return &query.Terms{}, err
	}
	s.fields = fields
	locales := s.r.Locales
	if locales == nil {
		locales = s.ix.Locales(s.fields)
	}
	readable := query.Readable(s.r.Query)
	s.tokens = s.ix.Analyzer.Tokens(s.tokens[:0], readable, locales, true)
	return s.ix.Read(s.tokens, readable, locales, s.fields), nil
}

// SearchOn resolves attributesToSearchOn; nil means no restriction.
func SearchOn(ix *Index, names []string) (query.FieldSet, error) {
	if names == nil {
		return nil, nil
	}
	set := make(query.FieldSet, ix.Fields.Len())
	for _, name := range names {
		if strings.HasPrefix(name, "*") || strings.HasSuffix(name, "*") {
			for i := range set {
				f := ix.Fields.Info(segment.FieldID(i))
				set[i] = set[i] || f.Searchable && settings.Covers(name, f.Name)
			}
			continue
		}
		if id, ok := ix.Fields.ID(name); ok && ix.Fields.Info(id).Searchable {
			set[id] = true
			continue
		}
		if !ix.Settings.SearchesWhole(name) {
			return nil, apierr.New("invalid_search_attributes_to_search_on",
				"Attribute %q is not searchable in this index. Use one of its `searchableAttributes`, or add it there.", name)
		}
	}
	if slices.Contains(names, "*") {
		return nil, nil
	}
	return set, nil
}
