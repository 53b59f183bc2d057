package filter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"svc/internal/apierr"
)

// FromJSON reads a filter as clients send it: a string, or an array of strings and arrays of strings; AND joins the outer array, OR
// the inner ones. A string may also contain such an array, because query parameters are strings. An empty filter returns nil. Errors
// carry the code. Check reports operators that `_shard` does not support, because an error about a disabled feature comes first.
func FromJSON(body []byte, code apierr.Code) (*Expr, error) {
	body = bytes.TrimSpace(body)
	if len(body) > maxBytes {
		return nil, apierr.New(code, "The filter has %d bytes, but may have at most %d. Split it into several requests.", len(body), maxBytes)
	}
	var tree any
	if err := json.Unmarshal(body, &tree); err != nil {
		return nil, apierr.New(code, "The filter is not valid JSON: %v.", err)
	}
	if s, ok := tree.(string); ok && strings.HasPrefix(strings.TrimSpace(s), "[") {
		var list []any
		if json.Unmarshal([]byte(s), &list) == nil {
			tree = list
		}
	}
	n, err := fromTree(tree)
	if err != nil {
		return nil, apierr.New(code, "%v", err)
	}
	if n == nil {
		return nil, nil
	}
	return &Expr{n, code}, nil
}

// fromTree reads a filter from decoded JSON: a string, or an array whose entries must all match.
func fromTree(tree any) (node, error) {
	switch t := tree.(type) {
	case nil:
		return nil, nil
	case string:
		n, err := parse(t, 0)
		if err != nil {
			return nil, fmt.Errorf("Filter, %w", err)
		}
		return n, nil
	case []any:
		return fromList(t, false, "Filter")
	}
	return nil, fmt.Errorf("A filter must be a string, or an array of strings and arrays of strings, but it is %s.", describe(tree))
}

// fromList joins the parts of an array. path names it in errors.
func fromList(list []any, or bool, path string) (node, error) {
	kids := make([]node, 0, len(list))
	for i, item := range list {
		at := fmt.Sprintf("%s[%d]", path, i)
		var n node
		var err error
		switch t := item.(type) {
		case string:
			// The printed form has up to two parentheses more around the string.
			if n, err = parse(t, 2); err != nil {
				return nil, fmt.Errorf("%s, %w", at, err)
			}
		case []any:
			if or {
				return nil, fmt.Errorf("%s is a third level of arrays. Use AND, OR and parentheses instead.", at)
			}
			if n, err = fromList(t, true, at); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%s must be a string, but is %s.", at, describe(item))
		}
		if n != nil {
			kids = append(kids, n)
		}
		if len(kids) > maxConditions {
			return nil, fmt.Errorf("%s has more than %d parts: use IN, or send several requests.", path, maxConditions)
		}
	}
	if len(kids) == 0 {
		return nil, nil
	}
	return join(or, kids), nil
}

func describe(tree any) string {
	switch tree.(type) {
	case nil:
		return "null"
	case bool:
		return "a boolean"
	case float64:
		return "a number"
	}
	return "an object"
}
