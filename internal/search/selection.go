package search

import (
	"bytes"
	"slices"

	"svc/internal/jsontext"
	"svc/internal/settings"
	"svc/segment"
)

// selection says what is shown of a document: all of it, or the fields at some paths. It never includes the reserved field of
// vectors.
type selection struct {
	all   bool
	paths pathSet
}

// newSelection returns the selection of the fields at some paths; nil, or "*" among them, means all.
func newSelection(paths []string) selection {
	if paths == nil || slices.Contains(paths, "*") {
		return selection{all: true}
	}
	return selection{paths: newPathSet(paths)}
}

// none reports whether nothing is selected.
func (s selection) none() bool { return !s.all && s.paths.many == nil && len(s.paths.few) == 0 }

// appendParts appends the selected parts of doc, which may be any value.
func (s selection) appendParts(dst, doc []byte) ([]byte, error) {
	if s.all {
		return append(dst, doc...), nil
	}
	dst, _, err := selectObject(dst, doc, s.paths)
	return dst, err
}

// wanted returns which members of a document the selections need.
func wanted(vectors bool, shown ...selection) segment.Wanted {
	for _, s := range shown {
		if s.all {
			return segment.Wanted{}
		}
	}
	most := 0
	if len(shown) == 1 && !vectors {
		most = shown[0].paths.members()
	}
	var buf []byte
	return segment.Wanted{Most: most, Has: func(key []byte) bool {
		if isVectorsKey(key) {
			return vectors
		}
		buf = jsontext.AppendUnquoted(buf[:0], key)
		for _, s := range shown {
			if _, below, whole := s.paths.under(buf); below || whole {
				return true
			}
		}
		return false
	}}
}

var vectorsMember = []byte(`"` + settings.VectorsField + `":`)

// append appends the shown part of doc, a compact JSON object.
func (s selection) append(dst, doc []byte) ([]byte, error) {
	if !bytes.Contains(doc, vectorsMember[1:]) {
		return s.appendParts(dst, doc)
	}
	rest := make([]byte, 0, len(doc))
	rest = append(rest, '{')
	err := jsontext.EachMember(doc, func(key, value []byte) error {
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
	return s.appendParts(dst, append(rest, '}'))
}

// isVectorsKey reports whether a quoted key is that of the reserved field.
func isVectorsKey(key []byte) bool { return string(key) == `"`+settings.VectorsField+`"` }
