package text

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// wordsOnly passes on all words except spellings.
func wordsOnly(emit func(word []byte, position uint16)) func([]byte, uint16) {
	return func(word []byte, position uint16) {
		if !bytes.HasPrefix(word, []byte(spellingMark)) {
			emit(word, position)
		}
	}
}

// spellingsOf returns the spelling entries of a text as form=spelling@position.
func spellingsOf(a *Analyzer, s string, l Locales) (out []string) {
	last := ""
	var p Positions
	a.Index(&p, []byte(s), l, func(word []byte, position uint16) {
		if !bytes.HasPrefix(word, []byte(spellingMark)) {
			last = fmt.Sprintf("%s@%d", word, position)
			return
		}
		form, spelling := CutSpelling(word)
		if with := fmt.Sprintf("%s@%d", form, position); with != last && !strings.HasSuffix(last, with) {
			panic(fmt.Sprintf("%q stands behind %s", word, last))
		}
		out = append(out, fmt.Sprintf("%s=%s@%d", form, spelling, position))
	})
	return out
}

func TestSpellings(t *testing.T) {
	for _, test := range []struct {
		text string
		l    Locales
		want string
	}{
		{"plain Words", nil, "[]"},
		{"Résumé RE\u0301SUME\u0301 resume resumé", nil, "[resume=résumé@0 resume=résumé@1 resume=resumé@3]"},
		{"Ängelholm Straße cœur Ærø Đorđe", nil, "[angelholm=ängelholm@0 strasse=straße@1 coeur=cœur@2 aerø=ærø@3 dorde=đorđe@4]"},
		{"Ängelholm Café", Locales{"swe"}, "[cafe=café@1]"},
		{"ﬁn ﬁancé l’été d'Été", nil, "[fiance=fiancé@1 ete=été@3 ete=été@5]"},
		{"Άλφα λόγος λογος", nil, "[αλφα=άλφα@0 λογοσ=λόγοσ@1]"},
		{"كِتاب كتاب كـتاب أحمد", nil, "[كتاب=كِتاب@0 احمد=أحمد@3]"},
		{"ٱلْكِتَابُ الكِتاب", nil, "[كتاب=كِتَابُ@0 كتاب=كِتاب@1]"},
		{"הַסֵּפֶר", nil, "[ספר=סֵּפֶר@0]"},
		{"ガラス がらす 東京 мой їжак", nil, "[]"}, // no accents
		{"Ёж йод до\u0301м Ґрунт Йоё", nil, "[еж=е\u0308ж@0 дом=до\u0301м@2 грунт=ґрунт@3 и\u0306ое=и\u0306ое\u0308@4]"},
		{"हिन्दी हिंदी", nil, "[हिंदी=हिन्दी@0]"},
		{"ज़रूर जरूर \u095b माँ मां नमस्ते २०२४", nil, "[जरूर=ज\u093cरूर@0 ज=ज\u093c@2 मां=माँ@3 2024=२०२४@6]"},
		{"Dampfschifffahrtsgesellschaft Häuser", Locales{"deu"}, "[hauser=häuser@2]"},
	} {
		got := fmt.Sprint(spellingsOf(defaultAnalyzer, test.text, test.l))
		if test.l != nil && test.l[0] == "deu" {
			if !strings.Contains(got, "hauser=häuser@") {
				t.Errorf("%s: %s", test.text, got)
			}
			continue
		}
		if got != test.want {
			t.Errorf("%s %v: %+q, want %+q", test.text, test.l, got, test.want)
		}
	}
}

// TestSpellingsOfTokens checks that queries and the index spell words alike: the entry of each word of a text equals
// Spelling of its token.
func TestSpellingsOfTokens(t *testing.T) {
	parts := []string{"a", "B", "the", " ", " ", ".", "é", "e\u0301", "œ", "ß", "İ", "’", "\u00ad", "Σ", "ς", "ό", "א", "ש\u05c1", "الكِتاب", "كتاب", "ى", "הַסֵּפֶר", "ไทย", "น้ำ", "\u0301"}
	r := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 5000 {
		var b strings.Builder
		for range r.IntN(8) {
			b.WriteString(parts[r.IntN(len(parts))])
		}
		s := b.String()
		var want []string
		for _, token := range defaultAnalyzer.Tokens(nil, s, nil, false) {
			if spelling := Spelling(s[token.Start:token.End], token.Form); token.Kind == Word && token.Form != "" && spelling != strings.TrimSpace(token.Form) {
				want = append(want, strings.TrimSpace(token.Form)+"="+spelling)
			}
		}
		got := spellingsOf(defaultAnalyzer, s, nil)
		for i := range got {
			got[i] = got[i][:strings.LastIndex(got[i], "@")]
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%+q: the index has %+q, the tokens %+q", s, got, want)
		}
	}
}

func TestBeginsAs(t *testing.T) {
	for _, test := range []struct {
		spelling, beginning string
		want                bool
	}{
		{"résumé", "rés", true}, {"résumé", "res", false}, {"résumé", "r", true}, {"résumé", "résumé", true}, {"r", "re", false},
		{"كِتاب", "ك", false}, {"كِتاب", "كِ", true}, {"straße", "stras", false}, {"straße", "straß", true},
	} {
		if BeginsAs([]byte(test.spelling), test.beginning) != test.want {
			t.Errorf("%s begins as %s: want %v", test.spelling, test.beginning, test.want)
		}
	}
}

// TestIsAccented checks that words have a spelling if folding removes any part of a Cyrillic or Devanagari letter.
func TestIsAccented(t *testing.T) {
	plain := 0
	for _, r := range "\u0300\u0301\u0306\u0308\u030f" {
		for letter := rune(0x400); letter < 0x530; letter++ {
			for _, word := range []string{string([]rune{'а', letter, 'м'}), string([]rune{letter, r, 'м'})} {
				raw := []byte(word)
				form := appendFold(nil, raw, group{script: cyrillic}, nil)
				if spelling := appendSpelling(nil, new([]byte), raw, form); string(spelling) == string(form) {
					plain++
				} else if !isAccented(raw) {
					t.Errorf("%q has the form %q and the spelling %q", word, form, spelling)
				}
			}
		}
	}
	for r := rune(0x80); r < 0x2100; r++ {
		raw := []byte(string([]rune{'क', r}))
		form := appendFold(nil, raw, group{script: devanagari}, nil)
		if spelling := appendSpelling(nil, new([]byte), raw, form); string(spelling) != string(form) && !isDotted(raw) {
			t.Errorf("%q has the form %q and the spelling %q", raw, form, spelling)
		}
	}
	if isDotted([]byte("नमस्ते")) {
		t.Error("folding removed nothing")
	}
	if isAccented([]byte("йод")) || !isAccented([]byte("ёж")) || plain < 1000 {
		t.Errorf("the spelling of %d words is their form", plain)
	}
}
