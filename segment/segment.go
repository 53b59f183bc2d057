// Package segment owns the immutable segment file: its format (docs/SEGMENT.md),
// the builder that gathers documents in memory and writes one, the
// memory-mapped reader, and the merge of several into one.
//
// A segment holds rows 0…n−1, one a document, in ascending order of DocID.
// What a Reader returns may alias mapped memory: it is valid until the Reader
// is closed and must not be modified.
//
// sections.go has the table of all kinds of sections: whoever adds one writes a file with what is done with it, and
// adds a row. Tests range over the table and name what is missing.
package segment
