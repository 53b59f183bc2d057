package text

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

func TestTables(t *testing.T) {
	count := func(table string) (n int) {
		last := rune(-1)
		eachRune(table, func(r rune) {
			if r <= last {
				t.Errorf("%U follows %U", r, last)
			}
			last = r
			n++
		})
		return n
	}
	if n := count(defaultSeparators); n != 1049 {
		t.Errorf("%d default separators", n)
	}
	if n := count(hardSeparators); n != 361-2 { // without NUL and U+00B4
		t.Errorf("%d hard separators", n)
	}
	if n := count(nonspacingMarks); n != 1281 {
		t.Errorf("%d marks", n)
	}
	count(addedSeparators)
	for i := 1; i < len(scriptRanges); i++ {
		if scriptRanges[i].lo <= scriptRanges[i-1].hi {
			t.Errorf("script range %d overlaps", i)
		}
	}
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if unicode.IsSpace(r) && !separatorSet.has(r) {
			t.Errorf("white space %U does not separate", r)
		}
		if markSet.has(r) && !unicode.Is(unicode.Mn, r) && r != 0x93e {
			t.Logf("%U is no longer a nonspacing mark", r)
		}
	}
}

func TestDecomposition(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		if got, want := string(appendDecomposed(nil, r)), norm.NFKD.String(string(r)); got != want {
			t.Errorf("%U: %q, want %q", r, got, want)
		}
	}
}

func TestGroups(t *testing.T) {
	tests := []struct{ text, groups string }{
		{"Hello你好World", "Hello|你好|World"},
		{"2026年10月", "2026年10月"},
		{"abc2025年", "abc2025|年"},
		{"你好，世界", "你好|，|世界"},
		{"Москва2026 hello", "Москва2026 |hello"},
		{"\ufeffпривет", "\ufeffпривет"},
		{"日本語（にほんご）", "日本語|（|にほんご|）"},
		{"12 😀", "12 😀"},
		{"\xffa\xff", "\xffa\xff"},
	}
	for _, test := range tests {
		var groups []string
		for s := []byte(test.text); len(s) > 0; {
			_, n := nextGroup(s, other)
			groups = append(groups, string(s[:n]))
			s = s[n:]
		}
		if got := strings.Join(groups, "|"); got != test.groups {
			t.Errorf("%q: %q, want %q", test.text, got, test.groups)
		}
	}
}

func TestLanguageOf(t *testing.T) {
	tests := []struct {
		text string
		l    Locales
		want language
	}{
		{"图书馆里的学生", nil, cmn}, {"東京", nil, cmn}, {"東京大学で勉強", nil, jpn}, {"にほんご", nil, jpn},
		{"东京大学", Locales{"eng", "fra"}, otherLanguage}, {"東京大学で勉強", Locales{"eng", "fra"}, jpn}, {"東京", Locales{"jpn", "eng"}, jpn}, {"东京大学", Locales{"jpn", "zho"}, cmn}, {"东京大学", Locales{"eng"}, otherLanguage},
		{"东京大学", Locales{}, otherLanguage}, {"東京大学で勉強", Locales{"jpn", "cmn"}, jpn}, {"東京", Locales{"zh"}, cmn},
		{"السلام عليكم", nil, ara}, {"این کتاب من است", nil, ara}, {"السلام", Locales{"eng"}, ara}, {"السلام", Locales{"fa", "pes"}, otherLanguage}, {"السلام", Locales{"ur"}, otherLanguage},
		{"السلام", Locales{"pes", "ara"}, ara}, {"השלום", nil, heb}, {"השלום", Locales{"yi"}, otherLanguage}, {"השלום", Locales{"yid", "heb"}, heb}, {"השלום", Locales{}, heb},
		{"Räksmörgås", nil, anyLanguage}, {"Räksmörgås", Locales{"swe"}, swe}, {"Räksmörgås", Locales{"sv"}, swe}, {"abc", Locales{"deu"}, deu},
		{"Handball", Locales{"deu", "eng"}, otherLanguage}, {"Die Katze schläft auf dem Sofa", Locales{"deu", "eng"}, deu},
		{"The cat sleeps on the sofa", Locales{"de", "en"}, otherLanguage}, {"Räksmörgås", Locales{"swe", "eng"}, swe}, {"Räksmörgås", Locales{"fra", "eng"}, anyLanguage},
		{"El nen juga amb la pilota", Locales{"cat", "deu"}, otherLanguage}, {"12 34", Locales{"deu", "eng"}, anyLanguage}, {"über", Locales{"xxx", "deu"}, deu},
		{"Москва", Locales{"deu"}, anyLanguage},
	}
	for _, test := range tests {
		sc, _ := nextGroup([]byte(test.text), other)
		if got := languageOf(sc, []byte(test.text), test.l); got != test.want {
			t.Errorf("%q %v: %d, want %d", test.text, test.l, got, test.want)
		}
	}
}

