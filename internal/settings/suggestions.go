package settings

import "strings"

// Suggestions turn on the index of suggestions of an index.
type Suggestions struct {
	MinCount int      // how often a query must have been searched
	Limit    int      // suggestions at most
	Block    []string // texts that no suggestion has among its words: in lower case, with one space between words
}

// Bounds of Suggestions and their defaults.
const (
	DefaultSuggestionCount = 5
	DefaultSuggestions     = 1000
	MaxSuggestions         = 10_000
	maxBlocked             = 1000
	maxBlockedBytes        = 256
)

func readSuggestions(s *Settings, v value) error {
	g := Suggestions{MinCount: DefaultSuggestionCount, Limit: DefaultSuggestions}
	err := v.fields(map[string]func(value) error{
		"minCount": func(v value) error { return v.positive(&g.MinCount, 1_000_000_000) },
		"limit":    func(v value) error { return v.positive(&g.Limit, MaxSuggestions) },
		"block": func(v value) error {
			texts, err := v.texts()
			if err == nil && len(texts) > maxBlocked {
				err = v.fail("has %d texts: the limit is %d.", len(texts), maxBlocked)
			}
			for _, text := range texts {
				if err == nil && len(text) > maxBlockedBytes {
					err = v.fail("has a text of %d bytes: the limit is %d.", len(text), maxBlockedBytes)
				}
				if words := strings.Join(strings.Fields(strings.ToLower(text)), " "); words != "" {
					g.Block = append(g.Block, words)
				}
			}
			return err
		},
	})
	if err == nil {
		s.Suggestions = &g
	}
	return err
}

// positive reads an integer from 1 to a limit.
func (v value) positive(to *int, limit uint64) error {
	n, err := v.whole(limit)
	if err == nil && n == 0 {
		err = v.fail("must be a whole number from 1 to %d, but is 0.", limit)
	}
	*to = int(n)
	return err
}

func showSuggestions(g *Suggestions) any {
	if g == nil {
		return nil
	}
	return object{{"minCount", g.MinCount}, {"limit", g.Limit}, {"block", list(g.Block)}}
}

var suggestionsShape = strict(members{
	"minCount": {"type": "integer", "minimum": 1, "maximum": 1_000_000_000},
	"limit":    {"type": "integer", "minimum": 1, "maximum": MaxSuggestions},
	"block":    {"type": "array", "maxItems": maxBlocked, "items": Schema{"type": "string", "maxLength": maxBlockedBytes}},
})

// Blocks reports whether a text has a blocked one among its words.
func (g *Suggestions) Blocks(text string) bool {
	words := " " + strings.Join(strings.Fields(strings.ToLower(text)), " ") + " "
	for _, blocked := range g.Block {
		if strings.Contains(words, " "+blocked+" ") {
			return true
		}
	}
	return false
}
