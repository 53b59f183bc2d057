// Package document owns documents as JSON text: payloads in JSON, NDJSON and CSV, ids, the walk over nested values,
// merging, and partial updates.
//
// A document is one JSON object. Inside the engine it always has the form that Convert gives it: compact (no insignificant white
// space), valid UTF-8, no key twice in an object, every number within the range of a float64, and at most MaxDepth levels. Key order
// and the spelling of numbers and strings are those of the payload. So documents are compared, stored and shown as bytes, without
// parsing them into Go values.
//
// A payload is read in a stream (convert.go, csv.go): it may exceed the memory of a batch. Fields have dotted paths
// (walk.go): {"a": {"b": 1}} and {"a.b": 1} both have the field a.b. Arrays do not count as levels of a path.
//
// Caveats:
//   - Functions that take a document expect the form of Convert. On other text they may return nonsense, but never read beyond it.
//   - Results alias the document that they were read from.
//
// # The scanner
//
// One pass validates a document, finds its end and compacts it (scan.go). Zero bytes follow the text (Padding), and no zero byte is
// valid in JSON, so loops need no test for the end. Strings are read eight bytes at a time. Keys are hashed. For two equal hashes, or
// an escaped key, the slow path checks for duplicate keys, of which the last value counts.
//
// Large payloads of NDJSON are cut into blocks that several goroutines convert (blocks.go). A document that is too
// large for memory goes through a spool.
//
// # Identity
//
// The id of a document is the text of its primary key: a string of a limited alphabet, or an integer. The request or the index names
// the primary key. Otherwise it is the only field of the first document whose name ends with id.
package document
