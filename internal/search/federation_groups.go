package search

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"svc/internal/apierr"
	"svc/internal/rank"
	"svc/internal/turns"
)

// Groups of a federated search are merged from lists. Each query, and each other instance, has its groups in the order of their best
// hits, and as many hits of each as are shown. The first groups of all are among the first ones of some list. So the page is known
// once each list has returned as many groups as the page ends with. Then the lists are asked for the hits of the groups that they
// have not returned. An instance is asked a second time only if it has further groups.

// federatedGroup is a group of the page.
type federatedGroup struct {
	key   rank.GroupKey
	shown []byte // the spelling of a text that is shown
	count int
	hits  []federatedHit
	order [][]rank.ScoreValue // by hit, where groups sort their hits: what it is sorted by
	best  *head               // its best hit that no rule pins; nil: it has none, or its place was not asked for
	place int                 // that a rule gives to it; −1: none
	pins  []int               // the places that rules give to the first of its hits, which they pin
}

// groupList is the groups of a query or of another instance.
type groupList struct {
	pins  []pinnedHit[rank.GroupKey] // in the order in which they take their places
	order []listedGroup              // by their best hits, without those that pins lead
}

// listedGroup is where a group stands in a list.
type listedGroup struct {
	key  rank.GroupKey
	best head
}

// groupByCode is that of errors of groups.
func (r *FederatedRequest) groupByCode() apierr.Code {
	if r.AsSearch != nil {
		return searchGroupBy
	}
	return federatedGroupBy
}

// checkGroupBy refuses an attribute that is not filterable, or an order, in an index that is searched here.
func (r *FederatedRequest) checkGroupBy(ctx context.Context) error {
	if r.GroupBy == nil {
		return nil
	}
	for i := range r.Queries {
		v := r.Queries[i].View
		if err := r.GroupBy.Check(ctx, v, r.Queries[i].Request.Contains, r.groupByCode()); err != nil {
			if r.AsSearch != nil {
				return err
			}
			e := apierr.From(err)
			return apierr.New(e.Code, "Inside `.federation.groupBy`: in the index `%s`: %s", v.UID, e.Message)
		}
	}
	return nil
}

// findGroups makes each query find as many groups as the page ends with. If one query may drop hits of another, it omits hits whose
// values other hits have.
func (r *FederatedResponse) findGroups(ctx context.Context, p *federationPlan, spread Spread) error {
	drops := p.drops && len(r.queries) > 1
	n := 0
	if p.limit > 0 && r.request.GroupKeys == nil {
		n = p.offset + p.limit
	}
	r.groupers = make([]*grouper, len(r.queries))
	pinned := 0
	for i := range r.queries {
		q := &r.queries[i]
		g := newGrouper(q.ranking, r.request.GroupBy, deadline(q.view, r.start))
		g.values = true
		if drops {
			g.whole, g.pulls = true, false
		}
		g.pin()
		for _, key := range r.request.GroupKeys {
			g.known(key).fresh = true
		}
		pinned += len(g.pins)
		r.groupers[i] = g
	}
	err := spread(len(r.queries), func(ctx context.Context, i int) (err error) {
		q, g := &r.queries[i], r.groupers[i]
		defer q.ranking.stages.timed("search")()
		if drops {
			g.first, err = q.ranking.find(ctx, window{limit: math.MaxInt32, exhaustive: true, values: true, deadline: g.end})
			q.result = g.first
		} else if err = g.find(ctx, min(n+pinned, q.view.Settings.Pagination.MaxTotalHits), true); err == nil {
			q.result = g.result(nil, 0)
		}
		if err != nil {
			return &QueryError{i, err}
		}
		return turns.Of(ctx).Account().Hold(candidateBytes(q.result.Candidates))
	})
	if err != nil || !drops {
		return err
	}
	m := r.newMerger(turns.Of(ctx), p, candidatesByIndex(r.queries)) // no remote has answered yet
	m.pins(federatedPins(r.queries, nil))
	kept := make(map[*federated][]rank.Hit, len(r.queries))
	for {
		h, ok := m.next()
		if !ok {
			break
		}
		kept[h.query] = append(kept[h.query], *h.own())
	}
	if m.err != nil {
		return m.err
	}
	for i := range r.queries {
		q, g := &r.queries[i], r.groupers[i]
		first, result := *g.first, *g.first.Result
		result.Hits = kept[q]
		first.Result = &result
		g.first, g.last = &first, &first
		g.candidates()
		g.take(result.Hits)
		q.result = g.result(nil, 0)
	}
	return nil
}

