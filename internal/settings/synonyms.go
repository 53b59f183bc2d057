package settings

import (
	"encoding/json"
	"errors"
	"unicode/utf8"
)

// Synonyms are the setting of this name as compact JSON, an object of lists of strings with ascending keys; "" means none. There may
// be very many, and only the table of synonyms decodes them. Equal synonyms are equal strings.
type Synonyms string

// ParseSynonyms reads synonyms as a string of that type has them.
func ParseSynonyms(b []byte) (Synonyms, error) {
	if len(b) > 0 && (!utf8.Valid(b) || !json.Valid(b) || !hasLists(b)) {
		return "", errors.New("synonyms are not an object of lists of strings")
	}
	return Synonyms(b), nil
}

// hasLists reports whether valid JSON is an object of lists of strings without spaces.
func hasLists(b []byte) bool {
	depth := 0
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '{':
			if depth > 0 {
				return false
			}
			depth = 1
		case '[':
			if depth != 1 {
				return false
			}
			depth = 2
		case '}', ']':
			depth--
		case ',', ':':
		case '"':
			for i++; b[i] != '"'; i++ {
				if b[i] == '\\' {
					i++
				}
			}
			if depth == 0 || depth == 1 && b[i+1] != ':' {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// Map returns the synonyms decoded.
func (s Synonyms) Map() map[string][]string {
	if s == "" {
		return nil
	}
	m, err := mapOfSynonyms(value{raw: json.RawMessage(s)})
	if err != nil {
		panic("settings: synonyms have changed since they were checked: " + err.Error())
	}
	return m
}

// MarshalJSON returns the object.
func (s Synonyms) MarshalJSON() ([]byte, error) {
	if s == "" {
		return []byte("{}"), nil
	}
	return []byte(s), nil
}

// readSynonyms replaces all synonyms. They are stored as JSON text, because there may be hundreds of thousands.
func readSynonyms(s *Settings, v value) error {
	m, err := mapOfSynonyms(v)
	if err != nil {
		return err
	}
	s.Synonyms = ""
	if len(m) > 0 {
		s.Synonyms = Synonyms(encode(m))
	}
	return nil
}

func mapOfSynonyms(v value) (map[string][]string, error) {
	members, err := v.members()
	if err != nil {
		return nil, err
	}
	m := make(map[string][]string, len(members))
	for _, member := range members {
		if m[member.key], err = member.texts(); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// WithSynonyms returns the settings with other synonyms.
func (s *Settings) WithSynonyms(synonyms Synonyms) *Settings {
	next := *s
	next.Synonyms = synonyms
	return &next
}
