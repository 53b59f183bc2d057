package text

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// line is one line of testdata/tokens.jsonl.
type line struct {
	Text     string
	Locales  Locales
	Settings struct{ StopWords, SeparatorTokens, NonSeparatorTokens, Dictionary []string }
	Words    [][4]any // position, word, start, end
	JSON     json.RawMessage
	Fields   map[string][][2]any // position, word
	Accident string              // kind of accident in the words; "": none
}

type word struct {
	position   int
	form       string
	start, end int
}

func (w word) String() string { return fmt.Sprintf("%d:%s[%d:%d]", w.position, w.form, w.start, w.end) }

// indexed is the reference implementation of Index, computed from the tokens of the text.
func indexed(a *Analyzer, p *Positions, text string, l Locales) []word {
	var words []word
	p.visited = true
	c := counter{at: p.base}
	inner := innerWords(a, text, l)
	for i, t := range a.Tokens(nil, text, l, true) {
		switch {
		case t.Kind == Soft || t.Kind == Hard:
			c.separator(t.Kind)
			continue
		case t.Form == "":
			c.something = true
			continue
		}
		if !c.word() {
			break
		}
		switch form := string(trimSpace([]byte(t.Form))); {
		case form == "" || len(t.Form) > maxWord:
		case t.Kind == StopWord:
			words = append(words, word{c.at, StopEntry(form), t.Start, t.End})
		default:
			words = append(words, word{c.at, form, t.Start, t.End})
			p.last = c.at
			p.words++
			_, with := appendForm(nil, []byte(text[t.Start:t.End]), t.group, nil)
			if n := len(with); n > 0 && n+len(t.Form) <= maxWord {
				words = append(words, word{c.at, strings.TrimSpace(with.whole(t.Form)), t.Start, t.End})
			}
		}
		for _, form := range inner[i] {
			words = append(words, word{c.at, form, t.Start, t.End})
		}
	}
	return words
}

// innerWords returns the entries of inner words by the token that they follow.
func innerWords(a *Analyzer, text string, l Locales) map[int][]string {
	inner := map[int][]string{}
	last := -1
	a.walk([]byte(text), l, nil, func(p piece) bool {
		if last++; p.inner == whole {
			return true
		}
		last--
		raw := []byte(text[p.start:p.end])
		form := string(appendFold(nil, raw, p.group, nil))
		switch stop := a.classify(new(scratch), raw, p, true) == StopWord; {
		case p.inner == part && (stop || slices.Contains(inner[last], PartEntry(form))):
			return true
		case p.inner == part:
			form = PartEntry(form)
		case stop:
			form = StopEntry(form)
		}
		inner[last] = append(inner[last], form)
		return true
	})
	return inner
}

// recorded drops stop words and inner words, which the recordings lack.
func recorded(words []word) []word {
	last := -1
	return slices.DeleteFunc(words, func(w word) bool {
		again := w.position == last
		last = w.position
		return again || IsStopEntry(w.form)
	})
}

// oneForm applies the folding of svc that the recordings lack or do differently: Persian letters to Arabic ones, katakana to hiragana,
// ideographs to simplified ones, accented Cyrillic letters to plain ones, Devanagari nasals to anusvaras, Ethiopic letters of one sound
// to one letter, and digits of all scripts to ASCII.
func oneForm(s string) string {
	s = string(foldNasals([]byte(s), devanagari, nil))
	s = strings.NewReplacer("е\u0308", "е", "ґ", "г", "ዓ", "አ", "ኣ", "አ").Replace(s)
	var b []byte
	previous := rune(0)
	for _, r := range s {
		r = hiragana(asciiDigit(foldYeh(r)), previous)
		if v, ok := chineseVariants()[r]; ok {
			r = v
		}
		if b = utf8.AppendRune(b, r); r != voiced && r != halfVoiced {
			previous = r
		}
	}
	return string(b)
}

// otherWords are lines in which svc differs from the recordings although they are not tagged as accidents: an ellipsis and an Arabic
// decimal separator separate words, variants of rare ideographs come from another table, and the case of stop words and dictionary
// entries, accents of Cyrillic letters, two Thai sara e for sara ae, and a hamza above heh do not matter.
var otherWords = []string{"كتاب ي ى ۀ ۵", "wait… ok", "𠮷野家", "㐀㐁", "The Cat", "Été", "C++ c++",
	"Ѓорѓи ќерка", "Цари́ца", "٣٫١٤", "เเปล"}

// hasSymbols reports whether a text has symbols or an ß, which the reference treats as letters. TestSymbols has the expected words.
func hasSymbols(text string) bool {
	symbols := newRuneSet(symbolSeparators)
	return strings.ContainsFunc(text, func(r rune) bool { return symbols.has(r) || isPictograph(r) || r == 'ß' || r == 'ẞ' })
}

// hasArticles reports whether a word may have an article, which the reference cuts off. TestArticles has the expected words.
func hasArticles(a *Analyzer, l line) bool {
	return strings.Contains(fmt.Sprint(l.Words), " ال ") || slices.ContainsFunc(a.Tokens(nil, l.Text, l.Locales, false), func(t Token) bool { return t.Whole != "" })
}

