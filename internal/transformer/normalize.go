package transformer

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func letterOrDigit(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }

// readNormalizer makes the function for one part of the normalizer in tokenizer.json.
func readNormalizer(raw json.RawMessage) (normalizer, error) {
	k, err := kind(raw)
	if err != nil {
		return nil, err
	}
	var o struct {
		Clean     *bool  `json:"clean_text"`
		Chinese   *bool  `json:"handle_chinese_chars"`
		Accents   *bool  `json:"strip_accents"`
		Lowercase *bool  `json:"lowercase"`
		Prepend   string `json:"prepend"`
		Content   string `json:"content"`
		Pattern   pattern
		Left      *bool   `json:"strip_left"`
		Right     *bool   `json:"strip_right"`
		Charsmap  *string `json:"precompiled_charsmap"`
	}
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("%s: %w", k, err)
	}
	isTrue := func(b *bool) bool { return b == nil || *b }
	switch k {
	case "NFC":
		return norm.NFC.String, nil
	case "NFD":
		return norm.NFD.String, nil
	case "NFKC":
		return norm.NFKC.String, nil
	case "NFKD":
		return norm.NFKD.String, nil
	case "Lowercase":
		return strings.ToLower, nil
	case "StripAccents":
		return withoutMarks, nil
	case "Strip":
		return func(s string) string {
			if isTrue(o.Left) {
				s = strings.TrimLeftFunc(s, unicode.IsSpace)
			}
			if isTrue(o.Right) {
				s = strings.TrimRightFunc(s, unicode.IsSpace)
			}
			return s
		}, nil
	case "Prepend":
		return func(s string) string { return o.Prepend + s }, nil
	case "Replace":
		find, err := o.Pattern.compile()
		return func(s string) string { return find.ReplaceAllLiteralString(s, o.Content) }, err
	case "Nmt":
		return cleanNMT, nil
	case "Precompiled":
		if o.Charsmap == nil || *o.Charsmap == "" {
			return func(s string) string { return s }, nil
		}
		m, err := readCharsmap(*o.Charsmap)
		if err != nil {
			return nil, err
		}
		return m.apply, nil
	case "BertNormalizer":
		lower := isTrue(o.Lowercase)
		accents := lower
		if o.Accents != nil {
			accents = *o.Accents
		}
		return func(s string) string {
			if isTrue(o.Clean) {
				s = strings.Map(cleanBERT, s)
			}
			if isTrue(o.Chinese) {
				s = spaceChinese(s)
			}
			if accents {
				s = withoutMarks(norm.NFD.String(s))
			}
			if lower {
				s = strings.ToLower(s)
			}
			return s
		}, nil
	}
	return nil, fmt.Errorf("%q is not known", k)
}

// pattern is a text or a regular expression.
type pattern struct{ String, Regex *string }

func (p pattern) compile() (*regexp.Regexp, error) {
	switch {
	case p.String != nil:
		return regexp.Compile(regexp.QuoteMeta(*p.String))
	case p.Regex != nil:
		return regexp.Compile(*p.Regex)
	}
	return nil, errors.New("a pattern is missing")
}

func withoutMarks(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Mn, r) {
			return -1
		}
		return r
	}, s)
}

func cleanBERT(r rune) rune {
	switch {
	case r == '\t' || r == '\n' || r == '\r' || unicode.Is(unicode.Zs, r):
		return ' '
	case r == 0 || r == utf8.RuneError || unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co):
		return -1
	}
	return r
}

// cleanNMT makes blanks of all kinds one kind, and drops control characters, as SentencePiece does.
func cleanNMT(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t' || r == '\n' || r == '\f' || r == '\r' || r == 0x1680 || r >= 0x2000 && r <= 0x200F || r == 0x2028 || r == 0x2029 ||
			r == 0x2581 || r == 0xFEFF || r == 0xFFFD || r == 0x200B:
			return ' '
		case r < 0x20 || r == 0x7F || r == 0x8F || r == 0x9F:
			return -1
		}
		return r
	}, s)
}

func chinese(r rune) bool {
	return r >= 0x4E00 && r <= 0x9FFF || r >= 0x3400 && r <= 0x4DBF || r >= 0x20000 && r <= 0x2CEAF ||
		r >= 0xF900 && r <= 0xFAFF || r >= 0x2F800 && r <= 0x2FA1F
}

// spaceChinese puts blanks around ideographs, so that each is a word.
func spaceChinese(s string) string {
	if !strings.ContainsFunc(s, chinese) {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if chinese(r) {
			b.WriteByte(' ')
			b.WriteRune(r)
			b.WriteByte(' ')
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// charsmap is the table by which SentencePiece normalises: a double-array trie (darts-clone) from characters to where
// their replacement begins in a text of zero-terminated strings.
type charsmap struct {
	units []uint32
	texts string
}

// readCharsmap decodes a map of SentencePiece: the length of its trie, the trie, and the texts that it leads
// to.
func readCharsmap(encoded string) (*charsmap, error) {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("precompiled_charsmap: %w", err)
	}
	if len(b) < 4 {
		return nil, errors.New("precompiled_charsmap is too short")
	}
	n := binary.LittleEndian.Uint32(b)
	b = b[4:]
	if n%4 != 0 || uint64(n) > uint64(len(b)) || n == 0 {
		return nil, errors.New("precompiled_charsmap: its trie is longer than it")
	}
	m := &charsmap{units: make([]uint32, n/4), texts: string(b[n:])}
	for i := range m.units {
		m.units[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return m, nil
}

// find returns the replacement for the shortest prefix of s that is in the trie.
func (m *charsmap) find(s string) (string, bool) {
	offset := func(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }
	at := offset(m.units[0])
	for i := range len(s) {
		if s[i] == 0 {
			return "", false
		}
		at ^= uint32(s[i])
		if at >= uint32(len(m.units)) {
			return "", false
		}
		unit := m.units[at]
		if unit&(1<<31|0xFF) != uint32(s[i]) {
			return "", false
		}
		at ^= offset(unit)
		if unit>>8&1 == 1 {
			if at >= uint32(len(m.units)) {
				return "", false
			}
			start := m.units[at] & (1<<31 - 1)
			if start >= uint32(len(m.texts)) {
				return "", false
			}
			text, _, _ := strings.Cut(m.texts[start:], "\x00")
			return text, true
		}
	}
	return "", false
}

// apply replaces characters with their marks where the table has them together, and single characters otherwise.
func (m *charsmap) apply(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		_, n := utf8.DecodeRuneInString(s)
		cluster := n
		for cluster < len(s) {
			r, k := utf8.DecodeRuneInString(s[cluster:])
			if !unicode.In(r, unicode.M) {
				break
			}
			cluster += k
		}
		if cluster > n && cluster < 6 {
			if text, ok := m.find(s[:cluster]); ok {
				b.WriteString(text)
				s = s[cluster:]
				continue
			}
		}
		for c := s[:cluster]; len(c) > 0; {
			_, n := utf8.DecodeRuneInString(c)
			if text, ok := m.find(c[:n]); ok {
				b.WriteString(text)
			} else {
				b.WriteString(c[:n])
			}
			c = c[n:]
		}
		s = s[cluster:]
	}
	return b.String()
}