// TestFoldingKeepsPlainText checks that plain lower-case text is its own key, and does not change before a character that needs folding.
func TestFoldingKeepsPlainText(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for n := range 5000 {
		var s []byte
		for range 1 + n%7 {
			c := byte(' ' + rng.IntN('~'-' '+1))
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			s = append(s, c)
		}
		for _, l := range []Locales{nil, {"swe"}, {"cmn"}} {
			if got := FacetSearchKey(string(s)+"漢", l); !strings.HasPrefix(got, string(s)) || FacetSearchKey(string(s), l) != string(s) {
				t.Fatalf("%q %v: %q", s, l, got)
			}
		}
	}
}

func TestFolding(t *testing.T) {
	tests := []struct{ raw, form string }{
		{"Zażółć", "zazołc"}, {"Łódź", "łodz"}, {"İstanbul", "istanbul"}, {"ışık", "isik"}, {"Straße", "strasse"}, {"STRASSE", "strasse"},
		{"Ærø", "aerø"}, {"Đặng", "dang"}, {"№5", "no5"}, {"㈱", "(株)"}, {"ΔΡΌΜΟΣ", "δρομοσ"}, {"δρόμος", "δρομοσ"}, {"שָׁלוֹם", "שלום"},
		{"كتـــاب", "كتاب"}, {"طائرة", "طايره"}, {"ёлка", "елка"}, {"ЕЩЕ\u0308", "еще"}, {"йод", "и\u0306од"}, {"їжак", "і\u0308жак"}, {"Ґрунт", "грунт"}, {"за\u0301мок", "замок"}, {"ӧ", "о\u0308"}, {"½", "1⁄2"}, {"²", "2"}, {"㎏", "kg"}, {"ﬁn", "fin"}, {"ŒUVRE", "oeuvre"},
		{"ẞ", "ss"}, {"20℃", "20c"}, {"شكرا", "شكرا"}, {"شکرا", "شكرا"}, {"خانۀ", "خانه"}, {"خانهٔ", "خانه"}, {"خانۀ", "خانه"}, {"خانە", "خانە"}, {"ۂ", "ه"}, {"😀👨‍👩‍👧", "😀👨‍👩‍👧"},
		{"コーヒー", "こうひい"}, {"らーめん", "らあめん"}, {"ガード", "か\u3099あと\u3099"}, {"関ヶ原", "关け原"}, {"ヵゖ", "かけ"}, {"เเม่", "แม"}, {"นํ้า", "นา"}, {"プロ", "ふ\u309aろ"}, {"ソース", "そうす"}, {"ケーキ", "けえき"},
		{"\x01a\x7fb", "ab"}, {"a\u200e\u2069b", "ab"}, {"٢٠٢٤", "2024"}, {"माँ ज़रूर क़लम", "मां जरूर कलम"}, {"शान्\u200dति", "शांति"},
		{"അവൻ", "അവന്"}, {"അവന്\u200d", "അവന്"}, {"ശ്\u200dരീ", "ശ്രീ"}, {"ශ්\u200dරී", "ශ්රී"}, {"क👨\u200d👩", "क👨\u200d👩"}, {"мʼята", "мята"}, {"๒๕๖๗", "2567"}, {"𑁧𝟗", "19"},
	}
	for _, test := range tests {
		if got := FacetSearchKey(test.raw, nil); got != test.form {
			t.Errorf("%q: %q, want %q", test.raw, got, test.form)
		}
	}
	if got := FacetSearchKey("Räksmörgås A\u030a", Locales{"swe"}); got != "räksmörgås å" {
		t.Errorf("Swedish: %q", got)
	}
	if got := Fold("Élan Vital"); got != "elan vital" {
		t.Errorf("Fold: %q", got)
	}
}

