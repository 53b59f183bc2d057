package query

// Highlights says what a query matched, for formatting.
type Highlights struct {
	Phrases []Phrase
	Words   []Words // non-prefix terms before prefix terms, longer n-grams first
}

// Phrase is a list of word forms. First and Last are the query positions it covers.
type Phrase struct {
	Words       []string
	First, Last int
}

// Words are the forms that one term or n-gram matches. They are shared and must not be modified.
type Words struct {
	Word        string              // as it was typed, folded
	Forms       map[string]struct{} // whole words
	Prefixes    []string            // of a prefix term: words of the index that match as the start of a token, sorted
	Chars       int                 // characters of the query word: how many are marked in a prefix match
	First, Last int
}
