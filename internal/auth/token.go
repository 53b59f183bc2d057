package auth

import (
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// token is a tenant token that its parent key has signed.
type token struct {
	key   uuid.UUID
	rules []rule
}

// rule opens the indexes of a pattern, of which a filter hides documents.
type rule struct {
	pattern string
	filter  json.RawMessage // nil: none
}

var (
	errNoKey   = errors.New("no apiKeyUid")
	errRules   = errors.New("malformed searchRules")
	errExpiry  = errors.New("malformed exp")
	errExpired = errors.New("the token has expired")
	errAud     = errors.New("the token is for somebody else")
)

// tokens reads tokens. Claims are checked here, not by the library: `exp` counts, and only as a whole number, and whoever says
// `aud` means somebody else, as svc goes by no name (RFC 7519, 4.1.3).
var tokens = jwt.NewParser(
	jwt.WithValidMethods([]string{"HS256", "HS384", "HS512"}),
	jwt.WithoutClaimsValidation(),
	jwt.WithStrictDecoding(),
	jwt.WithJSONNumber(),
)

// looksLikeToken tells tokens from keys.
func looksLikeToken(text string) bool { return strings.Count(text, ".") == 2 }

// parseToken reads a token and checks that the key it names has signed it. Whether there is such a key is not asked.
func parseToken(text, master string, now time.Time) (*token, error) {
	claims := jwt.MapClaims{}
	t := &token{}
	_, err := tokens.ParseWithClaims(text, claims, func(*jwt.Token) (any, error) {
		uid, ok := claims["apiKeyUid"].(string)
		if !ok {
			return nil, errNoKey
		}
		var err error
		if t.key, err = uuid.Parse(uid); err != nil {
			return nil, err
		}
		v := derive(master, t.key)
		return []byte(v.text()), nil
	})
	if err != nil {
		return nil, err
	}
	if t.rules, err = parseRules(claims["searchRules"]); err != nil {
		return nil, err
	}
	if claims["aud"] != nil {
		return nil, errAud
	}
	switch exp := claims["exp"].(type) {
	case nil:
	case json.Number:
		seconds, err := exp.Int64()
		if err != nil {
			return nil, errExpiry
		}
		if now.Unix() > seconds {
			return nil, errExpired
		}
	default:
		return nil, errExpiry
	}
	return t, nil
}

// parseRules reads searchRules: an array of patterns, or an object of patterns with null or {"filter": …}.
func parseRules(claim any) ([]rule, error) {
	var rules []rule
	switch c := claim.(type) {
	case []any:
		for _, e := range c {
			pattern, ok := e.(string)
			if !ok {
				return nil, errRules
			}
			rules = append(rules, rule{pattern: pattern})
		}
	case map[string]any:
		for pattern, e := range c {
			r := rule{pattern: pattern}
			switch e := e.(type) {
			case nil:
			case map[string]any:
				if f := e["filter"]; f != nil {
					var err error
					if r.filter, err = json.Marshal(f); err != nil {
						return nil, err
					}
				}
			default:
				return nil, errRules
			}
			rules = append(rules, r)
		}
	default:
		return nil, errRules
	}
	return rules, nil
}

// ruleFor returns the rule of an index: of those whose pattern covers it, the uid itself, else the longest pattern.
func (t *token) ruleFor(uid string) *rule {
	var best *rule
	for i := range t.rules {
		r := &t.rules[i]
		if r.pattern == uid {
			return r
		}
		if matches(r.pattern, uid) && (best == nil || len(r.pattern) > len(best.pattern)) {
			best = r
		}
	}
	return best
}