// TestFoldPages compares cached forms with newly folded ones.
func TestFoldPages(t *testing.T) {
	for _, g := range []group{{latin, anyLanguage}, {latin, swe}, {arabic, ara}, {greek, anyLanguage}, {cyrillic, anyLanguage}, {devanagari, anyLanguage}, {malayalam, anyLanguage}, {bengali, anyLanguage}, {ethiopic, anyLanguage}, {tamil, anyLanguage}, {cj, cmn}, {cj, jpn}, {other, anyLanguage}} {
		for r := rune(0x80); r < 0x11000; r++ {
			f := folder{group: g}
			f.char(r)
			if !utf8.ValidRune(r) || string(f.dst) == "ς" { // the form of a sigma depends on its position
				continue
			}
			if got := string(appendFold(nil, []byte(string(r)), g, nil)); got != string(f.dst) {
				t.Fatalf("%v %U: %q, want %q", g, r, got, f.dst)
			}
		}
	}
}

// TestArticles checks that forms omit the articles that words are written with, and that the index has both.
func TestArticles(t *testing.T) {
	for _, test := range []struct {
		text  string
		l     Locales
		words string
	}{
		{"الكتاب كتاب", nil, "[كتاب@0 الكتاب@0 كتاب@1]"}, {"المستشفى", nil, "[مستشفي@0 المستشفي@0]"}, {"ٱلْكِتَابُ", nil, "[كتاب@0 الكتاب@0]"}, {"الدم", nil, "[دم@0 الدم@0]"},
		{"ألم الم ال إلى", nil, "[الم@0 الم@1 ال@2 الي@3]"}, {"الله اللهم", nil, "[الله@0 اللهم@1]"}, {"ألمانيا", nil, "[مانيا@0 المانيا@0]"},
		{"الکل الماس", nil, "[الكل@0 ماس@1 الماس@1]"}, {"الکل الماس", Locales{"pes"}, "[الكل@0 الماس@1]"}, {"الكل", Locales{"eng"}, "[كل@0 الكل@0]"},
		{"הספר ספר", nil, "[ספר@0 הספר@0 ספר@1]"}, {"הר הים", nil, "[הר@0 הים@1]"}, {"הַסֵּפֶר", nil, "[ספר@0 הספר@0]"}, {"הספר", Locales{"yid"}, "[הספר@0]"},
	} {
		var got []string
		defaultAnalyzer.Index(new(Positions), []byte(test.text), test.l, wordsOnly(func(w []byte, at uint16) { got = append(got, fmt.Sprintf("%s@%d", w, at)) }))
		if s := fmt.Sprint(got); s != test.words {
			t.Errorf("%s %v: %s, want %s", test.text, test.l, s, test.words)
		}
	}
	tokens := defaultAnalyzer.Tokens(nil, "الكتاب", nil, false)
	if t0 := tokens[0]; len(tokens) != 1 || t0.Form != "كتاب" || t0.Whole != "الكتاب" || defaultAnalyzer.MarkedBytes(t0, "الكتاب", 4) != 8 {
		t.Errorf("%+v", tokens)
	}
}

