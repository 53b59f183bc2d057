package text

import "testing"

// TestLettersTypedForEachOther: words that look alike, or that are typed in several ways, have one form.
func TestLettersTypedForEachOther(t *testing.T) {
	form := func(s string) string {
		tokens := defaultAnalyzer.Tokens(nil, s, nil, false)
		if len(tokens) != 1 {
			t.Fatalf("%q: %d tokens", s, len(tokens))
		}
		return tokens[0].Form
	}
	for _, pair := range [][2]string{
		{"ہندوستان", "هندوستان"}, {"خانهٔ", "خانه"}, {"ײדיש", "יידיש"}, {"װאָס", "וואס"}, {"ײַ", "יי"},
		{"ܫܠܳܡܳܐ", "ܫܠܡܐ"}, {"ນໍ້າ", "ນ້ຳ"}, {"ນໍ້າ", "ນ້ໍາ"}, {"ᠠ\u180bᠢ", "ᠠᠢ"}, {"ΑΣΒΣ", "ασβς"}, {"ΑΣΒΣ", "ας" + "βς"},
	} {
		if a, b := form(pair[0]), form(pair[1]); a != b {
			t.Errorf("%q: %q, %q: %q", pair[0], a, pair[1], b)
		}
	}
	for _, pair := range [][2]string{{"ມາ", "ມ້າ"}, {"й", "и"}, {"ں", "ن"}} {
		if a, b := form(pair[0]), form(pair[1]); a == b {
			t.Errorf("%q and %q have the form %q", pair[0], pair[1], a)
		}
	}
}
