package search

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"svc/internal/apierr"
	"svc/internal/budget"
	"svc/internal/jsontext"
	"svc/internal/rank"
	"svc/internal/turns"
)

// None reports whether no document matches, as far as the deadline allowed to search.
func (r *FederatedResponse) None() bool { return r.total == 0 && !r.Degraded() }

// Suggest adds a query to the suggestions if it has hits; found is the answer to it. It reports whether there is room for more.
func (r *FederatedResponse) Suggest(query string, found *FederatedResponse) (more bool) {
	if found.total > 0 && !found.Degraded() {
		r.suggestions = append(r.suggestions, suggested{query: query, hits: found.total})
	}
	return len(r.suggestions) < maxSuggested
}

// Degraded reports whether the deadline cut a ranking or the aggregations short.
func (r *FederatedResponse) Degraded() bool {
	return r.aggregations != nil && r.aggregations.Degraded || slices.ContainsFunc(r.queries, func(q federated) bool { return q.result.Degraded })
}

// AppendJSON appends the body of the answer to dst.
func (r *FederatedResponse) AppendJSON(ctx context.Context, dst []byte) ([]byte, error) {
	return r.AppendMembers(ctx, append(dst, '{'))
}

// AppendMembers appends the body without its opening brace, so that members can stand before its own.
func (r *FederatedResponse) AppendMembers(ctx context.Context, dst []byte) ([]byte, error) {
	t := turns.Of(ctx)
	dst = append(dst, `"hits":[`...)
	meter := budget.NewMeter(t.Account(), len(dst))
	dst, spans, semanticHits, err := r.appendHits(t, dst, &meter)
	if err != nil {
		return nil, err
	}
	if r.request.ForeignNetwork != nil {
		if dst, err = r.hydrate(ctx, dst, &spans); err != nil {
			return nil, err
		}
	}
	if r.request.GroupBy != nil {
		var err error
		if dst, err = r.appendGroups(t.Account(), dst, &spans); err != nil {
			return nil, err
		}
	}
	r.stages.done("federating results > format")
	if f := r.request.Reorder; f != nil {
		if dst, err = spans.apply(t, dst, f, r.deadline()); err != nil {
			return nil, err
		}
		r.stages.done("federating results > personalization")
	}
	r.stages.add("federating results", time.Since(r.start))
	dst = append(dst, ']')
	took := int(time.Since(r.start).Milliseconds())
	for _, a := range r.remotes {
		took = max(took, a.took)
	}
	if q := r.request.AsSearch; q != nil {
		dst = jsontext.AppendQuoted(append(dst, `,"query":`...), *q)
		dst = r.appendQueryVector(dst)
	} else {
		dst = r.appendQueryVectors(dst)
	}
	dst = appendInt(dst, `,"processingTimeMs":`, took)
	dst = r.appendPage(dst)
	if r.request.Suggest {
		dst = appendSuggestions(dst, r.suggestions)
	}
	if slices.ContainsFunc(r.queries, func(q federated) bool { return q.result.kind != keyword }) ||
		slices.ContainsFunc(r.remotes, func(a *RemoteAnswer) bool { return a.semantic }) {
		dst = appendInt(dst, `,"semanticHitCount":`, semanticHits)
	}
	dst, err = r.appendFacets(t, dst)
	if err == nil && r.aggregations != nil {
		dst, err = appendAggregations(t, dst, r.aggregations, r.request.aggregationsCode())
	}
	if err == nil {
		err = meter.Grown(len(dst))
	}
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"requestUid":"`...)
	dst = append(append(dst, r.request.ID.String()...), '"')
	if r.request.Metadata {
		dst = r.appendMetadata(append(dst, `,"metadata":[`...))
		dst = append(dst, ']')
	}
	if r.request.Networked {
		dst = r.appendRemoteErrors(append(dst, `,"remoteErrors":`...))
	}
	if r.request.ShowPerformanceDetails {
		dst = r.allStages().appendJSON(append(dst, `,"performanceDetails":`...), nil)
	}
	return append(dst, '}'), nil
}

