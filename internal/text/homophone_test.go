package text

import (
	"slices"
	"strings"
	"testing"

	"golang.org/x/text/unicode/norm"
)

// TestHomophones checks that words find each other if they differ in letters of one sound, and no others.
func TestHomophones(t *testing.T) {
	for _, test := range []struct{ a, b string }{
		{"ፀሐይ", "ጸሀይ"}, {"ዓለም", "አለም"}, {"ዐይን", "ኣይን"}, {"ሠላም", "ሰላም"}, {"ኃይል", "ሀይል"}, {"ኅብረት", "ህብረት"}, {"ሃይማኖት", "ሀይማኖት"}, {"ኢትዮጵያ", "ኢትዮጵያ"},
		{"ஶ்ரீ", "ஸ்ரீ"}, {"ஶ்ரீரங்கம்", "ஸ்ரீரங்கம்"},
	} {
		if a, b := Fold(test.a), Fold(test.b); a != b {
			t.Errorf("%s becomes %q, %s becomes %q", test.a, a, test.b, b)
		}
	}
	seen := map[string]string{}
	for _, row := range []string{"ሀሁሂሄህሆ", "ለሉሊላሌልሎሏ", "መሙሚማሜምሞሟ", "ሰሱሲሳሴስሶሷ", "ሸሹሺሻሼሽሾሿ", "ከኩኪካኬክኮኳ", "ኸኹኺኻኼኽኾ", "አኡኢኤእኦኧ", "ጸጹጺጻጼጽጾጿ", "ፈፉፊፋፌፍፎፏ", "சஜஷஸஹ"} {
		for _, r := range row {
			form := Fold(string(r))
			if other := seen[form]; other != "" || form != string(r) {
				t.Errorf("%c becomes %q, as %q does", r, form, other)
			}
			seen[form] = string(r)
		}
	}
}

// TestHomophonesAreSpelt checks that a word has the entry of its spelling if a letter of it was replaced, and only then.
func TestHomophonesAreSpelt(t *testing.T) {
	spelt := 0
	for r := rune(0x1200); r < 0x1400; r++ {
		spelt += checkSpelt(t, string([]rune{'መ', r, 'ም'}))
	}
	for r := rune(0xb85); r < 0xbba; r++ {
		spelt += checkSpelt(t, string([]rune{'ம', r}))
	}
	if spelt < 30 {
		t.Errorf("only %d words have spellings", spelt)
	}
}

// checkSpelt returns 1 if a word has a spelling of its own.
func checkSpelt(t *testing.T, word string) int {
	t.Helper()
	var spellings []string
	New(Config{}).Index(new(Positions), []byte(word), nil, func(entry []byte, _ uint16) {
		if strings.HasPrefix(string(entry), spellingMark) {
			_, s := CutSpelling(entry)
			spellings = append(spellings, string(s))
		}
	})
	form := Fold(word)
	want := form != norm.NFD.String(word) && strings.ToLower(word) == word && !strings.ContainsFunc(word, func(r rune) bool { return asciiDigit(r) != r })
	if want != slices.Contains(spellings, norm.NFD.String(word)) || !want && len(spellings) > 0 && form == word {
		t.Errorf("%q has the form %q and the spellings %q", word, form, spellings)
	}
	return len(spellings)
}