// known returns the group of a key, which it makes if it is missing.
func (g *grouper) known(key rank.GroupKey) *group {
	one := g.groups[key]
	if one == nil {
		one = &group{key: key}
		g.note(one)
	}
	return one
}

// list returns the groups that a query has found so far.
func (g *grouper) list(q *federated) groupList {
	l := groupList{order: make([]listedGroup, 0, len(g.order))}
	for _, p := range g.pins {
		l.pins = append(l.pins, pinnedHit[rank.GroupKey]{p.at, p.hit.key})
	}
	for _, one := range g.order {
		l.order = append(l.order, listedGroup{one.key, ownHead(federatedHit{query: q}, &one.hits[0])})
	}
	return l
}

// list returns the groups that another instance has told.
func (a *RemoteAnswer) list() groupList {
	var l groupList
	for i := range a.groups {
		switch one := &a.groups[i]; {
		case one.place >= 0:
			l.pins = append(l.pins, pinnedHit[rank.GroupKey]{one.place, one.key})
		case one.best != nil:
			l.order = append(l.order, listedGroup{one.key, *one.best})
		}
	}
	return l
}

// complete reports whether another instance has returned everything that it has for some groups.
func (a *RemoteAnswer) complete(keys []rank.GroupKey) bool {
	if a.Err != nil || a.met.many == 0 && len(a.met.hashes) == len(a.groups) {
		return true
	}
	told := make(map[rank.GroupKey]bool, len(a.groups))
	for i := range a.groups {
		told[a.groups[i].key] = true
	}
	return !slices.ContainsFunc(keys, func(key rank.GroupKey) bool { return !told[key] })
}

// spoilGroups leaves out instances with hits that are not JSON.
func (r *FederatedResponse) spoilGroups(t turns.Turn) error {
	for _, a := range r.remotes {
		for i := range a.hits {
			if err := t.Yield(); err != nil {
				return err
			}
			if a.Err == nil && a.hits[i].broken(a.body) {
				a.spoil()
			}
		}
	}
	return nil
}

// mergeGroups finds the groups of the page.
func (r *FederatedResponse) mergeGroups(ctx context.Context, sets map[string]*indexSet, spread Spread) error {
	t := turns.Of(ctx)
	if err := r.spoilGroups(t); err != nil {
		return err
	}
	offset, limit, _ := r.request.page()
	for _, key := range r.request.GroupKeys {
		r.groups = append(r.groups, federatedGroup{key: key, place: -1})
	}
	if r.request.GroupKeys == nil {
		r.groups = r.groupPage(offset, limit)
	}
	if err := t.Account().Hold(int64(len(r.groups)) * groupBytes); err != nil {
		return err
	}
	keys := make([]rank.GroupKey, len(r.groups))
	for i := range r.groups {
		keys[i] = r.groups[i].key
	}
	if slices.ContainsFunc(r.remotes, func(a *RemoteAnswer) bool { return !a.complete(keys) }) {
		answers, forget := r.request.ask(ctx, func(ctx context.Context) []*RemoteAnswer { return r.request.RemoteGroups(ctx, keys) })
		defer forget()
		var err error
		if r.remotes, err = r.request.await(ctx, answers); err != nil {
			return err
		}
		if err := r.spoilGroups(t); err != nil {
			return err
		}
	}
	pages := make([][]*group, len(r.queries))
	err := spread(len(r.queries), func(ctx context.Context, i int) error {
		g, q := r.groupers[i], &r.queries[i]
		page := make([]*group, len(keys))
		for k, key := range keys {
			page[k] = g.known(key)
		}
		rows := g.counted()
		err := rows.count(ctx, page)
		if err == nil {
			err = g.complete(ctx, page)
		}
		if err != nil {
			return &QueryError{i, err}
		}
		pages[i], q.result = page, g.result(page, 0)
		return nil
	})
	if err != nil {
		return err
	}
	if err := r.gather(t, pages); err != nil {
		return err
	}
	if err := r.countGroups(ctx, sets, pages); err != nil {
		return err
	}
	// A group that another instance asks for need not be here. A group of the page has no documents if the only instance that has it
	// failed when it was asked again.
	r.groups = slices.DeleteFunc(r.groups, func(one federatedGroup) bool { return one.count == 0 && len(one.hits) == 0 })
	for i := range r.groups {
		r.hits = append(r.hits, r.groups[i].hits...)
	}
	return nil
}

