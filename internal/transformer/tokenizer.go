package transformer

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// tokenizer turns text into token ids as a tokenizer.json says.
type tokenizer struct {
	added     map[byte][]addedToken // by first byte, longest first
	normalize []normalizer
	split     []splitter
	model     wordModel
	before    []int // special tokens around a text
	after     []int
}

// normalizer rewrites text.
type normalizer func(string) string

// splitter cuts pieces further.
type splitter func(pieces []string) []string

// wordModel cuts a piece into tokens.
type wordModel interface {
	tokens(dst []int, piece string) []int
}

// addedToken stands in the text as it is.
type addedToken struct {
	ID      int    `json:"id"`
	Content string `json:"content"`
	Left    bool   `json:"lstrip"` // takes the blanks before it
	Right   bool   `json:"rstrip"`
	Word    bool   `json:"single_word"` // only as a word of its own
}

// kind reads the type of a part of the file; null is "".
func kind(raw json.RawMessage) (string, error) {
	var k struct {
		Type string `json:"type"`
	}
	if len(raw) == 0 {
		return "", nil
	}
	err := json.Unmarshal(raw, &k)
	return k.Type, err
}

// sequence returns the parts of a Sequence from the member with the given name, or the part itself.
func sequence(raw json.RawMessage, name string) ([]json.RawMessage, error) {
	k, err := kind(raw)
	if err != nil || k == "" {
		return nil, err
	}
	if k != "Sequence" {
		return []json.RawMessage{raw}, nil
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return nil, err
	}
	var parts, all []json.RawMessage
	if err := json.Unmarshal(members[name], &parts); err != nil {
		return nil, fmt.Errorf("a Sequence without %s: %w", name, err)
	}
	for _, p := range parts {
		inner, err := sequence(p, name)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// loadTokenizer reads a tokenizer.json. All ids must be below the size of the vocabulary.
func loadTokenizer(name string, vocabulary int) (*tokenizer, error) {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	t, err := readTokenizer(b, vocabulary)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return t, nil
}

// readTokenizer reads tokenizer.json. A part of an unimplemented kind is an error, because vectors would be wrong without it.
func readTokenizer(b []byte, vocabulary int) (*tokenizer, error) {
	var file struct {
		Added      []addedToken    `json:"added_tokens"`
		Normalizer json.RawMessage `json:"normalizer"`
		Split      json.RawMessage `json:"pre_tokenizer"`
		Processor  json.RawMessage `json:"post_processor"`
		Model      json.RawMessage `json:"model"`
	}
	if err := json.Unmarshal(b, &file); err != nil {
		return nil, err
	}
	t := &tokenizer{added: map[byte][]addedToken{}}
	for _, a := range file.Added {
		if a.Content == "" || a.ID < 0 || a.ID >= vocabulary {
			return nil, fmt.Errorf("the token %q has the id %d, and the vocabulary has %d", a.Content, a.ID, vocabulary)
		}
		t.added[a.Content[0]] = append(t.added[a.Content[0]], a)
	}
	for _, list := range t.added {
		slices.SortStableFunc(list, func(a, b addedToken) int { return len(b.Content) - len(a.Content) })
	}
	parts, err := sequence(file.Normalizer, "normalizers")
	for _, p := range parts {
		n, err := readNormalizer(p)
		if err != nil {
			return nil, fmt.Errorf("normalizer: %w", err)
		}
		t.normalize = append(t.normalize, n)
	}
	if err != nil {
		return nil, fmt.Errorf("normalizer: %w", err)
	}
	parts, err = sequence(file.Split, "pretokenizers")
	for _, p := range parts {
		s, err := readSplitter(p)
		if err != nil {
			return nil, fmt.Errorf("pre_tokenizer: %w", err)
		}
		t.split = append(t.split, s)
	}
	if err != nil {
		return nil, fmt.Errorf("pre_tokenizer: %w", err)
	}
	if t.model, err = readModel(file.Model, vocabulary); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	if err := t.readProcessor(file.Processor); err != nil {
		return nil, fmt.Errorf("post_processor: %w", err)
	}
	for _, id := range slices.Concat(t.before, t.after) {
		if id < 0 || id >= vocabulary {
			return nil, fmt.Errorf("post_processor: the id %d is beyond the vocabulary of %d", id, vocabulary)
		}
	}
	return t, nil
}

// readProcessor finds the special tokens around a text.
func (t *tokenizer) readProcessor(raw json.RawMessage) error {
	parts, err := sequence(raw, "processors")
	if err != nil {
		return err
	}
	for _, p := range parts {
		k, err := kind(p)
		if err != nil {
			return err
		}
		switch k {
		case "TemplateProcessing":
			err = t.readTemplate(p)
		case "BertProcessing", "RobertaProcessing":
			var pair struct{ Sep, Cls [2]any }
			if err = json.Unmarshal(p, &pair); err == nil {
				first, ok1 := pair.Cls[1].(float64)
				last, ok2 := pair.Sep[1].(float64)
				if !ok1 || !ok2 {
					return fmt.Errorf("%s without ids", k)
				}
				t.before, t.after = []int{int(first)}, []int{int(last)}
			}
		case "ByteLevel": // only moves offsets
		default:
			return fmt.Errorf("%q is not known", k)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readTemplate finds the special tokens before and after a text.
func (t *tokenizer) readTemplate(raw json.RawMessage) error {
	var template struct {
		Single []struct {
			SpecialToken *struct{ ID string }
			Sequence     *struct{ ID string }
		}
		Special map[string]struct{ IDs []int } `json:"special_tokens"`
	}
	if err := json.Unmarshal(raw, &template); err != nil {
		return err
	}
	dst := &t.before
	for _, piece := range template.Single {
		switch {
		case piece.Sequence != nil:
			dst = &t.after
		case piece.SpecialToken != nil:
			special, ok := template.Special[piece.SpecialToken.ID]
			if !ok {
				return fmt.Errorf("the special token %q has no ids", piece.SpecialToken.ID)
			}
			*dst = append(*dst, special.IDs...)
		}
	}
	return nil
}

const blanks = " \t\r\n"

// encode returns the ids of a text, at most most. It cuts the end of the text but keeps the special tokens.
func (t *tokenizer) encode(text string, most int) []int {
	room := max(most-len(t.before)-len(t.after), 0)
	ids := slices.Clone(t.before)
	var body []int
	for text != "" && len(body) < room {
		at, token := t.findAdded(text)
		plain := text[:at]
		if token != nil && token.Left {
			plain = strings.TrimRight(plain, blanks)
		}
		body = t.plain(body, plain, room)
		if token == nil {
			break
		}
		body = append(body, token.ID)
		text = text[at+len(token.Content):]
		if token.Right {
			text = strings.TrimLeft(text, blanks)
		}
	}
	ids = append(ids, body[:min(len(body), room)]...)
	ids = append(ids, t.after...)
	if len(ids) == 0 { // a model without special tokens, and an empty text
		return []int{0}
	}
	return ids
}

// findAdded returns the first added token in text, or its length and nil.
func (t *tokenizer) findAdded(text string) (int, *addedToken) {
	for i := range len(text) {
		list := t.added[text[i]]
		for n := range list {
			a := &list[n]
			if !strings.HasPrefix(text[i:], a.Content) {
				continue
			}
			if a.Word && (wordEnd(text[:i]) || wordStart(text[i+len(a.Content):])) {
				continue
			}
			return i, a
		}
	}
	return len(text), nil
}

func wordEnd(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && letterOrDigit(r)
}

func wordStart(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && letterOrDigit(r)
}

// plain appends the ids of text without added tokens. Having enough, it stops early.
func (t *tokenizer) plain(dst []int, text string, enough int) []int {
	if text == "" {
		return dst
	}
	for _, n := range t.normalize {
		text = n(text)
	}
	pieces := []string{text}
	for _, s := range t.split {
		pieces = s(pieces)
	}
	for _, p := range pieces {
		if len(dst) >= enough {
			break
		}
		if p != "" {
			dst = t.model.tokens(dst, p)
		}
	}
	return dst
}
