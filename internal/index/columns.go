package index

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"

	"svc/internal/document"
	"svc/internal/mapped"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// rebuild writes segments of base again: all of them with columns that new settings ask for, read
// from their documents, or with short-prefix postings; those with vectors that become bits with these. The rest
// is copied as it is.
func (b *batch) rebuild(c *change, next *View, stale *settings.Rebuild) error {
	wanted := stale.AddColumns
	all := len(wanted) > 0 || stale.Prefixes && b.settings.PrefixSearch != settings.PrefixDisabled
	if !all && !slices.ContainsFunc(b.plans, (*vectorPlan).quantizes) {
		return nil
	}
	added := make([]*file, len(b.base.files))
	group, ctx := errgroup.WithContext(b.ctx)
	group.SetLimit(b.ix.options.MaxIndexingThreads)
	progress := b.counter(1, b.base.Documents())
	for i, f := range b.base.files {
		l := f.live(union(b.base.Segments[i].Deleted, b.gone[f]))
		sets := b.quantized(l)
		if !all && len(sets) == 0 {
			continue
		}
		c.merge = append(c.merge, f)
		if liveCount(l) == 0 {
			continue
		}
		group.Go(func() error {
			return mapped.Guard(func() error {
				columns, err := b.collectColumns(ctx, l, next.Fields, wanted, progress)
				if err == nil {
					added[i], err = b.ix.mergeFiles(ctx, next, []segment.Live{l}, columns, sets, unthrottled)
				}
				return err
			})
		})
	}
	err := group.Wait()
	for _, f := range added {
		switch {
		case f == nil:
		case err != nil:
			f.discard()
		default:
			c.add = append(c.add, f)
		}
	}
	return err
}

// quantized returns sets that turn the vectors of a segment into bits, of each embedder for which the batch asks that.
func (b *batch) quantized(l segment.Live) []*segment.VectorSet {
	var sets []*segment.VectorSet
	for _, p := range b.plans {
		if p.quantizes() && l.Vectors(p.was.ID) != nil {
			sets = append(sets, segment.NewVectorSet(liveCount(l), p.is.shape(), true))
		}
	}
	return sets
}

// collectColumns reads the columns of a segment's live rows; nil when none is wanted.
func (b *batch) collectColumns(ctx context.Context, l segment.Live, fields *settings.Fields, wanted []segment.FieldID, progress func(int)) (*segment.ColumnSet, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	c := &columnBuilder{fields: fields, wanted: wanted, columns: segment.NewColumnSet(liveCount(l), wanted), handles: make(map[string]int)}
	read := docReader{b: b}
	defer func() { _ = read.close() }() // what stays goes at the next open
	for it := l.LiveRows().Iterator(); it.HasNext(); c.row++ {
		if c.row%chunkDocuments == 0 {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			progress(chunkDocuments)
		}
		row := segment.Row(it.Next())
		doc, err := read.stored(l, row)
		if err != nil {
			return nil, err
		}
		if err := document.Walk(doc, c); err != nil {
			return nil, fmt.Errorf("cannot index the document %s: %w", l.ExternalID(row), err)
		}
	}
	return c.columns, nil
}

// columnBuilder is the document.Visitor that fills a ColumnSet.
type columnBuilder struct {
	fields  *settings.Fields
	wanted  []segment.FieldID // ascending
	columns *segment.ColumnSet
	row     segment.Row
	handles map[string]int // path → FieldID, or -1
	key     []byte
}

// Field implements document.Visitor.
func (c *columnBuilder) Field(path []byte) int {
	h, ok := c.handles[string(path)]
	if !ok {
		h = notWanted
		if id, ok := c.fields.ID(string(path)); ok {
			if _, ok := slices.BinarySearch(c.wanted, id); ok {
				h = int(id)
			}
		}
		if string(path) == settings.VectorsField {
			h = -1
		}
		c.handles[string(path)] = h
	}
	return h
}

// notWanted is the handle of a field that gets no column, but whose members may.
const notWanted = 1 << 20

// Visit implements document.Visitor.
func (c *columnBuilder) Visit(int) {}

// String implements document.Visitor.
func (c *columnBuilder) String(field int, s []byte, _ []int) {
	if field != notWanted {
		// A string without content is no value: it neither filters, sorts nor counts.
		if c.key = text.FacetKey(c.key[:0], s); len(c.key) > 0 {
			c.columns.String(c.row, segment.FieldID(field), c.key, s)
		}
	}
}

// Number implements document.Visitor.
func (c *columnBuilder) Number(field int, _ []byte, value float64, _ []int) {
	if field != notWanted {
		c.columns.Number(c.row, segment.FieldID(field), value)
	}
}

// Bool implements document.Visitor.
func (c *columnBuilder) Bool(field int, value bool, _ []int) {
	if field != notWanted {
		s := boolText(value)
		c.columns.String(c.row, segment.FieldID(field), s, s)
	}
}

// Null implements document.Visitor.
func (c *columnBuilder) Null(field int) {
	if field != notWanted {
		c.columns.Null(c.row, segment.FieldID(field))
	}
}

// Empty implements document.Visitor.
func (c *columnBuilder) Empty(field int) {
	if field != notWanted {
		c.columns.Empty(c.row, segment.FieldID(field))
	}
}
