package rule

// Bounds limit what rules cost a search. Rules that cannot be decided within them do not apply.
type Bounds struct {
	Words              int // words of a query that rules are compared with
	Rules              int // rules that apply to a search
	Pins               int // documents that are pinned in a search
	WordCombinations   int // rules whose words are compared with the query
	FilterCombinations int // ways to satisfy a filter, and how often the values of a rule are compared with one of them
	Or                 int // parts of an OR, and values of an IN
	And                int // parts of an AND
	Depth              int // of nested filters
}

// DefaultBounds are the bounds of a store whose Options do not set any.
var DefaultBounds = Bounds{Words: 10, Rules: 1_000, Pins: 100, WordCombinations: 4_096, FilterCombinations: 4_096, Or: 100, And: 100, Depth: 25}
