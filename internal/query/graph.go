package query

import (
	"context"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/invariant"
	"svc/internal/text"
	"svc/internal/turns"
	"svc/segment"
)

// Graph is a query ready to be ranked: its terms, the nodes that cover one to three of them (more in other readings), and the
// excluded rows.
type Graph struct {
	Terms []Term
	// Nodes by the first term they cover, shorter ones first: the order in which interpretations are tried.
	Nodes    []Node
	Excluded []*roaring.Bitmap // by segment: rows of negatives; nil: none
	ix       *Index
}

// Node is a term, or 2 or 3 terms joined to one word, or more where another reading joins them.
type Node struct {
	*Match
	Term, Len  int    // covers Terms[Term:Term+Len]
	Start, End uint16 // query positions of the first and last term
	Phrase     bool
	Counted    int // words of the query that count among the words of a field: stop words do not
	Sought     int // levels that were looked up
}

// Build resolves the terms of a query in the given fields (nil: all). It calls late now and then, which says whether time is over.
// Then it skips the typos, prefixes and rest of phrases that it has not found yet; exclusions are always complete. Errors are those
// of the context, or report a damaged segment.
func (ix *Index) Build(ctx context.Context, t *Terms, fields FieldSet, late func() bool) (*Graph, error) {
	return ix.build(ctx, t, fields, late, nil, false)
}

// BuildForms is Build for highlighting alone: the graph has only Highlights.
func (ix *Index) BuildForms(ctx context.Context, t *Terms, fields FieldSet, late func() bool) (*Graph, error) {
	return ix.build(ctx, t, fields, late, nil, true)
}

// Enough has the numbers of documents that determine a page and its total: First for the first term, Page for all terms.
type Enough struct{ First, Page int }

// BuildFewTypos is Build with lazy typo expansion. N-grams, and words that at least enough.First documents have as written, match
// only as written and as prefixes. Other words match with up to one typo if that finds enough.First documents for the first term, or
// enough.Page for another one; else with all their typos. Node.Sought has the levels looked up. BuildFewTypos returns nil if fewer
// than enough.First documents have the first term.
func (ix *Index) BuildFewTypos(ctx context.Context, t *Terms, fields FieldSet, late func() bool, enough Enough) (*Graph, error) {
	return ix.build(ctx, t, fields, late, &enough, false)
}

// expect requests the postings of all words together, so that they are not read from the disk one after the other.
func (ix *Index) expect(t *Terms) {
	if !segment.PageByPage() {
		return
	}
	for _, s := range ix.Segments {
		for i := range t.Terms {
			if t.Terms[i].IsPhrase() {
				for _, word := range t.Terms[i].Phrase {
					s.ExpectWord(word, false)
				}
			} else {
				s.ExpectWord(t.Terms[i].Word, t.Terms[i].Prefix)
			}
		}
	}
}

// build is BuildFewTypos, and without enough Build or BuildForms.
func (ix *Index) build(ctx context.Context, t *Terms, fields FieldSet, late func() bool, enough *Enough, forms bool) (*Graph, error) {
	g := &Graph{Terms: t.Terms, ix: ix}
	r := &resolver{ix, pace{stop: late}}
	ix.expect(t)
	joined := 0 // nodes of more than maxGram terms
	for i := range t.Terms {
		first := &t.Terms[i]
		spread := false // stop words stand between terms
		for n := 1; n <= max(maxGram, t.longestReading(i)) && i+n <= len(t.Terms); n++ {
			last := &t.Terms[i+n-1]
			if n > 1 {
				directly, ok := last.follows(&t.Terms[i+n-2])
				if spread = spread || !directly; first.IsPhrase() || last.IsPhrase() || !ok || spread && (n > maxGram || ix.Synonyms == nil) {
					break
				}
			}
			s := pattern{prefix: last.Prefix, phrase: first.Phrase, readings: t.readingsOf(i, n), stop: n == 1 && first.Stop, spread: spread, forms: forms}
			if n > maxGram {
				if s.readings == nil || joined == maxJoined {
					continue
				}
				joined++
			}
			words := first.Words()
			if s.phrase == nil {
				bytes := 0
				words = 0
				for k := range t.Terms[i : i+n] {
					w := &t.Terms[i+k]
					s.words = append(s.words, w.Word)
					words += w.Words()
					bytes += len(w.Word)
				}
				if n > 1 && bytes > maxWordBytes {
					break
				}
			}
			if spread {
				if s.prefix, s.readings = false, nil; len(ix.Synonyms.Lookup(synonymKey(s.words), 1)) == 0 {
					continue
				}
			}
			var m *Match
			var err error
			if enough != nil && s.phrase == nil {
				m, err = r.matchFewTypos(&s, fields, i, enough)
			}
			if m == nil && err == nil {
				if s.near, s.written = false, false; enough != nil && len(t.Terms) == 1 {
					return nil, nil
				}
				m, err = r.match(&s, fields)
			}
			if err != nil {
				return nil, err
			}
			if enough != nil && len(g.Nodes) == 0 && m.most() < enough.First {
				return nil, nil
			}
			g.Nodes = append(g.Nodes, Node{Match: m, Term: i, Len: n, Start: first.Start, End: last.End, Phrase: s.phrase != nil, Counted: words, Sought: s.sought()})
		}
	}
	if len(t.NegativeWords)+len(t.NegativePhrases) > 0 {
		turn := turns.Of(ctx)
		r = &resolver{ix, pace{stop: func() bool { return turn.Yield() != nil }}}
		g.Excluded = r.excluded(t, fields)
	}
	if invariant.Enabled && !forms {
		checkGraph(g)
	}
	return g, ctx.Err()
}

