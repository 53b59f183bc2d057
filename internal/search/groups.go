package search

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/settings"
	"svc/internal/turns"
	"svc/segment"
)

// Hits of a group: how many are shown if the request does not say, and at most.
const (
	DefaultGroupHits = 3
	MaxGroupHits     = 100
)

const searchGroupBy apierr.Code = "invalid_search_group_by"

// GroupBy asks for hits in groups of documents that have the same value of an attribute.
type GroupBy struct {
	Attribute string
	Hits      int      // of each group, at most
	Sort      []string // of the hits of a group; nil: they come as they rank
}

// Check refuses an attribute that is not filterable, and what the index does not sort by.
func (b *GroupBy) Check(v *index.View) error {
	if info := v.Fields.InfoOf(b.Attribute); !info.Filters() {
		return apierr.New(searchGroupBy, "Attribute %q cannot be used in `groupBy`. Add it to the index's filterable attributes first.", b.Attribute)
	}
	_, err := parseSort(b.Sort, v.Fields, searchGroupBy)
	return err
}

// groupKey is the value that the documents of a group have: a number or a normalised string. The zero key is that of documents without
// the attribute.
type groupKey struct {
	kind   keyKind
	number numeric.Value
	text   string
}

type keyKind uint8

const (
	noKey keyKind = iota
	numberOf
	textOf
)

// group is the documents that share a key. A document with several values is in several groups.
type group struct {
	key   groupKey
	hits  []rank.Hit // the best ones
	count int        // of documents; known of the groups of the page
	fresh bool       // no round before this one met it
	seen  map[spot]bool
}

// spot is where a document stands.
type spot struct {
	segment int
	row     segment.Row
}

// grouper finds the groups of a page. It ranks in rounds. The first one is the search itself, with a longer page. A next one ranks the
// documents that are in no known group, until there are enough groups; another one those of the groups that miss hits. As ranking does not
// depend on which other documents are ranked, each group gets its best hits. With duplicates or a threshold to leave out, the first round
// ranks all documents, since which ones are left out depends on those before.
type grouper struct {
	k       *ranking
	by      *GroupBy
	columns []*segment.Column // by segment; nil: no document has the attribute
	base    []*roaring.Bitmap // by segment: what is found, without the pins
	all     []*roaring.Bitmap // with them
	groups  map[groupKey]*group
	order   []*group // by their best hits, without those that pins lead
	pins    []placed[*group]
	first   *found // the first round
	last    *found
	whole   bool // the first round ranks all documents
	end     time.Time

	ords []uint32
	keys []groupKey
}

// hitsPerGroup is how many hits the first round ranks for each group of the page and before it. (A variable, so that tests can lower it.)
var hitsPerGroup = 4

// group ranks, and returns what is found with the groups of the page. Total is the number of groups.
func (k *ranking) group(ctx context.Context, by *GroupBy, offset, limit int, start time.Time) (*found, []*group, error) {
	k.unbounded = true
	g := &grouper{k: k, by: by, columns: columnsIn(k.view, by.Attribute), groups: map[groupKey]*group{}, end: deadline(k.view, start)}
	g.whole = k.distinct != "" || k.request.RankingScoreThreshold != nil
	w := window{limit: (offset + limit) * hitsPerGroup, exhaustive: g.whole, deadline: g.end}
	if g.whole {
		w.limit = math.MaxInt32
	}
	var err error
	if g.first, err = k.find(ctx, w); err != nil {
		return nil, nil, err
	}
	g.last = g.first
	g.candidates()
	g.pin()
	g.take(g.first.Hits)
	for !g.whole && limit > 0 && !g.first.Degraded && len(g.last.Hits) == w.limit && len(g.order) < offset+limit {
		rest, err := g.unmet(ctx)
		if err != nil {
			return nil, nil, err
		}
		w.limit *= 2
		if err := g.search(ctx, rest, w); err != nil {
			return nil, nil, err
		}
		g.take(g.last.Hits)
	}
	next := 0
	page := weave(g.pins, func() (*group, bool) {
		if next == len(g.order) {
			return nil, false
		}
		next++
		return g.order[next-1], true
	}, offset, limit)
	for _, one := range page {
		for seg := range g.all {
			one.count += g.countIn(seg, &one.key)
		}
	}
	if by.Sort != nil {
		err = g.sort(ctx, page)
	} else if !g.whole {
		err = g.fill(ctx, page)
	}
	if err != nil {
		return nil, nil, err
	}
	total, err := g.total(ctx)
	if err != nil {
		return nil, nil, err
	}
	return g.result(page, total), page, nil
}

