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
	// sampledDocuments is how many documents are read, at even distances.
	sampledDocuments = 1024
	// sampledBytes is how much of them is kept for the dictionary.
	sampledBytes = 1 << 20
)

// sample reads documents, given by the numbers of their states.
func (w *writer) sample(states []int32) error {
	s := &sampler{w: w}
	read := docReader{b: w.b}
	defer func() { _ = read.close() }() // what stays goes at the next open
	var docs [][]byte
	size, n := 0, min(len(states), sampledDocuments)
	for i := range n {
		if err := w.ctx.Err(); err != nil {
			return err
		}
		state := states[i*len(states)/n]
		doc, err := read.document(w.b.states.at(int(state)))
		if err != nil {
			return err
		}
		if err = document.Walk(doc, s); err == nil {
			err = s.err
		}
		if err != nil {
			return fmt.Errorf("cannot index the document %s: %w", w.b.table.id(int(state)), err)
		}
		if size += len(doc); size <= sampledBytes {
			docs = append(docs, bytes.Clone(doc))
		}
	}
	w.builder.Dictionaries.Share(docs)
	return nil
}

// Field implements document.Visitor.
func (s *sampler) Field(path []byte) int {
	if string(path) == settings.VectorsField { // kept in the document only
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
