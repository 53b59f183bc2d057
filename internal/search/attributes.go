package search

import (
	"errors"
	"slices"

	"svc/internal/document"
	"svc/internal/settings"
)

var errDocument = errors.New("the stored document is damaged: it is not a compact JSON object")

// retrievedFields returns the paths that a hit shows, nil for all: those asked for
// that are displayed, and that some document has. Both lists are nil for all. Under a list of displayed attributes only
// its own entries can be asked for, not a path above or below one; an empty list restricts nothing that is named.
func retrievedFields(fields *settings.Fields, displayed, requested []string) []string {
	if requested == nil || slices.Contains(requested, "*") {
		return displayed
	}
	shown := make([]string, 0, len(requested))
	isDisplayed := oneOf(displayed)
	for _, name := range requested {
		if _, known := fields.ID(name); known && (len(displayed) == 0 || isDisplayed(name)) {
			shown = append(shown, name)
		}
	}
	return shown
}

// oneOf returns the test whether a name is one of those listed.
func oneOf(list []string) func(name string) bool {
	if len(list) <= fewPaths {
		return func(name string) bool { return slices.Contains(list, name) }
	}
	set := make(map[string]struct{}, len(list))
	for _, name := range list {
		set[name] = struct{}{}
	}
	return func(name string) bool { _, ok := set[name]; return ok }
}

// selectFields appends the parts of doc, a compact JSON object, at the given paths; nil or "*" for
// all: then the bytes are copied as they are. A path leads through objects and through the objects in arrays; a key may hold dots
// itself. Where a path ends early, at a null, an object or an array without what is asked for, that is kept, empty.
func selectFields(dst, doc []byte, paths []string) ([]byte, error) {
	return newSelection(paths).appendParts(dst, doc)
}

// selectObject reports, too, whether anything was found.
func selectObject(dst, object []byte, paths pathSet) (_ []byte, found bool, _ error) {
	var buf [64]byte
	dst = append(dst, '{')
	err := eachMember(object, func(key, value []byte) error {
		start := len(dst)
		if found {
			dst = append(dst, ',')
		}
		dst = append(append(dst, key...), ':')
		key = document.AppendUnquoted(buf[:0], key)
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
		return err
	})
	return append(dst, '}'), found, err
}

// selectValue selects from a value on the way of paths. found is false for one that no path leads through.
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
	err := eachElement(value, func(element []byte) (err error) {
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

// pathsBelow returns what of the paths remains below the member key, and whether one of them is the member itself.
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

// eachMember calls f for each member of a compact JSON object with the key in its quotes and the raw value, which is not empty.
func eachMember(object []byte, f func(key, value []byte) error) error {
	if len(object) < 2 || object[0] != '{' {
		return errDocument
	}
	for i := 1; object[i] != '}'; {
		if object[i] == ',' && i > 1 {
			i++
		}
		keyEnd := stringEnd(object, i)
		if keyEnd < 0 || keyEnd >= len(object) || object[keyEnd] != ':' {
			return errDocument
		}
		end := valueEnd(object, keyEnd+1)
		if end < 0 || end >= len(object) || object[end] != ',' && object[end] != '}' {
			return errDocument
		}
		if err := f(object[i:keyEnd], object[keyEnd+1:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// eachElement calls f for each element of a compact JSON array.
func eachElement(array []byte, f func(element []byte) error) error {
	if len(array) < 2 || array[0] != '[' {
		return errDocument
	}
	for i := 1; array[i] != ']'; {
		if array[i] == ',' && i > 1 {
			i++
		}
		end := valueEnd(array, i)
		if end < 0 || end >= len(array) || array[end] != ',' && array[end] != ']' {
			return errDocument
		}
		if err := f(array[i:end]); err != nil {
			return err
		}
		i = end
	}
	return nil
}

// valueEnd returns the index after the value at b[i], or -1.
func valueEnd(b []byte, i int) int {
	depth := 0
	for start := i; i < len(b); {
		switch b[i] {
		case '"':
			if i = stringEnd(b, i); i < 0 || depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']', ',':
			if depth == 0 {
				if i == start {
					return -1
				}
				return i // a number or a word ends here
			}
			if b[i] != ',' {
				if depth--; depth == 0 {
					return i + 1
				}
			}
		}
		i++
	}
	return -1
}

// stringEnd returns the index after the string at b[i], or -1.
func stringEnd(b []byte, i int) int {
	if i >= len(b) || b[i] != '"' {
		return -1
	}
	for i++; i < len(b); i++ {
		switch b[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}
