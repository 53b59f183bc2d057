package settings

import (
	"slices"

	"svc/internal/text"
)

// readStarred reads a list of attributes. If "*" is anywhere in it, it stands for all attributes.
func readStarred(dst *[]string, v value) error {
	names, err := v.texts()
	if err != nil {
		return err
	}
	if slices.Contains(names, "*") {
		names = nil
	}
	*dst = names
	return nil
}

func starred(names []string) []string {
	if names == nil {
		return []string{"*"}
	}
	return names
}

func readSet(dst *[]string, v value) (err error) {
	*dst, err = v.set()
	return err
}

func echoSet(v value, _ bool) any {
	names, err := v.set()
	if err != nil {
		return v.raw
	}
	return names
}

// echoRead shows a value in the form in which it is stored.
func echoRead(read func(*Settings, value) error, show func(*Settings) any) func(value, bool) any {
	return func(v value, _ bool) any {
		var s Settings
		if err := read(&s, v); err != nil {
			return v.raw
		}
		return show(&s)
	}
}

func readFilterable(s *Settings, v value) error {
	items, err := v.items()
	if err != nil {
		return err
	}
	rules := make([]FilterableRule, len(items))
	for i, item := range items {
		if rules[i], err = readFilterableRule(item); err != nil {
			return err
		}
	}
	s.FilterableAttributes = rules
	return nil
}

// readFilterableRule reads a name, or patterns with features. A plain name has all features but elements and
// infix.
func readFilterableRule(v value) (FilterableRule, error) {
	if name, err := v.text(); err == nil {
		return FilterableRule{Patterns: []string{name}, Plain: true, FacetSearch: true, Equality: true, Comparison: true}, nil
	}
	if v.raw[0] != '{' {
		return FilterableRule{}, v.wrong("a string, or an object with attributePatterns")
	}
	rule := FilterableRule{Equality: true}
	flag := func(dst *bool) func(value) error {
		return func(v value) (err error) {
			*dst, err = v.boolean()
			return err
		}
	}
	err := v.fields(map[string]func(value) error{
		"attributePatterns": func(v value) (err error) {
			rule.Patterns, err = v.texts()
			return err
		},
		"features": func(v value) error {
			return v.fields(map[string]func(value) error{
				"facetSearch": flag(&rule.FacetSearch),
				"elements":    flag(&rule.Elements),
				"infix":       flag(&rule.Infix),
				"filter": func(v value) error {
					return v.fields(map[string]func(value) error{
						"equality":   flag(&rule.Equality),
						"comparison": flag(&rule.Comparison),
					})
				},
			})
		},
	})
	if err == nil && rule.Patterns == nil {
		err = v.fail("needs attributePatterns, an array of strings.")
	}
	return rule, err
}

func showFilterable(rules []FilterableRule) any {
	shown := make([]any, len(rules))
	for i, r := range rules {
		if r.Plain {
			shown[i] = r.Patterns[0]
			continue
		}
		features := object{
			{"facetSearch", r.FacetSearch},
			{"filter", object{{"equality", r.Equality}, {"comparison", r.Comparison}}},
		}
		if r.Elements {
			features = append(features, pair{"elements", true})
		}
		if r.Infix {
			features = append(features, pair{"infix", true})
		}
		shown[i] = object{{"attributePatterns", r.Patterns}, {"features", features}}
	}
	return shown
}

func readForeignKeys(s *Settings, v value) error {
	items, err := v.items()
	if err != nil {
		return err
	}
	keys := make([]ForeignKey, len(items))
	for i, item := range items {
		var uid, name bool
		err := item.fields(map[string]func(value) error{
			"foreignIndexUid": func(v value) (err error) {
				uid = true
				keys[i].ForeignIndexUID, err = v.text()
				return err
			},
			"fieldName": func(v value) (err error) {
				name = true
				keys[i].FieldName, err = v.text()
				return err
			},
		})
		if err != nil {
			return err
		}
		if !uid || !name {
			return item.fail("needs both foreignIndexUid and fieldName.")
		}
	}
	s.ForeignKeys = keys
	return nil
}

// readRankingRules reads the rules in their order. attribute and its two halves exclude each other.
func readRankingRules(s *Settings, v value) error {
	items, err := v.items()
	if err != nil {
		return err
	}
	rules := make([]RankingRule, len(items))
	var whole, halves bool
	for i, item := range items {
		name, err := item.text()
		if err != nil {
			return err
		}
		rule, ok := ParseRankingRule(name)
		if !ok {
			return item.wrong(ruleForms())
		}
		if rule.Field != "" && reservedForSort(rule.Field) {
			return item.fail("names %q, which is reserved: to rank by distance, use the `sort` rule with _geoPoint in the request.", rule.Field)
		}
		whole = whole || rule.Kind == Attribute
		halves = halves || rule.Kind == AttributeRank || rule.Kind == WordPosition
		rules[i] = rule
	}
	if whole && halves {
		return v.fail("mixes `attribute` with `attributeRank` or `wordPosition`, which are its two halves: use either `attribute` or its halves.")
	}
	s.RankingRules = rules
	return nil
}

func showRankingRules(rules []RankingRule) []string {
	names := make([]string, len(rules))
	for i, r := range rules {
		names[i] = r.String()
	}
	return names
}

func readLocalized(s *Settings, v value) error {
	items, err := v.items()
	if err != nil {
		return err
	}
	rules := make([]LocalizedRule, len(items))
	for i, item := range items {
		members, err := item.members()
		if err != nil {
			return err
		}
		for _, m := range members {
			switch m.key {
			case "attributePatterns":
				rules[i].Patterns, err = m.texts()
			case "locales":
				rules[i].Locales, err = readLocales(m.value)
			}
			if err != nil {
				return err
			}
		}
		if rules[i].Patterns == nil || rules[i].Locales == nil {
			return item.fail("needs both attributePatterns and locales.")
		}
	}
	s.LocalizedAttributes = rules
	return nil
}

func readLocales(v value) ([]string, error) {
	items, err := v.items()
	if err != nil {
		return nil, err
	}
	locales := make([]string, len(items))
	for i, item := range items {
		code, err := item.text()
		if err != nil {
			return nil, err
		}
		locale, ok := text.Locale(code)
		if !ok {
			return nil, item.wrong("the ISO 639 code of a known language, such as eng or en")
		}
		locales[i] = locale
	}
	return locales, nil
}

// echoLocalized shows rules with their locales as they were sent: "en" stays "en".
func echoLocalized(v value, _ bool) any {
	items, err := v.items()
	if err != nil {
		return v.raw
	}
	rules := make([]object, len(items))
	for i, item := range items {
		members, err := item.members()
		if err != nil {
			return v.raw
		}
		for _, m := range members {
			if m.key == "attributePatterns" || m.key == "locales" {
				rules[i] = append(rules[i], pair{m.key, m.raw})
			}
		}
	}
	return rules
}

func showLocalized(rules []LocalizedRule) any {
	if rules == nil {
		return nil
	}
	shown := make([]object, len(rules))
	for i, r := range rules {
		shown[i] = object{{"attributePatterns", r.Patterns}, {"locales", r.Locales}}
	}
	return shown
}
