package text

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/cespare/xxhash/v2"
)

var update = flag.Bool("update", false, "write testdata/versions.txt anew")

// pipelineTexts has texts that use each pipeline, and names for the file.
var pipelineTexts = [pipelines]struct {
	name    string
	locales Locales
	texts   []string
	stop    []string // stop words
}{
	Common:     {"common", nil, []string{"Hello, World! a_b e.g. C++ 3.14 1,000 x\x01y don't user@example.com <b>bold</b> $5 #tag 50% a/b http://a.b/c?d=e", "one; two. three - four", "\u202ex\u202c"}, nil},
	Latin:      {"latin", nil, []string{"Straße GROẞ naïve Ångström smörgåsbord l’été ﬁn œuvre x̀ “quoted” Łódź İstanbul ıI … 20 °C 5€ ½", "Tiếng Việt"}, nil},
	Cyrillic:   {"cyrillic", nil, []string{"Привет, мир! Ёлка и Йод", "ЇЖАК їжак ґрунт", "до\u0301м еще\u0308 моё", "мʼята"}, nil},
	Arabic:     {"arabic", nil, []string{"السلام عليكم ورحمة الله", "کتاب\u200cها و قلم", "أحمد إلى آخر ٱلكتاب مُحَمَّد", "یہ اردو ہے", "خانۀ خانهٔ"}, nil},
	Devanagari: {"devanagari", nil, []string{"नमस्ते दुनिया", "हिन्दी, मराठी।", "मुम्बई माँ ज़रूर शान्\u200dति गङ्गा जन्म"}, nil},
	Hebrew:     {"hebrew", nil, []string{"שלום עולם", "הַבַּיִת בבית"}, nil},
	Ethiopic:   {"ethiopic", nil, []string{"ሰላም ለዓለም፡፡ አማርኛ", "ፀሐይ ኃይል ሠላም"}, nil},
	Georgian:   {"georgian", nil, []string{"გამარჯობა მსოფლიო"}, nil},
	Bengali:    {"bengali", nil, []string{"ওহে বিশ্ব", "সঙ্গীত আনন্দ"}, nil},
	Korean:     {"korean", nil, []string{"안녕하세요 세계", "한국어를 공부합니다", "각 ＡＢＣ", "한국\u00ad어를"}, nil},
	Ideographs: {"ideographs", Locales{"eng"}, []string{"漢字 汉字 弁護士 國家", "東京都に行く", "髙橋 山﨑 𠮷野"}, nil},
	Greek:      {"greek", nil, []string{"Γειά σου Κόσμε", "Ελλάς ΕΛΛΆΔΑ"}, nil},
	Kannada:    {"kannada", nil, []string{"ನಮಸ್ಕಾರ ಜಗತ್ತು", "ಹಿನ್ದಿ"}, nil},
	Tamil:      {"tamil", nil, []string{"வணக்கம் உலகம்", "ஶ்ரீ"}, nil},
	Thai:       {"thai", nil, []string{"สวัสดีชาวโลก ภาษาไทย", "ไทยสวัสดี", "ปี๒๕๖๗ ไทย2569", "น\u0e4d\u0e49าตก เเม่"}, nil},
	Gujarati:   {"gujarati", nil, []string{"નમસ્તે વિશ્વ", "મન્દિર"}, nil},
	Gurmukhi:   {"gurmukhi", nil, []string{"ਸਤ ਸ੍ਰੀ ਅਕਾਲ"}, nil},
	Telugu:     {"telugu", nil, []string{"నమస్కారం ప్రపంచం", "హిన్దీ"}, nil},
	Malayalam:  {"malayalam", nil, []string{"നമസ്കാരം ലോകമേ", "അവൻ അവന്\u200d"}, nil},
	Oriya:      {"oriya", nil, []string{"ନମସ୍କାର ବିଶ୍ୱ"}, nil},
	Myanmar:    {"myanmar", nil, []string{"မင်္ဂလာပါ ကမ္ဘာ"}, nil},
	Sinhala:    {"sinhala", nil, []string{"ආයුබෝවන් ලෝකය"}, nil},
	Khmer:      {"khmer", nil, []string{"សួស្តីពិភពលោក", "ភាសាខ្មែរ", "ឆ្នាំ២០២៤"}, nil},
	German:     {"german", Locales{"deu"}, []string{"Donaudampfschifffahrtsgesellschaft Straße125 epsilon Schifffahrtskalender", "Die Bundeskanzlerin trifft den Außenminister", "Bevo\u0308lkerung Kranken\u00adversicherung"}, nil},
	Chinese:    {"chinese", Locales{"cmn"}, []string{"我们去北京天安门", "清華大學 研究生命起源", "南京市长江大桥", "长\u200e江"}, nil},
	Japanese:   {"japanese", Locales{"jpn"}, []string{"東京都に行く白い猫", "関西国際空港", "ひらがなとカタカナ", "カ\u3099ラス製品て\u3099す", "葛\U000e0100城市"}, nil},
	StopWords:  {"stopwords", nil, []string{"The state of the art, The of été 'of'", "of the", "über été OF"}, []string{"the", "of", "Été"}},
}

