package template

import (
	"errors"
	"html"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"
)

// joined returns two texts in one.
func (m *meter) joined(a, b string) string {
	if m.make(len(a)+len(b)) != nil {
		return ""
	}
	return a + b
}

func appendText(r *renderer, v value, args []value) (value, error) {
	return text(r.joined(r.text(v), r.text(args[0]))), nil
}

func prependText(r *renderer, v value, args []value) (value, error) {
	return text(r.joined(r.text(args[0]), r.text(v))), nil
}

func upcase(s string) string    { return strings.ToUpper(s) }
func downcase(s string) string  { return strings.ToLower(s) }
func trim(s string) string      { return strings.TrimSpace(s) }
func trimLeft(s string) string  { return strings.TrimLeftFunc(s, unicode.IsSpace) }
func trimRight(s string) string { return strings.TrimRightFunc(s, unicode.IsSpace) }

func capitalize(s string) string {
	r, n := utf8.DecodeRuneInString(s)
	if n == 0 {
		return s
	}
	return string(unicode.ToUpper(r)) + s[n:]
}

func escape(s string) string { return html.EscapeString(s) }

// escapeOnce escapes text without escaping existing entities again.
func escapeOnce(s string) string { return html.EscapeString(html.UnescapeString(s)) }

func newlineToBreak(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\n", "<br />\n")
}

func stripNewlines(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", ""), "\n", "")
}

func urlEncode(s string) string { return url.QueryEscape(s) }

func urlDecode(r *renderer, v value, _ []value) (value, error) {
	s := r.text(v)
	if r.make(len(s)) != nil {
		return value{}, nil
	}
	s, err := url.QueryUnescape(s)
	if err != nil || !utf8.ValidString(s) {
		return value{}, errors.New("needs a text that is URL-encoded")
	}
	return text(s), nil
}

// replace makes the filters that replace n occurrences (−1: all) by the second argument, or by nothing.
func replace(n int) func(*renderer, value, []value) (value, error) {
	return func(r *renderer, v value, args []value) (value, error) {
		s, old, by := r.text(v), r.text(args[0]), ""
		if len(args) > 1 {
			by = r.text(args[1])
		}
		times := strings.Count(s, old)
		if n >= 0 {
			times = min(times, n)
		}
		if r.make(len(s)+times*max(len(by)-len(old), 0)) != nil {
			return value{}, nil
		}
		return text(strings.Replace(s, old, by, times)), nil
	}
}

// splitText cuts a text at a separator; an empty one cuts it into characters.
func splitText(r *renderer, v value, args []value) (value, error) {
	s, by := r.text(v), r.text(args[0])
	if s == "" {
		return array(nil), nil
	}
	n := utf8.RuneCountInString(s)
	if by != "" {
		n = strings.Count(s, by) + 1
	}
	items := r.makeList(n)
	if r.err != nil {
		return value{}, nil
	}
	for part := range strings.SplitSeq(s, by) {
		items = append(items, text(part))
	}
	return array(items), nil
}

// slice takes some characters of a text or some items of an array, from a place that counts from the end when negative.
func slice(r *renderer, v value, args []value) (value, error) {
	from, ok := r.whole(args[0])
	count := int64(1)
	if ok && len(args) > 1 {
		count, ok = r.whole(args[1])
	}
	if !ok {
		return value{}, errWhole
	}
	if count < 1 {
		return value{}, errors.New("needs a length of at least 1")
	}
	window := func(n int64) (int64, int64) {
		if from < 0 {
			from = max(from+n, 0)
		}
		start := min(from, n)
		return start, start + min(count, n-start)
	}
	if v.kind == kindArray {
		start, end := window(int64(len(v.list)))
		return array(v.list[start:end]), nil
	}
	s := r.text(v)
	start, end := window(length(s))
	rest := after(s, start)
	return text(rest[:len(rest)-len(after(rest, end-start))]), nil
}

// after returns what of a text follows its first n characters.
func after(s string, n int64) string {
	for i := range s {
		if n == 0 {
			return s[i:]
		}
		n--
	}
	return ""
}

// ending reads the arguments of the filters that truncate: the remaining length, and the text at the end.
func (r *renderer) ending(args []value, usual int64) (most int64, mark string, err error) {
	most, mark = usual, "..."
	if len(args) > 0 {
		ok := false
		if most, ok = r.whole(args[0]); !ok {
			return 0, "", errWhole
		}
	}
	if len(args) > 1 {
		mark = r.text(args[1])
	}
	return max(most, 0), mark, nil
}

// truncate shortens a text to a number of characters, the mark at its end included.
func truncate(r *renderer, v value, args []value) (value, error) {
	most, mark, err := r.ending(args, 50)
	if err != nil {
		return value{}, err
	}
	s := r.text(v)
	if length(s) <= most {
		return text(s), nil
	}
	keep := max(most-length(mark), 0)
	for i := range s {
		if keep--; keep < 0 {
			return text(r.joined(s[:i], mark)), nil
		}
	}
	return text(s), nil
}

// truncateWords counts words between single blanks, and leaves the blanks between those that stay as they are.
func truncateWords(r *renderer, v value, args []value) (value, error) {
	most, mark, err := r.ending(args, 15)
	if err != nil {
		return value{}, err
	}
	s := r.text(v)
	words := int64(0)
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' {
			if words++; words >= most {
				return text(r.joined(s[:i], mark)), nil
			}
		}
	}
	if most == 0 {
		return text(mark), nil
	}
	return text(s), nil
}
