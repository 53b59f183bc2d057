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

// MaxHitDepth is how many there may be in a hit of another instance: it shows its document once more one level down, as
// `_formatted`, with documents of other indexes in the places of their ids.
const MaxHitDepth = 2*MaxDepth + 1

// hitDepth is where a hit begins when levels are counted up to MaxDepth.
const hitDepth = 1 + MaxDepth - MaxHitDepth
