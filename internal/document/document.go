package document

// MaxDepth is the maximum number of nested objects and arrays in a document, including the document itself. It limits recursion
// everywhere below.
const MaxDepth = 127

// MaxHitDepth is the same maximum for a hit of another instance. A hit shows its document again, one level down, as `_formatted`,
// with documents of other indexes in the place of their ids.
const MaxHitDepth = 2*MaxDepth + 1

// MaxBytes is the maximum size of a document in bytes. Segments take no larger ones. (A variable, so that tests can lower it.)
var MaxBytes = 1<<31 - 1

// hitDepth is where a hit begins when levels are counted up to MaxDepth.
const hitDepth = 1 + MaxDepth - MaxHitDepth
