// Package ann owns the search for nearest vectors: rows of 8-bit codes, a navigable graph over them, and exact scans where those are
// cheaper. It works on bytes and knows no file: a segment stores what WriteTo writes, and Open reads it in place without copying.
//
// The graph is a hierarchical navigable small world (Y. Malkov, D. Yashunin, "Efficient and robust approximate nearest neighbor
// search using Hierarchical Navigable Small World graphs", 2018): every node is on level 0, one in Degree of them on level 1, and so
// on up. A walk uses only codes; the caller rescores the best few with full-precision rows.
//
// Vectors are unit vectors, and similarity is their dot product (cosine).
//
// # Building
//
// Rows are inserted one after the other, by several goroutines once the graph has 512 rows. A row walks down to its highest level,
// finds its neighbours on each level below with a pool of Effort, and links both ways. A node whose slots are full keeps the
// neighbours that lead in different directions. A lock per row guards its slots. The level of a row is a hash of its number, so with
// one thread the same codes always give the same graph.
//
// Of rows with the same code only one is linked in this way, its original. The others are its copies and hang below it as a tree
// (copies.go). Otherwise many copies would fill each other's slots, and hide all other rows.
//
// Extend takes over an existing graph: rows that stay keep their links, the others are inserted. A merge of segments
// uses it, so that only the vectors of the smaller segments are linked again.
//
// # Searching
//
// A walk keeps the best rows so far in a sorted pool, and expands the best unexpanded one. It stops adaptively: after Patience steps
// that found nothing wanted, and it does not expand rows that are clearly too far (Reach has the source). If only some rows are
// allowed, the walk leads through all rows but keeps only allowed ones, and switches to a scan when that is cheaper. Scan is exact
// over codes.
//
// If the caller has the signs of the rows, a walk among allowed rows switches to Signs.Among instead. This compares the signs of all
// allowed rows, and then the codes of the best ones, so it may miss rows. It takes more rows while the last ones are among the best.
// A walk goes farther if the query is far from all rows (farther). Scores of signs are sums of the query's components, in 4 bits
// each, or in 2 bits if rows of a cache line are scored together (marked.go).
//
// A walk over long rows that has the signs compares these first, and then the codes of rows that may be near enough (forecast.go).
//
// A candidate is one 64-bit word, score in the upper bits and row in the lower ones, so comparing words compares scores. Scores are
// dot products of codes or, for bit strings, the number of equal bits less a constant. Codes have rounding errors; the caller says
// how large (Reach.Blur).
//
// # Damage
//
// Open checks the head and the upper levels, but not the links of level 0. A search checks these as it follows them: a row number out
// of range ends the list of neighbours. Codes.Touch is called before codes are read, so that the owner of the bytes can verify them.
// Invalid links reduce recall, and never cause a read outside the codes.
//
// # Caveats
//
//   - Codes must be padded and aligned (Codes). A Graph aliases them, and is valid as long as they are.
//   - A Graph may be searched by several goroutines. Scratch memory comes from a pool.
package ann
