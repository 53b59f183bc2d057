package search

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
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

// Codes of errors of groups.
const (
	searchGroupBy    apierr.Code = "invalid_search_group_by"
	federatedGroupBy apierr.Code = "invalid_multi_search_group_by"
)

// GroupBy asks for hits in groups of documents that have the same value of an attribute.
type GroupBy struct {
	Attribute string
	Hits      int      // of each group, at most
	Sort      []string // of the hits of a group; nil: they come as they rank
}

// Check refuses, with a code, an attribute that is not filterable, and what the index does not sort by.
func (b *GroupBy) Check(ctx context.Context, v *index.View, contains bool, code apierr.Code) error {
	if info := v.Fields.InfoOf(b.Attribute); !info.Filters() {
		return apierr.New(code, "Attribute %q cannot be used in `groupBy`. Add it to the index's filterable attributes first.", b.Attribute)
	}
	_, err := parseSort(ctx, v, b.Sort, contains, code)
	return err
}

// group is the documents that share a key. A document with several values is in several groups.
type group struct {
	key   rank.GroupKey
	hits  []rank.Hit          // the best ones
	order [][]rank.ScoreValue // by hit, of groups that sort their hits: what it is sorted by; nil: nobody asks
	count int                 // of documents; known of the groups of the page
	ords  []int               // by segment: as ordinal returns it, but 0 is unknown and others are larger by 2; nil: all are unknown
	fresh bool                // no round before this one met it
	seen  map[spot]bool
}

// spot is where a document stands.
type spot struct {
	segment int
	row     segment.Row
}

// grouper finds the groups of a page. A search by words pulls hits until the groups of the page have theirs (rank.Grouping).
//
// Searches that merge several rankings, by vectors too, rank in rounds. The first one is the search itself, with a longer page. A next
// one ranks the documents that are in no known group, until there are enough groups; another one those of the groups that miss hits. As
// ranking does not depend on which other documents are ranked, each group gets its best hits. With duplicates or a threshold to leave out,
// the first round ranks all documents, since which ones are left out depends on those before.
type grouper struct {
	k       *ranking
	by      *GroupBy
	columns rank.GroupColumns
	base    []*roaring.Bitmap // by segment: what is found, without the pins
	all     []*roaring.Bitmap // with them
	groups  map[rank.GroupKey]*group
	order   []*group // by their best hits, without those that pins lead
	pins    []pinnedHit[*group]
	first   *rankedHits // the first round
	last    *rankedHits
	pulls   bool // hits are pulled
	whole   bool // the first round ranks all documents
	values  bool // hits are merged with those of other searches
	end     time.Time

	keys     []rank.GroupKey
	ords     []uint32
	of       []*group
	byOrd    [][]*group // by segment, then by ordinal of its numbers, and behind them of its strings: groups of hits; nil: none yet, or too many
	room     []group    // of groups that were not met yet
	roomHits []rank.Hit // of these
	roomOrds []int      // of these
}

// maxByOrd is the largest number of values of a segment for which groups are noted by ordinal. (A variable, so that tests can lower it.)
var maxByOrd = 1 << 12

// groupRoom is how many groups get their memory at once: those of a page.
const groupRoom = 20

// hitsPerGroup is how many hits the first round ranks for each group of the page and before it. (A variable, so that tests can lower it.)
var hitsPerGroup = 4

// group ranks, and returns what is found with the groups of the page. Total is the number of groups.
func (k *ranking) group(ctx context.Context, by *GroupBy, offset, limit int, start time.Time) (*rankedHits, []*group, error) {
	g := newGrouper(k, by, deadline(k.view, start))
	g.pin()
	shown := 0
	if limit > 0 {
		shown = offset + limit
	}
	if err := g.find(ctx, shown, limit > 0 && offset == 0); err != nil {
		return nil, nil, err
	}
	next := 0
	page := weave(g.pins, func() (*group, bool) {
		if next == len(g.order) {
			return nil, false
		}
		next++
		return g.order[next-1], true
	}, offset, limit)
	rows := g.counted()
	rows.counted = make([]valueCounts, len(rows.columns))
	if err := rows.count(ctx, page); err != nil {
		return nil, nil, err
	}
	most := k.view.Settings.Pagination.MaxTotalHits
	met, err := rows.meet(ctx, most)
	if err != nil {
		return nil, nil, err
	}
	if err := g.complete(ctx, page); err != nil {
		return nil, nil, err
	}
	return g.result(page, met.total(most)), page, nil
}

