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
	"svc/internal/document"
	"svc/internal/filter"
	"svc/internal/pace"
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
		case Clear:
			r.Deleted = b.clear()
		case EditDocuments:
			r.Edited, err = b.edit(&op)
			r.Deleted = r.Edited
		}
		var user *apierr.Error
		if errors.As(err, &user) {
			*r = OpResult{Err: user}
		} else if err != nil {
			return err
		}
	}
	return b.ctx.Err()
}

// number returns where in states the document with an external id is.
func (b *batch) number(external []byte) int {
	n, added := b.table.find(external)
	if !added {
		return n
	}
	s := docState{seg: noSegment, head: absent, lastOp: -1}
	if !b.cleared {
		if seg, row, ok := b.base.Find(external); ok {
			s = b.storedState(seg, row)
		}
	}
	b.states = append(b.states, s)
	return n
}

// numberAt is number for a document that is known to stand in a row of base.
func (b *batch) numberAt(seg int, row segment.Row) int {
	n, added := b.table.find(b.base.Segments[seg].ExternalID(row))
	if added {
		b.states = append(b.states, b.storedState(seg, row))
	}
	return n
}

func (b *batch) storedState(seg int, row segment.Row) docState {
	return docState{id: b.base.Segments[seg].DocID(row), hasID: true, seg: int32(seg), row: row, head: stored, lastOp: -1}
}

// leave marks the stored version of a document as gone.
func (b *batch) leave(s *docState) {
	if s.seg == noSegment {
		return
	}
	f := b.base.files[s.seg]
	if b.gone[f] == nil {
		b.gone[f] = roaring.New()
	}
	b.gone[f].Add(uint32(s.row))
}

// put makes the document a new version.
func (b *batch) put(n int, src source) error {
	s := &b.states[n]
	if !s.hasID {
		id, err := b.ids.take()
		if err != nil {
			return err
		}
		s.id, s.hasID = id, true
	}
	if len(b.sources) == math.MaxInt32 {
		return errors.New("cannot apply a batch of more than 2³¹ documents")
	}
	b.leave(s)
	src.before = s.head
	s.head = int32(len(b.sources))
	b.sources = append(b.sources, src)
	return nil
}

// remove deletes a document and reports whether it was there.
func (b *batch) remove(n int) bool {
	s := &b.states[n]
	if s.head == absent {
		return false
	}
	b.leave(s)
	s.head = absent
	return true
}

// payloadDoc is one line of a payload.
type payloadDoc struct {
	offset  int64
	bytes   uint32
	idBytes uint32
	vectors bool
	lacking string // an embedder that needs vectors of it and finds none
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
	var docs []payloadDoc
	var ids []byte
	worker := pace.Of(b.ctx)
	err = eachLine(b.ix.options.FS, a.Payload, f, func(offset int64, line []byte) error {
		worker.Yield()
		if len(docs)%4096 == 0 && b.ctx.Err() != nil {
			return b.ctx.Err()
		}
		if key == "" {
			if key, err = document.InferPrimaryKey(line); err != nil {
				return err
			}
		}
		id, err := document.ExternalID(line, key)
		if err != nil {
			return err
		}
		if err := b.geo.check(id, line); err != nil {
			return err
		}
		vectors, lacking, err := b.vectors.check(id, line)
		if err != nil {
			return err
		}
		docs = append(docs, payloadDoc{offset, uint32(len(line)), uint32(len(id)), vectors, lacking})
		ids = append(ids, id...)
		return nil
	})
	if a.Sum != 0 {
		// Damage comes before what it looks like, and concerns no other operation.
		if whole, err := f.is(a.Sum); err != nil {
			return 0, fmt.Errorf("cannot read a payload: %w", err)
		} else if !whole {
			return 0, apierr.New("invalid_store_file", "The documents of the task are damaged: %s is not what was written. Look after the disk, and send them again.", a.Payload)
		}
	}
	if err != nil {
		return 0, fmt.Errorf("cannot use payload %s: %w", path.Base(a.Payload), err)
	}
	if err := b.checkLacking(f, a, docs, ids); err != nil {
		return 0, err
	}
	b.primaryKey = key

	payload := int32(len(b.payloads))
	b.payloads = append(b.payloads, a.Payload)
	distinct := 0
	for _, d := range docs {
		id := ids[:d.idBytes]
		ids = ids[d.idBytes:]
		if a.Owned != nil && !a.Owned(id) {
			continue
		}
		n := b.number(id)
		s := &b.states[n]
		if s.lastOp != int32(op) {
			s.lastOp = int32(op)
			distinct++
		}
		if a.SkipCreation && s.head == absent {
			continue
		}
		src := source{offset: d.offset, bytes: d.bytes, payload: payload, replaces: !a.Merge || s.head == absent, vectors: d.vectors}
		if err := b.put(n, src); err != nil {
			return 0, err
		}
	}
	return distinct, nil
}

