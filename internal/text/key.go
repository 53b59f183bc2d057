package text

import (
	"bytes"
	"sync/atomic"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// keyFolder folds words of a text and of the settings to what they are compared by: stop words and entries of the dictionary. Accents
// count. Case, composition, widths of letters and dropped characters do not, nor do letters that are typed for each other, whatever the
// language, and marks that most texts leave out.
type keyFolder struct{ dst []byte }

// char folds a character.
func (k *keyFolder) char(r rune) {
	if r < utf8.RuneSelf {
		if !isDropped(r) {
			k.dst = append(k.dst, lower[r])
		}
		return
	}
	if r <= 0xffff && k.quick(r) {
		return
	}
	k.slow(r)
}

// keyPages are the pages of the basic plane with the key of each character, made when they are first needed.
var keyPages [256]atomic.Pointer[foldPage]

// quick folds a character by its page, and reports whether the page has its key.
func (k *keyFolder) quick(r rune) bool {
	page := keyPages[r>>8].Load()
	if page == nil {
		page = newKeyPage(r)
		keyPages[r>>8].Store(page)
	}
	e := &page[r&0xff]
	if e.size == slowFold {
		return false
	}
	k.dst = append(k.dst, e.form[:e.size]...)
	return true
}

// newKeyPage makes the page with r. Marks and letters whose key depends on the character before them are left out.
func newKeyPage(r rune) *foldPage {
	p := new(foldPage)
	for i := range p {
		r := r&^0xff + rune(i)
		var k keyFolder
		k.slow(r)
		p[i].size = slowFold
		mark := norm.NFD.PropertiesString(string(r)).CCC() != 0 || 0xe48 <= r && r <= 0xe4b || 0xec8 <= r && r <= 0xecb
		if !mark && r != 'เ' && len(k.dst) <= len(p[i].form) {
			p[i].size = uint8(copy(p[i].form[:], k.dst))
		}
	}
	return p
}

// slow folds a character without its page.
func (k *keyFolder) slow(r rune) {
	var buf [64]byte
	for d := appendDecomposed(buf[:0], r); len(d) > 0; {
		r, n := utf8.DecodeRune(d)
		d = d[n:]
		if !isDropped(r) {
			k.decomposed(asciiDigit(unicode.ToLower(r)))
		}
	}
}

const (
	saraE, saraAe = "เ", "แ"
	nikhahit      = "\u0e4d" // stands before or behind a tone mark
)

// decomposed folds a character of a decomposition, in lower case.
func (k *keyFolder) decomposed(r rune) {
	switch r = foldArabic(r); {
	case r == hamzaAbove && bytes.HasSuffix(k.dst, []byte(ae)): // of ۀ
		k.dst = append(k.dst[:len(k.dst)-len(ae)], "ه"...)
		return
	case r < 0, r == joiner, r == apostrophe: // of Ukrainian words
		return
	case 0x591 <= r && r <= 0x5c7 && markSet.has(r), 0x610 <= r && r <= 0x6ed && markSet.has(r), 0x730 <= r && r <= 0x74a: // vowels
		return
	case r == 0x307 && bytes.HasSuffix(k.dst, []byte("i")): // of İ
		return
	case 0x300 <= r && r < 0x370 && k.isStress(r):
		return
	case 0xe48 <= r && r <= 0xe4b && bytes.HasSuffix(k.dst, []byte(nikhahit)), 0xec8 <= r && r <= 0xecb && bytes.HasSuffix(k.dst, []byte(niggahita)):
		mark, n := utf8.DecodeLastRune(k.dst)
		k.dst = utf8.AppendRune(utf8.AppendRune(k.dst[:len(k.dst)-n], r), mark)
		return
	case 'װ' <= r && r <= 'ײ':
		k.dst = append(k.dst, yiddish(r)...)
		return
	case r == 'เ' && bytes.HasSuffix(k.dst, []byte(saraE)):
		k.dst = append(k.dst[:len(k.dst)-len(saraE)], saraAe...)
		return
	case 'ൺ' <= r && r <= 'ൿ':
		k.dst = append(k.dst, chillu(r)...)
		return
	}
	switch r {
	case 'ß':
		k.dst = append(k.dst, "ss"...)
		return
	case 'ς':
		r = 'σ'
	case 'ı':
		r = 'i'
	case '’':
		r = '\''
	case 'ヵ':
		r = 'カ'
	case 'ヶ':
		r = 'ケ'
	case 'ゕ':
		r = 'か'
	case 'ゖ':
		r = 'け'
	case tamilSha:
		r = tamilSa
	default:
		r = ethiopicSound(r)
		if r >= firstIdeograph {
			if v, ok := chineseVariants()[r]; ok {
				r = v
			}
		}
	}
	at := len(k.dst)
	k.dst = utf8.AppendRune(k.dst, r)
	if r >= 0x300 {
		k.reorder(at)
	}
}

// isStress reports whether a mark only shows the stress of a Cyrillic word.
func (k *keyFolder) isStress(r rune) bool {
	if r != grave && r != acute {
		return false
	}
	last, _ := utf8.DecodeLastRune(k.dst)
	return unicode.Is(unicode.Cyrillic, last)
}

// reorder moves the last character, at a byte, before the marks that stand behind it in canonical order.
func (k *keyFolder) reorder(at int) {
	class := norm.NFD.Properties(k.dst[at:]).CCC()
	if class == 0 {
		return
	}
	to := at
	for to > 0 {
		_, n := utf8.DecodeLastRune(k.dst[:to])
		if norm.NFD.Properties(k.dst[to-n:to]).CCC() <= class {
			break
		}
		to -= n
	}
	if to < at {
		var mark [utf8.UTFMax]byte
		n := copy(mark[:], k.dst[at:])
		copy(k.dst[to+n:], k.dst[to:at])
		copy(k.dst[to:], mark[:n])
	}
}

// appendStopKey appends the form by which stop words are compared.
func appendStopKey(dst, raw []byte) []byte {
	k := keyFolder{dst}
	for i := 0; i < len(raw); {
		if b := raw[i]; b < utf8.RuneSelf {
			i++
			if !isDropped(rune(b)) {
				k.dst = append(k.dst, lower[b])
			}
			continue
		}
		r, n := utf8.DecodeRune(raw[i:])
		k.char(r)
		i += n
	}
	return k.dst
}
