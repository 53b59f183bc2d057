package search

import (
	"slices"
	"strconv"
	"time"

	"svc/internal/document"
	"svc/internal/rank"
)

// Degraded reports whether the deadline cut a ranking short.
func (r *FederatedResponse) Degraded() bool {
	return slices.ContainsFunc(r.queries, func(q federated) bool { return q.result.Degraded })
}

// AppendJSON appends the body of the answer to dst.
func (r *FederatedResponse) AppendJSON(dst []byte) ([]byte, error) {
	dst = append(dst, `{"hits":[`...)
	writers := make(map[*federated]*hitWriter)
	semanticHits := 0
	for i, h := range r.hits {
		if i > 0 {
			dst = append(dst, ',')
		}
		w := writers[h.query]
		if w == nil {
			w = newHitWriter(h.query.Response)
			w.federated = h.query
			writers[h.query] = w
		}
		hit := &h.query.result.Hits[h.hit]
		var err error
		if dst, err = w.append(dst, hit); err != nil {
			return nil, err
		}
		if bySimilarity(hit) {
			semanticHits++
		}
	}
	r.stages.done("federated search > format")
	r.stages.add("federated search", time.Since(r.start))
	dst = append(dst, ']')
	dst = r.appendQueryVectors(dst)
	dst = appendInt(dst, `,"processingTimeMs":`, int(time.Since(r.start).Milliseconds()))
	if _, _, paged := r.request.page(); paged {
		page, perPage := r.request.paging()
		dst = appendInt(dst, `,"hitsPerPage":`, perPage)
		dst = appendInt(dst, `,"page":`, page)
		dst = appendInt(dst, `,"totalPages":`, pages(r.total, perPage))
		dst = appendInt(dst, `,"totalHits":`, r.total)
	} else {
		dst = appendInt(dst, `,"limit":`, r.request.Limit)
		dst = appendInt(dst, `,"offset":`, r.request.Offset)
		dst = appendInt(dst, `,"estimatedTotalHits":`, r.total)
	}
	for i := range r.queries {
		if r.queries[i].result.kind != keyword {
			dst = appendInt(dst, `,"semanticHitCount":`, semanticHits)
			break
		}
	}
	dst = r.appendFacets(dst)
	dst = append(dst, `,"requestUid":"`...)
	dst = append(append(dst, r.request.ID.String()...), '"')
	if r.request.Metadata {
		dst = append(dst, `,"metadata":[`...)
		for i := range r.queries {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = appendMetadata(dst, r.queries[i].view)
		}
		dst = append(dst, ']')
	}
	if r.stages != nil {
		dst = r.stages.appendJSON(append(dst, `,"performanceDetails":`...))
	}
	return append(dst, '}'), nil
}

// appendQueryVectors appends the vectors that queries which ask for vectors searched with, by position.
func (r *FederatedResponse) appendQueryVectors(dst []byte) []byte {
	first := true
	for i := range r.queries {
		q := &r.queries[i]
		if !q.request.RetrieveVectors || q.result.queryVector == nil {
			continue
		}
		if first {
			dst = append(dst, `,"queryVectors":{`...)
		} else {
			dst = append(dst, ',')
		}
		first = false
		dst = append(strconv.AppendInt(append(dst, '"'), int64(q.position), 10), `":`...)
		dst = appendVector(dst, q.result.queryVector)
	}
	if !first {
		dst = append(dst, '}')
	}
	return dst
}

// appendFederation appends the member that says where a hit comes from.
func (q *federated) appendFederation(dst []byte, h *rank.Hit) []byte {
	dst = append(dst, `,"_federation":{"indexUid":`...)
	dst = document.AppendQuoted(dst, q.view.UID)
	dst = appendInt(dst, `,"queriesPosition":`, q.position)
	dst = appendFloat(append(dst, `,"weightedRankingScore":`...), h.Score*q.weight)
	return append(dst, '}')
}

// bySimilarity reports whether vectors had a part in finding a hit.
func bySimilarity(h *rank.Hit) bool {
	for i := range h.Values {
		if h.Values[i].Kind == rank.BySimilarity {
			return true
		}
	}
	return false
}
