package text

import (
	"bytes"
	"sync"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// spellingMark begins the entries of spellings. No word begins with it, and no entry of a stop word.
const spellingMark = "\x00\x00"

// A spelling is a word as written: in lower case and composed (NFC; NFD if it is Cyrillic or Tamil, like its form), with the accents and
// letters that folding removes. Words whose spelling equals their form have no entry of their own. An entry has the mark, the form, a
// zero byte and the spelling, and the postings of the word. So the entries of a form, and of all forms with a prefix, are adjacent.

// AppendSpellingRange appends the first bytes of the entries of a form, or of all forms that begin with it.
func AppendSpellingRange[T ~string | ~[]byte](dst []byte, form T, prefix bool) []byte {
	dst = append(append(dst, spellingMark...), form...)
	if !prefix {
		dst = append(dst, 0)
	}
	return dst
}

// CutSpelling returns the form and the spelling of an entry that AppendSpellingRange leads to.
func CutSpelling(entry []byte) (form, spelling []byte) {
	form, spelling, _ = bytes.Cut(entry[len(spellingMark):], []byte{0})
	return form, spelling
}

// BeginsAs reports whether a spelling begins with another one, and not with a part of a letter with its accents.
func BeginsAs(spelling []byte, beginning string) bool {
	rest, ok := bytes.CutPrefix(spelling, []byte(beginning))
	if !ok {
		return false
	}
	r, _ := utf8.DecodeRune(rest)
	return !markSet.has(r)
}

// Spelling returns how a word of a query is spelt that has a form: the form if they are the same.
func Spelling(raw, form string) string {
	if isASCII([]byte(raw)) {
		return form
	}
	var buf []byte
	return string(appendSpelling(nil, &buf, []byte(raw), []byte(form)))
}

// appendSpelling appends the spelling of a word, and works in work. An article that is not in the form is not in the spelling.
func appendSpelling(dst []byte, work *[]byte, raw, form []byte) []byte {
	b, composed := (*work)[:0], true
	for i := 0; i < len(raw); {
		if c := raw[i]; c < utf8.RuneSelf {
			i++
			if !isDropped(rune(c)) {
				b = append(b, lower[c])
			}
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		i += n
		if e := spellingOf(r); e != nil {
			b = append(b, e.form[:e.size]...)
			continue
		}
		composed = false // it may compose with the character before it
		b = appendSpelt(b, r)
	}
	*work = b
	b = trimSpace(b)
	b = withoutArticle(b, form)
	if first, _ := utf8.DecodeRune(form); unicode.In(first, unicode.Cyrillic, unicode.Tamil) {
		return norm.NFD.Append(dst, b...) // like forms, which keep the marks of й and ї, and parts of Tamil vowel signs
	}
	if composed || norm.NFC.IsNormal(b) {
		return append(dst, b...)
	}
	return norm.NFC.Append(dst, b...)
}

// appendSpelt appends what spellings have of a character, decomposed.
func appendSpelt(dst []byte, r rune) []byte {
	var buf [64]byte
	for _, d := range string(appendDecomposed(buf[:0], r)) {
		if isDropped(d) {
			continue
		}
		switch d = foldYeh(unicode.ToLower(d)); d {
		case 'ـ', -1:
			continue
		case '’', '‘', '‛':
			d = '\''
		case 'ς':
			d = 'σ'
		}
		dst = utf8.AppendRune(dst, d)
	}
	return dst
}

// spellingPages are the pages of the basic plane with the composed spelling of each character, made on first use.
var spellingPages [256]atomic.Pointer[foldPage]

// spellingOf returns the spelling of a character, or nil if it may be composed with the previous one.
func spellingOf(r rune) *foldedRune {
	if r > 0xffff {
		return nil
	}
	page := spellingPages[r>>8].Load()
	if page == nil {
		page = newSpellingPage(r)
		spellingPages[r>>8].Store(page)
	}
	if e := &page[r&0xff]; e.size != slowFold {
		return e
	}
	return nil
}

// newSpellingPage makes the page with r.
func newSpellingPage(r rune) *foldPage {
	p := new(foldPage)
	for i := range p {
		c := string(r&^0xff + rune(i))
		form := norm.NFC.Bytes(appendSpelt(nil, r&^0xff+rune(i)))
		p[i].size = slowFold
		if norm.NFC.PropertiesString(c).BoundaryBefore() && len(form) <= len(p[i].form) {
			p[i].size = uint8(copy(p[i].form[:], form))
		}
	}
	return p
}

// withoutArticle cuts off the letters of an article, with their marks, that the form has not.
func withoutArticle(b, form []byte) []byte {
	first, _ := utf8.DecodeRune(form)
	article := 0
	switch {
	case unicode.Is(unicode.Arabic, first):
		article = utf8.RuneCountInString(arabicArticle)
	case unicode.Is(unicode.Hebrew, first):
		article = utf8.RuneCountInString(hebrewArticle)
	}
	if article == 0 || letters(b) != letters(form)+article {
		return b
	}
	for i := 0; i < len(b); {
		r, n := utf8.DecodeRune(b[i:])
		if !markSet.has(r) {
			if article == 0 {
				return b[i:]
			}
			article--
		}
		i += n
	}
	return b
}

// letters counts the characters that are no marks.
func letters(b []byte) (n int) {
	for _, r := range string(b) {
		if !markSet.has(r) {
			n++
		}
	}
	return n
}

// isSpelt reports whether folding takes accents off the words of a group.
func (g group) isSpelt() bool {
	switch g.script {
	case latin, cyrillic, greek, hebrew, arabic, thai, devanagari, ethiopic, tamil:
		return true
	}
	return false
}

// accentedCyrillic are the letters of U+0400 to U+04FF that folding takes accents off: ё, but not й.
var accentedCyrillic = sync.OnceValue(func() (accented [256]bool) {
	for i := range accented {
		raw := []byte(string(rune(0x400 + i)))
		form := appendFold(nil, raw, group{script: cyrillic}, nil)
		accented[i] = !bytes.Equal(appendSpelling(nil, new([]byte), raw, form), form)
	}
	return accented
})

// isAccented reports whether the spelling of a Cyrillic word may differ from its form. Most words have no spelling of their own.
func isAccented(raw []byte) bool {
	accented := accentedCyrillic()
	for _, r := range string(raw) {
		if 0x300 <= r && r < 0x370 || r>>8 == 4 && accented[r&0xff] || r > 0x4ff {
			return true
		}
	}
	return false
}

// isDotted reports whether the spelling of a Devanagari word may differ from its form: it has a nukta, alone or in a letter, a
// chandrabindu, a digit or a character of another script.
func isDotted(raw []byte) bool {
	for _, r := range string(raw) {
		switch {
		case r == nukta, r == 0x901, r == 0x929, r == 0x931, r == 0x934, 0x958 <= r && r <= 0x95f, 0x966 <= r && r <= 0x96f, r < 0x900, r > 0x97f:
			return true
		}
	}
	return false
}

// mayBeAccented reports whether the spelling of a word may differ from its form. In most scripts it takes no less to find out.
func (g group) mayBeAccented(raw, form []byte) bool {
	switch g.script {
	case cyrillic:
		return isAccented(raw)
	case devanagari:
		return len(form) < len(raw) || isDotted(raw) // nasals became anusvaras
	case ethiopic:
		return !bytes.Equal(raw, form)
	case tamil:
		return bytes.ContainsRune(raw, tamilSha)
	}
	return true
}

// spell indexes the spelling of the word that was indexed last, if it is not its form.
func (x *indexing) spell(raw, form []byte, g group) {
	word := trimSpace(form)
	if len(word) == 0 || len(form) > maxWord || !g.isSpelt() || isASCII(raw) || !g.mayBeAccented(raw, form) {
		return
	}
	key := AppendSpellingRange(x.sc.key[:0], word, false)
	n := len(key)
	key = appendSpelling(key, &x.sc.spelling, raw, word)
	if x.sc.key = key; len(key) > n && !bytes.Equal(key[n:], word) {
		x.emit(key, uint16(x.at))
	}
}