// columnsIn returns the columns of an attribute by segment; nil where no document has it.
func columnsIn(v *index.View, attribute string) []*segment.Column {
	columns := make([]*segment.Column, len(v.Segments))
	if id, ok := v.Fields.ID(attribute); ok {
		for i, s := range v.Segments {
			columns[i] = s.Column(id)
		}
	}
	return columns
}

// candidates notes what the first round found.
func (g *grouper) candidates() {
	g.base = make([]*roaring.Bitmap, len(g.columns))
	for seg := range g.base {
		if g.whole { // candidates need not be the documents that were not left out
			g.base[seg] = roaring.New()
		} else {
			g.base[seg] = g.first.In(seg)
		}
	}
	if g.whole {
		for _, h := range g.first.Hits {
			g.base[h.Segment].Add(uint32(h.Row))
		}
	}
	g.all = slices.Clone(g.base)
}

// pin has pins lead their groups, which take the places of the pins.
func (g *grouper) pin() {
	cloned := make([]bool, len(g.all))
	for _, p := range g.k.pins {
		seg, row := p.hit.Segment, p.hit.Row
		if !cloned[seg] {
			g.all[seg], cloned[seg] = g.all[seg].Clone(), true
		}
		g.all[seg].Add(uint32(row))
		for _, key := range g.keysOf(seg, row) {
			one := g.groups[key]
			if one == nil {
				one = &group{key: key, fresh: true}
				g.groups[key] = one
				g.pins = append(g.pins, placed[*group]{p.at, one})
			}
			if len(one.hits) < g.by.Hits {
				one.hits = append(one.hits, p.hit)
			}
		}
	}
}

// keysOf returns the keys of a document, ascending, until it is called again.
func (g *grouper) keysOf(seg int, row segment.Row) []groupKey {
	g.keys = g.keys[:0]
	if c := g.columns[seg]; c != nil {
		g.ords = c.RowNumbers(g.ords[:0], row)
		for _, ord := range g.ords {
			if int(ord) < c.Numbers() { // a forged segment may name others
				g.keys = append(g.keys, groupKey{kind: numberOf, number: c.Number(int(ord))})
			}
		}
		g.ords = c.RowStrings(g.ords[:0], row)
		for _, ord := range g.ords {
			g.keys = append(g.keys, groupKey{kind: textOf, text: string(c.String(int(ord)))})
		}
	}
	if len(g.keys) == 0 {
		g.keys = append(g.keys, groupKey{})
	}
	return g.keys
}

// take puts the hits of a round into the groups that it was the first to meet.
func (g *grouper) take(hits []rank.Hit) {
	for i := range hits {
		h := &hits[i]
		for _, key := range g.keysOf(h.Segment, h.Row) {
			one := g.groups[key]
			if one == nil {
				one = &group{key: key, fresh: true}
				g.groups[key] = one
				g.order = append(g.order, one)
			}
			if one.fresh && len(one.hits) < g.by.Hits {
				one.hits = append(one.hits, *h)
			}
		}
	}
	for _, one := range g.groups {
		one.fresh = false
	}
}

// rows returns those of some rows of a segment that are in a group.
func (g *grouper) rows(seg int, key *groupKey, among *roaring.Bitmap) *roaring.Bitmap {
	dst, c := roaring.New(), g.columns[seg]
	switch {
	case key.kind == noKey:
		if c == nil {
			return among
		}
		met := newMetOrdinals(c)
		met.missing = func(row uint32) { dst.Add(row) }
		_ = met.add(func() error { return nil }, among) // which does not fail
	case c == nil:
	case key.kind == numberOf:
		if ord := c.SearchNumber(key.number); ord < c.Numbers() && c.Number(ord) == key.number {
			c.AddNumberRowsAmong(dst, ord, among)
		}
	default:
		if ord := c.SearchString([]byte(key.text)); ord < c.Strings() && string(c.String(ord)) == key.text {
			c.AddStringRowsAmong(dst, ord, among)
		}
	}
	return dst
}

