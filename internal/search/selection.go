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
	if s.vectors {
		return s.appendWithVectors(dst, doc)
	}
	if !bytes.Contains(doc, vectorsMember) {
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

// appendWithVectors shows the embeddings, whatever else is shown, and an empty
// object where there are none.
func (s selection) appendWithVectors(dst, doc []byte) ([]byte, error) {
	stored := false
	err := eachMember(doc, func(key, _ []byte) error {
		stored = stored || string(key) == `"`+settings.VectorsField+`"`
		return nil
	})
	if err != nil {
		return nil, err
	}
	paths := s.paths
	if paths != nil {
		paths = append(paths[:len(paths):len(paths)], settings.VectorsField)
	}
	at := len(dst)
	if dst, err = selectFields(dst, doc, paths); err != nil || stored {
		return dst, err
	}
	dst = dst[:len(dst)-1]
	if len(dst) > at+1 {
		dst = append(dst, ',')
	}
	return append(append(dst, vectorsMember...), "{}}"...), nil
}