// TestSymbols checks that symbols are not parts of words, and that meaningful ones are words of their own.
func TestSymbols(t *testing.T) {
	for _, test := range []struct{ text, words string }{
		{"<p>sample greeting</p>", "p sample greeting p"}, {"x<br>sample<b>bold</b>", "x br sample b bold b"}, {"a=b|c~d^e", "a b c d e"},
		{"$5 5€ US$7 ₹100", "5 5 us 7 100"}, {"20°C 20℃ 70℉ n°5", "20 c 20 c 70 f n 5"}, {"Windows™ Linux® ©2026 iPhone™\ufe0f15", "windows linux 2026 iphone 15"},
		{"→a⇒b●c■d", "a b c d"}, {"№5", "no 5"}, {"sale🔥now🔥🔥", "sale 🔥 now 🔥 🔥"}, {"👍🏽ok🇫🇷🇩🇪", "👍🏽 ok 🇫🇷 🇩🇪"}, {"👨\u200d👩\u200d👧a❤\ufe0f\u200d🔥", "👨\u200d👩\u200d👧 a ❤\u200d🔥"},
		{"★★ ☎123", "★ ★ ☎ 123"}, {"a\u200db", "ab"}, {"🔥\u200dx", "🔥 \u200dx"}, {"中文🔥中文™", "中文 🔥 中文"}, {"ไทย😀", "ไทย 😀"}, {"½ 1⁄2", "1⁄2 1⁄2"},
		{"＜b＞x＝y￥5", "b x y 5"}, {"привет😀мир", "привет 😀 мир"}, {"Maß Maẞ", "mass mass"},
		{strings.Repeat("🏽", 20), strings.Repeat("🏽", 16) + " " + strings.Repeat("🏽", 4)},
	} {
		var words []string
		for _, w := range indexed(defaultAnalyzer, new(Positions), test.text, nil) {
			words = append(words, w.form)
		}
		if got := strings.Join(words, " "); got != test.words {
			t.Errorf("%s: %s, want %s", test.text, got, test.words)
		}
	}
	a := New(Config{NonSeparators: []string{"$", "°"}, Dictionary: []string{"😀x", "☕"}})
	if got := fmt.Sprint(indexed(a, new(Positions), "US$ 5° 😀X☕", nil)); got != "[0:us$[0:3] 1:5°[4:7] 2:😀x[8:13] 3:☕[13:16]]" {
		t.Errorf("with settings: %s", got)
	}
}

// TestNumbersBeforeLetters checks that digits before letters belong to their word, whatever script precedes them.
func TestNumbersBeforeLetters(t *testing.T) {
	for _, test := range []struct{ text, words string }{
		{"订单54OR323014", "订单 54or323014"}, {"订单54", "订单 54"}, {"54订单", "54 订单"}, {"型号5G手机", "型号 5g 手机"}, {"ไทย54ж", "ไทย 54ж"},
		{"Модель54OR", "модель54 or"}, {"订单 54OR32", "订单 54or32"}, {"订单" + strings.Repeat("7", 40) + "x", "订单 " + strings.Repeat("7", 40) + " x"},
	} {
		var words []string
		for _, w := range indexed(defaultAnalyzer, new(Positions), test.text, nil) {
			words = append(words, w.form)
		}
		if got := strings.Join(words, " "); got != test.words {
			t.Errorf("%s: %s, want %s", test.text, got, test.words)
		}
	}
}

