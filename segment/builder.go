package segment

import (
	"context"
	"fmt"
	"slices"

	"svc/internal/geo"
	"svc/internal/invariant"
	"svc/internal/mapped"
	"svc/internal/numeric"
	"svc/internal/vfs"
)

// BuilderOptions says what a Builder writes besides its input.
type BuilderOptions struct {
	Columns  []FieldID // fields that get a column even when no row has a value
	Prefixes bool      // write short-prefix postings (prefixSearch is not disabled)

	Embedders    []EmbedderShape // those that rows may have vectors of
	GraphThreads int             // goroutines that link vectors into a graph; 1 when 0

	Infix func(FieldID) bool // columns that get an infix index; nil: none

	Dictionaries *DocumentDictionaries // what documents may be compressed against; nil: the builder makes its own

	Throttle func(bytes int) error // called before bytes are written; it may wait; nil: none

	// Spool creates a file for large documents, so that they do not stay in memory. The Builder removes it. nil: they stay in memory.
	Spool func() (*mapped.Spool, error)
}

// Builder collects rows in memory and writes them as one segment file. Rows come one after another (StartDoc, calls in any order,
// EndDoc) in strictly ascending DocID. It copies what it keeps of its arguments. Not safe for concurrent use.
type Builder struct {
	options  BuilderOptions
	docIDs   []DocID
	ids      externalIDs
	docs     documentWriter
	raw      []byte // of the open document
	words    inverter
	runs     wordRuns       // words that are no longer in memory
	analysis []AnalysisPart // nil: not recorded
	presence fieldTable[rowSet]
	dotted   fieldTable[rowSet] // keys
	counts   fieldTable[fieldCounts]
	columns  *ColumnSet
	geo      geoPoints
	shapes   shapeParts
	elements elementBuilder
	vectors  []vectorStore // by embedder
	row      uint32        // of the open document

	concordances concordances

	// Used while writing the prefixes of the words.
	order    []wordOrder
	lists    wordLists
	prefixes []uint64
	frequent *frequentWords
}

// fieldTable maps the fields that were seen to a T each.
type fieldTable[T any] struct {
	index []int32 // by FieldID: place in all + 1
	all   []fieldValue[T]
}

// fieldValue is the entry of a field.
type fieldValue[T any] struct {
	field FieldID
	value T
}

// get returns the value of field f, and adds the zero value if f is new. The pointer is valid until the next
// call, which may move all values.
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

// Reset forgets all rows. A Builder with a Spool ends with it.
func (b *Builder) Reset() {
	_, _, _ = b.docs.spool.Close(), b.concordances.spool.Close(), b.runs.close() // the rest of a temporary file does no harm
	*b = Builder{options: b.options, columns: NewColumnSet(0, b.options.Columns)}
	b.docs.place, b.docs.shared = b.options.Spool, b.options.Dictionaries
	for _, shape := range b.options.Embedders {
		b.vectors = append(b.vectors, vectorStore{shape: shape})
	}
}

// StartDoc begins a row. raw is the document as compact JSON, externalID its canonical id text. raw stays as it is up to EndDoc.
func (b *Builder) StartDoc(id DocID, externalID []byte, raw []byte) {
	if invariant.Enabled {
		b.checkNext(id)
	}
	b.row = uint32(len(b.docIDs))
	b.docIDs = append(b.docIDs, id)
	b.ids.add(externalID)
	b.docs.add(raw)
	b.raw, b.concordances.scanned = raw, false
}

// Present records that the document has field f (any path, parents too, also null).
func (b *Builder) Present(f FieldID) { b.presence.get(f).add(b.row) }

// DottedKey records that the whole path of f, which has a dot, is one first-level key of the document: {"a.b": 1}, not {"a": {"b":
// 1}}. The caller must call Present for the field, too.
func (b *Builder) DottedKey(f FieldID) { b.dotted.get(f).add(b.row) }

