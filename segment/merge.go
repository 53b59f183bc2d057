package segment

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// MergeOptions steers Merge.
type MergeOptions struct {
	KeepColumn  func(FieldID) bool // nil keeps all columns
	KeepElement func(FieldID) bool // of the values of elements, nil keeps those of all fields
	Columns     *ColumnSet         // columns to add or replace, by rows of the output
	Infix       func(FieldID) bool // columns that get an infix index; nil: those for which an input has one
	Prefixes    bool               // write short-prefix postings

	// Document returns the new document of a row of the output, as compact JSON that is valid until the next call, or nil to copy the
	// stored one. A new document has the words and places of the stored one, and both have at most LongText bytes. If it has other
	// fields, Present must have them. Merge calls Document once per row, in order, before it reads Columns and Present, so Document
	// may fill them. nil: all documents are copied.
	Document func(Row) ([]byte, error)
	// Present has the rows of the output with certain fields, replacing those of the inputs. nil: none.
	Present map[FieldID]*roaring.Bitmap

	KeepVectors  func(EmbedderID) bool // nil keeps those of all embedders
	Vectors      []*VectorSet          // vectors to add or replace, at most one set an embedder
	GraphThreads int                   // goroutines that link vectors into a graph; 1 when 0

	Throttle func(bytes int) error // called as bytes are written; an error stops the merge
}

// keeps reports whether the inputs' columns of field f are part of the output. They are not if the caller replaces them.
func (o *MergeOptions) keeps(f FieldID) bool {
	if o.Columns != nil && o.Columns.has(f) {
		return false // replaced
	}
	return o.KeepColumn == nil || o.KeepColumn(f)
}

// noRow marks a deleted row in a map of rows.
const noRow = math.MaxUint32

// origin says where a row of the output comes from.
type origin struct {
	in  uint32
	row uint32
}

// merger is a merge under way.
type merger struct {
	ctx     context.Context
	in      []Live
	o       MergeOptions
	f       *fileWriter
	origins []origin   // by row of the output
	rows    [][]uint32 // by input, then its row: the row of the output, or noRow
	maps    []rowMap   // by input: the same
	intact  []bool     // by input: no row is deleted

	resident      int      // bytes read since the inputs' pages were given back
	documentBytes int64    // of the output, once its documents are written
	prefixes      []uint64 // keys of the output's prefixes, once its words are written
	frequent      *frequentWords
}

// Merge writes the live rows of the inputs as one segment, ordered by DocID. For a single input without deleted rows, unchanged
// sections are copied byte by byte. Merge fails on damage in an input, when the context is done and when Throttle fails; then it
// leaves no file.
func Merge(ctx context.Context, fs vfs.FS, name string, in []Live, o MergeOptions) (info Info, err error) {
	err = mapped.Guard(func() (err error) {
		info, err = merge(ctx, fs, name, in, o)
		return err
	})
	return info, err
}

// merge is Merge without the guard: reading mapped inputs may panic. After an error or a panic it leaves no file.
func merge(ctx context.Context, fs vfs.FS, name string, in []Live, o MergeOptions) (_ Info, err error) {
	m := &merger{ctx: ctx, in: in, o: o}
	// Copied data gets new checksums: do not hide damage by that.
	for _, l := range in {
		if err := l.checkSums(m.yield); err != nil {
			return Info{}, fmt.Errorf("cannot merge to %s: %w", name, err)
		}
	}
	if err := m.order(); err != nil {
		return Info{}, fmt.Errorf("cannot merge to %s: %w", name, err)
	}
	if o.Columns != nil && o.Columns.rows != len(m.origins) {
		return Info{}, fmt.Errorf("cannot merge to %s: columns of %d rows were made for %d", name, o.Columns.rows, len(m.origins))
	}
	if err := o.checkVectorSets(len(m.origins)); err != nil {
		return Info{}, fmt.Errorf("cannot merge to %s: %w", name, err)
	}
	f, err := createFile(fs, name, m.throttle)
	if err != nil {
		return Info{}, err
	}
	m.f = f
	defer func() { // of a page that cannot be read
		if p := recover(); p != nil {
			_ = f.abort(nil)
			panic(p)
		}
	}()
	for _, l := range in { // what an input does not record, the output does not either
		f.features = min(f.features, l.footer.features)
	}
	if err := m.write(); err != nil {
		return Info{}, fmt.Errorf("cannot merge to %s: %w", name, f.abort(err))
	}
	size, err := f.finish()
	if err != nil {
		return Info{}, err
	}
	return Info{Rows: len(m.origins), Bytes: size, DocumentBytes: m.documentBytes}, nil
}

// residentBytes is after how many bytes a merge, or a check of checksums, releases the pages that it read. They stay in the system's
// cache for searches. Otherwise a process that merges 500 MB would show 500 MB more as its own memory. (A variable, so that tests can
// lower it.)
var residentBytes = 16 << 20

// throttle is asked as bytes are written, about as many as were read meanwhile.
func (m *merger) throttle(bytes int) error {
	m.read(bytes)
	if m.o.Throttle == nil {
		return nil
	}
	return m.o.Throttle(bytes)
}

// yield lets the throttle slow down work that writes nothing. It returns the error that should end the merge, if any.
func (m *merger) yield() error {
	if err := m.ctx.Err(); err != nil || m.o.Throttle == nil {
		return err
	}
	return m.o.Throttle(0)
}