// hasTraditionalWords reports whether a text has words in traditional characters, which the reference splits into characters.
// TestTraditionalWords has the expected words.
func hasTraditionalWords(l line) bool {
	at, _ := VersionsOf([]Part{{Pipeline: uint16(Chinese), Version: 2}})
	a := New(Config{})
	cuts := func(a *Analyzer) (ends []int) {
		for _, token := range a.Tokens(nil, l.Text, l.Locales, false) {
			ends = append(ends, token.End)
		}
		return ends
	}
	return !slices.Equal(cuts(a), cuts(a.At(at)))
}

// japaneseOrKorean reports whether a lexicon segments part of the text; the recorded build had none.
func japaneseOrKorean(l line) bool {
	for s := []byte(l.Text); len(s) > 0; {
		sc, n := nextGroup(s, other)
		if sc == hangul || sc == cj && languageOf(sc, s[:n], l.Locales) == jpn {
			return true
		}
		s = s[n:]
	}
	return false
}

// scriptNames are the scripts in the order of their constants.
const scriptNames = "other Latin Cyrillic Arabic Devanagari Hebrew Ethiopic Georgian Bengali Hangul CJ Greek Kannada Tamil Thai " +
	"Gujarati Gurmukhi Telugu Malayalam Oriya Myanmar Sinhala Khmer"

// TestTokenLines compares with testdata/tokens.jsonl, recorded from the reference: word lines as text, with words as [position, word, byte
// start, byte end], and value lines as JSON, with words as [position, word]. Differences are allowed in lines tagged as accidents
// (TestAccidents has their words), in Japanese and Korean lines that svc segments further (TestJapaneseAndKorean), and in otherWords.
func TestTokenLines(t *testing.T) {
	f, err := os.Open("testdata/tokens.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	type count struct{ lines, same, accidents int }
	counts := map[script]*count{}
	var all count
	n := 0
	for s := bufio.NewScanner(f); s.Scan(); {
		n++
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("line %d: %v", n, err)
		}
		a := New(Config{l.Settings.StopWords, l.Settings.SeparatorTokens, l.Settings.NonSeparatorTokens, l.Settings.Dictionary})
		if l.JSON != nil {
			checkValue(t, n, a, l)
			continue
		}
		sc, _ := nextGroup([]byte(l.Text), other)
		c := counts[sc]
		if c == nil {
			c = new(count)
			counts[sc] = c
		}
		c.lines++
		all.lines++
		var want []word
		for _, w := range l.Words {
			want = append(want, word{int(w[0].(float64)), oneForm(w[1].(string)), int(w[2].(float64)), int(w[3].(float64))})
		}
		got := recorded(indexed(a, new(Positions), l.Text, l.Locales))
		switch {
		case fmt.Sprint(got) == fmt.Sprint(want):
			c.same++
			all.same++
		case l.Accident != "" || japaneseOrKorean(l) || hasSymbols(l.Text) || hasArticles(a, l) || hasTraditionalWords(l) || slices.Contains(otherWords, l.Text):
			c.accidents++
			all.accidents++
		default:
			t.Errorf("line %d: %q %v\n got %v\nwant %v", n, l.Text, l.Locales, got, want)
		}
	}
	if n < 580 || len(counts) < 20 {
		t.Errorf("only %d lines of %d scripts", n, len(counts))
	}
	names := append(strings.Fields(scriptNames), "total")
	counts[script(len(names)-1)] = &all
	for sc, name := range names {
		c := counts[script(sc)]
		if c == nil {
			continue
		}
		share := float64(c.same) / float64(c.lines-c.accidents)
		t.Logf("%s: %d of %d lines the same (%.1f%%), %d others differ on purpose", name, c.same, c.lines-c.accidents, 100*share, c.accidents)
		if c.lines-c.accidents >= 20 && share < 0.95 || c == &all && share < 0.99 {
			t.Errorf("%s: only %.1f%%", name, 100*share)
		}
	}
}

