package search

import (
	"bytes"

	"svc/internal/settings"
)

// selection is what is shown of a document: the fields at some paths, nil for all. The reserved field of
// vectors is never among them.
type selection struct {
	paths []string
}

var vectorsMember = []byte(`"` + settings.VectorsField + `":`)

// append appends the shown part of doc, a compact JSON object.
func (s selection) append(dst, doc []byte) ([]byte, error) {
	if !bytes.Contains(doc, vectorsMember) {
		return selectFields(dst, doc, s.paths)
	}
	rest := make([]byte, 0, len(doc))
	rest = append(rest, '{')
	err := eachMember(doc, func(key, value []byte) error {
		if isVectorsKey(key) {
			return nil
		}
		if len(rest) > 1 {
			rest = append(rest, ',')
		}
		rest = append(append(append(rest, key...), ':'), value...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return selectFields(dst, append(rest, '}'), s.paths)
}

// isVectorsKey reports whether a key, in its quotes, is that of the reserved field.
func isVectorsKey(key []byte) bool { return string(key) == `"`+settings.VectorsField+`"` }
