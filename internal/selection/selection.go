// Package selection picks attributes of documents by their paths, in JSON text: what an answer shows of a document, which attributes are
// displayed, and what of a document has to be read for that.
package selection

import (
	"bytes"
	"errors"
	"slices"

	"svc/internal/jsontext"
	"svc/internal/settings"
	"svc/segment"
)

// Selection says what is shown of a document: all of it, or the fields at some paths. It never includes the reserved field of
// vectors.
type Selection struct {
	All   bool
	paths pathSet // unless All
}

// Of returns the selection of the fields at some paths; nil, or "*" among them, means all. A path leads through objects and through
// objects in arrays; a key may contain dots itself. If a path ends early, at a null, or at an object or array without the rest of the
// path, that value is kept, empty.
func Of(paths []string) Selection {
	if paths == nil || slices.Contains(paths, "*") {
		return Selection{All: true}
	}
	return Selection{paths: newPathSet(paths)}
}

// None reports whether nothing is selected.
func (s Selection) None() bool { return !s.All && s.paths.many == nil && len(s.paths.few) == 0 }

// AppendParts appends the selected parts of doc, which may be any value.
func (s Selection) AppendParts(dst, doc []byte) ([]byte, error) {
	if s.All {
		return append(dst, doc...), nil
	}
	dst, _, err := selectObject(dst, doc, s.paths)
	return dst, err
}

// Wanted returns which members of a document the selections need.
func Wanted(vectors bool, shown ...Selection) segment.Wanted {
	for _, s := range shown {
		if s.All {
			return segment.Wanted{}
		}
	}
	most := 0
	if len(shown) == 1 && !vectors {
		most = shown[0].paths.members()
	}
	var buf []byte
	return segment.Wanted{Most: most, Has: func(key []byte) bool {
		if IsVectorsKey(key) {
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

// Append appends the shown part of doc, a compact JSON object.
func (s Selection) Append(dst, doc []byte) ([]byte, error) {
	if !MayHaveVectors(doc) {
		return s.AppendParts(dst, doc)
	}
	rest := make([]byte, 0, len(doc))
	rest = append(rest, '{')
	err := jsontext.EachMember(doc, func(key, value []byte) error {
		if IsVectorsKey(key) {
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
	return s.AppendParts(dst, append(rest, '}'))
}

// errSelected ends the walk through a document when no further member can be selected.
var errSelected = errors.New("all is selected")

// selectObject reports, too, whether anything was found.
func selectObject(dst, object []byte, paths pathSet) (_ []byte, found bool, _ error) {
	var buf [64]byte
	left := paths.members()
	dst = append(dst, '{')
	err := jsontext.EachMember(object, func(key, value []byte) error {
		start := len(dst)
		if found {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key...), ':')
		key = jsontext.AppendUnquoted(buf[:0], key)
		below, some, whole := paths.under(key)
		ok := whole
		var err error
		switch {
		case whole:
			dst = append(dst, value...)
		case some:
			dst, ok, err = selectValue(dst, value, below)
		}
		if !ok {
			dst = dst[:start]
		}
		found = found || ok
		if whole {
			if left--; left == 0 {
				return errSelected
			}
		}
		return err
	})
	if err == errSelected {
		err = nil
	}
	return append(dst, '}'), found, err
}

// selectValue selects from a value along paths. found is false if no path leads through the value.
func selectValue(dst, value []byte, paths pathSet) (_ []byte, found bool, _ error) {
	switch {
	case string(value) == "null":
		return append(dst, value...), true, nil
	case value[0] == '{':
		dst, _, err := selectObject(dst, value, paths)
		return dst, true, err
	case value[0] != '[':
		return dst, false, nil
	}
	// Of an array those objects are left that have something.
	dst = append(dst, '[')
	first := true
	err := jsontext.EachElement(value, func(element []byte) (err error) {
		start := len(dst)
		if !first {
			dst = append(dst, ',')
		}
		ok := false
		switch element[0] {
		case '{':
			dst, ok, err = selectObject(dst, element, paths)
		case '[':
			dst, ok, err = selectValue(dst, element, paths)
		}
		if !ok {
			dst = dst[:start]
		}
		first = first && !ok
		return err
	})
	return append(dst, ']'), true, err
}

// VectorsMember is the key of the reserved field as it stands in documents.
var VectorsMember = []byte(`"` + settings.VectorsField + `":`)

// MayHaveVectors reports whether doc, a compact JSON object, may have the reserved field.
func MayHaveVectors(doc []byte) bool { return bytes.Contains(doc, VectorsMember[1:]) }

// IsVectorsKey reports whether a quoted key is that of the reserved field.
func IsVectorsKey(key []byte) bool { return string(key) == `"`+settings.VectorsField+`"` }
