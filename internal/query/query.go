// Package query turns a query string into a graph and finds the documents of each of its nodes.
//
// The reader (read.go) splits the query into terms: words, phrases in quotes, and negatives. Nodes cover one to three terms that stand
// together, more where an older analysis reads them as one word (graph.go): one node for each term, and one for each n-gram, as "note
// book" also means "notebook". An interpretation of the query is a path through the nodes. Package rank chooses among paths.
//
// A node matches at three levels: as it is written, with one typo or as two words, and with two typos. What it matches is derived from the
// dictionaries of all segments together (derive.go): limits on typos and prefixes count words of the whole index, so the answer does not
// depend on how documents are spread over segments. What one segment contributes is cached with the segment (lookup.go for the terms,
// piece.go for the rows); a view combines it (match.go).
//
// Caveats:
//   - When the time is over, a graph lacks typos, prefixes and parts of phrases. Such results are not cached (resolver.go).
//   - BuildFewTypos leaves levels out on purpose. Node.Sought says how many were looked for.
//   - A graph refers to mapped memory and ends with its view.
package query

// Strategy says which terms may be dropped.
type Strategy uint8

const (
	Last Strategy = iota
	All
	Frequency
)

// Limits of a graph.
const (
	MaxTerms = 10                                                  // terms kept; a phrase is one
	MaxNodes = maxGram*MaxTerms - maxGram*(maxGram-1)/2 + maxOlder // the terms, and those that stand together joined to one word
	maxOlder = 4                                                   // of those with more than maxGram terms, which older versions read as one word
)

// Limits of a query and of what its words may match.
const (
	maxBytes         = 64 << 10 // of the query that are cut into tokens
	maxTokens        = 1000     // tokens read, separators included
	maxWordBytes     = 250      // longer words match nothing
	maxGram          = 3        // words joined to one at most
	maxPrefixWords   = 1000     // words that a long prefix matches
	shortPrefixBytes = 4        // shorter and equal prefixes match all their words
	wideWords        = 100      // words from which a short prefix is wide
	maxSynonyms      = 50       // of a word
	maxSynonymWords  = 100      // in all synonyms of a word together
)

// How many misspelt words count. (Variables, so that tests can change them.)
var (
	maxTypoWords = [Levels]int{1: 150, 2: 50} // by typos

	// maxLongerWords is how many words that begin with a misspelt prefix count where no word begins as it is typed, at each level.
	maxLongerWords = 1000

	// maxMisspelt is how many words of either kind are looked at. Only a forged dictionary has as many at two typos of a long word.
	maxMisspelt = 4096
)