// TestDictionaryInAnyCase checks that entries of the dictionary match in lower and upper case.
func TestDictionaryInAnyCase(t *testing.T) {
	a := New(Config{Dictionary: []string{"J. K.", "g/box", "É.T.", "ⱥ-b", "Σ-σ", "."}})
	for _, test := range []struct{ text, words string }{
		{"j. k. Doe", "[0:j. k.[0:5] 1:doe[6:9]]"}, {"J. k. rowling", "[0:j. k.[0:5] 1:rowling[6:13]]"}, {"G/Box g/BOX", "[0:g/box[0:5] 1:g/box[6:11]]"}, {"é.t.", "[0:e.t.[0:5]]"}, {"ⱥ-B Ⱥ-b", "[0:ⱥ-b[0:5] 1:ⱥ-b[6:10]]"},
		{"ς-Σ", "[0:σ-σ[0:5]]"}, {"σ-Σ", "[0:σ-σ[0:5]]"}, {"g/bo", "[0:g[0:1] 1:bo[2:4]]"}, {"é.t", "[0:e[0:2] 1:t[3:4]]"},
	} {
		if got := fmt.Sprint(indexed(a, new(Positions), test.text, nil)); got != test.words {
			t.Errorf("%s: %s, want %s", test.text, got, test.words)
		}
	}
}

// TestChineseInnerWords checks that inner words of Chinese words are found, and that adjacent words stay adjacent.
func TestChineseInnerWords(t *testing.T) {
	for _, test := range []struct{ text, words string }{
		{"待处理订单", "[待@0 处理@1 订单@2]"}, {"在建工程项目", "[在建@0 工程@1 项目@2]"}, {"大学生", "[大学@0 生@1 学生@1]"}, {"图书馆", "[图书@0 馆@1 书馆@1]"}, {"巧克力", "[巧克力@0]"}, {"中国人民银行", "[中国@0 人民@1 国人@1 银行@2]"},
	} {
		var got []string
		defaultAnalyzer.Index(new(Positions), []byte(test.text), nil, func(w []byte, at uint16) { got = append(got, fmt.Sprintf("%s@%d", w, at)) })
		if s := fmt.Sprint(got); s != test.words {
			t.Errorf("%s: %s, want %s", test.text, s, test.words)
		}
	}
}

func TestFacetKey(t *testing.T) {
	tests := []struct{ value, key string }{
		{" Action\u00a0", "action"}, {"ÉTÉ", "e\u0301te\u0301"}, {"ﬁN", "fin"}, {"ΟΔΟΣ", "οδος"}, {"Σ", "σ"}, {"İ", "i\u0307"}, {"", ""}, {"  ", ""}, {"Ｗide", "wide"},
		{"한", "\u1112\u1161\u11ab"}, {"straße", "straße"}, {"Science  Fiction", "science  fiction"},
	}
	for _, test := range tests {
		if got := string(FacetKey([]byte("x"), []byte(test.value))); got != "x"+test.key {
			t.Errorf("%q: %q, want %q", test.value, got, test.key)
		}
	}
}

func TestKinds(t *testing.T) {
	hard := []string{". ", ", ", ";", "!", "?", "¡", "¿", "§", "¶", "。", "、", "،", "؛", "؟", "۔", "।", "॥", "។", "៕", "។ល។", "።", "፤", "။", "՜", "；", "！", "？", "…", "‼", "｡", "､"}
	soft := []string{" ", ":", "\"", "\n", ".", ",", "-", "–", "_", "'", "(", "•", "·", "־", "，", "．", "：", "\u00a0", "´", "\u200b", "\u2011", "\x00", "$", "<", ">", "=", "|", "~", "^", "€", "°", "™", "©", "→", "■", "－", "＝"}
	a := New(Config{})
	for _, s := range hard {
		if got := a.Tokens(nil, s, nil, true); len(got) != 1 || got[0].Kind != Hard {
			t.Errorf("%q: %v", s, got)
		}
	}
	for _, s := range soft {
		if got := a.Tokens(nil, s, nil, true); len(got) != 1 || got[0].Kind != Soft && got[0].Form != "" {
			t.Errorf("%q: %v", s, got)
		}
	}
	for _, s := range []string{"😀", "½", "👍🏽", "🇫🇷", "👨\u200d👩\u200d👧", "❤\ufe0f", "№", "℃", "ab"} {
		if got := a.Tokens(nil, s, nil, true); len(got) != 1 || got[0].Kind != Word {
			t.Errorf("%q: %v", s, got)
		}
	}
}

