// Package segment owns the immutable segment file: its format (docs/SEGMENT.md), the builder that gathers documents in
// memory and writes a segment, the memory-mapped reader, and the merge of several segments into one.
//
// A segment holds rows 0…n−1, one per document, in ascending order of DocID. It is a list of sections. A kind of
// section has its functions in one file and a row in the table of sections.go: how it is built, opened, merged, copied,
// verified and inspected. Tests range over the table and name what is missing. Readers skip kinds that they do not
// know.
//
// # Writing
//
// A Builder takes documents one by one (StartDoc, any number of calls for words, values, points and vectors, EndDoc)
// and keeps them in memory in nearly the code in which they are written. Words go to an inverted index whose rows and
// positions are chains of growing slices in one arena (inverter.go), so a word costs no allocation. Large documents,
// and the concordances of long texts, go to a temporary file if the caller provides one (BuilderOptions.Spool).
// MemoryBytes tells the caller when to write.
//
// Write calls the build function of each kind in the order of the table. A fileWriter writes front to back, with a
// checksum per section and one per 4 KiB of the file. The first error stays in it, and finish returns it. Write syncs
// the file, but not its directory: the name becomes durable when the caller syncs that. After an error there is no
// file.
//
// # Reading
//
// Open maps the file and checks what every call walks on: footer, section table, and the small sections. Everything
// else is checked when it is first touched, in blocks of 4 KiB (blocks.go). One bit per block remembers that the block
// was correct. Parts that few searches need are opened on first use (lazy.go).
//
// On damage, methods return an *apierr.Corruption, or panic with one if they return no error. Callers use mapped.Guard,
// which turns the panic, and the fault of a page that cannot be read, into an error. OnDamage reports the damage to the
// index. Invalid content with correct checksums gives an error, nothing, or wrong values, but no read outside the file.
// Salvage reads what is left of a damaged file.
//
// # Merging
//
// Merge writes the live rows of several segments, or of one, as a new segment. It first verifies the checksums of all
// inputs, because what is copied gets new checksums. Then it lays the rows of all inputs in the order of their DocIDs:
// merger.rows maps each row of an input to its row in the output, or to noRow if it is deleted. Each kind of section
// merges by that map. Stored documents, positions and concordances are copied as bytes, because they contain neither
// rows nor other fields. If the only input has no deleted row, sections that do not change are copied as a whole.
//
// # Columns
//
// A column numbers the distinct values of a field from 0, in ascending order: these are ordinals. It maps both ways,
// from a row to its ordinals (sort, facets, distinct) and from an ordinal to its rows (filters). Because ordinals
// ascend with the values, a range of values is a range of ordinals, whose rows are one run of the file and a few
// bitmaps (ordinals.go). A column may stand in a file of its own beside the segment (beside.go). Objects in arrays that
// filters test one by one have columns, too, whose rows are numbers of elements (elements.go).
//
// # Vectors
//
// Each embedder has up to five sections: full vectors, row lists, 8-bit codes, the signs of the codes, and a graph over
// the codes (package ann). A search compares few candidates directly, and otherwise walks the graph, or scans the codes
// or their signs. Then it computes the similarities of the best candidates again from the full vectors
// (vectorsearch.go).
//
// # Caveats
//
//   - What a Reader returns may alias mapped memory: it is valid until the Reader is closed, and must not be modified.
//   - A Reader may be used by several goroutines. A Builder, a ColumnsWriter and a PositionReader belong to one.
//   - Methods of a Reader include deleted rows. Live adds which rows a view has deleted.
//   - Offsets inside one posting, one column and the external ids have 32 bits, so each of them has at most 4 GiB.
//     Writing more is an error, not a truncated file.
package segment
