package template

import "strings"

// markup are the elements and comments that strip_html removes with their content, and their ends.
var markup = [...]struct{ begin, end string }{{"<script", "</script>"}, {"<style", "</style>"}, {"<!--", "-->"}}

// stripHTML removes scripts, styles, comments and tags. Unclosed ones stay. It scans the text once per kind of markup, however many
// are unclosed.
func stripHTML(s string) string {
	ends := [len(markup)]ending{}
	tags := ending{}
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			n = len(s) - i
		}
		b.WriteString(s[i : i+n])
		if i += n; i == len(s) {
			break
		}
		to := -1
		for k := range markup {
			if at := foldedPrefix(s[i:], markup[k].begin); at >= 0 {
				if to = ends[k].after(s, i+at, markup[k].end); to >= 0 {
					break
				}
			}
		}
		if to < 0 {
			to = tags.after(s, i+1, ">")
		}
		if to < 0 {
			b.WriteByte('<')
			to = i + 1
		}
		i = to
	}
	return b.String()
}

// ending is the next end of a kind of markup. It is searched for again once it has been passed.
type ending struct {
	from, to int // 0: not searched yet; to −1: there is none after from
}

// after returns where the first end at or after i is over, or −1.
func (e *ending) after(s string, i int, mark string) int {
	if e.to < 0 || e.from >= i && e.to > 0 {
		return e.to
	}
	for e.from = i; e.from < len(s); e.from++ {
		n := strings.IndexByte(s[e.from:], mark[0])
		if n < 0 {
			break
		}
		e.from += n
		if at := foldedPrefix(s[e.from:], mark); at >= 0 {
			e.to = e.from + at
			return e.to
		}
	}
	e.to = -1
	return e.to
}

// foldedPrefix returns the length of a prefix of s that is a word of ASCII without regard to case, −1 when s has none. A long s is an s.
func foldedPrefix(s, word string) int {
	const longS = "ſ"
	i := 0
	for k := range len(word) {
		switch {
		case i < len(s) && (s[i] == word[k] || word[k] >= 'a' && s[i]|0x20 == word[k]):
			i++
		case word[k] == 's' && strings.HasPrefix(s[i:], longS):
			i += len(longS)
		default:
			return -1
		}
	}
	return i
}