// read releases the inputs' pages after every residentBytes.
func (m *merger) read(bytes int) {
	if m.resident += bytes; m.resident < residentBytes {
		return
	}
	m.resident = 0
	for _, l := range m.in {
		l.giveBack()
	}
}

// order lays the live rows of all inputs in one order.
func (m *merger) order() error {
	total := 0
	next := make([]int, len(m.in)) // row by input
	for _, l := range m.in {
		total += l.rows
		rows := make([]uint32, l.rows)
		intact := true
		if l.Deleted != nil {
			for it := l.Deleted.Iterator(); it.HasNext(); {
				if row := it.Next(); int(row) < l.rows {
					rows[row], intact = noRow, false
				}
			}
		}
		m.rows = append(m.rows, rows)
		m.intact = append(m.intact, intact)
	}
	if total > maxRows {
		return fmt.Errorf("%d rows are more than a segment holds", total)
	}
	m.origins = make([]origin, 0, total)
	last := int64(-1)
	for {
		if len(m.origins)%askEvery == 0 {
			if err := m.yield(); err != nil {
				return err
			}
		}
		best, id := -1, int64(math.MaxInt64)
		for i, l := range m.in {
			for next[i] < l.rows && m.rows[i][next[i]] == noRow {
				next[i]++
			}
			if next[i] < l.rows {
				if d := int64(l.DocID(Row(next[i]))); d < id {
					best, id = i, d
				}
			}
		}
		if best < 0 {
			break
		}
		if id <= last {
			return fmt.Errorf("document %d lives in two rows, or rows are not in order", id)
		}
		last = id
		m.rows[best][next[best]] = uint32(len(m.origins))
		m.origins = append(m.origins, origin{uint32(best), uint32(next[best])})
		next[best]++
	}
	for _, rows := range m.rows {
		m.maps = append(m.maps, newRowMap(rows))
	}
	return nil
}

// check returns the error that should end the merge, if any.
func (m *merger) check() error {
	if m.f.err != nil {
		return m.f.err
	}
	return m.ctx.Err()
}

// write writes all sections in the order of the table. A single input without deleted rows takes the path
// that copies sections.
func (m *merger) write() error {
	if len(m.in) == 1 && m.intact[0] {
		return m.copyOne()
	}
	for i := range sectionKinds {
		if k := &sectionKinds[i]; k.merge != nil {
			if err := m.run(k.merge); err != nil {
				return err
			}
		}
	}
	return m.check()
}

// run calls the function of a section, unless the merge has failed or was cancelled.
func (m *merger) run(write func(*merger) error) error {
	if err := m.check(); err != nil {
		return err
	}
	return write(m)
}

// copyOne writes the only input, which has no deleted rows, with other columns, prefixes or vectors.
func (m *merger) copyOne() error {
	m.documentBytes = m.in[0].meta.documentBytes
	for i := range sectionKinds {
		k := &sectionKinds[i]
		lead := k
		if k.with != 0 {
			lead = kindOf(k.with)
		}
		var err error
		switch {
		case k.copy != nil:
			err = m.run(k.copy)
		case lead.copy == nil:
			err = m.copySections(k.tag)
		}
		if err != nil {
			return err
		}
	}
	return m.check()
}

// copyRest copies the sections of kinds that this program does not know, and ends the file with its checksums.
func (m *merger) copyRest() error {
	for _, s := range m.in[0].sections {
		if kindOf(s.tag) == nil {
			if err := m.copySection(s); err != nil {
				return err
			}
		}
	}
	return m.writeSums()
}

// copySections copies the sections of some kinds of the only input.
func (m *merger) copySections(tags ...tag) error {
	for _, s := range m.in[0].sections {
		if slices.Contains(tags, s.tag) {
			if err := m.copySection(s); err != nil {
				return err
			}
		}
	}
	return nil
}

// copySection copies a section as it is.
func (m *merger) copySection(s section) error {
	p := m.in[0].data[s.offset : s.offset+s.length]
	m.f.begin(s.tag, s.aux)
	for len(p) > 0 {
		if err := m.check(); err != nil {
			return err
		}
		n := min(len(p), writeStep)
		m.in[0].blocks.gather(p[:n])
		m.f.Write(p[:n])
		p = p[n:]
	}
	m.f.end()
	return nil
}

// unionFields returns the fields that some input has, ascending.
func (m *merger) unionFields(of func(Live) []FieldID) []FieldID {
	var all []FieldID
	for _, l := range m.in {
		all = append(all, of(l)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// rowBits is a set of rows of the output, filled in any order.
type rowBits struct{ words []uint64 }

func newRowBits(rows int) *rowBits { return &rowBits{make([]uint64, (rows+63)/64)} }

// addMapped adds rows of an input by their rows in the output; to has those, noRow for deleted ones.
func (b *rowBits) addMapped(rows, to []uint32) {
	for _, r := range rows {
		if int(r) < len(to) && to[r] != noRow {
			b.words[to[r]/64] |= 1 << (to[r] % 64)
		}
	}
}

// take returns the rows in order and empties the set.
func (b *rowBits) take() rowSet {
	var s rowSet
	for i, w := range b.words {
		for at := uint32(i) * 64; w != 0; {
			skip := bits.TrailingZeros64(w)
			n := bits.TrailingZeros64(^(w >> skip))
			at += uint32(skip)
			s.addRun(at, at+uint32(n)-1)
			at, w = at+uint32(n), w>>skip>>n
		}
		b.words[i] = 0
	}
	return s
}
