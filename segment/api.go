package segment

import (
	"context"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/blevesearch/vellum"

	"svc/internal/vfs"
)

// BuilderOptions says what a Builder writes beside what it is given.
type BuilderOptions struct {
	Columns  []FieldID // fields that get a column even when no row has a value
	Prefixes bool      // write short-prefix postings (prefixSearch is not disabled)
}

// Builder gathers rows in memory and writes them as one segment file. Rows
// come one after another (StartDoc, calls in any order, EndDoc) in strictly ascending
// DocID. Every argument slice is copied where it is kept. Not for several goroutines.
type Builder struct{}

func NewBuilder(o BuilderOptions) *Builder { panic("stub") }

// StartDoc begins a row. raw is the document as compact JSON, externalID its canonical id text.
func (b *Builder) StartDoc(id DocID, externalID []byte, raw []byte) { panic("stub") }

// Present records that the document has field f (any path, parents too, also null).
func (b *Builder) Present(f FieldID) { panic("stub") }

// Word records one occurrence of a normalised word. Positions of a (field, word) come in ascending order.
func (b *Builder) Word(f FieldID, word []byte, position uint16) { panic("stub") }

// WordCount records how many indexed words the field has in this row; more than 30 are kept as 31.
func (b *Builder) WordCount(f FieldID, n int) { panic("stub") }

// Number adds a number to the column of f; String a string in its normalised form
// (filters, sort, facet keys) with the spelling to show. Null and Empty mark the row.
func (b *Builder) Number(f FieldID, x float64)                   { panic("stub") }
func (b *Builder) String(f FieldID, normalized, original []byte) { panic("stub") }
func (b *Builder) Null(f FieldID)                                { panic("stub") }
func (b *Builder) Empty(f FieldID)                               { panic("stub") }
func (b *Builder) Geo(lat, lng float64)                          { panic("stub") }
func (b *Builder) EndDoc()                                       { panic("stub") }
func (b *Builder) Rows() int                                     { panic("stub") }
func (b *Builder) MemoryBytes() int64                            { panic("stub") }
func (b *Builder) Reset()                                        { panic("stub") }

// Write writes all rows to a new file, syncs and closes it. The caller makes its name durable.
func (b *Builder) Write(fs vfs.FS, name string) (Info, error) { panic("stub") }

// Info describes a written segment.
type Info struct {
	Rows          int
	Bytes         int64 // of the file
	DocumentBytes int64 // of the documents, uncompressed
}

// Live is a segment as a view sees it: its reader, and the rows that are deleted (nil when none).
type Live struct {
	*Reader
	Deleted *roaring.Bitmap
}

// LiveRows returns the rows that are not deleted, as a bitmap of the caller's own.
func (l Live) LiveRows() *roaring.Bitmap { panic("stub") }

// MergeOptions steers Merge.
type MergeOptions struct {
	KeepColumn func(FieldID) bool    // nil keeps all columns
	Columns    *ColumnSet            // columns to add or replace; rows are those of the output
	Prefixes   bool                  // write short-prefix postings
	Throttle   func(bytes int) error // called as bytes are written; an error stops the merge
}

// Merge writes the live rows of the inputs as one segment, ordered by DocID.
// A merge of one input without deleted rows copies the sections that stay byte by byte.
func Merge(ctx context.Context, fs vfs.FS, name string, in []Live, o MergeOptions) (Info, error) {
	panic("stub")
}

// ColumnSet builds columns apart from a Builder, for a settings change that adds
// one to rows that exist. Rows come in ascending order.
type ColumnSet struct{}

func NewColumnSet(rows int, fields []FieldID) *ColumnSet                  { panic("stub") }
func (c *ColumnSet) Number(r Row, f FieldID, x float64)                   { panic("stub") }
func (c *ColumnSet) String(r Row, f FieldID, normalized, original []byte) { panic("stub") }
func (c *ColumnSet) Null(r Row, f FieldID)                                { panic("stub") }
func (c *ColumnSet) Empty(r Row, f FieldID)                               { panic("stub") }

// Reader reads one mapped segment file. All methods may be used by several goroutines.
type Reader struct{}

// Open maps a file and checks its footer, table and the checksums of its small sections;
// Verify checks all. A damaged file gives an *apierr.Corruption.
func Open(fs vfs.FS, name string) (*Reader, error) { panic("stub") }

func (r *Reader) Close() error        { panic("stub") }
func (r *Reader) Verify() error       { panic("stub") }
func (r *Reader) Info() Info          { panic("stub") }
func (r *Reader) Rows() int           { panic("stub") }
func (r *Reader) DocID(row Row) DocID { panic("stub") }

// RowOf finds the row of a DocID, Lookup that of an external id.
func (r *Reader) RowOf(id DocID) (Row, bool)           { panic("stub") }
func (r *Reader) Lookup(externalID []byte) (Row, bool) { panic("stub") }
func (r *Reader) ExternalID(row Row) []byte            { panic("stub") }

