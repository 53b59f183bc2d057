package index

import (
	"fmt"
	"slices"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/segment"
)

// vectorChecks validates _vectors of documents, for the embedders that exist before a batch.
type vectorChecks struct {
	embedders []*ViewEmbedder
	unfit     map[string]map[int]bool // dimensions of given vectors that do not fit, by embedder; nil: those are refused
	scratch   []float32
}

// check reads the entries of one document. has says whether it has the field. lacking names an embedder that cannot generate vectors
// and finds none in the document, or is "".
func (c *vectorChecks) check(id, doc []byte) (has bool, lacking string, err error) {
	vectors, err := document.Vectors(doc)
	if err != nil {
		return false, "", err
	}
	for _, e := range c.embedders {
		value, err := member(vectors, e.Name)
		if err != nil {
			return false, "", err
		}
		var entry document.VectorEntry
		if value != nil {
			entry, err = document.ReadVectorEntry(c.scratch, value, e.Dimensions, e.Name, id)
			if err != nil && c.unfit != nil && apierr.From(err).Code == "invalid_vector_dimensions" {
				entry, err = c.noteUnfit(value, e.Name, id, err)
			}
			if err != nil {
				return false, "", err
			}
			c.scratch = entry.Vectors
		}
		if lacking == "" && !e.generates() && !entry.Given && (value == nil || entry.Regenerate) {
			lacking = e.Name
		}
	}
	if vectors != nil {
		err = c.checkForms(id, vectors)
	}
	return vectors != nil, lacking, err
}

// noteUnfit reads an entry whose vectors do not fit. It returns refusal if they have different lengths.
func (c *vectorChecks) noteUnfit(value []byte, embedder string, id []byte, refusal error) (document.VectorEntry, error) {
	entry, err := document.ReadVectorEntry(c.scratch, value, document.AnyDimensions, embedder, id)
	switch {
	case err != nil:
		return entry, err
	case entry.Dimensions <= 0 || entry.Dimensions > segment.MaxDimensions:
		return entry, refusal
	case c.unfit[embedder] == nil:
		c.unfit[embedder] = map[int]bool{}
	}
	c.unfit[embedder][entry.Dimensions] = true
	return entry, nil
}

// checkForms looks whether the entries for embedders that there are not, yet, are such entries.
func (c *vectorChecks) checkForms(id, vectors []byte) error {
	return document.Fields(vectors, func(name, value []byte) error {
		if slices.ContainsFunc(c.embedders, func(e *ViewEmbedder) bool { return e.Name == string(name) }) {
			return nil // it was read
		}
		entry, err := document.ReadVectorEntry(c.scratch, value, document.AnyDimensions, string(name), id)
		if err == nil {
			c.scratch = entry.Vectors
		}
		return err
	})
}

// missingVectors says that an embedder finds no vectors in a document, and what may have been meant for them.
func missingVectors(id []byte, embedder string, doc []byte) error {
	hint := ""
	look := func(object []byte, want, format string) {
		_ = document.Fields(object, func(name, _ []byte) error { // the document was read before
			if hint == "" && string(name) != want && alike(string(name), want) {
				hint = fmt.Sprintf(format, name)
			}
			return nil
		})
	}
	if vectors, err := document.Vectors(doc); err == nil && vectors != nil {
		look(vectors, embedder, " Is the member `_vectors.%s` meant for it?")
	}
	look(doc, document.VectorsField, " Is the field `%s` meant to be `_vectors`?")
	return apierr.New("vector_embedding_error",
		"The document `%s` has no vectors for the embedder `%s`, which does not compute them: send them in `_vectors.%s`, or null for a document without.%s",
		id, embedder, embedder, hint)
}

// alike reports whether one text becomes the other by at most two insertions, deletions or changes of a character.
func alike(a, b string) bool {
	const limit = 2
	x, y := []rune(a), []rune(b)
	if len(x)-len(y) > limit || len(y)-len(x) > limit {
		return false
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			cost := diagonal
			if x[i] != y[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(y)] <= limit
}
