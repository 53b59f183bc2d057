// Package query turns a query string into a graph and finds the documents of each of its nodes.
//
// The reader (read.go) splits the query into terms: words, phrases in quotes, and negatives. Nodes cover one to three
// terms that stand together, more where an older analysis reads them as one word (graph.go): one node for each term,
// and one for each n-gram, as "note book" also means "notebook". An interpretation of the query is a path through the
// nodes. Package rank chooses among paths.
//
// A node matches at three levels: as it is written, with one typo or as two words, and with two typos.
// The words that a node matches are derived from the dictionaries of all segments together (derive.go). Limits on typos and prefixes
// count words of the whole index, so the result does not depend on how documents are spread over segments. The contribution of one
// segment is cached with the segment (lookup.go for the terms, piece.go for the rows); a view combines them (match.go).
//
// Caveats:
//   - When time is over, a graph lacks typos, prefixes and parts of phrases. Such results are not cached (resolver.go).
//   - BuildFewTypos leaves levels out on purpose. Node.Sought says how many levels were looked up.
//   - A graph refers to mapped memory and is valid as long as its view.
//
// # Derivation
//
// A pattern is a word, an n-gram or a phrase, and how loosely it matches. A lookup has the words of one segment's dictionary for a
// pattern, in runs by how they were found, whichever rows are deleted. A derivation chooses among the runs of all segments: the first
// words in byte order that are in a live document, or the words of most documents. A chosen word counts in all segments. A piece has
// the rows of the choice in one segment.
//
// # Caches
//
// Results of one segment are cached with the segment, and serve later views. Results of all segments together are cached with the
// view (cache.go). Keys of the former contain a stamp of the settings that they depend on. If a result depends on a further setting,
// add that to Index.stamp.
//
// # Other readings
//
// Segments keep the words of the version of text analysis that made them. A query is analysed by each version that a segment needs,
// and the readings are aligned by their bytes in the query (reading.go). So results do not change at an upgrade, before documents
// are reanalysed.
//
// Fields are segmented by several locales, or by a guess at the language of each text. Single words match across such differences,
// like n-grams and split words. Phrases and excluded words do not, so they are read by all these locales.
//
// # Exceptions
//
// Two results may depend on which segments hold the documents: words that contain a very frequent word (inside.go), and work that was
// cut off because time was over.
package query
