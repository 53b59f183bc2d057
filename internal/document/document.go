// Package document owns documents as JSON text: payloads in JSON, NDJSON and CSV, ids, the walk over nested values, merging, and
// partial updates.
//
// A document is one JSON object. Inside the engine it always has the form that Convert gives it: compact (no insignificant white
// space), valid UTF-8, no key twice in an object, every number within the range of a float64, nested at most MaxDepth levels. Key
// order and the spelling of numbers and strings are those of the payload. So documents are compared, stored and shown as bytes, and
// nothing is parsed into Go values on the way.
//
// A payload is read in a stream (convert.go, csv.go): it may exceed the memory of a batch. Fields have dotted paths (walk.go):
// {"a": {"b": 1}} and {"a.b": 1} both have the field a.b. Arrays do not count as levels of a path.
//
// Caveats:
//   - Functions that take a document expect the form of Convert. On other text they may return nonsense, but do not read beyond it.
//   - Results alias the document that they were read from.
package document

// MaxDepth is how many objects and arrays may be open at once in a document,
// the document itself included. It bounds recursion everywhere below.
const MaxDepth = 127

// MaxHitDepth is how many there may be in a hit of another instance: it shows its document once more one level down, as
// `_formatted`, with documents of other indexes in the places of their ids.
const MaxHitDepth = 2*MaxDepth + 1

// hitDepth is where a hit begins when levels are counted up to MaxDepth.
const hitDepth = 1 + MaxDepth - MaxHitDepth
