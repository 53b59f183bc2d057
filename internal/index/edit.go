package index

import (
	"bytes"
	"fmt"
	"path"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/vfs"
)

// editFile holds the documents that edit functions changed, as a payload of the batch: they may not fit into memory, and are then
// handled like additions.
type editFile struct {
	fs      vfs.FS
	name    string
	payload int32 // its number in the batch
	file    vfs.File
	buffer  []byte
	offset  int64
}

// editFile returns the batch's file, creating it on first use.
func (b *batch) editFile() (*editFile, error) {
	if b.edited != nil {
		return b.edited, nil
	}
	name := path.Join(b.ix.dir, editName)
	f, err := b.ix.options.FS.Create(name)
	if err != nil {
		return nil, err
	}
	b.edited = &editFile{fs: b.ix.options.FS, name: name, payload: int32(len(b.payloads)), file: f}
	b.payloads = append(b.payloads, name)
	return b.edited, nil
}

// append writes a document and returns its place.
func (e *editFile) append(doc []byte) (source, error) {
	s := source{offset: e.offset, bytes: uint32(len(doc)), payload: e.payload, replaces: true}
	e.buffer = append(append(e.buffer, doc...), '\n')
	e.offset += int64(len(doc)) + 1
	if len(e.buffer) < readAhead {
		return s, nil
	}
	return s, e.flush()
}

// flush makes all documents readable.
func (e *editFile) flush() error {
	_, err := e.file.Write(e.buffer)
	e.buffer = e.buffer[:0]
	return err
}

func (e *editFile) remove() {
	e.file.Close()
	_ = e.fs.Remove(e.name) // or the next open does it
}

// edit runs a script and returns how many documents the filter matched, and how many of these the script deleted. Nothing changes
// unless the script succeeds on all of them.
func (b *batch) edit(op *EditDocuments) (matched, deleted int, err error) {
	out, err := b.editFile()
	if err != nil {
		return 0, 0, fmt.Errorf("cannot edit documents: %w", err)
	}
	read := docReader{b: b}
	defer func() { _ = read.close() }() // leftovers are removed at the next open
	type change struct {
		number int
		to     source
		remove bool
	}
	ctx := yielding(b.ctx, b.ix.catalog.Searches())
	var changes []change
	var bound *filter.Bound
	if op.Filter != nil {
		if bound, err = b.bind(op.Filter, b.base.Fields); err != nil {
			return 0, 0, err
		}
	}
	err = b.matching(bound, func(n int) error {
		if matched%64 == 0 {
			b.report.at(2, "document", matched, b.base.Documents())
			if err := b.ctx.Err(); err != nil {
				return err
			}
		}
		matched++
		was, err := read.document(b.states.at(n))
		if err != nil {
			return err
		}
		is, err := op.Function.Edit(ctx, was)
		switch {
		case err != nil:
			return err
		case is == nil:
			changes = append(changes, change{number: n, remove: true})
			return nil
		case bytes.Equal(was, is):
			return nil
		}
		vectors, err := b.checkEdited(b.table.id(n), is)
		if err != nil {
			return err
		}
		to, err := out.append(is)
		to.vectors = vectors
		changes = append(changes, change{number: n, to: to})
		return err
	})
	if err == nil {
		err = out.flush()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("cannot edit documents: %w", err)
	}
	for _, c := range changes {
		if c.remove {
			b.remove(c.number)
			deleted++
		} else if err := b.put(c.number, c.to); err != nil {
			return 0, 0, err
		}
	}
	return matched, deleted, nil
}

// checkEdited validates the result of a script for the document with an id. vectors says that it has a field _vectors.
func (b *batch) checkEdited(id, doc []byte) (vectors bool, err error) {
	now, err := document.ExternalID(doc, b.base.PrimaryKey)
	if err != nil {
		return false, err
	}
	if !bytes.Equal(now, id) {
		return false, apierr.New("edit_documents_by_function_error",
			"The function changed the id of the document `%s` to `%s`. It may change every field but `%s`: add a new document instead.", id, now, b.base.PrimaryKey)
	}
	if err := b.geo.check(id, doc); err != nil {
		return false, err
	}
	vectors, _, err = b.vectors.check(id, doc)
	return vectors, err
}
