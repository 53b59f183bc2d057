package fastapi

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/search"
	"svc/internal/settings"
)

// comparison is the body of a comparison of two searches.
type comparison struct {
	search, otherSearch value // nil: not given
	settings            *settings.Update
	at                  *time.Time // for the other search; nil: now
}

// comparisonParams is a method because the settings that a body may have depend on the experimental features.
func (s *Server) comparisonParams() []param[comparison] {
	other := []param[comparison]{
		{name: "at", code: "bad_request", kind: textual, null: true, shape: schema{"type": "string", "format": "date-time"}, set: func(c *comparison, a *arg) error {
			at, err := time.Parse(time.RFC3339, a.text)
			if err != nil {
				return apierr.New("bad_request", "`other.at` must be a date-time of RFC 3339, such as `2030-12-24T18:00:00Z`, got `%s`.", shorten([]byte(a.text)))
			}
			c.at = &at
			return nil
		}},
		{name: "search", code: "bad_request", kind: raw, null: true, shape: objectOf(searchBodyParams), set: func(c *comparison, a *arg) error { c.otherSearch = a.json; return nil }},
		{name: "settings", code: "bad_request", kind: raw, null: true, shape: settingsShape(), set: func(c *comparison, a *arg) (err error) {
			c.settings, err = settings.ParseUpdate(a.json, s.settingFeatures())
			return err
		}},
	}
	return []param[comparison]{
		{name: "search", code: "bad_request", kind: raw, null: true, shape: objectOf(searchBodyParams), set: func(c *comparison, a *arg) error { c.search = a.json; return nil }},
		{name: "other", code: "bad_request", kind: raw, null: true, shape: objectOf(other), set: func(c *comparison, a *arg) error {
			return decode(c, a.json, other, object{path: "other.", code: "bad_request"})
		}},
	}
}

// compareSearches searches twice, as requested and with other parameters, under other settings or at another time, and returns what
// has moved. The index and its settings do not change.
func (s *Server) compareSearches(ctx *fasthttp.RequestCtx) error {
	uid, err := indexUID(ctx)
	if err != nil {
		return err
	}
	if c := caller(ctx); !c.May(string(actionSettingsGet), uid) {
		return c.Forbidden(uid)
	}
	var c comparison
	if err := readObject(s, ctx, &c, s.comparisonParams()); err != nil {
		return err
	}
	sent := [2]struct {
		path string
		value
	}{{"search.", c.search}, {"other.search.", c.otherSearch}}
	inputs := [2]searchInput{newSearchInput(), newSearchInput()}
	for i := range inputs {
		in := &inputs[i]
		for _, part := range sent[:i+1] { // the second search has the common part, then its own
			if part.value == nil {
				continue
			}
			if err := decode(in, part.value, searchBodyParams, object{path: part.path, code: "bad_request"}); err != nil {
				return err
			}
		}
		if in.personalize || in.network != nil {
			return apierr.New("bad_request", "`personalize` and `useNetwork` cannot be used in a comparison, which searches only this index.")
		}
		if in.Search.Cursor != nil {
			return apierr.New("invalid_search_cursor", "`cursor` cannot be used in a comparison. Use `offset`.")
		}
		if in.Search.Suggest {
			return apierr.New("invalid_search_suggest", "`suggest` cannot be used in a comparison, which compares hits.")
		}
		in.Search.ID = uuid.Must(uuid.NewV7())
		if err := s.prepare(ctx, uid, in); err != nil {
			return err
		}
	}
	if c.at != nil {
		inputs[1].Search.Now = *c.at
	}
	foreign := s.foreign(ctx)
	defer foreign.Release()
	limited, waited, err := s.turn(ctx, inputs[0].hits()+inputs[1].hits())
	if err != nil {
		return err
	}
	defer limited.end()
	ix := s.catalog.Get(uid)
	if ix == nil {
		return s.catalog.Missing(uid)
	}
	v, err := ix.View()
	if err != nil {
		return err
	}
	defer v.Release()
	views := [2]*index.View{v, v}
	var reindexing []index.Reindexing
	if c.settings != nil {
		trial, err := ix.Try(v, c.settings)
		if err != nil {
			return err
		}
		defer trial.Release()
		views[1], reindexing = trial.View, trial.Reindexing
	}
	return answerWith(ctx, func(dst []byte) ([]byte, error) {
		var found [2]*search.Response
		for i, name := range [...]string{`{"current":`, `,"other":`} {
			in := &inputs[i].Search
			in.Waited, in.Foreign = waited, foreign
			var err error
			if found[i], err = search.Search(limited, views[i], in); err != nil {
				return nil, err
			}
			if dst, err = found[i].AppendJSON(limited, append(dst, name...)); err != nil {
				return nil, err
			}
		}
		dst = appendMoves(append(dst, `,"moved":`...), found)
		dst = appendTotal(append(dst, `,"totals":{"current":`...), found[0])
		dst = appendTotal(append(dst, `,"other":`...), found[1])
		return append(appendReindexing(append(dst, `},"reindexing":`...), reindexing), '}'), nil
	})
}

// appendTotal appends the number of documents found, or null if the search did not count all of them.
func appendTotal(dst []byte, r *search.Response) []byte {
	if n, ok := r.Matched(); ok {
		return strconv.AppendInt(dst, int64(n), 10)
	}
	return append(dst, "null"...)
}

// appendMoves appends the places of hits in two answers: first the hits of the first answer in order, then those that only the second
// one has. A place counts from 0 within the answer; null means that it lacks the hit.
func appendMoves(dst []byte, found [2]*search.Response) []byte {
	dst = append(dst, '[')
	pair := func(current, other int) {
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = appendPlace(append(dst, `{"current":`...), current)
		dst = appendPlace(append(dst, `,"other":`...), other)
		dst = append(dst, '}')
	}
	for i, other := range found[0].PlacesIn(found[1]) {
		pair(i, other)
	}
	for i, current := range found[1].PlacesIn(found[0]) {
		if current < 0 {
			pair(-1, i)
		}
	}
	return append(dst, ']')
}

func appendPlace(dst []byte, place int) []byte {
	if place < 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, int64(place), 10)
}

func appendReindexing(dst []byte, all []index.Reindexing) []byte {
	dst = append(dst, '[')
	for i, r := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendQuoted(append(dst, `{"setting":`...), r.Setting)
		dst = strconv.AppendBool(append(dst, `,"tried":`...), r.Tried)
		dst = jsontext.AppendQuoted(append(dst, `,"what":`...), r.What)
		dst = append(dst, '}')
	}
	return append(dst, ']')
}
