package text

import (
	"bytes"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

var markSet = newRuneSet(nonspacingMarks)

// appendDecomposed appends the compatibility decomposition (NFKD) of one character. Text is decomposed one character at a time, so
// that each keeps its own bytes. Marks are not reordered.
func appendDecomposed(dst []byte, r rune) []byte {
	if r < utf8.RuneSelf {
		return append(dst, byte(r))
	}
	// Hangul syllables decompose by arithmetic (Unicode 3.12).
	const base, count, vowels, trails = 0xac00, 11172, 21, 28
	if i := r - base; 0 <= i && i < count {
		dst = utf8.AppendRune(dst, 0x1100+i/(vowels*trails))
		dst = utf8.AppendRune(dst, 0x1161+i%(vowels*trails)/trails)
		if t := i % trails; t != 0 {
			dst = utf8.AppendRune(dst, 0x11a7+t)
		}
		return dst
	}
	var buf [utf8.UTFMax]byte
	n := utf8.EncodeRune(buf[:], r)
	if d := norm.NFKD.Properties(buf[:n]).Decomposition(); d != nil {
		return append(dst, d...)
	}
	return append(dst, buf[:n]...)
}

// isDropped reports whether a character has no meaning for search in any script: control characters other than white space, soft
// hyphens, word joiners, byte-order marks, variation selectors, marks of the direction of writing.
func isDropped(r rune) bool {
	switch {
	case r < 0x20 || 0x7f <= r && r < 0xa0:
		return !(0x09 <= r && r <= 0x0d || r == 0x85)
	case r < 0xad:
		return false
	}
	return r == 0xad || r == 0x61c || 0x180b <= r && r <= 0x180f || r == 0x200e || r == 0x200f || 0x202a <= r && r <= 0x202e || 0x2060 <= r && r <= 0x206f ||
		r == 0xfeff || 0xfe00 <= r && r <= 0xfe0f || 0xe0100 <= r && r <= 0xe01ef
}

// appendBase appends the form by which a piece is recognised as a separator: decomposed, without dropped characters.
func appendBase(dst, raw []byte) []byte {
	var buf [64]byte
	for i := 0; i < len(raw); {
		r, n := utf8.DecodeRune(raw[i:])
		i += n
		for _, d := range string(appendDecomposed(buf[:0], r)) {
			if !isDropped(d) {
				dst = utf8.AppendRune(dst, d)
			}
		}
	}
	return dst
}

// foldYeh folds letters that writers of Arabic, Persian and Urdu type for each other, and Persian digits and punctuation, whatever
// the language. -1 drops the character. A form never has more bytes than the character.
func foldYeh(r rune) rune {
	if r < 0x60c || r > 0x6f9 && r != 0x200c {
		return r
	}
	switch r {
	case 'ى', 'ی':
		return 'ي'
	case 'ک':
		return 'ك'
	case 'ہ', 'ۃ':
		return 'ه'
	case '،':
		return ','
	case '؟':
		return '?'
	case 0x200c:
		return -1
	}
	if '۰' <= r && r <= '۹' {
		return '0' + r - '۰'
	}
	return r
}

// foldArabic folds spelling variants of Arabic.
func foldArabic(r rune) rune {
	switch r {
	case 'أ', 'إ', 'آ', 'ٱ':
		return 'ا'
	case 'ة':
		return 'ه'
	case 'ـ':
		return -1
	}
	return foldYeh(r)
}

// foldPage holds folded forms for 256 code points.
type foldPage [256]foldedRune

// foldedRune is the form of one code point.
type foldedRune struct {
	size uint8 // slowFold: not kept here
	form [11]byte
}

const slowFold = 0xff

// foldPages are the pages of the basic plane for the kinds of scripts that fold alike, made when they are first needed.
var foldPages [10][256]atomic.Pointer[foldPage]

// foldPagesOf returns the pages for a group, or nil if a character's form depends on those before it.
func foldPagesOf(g group) *[256]atomic.Pointer[foldPage] {
	switch g.script {
	case latin:
		if g.language == swe {
			return nil
		}
		return &foldPages[0]
	case arabic:
		return &foldPages[1]
	case hebrew, thai, greek:
		return &foldPages[2]
	case cj:
		return &foldPages[3]
	case cyrillic:
		return &foldPages[4]
	case devanagari:
		return &foldPages[5]
	case malayalam:
		return &foldPages[6]
	case ethiopic:
		return &foldPages[7]
	case tamil:
		return &foldPages[8]
	}
	return &foldPages[9]
}

// newFoldPage makes the page with r. What has a kana in its form is left out: its form depends on the kana before it. So do those of a
// Cyrillic diaeresis, a Thai sara e, the tone marks of Lao, a zero-width joiner and a hamza above.
func newFoldPage(g group, r rune) *foldPage {
	p := new(foldPage)
	for i := range p {
		f := folder{group: g}
		f.char(r&^0xff + rune(i))
		p[i].size = slowFold
		if len(f.dst) <= len(p[i].form) && !bytes.ContainsFunc(f.dst, isKana) && (g.script != cyrillic || r&^0xff+rune(i) != diaeresis) && r&^0xff+rune(i) != 'เ' && r&^0xff+rune(i) != joiner && r&^0xff+rune(i) != hamzaAbove && (r>>8 != 0xe || i < 0xc8 || i > 0xcb) {
			p[i].size = uint8(copy(p[i].form[:], f.dst))
		}
	}
	return p
}

func isKana(r rune) bool { return 0x3041 <= r && r <= 0x30fc }

// appendFold appends the folded form of a piece of a group. ends, if not nil, gets for each
// original character how many bytes the form has after it.
func appendFold(dst, raw []byte, g group, ends *[]int) []byte {
	f := folder{dst: dst, start: len(dst), group: g}
	pages := foldPagesOf(g)
	first := 0
	if ends != nil {
		first = len(*ends)
	}
	for i := 0; i < len(raw); {
		if b := raw[i]; b < utf8.RuneSelf {
			i++
			if 'A' <= b && b <= 'Z' {
				b |= 0x20
			}
			if b >= ' ' && b != 0x7f || !isDropped(rune(b)) {
				f.previous = rune(b)
				f.dst = append(f.dst, b)
			}
		} else {
			r, n := utf8.DecodeRune(raw[i:])
			i += n
			if pages == nil || r > 0xffff || !f.quick(pages, r) {
				f.char(r)
			}
		}
		if ends != nil {
			*ends = append(*ends, len(f.dst)-f.start)
		}
	}
	if block, _ := g.script.nasals(); block != 0 {
		var own []int
		if ends != nil {
			own = (*ends)[first:]
		}
		return f.dst[:f.start+len(foldNasals(f.dst[f.start:], g.script, own))]
	}
	return f.dst
}

// quick folds a character by its page, and reports whether the page has its form.
func (f *folder) quick(pages *[256]atomic.Pointer[foldPage], r rune) bool {
	page := pages[r>>8].Load()
	if page == nil {
		page = newFoldPage(f.group, r)
		pages[r>>8].Store(page)
	}
	e := &page[r&0xff]
	if e.size == slowFold {
		return false
	}
	f.dst = append(f.dst, e.form[:e.size]...)
	if e.size > 0 {
		f.previous = -1
	}
	return true
}

// folder folds characters one after the other.
type folder struct {
	group
	dst      []byte
	start    int  // of the form in dst
	previous rune // the last decomposed and folded character that was not dropped, marks included
	buf      [64]byte
}

// char folds one original character.
func (f *folder) char(r rune) {
	var d []byte
	switch {
	case r < utf8.RuneSelf:
		f.buf[0] = byte(r)
		d = f.buf[:1]
	case r == '℃' || r == '℉': // the sign of degrees is a separator
		f.buf[0] = map[rune]byte{'℃': 'c', '℉': 'f'}[r]
		d = f.buf[:1]
	default:
		d = appendDecomposed(f.buf[:0], r)
	}
	for len(d) > 0 {
		r, n := utf8.DecodeRune(d)
		f.decomposed(r)
		d = d[n:]
	}
}

// decomposed folds one character of a decomposition.
func (f *folder) decomposed(r rune) {
	if isDropped(r) {
		return
	}
	switch f.script {
	case latin:
		if f.language == swe && f.swedish(r) {
			return
		}
		fallthrough
	case hebrew, thai, arabic, greek:
		if r == 'เ' && f.previous == r { // typed for sara ae
			f.dst = append(f.dst[:len(f.dst)-len("เ")], "แ"...)
			f.previous = 'แ'
			return
		}
		if r >= 0x300 && markSet.has(r) {
			if r == hamzaAbove && bytes.HasSuffix(f.dst[f.start:], []byte(ae)) { // of ۀ, a form of heh
				f.dst = append(f.dst[:len(f.dst)-len(ae)], "ه"...)
			}
			f.previous = r
			return
		}
	case devanagari:
		switch r {
		case nukta:
			return
		case 'ँ':
			r = anusvara
		}
	case malayalam:
		if 'ൺ' <= r && r <= 'ൿ' {
			f.dst = append(f.dst, chillu(r)...)
			f.previous = r
			return
		}
	case ethiopic:
		r = ethiopicSound(r)
	case tamil:
		r = tamilSound(r)
	case cyrillic:
		if r == apostrophe || r == grave || r == acute || r == diaeresis && bytes.HasSuffix(f.dst[f.start:], []byte("е")) {
			f.previous = r
			return
		}
	}
	switch {
	case r == joiner && f.afterLetter(), 0x730 <= r && r <= 0x74a: // vowels of Syriac
		return
	case 0xec8 <= r && r <= 0xecb && bytes.HasSuffix(f.dst[f.start:], []byte(niggahita)): // written before or behind a tone mark
		f.dst = append(utf8.AppendRune(f.dst[:len(f.dst)-len(niggahita)], r), niggahita...)
		f.previous = r
		return
	case 'װ' <= r && r <= 'ײ': // two letters each
		f.dst = append(f.dst, yiddish(r)...)
		f.previous = r
		return
	}
	r = asciiDigit(unicode.ToLower(r))
	if f.script == arabic {
		if r = foldArabic(r); r < 0 {
			return
		}
	}
	switch r {
	case 'œ':
		f.dst = append(f.dst, "oe"...)
		f.previous = 'e'
		return
	case 'æ':
		f.dst = append(f.dst, "ae"...)
		f.previous = 'e'
		return
	case 'ß':
		f.dst = append(f.dst, "ss"...)
		f.previous = 's'
		return
	case 'đ', 'ð':
		r = 'd'
	case 'ı':
		r = 'i'
	case 'ς':
		r = 'σ'
	case 'ґ':
		if f.script == cyrillic {
			r = 'г'
		}
	case '’', '‘', '‛':
		if f.script == latin {
			r = '\''
		}
	default:
		if isKana(r) {
			r = hiragana(r, f.previous)
			if r == voiced || r == halfVoiced {
				f.dst = utf8.AppendRune(f.dst, r) // the kana before it stays the previous one
				return
			}
		} else if f.script == cj {
			// In every language, because a query may be too short to detect it.
			if v, ok := chineseVariants()[r]; ok {
				r = v
			}
		}
	}
	f.previous = r
	f.dst = utf8.AppendRune(f.dst, r)
}

// chillu returns what a Malayalam letter from ൺ to ൿ stands for: a consonant without a vowel.
func chillu(r rune) string { return "ണനരലളക"[3*(r-'ൺ'):][:3] + "്" }

// yiddish returns the two letters that a letter from װ to ײ stands for.
func yiddish(r rune) string { return "וווייי"[4*(r-'װ'):][:4] }

// afterLetter reports whether the form ends in a letter or its mark. A joiner there asks for a form of the letter. In a pictograph it
// stands between pictures.
func (f *folder) afterLetter() bool {
	r, _ := utf8.DecodeLastRune(f.dst[f.start:])
	return unicode.IsLetter(r) || unicode.IsMark(r)
}

// asciiDigit returns the ASCII digit for a decimal digit of any script, and other characters as they are.
func asciiDigit(r rune) rune {
	// Most characters are in these ranges, which have no digit but those of ASCII: ideographs, kana and Hangul, for instance.
	if r < 0x660 || 0x1c5a <= r && r < 0xa620 || 0xac00 <= r && r < 0xff10 {
		return r
	}
	// The digits of a script, or several sets of them, are a range that starts with a zero.
	for _, digits := range unicode.Nd.R16 {
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return '0' + (r-rune(digits.Lo))%10
		}
	}
	for _, digits := range unicode.Nd.R32 {
		if rune(digits.Lo) <= r && r <= rune(digits.Hi) {
			return '0' + (r-rune(digits.Lo))%10
		}
	}
	return r
}