func TestPositions(t *testing.T) {
	long := strings.Repeat("x", 251)
	tests := []struct {
		values []string
		words  string
	}{
		{[]string{"Mr. Smith vs. Dr. Who"}, "mr@0 smith@8 vs@9 dr@17 who@25"},
		{[]string{"one . two"}, "one@0 two@8"}, {[]string{"one ,two"}, "one@0 two@1"}, {[]string{"one,, two"}, "one@0 two@8"},
		{[]string{"wow! really?yes"}, "wow@0 really@8 yes@16"},
		{[]string{"\x01 z"}, "z@1"}, {[]string{"\x01. z"}, "z@8"}, {[]string{"... z"}, "z@0"},
		{[]string{"cat, the dog"}, "cat@0 -the@8 dog@9"}, {[]string{"a the", "z"}, "a@0 -the@1 z@8"}, {[]string{"the", "z"}, "-the@0 z@8"},
		{[]string{"The THE Thé thé"}, "-the@0 -the@1 the@2 the@3"}, {[]string{"ÉTÉ Été été e\u0301te\u0301 ete"}, "-ete@0 -ete@1 -ete@2 -ete@3 ete@4"},
		{[]string{"a " + long + " b"}, "a@0 b@2"}, {[]string{long[:250]}, long[:250] + "@0"},
		{[]string{"a b", "c. d", "e"}, "a@0 b@1 c@9 d@17 e@25"}, {[]string{"", "z"}, "z@8"},
	}
	a := New(Config{StopWords: []string{"thE", "Été"}})
	for _, test := range tests {
		var p Positions
		var got []string
		for _, v := range test.values {
			p.Visit()
			a.Index(&p, []byte(v), nil, wordsOnly(func(w []byte, at uint16) {
				if IsStopEntry(w) {
					w = append([]byte("-"), w[1:]...)
				}
				got = append(got, fmt.Sprintf("%s@%d", w, at))
			}))
		}
		if s := strings.Join(got, " "); s != test.words {
			t.Errorf("%q: %s, want %s", test.values, s, test.words)
		}
	}
}

func TestPositionLimit(t *testing.T) {
	a := New(Config{})
	var p Positions
	n := 0
	for range 9000 {
		p.Visit()
		a.Index(&p, []byte("x"), nil, func([]byte, uint16) { n++ })
	}
	if n != 8192 || p.Words() != 8192 {
		t.Errorf("%d elements indexed, %d words counted, want 8192", n, p.Words())
	}
	for _, text := range []string{strings.Repeat("a ", 70000), strings.Repeat("é ", 70000)} {
		p, n = Positions{}, 0
		a.Index(&p, []byte(text), nil, wordsOnly(func([]byte, uint16) { n++ }))
		if n != 65536 {
			t.Errorf("%d words indexed, want 65536", n)
		}
	}
}

func TestMarkedBytes(t *testing.T) {
	a := New(Config{})
	tests := []struct {
		text, typed, marked string
	}{
		{"Gâteau", "ga", "Gâ"}, {"ﬁnder", "f", "ﬁ"}, {"ﬁnder", "fi", "ﬁ"}, {"ﬁnder", "fin", "ﬁn"},
		{"e\u0301cole", "ec", "e\u0301c"}, {"a\u0300\u0301b\u0302c", "a", "a"}, {"a\u0300\u0301b\u0302c", "ab", "a\u0300\u0301b"},
		{"œufs", "o", "œ"}, {"한국어", "\u1112\u1161", "한"}, {"น้ำ", "น", "น"}, {"كتـــاب", "كت", "كت"}, {"Ёлка", "ел", "Ёл"}, {"е\u0308лка", "е", "е"},
		{"½", "1", "½"}, {"İstanbul", "ist", "İst"}, {"x\xffy", "x\ufffd", "x\xff"},
	}
	for _, test := range tests {
		token := a.Tokens(nil, test.text, nil, false)[0]
		if !strings.HasPrefix(token.Form, test.typed) {
			t.Fatalf("%q has form %q", test.text, token.Form)
		}
		piece := test.text[token.Start:token.End]
		if got := piece[:a.MarkedBytes(token, piece, len(test.typed))]; got != test.marked {
			t.Errorf("%q %q: %q, want %q", test.text, test.typed, got, test.marked)
		}
	}
	swedish := a.Tokens(nil, "a\u030abc", Locales{"swe"}, false)[0]
	if got := a.MarkedBytes(swedish, "a\u030abc", len("å")); got != 3 {
		t.Errorf("Swedish: %d bytes marked, want 3", got)
	}
}