// checkValue indexes a scalar or an array of scalars.
func checkValue(t *testing.T, n int, a *Analyzer, l line) {
	var value any
	d := json.NewDecoder(bytes.NewReader(l.JSON))
	d.UseNumber()
	if err := d.Decode(&value); err != nil {
		t.Fatal(err)
	}
	values, ok := value.([]any)
	if !ok {
		values = []any{value}
	}
	var p Positions
	got := []string{}
	for _, v := range values {
		p.Visit()
		text := ""
		switch v := v.(type) {
		case string:
			text = v
		case json.Number:
			text = string(v) // the lines have numbers as printed
		case bool:
			text = fmt.Sprint(v)
		}
		a.Index(&p, []byte(text), nil, wordsOnly(func(w []byte, at uint16) { got = append(got, fmt.Sprintf("%d:%s", at, w)) }))
	}
	want := []string{}
	for _, w := range l.Fields["t"] {
		want = append(want, fmt.Sprintf("%v:%v", w[0], w[1]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("line %d: %s: got %v, want %v", n, l.JSON, got, want)
	}
	if p.Words() != len(got) {
		t.Errorf("line %d: %d words counted, %d indexed", n, p.Words(), len(got))
	}
}

// TestAccidents has lines in which svc differs from the reference on purpose.
func TestAccidents(t *testing.T) {
	tests := []struct {
		text  string
		stop  []string
		words string
	}{
		// Typographic punctuation separates words.
		{"ellipsis… inside", nil, "[0:ellipsis[0:8] 8:inside[12:18]]"},
		{"dots‥two ellipsis…end", nil, "[0:dots[0:4] 8:two[7:10] 9:ellipsis[11:19] 17:end[22:25]]"},
		{"bang‼ and ⁇ and ⁈", nil, "[0:bang[0:4] 8:and[8:11] 16:and[16:19]]"},
		{"∑ ∏ ∫ ∬ √2 ≠ ≤", nil, "[0:2[19:20]]"},
		{"…", nil, "[]"},
		{"‼", nil, "[]"},
		{"non\u2011breaking hyphen", nil, "[0:non[0:3] 1:breaking[6:14] 2:hyphen[15:21]]"},
		{"\u2329x\u232a", nil, "[0:x[3:4]]"},
		// All white space separates words.
		{"non\u00a0breaking space", nil, "[0:non[0:3] 1:breaking[5:13] 2:space[14:19]]"},
		{"narrow\u202fspace", nil, "[0:narrow[0:6] 1:space[9:14]]"},
		{"vertical\vtab form\ffeed", nil, "[0:vertical[0:8] 1:tab[9:12] 2:form[13:17] 3:feed[18:22]]"},
		{"next\u0085line", nil, "[0:next[0:4] 1:line[6:10]]"},
		{"line\u2028separator paragraph\u2029separator", nil, "[0:line[0:4] 1:separator[7:16] 2:paragraph[17:26] 3:separator[29:38]]"},
		{"x\u2000y\u2001z\u205fw", nil, "[0:x[0:1] 1:y[4:5] 2:z[8:9] 3:w[12:13]]"},
		{"x´y ´z", nil, "[0:x[0:1] 1:y[3:4] 2:z[7:8]]"},
		{"¨ ´ ¸x", nil, "[0:x[8:9]]"},
		// Invisible characters are ignored; a zero-width space separates words.
		{"zero\u200bwidth\u200bspace", nil, "[0:zero[0:4] 1:width[7:12] 2:space[15:20]]"},
		{"word\u2060joiner", nil, "[0:wordjoiner[0:13]]"},
		{"soft\u00adhyphen элек\u00adтро", nil, "[0:softhyphen[0:12] 1:электро[13:29]]"},
		{"\u202eright\u202c to\u200eleft \u2066x\u2069 y\u061cz a\u180eb\u2062", nil, "[0:right[0:11] 1:toleft[12:21] 2:x[22:29] 3:yz[30:34] 4:ab[35:43]]"},
		{"\ufeffbyte order mark", nil, "[0:byte[0:7] 1:order[8:13] 2:mark[14:18]]"},
		{"❤\ufe0f", nil, "[0:❤[0:6]]"},
		{"love ❤\ufe0f you", nil, "[0:love[0:4] 1:❤[5:11] 2:you[12:15]]"},
		{"☕\ufe0f time", nil, "[0:☕[0:6] 1:time[7:11]]"},
		// Lower case in every script.
		{"①②③ Ⅷ ⅷ", nil, "[0:123[0:9] 1:viii[10:13] 2:viii[14:17]]"},
		{"Ｆｕｌｌ ｗｉｄｔｈ", nil, "[0:full[0:12] 1:width[13:28]]"},
		{"ＡＢＣ，ｄｅｆ！", nil, "[0:abc[0:9] 1:def[12:21]]"},
		{"Ⓗⓔⓛⓛⓞ", nil, "[0:hello[0:15]]"},
		{"ᲗᲑᲘᲚᲘᲡᲘ", nil, "[0:თბილისი[0:21]]"},
		{"ᏣᎳᎩ", nil, "[0:ꮳꮃꭹ[0:9]]"},
		// Digits are folded to ASCII.
		{"٣٫١٤ ١٬٠٠٠ १२३ ปี๒๕๖๗ ไทย2569 ២០២៤", nil, "[0:3[0:2] 1:14[4:8] 2:1[9:11] 3:000[13:19] 4:123[20:29] 5:ป[30:36] 6:2567[36:48] 7:ไทย[49:58] 8:2569[58:62] 9:2024[63:75]]"},
		// Stop words are folded as tokens are.
		{"är är ar", []string{"är"}, "[2:ar[8:10]]"},
		{"كيف حالك اليوم", []string{"كيف", "حالك"}, "[2:يوم[16:26]]"},
	}
	for _, test := range tests {
		got := fmt.Sprint(recorded(indexed(New(Config{StopWords: test.stop}), new(Positions), test.text, nil)))
		if got != test.words {
			t.Errorf("%q: got %s, want %s", test.text, got, test.words)
		}
	}
}