// countIn returns how many documents of a segment are in a group.
func (g *grouper) countIn(seg int, key *groupKey) int {
	c, among := g.columns[seg], g.all[seg]
	switch {
	case key.kind == noKey:
		return int(g.rows(seg, key, among).GetCardinality())
	case c == nil:
	case key.kind == numberOf:
		if ord := c.SearchNumber(key.number); ord < c.Numbers() && c.Number(ord) == key.number {
			return c.CountNumberRows(ord, among)
		}
	default:
		if ord := c.SearchString([]byte(key.text)); ord < c.Strings() && string(c.String(ord)) == key.text {
			return c.CountStringRows(ord, among)
		}
	}
	return 0
}

// unmet returns, by segment, the documents that are in a group which is not known.
func (g *grouper) unmet(ctx context.Context) ([]*roaring.Bitmap, error) {
	t := turns.Of(ctx)
	rest := make([]*roaring.Bitmap, len(g.base))
	for seg, base := range g.base {
		known := roaring.New()
		for _, one := range g.groups {
			known.Or(g.rows(seg, &one.key, base))
		}
		if c := g.columns[seg]; c != nil && !(c.SingleNumbers() && c.Strings() == 0 || c.SingleStrings() && c.Numbers() == 0) {
			n := 0
			for it := known.Clone().Iterator(); it.HasNext(); n++ {
				if n%clockRows == 0 {
					if err := t.Yield(); err != nil {
						return nil, err
					}
				}
				row := it.Next()
				if slices.ContainsFunc(g.keysOf(seg, segment.Row(row)), func(key groupKey) bool { return g.groups[key] == nil }) {
					known.Remove(row)
				}
			}
		}
		rest[seg] = roaring.AndNot(base, known)
	}
	return rest, t.Account().Hold(candidateBytes(rest))
}

// search is a round that ranks some of what the first one found.
func (g *grouper) search(ctx context.Context, rows []*roaring.Bitmap, w window) (err error) {
	g.last, err = g.k.within(rows, g.first).find(ctx, w)
	if err == nil {
		g.first.Degraded = g.first.Degraded || g.last.Degraded
	}
	return err
}

// within returns the ranking of some documents, which are among those that this one found.
func (k *ranking) within(rows []*roaring.Bitmap, f *found) *ranking {
	in, request := *k, *k.request
	in.filter, in.rows, in.request = nil, rows, &request
	switch { // the query is embedded once
	case f.queryVector != nil:
		request.Vector = f.queryVector
	case k.kind == hybrid:
		in.kind = keyword
	}
	in.parts = slices.Clone(k.parts)
	for i := range in.parts {
		part := make([]*roaring.Bitmap, len(rows))
		for seg := range rows {
			part[seg] = roaring.And(rows[seg], in.parts[i].rows[seg])
		}
		in.parts[i].rows = part
	}
	return &in
}

// fill ranks the documents of groups that miss hits.
func (g *grouper) fill(ctx context.Context, page []*group) error {
	open := slices.DeleteFunc(slices.Clone(page), func(one *group) bool { return len(one.hits) >= min(g.by.Hits, one.count) })
	for w := (window{deadline: g.end}); len(open) > 0; {
		rows, missing := make([]*roaring.Bitmap, len(g.base)), 0
		for seg := range rows {
			rows[seg] = roaring.New()
		}
		for _, one := range open {
			missing += min(g.by.Hits, one.count) - len(one.hits)
			one.seen = make(map[spot]bool, len(one.hits))
			for _, h := range one.hits {
				one.seen[spotOf(&h)] = true
			}
			for seg, base := range g.base {
				in := g.rows(seg, &one.key, base)
				if one.key.kind == noKey {
					in = in.Clone()
				}
				for at := range one.seen {
					if at.segment == seg {
						in.Remove(uint32(at.row))
					}
				}
				rows[seg].Or(in)
			}
		}
		w.limit = max(2*w.limit, 2*missing, fillHits)
		if err := g.search(ctx, rows, w); err != nil {
			return err
		}
		for i := range g.last.Hits {
			h := &g.last.Hits[i]
			for _, key := range g.keysOf(h.Segment, h.Row) {
				one := g.groups[key]
				if one == nil || one.seen == nil || one.seen[spotOf(h)] || len(one.hits) >= g.by.Hits {
					continue
				}
				one.hits = append(one.hits, *h)
			}
		}
		for _, one := range open {
			one.seen = nil
		}
		if g.first.Degraded || len(g.last.Hits) < w.limit {
			return nil
		}
		open = slices.DeleteFunc(open, func(one *group) bool { return len(one.hits) >= min(g.by.Hits, one.count) })
	}
	return nil
}

// fillHits is how many hits of the groups that miss some are ranked at least. (A variable, so that tests can lower it.)
var fillHits = 64

