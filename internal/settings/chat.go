package settings

import (
	"encoding/json"

	"svc/internal/apierr"
	"svc/internal/template"
)

const (
	defaultTemplate      = template.Default
	defaultTemplateBytes = template.DefaultMaxBytes
)

// ChatSearch are the search parameters that a chat's searches get; nil ones are the search's own defaults.
type ChatSearch struct {
	Hybrid                *ChatHybrid `json:"hybrid,omitempty"`
	Limit                 *int        `json:"limit,omitempty"`
	Sort                  *[]string   `json:"sort,omitempty"`
	Distinct              *string     `json:"distinct,omitempty"`
	MatchingStrategy      *string     `json:"matchingStrategy,omitempty"`
	AttributesToSearchOn  *[]string   `json:"attributesToSearchOn,omitempty"`
	RankingScoreThreshold *float64    `json:"rankingScoreThreshold,omitempty"`
}

// ChatHybrid is the hybrid parameter of a chat's searches.
type ChatHybrid struct {
	SemanticRatio json.Number `json:"semanticRatio"` // from 0 to 1, as it was written
	Embedder      string      `json:"embedder"`
}

const defaultChatRatio json.Number = "0.5"

var matchingStrategies = []string{"last", "all", "frequency"}

// readChat changes the members that a body has, and resets those that are null.
func readChat(s *Settings, v value) error {
	c, def := &s.Chat, Default().Chat
	return v.fields(map[string]func(value) error{
		"description": orReset(func() { c.Description = def.Description }, func(v value) (err error) {
			c.Description, err = v.text()
			return err
		}),
		"documentTemplate": orReset(func() { c.DocumentTemplate = def.DocumentTemplate }, func(v value) (err error) {
			c.DocumentTemplate, err = v.text()
			return err
		}),
		"documentTemplateMaxBytes": orReset(func() { c.DocumentTemplateMaxBytes = def.DocumentTemplateMaxBytes }, func(v value) (err error) {
			c.DocumentTemplateMaxBytes, err = v.count()
			return err
		}),
		"searchParameters": orReset(func() { c.SearchParameters = ChatSearch{} }, func(v value) error {
			return readChatSearch(&c.SearchParameters, v)
		}),
	})
}

func readChatSearch(p *ChatSearch, v value) error {
	return v.fields(map[string]func(value) error{
		"hybrid":               optional(&p.Hybrid, readChatHybrid),
		"limit":                optional(&p.Limit, value.count),
		"sort":                 optional(&p.Sort, value.texts),
		"distinct":             optional(&p.Distinct, value.text),
		"attributesToSearchOn": optional(&p.AttributesToSearchOn, value.texts),
		"matchingStrategy": optional(&p.MatchingStrategy, func(v value) (string, error) {
			n, err := v.choice(matchingStrategies...)
			return matchingStrategies[n], err
		}),
		"rankingScoreThreshold": optional(&p.RankingScoreThreshold, value.ratio),
	})
}

// optional makes the reader of a member that null removes.
func optional[T any](dst **T, read func(value) (T, error)) func(value) error {
	return orReset(func() { *dst = nil }, func(v value) error {
		x, err := read(v)
		*dst = &x
		return err
	})
}

// ratio reads a number from 0 to 1.
func (v value) ratio() (float64, error) {
	x, err := v.number()
	if err != nil || x < 0 || x > 1 {
		return 0, v.wrong("a number from 0 to 1")
	}
	return x, nil
}

// readChatHybrid reads the parameters of a hybrid search. An embedder has to be named.
func readChatHybrid(v value) (ChatHybrid, error) {
	h := ChatHybrid{SemanticRatio: defaultChatRatio}
	members, err := v.members()
	if err != nil {
		return h, err
	}
	named := false
	for _, m := range members {
		switch m.key {
		case "semanticRatio":
			if !m.null() {
				_, err = m.ratio()
				h.SemanticRatio = json.Number(m.raw)
			}
		case "embedder":
			named = true
			h.Embedder, err = m.text()
		default:
			err = v.unknown(m.key, []string{"embedder", "semanticRatio"})
		}
		if err != nil {
			return h, err
		}
	}
	if !named {
		return h, v.fail("needs the name of an embedder in `embedder`.")
	}
	return h, nil
}

// echoChat shows the chat settings as sent, adding the ratio that a hybrid search without one uses.
func echoChat(v value, _ bool) any {
	return echoMember(v, "searchParameters", func(v value) any {
		return echoMember(v, "hybrid", func(v value) any {
			members, err := v.members()
			if err != nil {
				return v.raw
			}
			o := object{}
			ratio := pair{"semanticRatio", defaultChatRatio}
			for _, m := range members {
				if m.key != ratio.key {
					o = append(o, pair{m.key, m.raw})
				} else if !m.null() {
					ratio.value = m.raw
				}
			}
			return append(o, ratio)
		})
	})
}

// echoMember shows an object as sent, except for one member, which echo converts.
func echoMember(v value, key string, echo func(value) any) any {
	members, err := v.members()
	if err != nil {
		return v.raw
	}
	o := make(object, len(members))
	for i, m := range members {
		o[i] = pair{m.key, m.raw}
		if m.key == key && !m.null() {
			o[i].value = echo(m.value)
		}
	}
	return o
}

func showChat(c *Chat) any {
	return object{
		{"description", c.Description},
		{"documentTemplate", c.DocumentTemplate},
		{"documentTemplateMaxBytes", c.DocumentTemplateMaxBytes},
		{"searchParameters", c.SearchParameters},
	}
}

func validChat(s *Settings, _ apierr.Code) error {
	if s.Chat.DocumentTemplateMaxBytes == 0 {
		return apierr.New("invalid_settings_embedders", "`documentTemplateMaxBytes` of `chat` cannot be 0: it is the maximum length of texts.")
	}
	if _, err := template.Parse(template.Work{}, s.Chat.DocumentTemplate); err != nil {
		return apierr.New("invalid_chat_setting_document_template", "`documentTemplate` of `chat` cannot be used: %v.", err)
	}
	return nil
}
