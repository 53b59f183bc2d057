package search

import (
	"bytes"
	"slices"
	"strconv"

	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/selection"
	"svc/internal/settings"
	"svc/segment"
)

// embeddings shows the vectors of documents. It is for one request and one goroutine.
type embeddings struct {
	embedders []*index.ViewEmbedder
	readers   [][]index.Entries // by segment and embedder; nil where no row has an entry
	numbers   []float32
}

func newEmbeddings(v *index.View) *embeddings {
	return &embeddings{embedders: v.Embedders(), readers: v.Entries()}
}

// displaysVectors reports whether answers to searches may show vectors.
func displaysVectors(v *index.View) bool {
	displayed := v.Settings.DisplayedAttributes
	return displayed == nil || slices.Contains(displayed, settings.VectorsField)
}

// append appends the value of the field of vectors: what the document, compact JSON, has for names that are no embedders, unchanged,
// and then the vectors of each embedder.
func (e *embeddings) append(dst, doc []byte, seg int, row segment.Row) ([]byte, error) {
	dst = append(dst, '{')
	first := len(dst)
	if bytes.Contains(doc, selection.VectorsMember) {
		err := jsontext.EachMember(doc, func(key, value []byte) error {
			if selection.IsVectorsKey(key) && value[0] == '{' {
				dst = append(dst, value[1:len(value)-1]...)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	for i, embedder := range e.embedders {
		if len(dst) > first {
			dst = append(dst, ',')
		}
		dst = append(jsontext.AppendQuoted(dst, embedder.Name), `:{"embeddings":[`...)
		has, dimensions, _ := e.readers[seg][i].Row(e.numbers, row)
		if cap(has.Vectors) > cap(e.numbers) {
			e.numbers = has.Vectors
		}
		for at := 0; at < len(has.Vectors); at += dimensions {
			if at > 0 {
				dst = append(dst, ',')
			}
			dst = append(dst, '[')
			for k, x := range has.Vectors[at : at+dimensions] {
				if k > 0 {
					dst = append(dst, ',')
				}
				dst = jsontext.AppendFloat(dst, float64(x))
			}
			dst = append(dst, ']')
		}
		dst = append(strconv.AppendBool(append(dst, `],"regenerate":`...), has.Regenerate), '}')
	}
	return append(dst, '}'), nil
}

// appendMember inserts the field of vectors at the end of an object that starts at begin.
func (e *embeddings) appendMember(dst []byte, begin int, doc []byte, seg int, row segment.Row) ([]byte, error) {
	dst = dst[:len(dst)-1] // the closing brace comes back at the end
	if len(dst) > begin+1 {
		dst = append(dst, ',')
	}
	dst, err := e.append(append(dst, selection.VectorsMember...), doc, seg, row)
	return append(dst, '}'), err
}

// appendVector appends the vector of a query, each number with as few digits as a float32 allows.
func appendVector(dst []byte, v []float32) []byte {
	dst = append(dst, '[')
	for i, x := range v {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendFloat(dst, x)
	}
	return append(dst, ']')
}
