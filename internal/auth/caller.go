package auth

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"svc/internal/apierr"
)

// Caller is the client of a request, identified by a key or a tenant token. A nil Caller has full access: it sent the master key, or
// there is no master key.
type Caller struct {
	key   *entry
	token *token // nil: the request has the key itself
	names Names  // nil: indexes have no other names
}

// Names returns the aliases of an index, in byte order.
type Names func(index string) []string

// chatting is the action of conversations. Only API keys that name it may chat; `*` does not include it, because web pages that chat
// must not contain a key with full access.
const chatting = "chatCompletions"

// Protected reports whether there is a master key.
func (k *Keys) Protected() bool { return k.master != "" }

// Authorize finds the caller of a credential (the text after "Bearer ") and checks its right to an action. index is the one in the
// path. With "", the right to the action on any index is enough, and the handler checks each index that it touches. An action on the
// whole instance needs a key for all indexes. Every refusal is invalid_api_key.
func (k *Keys) Authorize(credential, action, index string) (*Caller, error) {
	return k.AuthorizeNamed(credential, action, index, index, nil)
}

// AuthorizeNamed is Authorize for indexes with aliases. If a pattern of a key or a rule of a token covers an alias, it covers the
// index behind it. named is the name that the caller used for the index; error messages contain only this name.
func (k *Keys) AuthorizeNamed(credential, action, index, named string, names Names) (*Caller, error) {
	if k.isMaster(credential) {
		return nil, nil
	}
	c := &Caller{names: names}
	if looksLikeToken(credential) {
		if err := k.fromToken(c, credential, action); err != nil {
			return nil, err
		}
	} else if c.key = k.byValue(credential); c.key == nil {
		return nil, Refuse("The API key is unknown.")
	}
	switch {
	case c.key.expired(k.now()):
		return nil, Refuse("The API key has expired.")
	case index != "" && !c.Reaches(index):
		return nil, c.Forbidden(named)
	case len(c.key.Indexes) == 0 || !c.may(action):
		return nil, Refuse("The API key lacks the action `%s`.", action)
	case action == chatting && !slices.Contains(c.key.Actions, chatting):
		return nil, Refuse("Keys with all actions cannot chat. Use the default chat key, or another key with the action `%s`.", chatting)
	case needed[action]&whole != 0 && c.Limit() != nil:
		return nil, Refuse("The API key is limited to some indexes, but this request concerns the whole instance. It needs the action `%s` on the indexes `*`.", action)
	}
	return c, nil
}

// Holder returns the uid of the API key that a credential is, or true if it is the master key, whatever its rights. For all others,
// such as tenant tokens, it returns uuid.Nil and false.
func (k *Keys) Holder(credential string) (uid uuid.UUID, master bool) {
	if k.isMaster(credential) {
		return uuid.Nil, true
	}
	if e := k.byValue(credential); e != nil {
		return e.UID, false
	}
	return uuid.Nil, false
}

func (k *Keys) fromToken(c *Caller, credential, action string) error {
	if k.master == "" {
		return Refuse("Tenant tokens need a master key. Start the server with `--master-key`.")
	}
	t, err := parseToken(credential, k.master, k.now())
	if err != nil {
		return Refuse("The tenant token is not valid: it must be signed with HS256, HS384 or HS512 by the value of the key that `apiKeyUid` names, have `searchRules` of patterns with null or `{\"filter\": …}`, and be valid now.")
	}
	if !tokensMay(action) {
		return Refuse("Tenant tokens allow only searches and chats.")
	}
	c.token = t
	if c.key = k.table.Load().byUID[t.key]; c.key == nil {
		return Refuse("The API key of the tenant token was deleted.")
	}
	return nil
}

// Refuse returns the error of a caller that lacks a right.
func Refuse(format string, args ...any) error { return apierr.New("invalid_api_key", format, args...) }

// Forbidden returns the error of a caller that may not access an index.
func (c *Caller) Forbidden(index string) error {
	if c.token != nil {
		return Refuse("The tenant token, or its API key, has no access to the index `%s`.", index)
	}
	return Refuse("The API key has no access to the index `%s`.", index)
}

// tokensMay reports whether tenant tokens give the right to an action if their key does.
func tokensMay(action string) bool { return action == "search" || action == chatting }

func (c *Caller) may(action string) bool {
	need := needed[action]
	return need != 0 && c.key.may&need != 0 && (c.token == nil || tokensMay(action))
}

