package text

import (
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A segmenter cuts s[start:end], which has no separator in it, into words. It returns false when yield does.
type segmenter func(s []byte, start, end int, g group, yield func(piece) bool) bool

// segmenterFor returns the segmenter of a group, or nil if each piece is a whole word.
func segmenterFor(g group) segmenter {
	switch g.script {
	case cj:
		switch g.language {
		case cmn, cmnAsWritten:
			return segmentChinese
		case jpn:
			return segmentJapanese
		}
	case hangul:
		return segmentKorean
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
		return yield(piece{start, end, Word, false, false, g})
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

func segmentJapanese(s []byte, start, end int, g group, yield func(piece) bool) bool {
	return japaneseLexicon().segment(s, start, end, g, yield)
}

// segmentKorean segments text with a Korean syllable. Other text that counts as the script, such as full-width Latin letters, stays
// whole.
func segmentKorean(s []byte, start, end int, g group, yield func(piece) bool) bool {
	syllable, jamo := false, false
	for _, r := range string(s[start:end]) {
		syllable = syllable || 0xac00 <= r && r <= 0xd7a3
		jamo = jamo || 0x1100 <= r && r <= 0x11ff
	}
	switch {
	case jamo:
		return segmentJamo(s, start, end, g, yield)
	case syllable:
		return koreanLexicon().segment(s, start, end, g, yield)
	}
	return yield(piece{start, end, Word, false, false, g})
}

// segmentJamo is segmentKorean for text whose syllables may be decomposed into letters, which the lexicon does not contain.
func segmentJamo(s []byte, start, end int, g group, yield func(piece) bool) bool {
	type stop struct{ composed, original int } // where a syllable or other character ends
	var composed []byte
	var stops []stop
	for i := start; i < end; {
		n := norm.NFC.NextBoundary(s[i:end], true)
		composed = norm.NFC.Append(composed, s[i:i+n]...)
		i += n
		stops = append(stops, stop{len(composed), i})
	}
	from := start
	return koreanLexicon().segment(composed, 0, len(composed), g, func(p piece) bool {
		for len(stops) > 1 && stops[0].composed < p.end {
			stops = stops[1:]
		}
		to := stops[0].original
		if stops[0].composed > p.end || to == from {
			return true // within a character that stays composed of several
		}
		word := piece{from, to, Word, false, false, g}
		from = to
		return yield(word)
	})
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
		if !yield(piece{i, i + n, Word, false, false, g}) {
			return false
		}
		i += n
	}
	return true
}

// segmentGerman finds the longest part of a compound at each position. Text between parts is not split.
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
		if pending < i && !yield(piece{pending, i, Word, false, false, g}) {
			return false
		}
		if !yield(piece{i, i + n, Word, false, false, g}) {
			return false
		}
		i += n
		pending = i
	}
	return pending == end || yield(piece{pending, end, Word, false, false, g})
}
