package index

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"svc/internal/apierr"
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/pace"
	"svc/internal/settings"
)

// PatchResult counts the operations of a partial update. Each counts once.
type PatchResult struct {
	Changed  int            `json:",omitempty"` // they changed their document, or made it
	Skipped  int            `json:",omitempty"` // there was no document, the filter did not match, or nothing was to change
	Failed   int            `json:",omitempty"`
	Failures []PatchFailure `json:",omitempty"` // the first of them, by position
}

// PatchFailure is an operation that failed.
type PatchFailure struct {
	Position int         `json:"position"` // in the payload, from 0
	ID       string      `json:"id,omitempty"`
	Code     apierr.Code `json:"code"`
	Message  string      `json:"message"`
}

// maxPatchFailures is the maximum number of failures in a result. The manifest keeps them until the next batch.
const maxPatchFailures = 100

// fail counts a failure. List keeps the first by position.
func (r *PatchResult) fail(position int, id []byte, err *apierr.Error) {
	r.Failed++
	if len(r.Failures) == 2*maxPatchFailures {
		r.trim()
	}
	r.Failures = append(r.Failures, PatchFailure{position, string(id), err.Code, err.Message})
}

// trim leaves the failures that are listed.
func (r *PatchResult) trim() {
	slices.SortFunc(r.Failures, func(a, b PatchFailure) int { return cmp.Compare(a.Position, b.Position) })
	r.Failures = r.Failures[:min(len(r.Failures), maxPatchFailures)]
}

// operationAt is an operation of a payload and the number of its document.
type operationAt struct {
	offset   int64
	bytes    uint32
	number   int32
	position int32
}

// patcher runs the operations of a payload.
type patcher struct {
	b        *batch
	op       *PatchDocuments
	key      string
	result   PatchResult
	lines    payloadReader
	read     docReader
	apply    document.Patcher
	parsed   document.Operation
	doc      []byte // the current document
	matchers map[string]*filter.Matcher
	fields   *settings.Fields // that filters know
	out      *editFile
}

// maxMatchers is how many filters are cached between operations.
const maxMatchers = 1000

// patch runs the operations of a payload. All operations of a document are run together, in their order, so that each document is read
// and written once.
func (b *batch) patch(op *PatchDocuments) (*PatchResult, error) {
	p := &patcher{b: b, op: op, key: b.primaryKey, read: docReader{b: b}, lines: payloadReader{fs: b.ix.options.FS}, matchers: map[string]*filter.Matcher{}, fields: b.base.Fields}
	defer func() { _ = p.read.close() }() // leftovers are removed at the next open
	defer p.lines.close()
	ops, err := p.list()
	if err != nil {
		return nil, err
	}
	if p.out, err = b.editFile(); err != nil {
		return nil, fmt.Errorf("cannot update documents: %w", err)
	}
	type change struct {
		number int32
		to     source
	}
	var changes []change // of an atomic update, which may not come about
	worker := pace.Of(b.ctx)
	for done := 0; done < len(ops); {
		n := ops[done].number
		end := done + 1
		for end < len(ops) && ops[end].number == n {
			end++
		}
		worker.Yield()
		vectors, changed, err := p.run(int(n), ops[done:end])
		if err != nil {
			return nil, fmt.Errorf("cannot update documents: %w", err)
		}
		done = end
		b.report.at(2, "document", done, len(ops))
		if !changed || op.Atomic && p.result.Failed > 0 {
			continue
		}
		to, err := p.out.append(p.doc)
		if err != nil {
			return nil, fmt.Errorf("cannot update documents: %w", err)
		}
		to.vectors = vectors
		if op.Atomic {
			changes = append(changes, change{n, to})
		} else if err := b.put(int(n), to); err != nil {
			return nil, err
		}
	}
	if err := p.out.flush(); err != nil {
		return nil, fmt.Errorf("cannot update documents: %w", err)
	}
	p.result.trim()
	if op.Atomic && p.result.Failed > 0 {
		f := &p.result.Failures[0]
		return nil, apierr.New(f.Code, "Nothing was changed, because `atomic` is true and %d of %d operations failed. The first is operation %d: %s", p.result.Failed, op.Operations, f.Position, f.Message)
	}
	for _, c := range changes {
		if err := b.put(int(c.number), c.to); err != nil {
			return nil, err
		}
	}
	if p.result.Changed > 0 {
		b.primaryKey = p.key
	}
	return &p.result, nil
}

