package fastapi

import (
	"context"
	"slices"

	"svc/internal/filter"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/network"
	"svc/internal/search"
	"svc/internal/turns"
)

// networkForeignIndexes reads foreign indexes of a network with a leader: it is a search.ForeignNetwork.
type networkForeignIndexes struct{ *networkRead }

func (n *networkRead) foreign() search.ForeignNetwork { return networkForeignIndexes{n} }

// foreignBody begins the request of some shards.
func (n networkForeignIndexes) foreignBody(target *index.View, shards []int) []byte {
	body := jsontext.AppendQuoted([]byte(`{"indexUid":`), target.UID)
	return jsontext.AppendStrings(append(body, `,"shards":`...), n.names(shards))
}

// names are the shards of some parts.
func (n *networkRead) names(parts []int) []string {
	names := make([]string, len(parts))
	for i, part := range parts {
		names[i] = n.parts[part].Shard
	}
	return names
}

// each numbers all parts.
func (n *networkRead) each() []int {
	parts := make([]int, len(n.parts))
	for i := range parts {
		parts[i] = i
	}
	return parts
}

// Select implements search.ForeignNetwork.
func (n networkForeignIndexes) Select(ctx context.Context, target *index.View, inner *filter.Expr) ([]string, error) {
	here, remotes := n.split(n.each())
	var ids []string
	q := &network.ReadRequest{Message: network.Foreign, Shards: n.shards(), Body: func(things []int) []byte {
		body := append(n.foreignBody(target, things), `,"filter":`...)
		return append(jsontext.AppendQuoted(body, inner.String()), '}')
	}}
	local := func() (err error) {
		if len(here) > 0 {
			ids, err = search.SelectForeign(ctx, target, inner, n.s.features.on("containsFilter"), n.names(here), n.ring)
		}
		return err
	}
	err := n.read(ctx, q, remotes, local, func(a *network.ReadAnswer, reading *search.Reading) error {
		more, err := search.ParseIDs(a.Body, reading)
		ids = append(ids, more...)
		return err
	})
	slices.Sort(ids)
	ids = slices.Compact(ids)
	return ids[:min(len(ids), filter.MostForeign)], err
}

// foreignAtOnce is how many foreign documents are requested from an instance at once.
const foreignAtOnce = 1000

// Read implements search.ForeignNetwork.
func (n networkForeignIndexes) Read(ctx context.Context, target *index.View, ids []string) (map[string][]byte, error) {
	docs := make(map[string][]byte, len(ids))
	for some := range slices.Chunk(ids, foreignAtOnce) {
		if err := n.readSome(ctx, target, some, docs); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// readSome adds documents to docs.
func (n networkForeignIndexes) readSome(ctx context.Context, target *index.View, ids []string, docs map[string][]byte) error {
	of := make([][]string, len(n.parts)) // by part
	for _, id := range ids {
		owner := n.ring.Owner([]byte(id))
		of[owner] = append(of[owner], id)
	}
	var asked []int // parts
	for i := range of {
		if len(of[i]) > 0 {
			asked = append(asked, i)
		}
	}
	here, remotes := n.split(asked)
	idsOf := func(things []int) (all []string) {
		for _, thing := range things {
			all = append(all, of[asked[thing]]...)
		}
		return all
	}
	q := &network.ReadRequest{Message: network.Foreign, Shards: n.names(asked), Body: func(things []int) []byte {
		parts := make([]int, len(things))
		for i, thing := range things {
			parts[i] = asked[thing]
		}
		return append(jsontext.AppendStrings(append(n.foreignBody(target, parts), `,"ids":`...), idsOf(things)), '}')
	}}
	account := turns.Of(ctx).Account()
	put := func(id string, doc []byte) {
		if doc == nil {
			doc = []byte("{}")
		}
		docs[id] = doc
	}
	local := func() error {
		r := search.NewForeignReader(account, target)
		for _, id := range idsOf(here) {
			doc, err := r.Read([]byte(id))
			if err != nil {
				return err
			}
			put(id, doc)
		}
		return nil
	}
	return n.read(ctx, q, remotes, local, func(a *network.ReadAnswer, reading *search.Reading) error {
		all := idsOf(a.Things)
		parsed, err := search.ParseForeign(a.Body, len(all), reading)
		if err != nil {
			return err
		}
		for i, id := range all {
			put(id, parsed[i])
		}
		return nil
	})
}
