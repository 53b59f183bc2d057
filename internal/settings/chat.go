package settings

// ChatSearch are the search parameters that a chat's searches get; nil ones are the search's own defaults.
type ChatSearch struct {
	Hybrid                *ChatHybrid `json:"hybrid,omitempty"`
	Limit                 *int        `json:"limit,omitempty"`
	Sort                  []string    `json:"sort,omitempty"`
	Distinct              *string     `json:"distinct,omitempty"`
	MatchingStrategy      *string     `json:"matchingStrategy,omitempty"`
	AttributesToSearchOn  []string    `json:"attributesToSearchOn,omitempty"`
	RankingScoreThreshold *float64    `json:"rankingScoreThreshold,omitempty"`
}

// ChatHybrid is the hybrid parameter of a chat's searches.
type ChatHybrid struct {
	SemanticRatio float64 `json:"semanticRatio"`
	Embedder      string  `json:"embedder"`
}
