package search

import (
	"encoding/binary"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/aggregate"
	"svc/internal/resultcache"
	"svc/internal/turns"
)

// The states of aggregations are cached per large segment, in the form in which instances exchange them. The key is the text of the
// request and the key of the candidates. After an update, most segments and their states stay valid: see facetkept.go.

var aggregationStates = resultcache.NewKind[keptState]("states of aggregations")

// keptState is the cached state of the candidates of a segment, with their number.
type keptState struct {
	candidates int
	deleted    *roaring.Bitmap // as in keptCounts
	state      []byte
}

// mostAggregationText is the length of the longest text of aggregations that is used in a key.
const mostAggregationText = 1 << 10

// aggregationStatesOf are the states of a request.
type aggregationStatesOf struct {
	*candidateCounts
	request *aggregate.Request
	stale   bool // the last call of get found a state for other candidates
}

// statesOf returns the states of a request; nil: they cannot be cached.
func statesOf(counts *candidateCounts, r *aggregate.Request) *aggregationStatesOf {
	if counts.found.AppendKey == nil || len(r.Text) > mostAggregationText || !r.Keeps() {
		return nil
	}
	return &aggregationStatesOf{candidateCounts: counts, request: r}
}

// scope returns the cache scope of the states of a segment, and sets the key. It returns nil if few of its rows are candidates:
// walking them takes no longer than reading a state.
func (s *aggregationStatesOf) scope(seg int) *resultcache.Scope {
	if s.found.Count(seg) < keptFrom {
		return nil
	}
	scope := s.view.Cache.OfFile(seg)
	if scope == nil {
		return nil
	}
	s.buf = append(binary.AppendUvarint(s.buf[:0], uint64(len(s.request.Text))), s.request.Text...)
	s.buf = s.found.AppendKey(s.buf, seg)
	return scope
}

// get implements aggregate.Source.Kept.
func (s *aggregationStatesOf) get(seg int, hold func(bytes int64) error) (state *aggregate.Result, keep bool, err error) {
	s.stale = false
	scope := s.scope(seg)
	if scope == nil {
		return nil, false, nil
	}
	kept, ok := aggregationStates.Get(scope, s.buf)
	deleted := s.view.Segments[seg].Deleted
	if s.stale = ok && (kept.candidates != s.found.Count(seg) || !nested(kept.deleted, deleted)); !ok || s.stale {
		return nil, true, nil
	}
	if kept.deleted != deleted { // cached anew, so that each view compares only once
		kept.deleted = deleted
		kept.put(scope, s.buf)
	}
	p := peerReader{left: kept.state, Reading: &Reading{Hold: hold, Yield: turns.Of(s.ctx).Yield}}
	state, err = s.request.ReadPeer(peerStates{&p})
	if err == nil && p.bad {
		state = nil // it is computed again
	}
	return state, true, err
}

// put implements aggregate.Source.Keep. A state that is larger than the rows it saves is cached only at the second request.
func (s *aggregationStatesOf) put(seg, size int) func(state []byte) {
	scope, n := s.scope(seg), s.found.Count(seg)
	if scope == nil || s.ctx.Err() != nil || size > max(n, fewBytes) && !aggregationStates.Admit(scope, s.buf) {
		return nil
	}
	key, deleted := slices.Clone(s.buf), s.view.Segments[seg].Deleted
	return func(state []byte) {
		if s.ctx.Err() != nil {
			return
		}
		keptState{n, deleted, state}.put(scope, key)
	}
}

// put caches a state under a key.
func (kept keptState) put(scope *resultcache.Scope, key []byte) {
	bytes := cap(kept.state) + 64
	if kept.deleted != nil { // it outlives the view
		bytes += resultcache.Size(kept.deleted)
	}
	aggregationStates.Put(scope, key, kept, bytes)
}
