package document

import (
	"bytes"
	"fmt"
	"math"
	"strconv"

	"svc/internal/apierr"
	"svc/internal/jsontext"
)

// VectorsField is the reserved field in which a document brings embeddings: an object with a member an embedder.
const VectorsField = "_vectors"

// Vectors returns the raw value of a document's field _vectors, or nil if it has none. The value aliases doc. A value that is not an
// object is invalid_vectors_type.
func Vectors(doc []byte) (value []byte, err error) {
	// Few documents have the field. Only a field whose name is escaped may be missed by this check.
	if !bytes.Contains(doc, []byte(VectorsField)) && !bytes.Contains(doc, []byte(`\u`)) {
		return nil, nil
	}
	m, err := membersOf(doc)
	if err != nil {
		return nil, err
	}
	for m.next() {
		if string(m.name()) != VectorsField {
			continue
		}
		if m.value[0] != '{' {
			return nil, apierr.New("invalid_vectors_type",
				"A document has a field `_vectors` that is not an object: %s. It has the form {\"EMBEDDER\": [0.1, 0.2, …]}; omit it for a document without vectors.", Excerpt(m.value))
		}
		return m.value, nil
	}
	return nil, m.err
}

// VectorEntry is what a document has for one embedder: the value of a member of _vectors.
type VectorEntry struct {
	Given      bool      // it has embeddings, maybe none: null and [] mean none
	Regenerate bool      // regenerate them when the document's text changes
	Vectors    []float32 // one behind another
	Dimensions int       // of each of them; 0 if there are none, or if they differ
}

// AnyDimensions stands for vectors of any length.
const AnyDimensions = -1

// ReadVectorEntry reads a compact JSON value as the entry of an embedder for vectors with the given number of dimensions:
//
//	[n, …]  [[n, …], …]  null  []                       given, regenerate false
//	{"regenerate": bool, "embeddings": one of these}    given, unless embeddings is null or missing
//
// A string of base64 may stand for each [n, …]; see AppendBase64.
//
// The vectors are appended to dst[:0]. An error, invalid_vectors_type or
// invalid_vector_dimensions, names the embedder and the document's id.
func ReadVectorEntry(dst []float32, value []byte, dimensions int, embedder string, id []byte) (VectorEntry, error) {
	r := vectorReader{b: value, out: dst[:0], dimensions: dimensions, embedder: embedder, id: id}
	if value[0] != '{' {
		err := r.embeddings(value)
		return VectorEntry{Given: true, Vectors: r.out, Dimensions: r.each}, err
	}
	m, err := membersOf(value)
	if err != nil {
		return VectorEntry{}, err
	}
	var e VectorEntry
	said := false
	for m.next() {
		switch string(m.name()) {
		case "regenerate":
			switch string(m.value) {
			case "true", "false":
				e.Regenerate, said = m.value[0] == 't', true
			default:
				return e, r.wrong("`regenerate` is %s: it is true or false", Excerpt(m.value))
			}
		case "embeddings":
			if string(m.value) == "null" {
				continue
			}
			e.Given = true
			if err := r.embeddings(m.value); err != nil {
				return e, err
			}
		default:
			return e, r.wrong("there is a member `%s`: the known ones are `embeddings` and `regenerate`", m.name())
		}
	}
	if m.err == nil && !said {
		return e, r.wrong("`regenerate` is missing: set it to true if the embedder should update the vectors with the document, else to false")
	}
	e.Vectors, e.Dimensions = r.out, r.each
	return e, m.err
}

// vectorReader reads the embeddings of one entry.
type vectorReader struct {
	b          []byte
	out        []float32
	dimensions int
	each       int // dimensions of all vectors so far; 0 where they differ
	embedder   string
	id         []byte
}

func (r *vectorReader) wrong(format string, args ...any) error {
	return apierr.New("invalid_vectors_type", "The document `%s` has an unusable `_vectors.%s`: %s.", r.id, r.embedder, fmt.Sprintf(format, args...))
}

// embeddings reads null, one vector or an array of them.
func (r *vectorReader) embeddings(b []byte) error {
	switch {
	case string(b) == "null" || string(b) == "[]":
		return nil
	case b[0] == '"' || b[0] == '[' && b[1] != '[' && b[1] != '"':
		_, err := r.vector(b, 0, 0)
		return err
	case b[0] != '[':
		return r.wrong("%s is not an array of numbers, base64 of 32-bit floats, an array of these, or null", Excerpt(b))
	}
	for i, n := 1, 0; ; n++ {
		if b[i] != '[' && b[i] != '"' {
			return r.wrong("embedding %d is not an array of numbers, unlike those before it", n)
		}
		end, err := r.vector(b, i, n)
		if err != nil {
			return err
		}
		if end >= len(b) || b[end] == ']' {
			return nil
		}
		i = end + 1
	}
}

