package search

import (
	"context"
	"slices"

	"svc/internal/budget"
	"svc/internal/rank"
	"svc/internal/turns"
)

// groupBytes is the memory for a group of the page, without its hits.
const groupBytes = 256

// countGroups counts the documents of the groups of the page, and all groups.
func (r *FederatedResponse) countGroups(ctx context.Context, sets map[string]*indexSet, pages [][]*group) error {
	t := turns.Of(ctx)
	var met metKeys
	most := 0
	counted := map[string]bool{}
	for i := range r.queries {
		q := &r.queries[i]
		uid := q.view.UID
		if counted[uid] {
			continue
		}
		counted[uid] = true
		rows, page := groupedRows{view: q.view, columns: r.groupers[i].columns, all: sets[uid].candidates}, pages[i]
		if slices.ContainsFunc(r.queries[i+1:], func(other federated) bool { return other.view.UID == uid }) {
			page = make([]*group, len(r.groups))
			for k := range page {
				page[k] = &group{key: r.groups[k].key}
			}
			rows.counted = make([]valueCounts, len(rows.columns))
			if err := rows.count(ctx, page); err != nil {
				return err
			}
		}
		for k := range r.groups {
			one := &r.groups[k]
			if one.count += page[k].count; one.key.Kind == rank.TextKey {
				one.shown = leastSpelling(one.shown, page[k], rows.columns)
			}
		}
		bound := q.view.Settings.Pagination.MaxTotalHits
		most = max(most, bound)
		its, err := rows.meet(ctx, bound)
		if err != nil {
			return err
		}
		met.add(its)
	}
	if !r.request.Proxy && len(r.remotes) == 0 {
		r.total = met.total(most)
		return nil
	}
	var err error
	if r.met, err = met.hash(t.Account()); err != nil {
		return err
	}
	shown := make(map[rank.GroupKey]*federatedGroup, len(r.groups))
	for i := range r.groups {
		shown[r.groups[i].key] = &r.groups[i]
	}
	for _, a := range r.remotes {
		for i := range a.groups {
			its := &a.groups[i]
			one := shown[its.key]
			if one == nil {
				continue
			}
			one.count = addSaturated(one.count, its.count)
			if one.key.Kind == rank.TextKey && (one.shown == nil || string(its.shown) < string(one.shown)) {
				one.shown = its.shown
			}
		}
		if err := r.met.add(&a.met, t.Account()); err != nil {
			return err
		}
	}
	r.total = max(len(r.met.hashes), r.met.many)
	if most > 0 {
		r.total = min(r.total, most)
	}
	return nil
}

// add adds the keys of another index.
func (k *metKeys) add(other metKeys) {
	k.numbers, k.texts = append(k.numbers, other.numbers...), append(k.texts, other.texts...)
	k.none, k.many = k.none || other.none, max(k.many, other.many)
}

// metHashes are the different keys of groups by their hashes.
type metHashes struct {
	hashes []uint64 // ascending
	many   int      // there are at least so many keys, which the hashes lack in part; 0: all are there
}

// hash returns the hashes of the keys.
func (k *metKeys) hash(account *budget.Account) (m metHashes, err error) {
	n := 1
	for _, list := range [][]ordinalsOf{k.numbers, k.texts} {
		for i := range list {
			n += len(list[i].ords)
		}
	}
	if err := account.Hold(int64(8 * n)); err != nil {
		return m, err
	}
	m = metHashes{hashes: make([]uint64, 0, n), many: k.many}
	for _, l := range k.numbers {
		for _, ord := range l.ords {
			m.hashes = append(m.hashes, hashKey(&rank.GroupKey{Kind: rank.NumberKey, Number: l.column.Number(int(ord))}))
		}
	}
	for _, l := range k.texts {
		for _, ord := range l.ords {
			m.hashes = append(m.hashes, hashKey(&rank.GroupKey{Kind: rank.TextKey, Text: string(l.column.String(int(ord)))}))
		}
	}
	if k.none {
		m.hashes = append(m.hashes, hashKey(&rank.GroupKey{}))
	}
	slices.Sort(m.hashes)
	m.hashes = slices.Compact(m.hashes)
	return m, nil
}

// add adds the keys of another instance.
func (m *metHashes) add(other *metHashes, account *budget.Account) error {
	if err := account.Hold(int64(8 * len(other.hashes))); err != nil {
		return err
	}
	m.many = max(m.many, other.many)
	m.hashes = append(m.hashes, other.hashes...)
	slices.Sort(m.hashes)
	m.hashes = slices.Compact(m.hashes)
	return nil
}
