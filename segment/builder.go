package segment

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/blevesearch/vellum"

	"svc/internal/vfs"
)

// BuilderOptions says what a Builder writes beside what it is given.
type BuilderOptions struct {
	Columns  []FieldID // fields that get a column even when no row has a value
	Prefixes bool      // write short-prefix postings (prefixSearch is not disabled)

	Embedders    []EmbedderShape // those that rows may have vectors of
	GraphThreads int             // goroutines that link vectors into a graph; 1 when 0
}

// Builder gathers rows in memory and writes them as one segment file. Rows
// come one after another (StartDoc, calls in any order, EndDoc) in strictly ascending
// DocID. Every argument slice is copied where it is kept. Not for several goroutines.
type Builder struct {
	options  BuilderOptions
	docIDs   []DocID
	ids      externalIDs
	docs     documentWriter
	words    inverter
	presence fieldTable[rowSet]
	dotted   fieldTable[rowSet] // keys
	counts   fieldTable[fieldCounts]
	columns  *ColumnSet
	geo      geoPoints
	shapes   shapeParts
	vectors  []vectorStore // by embedder
	row      uint32        // of the open document
}

// fieldTable maps the fields that were seen to a T each.
type fieldTable[T any] struct {
	index []int32 // by FieldID: place in all + 1
	all   []fieldValue[T]
}

type fieldValue[T any] struct {
	field FieldID
	value T
}

func (t *fieldTable[T]) get(f FieldID) *T {
	if int(f) >= len(t.index) {
		t.index = append(t.index, make([]int32, int(f)+1-len(t.index))...)
	}
	if t.index[f] == 0 {
		t.all = append(t.all, fieldValue[T]{field: f})
		t.index[f] = int32(len(t.all))
	}
	return &t.all[t.index[f]-1].value
}

// sorted returns the values by ascending field. The table is not used afterwards.
func (t *fieldTable[T]) sorted() []fieldValue[T] {
	slices.SortFunc(t.all, func(a, b fieldValue[T]) int { return int(a.field) - int(b.field) })
	t.index = nil
	return t.all
}

// NewBuilder makes an empty builder.
func NewBuilder(o BuilderOptions) *Builder {
	b := &Builder{options: o}
	b.Reset()
	return b
}

// Reset forgets all rows.
func (b *Builder) Reset() {
	*b = Builder{options: b.options, columns: NewColumnSet(0, b.options.Columns)}
	for _, shape := range b.options.Embedders {
		b.vectors = append(b.vectors, vectorStore{shape: shape})
	}
}

// StartDoc begins a row. raw is the document as compact JSON, externalID its canonical id text.
func (b *Builder) StartDoc(id DocID, externalID []byte, raw []byte) {
	b.row = uint32(len(b.docIDs))
	b.docIDs = append(b.docIDs, id)
	b.ids.add(externalID)
	b.docs.add(raw)
}

// Present records that the document has field f (any path, parents too, also null).
func (b *Builder) Present(f FieldID) { b.presence.get(f).add(b.row) }

// DottedKey records that the whole path of f, which has a dot, is one first-level key of the
// document: {"a.b": 1}, not {"a": {"b": 1}}. The field is to be Present too.
func (b *Builder) DottedKey(f FieldID) { b.dotted.get(f).add(b.row) }

// Word records one occurrence of a normalised word. Positions of a (field,
// word) come in ascending order. An empty word, and one of 64 KiB or more, is left out.
func (b *Builder) Word(f FieldID, word []byte, position uint16) {
	b.words.add(b.row, f, word, position)
}

// WordCount records how many indexed words the field has in this row; more than 30 are kept as 31.
func (b *Builder) WordCount(f FieldID, n int) { b.counts.get(f).add(b.row, n) }

// Number adds a number to the column of f.
func (b *Builder) Number(f FieldID, x float64) { b.columns.Number(Row(b.row), f, x) }

// String adds a string to the column of f: its normalised form (filters, sort, facet keys) and the spelling to show.
func (b *Builder) String(f FieldID, normalized, original []byte) {
	b.columns.String(Row(b.row), f, normalized, original)
}

