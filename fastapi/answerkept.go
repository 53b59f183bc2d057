package fastapi

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/search"
)

// The answer to a search depends on the bytes of the request, the view of the index, the experimental features, and on a filter of a
// tenant token. If nothing else affects it, it is cached with the view, and a later search with the same bytes gets the cached
// answer.

// How a search is asked for begins its name.
const (
	askedByBody  = 'b'
	askedByQuery = 'q'
	askedByMany  = 'm' // one of a multi-search
)

// keptQuestionBytes is the size of the largest search whose answer is cached.
const keptQuestionBytes = 2 << 10

// answerKey appends the cache key of the answer to a search. It returns nil if the answer depends on anything else. The searches of
// one request may call it at the same time, so it reads no header: metadata says whether the answer contains metadata.
func (s *Server) answerKey(ctx *fasthttp.RequestCtx, buf []byte, uid string, how byte, asked []byte, metadata bool) []byte {
	set := s.features.now.Load()
	if metadata || len(asked) > keptQuestionBytes || set[networkFeature] || set[foreignKeysFeature] || set[rulesFeature] || caller(ctx).Filter(uid) != nil {
		return nil
	}
	key := append(buf, how)
	for _, on := range set {
		if on {
			key = append(key, 1)
		} else {
			key = append(key, 0)
		}
	}
	return append(key, asked...)
}

var networkFeature, foreignKeysFeature, rulesFeature = featureIndex("network"), featureIndex("foreignKeys"), featureIndex("dynamicSearchRules")

// answerKept answers a search in the index of the path from the cache and sets done. Otherwise it returns the key under which the
// answer may be cached, or nil if it may not.
func (s *Server) answerKept(ctx *fasthttp.RequestCtx, st *searchState, how byte, asked []byte) (key []byte, done bool, err error) {
	if key = s.answerKey(ctx, st.key[:0], pathValue(ctx, "index_uid"), how, asked, wantsMetadata(ctx)); key == nil {
		return nil, false, nil
	}
	st.key = key
	v, err := s.view(ctx)
	if err != nil {
		return nil, false, nil // the search reports the same error
	}
	kept := search.Answer(v, key, arrival(ctx))
	v.Release()
	if kept == nil {
		return key, false, nil
	}
	s.searches.Begin()
	defer s.searches.End()
	r := requestOf(ctx)
	r.endBulk()
	if err := r.bytes().Answer(int64(kept.Len()) + 1); err != nil {
		return key, true, err
	}
	id := uuid.Must(uuid.NewV7())
	s.countKept(pathValue(ctx, "index_uid"), kept, id, 0, arrival(ctx))
	return key, true, answerWith(ctx, func(dst []byte) ([]byte, error) {
		return kept.AppendMembers(append(dst, '{'), id), nil
	})
}