// groupPage returns the groups of a page, without hits.
func (r *FederatedResponse) groupPage(offset, limit int) []federatedGroup {
	var pins []pinnedHit[federatedGroup]
	pinned := map[rank.GroupKey]bool{}
	var all listHeap
	var leading []pinnedHit[listedGroup]
	add := func(l groupList, position func(key rank.GroupKey) int) {
		for _, p := range l.pins {
			leading = append(leading, pinnedHit[listedGroup]{p.at, listedGroup{p.hit, head{position: position(p.hit)}}})
		}
		if len(l.order) > 0 {
			all = append(all, mergedList{l.order, len(all)})
		}
	}
	for i := range r.queries {
		add(r.groupers[i].list(&r.queries[i]), func(rank.GroupKey) int { return r.queries[i].position })
	}
	for _, a := range r.remotes {
		add(a.list(), a.positionOf)
	}
	slices.SortStableFunc(leading, func(a, b pinnedHit[listedGroup]) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.hit.best.position, b.hit.best.position))
	})
	for _, p := range leading {
		if !pinned[p.hit.key] {
			pinned[p.hit.key] = true
			pins = append(pins, pinnedHit[federatedGroup]{p.at, federatedGroup{key: p.hit.key, place: p.at}})
		}
	}
	all = all.uniteHybrids(r.request.parts.hybrids)
	heap.Init(&all)
	met := map[rank.GroupKey]bool{}
	return weave(pins, func() (federatedGroup, bool) {
		for len(all) > 0 {
			next := all[0].left[0]
			if all[0].left = all[0].left[1:]; len(all[0].left) > 0 {
				heap.Fix(&all, 0)
			} else {
				heap.Pop(&all)
			}
			if !met[next.key] && !pinned[next.key] {
				met[next.key] = true
				return federatedGroup{key: next.key, best: &next.best, place: -1}, true
			}
		}
		return federatedGroup{}, false
	}, offset, limit)
}

// positionOf is the position of the query that pins a document of a group.
func (a *RemoteAnswer) positionOf(key rank.GroupKey) int {
	from := 0
	for i := range a.groups {
		if one := &a.groups[i]; one.key == key && len(one.hits) > 0 {
			return a.hits[from].position
		}
		from += len(a.groups[i].hits)
	}
	return 0
}

// mergedList is the rest of a list that is merged with others.
type mergedList struct {
	left []listedGroup
	rank int // among equals
}

// listHeap has the list with the best first group on top.
type listHeap []mergedList

func (h listHeap) Len() int      { return len(h) }
func (h listHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *listHeap) Push(x any)   { *h = append(*h, x.(mergedList)) }
func (h listHeap) Less(i, j int) bool {
	return cmp.Or(compareFederated(&h[i].left[0].best, &h[j].left[0].best), cmp.Compare(h[i].rank, h[j].rank)) < 0
}
func (h *listHeap) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}
