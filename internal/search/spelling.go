package search

import (
	"bytes"

	"svc/internal/document"
	"svc/internal/numeric"
	"svc/internal/text"
	"svc/segment"
)

// spell shows a value with several spellings in that of the lowest candidate of its segment. The column has one spelling; the others
// are in the documents.
func (v *facetValue) spell(field facetField) error {
	if !v.varies {
		return nil
	}
	rows := v.rows()
	if rows.IsEmpty() {
		return nil
	}
	doc, err := v.in.AppendDocument(nil, segment.Row(rows.Minimum()))
	if err != nil {
		return err
	}
	find := spellingFinder{path: field.name, key: v.key}
	if err := document.Walk(doc, &find); err != nil {
		return err
	}
	if find.found != nil {
		v.shown = find.found
	}
	return nil
}

// spellingFinder finds the first string at a path whose facet key is key.
type spellingFinder struct {
	path  string
	key   []byte
	found []byte
	fold  []byte
}

func (f *spellingFinder) Field(path []byte) int {
	if string(path) == f.path {
		return 1
	}
	return 0
}

func (f *spellingFinder) String(field int, value []byte, _ []int) {
	if field == 0 || f.found != nil {
		return
	}
	if f.fold = text.FacetKey(f.fold[:0], value); bytes.Equal(f.fold, f.key) {
		f.found = bytes.Clone(value)
	}
}

func (f *spellingFinder) Number(int, []byte, numeric.Value, []int) {}
func (f *spellingFinder) Bool(int, bool, []int)                    {}
func (f *spellingFinder) Null(int)                                 {}
func (f *spellingFinder) Empty(int)                                {}
func (f *spellingFinder) Visit(int)                                {}
