package document

import (
	"bytes"
	"strconv"
	"strings"

	"svc/internal/apierr"
	"svc/internal/jsontext"
)

// MaxIDBytes is the length of the longest id.
const MaxIDBytes = 511

// ExternalID returns the canonical id text of a document under the primary key (a dotted path), or an *apierr.Error:
// missing_document_id, invalid_document_id. An id is an integer in the range of int64 or uint64, or a string of A-Z a-z 0-9 - _ ; the
// integer 8 and the string "8" are the same id. The result aliases doc if possible.
//
// The path "a.b" leads to the member b of the object a and to a field with the literal name "a.b". A document with both is refused.
// Arrays have no members.
func ExternalID(doc []byte, primaryKey string) ([]byte, error) {
	value, n, err := lookup(doc, primaryKey)
	if err != nil {
		return nil, err
	}
	switch n {
	case 0:
		return nil, apierr.New("missing_document_id",
			"A document has no field %q, which is the primary key: %s. Add the field to every document.", primaryKey, Excerpt(doc))
	case 1:
	default:
		return nil, apierr.New("invalid_document_id",
			"A document has the primary key %q in %d places: %s. Keep one of them.", primaryKey, n, Excerpt(doc))
	}
	id, ok := ValueID(value)
	if !ok {
		return nil, apierr.New("invalid_document_id",
			"The document id %s is invalid. An id is an integer, or a string of 1 to %d bytes of the characters A-Z, a-z, 0-9, - and _.",
			Excerpt(value), MaxIDBytes)
	}
	return id, nil
}

// ValueID returns the canonical id text of a compact JSON value, if it is an id. It aliases value if possible.
func ValueID(value []byte) (id []byte, ok bool) {
	switch c := value[0]; {
	case c == '"':
		id = value[1 : len(value)-1]
		if bytes.IndexByte(id, '\\') >= 0 {
			id = jsontext.AppendUnescaped(nil, id)
		}
	case c == '-' || isDigit(c):
		if !IsInteger64(value) {
			return nil, false
		}
		id = value
	}
	return id, ValidID(id)
}

// lookup finds the value at a dotted path, and the number of values there. No object has a key twice, so it stops at the first value if
// the path has no dot.
func lookup(object []byte, path string) (value []byte, n int, err error) {
	m, err := membersOf(object)
	if err != nil {
		return nil, 0, err
	}
	dotted := strings.IndexByte(path, '.') >= 0
	for m.next() {
		name := m.name()
		if string(name) == path {
			if !dotted {
				return m.value, 1, nil
			}
			value = m.value
			n++
			continue
		}
		if len(name) < len(path) && path[len(name)] == '.' && path[:len(name)] == string(name) && m.value[0] == '{' {
			v, k, err := lookup(m.value, path[len(name)+1:])
			if err != nil {
				return nil, 0, err
			}
			if k > 0 {
				value = v
				n += k
			}
		}
	}
	return value, n, m.err
}

// IsInteger64 reports whether a JSON number is written as an integer and fits an int64 or a uint64.
func IsInteger64(number []byte) bool {
	if !jsontext.IsInteger(number) {
		return false
	}
	if number[0] == '-' {
		_, err := strconv.ParseInt(string(number), 10, 64)
		return err == nil
	}
	_, err := strconv.ParseUint(string(number), 10, 64)
	return err == nil
}

// ValidID reports whether id, as written in a URL or a deletion, can be a document's id.
func ValidID(id []byte) bool {
	if len(id) == 0 || len(id) > MaxIDBytes {
		return false
	}
	for _, c := range id {
		if !isDigit(c) && (c|0x20)-'a' >= 26 && c != '-' && c != '_' {
			return false
		}
	}
	return true
}

// InferPrimaryKey returns the only first-level field of a document whose name ends in "id", in any case. Errors:
// index_primary_key_no_candidate_found, index_primary_key_multiple_candidates_found.
func InferPrimaryKey(doc []byte) (string, error) {
	var candidates []string
	err := Fields(doc, func(name, _ []byte) error {
		if n := len(name); n >= 2 && name[n-2]|0x20 == 'i' && name[n-1]|0x20 == 'd' {
			candidates = append(candidates, string(name))
		}
		return nil
	})
	switch {
	case err != nil:
		return "", err
	case len(candidates) == 0:
		return "", apierr.New("index_primary_key_no_candidate_found",
			"No field of the first document ends in \"id\", so the primary key cannot be guessed. Name it with the primaryKey parameter.")
	case len(candidates) > 1:
		const most = 5
		list := strings.Join(candidates[:min(most, len(candidates))], ", ")
		return "", apierr.New("index_primary_key_multiple_candidates_found",
			"%d fields of the first document end in \"id\" (%s), so the primary key cannot be guessed. Name it with the primaryKey parameter.",
			len(candidates), list)
	}
	return candidates[0], nil
}

// Excerpt returns the start of a document or value, for a message.
func Excerpt(b []byte) string {
	const most = 120
	if len(b) <= most {
		return string(b)
	}
	return strings.ToValidUTF8(string(b[:most]), "") + "…"
}
