package text

// Locales is the list of languages allowed for a text. nil means any, and an empty list means none.
type Locales []string

// language is a language that the analysis distinguishes.
type language uint8

const (
	anyLanguage language = iota // not looked at, or nothing fits
	otherLanguage
	ara
	heb
	cmn
	cmnAsWritten // cmn by version 2 of Chinese: traditional characters are not simplified before words are looked up
	jpn
	deu
	swe
)

func languageByCode(code string) language {
	if c, ok := Locale(code); ok {
		code = c
	}
	switch code {
	case "ara":
		return ara
	case "heb":
		return heb
	case "cmn", "zho":
		return cmn
	case "jpn":
		return jpn
	case "deu":
		return deu
	case "swe":
		return swe
	}
	return otherLanguage
}

// allow reports whether the list has the language.
func (l Locales) allow(x language) bool {
	for _, code := range l {
		if languageByCode(code) == x {
			return true
		}
	}
	return false
}

// allowCode reports whether the list has a language by its ISO 639-3 code.
func (l Locales) allowCode(three string) bool {
	for _, code := range l {
		if c, ok := Locale(code); ok && c == three {
			return true
		}
	}
	return false
}

// languageOf chooses the language of a group. It matters only if a script has several segmenters or normalisations.
func languageOf(sc script, group []byte, l Locales) language {
	switch sc {
	case latin, cj:
	case arabic:
		// A query is too short for a guess. The letters of its words decide which of them may have an article.
		if !l.allow(ara) && (l.allowCode("pes") || l.allowCode("urd")) {
			return otherLanguage
		}
		return ara
	case hebrew:
		if !l.allow(heb) && l.allowCode("yid") {
			return otherLanguage
		}
		return heb
	default:
		return anyLanguage
	}
	if len(l) == 1 {
		return languageByCode(l[0])
	}
	switch {
	case sc == latin:
		if !l.allow(deu) && !l.allow(swe) {
			return anyLanguage
		}
		list := profiles()
		if i := guess(list, group, l.allowCode); i >= 0 {
			return languageByCode(list[i].code)
		}
		return anyLanguage
	case l != nil && l.allow(jpn) && !l.allow(cmn):
		return jpn
	}
	guess := chineseOrJapanese(group)
	if guess == cmn && l != nil && !l.allow(cmn) {
		return otherLanguage
	}
	return guess
}

// guessed reports whether languageOf looks at the text of a group.
func guessed(sc script, l Locales) bool {
	switch sc {
	case latin:
		return len(l) > 1 && (l.allow(deu) || l.allow(swe))
	case cj:
		return len(l) != 1
	}
	return false
}

// chineseOrJapanese decides by the share of kana, because Japanese is rarely written without them.
func chineseOrJapanese(group []byte) language {
	kana, ideographs := 0, 0
	for _, r := range string(group) {
		switch {
		case r == voiced || r == halfVoiced: // of the kana before
		case 0x3040 <= r && r <= 0x30ff:
			kana++
		case r >= 0x2e80 && scriptRangeOf(r).script == cj:
			ideographs++
		}
	}
	if kana*20 > kana+ideographs {
		return jpn
	}
	return cmn
}

// localePairs are the accepted languages: ISO 639-1 and ISO 639-3.
const localePairs = "af afr ak aka am amh ar ara az aze be bel bg bul bn ben ca cat cs ces da dan de deu el ell en eng eo epo es spa " +
	"et est fa pes fi fin fr fra gu guj he heb hi hin hr hrv hu hun hy hye id ind it ita ja jpn jv jav ka kat km khm kn kan ko kor " +
	"la lat lt lit lv lav mk mkd ml mal mr mar my mya nb nob ne nep nl nld or ori pa pan pl pol pt por ro ron ru rus si sin sk slk " +
	"sl slv sn sna sr srp sv swe ta tam te tel th tha tk tuk tl tgl tr tur uk ukr ur urd uz uzb vi vie yi yid zh zho zu zul"

var localeCodes = func() map[string]string {
	codes := map[string]string{"cmn": "cmn"}
	for s := localePairs; s != ""; {
		two, three := s[:2], s[3:6]
		codes[two], codes[three] = three, three
		s = s[min(len(s), 7):]
	}
	return codes
}()

// Locale returns the ISO-639-3 code of a two- or three-letter code, or false when svc does not know it.
func Locale(code string) (string, bool) {
	c, ok := localeCodes[code]
	return c, ok
}
