package search

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/index"
	"svc/internal/query"
	"svc/internal/rank"
	"svc/internal/turns"
)

// A query may have words that no document has. In a network, each instance finds out which of the words its documents have, and which
// words the others may stand for. A word is misspelt if no instance has it.

// Misspelt are the words of a query, with the words that they may stand for.
type Misspelt struct {
	query string
	until time.Time // deadline of the search; zero: none
	words []queriedWord
}

// queriedWord is a word of a query.
type queriedWord struct {
	word     string
	from, to int  // in the query
	known    bool // a document has it
	near     []query.Near
}

// FindMisspelt looks up the words of a query that began at start. here says that documents of this instance count; otherwise it only
// finds the words of the query. It returns nil for a search without suggestions.
func FindMisspelt(ctx context.Context, v *index.View, r *Request, start time.Time, here bool) (*Misspelt, error) {
	if !r.suggestible() {
		return nil, nil
	}
	return findMisspelt(ctx, v, r, deadline(v, start), here)
}

// findMisspelt finds for each word of the query whether documents of the universe have it, and otherwise the nearest words that they
// have. here is false if only other instances have documents.
func findMisspelt(ctx context.Context, v *index.View, r *Request, until time.Time, here bool) (*Misspelt, error) {
	m := &Misspelt{query: r.Query, until: until}
	rows := make([]*roaring.Bitmap, len(v.Segments))
	for i := range rows {
		rows[i] = roaring.New()
	}
	if here {
		var err error
		if rows, err = universe(ctx, v, r.Filter, r.filtering()); err != nil {
			return nil, err
		}
	}
	ix := rankIndex(v)
	searched, err := rank.SearchOn(ix, r.SearchOn)
	if err != nil {
		return nil, err
	}
	locales := r.Locales
	if locales == nil {
		locales = ix.Locales(searched)
	}
	fields := ix.Displayed(searched)
	terms := ix.Read(v.Analyzer.Tokens(nil, r.Query, locales, true), r.Query, locales, searched)
	for i := range terms.Terms {
		t := &terms.Terms[i]
		if t.IsPhrase() || t.Stop {
			continue
		}
		if err := turns.Of(ctx).Yield(); err != nil {
			return nil, err
		}
		w := queriedWord{word: t.Word, known: ix.Documents(t.Word, fields, rows) > 0}
		w.from, w.to = t.Span()
		if !w.known && t.Prefix {
			if w.known, err = ix.Begins(t.Word, fields, rows); err != nil {
				return nil, err
			}
		}
		if !w.known {
			if w.near, err = ix.Near(t.Word, fields, rows, maxNearTold, m.Late); err != nil {
				return nil, err
			}
		}
		m.words = append(m.words, w)
	}
	return m, nil
}

// Late reports whether the time of the search is over.
func (m *Misspelt) Late() bool { return !m.until.IsZero() && !time.Now().Before(m.until) }

// Add adds the results of another instance for the words of the same query.
func (m *Misspelt) Add(other *Misspelt) {
	for _, o := range other.words {
		i := slices.IndexFunc(m.words, func(w queriedWord) bool { return w.from == o.from && w.to == o.to })
		if i >= 0 {
			w := &m.words[i]
			w.known, w.near = w.known || o.known, append(w.near, o.near...)
		}
	}
}

// Queries returns corrected queries, the most likely one first.
func (m *Misspelt) Queries() (all []string) {
	for _, s := range likely(m.query, nil, m.corrected()) {
		all = append(all, s.query)
	}
	return all
}

// corrected returns the query with words of the index replacing those without documents, the most likely one first.
func (m *Misspelt) corrected() []suggested {
	var wrong []queriedWord
	for _, w := range m.words {
		if w.known {
			continue
		}
		if w.near = query.MergeNear(w.word, w.near, maxNearWords); len(w.near) == 0 {
			return nil
		}
		wrong = append(wrong, w)
	}
	if len(wrong) == 0 {
		return nil
	}
	with := func(other, choice int) suggested {
		var b strings.Builder
		end := 0
		for i, w := range wrong {
			word := w.near[0].Word
			if i == other {
				word = w.near[choice].Word
			}
			b.WriteString(m.query[end:w.from])
			b.WriteString(word)
			end = w.to
		}
		b.WriteString(m.query[end:])
		return suggested{query: b.String()}
	}
	all := []suggested{with(-1, 0)}
	for choice := 1; choice < maxNearWords; choice++ {
		for i := range wrong {
			if choice < len(wrong[i].near) {
				all = append(all, with(i, choice))
			}
		}
	}
	return all[:min(len(all), maxTried-maxPopular)]
}

// AppendPeer appends the words in the form of ReadType.
func (m *Misspelt) AppendPeer(dst []byte) []byte {
	for _, w := range m.words {
		dst = binary.AppendUvarint(append(dst, 1), uint64(w.from))
		dst = binary.AppendUvarint(dst, uint64(w.to))
		dst = binary.AppendUvarint(appendFlag(dst, w.known), uint64(len(w.near)))
		for _, n := range w.near {
			dst = append(appendText(dst, n.Word), byte(n.Typos))
			dst = binary.AppendUvarint(dst, uint64(n.Documents))
		}
	}
	return append(dst, 0)
}

const (
	leastPeerNear    = 4 // minimum bytes of an alternative word: its length, a letter, typos and documents
	queriedWordBytes = 72
	nearBytes        = 32
)

// ParseMisspelt reads what an instance answered. If reading ended early, it returns the error of reading.Ended.
func ParseMisspelt(body []byte, reading *Reading) (m *Misspelt, err error) {
	p := peerReader{left: body, Reading: reading}
	m = new(Misspelt)
	for p.byte() == 1 && !p.stop(p.step()) {
		w := queriedWord{from: p.int(maxSuggestible), to: p.int(maxSuggestible), known: p.byte() != 0}
		n := p.count(leastPeerNear)
		if n > maxNearTold {
			return nil, errReadMore
		}
		if m.words, err = makeRoom(reading, m.words, 1, queriedWordBytes); err != nil {
			return nil, err
		}
		for range n {
			text := p.text()
			if p.stop(p.make(nearBytes+len(text))) || p.stop(p.step()) {
				break
			}
			near := query.Near{Word: string(text), Typos: int(p.byte()), Documents: p.int(math.MaxUint32)}
			if near.Word == "" || !utf8.ValidString(near.Word) {
				return nil, errRead
			}
			w.near = append(w.near, near)
		}
		m.words = append(m.words, w)
	}
	return m, p.end()
}

// AppendRemoteWords appends the search for words as another instance is asked about them.
func (r *Request) AppendRemoteWords(dst []byte) []byte {
	o := objectWriter{append(dst, '{')}
	narrow := *r
	narrow.Hybrid, narrow.Vector, narrow.Media = nil, nil, nil
	narrow.writeNarrowing(&o)
	return append(o.b, '}')
}
