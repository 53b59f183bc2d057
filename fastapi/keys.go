package fastapi

import (
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"svc/internal/apierr"
	"svc/internal/auth"
	"svc/internal/settings"
)

// keyView is an API key as the API shows it.
type keyView struct {
	Name        *string  `json:"name"`
	Description *string  `json:"description"`
	Key         string   `json:"key"`
	UID         string   `json:"uid"`
	Actions     []string `json:"actions"`
	Indexes     []string `json:"indexes"`
	ExpiresAt   *string  `json:"expiresAt"`
	CreatedAt   string   `json:"createdAt"`
	UpdatedAt   string   `json:"updatedAt"`

	RateLimit *auth.RateLimit `json:"rateLimit,omitempty"` // of svc only
}

// viewKey shows a key to a caller. It includes the value only if the caller has all rights of the key.
func (s *Server) viewKey(ctx *fasthttp.RequestCtx, k *auth.Key) keyView {
	shown := keyView{
		Name: k.Name, Description: k.Description, Key: s.keys.Value(k), UID: k.UID.String(), Actions: k.Actions, Indexes: k.Indexes,
		CreatedAt: rfc3339(k.CreatedAt), UpdatedAt: rfc3339(k.UpdatedAt),
	}
	if !k.ExpiresAt.IsZero() {
		moment := k.ExpiresAt.Format(time.RFC3339Nano) // with the offset it was given
		shown.ExpiresAt = &moment
	}
	if k.RateLimit != (auth.RateLimit{}) {
		shown.RateLimit = &k.RateLimit
	}
	if shown.Key != "" && !caller(ctx).Holds(k) {
		shown.Key = settings.Redact("")
	}
	return shown
}

// ownKey refuses changes of a key with more rights than the caller's.
func ownKey(ctx *fasthttp.RequestCtx, k *auth.Key) error {
	if caller(ctx).Holds(k) {
		return nil
	}
	return auth.Refuse("An API key can create, change and delete only keys with no more rights than its own: its actions, on its indexes, within its `rateLimit`.")
}

var keyListParams = pagingParams("invalid_api_key_offset", "invalid_api_key_limit")

func (s *Server) listKeys(ctx *fasthttp.RequestCtx) error {
	p := paging{limit: defaultLimit}
	if err := decodeQuery(&p, ctx.QueryArgs(), keyListParams); err != nil {
		return err
	}
	return answerPage(s, ctx, s.keys.List(), p.offset, p.limit, func(k *auth.Key) (keyView, bool) { return s.viewKey(ctx, k), true })
}

func (s *Server) getKey(ctx *fasthttp.RequestCtx) error {
	k, err := s.keys.Find(pathValue(ctx, "key"))
	if err != nil {
		return err
	}
	return answer(ctx, s.viewKey(ctx, k))
}

// newKey is the body of a creation.
type newKey struct {
	auth.Key
	expiry bool // given, maybe as null
}

var createKeyParams = []param[newKey]{
	{name: "name", code: "invalid_api_key_name", kind: textual, null: true, set: func(k *newKey, a *arg) error {
		text := a.text
		k.Name = &text
		return nil
	}},
	{name: "description", code: "invalid_api_key_description", kind: textual, null: true, set: func(k *newKey, a *arg) error {
		text := a.text
		k.Description = &text
		return nil
	}},
	{name: "uid", code: "invalid_api_key_uid", kind: textual, shape: uuidShape, set: func(k *newKey, a *arg) (err error) {
		if k.UID, err = uuid.Parse(a.text); err != nil {
			return a.expected("a UUID such as `6062abda-a5aa-4414-ac91-ecd7944c0f8d`")
		}
		return nil
	}},
	{name: "actions", code: "invalid_api_key_actions", kind: list, set: func(k *newKey, a *arg) error {
		k.Actions = a.list
		return each(a.list, auth.CheckAction)
	}},
	{name: "indexes", code: "invalid_api_key_indexes", kind: list, set: func(k *newKey, a *arg) error {
		k.Indexes = a.list
		return each(a.list, auth.CheckPattern)
	}},
	{name: "expiresAt", code: "invalid_api_key_expires_at", kind: raw, shape: textOrNullShape, set: func(k *newKey, a *arg) (err error) {
		k.expiry = true
		if a.json.null() {
			return nil
		}
		if !a.readJSON(textual) {
			return a.expected("a date, or null for a key that does not expire")
		}
		k.ExpiresAt, err = auth.ParseExpiry(a.text, time.Now())
		return err
	}},
	{name: "rateLimit", code: invalidRateLimit, kind: raw, null: true, shape: rateLimitShape, set: func(k *newKey, a *arg) error {
		return decodeRateLimit(&k.RateLimit, a)
	}},
}

const invalidRateLimit apierr.Code = "invalid_api_key_rate_limit"

var (
	rateLimitShape  = objectOf(rateLimitParams)
	rateLimitParams = []param[auth.RateLimit]{
		rateParam(auth.Searches, func(l *auth.RateLimit) *int { return &l.Searches }),
		rateParam(auth.Writes, func(l *auth.RateLimit) *int { return &l.Writes }),
		rateParam(auth.Concurrent, func(l *auth.RateLimit) *int { return &l.Concurrent }),
	}
)

// rateParam is the parameter of one kind of rate limit. null removes the limit.
func rateParam(kind auth.LimitKind, member func(*auth.RateLimit) *int) param[auth.RateLimit] {
	return param[auth.RateLimit]{
		name: kind.String(), code: invalidRateLimit, kind: count, null: true, shape: schema{"type": "integer", "minimum": 1, "maximum": auth.MaxRate},
		set: func(l *auth.RateLimit, a *arg) error {
			if a.count < 1 || a.count > auth.MaxRate {
				return a.expected(fmt.Sprintf("a whole number from 1 to %d, or null for no limit", auth.MaxRate))
			}
			*member(l) = a.count
			return nil
		},
	}
}