// Null marks a row with a null value; Empty one with "", [] or {}.
func (b *Builder) Null(f FieldID)  { b.columns.Null(Row(b.row), f) }
func (b *Builder) Empty(f FieldID) { b.columns.Empty(Row(b.row), f) }

// Geo gives the row its point, in degrees. Of several the first is kept.
func (b *Builder) Geo(lat, lng float64) { b.geo.add(b.row, lat, lng) }

// Shape gives the row one more part of its shape. A part with an empty ring, or a position that is no number, is left out.
func (b *Builder) Shape(p *ShapePart) { b.shapes.add(b.row, p) }

// Vectors gives the row its entry for one of the embedders of the options; of several for one embedder the first is kept.
// The others make Write fail, as does an entry that does not fit the embedder's dimensions.
func (b *Builder) Vectors(e EmbedderID, v DocVectors) {
	for i := range b.vectors {
		if s := &b.vectors[i]; s.shape.ID == e {
			s.add(b.row, v)
			return
		}
	}
	b.vectors = append(b.vectors, vectorStore{shape: EmbedderShape{ID: e}, err: fmt.Errorf("embedder %d is unknown to the builder", e)})
}

// EndDoc ends a row.
func (b *Builder) EndDoc() {}

// Rows returns the number of rows begun.
func (b *Builder) Rows() int { return len(b.docIDs) }

// MemoryBytes returns about what the builder holds.
func (b *Builder) MemoryBytes() int64 {
	n := int64(cap(b.docIDs)*4+cap(b.ids.ends)*4+cap(b.ids.text)) + b.docs.memoryBytes() + b.words.memoryBytes() +
		b.columns.memoryBytes() + b.geo.memoryBytes() + b.shapes.memoryBytes()
	for i := range b.vectors {
		n += b.vectors[i].memoryBytes()
	}
	for _, t := range []*fieldTable[rowSet]{&b.presence, &b.dotted} {
		for i := range t.all {
			n += int64(cap(t.all[i].value.runs)) * 8
		}
	}
	for i := range b.counts.all {
		n += int64(cap(b.counts.all[i].value.rows)) * 5
	}
	return n
}

// Info describes a written segment.
type Info struct {
	Rows          int
	Bytes         int64 // of the file
	DocumentBytes int64 // of the documents, uncompressed
}

// Write writes all rows to a new file, syncs and closes it. The caller makes its name durable.
// On an error, also that of a done context, no file is left.
func (b *Builder) Write(ctx context.Context, fs vfs.FS, name string) (Info, error) {
	f, err := createFile(fs, name, nil)
	if err != nil {
		return Info{}, err
	}
	rows := len(b.docIDs)
	f.limit(int(max(b.words.slabs.size, b.words.words.arena.size)), "words in memory")
	b.docs.write(f)
	writeMeta(f, meta{rows: rows, documentBytes: b.docs.raw, prefixes: b.options.Prefixes})
	writeDocIDs(f, rows, func(row int) DocID { return b.docIDs[row] })
	writeExternalIDs(f, rows, b.ids.get)
	if err := b.writeWords(f); err != nil {
		return Info{}, f.abort(err)
	}

	writePresence(f, tagPresence, 0, b.presence.sorted())
	writePresence(f, tagDottedKeys, 0, b.dotted.sorted())
	counts := b.counts.sorted()
	writeWordCounts(f, rows, len(counts), func() (FieldID, *fieldCounts) {
		c := &counts[0]
		counts = counts[1:]
		return c.field, &c.value
	})
	columns := newColumnWriter(f, rows)
	for _, field := range b.columns.fields() {
		columns.encode(field, b.columns.columns[field])
	}
	columns.finish()
	b.geo.write(f)
	b.shapes.write(f)
	if err := b.writeVectors(ctx, f); err != nil {
		return Info{}, f.abort(err)
	}
	size, err := f.finish()
	if err != nil {
		return Info{}, err
	}
	return Info{Rows: rows, Bytes: size, DocumentBytes: b.docs.raw}, nil
}

