package text

import (
	"bytes"
	"unicode"
	"unicode/utf8"
)

// A segmenter cuts s[start:end], which has no separator in it, into words. It returns false when yield does.
type segmenter func(s []byte, start, end int, g group, yield func(piece) bool) bool

// segmenterFor returns the segmenter of a group; nil where a piece is a word as it stands.
func segmenterFor(g group) segmenter {
	switch g.script {
	case cj:
		if g.language == cmn {
			return segmentChinese
		}
	case arabic:
		if g.language == ara || g.language == pes {
			return segmentArabic
		}
	case latin:
		if g.language == deu {
			return segmentGerman
		}
	case thai:
		return segmentThai
	case khmer:
		return segmentKhmer
	}
	return nil
}

func segment(s []byte, start, end int, g group, yield func(piece) bool) bool {
	cut := segmenterFor(g)
	if cut == nil || isNumber(s[start:end]) {
		return yield(piece{start, end, Word, false, g})
	}
	return cut(s, start, end, g, yield)
}

// isNumber reports whether a piece has only numeric characters and ASCII punctuation, and so is kept whole.
func isNumber(s []byte) bool {
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRune(s[i:])
		if !unicode.IsNumber(r) && !isASCIIPunct(r) {
			return false
		}
		i += n
	}
	return true
}

func isASCIIPunct(r rune) bool {
	return '!' <= r && r <= '/' || ':' <= r && r <= '@' || '[' <= r && r <= '`' || '{' <= r && r <= '~'
}

// segmentArabic cuts off the article.
func segmentArabic(s []byte, start, end int, g group, yield func(piece) bool) bool {
	const article = 4 // bytes: two letters
	if raw := s[start:end]; len(raw) > article {
		for _, a := range []string{"ال", "أل", "إل", "آل", "ٱل"} {
			if bytes.HasPrefix(raw, []byte(a)) {
				return yield(piece{start, start + article, Word, false, g}) && yield(piece{start + article, end, Word, false, g})
			}
		}
	}
	return yield(piece{start, end, Word, false, g})
}

func segmentThai(s []byte, start, end int, g group, yield func(piece) bool) bool {
	return segmentLongest(thaiWords(), s, start, end, g, yield)
}

func segmentKhmer(s []byte, start, end int, g group, yield func(piece) bool) bool {
	return segmentLongest(khmerWords(), s, start, end, g, yield)
}

// segmentLongest takes the longest word of the list at each place, or else one character.
func segmentLongest(words *wordList, s []byte, start, end int, g group, yield func(piece) bool) bool {
	for i := start; i < end; {
		n := words.longest(s[i:end])
		if n == 0 {
			_, n = utf8.DecodeRune(s[i:end])
		}
		if !yield(piece{i, i + n, Word, false, g}) {
			return false
		}
		i += n
	}
	return true
}

// segmentGerman takes the longest part of a compound at each place. What stands between parts stays together.
func segmentGerman(s []byte, start, end int, g group, yield func(piece) bool) bool {
	words := germanWords()
	pending := start
	for i := start; i < end; {
		n := words.longest(s[i:end])
		if n == 0 {
			_, size := utf8.DecodeRune(s[i:end])
			i += size
			continue
		}
		if pending < i && !yield(piece{pending, i, Word, false, g}) {
			return false
		}
		if !yield(piece{i, i + n, Word, false, g}) {
			return false
		}
		i += n
		pending = i
	}
	return pending == end || yield(piece{pending, end, Word, false, g})
}