// indexedBy returns the words of a text with their positions, and the pipelines used.
func indexedBy(a *Analyzer, s string, l Locales) (string, Pipelines) {
	var b strings.Builder
	var p Positions
	a.Index(&p, []byte(s), l, wordsOnly(func(word []byte, position uint16) { fmt.Fprintf(&b, "%q %d\n", word, position) }))
	return b.String(), p.Used()
}

// lettersOf returns, by pipeline, all characters of its scripts, each as a separate word and inside of one.
func lettersOf() (letters [pipelines]string) {
	var b [pipelines]strings.Builder
	for r := rune(0); r < 0x30000; r++ {
		if unicode.IsGraphic(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r) {
			sc, _ := nextGroup([]byte(string(r)), other)
			fmt.Fprintf(&b[ofScript(sc)], "%c x%cy\n", r, r)
		}
	}
	for p := range b {
		letters[p] = b[p].String()
	}
	return letters
}

// TestVersions requires that the words of each pipeline change only with its version. If it fails after an intended change, raise the
// version of the pipeline in version.go, and run it with -update. Words that changed elsewhere belong to the pipelines of those texts.
func TestVersions(t *testing.T) {
	const name = "testdata/versions.txt"
	golden, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	recorded := strings.Split(string(golden), "\n")
	letters := lettersOf()
	var b strings.Builder
	for p := range pipelineTexts {
		texts := &pipelineTexts[p]
		a := New(Config{StopWords: texts.stop})
		sum := xxhash.New()
		for _, s := range texts.texts {
			words, used := indexedBy(a, s, texts.locales)
			if !used.Has(Pipeline(p)) {
				t.Errorf("%q does not use %s", s, texts.name)
			}
			fmt.Fprintf(sum, "%q %s", s, words)
		}
		for line := range strings.Lines(letters[p]) {
			words, _ := indexedBy(a, line, texts.locales)
			fmt.Fprintf(sum, "%q %s", line, words)
			if slices.Contains([]Pipeline{Latin, Cyrillic, Greek, Arabic, Hebrew, Thai, Devanagari, Ethiopic, Tamil}, Pipeline(p)) { // scripts of isSpelt
				fmt.Fprint(sum, spellingsOf(a, line, texts.locales))
			}
		}
		version := fmt.Sprintf("%s %d ", texts.name, versions[p])
		line := fmt.Sprintf("%s%016x", version, sum.Sum64())
		b.WriteString(line + "\n")
		switch {
		case slices.ContainsFunc(recorded, func(r string) bool { return strings.HasPrefix(r, version) && r != line }):
			t.Errorf("the words of %s differ from those in the file: raise its version in version.go, and run this with -update", texts.name)
		case !slices.Contains(recorded, line) && !*update:
			t.Errorf("the file has no line %q: run this with -update", line)
		}
	}
	if *update && !t.Failed() {
		if err := os.WriteFile(name, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPipelines checks which pipelines texts use, for each way of indexing.
func TestPipelines(t *testing.T) {
	for _, test := range []struct {
		text    string
		locales Locales
		want    []Pipeline
	}{
		{"plain words 12", nil, []Pipeline{Common}},
		{"plain words 12", Locales{"deu"}, []Pipeline{Common, German}},
		{"plain words 12", Locales{"eng"}, []Pipeline{Common}},
		{"Straße", nil, []Pipeline{Common, Latin}},
		{"Straße", Locales{"deu"}, []Pipeline{Common, Latin, German}},
		{"мир peace", nil, []Pipeline{Common, Cyrillic}},
		{"мир paix à tous", nil, []Pipeline{Common, Cyrillic, Latin}},
		{"12 “”", nil, []Pipeline{Common}},
		{"東京都に行く", nil, []Pipeline{Common, Ideographs, Japanese}},
		{"我们去北京", nil, []Pipeline{Common, Ideographs, Chinese}},
		{"السلام", Locales{"ara"}, []Pipeline{Common, Arabic}},
	} {
		var want Pipelines
		for _, p := range test.want {
			want.add(p)
		}
		a := New(Config{})
		_, got := indexedBy(a, test.text, test.locales)
		withStops := want
		withStops.add(StopWords)
		if _, got := indexedBy(New(Config{StopWords: []string{"x"}}), test.text, test.locales); got != withStops {
			t.Errorf("%q in %v uses %b with stop words, want %b", test.text, test.locales, got, withStops)
		}
		var p Positions
		a.IndexConcord(&p, []byte(test.text), test.locales, func([]byte, uint16) {}, &concorded{})
		if got != want || p.Used() != want {
			t.Errorf("%q in %v uses %b, with a concordance %b, want %b", test.text, test.locales, got, p.Used(), want)
		}
	}
}

// TestStaleParts checks which parts of an analysis are stale, and which older versions are still available.
func TestStaleParts(t *testing.T) {
	a := New(Config{})
	all := Possible(nil, Locales{"deu"})
	for _, test := range []struct {
		made     []Part
		possible Pipelines
		want     []Part
	}{
		{a.Analysis(all), all, nil},
		{nil, all, nil},
		{[]Part{{Pipeline: uint16(German), Version: 1}, {Pipeline: uint16(Latin), Version: versions[Latin]}}, all, []Part{{Pipeline: uint16(German), Version: 1}}},
		{[]Part{{Pipeline: uint16(German), Version: versions[German], List: 7}}, all, []Part{{Pipeline: uint16(German), Version: versions[German], List: 7}}},
		{[]Part{{Pipeline: uint16(Latin), Version: versions[Latin] + 1}}, all, []Part{{Pipeline: uint16(Latin), Version: versions[Latin] + 1}}}, // from a newer program
		{[]Part{{Pipeline: pipelines, Version: 1}}, all, []Part{{Pipeline: pipelines, Version: 1}}},
	} {
		if got := a.Stale(test.made, test.possible); !slices.Equal(got, test.want) {
			t.Errorf("stale parts of %v: got %v, want %v", test.made, got, test.want)
		}
	}
	unrecorded := []Part{{Pipeline: uint16(Unrecorded)}}
	german := Part{Pipeline: uint16(German), Version: 1}
	if got := a.Stale(unrecorded, all); !slices.Contains(got, german) {
		t.Errorf("stale parts without a record: %v", got)
	}
	if got := a.Stale(unrecorded, Possible(nil, Locales{"eng"})); slices.Contains(got, german) {
		t.Errorf("stale parts without a record and without German: %v", got)
	}
	for _, part := range []Part{
		{Pipeline: uint16(Common), Version: 1},                         // no longer available
		{Pipeline: uint16(German), Version: 2},                         // not available either, although version 1 is
		{Pipeline: uint16(German), Version: versions[German]},          // current version
		{Pipeline: uint16(German), Version: versions[German] + 1},      // from a newer program
		{Pipeline: uint16(German), Version: 1, List: 7},                // with another list
		{Pipeline: pipelines, Version: 1}, {Pipeline: 300, Version: 1}, // unknown here
	} {
		if v, lost := VersionsOf([]Part{german, part}); !slices.Equal(lost, []Part{part}) || v[German] != 1 {
			t.Errorf("part %v: lost %v, German version %d", part, lost, v[German])
		}
	}
}

// TestOlderVersions checks the words of the older versions that are still available.
func TestOlderVersions(t *testing.T) {
	left := slices.Clone(kept)
	for _, test := range []struct {
		part    Part
		text    string
		locales Locales
		want    []string
	}{
		{Part{Pipeline: uint16(German), Version: 1}, "Schifffahrtskalender Straße125 epsilon", Locales{"deu"}, []string{"schifffahrtskalender", "strasse125", "epsilon"}},
		{Part{Pipeline: uint16(Chinese), Version: 2}, "電腦店在裏面 电脑", nil, []string{"电", "脑", "店", "在", "里", "面", "电脑"}},
	} {
		left = slices.DeleteFunc(left, func(part Part) bool { return part == test.part })
		at, lost := VersionsOf([]Part{test.part})
		if lost != nil {
			t.Errorf("%v is not available", test.part)
			continue
		}
		old := New(Config{}).At(at)
		if _, used := indexedBy(old, test.text, test.locales); !slices.Contains(old.Analysis(used), test.part) {
			t.Errorf("%v is not in the analysis of its words: %v", test.part, old.Analysis(used))
		}
		var got []string
		for _, token := range old.Tokens(nil, test.text, test.locales, true) {
			if token.Kind == Word {
				got = append(got, token.Form)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%v gives %q, want %q", test.part, got, test.want)
		}
		now := New(Config{}).Tokens(nil, test.text, test.locales, true)
		if len(now) == len(old.Tokens(nil, test.text, test.locales, true)) {
			t.Errorf("%v gives the current words", test.part)
		}
	}
	if len(left) > 0 {
		t.Errorf("no test for %v", left)
	}
}

// TestOwnGermanWordsAreAnotherPart checks that a replaced list of words makes another part.
func TestOwnGermanWordsAreAnotherPart(t *testing.T) {
	defer germanReplacement.Store(germanReplacement.Load())
	a := New(Config{})
	before := a.Analysis(1 << German)
	own := "dampf\nschiff\n"
	germanReplacement.Store(&own)
	if stale := a.Stale(before, Possible(nil)); len(stale) != 1 {
		t.Errorf("%v is stale, want the part with the built-in list", stale)
	}
	if after := a.Analysis(1 << German); len(a.Stale(after, Possible(nil))) != 0 || slices.Equal(before, after) {
		t.Errorf("%v, then %v", before, after)
	}
}

// TestPossible checks that the possible parts include all pipelines that random texts use.
func TestPossible(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	for range 300 {
		l := []Locales{nil, {"deu"}, {"eng", "swe"}, {"jpn"}, {"eng", "de"}}[r.IntN(5)]
		s := concordText(r)
		if _, used := indexedBy(New(Config{}), s, l); used&^Possible(l) != 0 {
			t.Errorf("%q in %v uses %b, which is not possible", s, l, used)
		}
	}
}
