package search

import (
	"cmp"
	"container/heap"
	"slices"

	"svc/internal/rank"
	"svc/internal/turns"
	"svc/segment"
)

// gathering merges the hits of groups, one group after the other.
type gathering struct {
	queries []federated
	remotes []*RemoteAnswer
	pages   [][]*group // by query: its groups
	sorts   bool       // hits are merged by their sort values; pins of the queries are like other hits then
	most    int        // hits of a group

	queried map[string]int          // by index: how many queries it has
	from    []int                   // by query: its hits of the groups before
	groupOf []map[rank.GroupKey]int // by remote: the index of each of its groups
	starts  [][]int                 // by remote and group: its hits of the groups before
}

// gather merges the hits of the groups. pages has the groups of each query.
func (r *FederatedResponse) gather(t turns.Turn, pages [][]*group) error {
	g := &gathering{queries: r.queries, remotes: r.remotes, pages: pages, sorts: r.request.GroupBy.Sort != nil, most: r.request.GroupBy.Hits}
	g.count()
	for k := range r.groups {
		one := &r.groups[k]
		pins, lists := g.ownHits(k)
		pins, lists = g.remoteHits(one.key, pins, lists)
		if err := t.Yield(); err != nil {
			return err
		}
		if !g.sorts {
			lists = lists.uniteHybrids(r.request.parts.hybrids)
		}
		g.merge(one, pins, lists)
	}
	return nil
}

// count prepares where the hits of each group are.
func (g *gathering) count() {
	g.queried = make(map[string]int)
	for i := range g.queries {
		g.queried[g.queries[i].view.UID]++
	}
	g.from = make([]int, len(g.pages))
	g.groupOf = make([]map[rank.GroupKey]int, len(g.remotes))
	g.starts = make([][]int, len(g.remotes))
	for i, a := range g.remotes {
		g.groupOf[i] = make(map[rank.GroupKey]int, len(a.groups))
		n := 0
		for k := range a.groups {
			g.groupOf[i][a.groups[k].key] = k
			g.starts[i] = append(g.starts[i], n)
			n += len(a.groups[k].hits)
		}
	}
}

// ownHits returns the hits of group k that the queries found: pins, and one list of the others for each query that has some. The
// groups have to be asked for in their order.
func (g *gathering) ownHits(k int) (pins []pinnedHit[federatedHit], lists listHeap) {
	for i := range g.pages {
		q, its := &g.queries[i], g.pages[i][k]
		var list []listedGroup
		for n := range its.hits {
			hit := &its.hits[n]
			h := federatedHit{query: q, hit: g.from[i] + n}
			if at := slices.IndexFunc(q.ranking.pins, func(p pinnedHit[rank.Hit]) bool { return p.hit.ID == hit.ID }); at >= 0 && !g.sorts {
				pins = append(pins, pinnedHit[federatedHit]{q.ranking.pins[at].at, h})
				continue
			}
			of := ownHead(h, hit)
			if g.sorts {
				of = head{federatedHit: h, values: its.order[n], weight: 1, position: q.position}
			}
			list = append(list, listedGroup{best: of})
		}
		g.from[i] += len(its.hits)
		if len(list) > 0 {
			lists = append(lists, mergedList{list, len(lists)})
		}
	}
	return pins, lists
}

// remoteHits appends the hits of a group that the remotes found, as ownHits returns them.
func (g *gathering) remoteHits(key rank.GroupKey, pins []pinnedHit[federatedHit], lists listHeap) ([]pinnedHit[federatedHit], listHeap) {
	for i, a := range g.remotes {
		at, ok := g.groupOf[i][key]
		if !ok || a.Err != nil {
			continue
		}
		its := &a.groups[at]
		var list []listedGroup
		for n := range its.hits {
			h := federatedHit{remote: a, hit: g.starts[i][at] + n}
			if n < len(its.pins) {
				pins = append(pins, pinnedHit[federatedHit]{its.pins[n], h})
				continue
			}
			of := headOf(h)
			if g.sorts {
				of = head{federatedHit: h, values: its.order[n], weight: 1, position: of.position}
			}
			list = append(list, listedGroup{best: of})
		}
		if len(list) > 0 {
			lists = append(lists, mergedList{list, len(lists)})
		}
	}
	return pins, lists
}

// merge fills a group with its pins, and then with the best hits of the lists, each document once.
func (g *gathering) merge(one *federatedGroup, pins []pinnedHit[federatedHit], lists listHeap) {
	slices.SortStableFunc(pins, func(a, b pinnedHit[federatedHit]) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.hit.queryPosition(), b.hit.queryPosition()))
	})
	type place struct {
		uid string
		id  segment.DocID
	}
	seen := map[place]bool{}
	add := func(h federatedHit, order []rank.ScoreValue) bool {
		if h.query != nil && g.queried[h.query.view.UID] > 1 {
			at := place{h.query.view.UID, h.own().ID}
			if seen[at] {
				return false
			}
			seen[at] = true
		}
		one.hits, one.order = append(one.hits, h), append(one.order, order)
		return true
	}
	for _, p := range pins {
		if len(one.hits) < g.most && add(p.hit, nil) {
			one.pins = append(one.pins, p.at)
		}
	}
	heap.Init(&lists)
	for len(lists) > 0 && len(one.hits) < g.most {
		next := lists[0].left[0].best
		if lists[0].left = lists[0].left[1:]; len(lists[0].left) > 0 {
			heap.Fix(&lists, 0)
		} else {
			heap.Pop(&lists)
		}
		var order []rank.ScoreValue
		if g.sorts {
			order = next.values
		}
		add(next.federatedHit, order)
	}
}