// matchFewTypos resolves a pattern that begins with term i with few typos; nil where that is not enough.
func (ix *resolver) matchFewTypos(s *pattern, fields FieldSet, i int, enough *Enough) (*Match, error) {
	gram := s.gram()
	if s.written = true; !gram {
		s.least = enough.First
	}
	m, err := ix.match(s, fields)
	if m != nil || err != nil || gram || ix.budget(s.words[0]) < 2 {
		return m, err
	}
	s.written, s.near = false, true
	least := enough.Page
	if i == 0 {
		least = enough.First
	}
	if m, err = ix.match(s, fields); m != nil && m.most() < least {
		m = nil
	}
	return m, err
}

// excluded returns the rows of the negative words and phrases, by segment.
func (ix *resolver) excluded(t *Terms, fields FieldSet) []*roaring.Bitmap {
	out := make([]*roaring.Bitmap, len(ix.Segments))
	in := ix.in(fields)
	for i, s := range ix.Segments {
		out[i] = roaring.New()
		for _, w := range t.NegativeWords {
			if p, ok := s.Term([]byte(w)); ok {
				out[i] = Union(out[i], rowsIn(s, p, in), s.Rows())
			}
		}
	}
	for _, slots := range t.NegativePhrases {
		p := ix.phrase(slots, fields)
		for i, s := range ix.Segments {
			out[i] = Union(out[i], p.Segments[i].Rows, s.Rows())
		}
	}
	return out
}

// Mandatory is the rank of a term that may not be dropped.
const Mandatory = math.MaxInt

// Ranks returns for each term when it may be dropped: lower ranks first.
func (g *Graph) Ranks(s Strategy) []int {
	ranks := make([]int, len(g.Terms))
	phrases := slices.ContainsFunc(g.Terms, func(t Term) bool { return t.IsPhrase() })
	switch s {
	case All:
		for i := range ranks {
			ranks[i] = Mandatory
		}
		return ranks
	case Last:
		for i := range ranks {
			ranks[i] = len(ranks) - i
		}
	case Frequency:
		g.frequencyRanks(ranks)
	}
	if phrases {
		for i := range ranks {
			if g.Terms[i].IsPhrase() {
				ranks[i] = Mandatory
			}
		}
		return ranks
	}
	highest := slices.Max(ranks)
	for i := range ranks {
		if ranks[i] == highest {
			ranks[i] = Mandatory
		}
	}
	return ranks
}

// frequencyRanks ranks terms by the number of documents that match them or an n-gram over them, most frequent
// first. No document counts as most frequent, and equal numbers share a rank.
func (g *Graph) frequencyRanks(ranks []int) {
	counts := make([]uint64, len(g.Terms))
	for t := range g.Terms {
		for i, s := range g.ix.Segments {
			var rows []*roaring.Bitmap
			for n := range g.Nodes {
				if v := &g.Nodes[n]; v.Term <= t && t < v.Term+v.Len {
					rows = append(rows, v.Segments[i].Any)
				}
			}
			counts[t] += countLive(s, roaring.FastOr(rows...))
		}
		if counts[t] == 0 {
			counts[t] = math.MaxUint64
		}
	}
	distinct := slices.Clone(counts)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	slices.Reverse(distinct)
	for t, c := range counts {
		ranks[t] = 1 + slices.Index(distinct, c)
	}
}

// plainForms returns the forms of the words of a phrase, stop words like others.
func plainForms(words []string) []string {
	if !slices.ContainsFunc(words, text.IsStopEntry) {
		return words
	}
	plain := make([]string, len(words))
	for i, w := range words {
		plain[i] = text.FormOf(w)
	}
	return plain
}

// Highlights says what the query matched.
func (g *Graph) Highlights() *Highlights {
	h := &Highlights{}
	for n := range g.Nodes {
		v := &g.Nodes[n]
		first, last := int(v.Start), int(v.End)
		for l := range v.Levels {
			for _, p := range v.Levels[l].Phrases {
				h.Phrases = append(h.Phrases, Phrase{Words: plainForms(p.Words), First: first, Last: last})
			}
		}
		if t := &g.Terms[v.Term]; v.Len == 1 && t.Stop {
			// Stop words of a text are marked only as parts of phrases. If a query has no other words, each is a phrase of its own.
			h.Phrases = append(h.Phrases, Phrase{Words: []string{t.Word}, First: first, Last: last})
		}
		if v.Phrase || v.forms == nil {
			continue
		}
		forms := v.forms.resolve()
		if len(forms.set)+len(forms.prefixes) == 0 {
			continue
		}
		w := Words{Forms: forms.set, Prefixes: forms.prefixes, First: first, Last: last}
		for _, t := range g.Terms[v.Term : v.Term+v.Len] {
			w.Word += t.Word
			w.Chars += utf8.RuneCountInString(t.Word)
		}
		h.Words = append(h.Words, w)
	}
	slices.SortStableFunc(h.Words, func(a, b Words) int {
		if p, q := len(a.Prefixes) > 0, len(b.Prefixes) > 0; p != q {
			if p {
				return 1
			}
			return -1
		}
		return (b.Last - b.First) - (a.Last - a.First)
	})
	return h
}