// Word records one occurrence of a normalised word. Positions of a (field,
// word) come in ascending order. An empty word, and one of 64 KiB or more, is left out.
func (b *Builder) Word(f FieldID, word []byte, position uint16) {
	b.words.add(b.row, f, word, position)
}

// WordCount records how many indexed words the field has in this row. Counts above 30 are stored as 31.
func (b *Builder) WordCount(f FieldID, n int) { b.counts.get(f).add(b.row, n) }

// Number adds a number to the column of f.
func (b *Builder) Number(f FieldID, x numeric.Value) { b.column(f).number(b.row, x) }

// String adds a string to the column of f: its normalised form (filters, sort, facet keys) and the spelling to show.
func (b *Builder) String(f FieldID, normalized, original []byte) {
	b.column(f).string(b.row, normalized, original)
}

// column returns the column of f, to add a value that no element has.
func (b *Builder) column(f FieldID) *columnBuilder {
	c := b.columns.column(f)
	if c.inElements != nil {
		c.leaveElements(b.elements.rows)
	}
	return c
}

// Null marks a row with a null value; Empty one with "", [] or {}.
func (b *Builder) Null(f FieldID)  { b.columns.Null(Row(b.row), f) }
func (b *Builder) Empty(f FieldID) { b.columns.Empty(Row(b.row), f) }

// Geo gives the row its point, in degrees. Of several the first is kept.
func (b *Builder) Geo(lat, lng float64) { b.geo.add(b.row, lat, lng) }

// Shape adds a part to the shape of the row. It ignores a part with an empty ring or with a position that is not a number.
func (b *Builder) Shape(p *geo.ShapePart) { b.shapes.add(b.row, p) }

// Vectors adds the row's entry for one of the embedders of the options. If there are several for an embedder, the first is kept and
// Write fails. Write also fails if an entry does not fit the embedder's dimensions.
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
func (b *Builder) EndDoc() { b.raw, b.concordances.members = nil, nil }

// Rows returns the number of rows started.
func (b *Builder) Rows() int { return len(b.docIDs) }

// MemoryBytes returns about what the builder holds.
func (b *Builder) MemoryBytes() int64 {
	n := int64(cap(b.docIDs)*4+cap(b.ids.ends)*4+cap(b.ids.text)) + b.docs.memoryBytes() + b.words.memoryBytes() + b.runs.memoryBytes() + b.concordances.memoryBytes() +
		b.columns.memoryBytes() + b.geo.memoryBytes() + b.shapes.memoryBytes() + b.elements.memoryBytes()
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

// forget releases what Write uses for the words.
func (b *Builder) forget() {
	b.order, b.lists, b.prefixes = nil, nil, nil
	b.frequent.close()
	b.frequent = nil
}

// Info describes a written segment.
type Info struct {
	Rows          int
	Bytes         int64 // of the file
	DocumentBytes int64 // of the documents, uncompressed
}

// Write writes all rows to a new file, syncs it and closes it. The caller makes its name durable. After an error, including that of a
// done context, no file is left.
func (b *Builder) Write(ctx context.Context, fs vfs.FS, name string) (Info, error) {
	if len(b.runs.runs) > 0 {
		if err := b.spillWords(); err != nil {
			return Info{}, fmt.Errorf("cannot write segment %s: %w", name, err)
		}
	}
	f, err := createFile(fs, name, b.options.Throttle)
	if err != nil {
		return Info{}, err
	}
	defer func() { // of a page of the spool that cannot be read
		if p := recover(); p != nil {
			_ = f.abort(nil)
			panic(p)
		}
	}()
	rows := len(b.docIDs)
	defer b.forget()
	b.words.settle()
	f.limit(int(b.words.largest()), "words in memory")
	for i := range sectionKinds {
		if k := &sectionKinds[i]; k.build != nil {
			if err := k.build(ctx, b, f); err != nil {
				return Info{}, f.abort(err)
			}
		}
	}
	size, err := f.finish()
	if err != nil {
		return Info{}, err
	}
	return Info{Rows: rows, Bytes: size, DocumentBytes: b.docs.raw}, nil
}