func newGrouper(k *ranking, by *GroupBy, end time.Time) *grouper {
	k.unbounded = true
	g := &grouper{k: k, by: by, columns: columnsIn(k.view, by.Attribute), groups: make(map[rank.GroupKey]*group, groupRoom), order: make([]*group, 0, groupRoom), end: end}
	g.byOrd = make([][]*group, len(g.columns))
	g.whole = k.distinct != "" || k.request.RankingScoreThreshold != nil
	g.pulls = !g.whole && k.kind == keyword && k.parts == nil
	return g
}

// find finds n groups besides those that are known. If all of them are shown, it finds their hits, too.
func (g *grouper) find(ctx context.Context, n int, shown bool) error {
	if g.pulls {
		return g.pull(ctx, n, shown)
	}
	return g.rounds(ctx, n)
}

// complete gives the groups of a page, whose documents are counted, the hits that they miss.
func (g *grouper) complete(ctx context.Context, page []*group) error {
	switch {
	case g.by.Sort != nil:
		return g.sort(ctx, page)
	case !g.whole:
		return g.fill(ctx, page)
	}
	return nil
}

// pull is find for a search by words. Scores may depend on what else is ranked, so hits that show theirs are found at once.
func (g *grouper) pull(ctx context.Context, n int, shown bool) (err error) {
	asked := &rank.Grouping{Field: g.by.Attribute, New: n, Hits: 1, Known: map[rank.GroupKey]int{}}
	r := g.k.request
	fills := g.by.Sort == nil && (shown || n > 0 && (r.ShowRankingScore || r.ShowRankingScoreDetails))
	if fills {
		asked.Hits = g.by.Hits
	}
	for key, one := range g.groups {
		asked.Known[key] = 0
		if fills {
			asked.Known[key] = g.by.Hits - len(one.hits)
		}
	}
	if g.first, err = g.k.find(ctx, window{limit: math.MaxInt32, values: g.values, deadline: g.end, grouping: asked}); err != nil {
		return err
	}
	g.last = g.first
	g.candidates()
	for _, one := range g.groups {
		one.fresh = true
	}
	g.take(g.first.Hits)
	if !fills { // a hit of one group may be the second one of another
		for _, one := range g.groups {
			one.hits = one.hits[:min(1, len(one.hits))]
		}
		for _, one := range g.pins {
			one.hit.hits = slices.DeleteFunc(one.hit.hits, func(h rank.Hit) bool { return !isPin(g.k.pins, &h) })
		}
	}
	return nil
}

// rounds is find round by round.
func (g *grouper) rounds(ctx context.Context, n int) (err error) {
	w := window{limit: n * hitsPerGroup, exhaustive: g.whole, values: g.values, deadline: g.end}
	if g.whole {
		w.limit = math.MaxInt32
	}
	if g.first, err = g.k.find(ctx, w); err != nil {
		return err
	}
	g.last = g.first
	g.candidates()
	g.take(g.first.Hits)
	for !g.whole && !g.first.Degraded && len(g.last.Hits) == w.limit && len(g.order) < n {
		rest, err := g.unmet(ctx)
		if err != nil {
			return err
		}
		w.limit *= 2
		if err := g.search(ctx, rest, w); err != nil {
			return err
		}
		g.take(g.last.Hits)
	}
	return nil
}

