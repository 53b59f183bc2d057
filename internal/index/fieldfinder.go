package index

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/document"
	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/segment"
)

// fieldFinder gathers the rows that have some fields. It is a document.Visitor.
type fieldFinder struct {
	fields  *settings.Fields
	rows    map[segment.FieldID]*roaring.Bitmap // nil: fields are not searched
	was     map[segment.FieldID]*roaring.Bitmap // rows of the input
	handles map[string]*roaring.Bitmap          // by path; nil: not searched
	row     segment.Row
}

// newFieldFinder looks for the rows that have some fields. With none wanted it finds nothing, and takes no
// memory.
func newFieldFinder(fields *settings.Fields, wanted map[segment.FieldID]struct{}) *fieldFinder {
	f := &fieldFinder{fields: fields}
	if len(wanted) == 0 {
		return f
	}
	f.rows, f.was, f.handles = map[segment.FieldID]*roaring.Bitmap{}, map[segment.FieldID]*roaring.Bitmap{}, map[string]*roaring.Bitmap{}
	for id := range wanted {
		f.rows[id] = roaring.New()
	}
	return f
}

// find adds a row of the output with the fields of its document.
func (f *fieldFinder) find(row segment.Row, doc []byte) error {
	if f.rows == nil {
		return nil
	}
	f.row = row
	return document.Walk(doc, f)
}

// keep adds a row of the output that has the fields of a row of the input.
func (f *fieldFinder) keep(row segment.Row, l segment.Live, from uint32) {
	for id, rows := range f.rows {
		was := f.was[id]
		if was == nil {
			was = l.Present(id)
			f.was[id] = was
		}
		if was.Contains(from) {
			rows.Add(uint32(row))
		}
	}
}

// Field implements document.Visitor.
func (f *fieldFinder) Field(path []byte) int {
	rows, ok := f.handles[string(path)]
	if !ok {
		name := string(path)
		if id, known := f.fields.ID(name); known {
			rows = f.rows[id]
		}
		f.handles[name] = rows
	}
	if rows != nil {
		rows.Add(uint32(f.row))
	}
	return 0
}

// Visit implements document.Visitor.
func (f *fieldFinder) Visit(int) {}

// String implements document.Visitor.
func (f *fieldFinder) String(int, []byte, []int) {}

// Number implements document.Visitor.
func (f *fieldFinder) Number(int, []byte, numeric.Value, []int) {}

// Bool implements document.Visitor.
func (f *fieldFinder) Bool(int, bool, []int) {}

// Null implements document.Visitor.
func (f *fieldFinder) Null(int) {}

// Empty implements document.Visitor.
func (f *fieldFinder) Empty(int) {}
