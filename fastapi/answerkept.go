package fastapi

import (
	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/search"
)

// What a search answers depends on the bytes that ask for it, the view of the index, the experimental features, and on who asks where a
// token narrows what he sees. A search that came before in the same bytes has the answer that is kept with the view, if nothing else has a
// say in it.

// How a search is asked for begins its name.
const (
	askedByBody  = 'b'
	askedByQuery = 'q'
	askedByMany  = 'm' // one of a multi-search
)

// keptQuestionBytes is how long a search is at most whose answer is kept.
const keptQuestionBytes = 2 << 10

// answerKey appends the name under which the answer to a search may be kept; nil where it depends on more. The searches of one request
// may ask for it at the same time, so that it looks at no header: metadata tells whether the answer has any.
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

// answerKept answers a search in the index of the path as it was answered before, if that is kept: then it is done. Else key is the name
// under which the answer may be kept, nil where it may not.
func (s *Server) answerKept(ctx *fasthttp.RequestCtx, st *searchState, how byte, asked []byte) (key []byte, done bool, err error) {
	if key = s.answerKey(ctx, st.key[:0], pathValue(ctx, "index_uid"), how, asked, wantsMetadata(ctx)); key == nil {
		return nil, false, nil
	}
	st.key = key
	v, err := s.view(ctx)
	if err != nil {
		return nil, false, nil // whoever searches finds the same
	}
	kept := search.Answer(v, key, ctx.Time())
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
	s.countKept(pathValue(ctx, "index_uid"), kept, id, 0, ctx.Time())
	return key, true, answerWith(ctx, func(dst []byte) ([]byte, error) {
		return kept.AppendMembers(append(dst, '{'), id), nil
	})
}
