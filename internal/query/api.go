// Package query turns a query string into a graph: terms, phrases, negatives,
// n-grams, and the derivations of each (typos, prefixes, splits, synonyms)
// resolved over the dictionaries of all segments.
package query

// Strategy says which terms may be dropped.
type Strategy uint8

const (
	Last Strategy = iota
	All
	Frequency
)

// Highlights says what a query matched, for formatting (ranking.md 14.1).
type Highlights struct {
	Phrases []Phrase
	Words   []Words // non-prefix terms before prefix terms, longer n-grams first
}

// Phrase is a list of word forms, "" for a hole. First and Last are the query words it covers.
type Phrase struct {
	Words       []string
	First, Last int
}

// Words are the forms that one term or n-gram matches.
type Words struct {
	Forms       map[string]struct{} // whole words
	Prefixes    []string            // forms that match as the start of a token (prefix terms), sorted
	Chars       int                 // characters of the query word: how many are marked in a prefix match
	First, Last int
}

// Cache keeps the derivations of words for one set of segments.
type Cache struct{}

func NewCache() *Cache { panic("stub") }