// columnsIn returns the columns of an attribute by segment; nil where no document has it.
func columnsIn(v *index.View, attribute string) rank.GroupColumns {
	columns := make(rank.GroupColumns, len(v.Segments))
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
	cloned := make([]bool, len(g.all))
	for _, p := range g.k.pins {
		seg := p.hit.Segment
		if !cloned[seg] {
			g.all[seg], cloned[seg] = g.all[seg].Clone(), true
		}
		g.all[seg].Add(uint32(p.hit.Row))
	}
}

// pin has pins lead their groups, which take the places of the pins.
func (g *grouper) pin() {
	for _, p := range g.k.pins {
		for _, key := range g.keysOf(p.hit.Segment, p.hit.Row) {
			one := g.groups[key]
			if one == nil {
				one = &group{key: key, fresh: true}
				g.groups[key] = one
				g.pins = append(g.pins, pinnedHit[*group]{p.at, one})
			}
			if len(one.hits) < g.by.Hits {
				one.hits = append(one.hits, p.hit)
			}
		}
	}
}

// keysOf returns the keys of a document, ascending, until it is called again.
func (g *grouper) keysOf(seg int, row segment.Row) []rank.GroupKey {
	g.keys = g.columns.AppendKeys(g.keys[:0], seg, row)
	return g.keys
}

// take puts the hits of a round into the groups that it was the first to meet.
func (g *grouper) take(hits []rank.Hit) {
	for i := range hits {
		h := &hits[i]
		for _, one := range g.groupsOf(h.Segment, h.Row) {
			if one.fresh && len(one.hits) < g.by.Hits {
				one.hits = append(one.hits, *h)
			}
		}
	}
	for _, one := range g.groups {
		one.fresh = false
	}
}

// groupsOf returns the groups of a document, ascending by their keys, until it is called again. It adds those that were not met before.
func (g *grouper) groupsOf(seg int, row segment.Row) []*group {
	g.of = g.of[:0]
	if c := g.columns[seg]; c != nil {
		g.ords = c.RowNumbers(g.ords[:0], row)
		for _, ord := range g.ords {
			if int(ord) < c.Numbers() { // a forged segment may name others
				g.of = append(g.of, g.groupAt(c, seg, int(ord)))
			}
		}
		g.ords = c.RowStrings(g.ords[:0], row)
		for _, ord := range g.ords {
			g.of = append(g.of, g.groupAt(c, seg, c.Numbers()+int(ord)))
		}
	}
	if len(g.of) == 0 {
		g.of = append(g.of, g.meet(rank.GroupKey{}))
	}
	return g.of
}

// groupAt returns the group of a value of a column: of its number with an ordinal, or behind them of a string.
func (g *grouper) groupAt(c *segment.Column, seg, ord int) *group {
	if n := c.Numbers() + c.Strings(); g.byOrd[seg] == nil && n <= maxByOrd {
		g.byOrd[seg] = make([]*group, n)
	}
	noted := ord < len(g.byOrd[seg]) // a forged segment may name others
	if noted && g.byOrd[seg][ord] != nil {
		return g.byOrd[seg][ord]
	}
	var one *group
	if at := ord - c.Numbers(); at < 0 {
		one = g.meet(rank.GroupKey{Kind: rank.NumberKey, Number: c.Number(ord)})
		one.setOrdinal(g.columns, seg, ord)
	} else {
		one = g.meet(rank.GroupKey{Kind: rank.TextKey, Text: string(c.String(at))})
		if at < c.Strings() { // a forged segment may name others
			one.setOrdinal(g.columns, seg, at)
		}
	}
	if noted {
		g.byOrd[seg][ord] = one
	}
	return one
}

// ordinal returns what GroupColumns.Ordinal does for the key of a group. It looks the key up once; columns are those of one index.
func (one *group) ordinal(columns rank.GroupColumns, seg int) int {
	if one.key.Kind == rank.NoKey || columns[seg] == nil {
		return -1
	}
	if one.ords == nil || one.ords[seg] == 0 {
		one.setOrdinal(columns, seg, columns.Ordinal(seg, &one.key))
	}
	return one.ords[seg] - 2
}

