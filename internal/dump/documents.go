package dump

import (
	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/document"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/segment"
)

// eachDocument calls f for the documents of a view among rows (nil: all), in the form of dumps: _vectors has what each embedder has
// for them, so that no vectors need to be generated again. f may append to doc and must not keep it.
func eachDocument(v *index.View, rows []*roaring.Bitmap, f func(doc []byte) error) error {
	return Documents(v, rows, func(_ int, _ segment.Row, doc []byte) error { return f(doc) })
}

// EachFitting calls f for the documents of a view among rows (nil: all) in a form that an API accepts. An API refuses vectors that do
// not fit their embedder, so documents are passed without those. It returns the number of such documents. f must not retain doc.
func EachFitting(v *index.View, rows []*roaring.Bitmap, f func(doc []byte) error) (unfit int, err error) {
	e := newEmbeddings(v)
	e.fitting = true
	err = v.EachDocument(rows, func(seg int, row segment.Row, doc []byte) error {
		doc, err := e.add(doc, seg, row)
		if err != nil {
			return err
		}
		return f(doc)
	})
	return e.unfit, err
}

// Documents is eachDocument with the place of each document. They come in the order of their DocIDs.
func Documents(v *index.View, rows []*roaring.Bitmap, f func(seg int, row segment.Row, doc []byte) error) error {
	e := newEmbeddings(v)
	return v.EachDocument(rows, func(seg int, row segment.Row, doc []byte) error {
		doc, err := e.add(doc, seg, row)
		if err != nil {
			return err
		}
		return f(seg, row, doc)
	})
}

// embeddings adds vectors to the documents of a view, one at a time.
type embeddings struct {
	embedders []*index.ViewEmbedder
	readers   [][]index.Entries // by segment and embedder; nil where no row has an entry
	numbers   []float32
	members   []byte
	doc       []byte
	fitting   bool // vectors that do not fit are left out
	unfit     int  // documents some of whose vectors did not fit
}

func newEmbeddings(v *index.View) *embeddings {
	return &embeddings{embedders: v.Embedders(), readers: v.Entries()}
}

// add returns doc with its vectors; it is valid until the next call.
func (e *embeddings) add(doc []byte, seg int, row segment.Row) ([]byte, error) {
	e.members = e.members[:0]
	left := 0
	for i, embedder := range e.embedders {
		has, dimensions, ok := e.readers[seg][i].Row(e.numbers[:0], row)
		if !ok {
			continue
		}
		e.numbers = has.Vectors
		if e.fitting && len(has.Vectors) > 0 && dimensions != embedder.Dimensions {
			has.Vectors = nil
			left = 1
		}
		if len(e.members) > 0 {
			e.members = append(e.members, ',')
		}
		e.members = append(jsontext.AppendQuoted(e.members, embedder.Name), ':')
		// The format cannot store which fragment made which vector, so these vectors are not marked for regeneration.
		e.members = document.AppendVectorEntry(e.members, has.Vectors, dimensions, has.Regenerate && has.Fragments == nil)
	}
	e.unfit += left
	if len(e.members) == 0 {
		return doc, nil
	}
	out, err := document.SetVectors(e.doc, doc, e.configured, e.members)
	if err != nil {
		return nil, err
	}
	e.doc = out
	return out, nil
}

func (e *embeddings) configured(name []byte) bool {
	for _, embedder := range e.embedders {
		if embedder.Name == string(name) {
			return true
		}
	}
	return false
}
