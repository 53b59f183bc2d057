package index

import (
	"context"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"
	"golang.org/x/sync/errgroup"

	"svc/internal/document"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/pace"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// rebuild updates the stored segments to new settings. It reads documents again, and writes missing columns beside the
// segments. It rewrites all segments if short-prefix postings become enabled. It also rewrites segments with vectors that
// become binary, segments with a long column that lacks a wanted infix index, and segments with maxColumnFiles files.
func (b *batch) rebuild(c *change, next *View, stale *settings.Rebuild) error {
	prefixes := stale.Prefixes && b.settings.PrefixSearch != settings.PrefixDisabled
	var plans []*rebuilding
	total := 0
	for i, f := range b.base.files {
		r := &rebuilding{file: f, live: f.live(union(b.base.Segments[i].Deleted, b.gone[f]))}
		r.sets = b.recoded(r.live)
		uninfixed := false
		err := mapped.Guard(func() error {
			r.lack(stale.AddColumns)
			uninfixed = r.uninfixed(stale.AddInfix)
			return nil
		})
		if err != nil {
			return err
		}
		r.again = prefixes || uninfixed || len(r.sets) > 0 || len(r.wanted) > 0 && len(f.columnFiles()) >= maxColumnFiles
		if r.again {
			c.merge = append(c.merge, f)
			if err := mapped.Guard(func() error { r.want(roundedColumns(r.live, next.Fields)); return nil }); err != nil {
				return err
			}
		}
		if liveCount(r.live) > 0 && (r.again || len(r.wanted) > 0) {
			plans = append(plans, r)
			total += r.documents()
		}
	}
	if len(plans) == 0 {
		return nil
	}
	group, ctx := errgroup.WithContext(b.ctx)
	crew := b.newCrew(group)
	progress := b.counter(1, total)
	share := max(b.builderShare(min(b.threads(), len(plans))), 1)
	for _, r := range plans {
		crew.Go(func(p *pace.Worker) error {
			return mapped.Guard(func() error { return b.rebuildOne(ctx, r, next, share, p, progress) })
		})
	}
	err := group.Wait()
	c.beside = make(map[*file]*columnFile)
	for _, r := range plans {
		if r.added != nil {
			c.add = append(c.add, r.added)
		}
		if r.beside != nil {
			c.beside[r.file] = r.beside
		}
	}
	if err != nil {
		c.discard(b.ix)
	}
	return err
}

// rebuilding is a segment that is brought up to new settings.
type rebuilding struct {
	file   *file
	live   segment.Live
	wanted []segment.FieldID // columns that it lacks, ascending
	rows   *roaring.Bitmap   // with one of these fields, also those that were deleted
	sets   []*segment.VectorSet
	again  bool // the segment is written again

	added  *file       // the new file: a segment,
	beside *columnFile // or columns
}

// lack returns the columns that the segment is missing. A segment has a column for all its rows or for none, and needs
// none for a field that no row has.
func (r *rebuilding) lack(columns []segment.FieldID) {
	r.rows = roaring.New()
	has := r.file.ColumnFields() // includes damaged columns: their readers report the damage
	for _, id := range columns {
		if _, ok := slices.BinarySearch(has, id); ok {
			continue
		}
		if rows := r.file.Present(id); !rows.IsEmpty() {
			r.wanted = append(r.wanted, id)
			r.rows.Or(rows)
		}
	}
}

// uninfixed reports whether the segment has one of some columns without the infix index that the column should have.
func (r *rebuilding) uninfixed(columns []segment.FieldID) bool {
	return slices.ContainsFunc(columns, func(id segment.FieldID) bool {
		c := r.live.Column(id)
		return c != nil && c.LacksInfix()
	})
}

// want adds columns to those that the segment lacks.
func (r *rebuilding) want(columns []segment.FieldID) {
	for _, id := range columns {
		r.rows.Or(r.file.Present(id))
	}
	r.wanted = append(r.wanted, columns...)
	slices.Sort(r.wanted)
}

// documents returns how many are read.
func (r *rebuilding) documents() int {
	if r.again {
		return liveCount(r.live)
	}
	return int(r.rows.GetCardinality())
}

// rebuildOne gives a segment what a change of settings needs: columns in a file beside it or, if again is set, a new segment in its
// place. share is the memory that it may use. It yields to searches through p.
func (b *batch) rebuildOne(ctx context.Context, r *rebuilding, next *View, share int64, p *pace.Worker, progress func(int)) (err error) {
	if !r.again {
		r.beside, err = b.writeColumns(ctx, r, next.Fields, share, p, progress)
		return err
	}
	var columns *segment.ColumnSet
	if len(r.wanted) > 0 {
		if columns, _, err = newColumnCollector(ctx, b, next.Fields, p, progress).collect(r, liveCount(r.live), r.wanted); err != nil {
			return err
		}
	}
	throttle := func(ctx context.Context, _ int) error { p.Yield(); return ctx.Err() }
	r.added, err = b.ix.mergeFiles(ctx, next, []segment.Live{r.live}, columns, r.sets, throttle)
	return err
}

// recoded returns sets that turn the vectors of a segment into bits, or into another precision, of each embedder for which the batch
// asks that.
func (b *batch) recoded(l segment.Live) []*segment.VectorSet {
	var sets []*segment.VectorSet
	for _, p := range b.plans {
		if p.recodes() && l.Vectors(p.was.ID) != nil {
			sets = append(sets, segment.NewVectorSet(liveCount(l), p.is.shape(), true))
		}
	}
	return sets
}

// columnCollector is the document.Visitor that fills a ColumnSet.
type columnCollector struct {
	ctx      context.Context
	b        *batch
	fields   *settings.Fields
	progress func(int)
	pace     *pace.Worker // nil: it does not yield to searches
	share    int64        // of the memory, in bytes; 0: no bound
	columns  *segment.ColumnSet
	wanted   []segment.FieldID // ascending
	row      segment.Row
	parents  map[string]bool // paths that wanted ones go through
	handles  map[string]int  // path → FieldID, notWanted, or -1
	key      []byte
}

func newColumnCollector(ctx context.Context, b *batch, fields *settings.Fields, p *pace.Worker, progress func(int)) *columnCollector {
	return &columnCollector{ctx: ctx, b: b, fields: fields, progress: progress, pace: p}
}

// collect reads the first n of the wanted columns: as many as fit the share of memory, but at least one. The set covers
// the rows of the segment, or of the segment that it becomes.
func (c *columnCollector) collect(r *rebuilding, rows int, wanted []segment.FieldID) (set *segment.ColumnSet, n int, err error) {
	c.begin(rows, wanted)
	read := docReader{b: c.b}
	defer func() { _ = read.close() }() // leftovers are removed at the next open
	from := r.rows
	if r.again {
		from = r.live.LiveRows()
	}
	done := 0
	for it := from.Iterator(); it.HasNext(); done++ {
		if done%chunkDocuments == 0 {
			if err := c.ctx.Err(); err != nil {
				return nil, 0, err
			}
			c.progress(min(chunkDocuments, int(from.GetCardinality())-done))
			c.spare()
		}
		row := segment.Row(it.Next())
		if c.row = row; r.again {
			if c.row = segment.Row(done); !r.rows.Contains(uint32(row)) {
				continue
			}
		}
		c.pace.Yield()
		if err := c.read(&read, r.live, row); err != nil {
			return nil, 0, err
		}
	}
	return c.columns, len(c.wanted), nil
}

// begin starts empty columns for the given number of rows.
func (c *columnCollector) begin(rows int, wanted []segment.FieldID) {
	c.wanted, c.columns, c.handles = wanted, segment.NewColumnSet(rows, wanted), make(map[string]int)
	c.parents = make(map[string]bool)
	for _, id := range wanted {
		name := c.fields.Info(id).Name
		for at, char := range name {
			if char == '.' {
				c.parents[name[:at]] = true
			}
		}
	}
}

// read adds what a document has to the row c.row of the columns.
func (c *columnCollector) read(r *docReader, l segment.Live, row segment.Row) error {
	doc, err := r.stored(l, row)
	if err != nil {
		return err
	}
	return c.add(l.ExternalID(row), doc)
}

func (c *columnCollector) add(external, doc []byte) error {
	if err := document.Walk(doc, c); err != nil {
		return fmt.Errorf("cannot index the document %s: %w", external, err)
	}
	return nil
}

// spare leaves out the second half of the columns while they take more than the share of the memory.
func (c *columnCollector) spare() {
	for c.share > 0 && len(c.wanted) > 1 && c.columns.MemoryBytes() > c.share {
		keep := len(c.wanted) / 2
		for _, f := range c.wanted[keep:] {
			c.columns.Drop(f)
		}
		c.wanted, c.handles = c.wanted[:keep], make(map[string]int)
	}
}

// Field implements document.Visitor.
func (c *columnCollector) Field(path []byte) int {
	h, ok := c.handles[string(path)]
	if !ok {
		h = c.handleOf(string(path))
		c.handles[string(path)] = h
	}
	return h
}

// handleOf returns what the walk over a document is to do at a path: the field if its values are wanted,
// notWanted if only fields below are, −1 to skip the whole value.
func (c *columnCollector) handleOf(path string) int {
	if path == settings.VectorsField {
		return -1
	}
	if id, ok := c.fields.ID(path); ok {
		if _, ok := slices.BinarySearch(c.wanted, id); ok {
			return int(id)
		}
	}
	if c.parents[path] {
		return notWanted
	}
	return -1
}

// notWanted is the handle of a field that gets no column, but some of whose members do.
const notWanted = 1 << 20

// Visit implements document.Visitor.
func (c *columnCollector) Visit(int) {}

// String implements document.Visitor.
func (c *columnCollector) String(field int, s []byte, _ []int) {
	if field != notWanted {
		// An empty string is not a value: it is not filtered, sorted or counted.
		if c.key = text.FacetKey(c.key[:0], s); len(c.key) > 0 {
			c.columns.String(c.row, segment.FieldID(field), c.key, s)
		}
	}
}

// Number implements document.Visitor.
func (c *columnCollector) Number(field int, _ []byte, value numeric.Value, _ []int) {
	if field != notWanted {
		c.columns.Number(c.row, segment.FieldID(field), value)
	}
}

// Bool implements document.Visitor.
func (c *columnCollector) Bool(field int, value bool, _ []int) {
	if field != notWanted {
		s := boolText(value)
		c.columns.String(c.row, segment.FieldID(field), s, s)
	}
}

// Null implements document.Visitor.
func (c *columnCollector) Null(field int) {
	if field != notWanted {
		c.columns.Null(c.row, segment.FieldID(field))
	}
}

// Empty implements document.Visitor.
func (c *columnCollector) Empty(field int) {
	if field != notWanted {
		c.columns.Empty(c.row, segment.FieldID(field))
	}
}
