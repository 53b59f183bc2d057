package index

import (
	"fmt"
	"path"

	"svc/internal/document"
	"svc/internal/mapped"
	"svc/segment"
)

// docReader reads documents in the state that the batch has reached. Not safe for concurrent use.
type docReader struct {
	b        *batch
	payloads payloadReader
	buffer   []byte
	merged   [2][]byte // the first one has the last document, if it was merged
	chain    []int32
	spool    *mapped.Spool // of the last document, when it was large and stored
}

// newSpool creates a file for data that is too large for memory.
func (ix *Index) newSpool() (*mapped.Spool, error) {
	return mapped.NewSpool(ix.options.FS, path.Join(ix.dir, fmt.Sprintf(spoolName, ix.spools.Add(1))))
}

// stored returns the document of a row, valid until the next call.
func (r *docReader) stored(l segment.Live, row segment.Row) (doc []byte, err error) {
	n, err := l.DocumentLength(row)
	if err != nil {
		return nil, err
	}
	if n < largeBytes {
		r.buffer, err = l.AppendUncached(r.buffer[:0], row)
		return r.buffer, err
	}
	if err := r.dropSpool(); err != nil {
		return nil, err
	}
	if r.spool, err = r.b.ix.newSpool(); err != nil {
		return nil, err
	}
	if err := l.CopyDocument(r.spool, row); err != nil {
		return nil, err
	}
	return r.spool.Bytes()
}

func (r *docReader) dropSpool() error {
	err := r.spool.Close()
	r.spool = nil
	return err
}

// document returns a document that is not absent, valid until the next call.
func (r *docReader) document(s *docState) ([]byte, error) { return r.documentOf(s, nil) }

// documentOf is document with the stored document in was; nil: the caller does not have it.
func (r *docReader) documentOf(s *docState, was []byte) ([]byte, error) {
	r.chain = r.chain[:0]
	for i := range r.merged {
		if cap(r.merged[i]) > largeBytes {
			r.merged[i] = nil
		}
	}
	at := s.head
	for at >= 0 {
		r.chain = append(r.chain, at)
		if src := r.b.versions.source(at); src.replaces {
			at = absent
		} else {
			at = src.before
		}
	}
	var doc []byte
	switch {
	case at == stored && was != nil:
		doc = was
	case at == stored:
		var err error
		stood := r.b.versions.stood.at(int(s.before))
		if doc, err = r.stored(r.b.base.Segments[stood.seg], stood.row); err != nil {
			return nil, err
		}
	}
	for i := len(r.chain) - 1; i >= 0; i-- {
		version, err := r.line(r.b.versions.source(r.chain[i]))
		if err != nil {
			return nil, err
		}
		if doc == nil {
			if doc = version; i > 0 {
				r.buffer = append(r.buffer[:0], version...) // the next read reuses its memory
				doc = r.buffer
			}
			continue
		}
		if r.merged[1], err = document.AppendMerge(r.merged[1][:0], doc, version); err != nil {
			return nil, err
		}
		r.merged[0], r.merged[1] = r.merged[1], r.merged[0]
		doc = r.merged[0]
	}
	return doc, nil
}

// line returns one version as its payload has it, valid until the next call.
func (r *docReader) line(src source) ([]byte, error) {
	r.payloads.fs = r.b.ix.options.FS
	return r.payloads.read(r.b.payloads[src.payload], src.offset, int(src.bytes))
}

func (r *docReader) close() error {
	r.payloads.close()
	return r.dropSpool()
}
