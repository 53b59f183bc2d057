package index

import (
	"bytes"
	"fmt"

	"svc/internal/document"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/settings"
)

// sampler reads some documents of a batch before its workers start, for what they share: numbers of new fields, and a dictionary that
// documents are compressed against. Otherwise both would depend on which worker is first. It is a document.Visitor.
type sampler struct {
	w   *writer
	err error // of the document
}

const (
	// sampledDocuments is how many documents are read at most, at even distances: of a small batch one in sampledPart, because no worker
	// runs meanwhile, and at least leastSampled, which make a dictionary.
	sampledDocuments = 1024
	sampledPart      = 4
	leastSampled     = 512
	// sampledBytes is about how much of them is read at most.
	sampledBytes = 8 << 20
	// sampledDocumentBytes is how much of a document is kept. A dictionary uses no more.
	sampledDocumentBytes = 4 << 10
)

// sample reads documents, given by the numbers of their states.
func (w *writer) sample(states []int32) error {
	s := &sampler{w: w}
	read := docReader{b: w.b}
	defer func() { _ = read.close() }() // leftovers are removed at the next open
	docs, err := w.samples(len(states), func(i int) ([]byte, error) {
		state := int(states[i])
		doc, err := read.document(w.b.states.at(state))
		if err != nil {
			return nil, err
		}
		if err = document.Walk(doc, s); err == nil {
			err = s.err
		}
		if err != nil {
			return nil, fmt.Errorf("cannot index the document %s: %w", w.b.table.id(state), err)
		}
		return doc, nil
	})
	if err != nil {
		return err
	}
	w.builder.Dictionaries.Share(docs)
	return nil
}

// samples reads some of the documents, in ascending order, and returns the beginning of each.
func (w *writer) samples(documents int, read func(i int) ([]byte, error)) (docs [][]byte, err error) {
	size, n := 0, min(documents, sampledDocuments, max(documents/sampledPart, leastSampled))
	for i := range n {
		if size > sampledBytes/n*i { // of large documents some are left out, at even distances as well
			continue
		}
		w.pace.Yield()
		if err := w.ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := read(i * documents / n)
		if err != nil {
			return nil, err
		}
		size += len(doc)
		docs = append(docs, bytes.Clone(doc[:min(len(doc), sampledDocumentBytes)]))
	}
	return docs, nil
}

// Field implements document.Visitor.
func (s *sampler) Field(path []byte) int {
	if s.err != nil || string(path) == settings.VectorsField { // kept in the document only
		return -1
	}
	if _, err := s.w.fields.id(string(path)); err != nil {
		s.err = err
		return -1
	}
	return 0
}

// Spool implements document.Spooler.
func (s *sampler) Spool() (*mapped.Spool, error) { return s.w.b.ix.newSpool() }

// The others implement document.Visitor.
func (s *sampler) Visit(int)                                {}
func (s *sampler) String(int, []byte, []int)                {}
func (s *sampler) Number(int, []byte, numeric.Value, []int) {}
func (s *sampler) Bool(int, bool, []int)                    {}
func (s *sampler) Null(int)                                 {}
func (s *sampler) Empty(int)                                {}

var _ document.Spooler = (*sampler)(nil)
