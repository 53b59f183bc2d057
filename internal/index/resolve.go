package index

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/apierr"
	"svc/internal/filter"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
)

// resolve runs the operations on the ids.
func (b *batch) resolve(ops []Op) error {
	clearAt := -1
	for i, op := range ops {
		if _, ok := op.(Clear); ok {
			clearAt = i
		}
	}
	for i, op := range ops {
		b.report.at(1, "task", i, len(ops))
		if err := b.ctx.Err(); err != nil {
			return err
		}
		var err error
		r := &b.results[i]
		switch op := op.(type) {
		case AddDocuments:
			if i < clearAt {
				r.Indexed = op.Documents
				continue
			}
			r.Indexed, err = b.add(i, &op)
		case DeleteDocuments:
			r.Deleted = b.deleteIDs(op.IDs)
		case DeleteByFilter:
			r.Deleted, err = b.deleteByFilter(op.Filter)
		case DeleteExpired:
			r.Deleted, err = b.deleteExpired(op.Moment)
		case Clear:
			r.Deleted = b.clear()
		case EditDocuments:
			r.Edited, r.Deleted, err = b.edit(&op)
		case PatchDocuments:
			if i < clearAt {
				r.Patched = &PatchResult{Changed: op.Operations}
				continue
			}
			r.Patched, err = b.patch(&op)
		}
		var blocked *blockedError
		var user *apierr.Error
		if errors.As(err, &blocked) {
			return err
		}
		if errors.As(err, &user) {
			*r = OpResult{Err: user}
		} else if err != nil {
			return err
		}
	}
	return b.ctx.Err()
}

// number returns where in states the document with an external id is.
func (b *batch) number(external []byte) int { return b.numberOf(external, place{}, false) }

// numberOf is number for a document whose place in base may be known; stood.seg is noSegment if it is in no segment.
func (b *batch) numberOf(external []byte, stood place, known bool) int {
	n, added := b.table.find(external)
	if !added {
		return n
	}
	s := docState{id: noDocID, before: -1, passed: -1, head: absent}
	switch {
	case b.cleared:
	case known:
		if stood.seg != noSegment {
			s = b.storedState(int(stood.seg), stood.row)
		}
	default:
		if seg, row, ok := b.base.Find(external); ok {
			s = b.storedState(seg, row)
		}
	}
	b.states.add(s)
	return n
}

// numberAt is number for a document that is known to be in a row of base.
func (b *batch) numberAt(seg int, row segment.Row) int {
	n, added := b.table.find(b.base.Segments[seg].ExternalID(row))
	if added {
		b.states.add(b.storedState(seg, row))
	}
	return n
}

// storedState is the state of a document that a row of the base view has, and that the batch has not changed
// yet.
func (b *batch) storedState(seg int, row segment.Row) docState {
	b.versions.stood.add(place{int32(seg), row})
	return docState{id: b.base.Segments[seg].DocID(row), before: int32(b.versions.stood.len() - 1), passed: -1, head: stored}
}

// leave marks the stored version of a document as deleted.
func (b *batch) leave(s *docState) {
	if s.before < 0 {
		return
	}
	at := b.versions.stood.at(int(s.before))
	f := b.base.files[at.seg]
	if b.gone[f] == nil {
		b.gone[f] = roaring.New()
	}
	b.gone[f].Add(uint32(at.row))
}

// put makes the document a new version.
func (b *batch) put(n int, src source) error {
	s := b.states.at(n)
	if s.id == noDocID {
		id, err := b.ids.take()
		if err != nil {
			return err
		}
		s.id = id
	}
	src.before = s.head
	head, err := b.versions.add(src)
	if err != nil {
		return err
	}
	b.leave(s)
	s.head = head
	return nil
}

// remove deletes a document and reports whether it was there.
func (b *batch) remove(n int) bool {
	s := b.states.at(n)
	if s.head == absent {
		return false
	}
	b.leave(s)
	s.head = absent
	return true
}

