package template

import (
	"errors"
	"html"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

func appendText(_ *renderer, v value, args []value) (value, error) {
	return text(v.String() + args[0].String()), nil
}

func prependText(_ *renderer, v value, args []value) (value, error) {
	return text(args[0].String() + v.String()), nil
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

// escapeOnce leaves what is escaped alone.
func escapeOnce(s string) string { return html.EscapeString(html.UnescapeString(s)) }

func newlineToBreak(s string) string { return newlines.ReplaceAllString(s, "<br />\n") }
func stripNewlines(s string) string  { return newlines.ReplaceAllString(s, "") }
func stripHTML(s string) string      { return markup.ReplaceAllString(s, "") }
func urlEncode(s string) string      { return url.QueryEscape(s) }

var (
	newlines = regexp.MustCompile(`\r?\n`)
	markup   = regexp.MustCompile(`(?is)<script.*?</script>|<style.*?</style>|<!--.*?-->|<.*?>`)
)

func urlDecode(_ *renderer, v value, _ []value) (value, error) {
	s, err := url.QueryUnescape(v.String())
	if err != nil || !utf8.ValidString(s) {
		return value{}, errors.New("needs a text that is URL-encoded")
	}
	return text(s), nil
}

// replace makes the filters that replace n occurrences (−1: all) by the second argument, or by nothing.
func replace(n int) func(*renderer, value, []value) (value, error) {
	return func(r *renderer, v value, args []value) (value, error) {
		s, old, by := v.String(), args[0].String(), ""
		if len(args) > 1 {
			by = args[1].String()
		}
		times := strings.Count(s, old)
		if n >= 0 {
			times = min(times, n)
		}
		if err := r.workText(len(by), times); err != nil {
			return value{}, err
		}
		return text(strings.Replace(s, old, by, n)), nil
	}
}

// workText counts the making of n texts of some bytes before they are made.
func (r *renderer) workText(bytes, n int) error {
	if bytes > 0 && n > (r.left+1)*workBytes/bytes {
		return errWork
	}
	return nil
}

func splitText(_ *renderer, v value, args []value) (value, error) {
	s := v.String()
	if s == "" {
		return array(nil), nil
	}
	parts := strings.Split(s, args[0].String())
	items := make([]value, len(parts))
	for i, part := range parts {
		items[i] = text(part)
	}
	return array(items), nil
}

// slice takes some characters of a text or some items of an array, from a place that counts from the end when negative.
func slice(_ *renderer, v value, args []value) (value, error) {
	from, ok := args[0].whole()
	count := int64(1)
	if ok && len(args) > 1 {
		count, ok = args[1].whole()
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
	runes := []rune(v.String())
	start, end := window(int64(len(runes)))
	return text(string(runes[start:end])), nil
}

// ending reads the arguments of the filters that truncate: how much is left, and what stands at the end.
func ending(args []value, usual int64) (most int64, mark string, err error) {
	most, mark = usual, "..."
	if len(args) > 0 {
		ok := false
		if most, ok = args[0].whole(); !ok {
			return 0, "", errWhole
		}
	}
	if len(args) > 1 {
		mark = args[1].String()
	}
	return max(most, 0), mark, nil
}

func truncate(_ *renderer, v value, args []value) (value, error) {
	most, mark, err := ending(args, 50)
	if err != nil {
		return value{}, err
	}
	s := v.String()
	if length(s) <= most {
		return text(s), nil
	}
	keep := max(most-length(mark), 0)
	for i := range s {
		if keep--; keep < 0 {
			return text(s[:i] + mark), nil
		}
	}
	return text(s), nil
}

// truncateWords counts words between single blanks, and leaves the blanks between those that stay as they are.
func truncateWords(_ *renderer, v value, args []value) (value, error) {
	most, mark, err := ending(args, 15)
	if err != nil {
		return value{}, err
	}
	s := v.String()
	words := int64(0)
	for i := 0; i < len(s); i++ {
		if s[i] == ' ' {
			if words++; words >= most {
				return text(s[:i] + mark), nil
			}
		}
	}
	if most == 0 {
		return text(mark), nil
	}
	return text(s), nil
}