// setOrdinal notes what ordinal returns.
func (one *group) setOrdinal(columns rank.GroupColumns, seg, ord int) {
	if one.ords == nil {
		one.ords = make([]int, len(columns))
	}
	one.ords[seg] = ord + 2
}

// meet returns the group of a key, which it adds if it was not met before.
func (g *grouper) meet(key rank.GroupKey) *group {
	one := g.groups[key]
	if one == nil {
		hits := min(g.by.Hits, DefaultGroupHits)
		segments := len(g.columns)
		if len(g.room) == 0 {
			g.room, g.roomHits, g.roomOrds = make([]group, groupRoom), make([]rank.Hit, groupRoom*hits), make([]int, groupRoom*segments)
		}
		one = &g.room[0]
		*one = group{key: key, fresh: true, hits: g.roomHits[:0:hits], ords: g.roomOrds[:segments:segments]}
		g.room, g.roomHits, g.roomOrds = g.room[1:], g.roomHits[hits:], g.roomOrds[segments:]
		g.groups[key] = one
		g.order = append(g.order, one)
	}
	return one
}

// rowsOf returns those of some rows of a segment that are in a group.
func rowsOf(columns rank.GroupColumns, seg int, key *rank.GroupKey, among *roaring.Bitmap) *roaring.Bitmap {
	dst := roaring.New()
	switch ord := columns.Ordinal(seg, key); {
	case key.Kind == rank.NoKey:
		columns.AddMissing(dst, seg, among)
	case ord < 0:
	case key.Kind == rank.NumberKey:
		columns[seg].AddNumberRowsAmong(dst, ord, among)
	default:
		columns[seg].AddStringRowsAmong(dst, ord, among)
	}
	return dst
}