// appendHits appends the hits, and returns where they are and how many were found by meaning.
func (r *FederatedResponse) appendHits(t turns.Turn, dst []byte, meter *budget.Meter) (_ []byte, spans hitSpans, semanticHits int, err error) {
	writers := make(map[*federated]*hitWriter)
	spans.begin = len(dst)
	for i, h := range r.hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		if h.pinned {
			spans.pinned = append(spans.pinned, i)
		}
		if h.remote != nil {
			hit := h.theirs()
			if err := meter.Grown(len(dst)); err != nil {
				return nil, spans, 0, err
			}
			dst = hit.appendShown(dst, h.remote.Remote)
			if slices.ContainsFunc(hit.values, isSimilarity) {
				semanticHits++
			}
			spans.ends = append(spans.ends, len(dst))
			continue
		}
		w := r.hitWriter(t, writers, h.query, len(dst), meter)
		hit := h.own()
		w.place = nil
		if h.pinned {
			w.place = &h.query.ranking.pins[h.hit].at
		}
		if dst, err = w.append(dst, hit); err != nil {
			return nil, spans, 0, err
		}
		if bySimilarity(hit) {
			semanticHits++
		}
		spans.ends = append(spans.ends, len(dst))
	}
	return dst, spans, semanticHits, nil
}

// appendPage appends which hits the page has, and how many there are.
func (r *FederatedResponse) appendPage(dst []byte) []byte {
	if _, _, paged := r.request.page(); !paged {
		dst = appendInt(dst, `,"limit":`, r.request.Limit)
		dst = appendInt(dst, `,"offset":`, r.request.Offset)
		return appendInt(dst, `,"estimatedTotalHits":`, r.total)
	}
	page, perPage := r.request.paging()
	dst = appendInt(dst, `,"hitsPerPage":`, perPage)
	dst = appendInt(dst, `,"page":`, page)
	dst = appendInt(dst, `,"totalPages":`, pages(r.total, perPage))
	return appendInt(dst, `,"totalHits":`, r.total)
}

// appendGroups moves the hits at the end of an answer into their groups.
func (r *FederatedResponse) appendGroups(account *budget.Account, dst []byte, spans *hitSpans) ([]byte, error) {
	hits, release, err := spans.copies(account, dst)
	if err != nil {
		return nil, err
	}
	defer release()
	dst = append(dst[:spans.begin], `],"groups":[`...)
	for i := range r.groups {
		one := &r.groups[i]
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendKey(append(dst, `{"key":`...), &one.key, one.shown)
		dst = append(appendInt(dst, `,"count":`, one.count), `,"hits":[`...)
		for n := range one.hits {
			if n > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, hits[n]...)
		}
		hits = hits[len(one.hits):]
		dst = append(dst, "]}"...)
	}
	return dst, nil
}

// allStages returns the stages of the request and, below the execution, those of each query by its position.
func (r *FederatedResponse) allStages() *stages {
	all := &stages{list: slices.Clone(r.stages.list)}
	for i := range r.queries {
		q := &r.queries[i]
		if q.ranking.stages == nil {
			continue
		}
		below := fmt.Sprintf("federating results > execute local search > queries[%d]", q.position)
		for _, s := range q.ranking.stages.list {
			all.add(below+strings.TrimPrefix(s.path, "search"), s.took)
		}
	}
	return all
}

// hitWriter returns the writer for the hits of a query, creating it for the first of them.
func (r *FederatedResponse) hitWriter(t turns.Turn, writers map[*federated]*hitWriter, q *federated, length int, meter *budget.Meter) *hitWriter {
	w := writers[q]
	if w == nil {
		w = newHitWriter(t, q.Response, length)
		w.federated, w.in, w.meter = q, r.request, meter
		writers[q] = w
	}
	return w
}

// deadline returns the earliest deadline of the queries; zero: none has one.
func (r *FederatedResponse) deadline() (first time.Time) {
	for i := range r.queries {
		if d := deadline(r.queries[i].view, r.start); first.IsZero() || !d.IsZero() && d.Before(first) {
			first = d
		}
	}
	return first
}

// appendMetadata appends what identifies each query and its index, first for this instance, then for the others.
func (r *FederatedResponse) appendMetadata(dst []byte) []byte {
	for i := range r.queries {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = appendMetadata(dst, r.queries[i].view)
		if q := r.queries[i].request.Query; r.request.AsSearch == nil && strings.TrimSpace(q) != "" {
			dst = append(jsontext.AppendQuoted(append(dst[:len(dst)-1], `,"query":`...), q), '}')
		}
		if r.request.Networked && r.request.Self != "" {
			dst = append(appendRemoteName(dst[:len(dst)-1], r.request.Self), '}')
		}
	}
	for _, a := range r.remotes {
		for i := range a.metadata {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			dst = append(dst, '{')
			for k, text := range a.metadata[i] {
				if text != nil {
					dst = append(append(append(append(dst, '"'), metadataNames[k]...), `":`...), text...)
					dst = append(dst, ',')
				}
			}
			dst = append(dst, `"remote":`...)
			dst = append(jsontext.AppendQuoted(dst, a.Remote), '}')
		}
	}
	return dst
}

