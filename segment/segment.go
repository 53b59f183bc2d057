// Package segment owns the immutable segment file: its format (docs/SEGMENT.md), the builder that gathers documents in
// memory and writes a segment, the memory-mapped reader, and the merge of several segments into one.
//
// A segment holds rows 0…n−1, one per document, in ascending order of DocID. It is a list of sections (sections.go); a
// kind of section has its functions in one file, and a row in the table. Tests range over the table and name what is
// missing.
//
// Every block has a checksum, which the reader verifies on first use. On damage, methods return an *apierr.Corruption, or
// panic with one if they return no error. Callers use mapped.Guard. Salvage reads what is left of a damaged file.
//
// What a Reader returns may alias mapped memory: it is valid until the Reader is closed, and must not be modified.
package segment