// swedish composes å, ä or ö again if r is its mark, and reports whether it did.
func (f *folder) swedish(r rune) bool {
	composed := ""
	switch {
	case r == 0x30a && f.previous == 'a':
		composed = "å"
	case r == 0x308 && f.previous == 'a':
		composed = "ä"
	case r == 0x308 && f.previous == 'o':
		composed = "ö"
	default:
		return false
	}
	f.dst = append(f.dst[:len(f.dst)-1], composed...)
	f.previous = r
	return true
}

// Marks of Cyrillic letters that are dropped: grave and acute accents show the stress, and ё is often written е. Those of й and ї stay.
// The apostrophe of Ukrainian words is one of several, most of which are separators.
const (
	apostrophe   = 'ʼ'
	grave, acute = 0x300, 0x301
	diaeresis    = 0x308
)

const (
	hamzaAbove = 0x654
	ae         = "ە" // a vowel of Kurdish and Uyghur. With a hamza it is the decomposition of ۀ, as Persian and Urdu write heh.

	nukta    = 0x93c // a dot below a letter, which is often left out
	anusvara = 0x900 + blockAnusvara
	joiner   = 0x200d
	// niggahita is a mark of Lao. With sara aa it is sara am, whose decomposition has it behind the tone mark.
	niggahita = "\u0ecd"
)

const (
	voiced, halfVoiced = 0x3099, 0x309a // combining marks
	prolonged          = 'ー'
)

// kanaVowels are the vowels of U+3041 to U+3096.
const kanaVowels = "aaiiuueeooaaiiuueeooaaiiuueeooaaiiuuueeooaiueoaaaiiiuuueeeoooaiueoaauuooaiueoaaieo-uae"

// hiragana returns the hiragana for a katakana; a prolonged sound mark becomes the vowel of the
// kana before it. Small ka and ke, which names of places have, become ordinary ones. The middle dot and all else stay.
func hiragana(r, previous rune) rune {
	switch {
	case 'ァ' <= r && r <= 'ヴ':
		return r - 'ァ' + 'ぁ'
	case r == 'ヵ' || r == 'ゕ':
		return 'か'
	case r == 'ヶ' || r == 'ゖ':
		return 'け'
	case r == prolonged:
		if i := int(previous - 'ぁ'); 0 <= i && i < len(kanaVowels) {
			switch kanaVowels[i] {
			case 'a':
				return 'あ'
			case 'i':
				return 'い'
			case 'u', 'o':
				return 'う'
			case 'e':
				return 'え'
			}
		}
	}
	return r
}
