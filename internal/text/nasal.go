package text

import (
	"bytes"
	"unicode/utf8"
)

// A nasal consonant without a vowel sounds like an anusvara before a stop that is spoken at the same place, and writers of Indian
// languages use both: हिन्दी and हिंदी are one word. The blocks of these scripts in Unicode have one order, in which each nasal follows its
// four stops.

// Code points in the block of a script.
const (
	blockAnusvara = 0x02
	blockVirama   = 0x4d // says that a consonant has no vowel

	velarNasal = 1 << 0x19 // of k and g
	allNasals  = velarNasal | 1<<0x1e | 1<<0x23 | 1<<0x28 | 1<<0x2e
)

// nasals returns the block of a script whose nasals become anusvaras, or 0, and the set of these nasals. In Bengali it is the velar one:
// the others are hardly ever written as anusvara.
func (s script) nasals() (block rune, set uint64) {
	switch s {
	case devanagari:
		return 0x900, allNasals
	case bengali:
		return 0x980, velarNasal
	case gujarati:
		return 0xa80, allNasals
	case telugu:
		return 0xc00, allNasals
	case kannada:
		return 0xc80, allNasals
	}
	return 0, 0
}

// foldNasals replaces the nasals in a form by anusvaras, in place, and returns the shorter form. ends are those of appendFold.
func foldNasals(form []byte, s script, ends []int) []byte {
	block, set := s.nasals()
	if block == 0 || len(form) < 3*3 {
		return form
	}
	var buf [utf8.UTFMax]byte
	virama := utf8.AppendRune(buf[:0], block+blockVirama)
	for at := 0; ; {
		i := bytes.Index(form[at:], virama)
		if i < 0 {
			return form
		}
		at += i
		nasal, n := utf8.DecodeLastRune(form[:at])
		stop, _ := utf8.DecodeRune(form[at+len(virama):])
		if set>>uint32(nasal-block)&1 == 0 || stop < nasal-4 || stop >= nasal {
			at += len(virama)
			continue
		}
		form = append(utf8.AppendRune(form[:at-n], block+blockAnusvara), form[at+len(virama):]...)
		for j, end := range ends {
			if end > at {
				ends[j] = max(at, end-len(virama))
			}
		}
	}
}
