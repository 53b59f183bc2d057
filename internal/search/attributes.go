package search

import (
	"errors"
	"slices"

	"svc/internal/jsontext"
	"svc/internal/settings"
)

// retrievedFields returns the paths that a hit shows, nil for all: the requested paths that some document has, as far as they are
// displayed. Both lists are nil for all; an empty list of displayed attributes does not restrict named paths.
func retrievedFields(fields *settings.Fields, displayed, requested []string) []string {
	if requested == nil || slices.Contains(requested, "*") {
		return displayed
	}
	shown := make([]string, 0, len(requested))
	d := newDisplayedPaths(displayed)
	for _, name := range requested {
		switch _, known := fields.ID(name); {
		case !known:
		case len(displayed) == 0:
			shown = append(shown, name)
		default:
			shown = d.appendWithin(shown, name)
		}
	}
	return shown
}

// displayedPaths are the displayed attributes.
type displayedPaths struct {
	all    []string // nil: everything is displayed
	cover  covering
	sorted []string // where they are many
}

func newDisplayedPaths(displayed []string) displayedPaths {
	d := displayedPaths{all: displayed, cover: newCovering(displayed)}
	if len(displayed) > fewPaths {
		d.sorted = slices.Sorted(slices.Values(displayed))
	}
	return d
}

// appendWithin appends the displayed paths within a path: the path itself if it or a parent is displayed, else the displayed paths
// below it.
func (d *displayedPaths) appendWithin(dst []string, path string) []string {
	if d.all == nil || d.cover.first(path) >= 0 {
		return append(dst, path)
	}
	if d.sorted == nil {
		for _, name := range d.all {
			if pathCovers(path, name) {
				dst = append(dst, name)
			}
		}
		return dst
	}
	at, _ := slices.BinarySearch(d.sorted, path+".")
	for ; at < len(d.sorted) && pathCovers(path, d.sorted[at]); at++ {
		dst = append(dst, d.sorted[at])
	}
	return dst
}

// selectFields appends the parts of doc, a compact JSON object, at the given paths. nil or "*" means all: then the bytes are copied.
// A path leads through objects and through objects in arrays; a key may contain dots itself. If a path ends early, at a null, or at
// an object or array without the rest of the path, that value is kept, empty.
func selectFields(dst, doc []byte, paths []string) ([]byte, error) {
	return newSelection(paths).appendParts(dst, doc)
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

// pathsBelow returns the rests of the paths below the member key, and whether one of them is the member itself.
func pathsBelow(paths []string, key []byte) (below []string, whole bool) {
	for _, p := range paths {
		n := len(key)
		switch {
		case len(p) < n || p[:n] != string(key):
		case len(p) == n:
			return nil, true
		case p[n] == '.':
			below = append(below, p[n+1:])
		}
	}
	return below, false
}
