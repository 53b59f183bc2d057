package search

import (
	"bytes"

	"svc/internal/settings"
)

// selection is what is shown of a document.
type selection struct {
	paths   []string // nil: all
	vectors bool     // show the reserved field with the embeddings
}

var vectorsMember = []byte(`"` + settings.VectorsField + `":`)

// append appends the shown part of doc, a compact JSON object.
func (s selection) append(dst, doc []byte) ([]byte, error) {
	if s.vectors || !bytes.Contains(doc, vectorsMember) {
		return selectFields(dst, doc, s.paths)
	}
	rest := make([]byte, 0, len(doc))
	rest = append(rest, '{')
	err := eachMember(doc, func(key, value []byte) error {
		if string(key) == `"`+settings.VectorsField+`"` {
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
