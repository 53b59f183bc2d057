package search

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/rank"
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
// Searches that merge several rankings, including those by vectors, rank in rounds. The first round is the search itself, with a
// longer page. Further rounds rank the documents that are in no known group, until there are enough groups, and then those of the
// groups that lack hits. Ranking does not depend on which other documents are ranked, so each group gets its best hits. If there are
// duplicates or a threshold, the first round ranks all documents, because the dropped documents depend on the previous ones.
type grouper struct {
	k         *ranking
	by        *GroupBy
	columns   rank.GroupColumns
	base      []*roaring.Bitmap        // by segment: what is found, without the pins
	all       []*roaring.Bitmap        // with them
	groups    map[rank.GroupKey]*group // those that are asked for by key; nil: none is
	order     []*group                 // by their best hits, without those that pins lead
	collected []rank.Hit               // that collect gave to groups last, one group after the other
	pins      []pinnedHit[*group]
	first     *rankedHits // the first round
	last      *rankedHits
	pulls     bool // hits are pulled
	whole     bool // the first round ranks all documents
	values    bool // hits are merged with those of other searches
	end       time.Time

	keys     []rank.GroupKey
	ords     []uint32
	of       []*group
	byOrd    [][]*group // by segment, then by ordinal of its numbers, and behind them of its strings: groups of hits; nil: none yet, or too many
	room     []group    // of groups that were not met yet
	roomHits []rank.Hit // of these
	roomOrds []int      // of these
}

// maxByOrd is the maximum number of values of a segment for which groups are recorded by ordinal. (A variable, so that tests can
// lower it.)
var maxByOrd = 1 << 12

// groupRoom is the number of groups whose memory is allocated at once: those of a page.
const groupRoom = 20

// hitsPerGroup is how many hits the first round ranks for each group of the page and before it. (A variable, so that tests can lower it.)
var hitsPerGroup = 4

// maxRound is how many hits a round ranks at most. An index has fewer documents, and a request may ask for any number of groups.
const maxRound = math.MaxInt32

// group ranks, and returns the results with the groups of the page. Total is the number of groups.
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
	g := &grouper{k: k, by: by, columns: columnsIn(k.view, by.Attribute), order: make([]*group, 0, groupRoom), end: end}
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

// complete adds the missing hits to the groups of a page, whose documents are already counted.
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
	g.collect(g.first.Result, g.groups, true)
	return nil
}

// collect gives groups the hits that a ranking found for them. known are groups by key. adds: others are added, in their order.
func (g *grouper) collect(found *rank.Result, known map[rank.GroupKey]*group, adds bool) {
	n := 0
	for _, of := range found.Groups {
		n += len(of.Hits)
	}
	all, room := make([]rank.Hit, 0, n), []group(nil)
	for i, of := range found.Groups {
		one := known[of.Key]
		switch {
		case one != nil:
		case !adds:
			continue
		default:
			if room == nil {
				room = make([]group, len(found.Groups)-i)
			}
			one, room = &room[0], room[1:]
			*one = group{key: of.Key, ords: of.Ords}
			g.order = append(g.order, one)
			if g.values { // groups of merged searches are asked for by key
				g.note(one)
			}
		}
		from := len(all)
		for _, at := range of.Hits {
			all = append(all, found.Hits[at])
		}
		if hits := all[from:len(all):len(all)]; len(one.hits) == 0 {
			one.hits = hits
		} else {
			one.hits = append(one.hits, hits...)
		}
	}
	g.collected = all
}

// rounds is find round by round.
func (g *grouper) rounds(ctx context.Context, n int) (err error) {
	w := window{limit: min(n, maxRound/hitsPerGroup) * hitsPerGroup, exhaustive: g.whole, values: g.values, deadline: g.end}
	if g.whole {
		w.limit = maxRound
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
		w.limit = min(2*w.limit, maxRound)
		if err := g.search(ctx, rest, w); err != nil {
			return err
		}
		g.take(g.last.Hits)
	}
	return nil
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
				g.note(one)
				g.pins = append(g.pins, pinnedHit[*group]{p.at, one})
			}
			if len(one.hits) < g.by.Hits {
				one.hits = append(one.hits, p.hit)
			}
		}
	}
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
	if r.Hits = g.collected[:min(hits, len(g.collected)):min(hits, len(g.collected))]; !areIn(r.Hits, page) {
		r.Hits = make([]rank.Hit, 0, hits)
		for _, one := range page {
			r.Hits = append(r.Hits, one.hits...)
		}
	}
	for i := range r.Hits {
		if h := &r.Hits[i]; bySimilarity(h) || f.kind == semantic && !isPin(g.k.pins, h) {
			f.semanticHits++
		}
	}
	return &f
}

// areIn reports whether the hits of groups, one group after the other, are these very ones.
func areIn(hits []rank.Hit, page []*group) bool {
	for _, one := range page {
		n := len(one.hits)
		if n > len(hits) || n > 0 && &one.hits[0] != &hits[0] {
			return false
		}
		hits = hits[n:]
	}
	return len(hits) == 0
}
