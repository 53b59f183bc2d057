package index

import (
	"bytes"
	"cmp"
	"slices"

	"golang.org/x/sync/errgroup"

	"svc/internal/filter"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/segment"
)

// pending makes the documents that a batch has written so far visible to its filters. Filters work on segments, and the batch writes
// its own only at the end. So the values of these documents go to segments without words, which are removed when the batch ends. Each
// call writes only the documents that changed since the previous call.
type pending struct {
	fields *fieldTable // of all of them
	parts  []pendingPart
	seen   int32 // versions below this number were written, if they were the last of their document then
}

// pendingPart is a segment of documents. A row counts while the last version of its document is in [from, to).
type pendingPart struct {
	file     *file
	from, to int32
}

// maxPendingParts is the number of parts that a filter may have to read. Beyond it all documents are written again, into one part.
const maxPendingParts = 16

// matching returns the documents with a version of the batch that a filter matches. update was called before.
func (p *pending) matching(b *batch, bound *filter.Bound) (matched []int) {
	for _, part := range p.parts {
		for it := bound.Rows(part.file.live(nil)).Iterator(); it.HasNext(); {
			n, _ := b.table.find(part.file.ExternalID(segment.Row(it.Next()))) // the table has every id of the batch
			if head := b.states.at(n).head; part.from <= head && head < part.to {
				matched = append(matched, n)
			}
		}
	}
	return matched
}

// known returns the fields of the index with those that the batch brings.
func (p *pending) known(base *settings.Fields) *settings.Fields {
	if p.fields == nil {
		return base
	}
	if names := p.fields.names(); len(names) > 0 {
		return p.fields.base.Extend(names)
	}
	return p.fields.base
}

// update writes the documents that changed since the last call. Its error is not that of the operation that needs them.
func (p *pending) update(b *batch) error {
	if err := p.write(b); err != nil {
		return &blockedError{err}
	}
	return nil
}

func (p *pending) write(b *batch) error {
	now := int32(b.versions.len())
	if p.seen == now {
		return nil
	}
	if p.fields == nil {
		fields := b.base.Fields
		if b.primaryKey != b.base.PrimaryKey {
			fields = settings.Resolve(b.base.names, b.base.Settings, b.primaryKey)
		}
		p.fields = newFieldTable(fields)
	}
	if len(p.parts) >= maxPendingParts {
		p.drop()
	}
	var changed []int32
	for n := range b.states.len() {
		if b.states.at(n).head >= p.seen {
			changed = append(changed, int32(n))
		}
	}
	slices.SortFunc(changed, func(x, y int32) int { return cmp.Compare(b.states.at(int(x)).id, b.states.at(int(y)).id) })
	group, ctx := errgroup.WithContext(b.ctx)
	w := &writer{b: b, ctx: ctx, fields: p.fields, analyzer: b.base.Analyzer, chunk: chunkDocuments, share: b.builderShare(1), valuesOnly: true,
		progress: func(int) {}, pace: pace.Of(b.ctx)}
	w.queue.changed, w.queue.states = changed, &b.states
	w.builder.Spool = b.ix.newSpool
	for id := range p.fields.base.Len() {
		if p.fields.base.Info(segment.FieldID(id)).Column {
			w.builder.Columns = append(w.builder.Columns, segment.FieldID(id))
		}
	}
	w.start(group, 1)
	if err := group.Wait(); err != nil {
		w.written.discard()
		return err
	}
	for _, f := range w.written.files {
		p.parts = append(p.parts, pendingPart{f, p.seen, now})
	}
	p.seen = now
	return nil
}

// drop removes the segments.
func (p *pending) drop() {
	for _, part := range p.parts {
		part.file.discard()
	}
	p.parts, p.seen = nil, 0
}

// SeesPending reports whether a filter (JSON as sent) sees documents of earlier operations of the same batch. Conditions
// on vectors, shards and foreign documents see only committed state.
func SeesPending(body []byte) bool {
	for _, name := range []string{"_vectors", "_shard", "_foreign", `\u`} {
		if bytes.Contains(body, []byte(name)) {
			return false
		}
	}
	return true
}
