// Package ann owns the search for nearest vectors: rows of 8-bit codes, a navigable graph over them, and exact scans
// where those are cheaper. It works on bytes and knows no file: a segment stores what WriteTo writes and Open reads it
// where it lies, so nothing is copied into memory.
//
// The graph is a hierarchical navigable small world (Y. Malkov, D. Yashunin, "Efficient and robust approximate nearest
// neighbor search using Hierarchical Navigable Small World graphs", 2018): every node is on level 0, one in Degree of
// them on level 1, and so on up. It is walked over codes alone; the caller scores the best few again from
// full-precision rows.
//
// Vectors are unit vectors, and similarity is their dot product (cosine).
//
// # Building
//
// Rows are inserted one after the other, by several goroutines once the graph has 512 rows. A row walks down to its
// highest level, finds its neighbours on each level below with a pool of Effort, and links both ways; a node whose
// slots are full keeps the neighbours that lead in different directions. A lock per row guards its slots. The level of
// a row follows from a hash of its number, so with one thread the same codes always give the same graph.
//
// Extend takes over an existing graph: rows that stay keep their links, the others are inserted. A merge of segments
// uses it, so that only the vectors of the smaller segments are linked again.
//
// # Searching
//
// A walk keeps the best rows so far in a sorted pool, and looks beyond the best one that it has not looked beyond. When
// it ends is adaptive: after Patience steps that found nothing wanted, and not beyond rows that are clearly too far
// (Reach has the source). If only some rows are allowed, the walk leads through all rows but keeps allowed ones, and
// gives up in favour of a scan when that is cheaper. Scan is exact over codes.
//
// If the caller has the signs of the rows, a walk among allowed rows gives up in favour of Signs.Among instead. This
// compares the signs of all allowed rows, and then the codes of the best ones, so it may miss rows. It looks at more rows
// while the last ones are among the best. A walk goes farther if the query is far from all rows (farther). Scores of signs are
// sums of the query's components, in 4 bits each, or in 2 where rows of a cache line are scored together (marked.go).
//
// A walk over long rows that is given the signs compares them first, and then the codes of rows that may be near enough
// (forecast.go).
//
// A candidate is one 64-bit word, score above and row below, so that comparing words compares scores. Scores are dot
// products of codes, or of strings of bits the number of equal bits, less a constant. Codes are wrong by rounding; the
// caller says by how much (Reach.Blur).
//
// # Damage
//
// Open checks the head and the upper levels, not the links of level 0, which a search checks as it follows them: a row
// number that is out of range ends the list of neighbours. Codes.Touch is called before codes are read, so that the
// owner of the bytes can verify them. Invalid links cost recall, and cause no read outside the codes.
//
// # Caveats
//
//   - Codes must be padded and aligned (Codes). A Graph aliases them, and is valid as long as they are.
//   - A Graph may be searched by several goroutines. Scratch memory comes from a pool.
package ann
