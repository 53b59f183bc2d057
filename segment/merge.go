package segment

import (
	"context"
	"fmt"
	"math"
	"slices"

	"svc/internal/vfs"
)

// MergeOptions steers Merge.
type MergeOptions struct {
	KeepColumn func(FieldID) bool // nil keeps all columns
	Columns    *ColumnSet         // columns to add or replace; rows are those of the output
	Prefixes   bool               // write short-prefix postings

	KeepVectors  func(EmbedderID) bool // nil keeps those of all embedders
	Vectors      []*VectorSet          // vectors to add or replace, at most one set an embedder
	GraphThreads int                   // goroutines that link vectors into a graph; 1 when 0

	Throttle func(bytes int) error // called as bytes are written; an error stops the merge
}

func (o *MergeOptions) keeps(f FieldID) bool {
	if o.Columns != nil && o.Columns.columns[f] != nil {
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
	intact  []bool     // by input: no row is deleted
}

// Merge writes the live rows of the inputs as one segment, ordered by DocID.
// A merge of one input without deleted rows copies the sections that stay byte by byte.
// Damage in an input, a done context and an error of Throttle end the merge; no file is left then.
func Merge(ctx context.Context, fs vfs.FS, name string, in []Live, o MergeOptions) (Info, error) {
	m := &merger{ctx: ctx, in: in, o: o}
	// What is copied gets new checksums: do not give them to damaged bytes.
	for _, l := range in {
		if err := l.CheckSums(ctx); err != nil {
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
	f, err := createFile(fs, name, o.Throttle)
	if err != nil {
		return Info{}, err
	}
	m.f = f
	for _, l := range in { // what an input does not record, the output does not either
		f.features = min(f.features, l.footer.features)
	}
	documentBytes, err := m.write()
	if err != nil {
		return Info{}, fmt.Errorf("cannot merge to %s: %w", name, f.abort(err))
	}
	size, err := f.finish()
	if err != nil {
		return Info{}, err
	}
	return Info{Rows: len(m.origins), Bytes: size, DocumentBytes: documentBytes}, nil
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
			return nil
		}
		if id <= last {
			return fmt.Errorf("document %d lives in two rows, or rows are not in order", id)
		}
		last = id
		m.rows[best][next[best]] = uint32(len(m.origins))
		m.origins = append(m.origins, origin{uint32(best), uint32(next[best])})
		next[best]++
	}
}

// check returns the error that should end the merge, if any.
func (m *merger) check() error {
	if m.f.err != nil {
		return m.f.err
	}
	return m.ctx.Err()
}

func (m *merger) write() (documentBytes int64, err error) {
	if len(m.in) == 1 && m.intact[0] {
		return m.in[0].meta.documentBytes, m.copyOne()
	}
	if documentBytes, err = m.mergeDocuments(); err != nil {
		return 0, err
	}
	writeMeta(m.f, meta{rows: len(m.origins), documentBytes: documentBytes, prefixes: m.o.Prefixes})
	m.mergeIDs()
	if err := m.mergeWords(); err != nil {
		return 0, err
	}
	m.mergePresence(tagPresence, func(r *Reader) *presenceReader { return &r.presence })
	m.mergePresence(tagDottedKeys, func(r *Reader) *presenceReader { return &r.dottedKeys })
	m.mergeWordCounts()
	if err := m.mergeColumns(); err != nil {
		return 0, err
	}
	m.mergeGeo()
	m.mergeShapes()
	if err := m.mergeVectors(nil); err != nil {
		return 0, err
	}
	return documentBytes, m.check()
}

// copyOne writes the only input, which has no deleted rows, with other columns or prefixes.
func (m *merger) copyOne() error {
	r := m.in[0].Reader
	copied := make(map[EmbedderID]bool)
	for _, s := range r.sections {
		if err := m.check(); err != nil {
			return err
		}
		p := r.data[s.offset : s.offset+s.length]
		switch s.tag {
		case tagMeta:
			writeMeta(m.f, meta{rows: r.rows, documentBytes: r.meta.documentBytes, prefixes: m.o.Prefixes})
		case tagColumns:
			if err := m.mergeColumns(); err != nil {
				return err
			}
		case tagColumnDir: // written with the columns
		case tagPrefixPosts, tagPrefixes:
			if m.o.Prefixes {
				if err := m.copySection(s, p); err != nil {
					return err
				}
			}
		case tagVectors, tagVectorSets, tagCodes, tagGraph:
			e := EmbedderID(s.aux)
			if m.o.vectorSet(e) == nil && m.o.keepsVectors(e) {
				copied[e] = true
				if err := m.copySection(s, p); err != nil {
					return err
				}
			}
		default:
			if err := m.copySection(s, p); err != nil {
				return err
			}
		}
	}
	if err := m.mergeVectors(copied); err != nil {
		return err
	}
	if m.o.Prefixes && !r.meta.prefixes {
		var c prefixCounter
		it := r.Terms(nil, nil, nil)
		for it.Next() {
			c.word(it.Word())
		}
		if err := it.Err(); err != nil {
			return err
		}
		return m.mergePrefixes(c.finish())
	}
	return nil
}

// copySection copies a section as it is.
func (m *merger) copySection(s section, p []byte) error {
	m.f.begin(s.tag, s.aux)
	for len(p) > 0 {
		if err := m.check(); err != nil {
			return err
		}
		n := min(len(p), writeBufferBytes)
		m.f.Write(p[:n])
		p = p[n:]
	}
	m.f.end()
	return nil
}

func (m *merger) mergeIDs() {
	writeDocIDs(m.f, len(m.origins), func(row int) DocID {
		o := m.origins[row]
		return m.in[o.in].DocID(Row(o.row))
	})
	writeExternalIDs(m.f, len(m.origins), func(row int) []byte {
		o := m.origins[row]
		return m.in[o.in].ExternalID(Row(o.row))
	})
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

// mergePresence writes a section of rows by field; of says where an input has its own.
func (m *merger) mergePresence(t tag, of func(*Reader) *presenceReader) {
	fields := m.unionFields(func(l Live) []FieldID {
		p := of(l.Reader)
		all := make([]FieldID, p.fields)
		for i := range all {
			all[i] = p.field(i)
		}
		return all
	})
	have := newRowBits(len(m.origins))
	sets := make([]fieldValue[rowSet], 0, len(fields))
	var old []uint32
	for _, f := range fields {
		for i, l := range m.in {
			if list, ok := of(l.Reader).find(f); ok {
				old = list.appendTo(old[:0])
				have.addMapped(old, m.rows[i])
			}
		}
		if set := have.take(); set.n > 0 { // else all its rows are deleted
			sets = append(sets, fieldValue[rowSet]{f, set})
		}
	}
	writePresence(m.f, t, 0, sets)
}

// rowBits is a set of rows of the output, filled in any order.
type rowBits struct{ words []uint64 }

func newRowBits(rows int) *rowBits { return &rowBits{make([]uint64, (rows+63)/64)} }

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
		if w == 0 {
			continue
		}
		for bit := range uint32(64) {
			if w>>bit&1 != 0 {
				s.add(uint32(i)*64 + bit)
			}
		}
		b.words[i] = 0
	}
	return s
}

