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
	MaxTerms    = 10                                                   // terms kept; a phrase is one
	MaxNodes    = maxGram*MaxTerms - maxGram*(maxGram-1)/2 + maxJoined // the terms, and those that stand together joined to one word
	maxReadings = 16                                                   // locales by which phrases are read, beside those of the query
	maxJoined   = 4                                                    // nodes of more than maxGram terms, which other readings join
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

	// maxParts is how many inner words count that begin with a prefix, in byte order.
	maxParts = 100

	// maxLongerWords is how many words that begin with a misspelt prefix count at each level if no word begins as typed.
	maxLongerWords = 1000

	// maxMisspelt is how many words of either kind are read. Only a forged dictionary has as many at two typos of a long word.
	maxMisspelt = 4096
)
