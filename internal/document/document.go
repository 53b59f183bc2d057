package document

// MaxDepth is how many objects and arrays may be open at once in a document,
// the document itself included. It bounds recursion everywhere below.
const MaxDepth = 127

// MaxHitDepth is how many there may be in a hit of another instance: it shows its document once more one level down, as
// `_formatted`, with documents of other indexes in the places of their ids.
const MaxHitDepth = 2*MaxDepth + 1

// hitDepth is where a hit begins when levels are counted up to MaxDepth.
const hitDepth = 1 + MaxDepth - MaxHitDepth
