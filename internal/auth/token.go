package auth

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// token is a tenant token, signed by its parent key.
type token struct {
	key   uuid.UUID
	rules []rule
}

// rule grants access to the indexes of a pattern, limited to the documents that pass the filter.
type rule struct {
	pattern string
	filter  json.RawMessage // nil: none
}

var (
	errNoKey   = errors.New("no apiKeyUid")
	errRules   = errors.New("malformed searchRules")
	errTime    = errors.New("malformed exp or nbf")
	errExpired = errors.New("the token has expired")
	errAud     = errors.New("the token has another audience")
	errCrit    = errors.New("the token has critical extensions")
	errEarly   = errors.New("the token is not valid yet")
)

// tokens parses tokens. svc checks the claims, not the library: it accepts `exp` and `nbf` only as whole numbers, and refuses tokens
// with `aud`, because svc has no name that an audience could mean (RFC 7519, 4.1.3).
var tokens = jwt.NewParser(
	jwt.WithValidMethods([]string{"HS256", "HS384", "HS512"}),
	jwt.WithoutClaimsValidation(),
	jwt.WithStrictDecoding(),
	jwt.WithJSONNumber(),
)

// looksLikeToken tells tokens from keys.
func looksLikeToken(text string) bool { return strings.Count(text, ".") == 2 }

// parseToken reads a token and checks that the key it names signed it. It does not check whether that key exists.
func parseToken(text, master string, now time.Time) (*token, error) {
	claims := jwt.MapClaims{}
	t := &token{}
	_, err := tokens.ParseWithClaims(text, claims, func(read *jwt.Token) (any, error) {
		if _, ok := read.Header["crit"]; ok { // RFC 7515, 4.1.11: none is known here
			return nil, errCrit
		}
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
	if exp, ok, err := seconds(claims["exp"]); err != nil {
		return nil, err
	} else if ok && now.Unix() > exp {
		return nil, errExpired
	}
	if nbf, ok, err := seconds(claims["nbf"]); err != nil {
		return nil, err
	} else if ok && now.Unix() < nbf {
		return nil, errEarly
	}
	return t, nil
}

// seconds reads a time from a claim, in seconds since 1970. ok is false if there is none.
func seconds(claim any) (at int64, ok bool, err error) {
	switch n := claim.(type) {
	case nil:
		return 0, false, nil
	case json.Number:
		if at, err = n.Int64(); err == nil {
			return at, true, nil
		}
	}
	return 0, false, errTime
}

// parseRules reads searchRules: an array of patterns, or an object of patterns with null or {"filter": …}. An unknown member or an
// empty filter is an error: to ignore it would grant full access.
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
				for name := range e {
					if name != "filter" {
						return nil, errRules
					}
				}
				if f := e["filter"]; f != nil {
					if hollow(f) {
						return nil, errRules
					}
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
	slices.SortFunc(rules, func(a, b rule) int { return strings.Compare(a.pattern, b.pattern) }) // equal tokens have equal filter texts, which are cache keys of answers
	return rules, nil
}

// hollow reports whether a filter is empty, or has an empty part.
func hollow(filter any) bool {
	switch f := filter.(type) {
	case string:
		return strings.TrimSpace(f) == ""
	case []any:
		return len(f) == 0 || slices.ContainsFunc(f, hollow)
	}
	return false
}

// ruleFor returns the rule for an index: the one with exactly this uid, else the longest pattern that covers it.
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