// list finds the documents of the operations, and returns these document by document.
func (p *patcher) list() ([]operationAt, error) {
	b := p.b
	if err := p.checkSum(); err != nil {
		return nil, err
	}
	opened, err := b.ix.options.FS.Open(p.op.Payload)
	if err != nil {
		return nil, fmt.Errorf("cannot read a payload: %w", err)
	}
	defer opened.Close()
	ops := make([]operationAt, 0, min(p.op.Operations, 1<<20))
	worker := pace.Of(b.ctx)
	position := 0
	err = eachLine(b.ix.options.FS, p.op.Payload, opened, func(offset int64, line []byte) error {
		worker.Yield()
		if position%4096 == 0 && b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		if p.key == "" {
			if p.key, err = document.InferPrimaryKey(line); err != nil {
				return err
			}
		}
		position++
		id, err := document.ExternalID(line, p.key)
		if err != nil {
			return p.failed(position-1, nil, err)
		}
		if p.op.Owned == nil || p.op.Owned(id) {
			ops = append(ops, operationAt{offset, uint32(len(line)), int32(b.number(id)), int32(position - 1)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use a payload: %w", err)
	}
	byNumber := func(x, y operationAt) int { return cmp.Compare(x.number, y.number) }
	if !slices.IsSortedFunc(ops, byNumber) {
		slices.SortStableFunc(ops, byNumber)
	}
	return ops, nil
}

// checkSum reads the payload once for its checksum: damage is found before the first change.
func (p *patcher) checkSum() error {
	opened, err := p.b.ix.options.FS.Open(p.op.Payload)
	if errors.Is(err, fs.ErrNotExist) {
		return apierr.New("task_file_not_found", "The operations of the task are gone: %v. Send them again.", err)
	}
	if err != nil {
		return fmt.Errorf("cannot read a payload: %w", err)
	}
	defer opened.Close()
	if p.op.Sum == 0 {
		return nil
	}
	whole, err := newSummedFile(opened).is(p.op.Sum)
	if err != nil {
		return fmt.Errorf("cannot read a payload: %w", err)
	}
	if !whole {
		return apierr.New("invalid_store_file", "The operations of the task are damaged: %s is corrupted. Check the disk, and send them again.", p.op.Payload)
	}
	return nil
}

// failed counts the error of an operation if it is one for users, and otherwise returns it.
func (p *patcher) failed(position int, id []byte, err error) error {
	var user *apierr.Error
	if !errors.As(err, &user) {
		return err
	}
	p.result.fail(position, id, user)
	return nil
}

// run runs the operations of the document with the given number and leaves the result in p.doc. vectors says whether the result has a
// field _vectors.
func (p *patcher) run(number int, ops []operationAt) (vectors, changed bool, err error) {
	b := p.b
	id := b.table.id(number)
	p.doc = p.doc[:0]
	exists := b.states.at(number).head != absent
	if exists {
		doc, err := p.read.document(b.states.at(number))
		if err != nil {
			return false, false, err
		}
		p.doc = append(p.doc, doc...)
	}
	for i, op := range ops {
		if i%256 == 0 && b.ctx.Err() != nil {
			return false, false, b.ctx.Err()
		}
		line, err := p.lines.read(p.op.Payload, op.offset, int(op.bytes))
		if err != nil {
			return false, false, err
		}
		does, has, err := p.one(id, line, exists)
		if err != nil {
			if err := p.failed(int(op.position), id, err); err != nil {
				return false, false, err
			}
			continue
		}
		if !does {
			p.result.Skipped++
			continue
		}
		p.result.Changed++
		exists, changed, vectors = true, true, has
	}
	return vectors, changed, nil
}

// one runs one operation on the current document. does says whether it changed the document.
func (p *patcher) one(id, line []byte, exists bool) (does, vectors bool, err error) {
	if err := p.parsed.Read(line, p.key, p.op.IfMissing); err != nil {
		return false, false, err
	}
	var matcher *filter.Matcher
	if p.parsed.Filter != nil {
		if matcher, err = p.matcher(p.parsed.Filter); err != nil {
			return false, false, err
		}
	}
	before := p.doc
	switch {
	case exists:
		if matcher != nil {
			if matches, err := matcher.Matches(p.doc); err != nil || !matches {
				return false, false, err
			}
		}
	case matcher != nil: // no stored document matches
		return false, false, nil
	case p.parsed.IfMissing == document.SkipMissing:
		return false, false, nil
	case p.parsed.IfMissing == document.FailMissing:
		return false, false, apierr.New("document_not_found", "There is no document `%s`, and `ifMissing` is `fail`.", id)
	default:
		if before, err = document.Create(nil, line, p.key); err != nil {
			return false, false, err
		}
	}
	after, err := p.apply.Apply(before, &p.parsed)
	if err != nil {
		return false, false, err
	}
	if exists && bytes.Equal(before, after) {
		return false, false, nil
	}
	if vectors, err = p.check(id, after, exists); err != nil {
		return false, false, err
	}
	p.doc = append(p.doc[:0], after...)
	return true, vectors, nil
}

// check validates the result of an operation for the document with an id, as if a client had sent it. vectors says that it has a
// field _vectors.
func (p *patcher) check(id, doc []byte, existed bool) (vectors bool, err error) {
	now, err := document.ExternalID(doc, p.key)
	if err != nil || !bytes.Equal(now, id) {
		return false, apierr.New("inapplicable_document_operation", "The operation would change the id of the document `%s`. It may change every field but `%s`.", id, p.key)
	}
	if err := p.b.geo.check(id, doc); err != nil {
		return false, err
	}
	vectors, lacking, err := p.b.vectors.check(id, doc)
	if err != nil || lacking == "" {
		return vectors, err
	}
	given, err := document.Vectors(doc)
	if err != nil {
		return false, err
	}
	if value, err := member(given, lacking); err != nil || existed && value == nil { // it keeps those that it has
		return vectors, err
	}
	return false, missingVectors(id, lacking, doc)
}

// matcher returns the test of a filter, JSON as sent.
func (p *patcher) matcher(body []byte) (*filter.Matcher, error) {
	if m := p.matchers[string(body)]; m != nil {
		return m, nil
	}
	e, err := filter.FromJSON(body, "invalid_document_filter")
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, nil
	}
	test := func() (*filter.Matcher, error) {
		return e.Matcher(filter.Env{Fields: p.fields, Code: "invalid_document_filter", Contains: p.op.Contains, Parted: p.b.base.Shards() != nil}, whereIs)
	}
	m, err := test()
	if err == nil && m.Strays() && p.b.versions.len() > 0 && p.fields == p.b.base.Fields {
		// The batch may have brought the field.
		if err := p.out.flush(); err != nil {
			return nil, err
		}
		if err := p.b.pending.update(p.b); err != nil {
			return nil, err
		}
		p.fields = p.b.pending.known(p.b.base.Fields)
		m, err = test()
	}
	if err != nil {
		return nil, err
	}
	if len(p.matchers) == maxMatchers {
		clear(p.matchers)
	}
	p.matchers[string(body)] = m
	return m, nil
}

// whereIs reads the places of a document.
func whereIs(doc []byte) (w filter.Where) {
	point, ok, _ := geoOf(doc)
	w.Point, w.Lat, w.Lng = ok, point.lat, point.lng
	if shape, reason := shapeOf(doc); reason == "" {
		w.Shape = shape
	}
	return w
}