// appendRemoteErrors appends the errors of instances by their names.
func (r *FederatedResponse) appendRemoteErrors(dst []byte) []byte {
	all := r.request.Errors.all()
	if all == nil {
		all = map[string]*apierr.Error{}
	}
	for _, a := range r.remotes {
		if a.Err != nil {
			all[a.Remote] = a.Err
		}
	}
	if e := r.request.SelfErr; e != nil {
		all[r.request.Self] = e
	}
	return appendErrors(dst, all)
}

// queryVectors returns the vectors of queries that request them, by position; those of other instances if this one has none.
func (r *FederatedResponse) queryVectors() map[string]json.RawMessage {
	vectors := make(map[string]json.RawMessage)
	for _, a := range r.remotes {
		for _, v := range a.vectors {
			vectors[v.position] = v.vector
		}
	}
	for i := range r.queries {
		if q := &r.queries[i]; q.request.RetrieveVectors && q.result.queryVector != nil {
			vectors[strconv.Itoa(q.position)] = appendVector(nil, q.result.queryVector)
		}
	}
	return vectors
}

// appendQueryVectors appends the vectors by the numbers of their queries, in numeric order.
func (r *FederatedResponse) appendQueryVectors(dst []byte) []byte {
	vectors := r.queryVectors()
	if len(vectors) == 0 {
		return dst
	}
	dst = append(dst, `,"queryVectors":{`...)
	positions := slices.SortedFunc(maps.Keys(vectors), func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	for i, position := range positions {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(append(jsontext.AppendQuoted(dst, position), ':'), vectors[position]...)
	}
	return append(dst, '}')
}

// appendQueryVector appends the vector of a plain search. All its copies search with the same vector.
func (r *FederatedResponse) appendQueryVector(dst []byte) []byte {
	for _, v := range r.queryVectors() {
		return append(append(dst, `,"queryVector":`...), v...)
	}
	return dst
}

// appendFederation appends the member that says where a hit comes from. doc is the whole document, and shown the part that the hit
// shows; place is that of a pin, or nil.
func (q *federated) appendFederation(dst []byte, in *FederatedRequest, h *rank.Hit, place *int, doc, shown []byte) []byte {
	var extra []byte
	if in.Proxy {
		extra = hidden(q.request.Distinct, doc, shown)
	}
	dst = append(dst, `,"_federation":`...)
	dst = appendFederation(dst, q.view.UID, q.position, product(h.Score, q.weight))
	switch {
	case in.Proxy:
		dst = appendScoreValues(append(dst, `,"weightedScoreValues":`...), h.Values, q.weight)
		if h.Spelling != 0 {
			dst = appendInt(dst, `,"spelling":`, h.Spelling)
		}
		if place != nil {
			dst = appendInt(dst, `,"pinnedPosition":`, *place)
		}
		dst = append(append(dst, `,"extra_document":`...), extra...)
	case in.Networked && in.Self != "":
		dst = appendRemoteName(dst, in.Self)
	}
	return append(dst, '}')
}

// appendFederation appends the object without its closing brace.
func appendFederation(dst []byte, uid string, position int, score float64) []byte {
	dst = append(dst, `{"indexUid":`...)
	dst = jsontext.AppendQuoted(dst, uid)
	dst = appendInt(dst, `,"queriesPosition":`, position)
	return jsontext.AppendFloat(append(dst, `,"weightedRankingScore":`...), score)
}

func appendRemoteName(dst []byte, name string) []byte {
	return jsontext.AppendQuoted(append(dst, `,"remote":`...), name)
}

// hidden returns an object with the values of a field that a document has but does not show.
func hidden(field *string, doc, shown []byte) []byte {
	dst := []byte{'{'}
	if field == nil {
		return append(dst, '}')
	}
	has := false
	_ = eachValueAt(shown, *field, func([]byte) { has = true }) // unreadable values count as missing
	if has {
		return append(dst, '}')
	}
	n, list := 0, 0 // number of values, and where their list begins
	_ = eachValueAt(doc, *field, func(scalar []byte) {
		if n++; n == 1 {
			dst = append(jsontext.AppendQuoted(dst, *field), ':')
			list = len(dst)
			dst = append(dst, '[')
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, scalar...)
	})
	switch n {
	case 0:
	case 1: // as it stands in the document
		dst = append(dst[:list], dst[list+1:]...)
	default:
		dst = append(dst, ']')
	}
	return append(dst, '}')
}

// bySimilarity reports whether vectors contributed to finding a hit.
func bySimilarity(h *rank.Hit) bool { return slices.ContainsFunc(h.Values, isSimilarity) }

func isSimilarity(v rank.ScoreValue) bool { return v.Kind == rank.BySimilarity }