func spotOf(h *rank.Hit) spot { return spot{h.Segment, h.Row} }

// sort gives groups the first hits of their own order.
func (g *grouper) sort(ctx context.Context, page []*group) error {
	keys, err := parseSort(g.by.Sort, g.k.view.Fields, searchGroupBy)
	if err != nil {
		return err
	}
	ix := rankIndex(g.k.view)
	onlySort := *g.k.view.Settings
	onlySort.RankingRules = []settings.RankingRule{{Kind: settings.Sort}}
	ix.Settings = &onlySort
	chosen := make([]*roaring.Bitmap, len(g.base))
	for seg := range chosen {
		chosen[seg] = roaring.New()
	}
	n := 0
	for _, one := range page {
		rows := make([]*roaring.Bitmap, len(g.all))
		for seg := range rows {
			rows[seg] = g.rows(seg, &one.key, g.all[seg])
		}
		sorted, err := rank.Search(ctx, ix, &rank.Request{Universe: rows, Sort: keys, Limit: g.by.Hits, MaxTotal: g.by.Hits, Deadline: g.end})
		if err != nil {
			return err
		}
		g.first.Degraded = g.first.Degraded || sorted.Degraded
		one.hits = sorted.Hits
		for _, h := range one.hits {
			if g.base[h.Segment].Contains(uint32(h.Row)) {
				n++
				chosen[h.Segment].Add(uint32(h.Row))
			}
		}
	}
	ranked := make(map[spot]*rank.Hit, n)
	// What hits show of their ranking is known after they are ranked.
	if n > 0 && !g.whole {
		if err := g.search(ctx, chosen, window{limit: n, deadline: g.end}); err != nil {
			return err
		}
	}
	for i := range g.last.Hits {
		ranked[spotOf(&g.last.Hits[i])] = &g.last.Hits[i]
	}
	for i := range g.k.pins {
		ranked[spotOf(&g.k.pins[i].hit)] = &g.k.pins[i].hit
	}
	for _, one := range page {
		for i := range one.hits {
			if h := ranked[spotOf(&one.hits[i])]; h != nil {
				one.hits[i] = *h
			}
		}
	}
	return nil
}

// result returns what the first round found, with the hits of a page of groups.
func (g *grouper) result(page []*group, total int) *found {
	f := *g.first
	r := *f.Result
	r.Candidates, r.Counts, r.Hits, r.Total = g.all, nil, nil, min(total, g.k.view.Settings.Pagination.MaxTotalHits)
	r.Highlights = g.last.Highlights // of all forms of the words that a round met
	if len(g.k.pins) > 0 || g.whole {
		r.AppendKey = nil
	}
	f.Result, f.semanticHits = &r, 0
	for _, one := range page {
		r.Hits = append(r.Hits, one.hits...)
	}
	for i := range r.Hits {
		if h := &r.Hits[i]; bySimilarity(h) || f.kind == semantic && !isPin(g.k.pins, h) {
			f.semanticHits++
		}
	}
	return &f
}

// total returns how many groups there are.
func (g *grouper) total(ctx context.Context) (int, error) {
	t := turns.Of(ctx)
	var numbers, texts []ordinalsOf
	none := false
	for seg, c := range g.columns {
		rows := g.all[seg]
		if rows.IsEmpty() {
			continue
		}
		if c == nil {
			none = true
			continue
		}
		if err := t.Account().Hold(int64(c.Numbers()+c.Strings())/2 + 1); err != nil { // ordinals that are met, and a list of some
			return 0, err
		}
		met := newMetOrdinals(c)
		if int(rows.GetCardinality()) != g.k.view.Segments[seg].Rows() || !met.addAll(g.k.view.Segments[seg].Rows()) {
			if err := met.add(t.Yield, rows); err != nil {
				return 0, err
			}
		}
		none = none || met.none
		numbers = append(numbers, ordinalsOf{c, met.numbers.list()})
		texts = append(texts, ordinalsOf{c, met.texts.list()})
	}
	total := different(numbers, func(a, b *ordinalsOf) int {
		return a.column.Number(int(a.ords[0])).Compare(b.column.Number(int(b.ords[0])))
	})
	total += different(texts, func(a, b *ordinalsOf) int {
		return cmp.Compare(string(a.column.String(int(a.ords[0]))), string(b.column.String(int(b.ords[0]))))
	})
	if none {
		total++
	}
	return total, nil
}