// vector reads the array of numbers or the base64 at b[i] and returns its end.
func (r *vectorReader) vector(b []byte, i, number int) (end int, err error) {
	start := len(r.out)
	if b[i] == '"' {
		end = jsontext.StringEnd(b, i)
		all, ok := AppendBase64(r.out, b[i:end])
		if !ok {
			return 0, r.wrong("embedding %d, %s, is not base64 of finite 32-bit floats", number, Excerpt(b[i:end]))
		}
		r.out = all
		return end, r.count(start, number)
	}
	for i++; i < len(b) && b[i] != ']'; {
		if c := b[i]; c != '-' && !isDigit(c) {
			item := b[i:max(jsontext.ValueEnd(b, i), i+1)]
			return 0, r.wrong("item %d of embedding %d is %s, not a number", len(r.out)-start, number, Excerpt(item))
		}
		n := len(r.out)
		if r.out, i = appendPlain(r.out, b, i, len(b)); len(r.out) > n {
			continue
		}
		f, end := floatAt(b, i)
		if math.IsInf(float64(f), 0) {
			return 0, r.wrong("item %d of embedding %d, %s, is too large: numbers have 32 bits", len(r.out)-start, number, b[i:end])
		}
		r.out = append(r.out, f)
		if i = end; i < len(b) && b[i] == ',' {
			i++
		}
	}
	if i >= len(b) {
		return 0, errDamaged
	}
	return i + 1, r.count(start, number)
}

// count checks the dimensions of the embedding that r.out has from start on.
func (r *vectorReader) count(start, number int) error {
	got := len(r.out) - start
	switch {
	case start == 0:
		r.each = got
	case got != r.each:
		r.each = 0
	}
	if got != r.dimensions && r.dimensions != AnyDimensions {
		return apierr.New("invalid_vector_dimensions",
			"The document `%s` has an embedding of the wrong length in `_vectors.%s`: embedding %d has %d numbers, the embedder `%s` has %d dimensions.",
			r.id, r.embedder, number, got, r.embedder, r.dimensions)
	}
	return nil
}

// SetVectors returns doc with changes in its field _vectors: it removes the members for which drop is true, and adds those of add, an
// object without its braces. It removes a field without members. The result is doc itself if nothing changes, else it is appended to
// dst[:0].
func SetVectors(dst, doc []byte, drop func(name []byte) bool, add []byte) ([]byte, error) {
	vectors, err := Vectors(doc)
	if err != nil || vectors == nil && len(add) == 0 {
		return doc, err
	}
	var kept []byte
	dropped := len(add) > 0 || len(vectors) == len("{}")
	if vectors != nil {
		m, err := membersOf(vectors)
		if err != nil {
			return nil, err
		}
		for m.next() {
			if drop(m.name()) {
				dropped = true
				continue
			}
			if len(kept) > 0 {
				kept = append(kept, ',')
			}
			kept = append(append(append(append(kept, '"'), m.raw...), '"', ':'), m.value...)
		}
		if m.err != nil {
			return nil, m.err
		}
	}
	if !dropped {
		return doc, nil
	}
	if len(kept) > 0 && len(add) > 0 {
		kept = append(kept, ',')
	}
	kept = append(kept, add...)
	m, err := membersOf(doc)
	if err != nil {
		return nil, err
	}
	out, placed := append(dst[:0], '{'), false
	put := func(raw, value []byte) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(append(out, '"'), raw...), '"', ':'), value...)
	}
	wrapped := append(append([]byte{'{'}, kept...), '}')
	for m.next() {
		if string(m.name()) != VectorsField {
			put(m.raw, m.value)
		} else if placed = true; len(kept) > 0 {
			put(m.raw, wrapped)
		}
	}
	if !placed {
		put([]byte(VectorsField), wrapped)
	}
	return append(out, '}'), m.err
}

// AppendVectorEntry appends vectors as a document brings them, in the form {"regenerate":…,"embeddings":[[…],…]}.
func AppendVectorEntry(dst []byte, vectors []float32, dimensions int, regenerate bool) []byte {
	dst = append(dst, `{"regenerate":`...)
	dst = strconv.AppendBool(dst, regenerate)
	dst = append(dst, `,"embeddings":[`...)
	for i, f := range vectors {
		switch {
		case i%dimensions == 0 && i > 0:
			dst = append(dst, "],["...)
		case i == 0:
			dst = append(dst, '[')
		default:
			dst = append(dst, ',')
		}
		dst = jsontext.AppendFloat(dst, float64(f))
	}
	if len(vectors) > 0 {
		dst = append(dst, ']')
	}
	return append(dst, ']', '}')
}
