package text

import (
	"bytes"
	"cmp"
	"slices"
	"sync"
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
		return yield(piece{start, end, Word, false, whole, g})
	}
	if isComposed(s[start:end]) && (g.script != thai || !hasThaiVariants(s[start:end])) {
		return cut(s, start, end, g, yield)
	}
	return segmentComposed(cut, s, start, end, g, yield)
}

// mayChange are the first bytes of characters that isComposed looks at.
var mayChange = func() (first [256]bool) {
	for b := range first {
		first[b] = b < utf8.RuneSelf && isDropped(rune(b))
	}
	for _, b := range []byte("\xc2\xcc\xcd\xd8\xe1\xe2\xe3\xef\xf3") {
		first[b] = true
	}
	return first
}()

// isComposed reports whether dictionaries may have the words of a piece as they are written. They have no decomposed letters, as names of
// files on macOS have, and no characters that folding drops, such as soft hyphens.
func isComposed(s []byte) bool {
	for i := 0; i < len(s); {
		if !mayChange[s[i]] {
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if isDropped(r) || 0x300 <= r && r < 0x370 || r == voiced || r == halfVoiced || 0x1100 <= r && r <= 0x11ff {
			return false
		}
		i += n
	}
	return true
}

// thaiVariants are letters that are typed for those of the dictionary, and look the same: two sara e for sara ae, and nikhahit and sara aa
// for sara am, with a tone mark between them or not.
var thaiVariants = []struct{ typed, listed string }{
	{"เเ", "แ"}, {"\u0e4dา", "ำ"}, {"\u0e4d\u0e48า", "\u0e48ำ"}, {"\u0e4d\u0e49า", "\u0e49ำ"}, {"\u0e4d\u0e4aา", "\u0e4aำ"}, {"\u0e4d\u0e4bา", "\u0e4bำ"},
}

// hasThaiVariants reports whether a text may have one of thaiVariants.
func hasThaiVariants(s []byte) bool {
	return bytes.Contains(s, []byte("เเ")) || bytes.Contains(s, []byte("\u0e4d"))
}

// thaiVariant returns the length of the variant that s starts with, or 0, and the letters in the dictionary.
func thaiVariant(s []byte) (int, string) {
	for _, v := range thaiVariants {
		if bytes.HasPrefix(s, []byte(v.typed)) {
			return len(v.typed), v.listed
		}
	}
	return 0, ""
}

// composedBytes is about how many bytes are composed at a time. A word across the end of such a part is cut there. (A variable, so that
// tests can lower it.)
var composedBytes = 1 << 16

// segmentComposed cuts s[start:end] where its composition (NFC) without dropped characters is cut.
func segmentComposed(cut segmenter, s []byte, start, end int, g group, yield func(piece) bool) bool {
	for start < end {
		to := partEnd(s, start, end)
		if !segmentPart(cut, s, start, to, g, yield) {
			return false
		}
		start = to
	}
	return true
}

// partEnd returns where the part of s[start:end] that is composed at a time ends: before a character that joins none before it, if there
// is one in reach.
func partEnd(s []byte, start, end int) int {
	for i := start + composedBytes; i < end; i++ {
		if !utf8.RuneStart(s[i]) {
			continue
		}
		if r, _ := utf8.DecodeRune(s[i:end]); !isDropped(r) && norm.NFC.Properties(s[i:end]).BoundaryBefore() || i >= start+2*composedBytes {
			return i
		}
	}
	return end
}

// composition is the memory for composing a part of a text.
type composition struct {
	kept     []byte
	ends     []int // of each byte of kept: where what it stands for ends in the text, with the dropped characters behind it
	composed []byte
	edges    []composedEdge // after a letter or another character
	iter     norm.Iter
}

// composedEdge is a place in a composed text and in the text it was made of.
type composedEdge struct{ composed, original int }

var compositions = sync.Pool{New: func() any { return new(composition) }}

// original returns the last edge up to byte n: within a letter that stays composed of several characters, no word ends.
func (c *composition) original(n int) int {
	i, found := slices.BinarySearchFunc(c.edges, n, func(e composedEdge, n int) int { return cmp.Compare(e.composed, n) })
	if !found {
		i--
	}
	return c.edges[i].original
}

// separates reports whether a word of a composed text begins and ends between letters.
func (c *composition) separates(start, end int) bool {
	for _, n := range [...]int{start, end} {
		if _, found := slices.BinarySearchFunc(c.edges, n, func(e composedEdge, n int) int { return cmp.Compare(e.composed, n) }); !found {
			return false
		}
	}
	return true
}

// keep takes s[start:end] without dropped characters.
func (c *composition) keep(s []byte, start, end int) {
	c.kept, c.ends = c.kept[:0], c.ends[:0]
	for i := start; i < end; {
		r, n := utf8.DecodeRune(s[i:end])
		i += n
		if isDropped(r) {
			if len(c.ends) > 0 {
				c.ends[len(c.ends)-1] = i
			}
			continue
		}
		c.kept = append(c.kept, s[i-n:i]...)
		for range n {
			c.ends = append(c.ends, i)
		}
	}
}

// compose composes what was kept of a text from start on.
func (c *composition) compose(start int, sc script) {
	c.composed, c.edges = c.composed[:0], append(c.edges[:0], composedEdge{0, start})
	if sc == thai {
		c.composeThai()
		return
	}
	for c.iter.Init(norm.NFC, c.kept); !c.iter.Done(); {
		c.composed = append(c.composed, c.iter.Next()...)
		c.edges = append(c.edges, composedEdge{len(c.composed), c.ends[c.iter.Pos()-1]})
	}
}

// composeThai composes what was kept, with the letters of the dictionary for those of thaiVariants.
func (c *composition) composeThai() {
	for i := 0; i < len(c.kept); {
		n, variant := thaiVariant(c.kept[i:])
		if n > 0 {
			c.composed = append(c.composed, variant...)
		} else {
			n = norm.NFC.NextBoundary(c.kept[i:], true)
			c.composed = norm.NFC.Append(c.composed, c.kept[i:i+n]...)
		}
		i += n
		c.edges = append(c.edges, composedEdge{len(c.composed), c.ends[i-1]})
	}
}

// segmentPart is segmentComposed for a part.
func segmentPart(cut segmenter, s []byte, start, end int, g group, yield func(piece) bool) bool {
	c := compositions.Get().(*composition)
	defer compositions.Put(c)
	if c.keep(s, start, end); len(c.kept) == 0 {
		return yield(piece{start, end, Word, false, whole, g})
	}
	c.compose(start, g.script)
	begin := start // of the last word
	return cut(c.composed, 0, len(c.composed), g, func(p piece) bool {
		if p.inner == part && !c.separates(p.start, p.end) {
			return true
		}
		p.start, p.end = c.original(p.start), c.original(p.end)
		switch {
		case p.start == p.end, p.inner == across && p.start >= begin: // it ends within a letter
			return true
		case p.inner == whole:
			begin = p.start
		}
		return yield(p)
	})
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
	for _, r := range string(s[start:end]) {
		if 0xac00 <= r && r <= 0xd7a3 || 0x1100 <= r && r <= 0x11ff {
			return koreanLexicon().segment(s, start, end, g, yield)
		}
	}
	return yield(piece{start, end, Word, false, whole, g})
}

func segmentThai(s []byte, start, end int, g group, yield func(piece) bool) bool {
	return segmentLongest(thaiWords(), s, start, end, g, yield)
}

func segmentKhmer(s []byte, start, end int, g group, yield func(piece) bool) bool {
	return segmentLongest(khmerWords(), s, start, end, g, yield)
}

// segmentLongest takes the longest word of the list at each place, or else a number or one character.
func segmentLongest(words *wordList, s []byte, start, end int, g group, yield func(piece) bool) bool {
	c := lister{list: words}
	for i := start; i < end; {
		var inside places
		n := words.longestOver(s[i:end], &inside)
		if n == 0 {
			n = characterOrNumber(s[i:end])
			if !yield(piece{i, i + n, Word, false, whole, g}) {
				return false
			}
			c.listed = false
		} else if !yield(piece{i, i + n, Word, false, whole, g}) || !c.next(s, i, i+n, inside, g, yield) {
			return false
		}
		i += n
	}
	return true
}

// characterOrNumber returns the length of the number that s starts with, or else of its first character.
func characterOrNumber(s []byte) int {
	first, n := utf8.DecodeRune(s)
	if !unicode.IsNumber(first) {
		return n
	}
	for n < len(s) {
		r, size := utf8.DecodeRune(s[n:])
		if !unicode.IsNumber(r) {
			break
		}
		n += size
	}
	return n
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
		if pending < i && !yield(piece{pending, i, Word, false, whole, g}) {
			return false
		}
		if !yield(piece{i, i + n, Word, false, whole, g}) {
			return false
		}
		i += n
		pending = i
	}
	return pending == end || yield(piece{pending, end, Word, false, whole, g})
}
