package settings

import (
	"bytes"
	"slices"

	"svc/segment"
)

// stale says what a change of a setting can make stale in the segments of an index.
type stale uint8

const (
	nothing          stale = iota // it is read when searches run
	words                         // the words of every searchable field
	wordsOfNewFields              // words, if a field is to be searched that was not, or in other languages; others stay, ignored
	columns                       // columns come or go, field by field
	prefixes                      // short-prefix postings come or go
)

// Rebuild says what a change of settings makes stale.
type Rebuild struct {
	Words                   bool              // analyse every document again
	Prefixes                bool              // prefix postings appear or go
	Geo                     bool              // _geo or _geojson came into use: points and shapes are to be read, and checked
	AddColumns, DropColumns []segment.FieldID // columns to build from documents, and to leave out; ascending
	AddInfix                []segment.FieldID // columns that get an infix index: those of AddColumns may be in old segments, too; ascending
}

// None reports whether nothing is stale: new settings alone make the change.
func (r *Rebuild) None() bool {
	return !r.Words && !r.Prefixes && !r.Geo && len(r.AddColumns) == 0 && len(r.DropColumns) == 0 && len(r.AddInfix) == 0
}

// Changes compares two settings under their resolved fields. Both have the same numbering; fields
// that only newFields knows have no documents yet.
func Changes(oldSettings, newSettings *Settings, oldFields, newFields *Fields) Rebuild {
	var r Rebuild
	var changed [prefixes + 1]bool
	for i := range table {
		if t := &table[i]; t.stale != nothing && !changed[t.stale] {
			changed[t.stale] = !bytes.Equal(encode(t.show(oldSettings, true)), encode(t.show(newSettings, true)))
		}
	}
	r.Words = changed[words]
	r.Prefixes = changed[prefixes]
	for i := range min(oldFields.Len(), newFields.Len()) {
		id := segment.FieldID(i)
		was, is := oldFields.Info(id), newFields.Info(id)
		if changed[wordsOfNewFields] && is.Searchable {
			r.Words = r.Words || !was.Searchable || !sameLocales(was.Locales, is.Locales)
		}
		// What elements have is read with the words of their documents.
		r.Words = r.Words || is.Elements && !was.Elements || is.Scope && !was.Scope
		if is.Column && !was.Column {
			r.AddColumns = append(r.AddColumns, id)
		} else if was.Column && !is.Column {
			r.DropColumns = append(r.DropColumns, id)
		}
		if is.Infix && !was.Infix {
			r.AddInfix = append(r.AddInfix, id)
		}
	}
	for _, field := range []string{GeoField, GeoJSONField} {
		was, is := oldFields.InfoOf(field), newFields.InfoOf(field)
		r.Geo = r.Geo || is.Places && !was.Places
	}
	return r
}

// sameLocales tells no rule from a rule without languages.
func sameLocales(a, b []string) bool {
	return (a == nil) == (b == nil) && slices.Equal(a, b)
}