func (b *Builder) writeVectors(ctx context.Context, f *fileWriter) error {
	for i := range b.vectors {
		s := &b.vectors[i]
		if s.err != nil {
			return fmt.Errorf("cannot write segment %s: %w", f.name, s.err)
		}
		w := vectorWriter{ctx: ctx, f: f, shape: s.shape, rows: len(b.docIDs), entries: &s.vectorEntries, full: s.full, threads: b.options.GraphThreads}
		if err := w.write(); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// writeWords writes postings, dictionary and prefix postings.
func (b *Builder) writeWords(f *fileWriter) error {
	order := b.words.sorted()
	d, err := newDictionaryWriter(f, len(order))
	if err != nil {
		return err
	}
	var counter prefixCounter
	var rows []uint32
	var positions, scratch []byte
	var fields []fieldRows
	for i := 0; i < len(order); {
		word := b.words.words.key(int(order[i].number))
		rows, positions, fields = rows[:0], positions[:0], fields[:0]
		for ; i < len(order) && bytes.Equal(b.words.words.key(int(order[i].number)), word); i++ {
			var fr fieldRows
			fr, rows, positions, scratch = b.words.field(order[i], rows, positions, scratch)
			fields = append(fields, fr)
		}
		counter.word(word)
		if err := d.add(word, fields); err != nil {
			return err
		}
	}
	if err := d.finish(); err != nil {
		return err
	}
	if !b.options.Prefixes {
		return nil
	}
	b.writePrefixes(f, order, counter.finish())
	return nil
}

// writePrefixes writes the postings of the prefixes.
func (b *Builder) writePrefixes(f *fileWriter, order []wordOrder, keys []uint64) {
	f.begin(tagPrefixPosts, 0)
	w := prefixWriter{post: postingWriter{w: f}}
	var u union
	var rows []uint32
	var positions, scratch []byte
	slices.Sort(keys)
	for _, key := range keys {
		n := int(key & 0xff)
		mask := ^uint64(0) << (64 - 8*n)
		head := key >> 8 << 32 & mask
		i, _ := slices.BinarySearchFunc(order, head, func(w wordOrder, head uint64) int {
			if w.head < head {
				return -1
			}
			return 1
		})
		for ; i < len(order) && order[i].head&mask == head; i++ {
			if _, ok := prefixOf(b.words.words.key(int(order[i].number)), n); !ok {
				continue
			}
			var fr fieldRows
			fr, rows, positions, scratch = b.words.field(order[i], rows[:0], positions[:0], scratch)
			u.add(fr.id, fr.rows, fr.positions)
		}
		w.write(key, u.take())
	}
	f.end()
	f.add(tagPrefixes, 0, w.table())
}

// dictionaryWriter writes postings to their section as words come in byte
// order, and the dictionary after them. The FST of a dictionary is kept in memory
// until then; it is small beside the postings.
type dictionaryWriter struct {
	f    *fileWriter
	post postingWriter
	fst  bytes.Buffer
	b    *vellum.Builder
}

// newDictionaryWriter opens the postings section for up to so many words.
func newDictionaryWriter(f *fileWriter, words int) (*dictionaryWriter, error) {
	d := &dictionaryWriter{f: f, post: postingWriter{w: f}}
	// The registry finds states that are there already; its size matters only to small dictionaries, which it would dwarf.
	o := vellum.BuilderOpts{Encoder: fstVersion, RegistryTableSize: max(64, min(words, 10000)), RegistryMRUSize: 2}
	var err error
	if d.b, err = vellum.New(&d.fst, &o); err != nil {
		return nil, err
	}
	f.begin(tagPostings, 0)
	return d, nil
}

func (d *dictionaryWriter) add(word []byte, fields []fieldRows) error {
	return d.b.Insert(word, d.post.write(fields))
}

func (d *dictionaryWriter) finish() error {
	d.f.end()
	if err := d.b.Close(); err != nil {
		return err
	}
	d.f.limit(d.fst.Len(), "the dictionary")
	d.f.add(tagTerms, 0, d.fst.Bytes())
	return nil
}