// unmet returns, by segment, the documents that are in a group which is not known.
func (g *grouper) unmet(ctx context.Context) ([]*roaring.Bitmap, error) {
	t := turns.Of(ctx)
	rest := make([]*roaring.Bitmap, len(g.base))
	for seg, base := range g.base {
		known := roaring.New()
		for _, one := range g.groups {
			known.Or(rowsOf(g.columns, seg, &one.key, base))
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
				if slices.ContainsFunc(g.keysOf(seg, segment.Row(row)), func(key rank.GroupKey) bool { return g.groups[key] == nil }) {
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
func (k *ranking) within(rows []*roaring.Bitmap, f *rankedHits) *ranking {
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
	if g.first.Degraded {
		return nil
	}
	if g.pulls {
		return g.pullMore(ctx, open)
	}
	for w := (window{values: g.values, deadline: g.end}); len(open) > 0; {
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
				in := rowsOf(g.columns, seg, &one.key, base)
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

// pullMore pulls the hits of groups that miss some, again from the first one on.
func (g *grouper) pullMore(ctx context.Context, open []*group) error {
	if len(open) == 0 {
		return nil
	}
	asked := &rank.Grouping{Field: g.by.Attribute, Known: make(map[rank.GroupKey]int, len(open))}
	of := make(map[rank.GroupKey]*group, len(open))
	for _, one := range open {
		one.hits = slices.DeleteFunc(one.hits, func(h rank.Hit) bool { return !isPin(g.k.pins, &h) })
		asked.Known[one.key], of[one.key] = g.by.Hits-len(one.hits), one
	}
	if err := g.search(ctx, g.base, window{limit: math.MaxInt32, values: g.values, deadline: g.end, grouping: asked}); err != nil {
		return err
	}
	g.give(of, g.last.Hits)
	return nil
}

// give gives groups the hits that they miss.
func (g *grouper) give(of map[rank.GroupKey]*group, hits []rank.Hit) {
	for i := range hits {
		h := &hits[i]
		for _, key := range g.keysOf(h.Segment, h.Row) {
			if one := of[key]; one != nil && len(one.hits) < g.by.Hits {
				one.hits = append(one.hits, *h)
			}
		}
	}
}

// fillHits is how many hits of the groups that miss some are ranked at least. (A variable, so that tests can lower it.)
var fillHits = 64

func spotOf(h *rank.Hit) spot { return spot{h.Segment, h.Row} }

// sort gives groups the first hits of their own order.
func (g *grouper) sort(ctx context.Context, page []*group) error {
	keys, err := parseSort(ctx, g.k.view, g.by.Sort, g.k.request.Contains, searchGroupBy)
	if err != nil {
		return err
	}
	ix := rankIndex(g.k.view)
	onlySort := *g.k.view.Settings
	onlySort.RankingRules = []settings.RankingRule{{Kind: settings.Sort}}
	ix.Settings = &onlySort
	asked := &rank.Grouping{Field: g.by.Attribute, Known: make(map[rank.GroupKey]int, len(page))}
	of := make(map[rank.GroupKey]*group, len(page))
	for _, one := range page {
		asked.Known[one.key], of[one.key] = g.by.Hits, one
		one.hits = nil
	}
	sorted, err := rank.Search(ctx, ix, &rank.Request{Universe: g.all, Sort: keys, Grouping: asked, Limit: math.MaxInt32, MaxTotal: math.MaxInt32, Scores: g.values, Values: g.values,
		Deadline: g.end})
	if err != nil {
		return err
	}
	g.first.Degraded = g.first.Degraded || sorted.Degraded
	g.give(of, sorted.Hits)
	chosen, n := make([]*roaring.Bitmap, len(g.base)), 0
	for seg := range chosen {
		chosen[seg] = roaring.New()
	}
	for _, h := range sorted.Hits {
		if g.base[h.Segment].Contains(uint32(h.Row)) && chosen[h.Segment].CheckedAdd(uint32(h.Row)) {
			n++
		}
	}
	ranked := make(map[spot]*rank.Hit, n)
	// What hits show of their ranking is known after they are ranked.
	if n > 0 && !g.whole && (g.k.kind != keyword || g.values || g.k.request.ShowRankingScore || g.k.request.ShowRankingScoreDetails) {
		if err := g.search(ctx, chosen, window{limit: n, values: g.values, deadline: g.end}); err != nil {
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
		if g.values {
			one.order = make([][]rank.ScoreValue, len(one.hits))
		}
		for i := range one.hits {
			if g.values {
				one.order[i] = one.hits[i].Values
			}
			if h := ranked[spotOf(&one.hits[i])]; h != nil {
				one.hits[i] = *h
			}
		}
	}
	return nil
}

// result returns what the first round found, with the hits of a page of groups.
func (g *grouper) result(page []*group, total int) *rankedHits {
	f := *g.first
	r := *f.Result
	r.Candidates, r.Counts, r.Hits, r.Total = g.all, nil, nil, min(total, g.k.view.Settings.Pagination.MaxTotalHits)
	r.Highlights = g.last.Highlights // of all forms of the words that a round met
	if len(g.k.pins) > 0 || g.whole {
		r.AppendKey = nil
	}
	f.Result, f.semanticHits = &r, 0
	hits := 0
	for _, one := range page {
		hits += len(one.hits)
	}
	r.Hits = make([]rank.Hit, 0, hits)
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

// appendKey appends a key as JSON. shown is the spelling of a text.
func appendKey(dst []byte, k *rank.GroupKey, shown []byte) []byte {
	switch k.Kind {
	case rank.NoKey:
		return append(dst, "null"...)
	case rank.NumberKey:
		return k.Number.AppendText(dst)
	}
	return jsontext.AppendQuoted(dst, shown)
}

// leastSpelling returns the least of the spellings that documents have of a group's text, or shown if that is less; nil is none.
func leastSpelling(shown []byte, one *group, columns rank.GroupColumns) []byte {
	if one.key.Kind != rank.TextKey {
		return nil
	}
	for seg, c := range columns {
		if ord := one.ordinal(columns, seg); ord >= 0 {
			if s := c.Original(ord); shown == nil || string(s) < string(shown) {
				shown = s
			}
		}
	}
	return shown
}