func TestLocale(t *testing.T) {
	for code, want := range map[string]string{"de": "deu", "deu": "deu", "zh": "zho", "cmn": "cmn", "zu": "zul", "af": "afr", "fa": "pes", "xx": "", "": "", "DE": ""} {
		if got, ok := Locale(code); got != want || ok != (want != "") {
			t.Errorf("%q: %q", code, got)
		}
	}
	if len(localeCodes) < 130 {
		t.Errorf("%d codes", len(localeCodes))
	}
}

// configs are settings for comparisons of the fast and slow paths.
var configs = []Config{
	{},
	{StopWords: []string{"the", "été", "&", "ab", "."}},
	{Separators: []string{"|", "<br>", "oo", "é", "..."}, NonSeparators: []string{".", "_", "’"}},
	{Dictionary: []string{"A. B.", "art", "C++", "ab", "é.", "."}, StopWords: []string{"art", "A. B."}},
	{NonSeparators: []string{". ", ", ", " "}},
}

// check compares Index with the tokens, and checks that the tokens tile the text.
func check(t *testing.T, c Config, text string, l Locales) {
	t.Helper()
	a := New(c)
	at := 0
	for _, token := range a.Tokens(nil, text, l, true) {
		if token.Start != at || token.End <= at {
			t.Fatalf("%+v %q: token %+v after byte %d", c, text, token, at)
		}
		at = token.End
		piece := text[token.Start:token.End]
		last := 0
		for n := range len(token.Form) + 1 {
			m := a.MarkedBytes(token, piece, n)
			if m < last || m > len(piece) || n > 0 && m == 0 {
				t.Fatalf("%q: %d of %d bytes of %q mark %d", text, n, len(token.Form), token.Form, m)
			}
			last = m
		}
	}
	if at != len(text) {
		t.Fatalf("%+v %q: tokens end at %d", c, text, at)
	}
	var p1, p2 Positions
	for range 2 {
		p1.Visit()
		p2.Visit()
		var got, want []string
		a.Index(&p1, []byte(text), l, wordsOnly(func(w []byte, at uint16) { got = append(got, fmt.Sprintf("%s@%d", w, at)) }))
		for _, w := range indexed(a, &p2, text, l) {
			want = append(want, fmt.Sprintf("%s@%d", w.form, w.position))
		}
		p2.used = p1.used // which tokens do not have
		if fmt.Sprint(got) != fmt.Sprint(want) || p1 != p2 {
			t.Fatalf("%+v %q %v:\nindexed %q %+v\n tokens %q %+v", c, text, l, got, p1, want, p2)
		}
	}
}

func TestRandomTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	parts := []string{"a", "B", "the", "ab", "art", "A. B.", "C++", "oo", "<br>", "$", "=", ".", ",", ". ", ", ", " ", "  ", "!", "&", "|", "_", "-", "'", "\x00", "\x01", "\t", "7", "3.5",
		"é", "É", "œ", "ß", "İ", "’", "…", "\u00a0", "\u00ad", "\u0301", "\ufe0f", "Ж", "ё", "Σ", "ς", "א", "ש\u05c1", "ال", "كتاب", "ی", "הספר", "הַסֵּפֶר", "،", "中国", "々", "カー", "ガ", "がく", "한", "한국어를", "54", "大学生", "™", "🇫🇷", "👍🏽", "\u200d", "\u1112\u1161\u11ab", "\u1100", "ラーメンを食べた", "ไทย", "้", "។ល។", "😀", "Straßenbahn", "Handball", "haus", "ផ្ទះ", "ស្អាត", "ﬁ", "½", "＋", "，", "𝔘", "\xff", "\xe4\xb8", strings.Repeat("x", 250), strings.Repeat("é", 130)}
	locales := []Locales{nil, nil, {}, {"swe"}, {"deu"}, {"jpn"}, {"eng", "fra"}, {"ara"}, {"cmn"}, {"deu", "eng"}, {"swe", "deu"}, {"pes", "urd"}}
	for range 20000 {
		var b strings.Builder
		only := len(parts)
		if rng.IntN(2) == 0 {
			only = 28 // ASCII
		}
		for range rng.IntN(10) {
			b.WriteString(parts[rng.IntN(only)])
		}
		check(t, configs[rng.IntN(len(configs))], b.String(), locales[rng.IntN(len(locales))])
	}
}

func FuzzTokens(f *testing.F) {
	for _, s := range []string{"", "Hello, world", "中国人民银行 e\u0301", "\xff\xfe", "A. B. art", "السلام عليكم"} {
		f.Add(s, uint8(0))
		f.Add(s, uint8(3))
	}
	f.Fuzz(func(t *testing.T, s string, config uint8) {
		check(t, configs[int(config)%len(configs)], s, nil)
		FacetKey(nil, []byte(s))
		FacetSearchKey(s, nil)
		Fold(s)
	})
}

func TestIndexAllocatesNothing(t *testing.T) {
	a := New(Config{StopWords: []string{"the"}})
	text := []byte("The quick brown fox, jumps over the lazy dog. Again!")
	emit := func([]byte, uint16) {}
	var p Positions
	if n := testing.AllocsPerRun(100, func() {
		p = Positions{}
		a.Index(&p, text, nil, emit)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkIndex(b *testing.B) {
	a := New(Config{})
	for _, c := range []struct{ name, text string }{
		{"ascii", "The quick brown fox, jumps over the lazy dog. Well-known state-of-the-art things (again) "},
		{"latin", "Le cœur déçu mais l'âme plutôt naïve, Louÿs rêva de crapaüter en canoë au delà des îles. "},
		{"cyrillic", "Съешь же ещё этих мягких французских булок, да выпей чаю. "},
		{"arabic", "الحقوق كلها محفوظة للكتاب الذي نشره المؤلف في هذا العام. "},
		{"chinese", "我们在北京大学学习中文。"},
		{"japanese", "私たちは東京の大学で日本語とプログラミングを勉強しています。"},
		{"korean", "우리는 서울에 있는 대학교에서 한국어를 공부하고 있습니다. "},
	} {
		text := []byte(strings.Repeat(c.text, 4000/len(c.text)))
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var p Positions
				a.Index(&p, text, nil, func([]byte, uint16) {})
			}
		})
	}
}

// TestDigits requires that each decimal digit folds to the ASCII digit after that of the previous one, and that no other character
// folds to a digit.
func TestDigits(t *testing.T) {
	before := rune(-1)
	for r := range unicode.MaxRune + 1 {
		got := asciiDigit(r)
		switch {
		case !unicode.IsDigit(r):
			if got != r {
				t.Errorf("%U folds to %c", r, got)
			}
			before = -1
		case before < 0 || before == '9':
			if before = got; got != '0' {
				t.Errorf("%U, the first of its script, folds to %c", r, got)
			}
		case got != before+1:
			t.Errorf("%U folds to %c, after %c", r, got, before)
		default:
			before = got
		}
	}
}