func (m *merger) mergeWordCounts() {
	fields := m.unionFields(func(l Live) []FieldID {
		var all []FieldID
		for f := range l.wordCounts {
			all = append(all, f)
		}
		return all
	})
	counts := make([]byte, len(m.origins))
	merged := make([]fieldCounts, 0, len(fields))
	kept := fields[:0]
	for _, f := range fields {
		for i, l := range m.in {
			c := l.wordCounts[f]
			all := c.all()
			for j, row := range all.rows {
				if int(row) < l.rows && m.rows[i][row] != noRow {
					counts[m.rows[i][row]] = all.counts[j]
				}
			}
		}
		var c fieldCounts
		for row, n := range counts {
			if n > 0 {
				c.add(uint32(row), int(n))
				counts[row] = 0
			}
		}
		if len(c.rows) > 0 {
			merged = append(merged, c)
			kept = append(kept, f)
		}
	}
	at := 0
	writeWordCounts(m.f, len(m.origins), len(kept), func() (FieldID, *fieldCounts) {
		at++
		return kept[at-1], &merged[at-1]
	})
}

func (m *merger) mergeGeo() {
	type point struct {
		row      uint32
		lat, lng float64
	}
	var points []point
	for i, l := range m.in {
		g := l.geo
		if g == nil {
			continue
		}
		for j := range g.n {
			if row := g.row(j); int(row) < l.rows && m.rows[i][row] != noRow {
				lat, lng := g.at(j)
				points = append(points, point{m.rows[i][row], lat, lng})
			}
		}
	}
	slices.SortFunc(points, func(a, b point) int { return int(int64(a.row) - int64(b.row)) })
	var g geoPoints
	for _, p := range points {
		g.add(p.row, p.lat, p.lng)
	}
	g.write(m.f)
}
