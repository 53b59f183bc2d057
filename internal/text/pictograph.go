package text

import "unicode/utf8"

// maxPictograph is the maximum number of bytes of a sequence of pictographs that is one word. The flags of parts of a country have
// 28.
const maxPictograph = 64

// isPictograph reports whether a character is always a word of its own: an emoji or another picture, or a sign for a word, such as №
// and ℃.
func isPictograph(r rune) bool {
	switch {
	case r < 0x2100:
		return false
	case r < 0x2150:
		switch r {
		case 0x2100, 0x2101, 0x2103, 0x2104, 0x2105, 0x2106, 0x2108, 0x2109, 0x2114, 0x2116, 0x211e, 0x211f, 0x2121, 0x2123, 0x2125, 0x2127,
			0x2129, 0x212e, 0x213a, 0x213b, 0x214a, 0x214c, 0x214d, 0x214f:
			return true
		}
		return false
	case r < 0x231a:
		return false
	case r < 0x2600:
		return r == 0x231a || r == 0x231b || r == 0x2328 || r == 0x23cf || 0x23e9 <= r && r <= 0x23f3 || 0x23f8 <= r && r <= 0x23fa
	case r < 0x27c0:
		return r < 0x2768 || 0x2794 <= r
	case r < 0x3021:
		return r == 0x2b1b || r == 0x2b1c || r == 0x2b50 || r == 0x2b55 || r == 0x3012 || r == 0x3013 || r == 0x3020
	}
	return 0x1f000 <= r && r <= 0x1faff
}

// pictograph returns the length of the sequence that is shown as one picture. s begins with r, which has n bytes.
func pictograph(s []byte, r rune, n int) int {
	isLetter := func(r rune) bool { return 0x1f1e6 <= r && r <= 0x1f1ff } // two are a flag
	half := isLetter(r)
	for n < len(s) {
		next, size := utf8.DecodeRune(s[n:])
		switch {
		case half && isLetter(next):
			half = false
		case next == 0xfe0e || next == 0xfe0f || next == 0x20e3 || 0x1f3fb <= next && next <= 0x1f3ff || 0xe0020 <= next && next <= 0xe007f:
		case next == 0x200d: // joins what stands behind it
			joined, more := utf8.DecodeRune(s[n+size:])
			if !isPictograph(joined) {
				return n
			}
			size += more
		default:
			return n
		}
		if n += size; n > maxPictograph {
			return n - size
		}
	}
	return n
}