// checkLacking refuses documents that bring no vectors for an embedder that needs them, unless there are some from before:
// those of the document as the index has it, or of an earlier line of the payload.
func (b *batch) checkLacking(f vfs.File, a *AddDocuments, docs []payloadDoc, ids []byte) error {
	if !slices.ContainsFunc(docs, func(d payloadDoc) bool { return d.lacking != "" }) {
		return nil
	}
	named := make(map[string]bool, len(docs))
	for _, d := range docs {
		id := ids[:d.idBytes]
		ids = ids[d.idBytes:]
		if a.Owned != nil && !a.Owned(id) {
			continue
		}
		there := named[string(id)] || b.states[b.number(id)].head != absent
		named[string(id)] = there || !a.SkipCreation
		if there || a.SkipCreation || d.lacking == "" {
			continue
		}
		doc := make([]byte, d.bytes)
		if _, err := f.ReadAt(doc, d.offset); err != nil {
			return fmt.Errorf("cannot read a payload: %w", err)
		}
		return missingVectors(id, d.lacking, doc)
	}
	return nil
}

func (b *batch) deleteIDs(ids []string) int {
	deleted := 0
	for _, id := range ids {
		if b.remove(b.number([]byte(id))) {
			deleted++
		}
	}
	return deleted
}

// matching calls f for each stored document that a filter matches and that the batch has not deleted.
func (b *batch) matching(e *filter.Expr, f func(n int) error) error {
	if b.cleared {
		return nil
	}
	var bound *filter.Bound
	if e != nil {
		var err error
		if bound, err = b.bind(e); err != nil {
			return err
		}
	}
	for seg, l := range b.base.Segments {
		var rows *roaring.Bitmap
		if bound != nil {
			rows = bound.Rows(l)
		} else {
			rows = l.LiveRows()
		}
		for it := rows.Iterator(); it.HasNext(); {
			if n := b.numberAt(seg, segment.Row(it.Next())); b.states[n].head != absent {
				if err := f(n); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// bind checks a filter. Whether the experimental features in it are on was asked when the task was accepted.
func (b *batch) bind(e *filter.Expr) (*filter.Bound, error) {
	views := b.ix.catalog.Views()
	defer views.Release()
	return e.Bind(filter.Env{
		Fields:      b.base.Fields,
		Code:        "invalid_document_filter",
		Contains:    true,
		Embedders:   b.base.FilterEmbedders(),
		ForeignKeys: b.base.Settings.ForeignKeys,
		Shard:       func(name string) func(segment.Live) *roaring.Bitmap { return b.base.Shard(b.base.Shards(), name) },
		Foreign: func(uid string) *filter.Foreign {
			v := views.Get(uid)
			if v == nil {
				return nil
			}
			return &filter.Foreign{Fields: v.Fields, Segments: v.Segments, Embedders: v.FilterEmbedders()}
		},
	})
}

func (b *batch) deleteByFilter(body []byte) (int, error) {
	e, err := filter.FromJSON(body, "invalid_document_filter")
	if err != nil {
		return 0, err
	}
	deleted := 0
	err = b.matching(e, func(n int) error {
		b.remove(n)
		deleted++
		return nil
	})
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
	b.states, b.sources = nil, nil
	b.gone = make(map[*file]*roaring.Bitmap)
	b.ids.startOver()
	return n
}

// changed returns the numbers of the documents to write, in ascending DocID, and
// gives the ids of deleted ones back.
func (b *batch) changed() []int32 {
	var numbers []int32
	for n := range b.states {
		switch s := &b.states[n]; {
		case s.head >= 0:
			numbers = append(numbers, int32(n))
		case s.head == absent && s.hasID:
			b.ids.free(s.id)
		}
	}
	slices.SortFunc(numbers, func(x, y int32) int { return cmp.Compare(b.states[x].id, b.states[y].id) })
	return numbers
}
