// Package document owns documents as JSON text: payloads in JSON, NDJSON and
// CSV, ids, the walk over nested values, merging, and edit scripts.
//
// A document is one JSON object. Inside the engine it is always in the form
// that Convert gives it: compact (no insignificant white space), valid UTF-8,
// no key twice in an object, every number within the range of a float64,
// nested at most MaxDepth levels. Key order and the spelling of numbers and
// strings are those of the payload.
package document

// MaxDepth is how many objects and arrays may be open at once in a document,
// the document itself included. It bounds recursion everywhere below.
const MaxDepth = 127