// May reports whether the caller has the right to an action on an index.
func (c *Caller) May(action, index string) bool {
	return c == nil || c.Reaches(index) && c.may(action)
}

// MayOnAll reports whether the caller has the right to an action on all indexes, including future ones, and on things without an
// index.
func (c *Caller) MayOnAll(action string) bool { return c == nil || c.Limit() == nil && c.may(action) }

// Reaches reports whether the caller has any right to an index, by its uid or by one of its aliases.
func (c *Caller) Reaches(index string) bool {
	if c == nil || c.ReachesName(index) {
		return true
	}
	names := c.namesOf(index)
	if len(names) == 0 || !slices.ContainsFunc(c.key.Indexes, func(p string) bool { return matches(p, index) || len(covered(p, names)) > 0 }) {
		return false
	}
	return c.token == nil || slices.ContainsFunc(c.token.rules, func(r rule) bool { return matches(r.pattern, index) || len(covered(r.pattern, names)) > 0 })
}

// ReachesName is Reaches for the name itself: aliases do not count.
func (c *Caller) ReachesName(name string) bool {
	return c == nil || anyMatches(c.key.Indexes, name) && (c.token == nil || c.token.ruleFor(name) != nil)
}

// namesOf returns the aliases of an index, in byte order.
func (c *Caller) namesOf(index string) []string {
	if c.names == nil {
		return nil
	}
	return c.names(index)
}

// Covers reports whether the caller reaches every index, including future ones, that a pattern covers.
func (c *Caller) Covers(pattern string) bool {
	prefix, wild := strings.CutSuffix(pattern, "*")
	if !wild {
		return c.ReachesName(pattern) // an alias may move, so today's access through one is no lasting right
	}
	return c == nil || c.token == nil && slices.ContainsFunc(c.key.Indexes, func(own string) bool {
		start, wild := strings.CutSuffix(own, "*")
		return wild && strings.HasPrefix(prefix, start)
	})
}

// Holds reports whether the caller has all rights of a key, at the same rates. Only then may it create, change or delete the key, or
// see its value. Expiry is not compared.
func (c *Caller) Holds(key *Key) bool {
	if c == nil {
		return true
	}
	if c.token != nil || rights(key.Actions)&^c.key.may != 0 || !c.key.RateLimit.covers(key.RateLimit) {
		return false
	}
	for _, pattern := range key.Indexes {
		if !c.Covers(pattern) {
			return false
		}
	}
	return true
}

// Limit returns a test for the indexes that the caller reaches. It is nil for callers that reach all of them, and things without an
// index.
func (c *Caller) Limit() func(index string) bool {
	if c == nil || c.token == nil && slices.Contains(c.key.Indexes, "*") {
		return nil
	}
	return c.Reaches
}

// Filter returns the filter, as JSON, that a tenant token applies to searches in an index, or nil. If rules of the token cover the
// index and some of its aliases, the filters of all these rules apply. The cost does not grow with the number of aliases.
func (c *Caller) Filter(index string) json.RawMessage {
	if c == nil || c.token == nil {
		return nil
	}
	names := c.namesOf(index)
	if len(names) == 0 {
		if r := c.token.ruleFor(index); r != nil {
			return r.filter
		}
		return nil
	}
	var all json.RawMessage
	own := c.token.ruleFor(index)
	for i := range c.token.rules {
		r := &c.token.rules[i]
		applies := r == own || slices.ContainsFunc(covered(r.pattern, names), func(name string) bool { return c.token.ruleFor(name) == r })
		switch {
		case !applies || r.filter == nil:
		case all == nil:
			all = r.filter
		default:
			all = bothFilters(all, r.filter)
		}
	}
	return all
}

// bothFilters returns a filter that requires both. Each is the JSON of a string or of an array of required conditions.
func bothFilters(a, b json.RawMessage) json.RawMessage {
	inside := func(f json.RawMessage) []byte {
		f = bytes.TrimSpace(f)
		if f[0] == '[' {
			return bytes.TrimSpace(f[1 : len(f)-1])
		}
		return f
	}
	x, y := inside(a), inside(b)
	switch {
	case len(x) == 0:
		return b
	case len(y) == 0:
		return a
	}
	return slices.Concat([]byte{'['}, x, []byte{','}, y, []byte{']'})
}

// Sees reports whether the caller may see every document of an index that a foreign key of another index leads to. A caller with a
// filter on it may not.
func (c *Caller) Sees(index string) bool { return c.Reaches(index) && c.Filter(index) == nil }