// add applies a payload, all of it or nothing, and returns how many distinct ids it has.
func (b *batch) add(op int, a *AddDocuments) (int, error) {
	key := b.primaryKey
	if key != "" && a.PrimaryKey != "" && a.PrimaryKey != key {
		return 0, PrimaryKeyExists(b.base.UID, key)
	}
	if key == "" {
		key = a.PrimaryKey
	}
	opened, err := b.ix.options.FS.Open(a.Payload)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, apierr.New("task_file_not_found", "The documents of the task are gone: %v. Send them again.", err)
	}
	if err != nil {
		return 0, fmt.Errorf("cannot read a payload: %w", err)
	}
	defer opened.Close()
	f := newSummedFile(opened)

	// All lines are checked before the first changes anything.
	lines, key, err := b.checkPayload(f, a.Payload, key)
	if a.Sum != 0 {
		// Damage takes precedence over errors that it causes, and concerns no other operation.
		if whole, err := f.is(a.Sum); err != nil {
			return 0, fmt.Errorf("cannot read a payload: %w", err)
		} else if !whole {
			return 0, apierr.New("invalid_store_file", "The documents of the task are damaged: %s is corrupted. Check the disk, and send them again.", a.Payload)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("cannot use payload %s: %w", path.Base(a.Payload), err)
	}
	if err := b.checkLacking(f, a, lines); err != nil {
		return 0, err
	}
	b.primaryKey = key

	payload := int32(len(b.payloads))
	b.payloads = append(b.payloads, a.Payload)
	distinct := 0
	first := int32(b.versions.len()) // of the operation
	worker := pace.Of(b.ctx)
	b.table.reserve(min(lines.count(), b.reservable()))
	err = lines.each(true, func(l payloadLine, id []byte) error {
		worker.Yield()
		if a.Owned != nil && !a.Owned(id) {
			return nil
		}
		n := b.numberOf(id, l.stood, lines.sought)
		s := b.states.at(n)
		if s.head == absent && a.SkipCreation {
			if s.passed != int32(op) {
				s.passed = int32(op)
				distinct++
			}
			return nil
		}
		if s.head < first {
			distinct++
		}
		return b.put(n, source{offset: l.offset, bytes: l.bytes, payload: payload, replaces: !a.Merge || s.head == absent, vectors: l.vectors})
	})
	return distinct, err
}

// reservable returns for how many ids a table may reserve room in advance: slots for them take at most an eighth of the memory for
// indexing. Beyond that the table grows on demand.
func (b *batch) reservable() int {
	memory := b.ix.options.MaxIndexingMemory
	if b.background {
		memory /= 4
	}
	return int(min(memory/8*3/4/(2*idSlotBytes), math.MaxInt32)) // up to half of the slots are due to the power of two
}

// checkLacking refuses documents without vectors for an embedder that needs them. Vectors of the stored document, or of an
// earlier line of the payload, count.
func (b *batch) checkLacking(f vfs.File, a *AddDocuments, lines *checkedLines) error {
	if !lines.lacking() {
		return nil
	}
	named := make(map[string]bool, lines.count())
	return lines.each(false, func(l payloadLine, id []byte) error {
		if a.Owned != nil && !a.Owned(id) {
			return nil
		}
		there := named[string(id)] || b.states.at(b.number(id)).head != absent
		named[string(id)] = there || !a.SkipCreation
		if there || a.SkipCreation || l.lacking == "" {
			return nil
		}
		doc := make([]byte, l.bytes)
		if _, err := f.ReadAt(doc, l.offset); err != nil {
			return fmt.Errorf("cannot read a payload: %w", err)
		}
		return missingVectors(id, l.lacking, doc)
	})
}

// deleteIDs deletes documents by their ids, and returns how many there were.
func (b *batch) deleteIDs(ids []string) int {
	deleted := 0
	worker := pace.Of(b.ctx)
	for _, id := range ids {
		worker.Yield()
		if b.remove(b.number([]byte(id))) {
			deleted++
		}
	}
	return deleted
}