// metOrdinals are the ordinals of a column that some rows have.
type metOrdinals struct {
	column         *segment.Column
	numbers, texts ordinalBits
	none           bool // some row has no value
	missing        func(row uint32)

	ords, places []uint32
	has          [metRows]bool // by row of a batch: it has a value
}

// metRows is how many rows are looked at at once.
const metRows = 1024

// ordinalBits are a set of ordinals.
type ordinalBits []uint64

func (b ordinalBits) list() []uint32 {
	var ords []uint32
	for i, word := range b {
		for ; word != 0; word &= word - 1 {
			ords = append(ords, uint32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return ords
}

func newMetOrdinals(c *segment.Column) *metOrdinals {
	return &metOrdinals{column: c, numbers: make(ordinalBits, (c.Numbers()+63)/64), texts: make(ordinalBits, (c.Strings()+63)/64)}
}

// add adds the ordinals of rows, and calls missing, if there is one, for each row without any.
func (m *metOrdinals) add(yield func() error, rows *roaring.Bitmap) error {
	var batch [metRows]uint32
	for it := rows.ManyIterator(); ; {
		n := it.NextMany(batch[:])
		if n == 0 {
			return nil
		}
		if err := yield(); err != nil {
			return err
		}
		clear(m.has[:n])
		if m.column.Numbers() > 0 {
			m.ords, m.places = m.column.EachNumber(m.ords[:0], m.places[:0], batch[:n])
			m.note(m.numbers)
		}
		if m.column.Strings() > 0 {
			m.ords, m.places = m.column.EachString(m.ords[:0], m.places[:0], batch[:n])
			m.note(m.texts)
		}
		for i, row := range batch[:n] {
			if !m.has[i] {
				m.none = true
				if m.missing == nil {
					break
				}
				m.missing(row)
			}
		}
	}
}

// addAll adds the ordinals of all rows. It reports false, and adds nothing, unless each row has one value.
func (m *metOrdinals) addAll(rows int) bool {
	c := m.column
	counts, size, met := c.NumberCounts, c.Numbers(), m.numbers
	switch {
	case c.Strings() == 0 && c.SingleNumbers():
	case c.Numbers() == 0 && c.SingleStrings():
		counts, size, met = c.StringCounts, c.Strings(), m.texts
	default:
		return false
	}
	var batch [metRows]uint32
	for lo := 0; lo < size; lo += len(batch) {
		block := batch[:min(len(batch), size-lo)]
		counts(block, lo)
		for _, n := range block {
			rows -= int(n)
		}
	}
	if rows != 0 {
		return false
	}
	for ord := range size {
		met[ord/64] |= 1 << (ord % 64)
	}
	return true
}

func (m *metOrdinals) note(met ordinalBits) {
	for i, ord := range m.ords {
		met[ord/64] |= 1 << (ord % 64)
		m.has[m.places[i]] = true
	}
}

// ordinalsOf are some ordinals of a column, ascending.
type ordinalsOf struct {
	column *segment.Column
	ords   []uint32
}

// different counts the different values of lists, which it empties. compare compares the first values of two.
func different(lists []ordinalsOf, compare func(a, b *ordinalsOf) int) (n int) {
	empty := func(l ordinalsOf) bool { return len(l.ords) == 0 }
	for {
		if lists = slices.DeleteFunc(lists, empty); len(lists) <= 1 {
			break
		}
		least := 0
		for i := range lists {
			if compare(&lists[i], &lists[least]) < 0 {
				least = i
			}
		}
		for i := range lists {
			if i != least && compare(&lists[i], &lists[least]) == 0 {
				lists[i].ords = lists[i].ords[1:]
			}
		}
		lists[least].ords = lists[least].ords[1:]
		n++
	}
	for _, l := range lists {
		n += len(l.ords)
	}
	return n
}

// append appends the key as JSON, spelt like one of the documents.
func (k *groupKey) append(dst []byte, columns []*segment.Column) []byte {
	switch k.kind {
	case noKey:
		return append(dst, "null"...)
	case numberOf:
		return k.number.AppendText(dst)
	}
	var shown []byte
	for _, c := range columns {
		if c == nil {
			continue
		}
		if ord := c.SearchString([]byte(k.text)); ord < c.Strings() && string(c.String(ord)) == k.text {
			if s := c.Original(ord); shown == nil || string(s) < string(shown) {
				shown = s
			}
		}
	}
	return jsontext.AppendQuoted(dst, shown)
}