// AppendDocument appends the document's JSON to dst.
func (r *Reader) AppendDocument(dst []byte, row Row) ([]byte, error) { panic("stub") }

// Present returns the rows whose document has the field; never nil.
func (r *Reader) Present(f FieldID) *roaring.Bitmap { panic("stub") }

// WordCount returns min(words of the field in the row, 31); 0 when the field has none.
func (r *Reader) WordCount(f FieldID, row Row) int { panic("stub") }

// Column returns the column of a field, or nil when the segment has none.
func (r *Reader) Column(f FieldID) *Column { panic("stub") }

// Geo returns the points of the segment, or nil when no row has one.
func (r *Reader) Geo() *Geo { panic("stub") }

// Term returns the posting of a word; Prefix that of a short prefix (≤ 4 bytes), which
// exists only where the segment has many words with it.
func (r *Reader) Term(word []byte) (Posting, bool)     { panic("stub") }
func (r *Reader) Prefix(prefix []byte) (Posting, bool) { panic("stub") }

// Terms walks the words w with start ≤ w < end (nil: unbounded) that the automaton
// accepts (nil: all), in byte order.
func (r *Reader) Terms(start, end []byte, a vellum.Automaton) *TermIterator { panic("stub") }

// TermIterator is positioned before the first word.
type TermIterator struct{}

func (it *TermIterator) Next() bool       { panic("stub") }
func (it *TermIterator) Word() []byte     { panic("stub") } // valid until the next call of Next
func (it *TermIterator) Posting() Posting { panic("stub") }
func (it *TermIterator) Err() error       { panic("stub") }

// Posting tells where one word stands: rows and positions, field by field.
type Posting struct{}

func (p Posting) Fields() int                         { panic("stub") }
func (p Posting) Field(i int) FieldPosting            { panic("stub") } // ascending by ID
func (p Posting) Find(f FieldID) (FieldPosting, bool) { panic("stub") }
func (p Posting) Rows() *roaring.Bitmap               { panic("stub") } // over all fields; shared, not to be modified

// FieldPosting is the part of a posting in one field.
type FieldPosting struct{}

func (f FieldPosting) ID() FieldID               { panic("stub") }
func (f FieldPosting) Count() int                { panic("stub") } // rows
func (f FieldPosting) Rows() *roaring.Bitmap     { panic("stub") } // shared, not to be modified
func (f FieldPosting) Positions() PositionReader { panic("stub") }

// PositionReader walks the positions of a word in a field. Asking for rows in
// ascending order is fast; going back restarts.
type PositionReader struct{}

// Append appends the ascending positions of the row to dst; nothing when the row has none.
func (p *PositionReader) Append(dst []uint16, row Row) []uint16 { panic("stub") }

// Column holds the values of one field, both ways. Numbers and strings are numbered
// by ordinals in ascending order (of value; of normalised bytes).
type Column struct{}

func (c *Column) Null() *roaring.Bitmap  { panic("stub") } // never nil; shared
func (c *Column) Empty() *roaring.Bitmap { panic("stub") } // "" [] {}

func (c *Column) Numbers() int                                  { panic("stub") }
func (c *Column) Number(ord int) float64                        { panic("stub") }
func (c *Column) SearchNumber(x float64) int                    { panic("stub") } // first ordinal with value ≥ x
func (c *Column) NumberCount(ord int) int                       { panic("stub") } // rows with it
func (c *Column) AddNumberRows(dst *roaring.Bitmap, lo, hi int) { panic("stub") } // rows with an ordinal in [lo, hi)

func (c *Column) Strings() int                                  { panic("stub") }
func (c *Column) String(ord int) []byte                         { panic("stub") } // normalised
func (c *Column) Original(ord int) []byte                       { panic("stub") } // spelling of the lowest row
func (c *Column) SearchString(s []byte) int                     { panic("stub") } // first ordinal with value ≥ s
func (c *Column) StringCount(ord int) int                       { panic("stub") }
func (c *Column) AddStringRows(dst *roaring.Bitmap, lo, hi int) { panic("stub") }

// RowNumbers and RowStrings append the ascending distinct ordinals of a row.
func (c *Column) RowNumbers(dst []uint32, row Row) []uint32 { panic("stub") }
func (c *Column) RowStrings(dst []uint32, row Row) []uint32 { panic("stub") }

// Geo holds one point a row, in degrees.
type Geo struct{}

func (g *Geo) Rows() *roaring.Bitmap                     { panic("stub") }
func (g *Geo) Point(row Row) (lat, lng float64, ok bool) { panic("stub") }

// AddRowsInCap adds the rows within meters of the point; AddRowsInBox those in the box (which may cross the antimeridian).
func (g *Geo) AddRowsInCap(dst *roaring.Bitmap, lat, lng, meters float64)         { panic("stub") }
func (g *Geo) AddRowsInBox(dst *roaring.Bitmap, top, left, bottom, right float64) { panic("stub") }
