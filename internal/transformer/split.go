package transformer

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// readSplitter makes the function for one part of the pre_tokenizer in tokenizer.json.
func readSplitter(raw json.RawMessage) (splitter, error) {
	k, err := kind(raw)
	if err != nil {
		return nil, err
	}
	var o struct {
		Replacement string `json:"replacement"`
		AddSpace    *bool  `json:"add_prefix_space"`
		Scheme      string `json:"prepend_scheme"`
		Split       *bool  `json:"split"`
		UseRegex    *bool  `json:"use_regex"`
		Individual  bool   `json:"individual_digits"`
		Behavior    string `json:"behavior"`
		Invert      bool   `json:"invert"`
		Pattern     pattern
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	isTrue := func(b *bool) bool { return b == nil || *b }
	switch k {
	case "BertPreTokenizer":
		return each(func(s string) []string { return isolate(strings.FieldsFunc(s, unicode.IsSpace), punctuation) }), nil
	case "WhitespaceSplit":
		return each(func(s string) []string { return strings.FieldsFunc(s, unicode.IsSpace) }), nil
	case "Whitespace":
		words := regexp.MustCompile(`[\pL\pM\p{Nd}\p{Pc}]+|[^\pL\pM\p{Nd}\p{Pc}\s]+`)
		return each(func(s string) []string { return words.FindAllString(s, -1) }), nil
	case "Punctuation":
		return func(pieces []string) []string { return isolate(pieces, punctuation) }, nil
	case "Digits":
		if o.Individual {
			return func(pieces []string) []string { return isolate(pieces, unicode.IsNumber) }, nil
		}
		digits := regexp.MustCompile(`\pN+|\PN+`)
		return each(func(s string) []string { return digits.FindAllString(s, -1) }), nil
	case "Metaspace":
		mark := o.Replacement
		if mark == "" {
			mark = "▁"
		}
		scheme := o.Scheme
		if scheme == "" {
			scheme = "always"
			if !isTrue(o.AddSpace) {
				scheme = "never"
			}
		}
		return metaspace(mark, scheme, isTrue(o.Split)), nil
	case "ByteLevel":
		return byteLevel(isTrue(o.AddSpace), isTrue(o.UseRegex)), nil
	case "Split":
		find, err := o.Pattern.compile()
		if err != nil {
			return nil, fmt.Errorf("Split: %w", err)
		}
		if o.Invert || o.Behavior != "Isolated" && o.Behavior != "Removed" {
			return nil, fmt.Errorf("unknown Split behavior %q: use Isolated or Removed", o.Behavior)
		}
		return each(func(s string) []string { return splitBy(find, s, o.Behavior == "Isolated") }), nil
	}
	return nil, fmt.Errorf("%q is not known", k)
}

// each makes a splitter of what splits one piece.
func each(split func(string) []string) splitter {
	return func(pieces []string) []string {
		var out []string
		for _, p := range pieces {
			out = append(out, split(p)...)
		}
		return out
	}
}

// punctuation reports whether BERT treats a character as punctuation: in ASCII, all that are neither letter, digit, blank nor
// control.
func punctuation(r rune) bool {
	return r >= '!' && r <= '/' || r >= ':' && r <= '@' || r >= '[' && r <= '`' || r >= '{' && r <= '~' || unicode.IsPunct(r)
}

// isolate makes each character of a class a piece of its own.
func isolate(pieces []string, class func(rune) bool) []string {
	var out []string
	for _, p := range pieces {
		start := 0
		for i, r := range p {
			if class(r) {
				if start < i {
					out = append(out, p[start:i])
				}
				start = i + utf8.RuneLen(r)
				out = append(out, p[i:start])
			}
		}
		if start < len(p) {
			out = append(out, p[start:])
		}
	}
	return out
}

// splitBy splits a text at the matches of an expression. If keep is set, the matches are pieces, too.
func splitBy(find *regexp.Regexp, s string, keep bool) []string {
	var out []string
	start := 0
	for _, at := range find.FindAllStringIndex(s, -1) {
		if start < at[0] {
			out = append(out, s[start:at[0]])
		}
		if keep && at[0] < at[1] {
			out = append(out, s[at[0]:at[1]])
		}
		start = at[1]
	}
	if start < len(s) {
		out = append(out, s[start:])
	}
	return out
}

// metaspace writes blanks as marks, puts one before a text, and cuts before each.
func metaspace(mark, scheme string, cut bool) splitter {
	return func(pieces []string) []string {
		var out []string
		for i, p := range pieces {
			p = strings.ReplaceAll(p, " ", mark)
			if (scheme == "always" || scheme == "first" && i == 0) && !strings.HasPrefix(p, mark) {
				p = mark + p
			}
			if !cut {
				out = append(out, p)
				continue
			}
			start := 0
			for n := 0; n < len(p); {
				next := strings.Index(p[n:], mark)
				if next < 0 {
					break
				}
				if n+next > start {
					out = append(out, p[start:n+next])
					start = n + next
				}
				n += next + len(mark)
			}
			out = append(out, p[start:])
		}
		return out
	}
}

// byteLevel cuts as GPT-2 does, and writes each byte as a visible character.
func byteLevel(space, cut bool) splitter {
	letters := byteLetters()
	return each(func(s string) []string {
		if space && !strings.HasPrefix(s, " ") {
			s = " " + s
		}
		pieces := []string{s}
		if cut {
			pieces = nil
			for s != "" {
				n := gptWord(s)
				pieces = append(pieces, s[:n])
				s = s[n:]
			}
		}
		for i, p := range pieces {
			var b strings.Builder
			for j := range len(p) {
				b.WriteRune(letters[p[j]])
			}
			pieces[i] = b.String()
		}
		return pieces
	})
}

// byteLetters gives every byte a visible character: itself where it has one, or else one from U+0100 on.
func byteLetters() (letters [256]rune) {
	next := rune(256)
	for b := range letters {
		if b >= '!' && b <= '~' || b >= 0xA1 && b <= 0xAC || b >= 0xAE {
			letters[b] = rune(b)
			continue
		}
		letters[b] = next
		next++
	}
	return letters
}

// gptWord returns the length of the first word of s, which is not empty, by the expression
// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
func gptWord(s string) int {
	for _, end := range []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"} {
		if strings.HasPrefix(s, end) {
			return len(end)
		}
	}
	start := 0
	if s[0] == ' ' && len(s) > 1 {
		start = 1
	}
	r, _ := utf8.DecodeRuneInString(s[start:])
	var class func(rune) bool
	switch {
	case unicode.IsLetter(r):
		class = unicode.IsLetter
	case unicode.IsNumber(r):
		class = unicode.IsNumber
	case !unicode.IsSpace(r):
		class = func(r rune) bool { return !unicode.IsSpace(r) && !unicode.IsLetter(r) && !unicode.IsNumber(r) }
	default:
		// Blanks: the last one belongs to the word after them, unless there is none, or it is the only blank.
		end := len(s) - len(strings.TrimLeftFunc(s, unicode.IsSpace))
		if end < len(s) {
			_, n := utf8.DecodeLastRuneInString(s[:end])
			if end > n {
				end -= n
			}
		}
		return end
	}
	if n := strings.IndexFunc(s[start:], func(r rune) bool { return !class(r) }); n >= 0 {
		return start + n
	}
	return len(s)
}
