package search

import (
	"context"
	"encoding/binary"
	"maps"
	"math"
	"slices"
	"time"

	"svc/internal/budget"
	"svc/internal/numeric"
	"svc/internal/rank"
	"svc/internal/text"
	"svc/internal/turns"
)

// ForPeers reports whether the answer can be given in the form of PeerType: all of its hits are of this instance.
func (r *FederatedResponse) ForPeers() bool { return r.request.Proxy && r.request.Remotes == nil }

// AppendPeer appends the answer in the form of PeerType to dst, which is empty.
func (r *FederatedResponse) AppendPeer(ctx context.Context, dst []byte) ([]byte, error) {
	t := turns.Of(ctx)
	var w peerWriter
	writers := make(map[*federated]*hitWriter, len(r.queries))
	meter := budget.NewMeter(t.Account(), len(dst))
	for _, h := range r.hits {
		hits := r.hitWriter(t, writers, h.query, len(dst), &meter)
		hits.peer, hits.place = &w, nil
		if h.pinned {
			hits.place = &h.query.ranking.pins[h.hit].at
		}
		var err error
		if dst, err = hits.append(dst, h.own()); err != nil {
			return nil, err
		}
	}
	length := len(dst)
	if length > maxPeerHits {
		return nil, errPeerLarge
	}
	dst = binary.AppendUvarint(dst, uint64(time.Since(r.start).Milliseconds()))
	dst = binary.AppendUvarint(dst, uint64(r.total))
	dst = appendFlag(dst, slices.ContainsFunc(r.queries, func(q federated) bool { return q.result.kind != keyword }))
	dst = appendText(dst, r.appendVectorsObject(nil))
	var metadata []byte
	if r.request.Metadata {
		metadata = append(r.appendMetadata([]byte{'['}), ']')
	}
	dst = appendText(dst, metadata)
	dst = append(binary.AppendUvarint(dst, uint64(len(r.hits))), w.notes...)
	if err := meter.Grown(len(dst)); err != nil {
		return nil, err
	}
	dst = appendPeerFacets(dst, r.facets)
	if r.aggregations != nil {
		dst = r.aggregations.AppendPeer(dst)
		if err := meter.Grown(len(dst)); err != nil {
			return nil, err
		}
	}
	if r.request.GroupBy != nil {
		dst = r.appendPeerGroups(dst)
		if err := meter.Grown(len(dst)); err != nil {
			return nil, err
		}
	}
	return binary.LittleEndian.AppendUint32(dst, uint32(length)), nil
}

// appendVectorsObject appends the query vectors by position of the query, or nothing if there are none.
func (r *FederatedResponse) appendVectorsObject(dst []byte) []byte {
	vectors := r.queryVectors()
	if len(vectors) == 0 {
		return dst
	}
	dst = append(dst, '{')
	for i, position := range slices.Sorted(maps.Keys(vectors)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(append(append(dst, '"'), position...), `":`...), vectors[position]...)
	}
	return append(dst, '}')
}

// peerWriter gathers what hits are merged by.
type peerWriter struct {
	notes []byte
	uid   string // of the previous hit's index
}

// note records a hit of the given length, whose member begins at member. doc and shown are as for appendFederation.
func (w *peerWriter) note(q *federated, h *rank.Hit, place *int, doc, shown []byte, length, member int) {
	b := binary.AppendUvarint(w.notes, uint64(length))
	b = binary.AppendUvarint(b, uint64(member))
	if uid := q.view.UID; uid != w.uid {
		w.uid = uid
		b = appendText(b, uid)
	} else {
		b = append(b, 0)
	}
	b = binary.AppendUvarint(b, uint64(q.position))
	b = appendFloat64(b, product(h.Score, q.weight))
	b = binary.AppendUvarint(b, uint64(len(h.Values)))
	for i := range h.Values {
		b = appendPeerValue(b, &h.Values[i], q.weight)
	}
	b = binary.AppendVarint(b, int64(h.Spelling))
	if place == nil {
		b = append(b, 0)
	} else {
		b = binary.AppendUvarint(b, uint64(*place)+1)
	}
	extra := hidden(q.request.Distinct, doc, shown)
	if string(extra) == noExtra {
		extra = nil
	}
	w.notes = appendText(b, extra)
}

// appendPeerValue appends a value that orders hits. Scores are multiplied by the weight of the query here, so that the other side can
// compare them unchanged.
func appendPeerValue(b []byte, v *rank.ScoreValue, weight float64) []byte {
	kind := byte(v.Kind)
	if v.Kind.IsScore() {
		return appendFloat64(append(b, kind), product(v.Score, weight))
	}
	if v.Desc {
		kind |= peerDesc
	}
	class := v.Sort.Class
	if v.Kind == rank.ByDistance && class == rank.OfNumber {
		class = rank.OfPlace
	}
	b = append(b, kind, byte(class))
	switch class {
	case rank.OfNumber:
		b = appendNumber(b, v.Sort.Numeric())
	case rank.OfPlace:
		b = appendFloat64(b, v.Sort.Number)
	case rank.OfText:
		b = appendText(b, v.Sort.Text)
	}
	return b
}

// appendPeerFacets appends the facets of indexes, values in the order of their keys.
func appendPeerFacets(b []byte, indexes []indexFacets) []byte {
	b = binary.AppendUvarint(b, uint64(len(indexes)))
	var values []facetValue
	var keys []byte
	for _, ix := range indexes {
		b = appendText(b, ix.uid)
		b = binary.AppendUvarint(b, uint64(len(ix.facets)))
		for i := range ix.facets {
			f := &ix.facets[i]
			if b = appendText(b, f.name); f.stats == nil {
				b = append(b, 0)
			} else {
				b = f.stats.AppendPeer(append(b, 1), 0)
			}
			b = binary.AppendUvarint(b, uint64(len(f.values)))
			values, keys = asShown(values[:0], keys[:0], f.values)
			for k := range values {
				v := &values[k]
				b = appendText(b, v.shown)
				if string(v.key) == string(v.shown) {
					b = append(b, 0)
				} else {
					b = appendText(b, v.key)
				}
				b = binary.AppendUvarint(b, uint64(v.count))
			}
		}
	}
	return b
}

// asShown appends values as a client that only sees their texts knows them, in the order of their keys, which are appended to keys.
func asShown(dst []facetValue, keys []byte, values []facetValue) ([]facetValue, []byte) {
	for i := range values {
		from := len(keys)
		keys = text.FacetKey(keys, values[i].shown)
		dst = append(dst, facetValue{key: keys[from:len(keys):len(keys)], shown: values[i].shown, count: values[i].count})
	}
	if !slices.IsSortedFunc(dst, compareValue) {
		slices.SortFunc(dst, compareValue)
	}
	return dst, keys
}

func appendText[T string | []byte](b []byte, s T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendFloat64(b []byte, x float64) []byte {
	return binary.LittleEndian.AppendUint64(b, math.Float64bits(x))
}

// appendNumber appends a number exactly.
func appendNumber(b []byte, x numeric.Value) []byte {
	return binary.AppendVarint(appendFloat64(b, x.Float), int64(x.Rest))
}

func appendFlag(b []byte, flag bool) []byte {
	if flag {
		return append(b, 1)
	}
	return append(b, 0)
}
