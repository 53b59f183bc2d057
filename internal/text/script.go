package text

import (
	"encoding/binary"
	"sort"
	"unicode/utf8"
)

// script is a writing system that the analysis distinguishes.
type script uint8

const (
	other script = iota // digits, ASCII punctuation, spaces, emoji, and writing systems with no rule of their own
	latin
	cyrillic
	arabic
	devanagari
	hebrew
	ethiopic
	georgian
	bengali
	hangul
	cj // ideographs, hiragana, katakana
	greek
	kannada
	tamil
	thai
	gujarati
	gurmukhi
	telugu
	malayalam
	oriya
	myanmar
	sinhala
	khmer
)

type scriptRange struct {
	lo, hi rune
	script script
}

// scriptRanges is sorted. Characters that folding drops are left out, so that they end no group: a soft hyphen is no Latin letter.
var scriptRanges = []scriptRange{
	{'A', 'Z', latin}, {'a', 'z', latin}, {0xa0, 0xac, latin}, {0xae, 0x2af, latin},
	{0x370, 0x3ff, greek},
	{0x400, 0x484, cyrillic}, {0x487, 0x52f, cyrillic},
	{0x590, 0x5ff, hebrew},
	{0x600, 0x61b, arabic}, {0x61d, 0x6ff, arabic}, {0x750, 0x7ff, arabic}, {0x8a0, 0x8ff, arabic},
	{0x900, 0x97f, devanagari}, {0x980, 0x9ff, bengali}, {0xa00, 0xa7f, gurmukhi}, {0xa80, 0xaff, gujarati},
	{0xb00, 0xb7f, oriya}, {0xb80, 0xbff, tamil}, {0xc00, 0xc7f, telugu}, {0xc80, 0xcff, kannada},
	{0xd00, 0xd7f, malayalam}, {0xd80, 0xdff, sinhala}, {0xe00, 0xe7f, thai},
	{0x1000, 0x109f, myanmar}, {0x10a0, 0x10ff, georgian}, {0x1100, 0x11ff, hangul}, {0x1200, 0x139f, ethiopic},
	{0x1780, 0x17ff, khmer}, {0x19e0, 0x19ff, khmer},
	{0x1cd0, 0x1cff, devanagari}, {0x1d00, 0x1dbf, latin}, {0x1e00, 0x1eff, latin},
	{0x2100, 0x214f, latin}, {0x2c60, 0x2c7f, latin}, {0x2d80, 0x2ddf, ethiopic}, {0x2de0, 0x2dff, cyrillic},
	{0x2e80, 0x2e99, cj}, {0x2e9b, 0x2ef3, cj}, {0x2f00, 0x2fd5, cj}, {0x3005, 0x3005, cj}, {0x3007, 0x3007, cj},
	{0x3021, 0x3029, cj}, {0x3038, 0x303b, cj}, {0x3040, 0x30ff, cj},
	{0x3130, 0x318f, hangul}, {0x3200, 0x32ff, hangul},
	{0x3400, 0x4db5, cj}, {0x4e00, 0x9fcc, cj},
	{0xa640, 0xa69d, cyrillic}, {0xa69f, 0xa69f, cyrillic}, {0xa720, 0xa7ff, latin}, {0xa8e0, 0xa8ff, devanagari},
	{0xa960, 0xa97f, hangul}, {0xab00, 0xab2f, ethiopic}, {0xab30, 0xab6f, latin}, {0xac00, 0xd7ff, hangul},
	{0xf900, 0xfa6d, cj}, {0xfa70, 0xfad9, cj}, {0xfb50, 0xfdff, arabic}, {0xfe70, 0xfefe, arabic},
	{0xff00, 0xffef, hangul},
	{0x10e60, 0x10e7f, arabic}, {0x1ee00, 0x1eeff, arabic},
}

// scriptRangeOf returns the range that holds r; for a character of no script the whole gap around it, as other.
func scriptRangeOf(r rune) scriptRange {
	i := sort.Search(len(scriptRanges), func(i int) bool { return scriptRanges[i].hi >= r })
	if i < len(scriptRanges) && scriptRanges[i].lo <= r {
		return scriptRanges[i]
	}
	gap := scriptRange{0, utf8.MaxRune, other}
	if i > 0 {
		gap.lo = scriptRanges[i-1].hi + 1
	}
	if i < len(scriptRanges) {
		gap.hi = scriptRanges[i].lo - 1
	}
	return gap
}

// maxMovedDigits is the maximum number of digits before another script that move to it.
const maxMovedDigits = 32

// withoutNumber returns the end of a group, s[:n] by its script, without trailing digits that belong to the letters after them:
// 订单54OR32 ends in 54or32. Only scripts without spaces between words leave their digits to others.
func withoutNumber(s []byte, n int, of script) int {
	if n == len(s) || of != cj && of != hangul && of != thai && of != khmer {
		return n
	}
	digits := 0
	for digits < min(n, maxMovedDigits) && '0' <= s[n-1-digits] && s[n-1-digits] <= '9' {
		digits++
	}
	if digits == maxMovedDigits {
		return n
	}
	return n - digits
}

// nextGroup returns the script of the group at the start of s, and its end: before the first character of another script. Characters
// without a script belong to the group on their left, those at the start to the first group. If s continues a group, group is its
// script, else other.
func nextGroup(s []byte, group script) (script, int) {
	last := scriptRange{0xae, 0x2af, latin}
	for i := 0; i < len(s); {
		if group == latin && i+8 <= len(s) && binary.LittleEndian.Uint64(s[i:])&0x8080808080808080 == 0 {
			i += 8 // nothing in ASCII ends it
			continue
		}
		if b := s[i]; b < utf8.RuneSelf {
			if c := b | 0x20; 'a' <= c && c <= 'z' {
				if group == other {
					group = latin
				} else if group != latin {
					return group, i
				}
			}
			i++
			continue
		}
		r, n := utf8.DecodeRune(s[i:])
		if r < last.lo || r > last.hi {
			last = scriptRangeOf(r)
		}
		if last.script != other {
			if group == other {
				group = last.script
			} else if group != last.script {
				return group, i
			}
		}
		i += n
	}
	return group, len(s)
}