func decodeRateLimit(l *auth.RateLimit, a *arg) error {
	if !a.json.object() {
		return a.expected("an object such as `{\"searchesPerSecond\": 50}`, or null")
	}
	return decode(l, a.json, rateLimitParams, object{path: a.path() + ".", code: a.code})
}

// each returns the first error of check.
func each(texts []string, check func(string) error) error {
	for _, text := range texts {
		if err := check(text); err != nil {
			return err
		}
	}
	return nil
}

func (s *Server) createKey(ctx *fasthttp.RequestCtx) error {
	body, err := s.readJSON(ctx, nil)
	if err != nil {
		return err
	}
	id, repeatable, err := requestID(ctx, body)
	if err != nil {
		return err
	}
	// The value of a key is derived from its uid, which must not be reused if the request is repeated after the key was deleted.
	k := newKey{Key: auth.Key{UID: uuid.New()}}
	if repeatable {
		k.Request = id
	}
	if err := decode(&k, body, createKeyParams, object{code: "bad_request"}); err != nil {
		return err
	}
	switch {
	case k.Actions == nil:
		return apierr.New("missing_api_key_actions", "`actions` is missing. It lists what the key may do.")
	case k.Indexes == nil:
		return apierr.New("missing_api_key_indexes", "`indexes` is missing. It lists the indexes of the key, `[\"*\"]` for all of them.")
	case !k.expiry:
		return apierr.New("missing_api_key_expires_at", "`expiresAt` is missing. It is the expiry date of the key, or null for none.")
	}
	if err := auth.CheckScope(k.Actions, k.Indexes); err != nil {
		return err
	}
	if err := ownKey(ctx, &k.Key); err != nil {
		return err
	}
	concerns(ctx, k.UID.String())
	created, err := s.keys.Create(k.Key)
	if err != nil {
		return err
	}
	concerns(ctx, created.UID.String())
	ctx.SetStatusCode(fasthttp.StatusCreated)
	return answer(ctx, s.viewKey(ctx, created))
}

var updateKeyParams = []param[auth.Change]{
	{name: "name", code: "invalid_api_key_name", kind: raw, shape: textOrNullShape, set: func(c *auth.Change, a *arg) error { return setText(&c.Name, a) }},
	{name: "description", code: "invalid_api_key_description", kind: raw, shape: textOrNullShape, set: func(c *auth.Change, a *arg) error { return setText(&c.Description, a) }},
	{name: "rateLimit", code: invalidRateLimit, kind: raw, shape: orNull(rateLimitShape), set: func(c *auth.Change, a *arg) error {
		c.RateLimit = new(auth.RateLimit)
		if a.json.null() {
			return nil
		}
		return decodeRateLimit(c.RateLimit, a)
	}},
	{name: "uid", code: "immutable_api_key_uid", kind: raw, shape: refusedShape, set: immutable[auth.Change]},
	{name: "actions", code: "immutable_api_key_actions", kind: raw, shape: refusedShape, set: immutable[auth.Change]},
	{name: "indexes", code: "immutable_api_key_indexes", kind: raw, shape: refusedShape, set: immutable[auth.Change]},
	{name: "expiresAt", code: "immutable_api_key_expires_at", kind: raw, shape: refusedShape, set: immutable[auth.Change]},
	{name: "createdAt", code: "immutable_api_key_created_at", kind: raw, shape: refusedShape, set: immutable[auth.Change]},
	{name: "updatedAt", code: "immutable_api_key_updated_at", kind: raw, shape: refusedShape, set: immutable[auth.Change]},
}

// setText takes a text, or null, which clears it.
func setText(t *auth.Text, a *arg) error {
	*t = auth.Text{Given: true}
	if a.json.null() {
		return nil
	}
	if !a.readJSON(textual) {
		return a.expected("a string or null")
	}
	text := a.text
	t.Text = &text
	return nil
}

// keyInPath returns a key that the caller may change.
func (s *Server) keyInPath(ctx *fasthttp.RequestCtx) (*auth.Key, error) {
	k, err := s.keys.Find(pathValue(ctx, "key"))
	if err != nil {
		return nil, err
	}
	concerns(ctx, k.UID.String())
	return k, ownKey(ctx, k)
}

// updateKey changes a key. A caller with a rate-limited key cannot give a key higher limits than its own.
func (s *Server) updateKey(ctx *fasthttp.RequestCtx) error {
	var c auth.Change
	if err := readObject(s, ctx, &c, updateKeyParams); err != nil {
		return err
	}
	k, err := s.keyInPath(ctx)
	if err != nil {
		return err
	}
	if c.RateLimit != nil { // callers cannot raise their own limits
		changed := *k
		changed.RateLimit = *c.RateLimit
		if err := ownKey(ctx, &changed); err != nil {
			return err
		}
	}
	if k, err = s.keys.Update(k.UID.String(), c); err != nil {
		return err
	}
	return answer(ctx, s.viewKey(ctx, k))
}

func (s *Server) deleteKey(ctx *fasthttp.RequestCtx) error {
	k, err := s.keyInPath(ctx)
	if err != nil {
		return err
	}
	if err := s.keys.Delete(k.UID.String()); err != nil {
		return err
	}
	ctx.SetStatusCode(fasthttp.StatusNoContent)
	return nil
}
