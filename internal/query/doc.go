// Package query turns a query string into a graph and finds the documents of each of its nodes.
//
// The reader (read.go) splits the query into terms: words, phrases in quotes, and negatives. Nodes cover one to three
// terms that stand together, more where an older analysis reads them as one word (graph.go): one node for each term,
// and one for each n-gram, as "note book" also means "notebook". An interpretation of the query is a path through the
// nodes. Package rank chooses among paths.
//
// A node matches at three levels: as it is written, with one typo or as two words, and with two typos. What it matches
// is derived from the dictionaries of all segments together (derive.go): limits on typos and prefixes count words of
// the whole index, so the answer does not depend on how documents are spread over segments. What one segment
// contributes is cached with the segment (lookup.go for the terms, piece.go for the rows); a view combines it
// (match.go).
//
// Caveats:
//   - When the time is over, a graph lacks typos, prefixes and parts of phrases. Such results are not cached
//     (resolver.go).
//   - BuildFewTypos leaves levels out on purpose. Node.Sought says how many were looked for.
//   - A graph refers to mapped memory and ends with its view.
//
// # Derivation
//
// A pattern is a word, an n-gram or a phrase, and how loosely it matches. A lookup has the words of one segment's
// dictionary for it, in runs by how they were found, whichever rows are deleted. A derivation chooses among the runs of
// all segments: the first words in byte order that a live document has, or those that most documents have. A word that
// is chosen counts in all segments. A piece has the rows of the choice in one segment.
//
// # Caches
//
// What a segment alone says is kept with the segment, and serves later views. What takes all segments together is kept
// with the view (cache.go). Keys of the former have a stamp of the settings that it depends on. If a result depends on
// a further setting, add that to Index.stamp.
//
// # Other readings
//
// Segments keep the words that an older version of the analysis made. A query is read by each version that a segment
// needs, and readings are matched to each other by their bytes in the query (reading.go). So results do not change at an
// upgrade before documents are indexed anew.
//
// Fields are cut by several locales, or by a guess at the language of each text. Single words match across such
// differences as n-grams and split words do. Phrases and excluded words do not, so they are read by all these locales.
//
// # Places that break the rule
//
// Two answers may depend on which segments hold the documents: words that contain a very frequent word (inside.go), and
// whatever ended because the time was over.
package query