// matching calls f for each stored document that a filter (nil: all) matches and that the batch has not deleted.
func (b *batch) matching(bound *filter.Bound, f func(n int) error) error {
	if b.cleared {
		return nil
	}
	for seg, l := range b.base.Segments {
		var rows *roaring.Bitmap
		if bound != nil {
			rows = bound.Rows(l)
		} else {
			rows = l.LiveRows()
		}
		for it := rows.Iterator(); it.HasNext(); {
			if n := b.numberAt(seg, segment.Row(it.Next())); b.states.at(n).head != absent {
				if err := f(n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bind checks a filter. Whether the experimental features in it are on was asked when the task was accepted.
func (b *batch) bind(e *filter.Expr, fields *settings.Fields) (*filter.Bound, error) {
	views := b.ix.catalog.storedViews()
	defer views.Release()
	return e.Bind(filter.Env{
		Fields:      fields,
		Code:        "invalid_document_filter",
		Contains:    true,
		Embedders:   b.base.FilterEmbedders(),
		ForeignKeys: b.base.Settings.ForeignKeys,
		Parted:      b.base.Shards() != nil,
		Shard:       func(name string) func(segment.Live) *roaring.Bitmap { return b.base.Shard(b.base.Shards(), name) },
		Foreign: func(uid string) (*filter.Foreign, error) {
			v, err := views.Find(uid)
			if err != nil {
				return nil, &blockedError{err}
			}
			if v == nil {
				return nil, nil
			}
			return &filter.Foreign{Fields: v.Fields, Segments: v.Segments, Embedders: v.FilterEmbedders()}, nil
		},
	})
}

// blockedError is the error of an operation that cannot read an index which cannot be opened, or the documents of its own batch. Users
// see it, but it is not the result of the operation: applied later, the operation succeeds.
type blockedError struct{ err error }

func (e *blockedError) Error() string { return e.err.Error() }
func (e *blockedError) Unwrap() error { return e.err }

// deleteByFilter deletes the documents that match a filter, as they are after the operations before it:
// stored ones that the batch has not touched, and versions that the batch has written (pending).
func (b *batch) deleteByFilter(body []byte) (int, error) {
	e, err := filter.FromJSON(body, "invalid_document_filter")
	if err != nil {
		return 0, err
	}
	if err := b.pending.update(b); err != nil {
		return 0, err
	}
	bound, err := b.bind(e, b.pending.known(b.base.Fields))
	if err != nil {
		return 0, err
	}
	deleted := 0
	err = b.matching(bound, func(n int) error {
		if b.states.at(n).head == stored { // else the filter is for a version of the batch
			b.remove(n)
			deleted++
		}
		return nil
	})
	for _, n := range b.pending.matching(b, bound) {
		b.remove(n)
		deleted++
	}
	return deleted, err
}

// clear deletes all and returns how many documents there were before the batch, the first time.
func (b *batch) clear() int {
	n := 0
	if !b.cleared {
		n = b.base.Documents()
	}
	b.cleared = true
	b.table.reset()
	b.states, b.versions = chunked[docState]{}, versions{}
	b.pending.drop()
	b.gone = make(map[*file]*roaring.Bitmap)
	b.ids.startOver()
	return n
}

// changed returns the numbers of the documents to write, in ascending DocID, and
// gives the ids of deleted ones back.
func (b *batch) changed() []int32 {
	count := 0
	for n := range b.states.len() {
		if b.states.at(n).head >= 0 {
			count++
		}
	}
	numbers := make([]int32, 0, count)
	for n := range b.states.len() {
		switch s := b.states.at(n); {
		case s.head >= 0:
			numbers = append(numbers, int32(n))
		case s.head == absent && s.id != noDocID:
			b.ids.free(s.id)
		}
	}
	slices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(b.states.at(int(x)).id, b.states.at(int(y)).id) })
	return numbers
}
