package auth

import (
	"slices"
	"sort"
	"strings"

	"svc/internal/apierr"
)

// CheckPattern validates a pattern of index uids: a uid, or a prefix followed by `*` (invalid_api_key_indexes).
func CheckPattern(pattern string) error {
	prefix, wild := strings.CutSuffix(pattern, "*")
	ok := len(prefix) <= 400 && (wild || prefix != "")
	for i := 0; ok && i < len(prefix); i++ {
		c := prefix[i]
		ok = 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
	}
	if ok {
		return nil
	}
	return apierr.New("invalid_api_key_indexes", "`%s` is not a pattern of indexes. Use the uid of an index, or a prefix followed by `*`.", pattern)
}

// matches reports whether a pattern covers the uid of an index. A malformed pattern covers no valid uid.
func matches(pattern, uid string) bool {
	if prefix, wild := strings.CutSuffix(pattern, "*"); wild {
		return strings.HasPrefix(uid, prefix)
	}
	return pattern == uid
}

// covered returns the names that a pattern covers. names is in byte order.
func covered(pattern string, names []string) []string {
	prefix, wild := strings.CutSuffix(pattern, "*")
	start, found := slices.BinarySearch(names, prefix)
	switch {
	case !wild && found:
		return names[start : start+1]
	case !wild:
		return nil
	}
	end := start + sort.Search(len(names)-start, func(i int) bool { return !strings.HasPrefix(names[start+i], prefix) })
	return names[start:end]
}

func anyMatches(patterns []string, uid string) bool {
	for _, p := range patterns {
		if matches(p, uid) {
			return true
		}
	}
	return false
}
