package format

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"svc/internal/budget"
	"svc/internal/index"
	"svc/internal/jsontext"
	"svc/internal/query"
	"svc/internal/text"
	"svc/segment"
)

// TestCropsByConcordancesAgreeWithWholeTexts compares crops of stored texts in many languages that use concordances with crops of whole
// texts, for random words, prefixes and phrases, under settings that tokenize differently.
func TestCropsByConcordancesAgreeWithWholeTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	common := []string{"Straße", "don’t", "l'été", "東京都に行く", "白い猫", "我们去北京", "飞机场旁边", "大学生", "电影院", "待處理", "研究生院", "한국어를", "Ελλάς", "мир", "السلام", "3.14", "a_b", "x-ray", "e. g", "C++", "ไทย", "camelCase", "emoji😀", "naïve", "of", "the", "a", "to", "\n\n", "…", "\x01b"}
	chinese := []string{"大学生", "电影院", "学生", "影院", "院", "生", "学", "研究生院", "研究生"}
	parted := []string{"서울대학교에서", "대학교", "학교", "한국전력공사", "มีประวัติศาสตร์", "ประวัติ", "สถานีรถไฟ", "สถานี", "នាយករដ្ឋមន្ត្រី"}
	plain := []string{"lorem", "ipsum", "dolor", "sit", "amet", "Fast", "python", "unix", "like", "system", "3", "x", "the", "a", "of"}
	body := func(size int, words []string) string {
		rare := rng.IntN(3) == 0 // few words are in a query
		var b strings.Builder
		for b.Len() < size {
			if rare && rng.IntN(30) > 0 {
				fmt.Fprintf(&b, "filler%d", rng.IntN(300))
			} else {
				b.WriteString(words[rng.IntN(len(words))])
			}
			b.WriteString([]string{" ", " ", " ", " ", ". ", ", ", "-", "", "—"}[rng.IntN(9)])
		}
		return b.String()
	}
	agreed, inner, parts := 0, 0, 0
	for round := range 16 {
		docs, size, queries := make([]string, 1+rng.IntN(2)), segment.LongText+1+rng.IntN(60_000), 25
		if round == 0 {
			docs, size, queries = docs[:1], 1_200_000, 8 // in two parts
		}
		for i := range docs {
			words := [][]string{common, plain, chinese, parted}[rng.IntN(4)]
			if round%5 == 1 {
				words = parted
			}
			docs[i] = fmt.Sprintf(`{"id":%d,"title":"t","body":%s}`, i, jsontext.AppendQuoted(nil, []byte(body(size, words))))
		}
		change := []string{
			`"separatorTokens":["x","&","été"]`, `"nonSeparatorTokens":["-","."]`, `"dictionary":["e. g","x-ray"]`, `"separatorTokens":[". l"]`,
			`"localizedAttributes":[{"attributePatterns":["*"],"locales":["deu"]}]`, `"localizedAttributes":[{"attributePatterns":["body"],"locales":["jpn","eng","swe"]}]`,
			`"stopWords":["the","of","-"]`,
		}[rng.IntN(7)]
		v := viewOf(t, `{"searchableAttributes":["body"],`+change+`}`, docs...)
		found, ofInner, ofParts := cropsForQueriesAgree(t, rng, v, queries, slices.Concat(common, plain, chinese, chinese, parted, []string{"filler7", "filler12"}))
		agreed, inner, parts = agreed+found, inner+ofInner, parts+ofParts
	}
	if inner < 20 {
		t.Errorf("only %d inner words were found in concordances", inner)
	}
	if parts < 10 {
		t.Errorf("only %d concordances had inner words of Korean, Thai or Khmer", parts)
	}
	if agreed < 100 {
		t.Errorf("only %d crops used concordances", agreed)
	}
}

// cropsForQueriesAgree compares crops for a number of queries, and returns the numbers of crops, of Chinese inner words found, and of
// concordances with others.
func cropsForQueriesAgree(t *testing.T, rng *rand.Rand, v *index.View, queries int, words []string) (agreed, inner, parts int) {
	t.Helper()
	for range queries {
		found, ofInner, ofParts := cropsOfViewAgree(t, rng, v, words)
		agreed, inner, parts = agreed+found, inner+ofInner, parts+ofParts
	}
	return agreed, inner, parts
}

// cropsOfViewAgree compares crops of all documents for a random query, and returns the numbers of crops, of Chinese inner
// words found, and of concordances with others.
func cropsOfViewAgree(t *testing.T, rng *rand.Rand, v *index.View, words []string) (agreed, inner, parts int) {
	t.Helper()
	info := v.Fields.InfoOf("body")
	form := func() string {
		s := words[rng.IntN(len(words))]
		tokens := v.Analyzer.Tokens(nil, s, info.Locales, false)
		if len(tokens) == 0 {
			return s
		}
		token := tokens[rng.IntN(len(tokens))]
		if n := len(token.Parts); n > 0 && rng.IntN(2) == 0 {
			return token.Parts[rng.IntN(n)].Form
		}
		if token.Inner.Form != "" && rng.IntN(2) == 0 {
			return token.Inner.Form
		}
		return token.Form
	}
	h := &query.Highlights{}
	term := 0
	for range rng.IntN(4) {
		last := term + rng.IntN(2)
		if rng.IntN(3) == 0 {
			p := query.Phrase{First: term, Last: last}
			for range 1 + rng.IntN(4) {
				p.Words = append(p.Words, form())
			}
			h.Phrases = append(h.Phrases, p)
		} else {
			w := query.Words{Word: form(), Forms: map[string]struct{}{}, Chars: 1 + rng.IntN(3), First: term, Last: last}
			for range rng.IntN(3) {
				w.Forms[form()] = struct{}{}
			}
			if w.Word != "" && rng.IntN(3) == 0 {
				r := []rune(w.Word)
				w.Word = string(r[:1+rng.IntN(len(r))])
				w.Prefixes = []string{w.Word}
			} else {
				w.Forms[w.Word] = struct{}{}
			}
			h.Words = append(h.Words, w)
		}
		term += 1 + rng.IntN(2)
	}
	var byConcordance, whole crop
	byConcordance.length = 1 + rng.IntN([]int{15, 15, 15, 1500, 15_000}[rng.IntN(5)])
	read, readWhole := textScan{find: newHighlighter(v.Analyzer, h)}, textScan{find: newHighlighter(v.Analyzer, h)}
	byConcordance.perfect = perfectScore(read.find)
	whole.length, whole.perfect = byConcordance.length, byConcordance.perfect
	unfit := false // a prefix of an inner word that is longer than the highlighted part
	for _, w := range h.Words {
		for _, prefix := range w.Prefixes {
			unfit = unfit || text.IsOfInner(prefix) && w.Chars < 2 && utf8.RuneCountInString(prefix) > 1
		}
	}
	all := func([]byte) bool { return true }
	for _, s := range v.Segments {
		for row := range segment.Row(s.Rows()) {
			_, tails, err := s.AppendBeginnings(nil, row, segment.Wanted{Has: all}, all, nil, nil)
			if err != nil || len(tails) != 1 || tails[0].Concordance() == nil {
				t.Fatalf("%d tails, %v", len(tails), err)
			}
			ok, err := byConcordance.locate(&read, tails[0].Concordance(), nil, &tails[0], v.Analyzer.Fingerprint(info.Locales), info.Locales)
			if err != nil || ok == unfit {
				t.Fatalf("%+v: the concordance is used: %v, error %v", h, ok, err)
			}
			if unfit {
				return 0, 0, 0
			}
			for _, m := range byConcordance.near {
				if m.inner || m.touches {
					inner++
				}
			}
			if c := &byConcordance.concord; slices.ContainsFunc(c.within, func(list uint16) bool { return list > 0 }) {
				parts++
			}
			concordance := tails[0].Concordance()
			var full []byte
			for rest := &tails[0]; rest.More(); {
				if full, err = rest.Append(full); err != nil {
					t.Fatal(err)
				}
			}
			whole.find(&readWhole, full, nil, info.Locales)
			start := byConcordance.offset + byConcordance.start
			shown := string(read.text[byConcordance.start:byConcordance.end])
			if want := string(full[whole.start:whole.end]); start != whole.start || shown != want {
				t.Fatalf("%+v, %d words: %q from %d on, want %q from %d on", h, whole.length, shown, start, want, whole.start)
			}
			after := byConcordance.end < len(read.text) || read.partial()
			if after != (whole.end < len(full)) {
				t.Fatalf("%+v: the end of the text: %v", h, !after)
			}
			got := appendSpans(nil, byConcordance.shown, byConcordance.start, byConcordance.end)
			if want := appendSpans(nil, whole.shown, whole.start, whole.end); !slices.Equal(got, want) {
				t.Fatalf("%+v: %v is marked in %q, want %v", h, got, shown, want)
			}
			agreed++
			offset, begins, ends, near := byConcordance.offset, byConcordance.start, byConcordance.end, len(byConcordance.shown)
			if ok, err := byConcordance.locate(&read, concordance, full, nil, v.Analyzer.Fingerprint(info.Locales), info.Locales); !ok || err != nil {
				t.Fatalf("%+v: the concordance was not used for the loaded text: %v", h, err)
			}
			if byConcordance.offset != offset || byConcordance.start != begins || byConcordance.end != ends || len(byConcordance.shown) != near {
				t.Fatalf("%+v: the crop of the loaded text differs", h)
			}
		}
	}
	return agreed, inner, parts
}

// TestUnsuitableConcordances checks that a concordance is not used if its fingerprint differs, or if the text has a word that it lacks.
func TestUnsuitableConcordances(t *testing.T) {
	v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":"%s fast python %s"}`, strings.Repeat("lorem ipsum ", 6000), strings.Repeat("x", 300)))
	all := func([]byte) bool { return true }
	right := v.Analyzer.Fingerprint(nil)
	for _, tt := range []struct {
		what        string
		query       []string
		fingerprint uint64
		other       bool // the highlighter tokenizes differently than the fingerprint says
		used        bool
	}{
		{what: "a word", query: []string{"python"}, fingerprint: right, used: true},
		{what: "no word", fingerprint: right, used: true},
		{what: "another fingerprint", query: []string{"python"}, fingerprint: right + 1},
		{what: "another fingerprint and no word", fingerprint: right + 1},
		{what: "another analysis", query: []string{"fast"}, fingerprint: right, other: true},
		{what: "a truncated form", query: []string{"xx"}, fingerprint: right},
		{what: "a form above the limit", query: []string{strings.Repeat("x", segment.LongestConcordForm+1)}, fingerprint: right},
		{what: "a form at the limit", query: []string{strings.Repeat("y", segment.LongestConcordForm)}, fingerprint: right, used: true},
	} {
		h := &query.Highlights{}
		for i, w := range tt.query {
			h.Words = append(h.Words, query.Words{Word: w, Prefixes: []string{w}, Chars: len(w), First: i, Last: i})
		}
		a := v.Analyzer
		if tt.other {
			a = text.New(text.Config{Separators: []string{"f"}})
		}
		r := textScan{find: newHighlighter(a, h)}
		c := crop{length: 3, perfect: perfectScore(r.find)}
		_, tails, err := v.Segments[0].AppendBeginnings(nil, 0, segment.Wanted{Has: all}, all, nil, nil)
		if err != nil || len(tails) != 1 {
			t.Fatal(len(tails), err)
		}
		if ok, err := c.locate(&r, tails[0].Concordance(), nil, &tails[0], tt.fingerprint, nil); ok != tt.used || err != nil {
			t.Errorf("%s: used %v, %v", tt.what, ok, err)
		}
	}
}

// TestPlacesOfManyFormsAreCharged searches a prefix of more forms than the account has memory for.
func TestPlacesOfManyFormsAreCharged(t *testing.T) {
	var body strings.Builder
	for i := range 30_000 {
		fmt.Fprintf(&body, "x%d some other words of the text ", i%10_000)
	}
	v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":%q}`, body.String()))
	h := &query.Highlights{Words: []query.Words{{Word: "x", Prefixes: []string{"x"}, Chars: 1}}}
	for _, tt := range []struct {
		limit int64
		full  bool
	}{{64 << 20, false}, {256 << 10, true}} {
		account := budget.New(tt.limit, nil).Open(tt.limit)
		concordance, err := v.Segments[0].Concordance(0, []byte(`"body"`))
		if err != nil || concordance == nil {
			t.Fatal(concordance, err)
		}
		r := textScan{find: newHighlighter(v.Analyzer, h)}
		c := crop{length: 3, perfect: intervalScore{terms: 2}}
		c.concord.room = budget.NewRoom(account)
		_, err = c.locate(&r, concordance, []byte(body.String()), nil, v.Analyzer.Fingerprint(nil), nil)
		if errors.Is(err, budget.ErrFull) != tt.full || !tt.full && (err != nil || account.Held() < 10_000*openPlacesBytes) {
			t.Errorf("of %d bytes %d are held: %v", tt.limit, account.Held(), err)
		}
		account.Close()
	}
}

// TestCropsWithLongFormsAgree crops to a phrase with a word whose form is truncated in concordances.
func TestCropsWithLongFormsAgree(t *testing.T) {
	long := strings.Repeat("y", segment.LongestConcordForm+1)
	filler := strings.Repeat("lorem ipsum dolor ", 5000)
	v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":"%s%s end %s"}`, filler, long, filler))
	f := &Formatter{scan: textScan{find: newHighlighter(v.Analyzer, &query.Highlights{Phrases: []query.Phrase{{Words: []string{long, "end"}, Last: 1}}})}}
	f.cut.length, f.cut.perfect = 4, perfectScore(f.scan.find)
	body := []byte(filler + long + " end " + filler)
	concordance, err := v.Segments[0].Concordance(0, []byte(`"body"`))
	if err != nil || concordance == nil {
		t.Fatal(concordance, err)
	}
	if err := f.cutText(body, &pathOptions{}, concordance); err != nil {
		t.Fatal(err)
	}
	if got, want := string(f.scan.text[f.cut.start:f.cut.end]), "dolor "+long+" end lorem"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestInnerWordsBehindMatches: of an inner word, nothing is left if a match covers its first character.
func TestInnerWordsBehindMatches(t *testing.T) {
	v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":"%s大学生%s"}`, strings.Repeat("lorem ipsum ", 6000), strings.Repeat(" dolor sit", 100)))
	exact := func(word string, term int) query.Words {
		return query.Words{Word: word, Forms: map[string]struct{}{word: {}}, Chars: 2, First: term, Last: term}
	}
	prefix := func(word string, term int) query.Words {
		return query.Words{Word: word, Prefixes: []string{word}, Chars: utf8.RuneCountInString(word), First: term, Last: term}
	}
	for _, tt := range []struct {
		words []query.Words
		shown string
	}{
		{[]query.Words{exact("大学", 0), prefix("学", 1)}, "<大学>生"},
		{[]query.Words{exact("大学", 0), exact("学生", 1)}, "<大学><生>"},
		{[]query.Words{prefix("大", 0), prefix("学", 1)}, "<大><学>生"},
		{[]query.Words{prefix("学", 0)}, "大<学>生"},
		{[]query.Words{prefix("学生", 0)}, "大<学生>"},
	} {
		r := textScan{find: newHighlighter(v.Analyzer, &query.Highlights{Words: tt.words})}
		c := crop{length: 2, perfect: perfectScore(r.find)}
		all := func([]byte) bool { return true }
		_, tails, err := v.Segments[0].AppendBeginnings(nil, 0, segment.Wanted{Has: all}, all, nil, nil)
		if err != nil || len(tails) != 1 {
			t.Fatal(len(tails), err)
		}
		if ok, err := c.locate(&r, tails[0].Concordance(), nil, &tails[0], v.Analyzer.Fingerprint(nil), nil); !ok || err != nil {
			t.Fatalf("%s: the concordance is not used: %v", tt.shown, err)
		}
		shown := r.text[c.start:c.end]
		var b strings.Builder
		at := 0
		for _, span := range appendSpans(nil, c.shown, c.start, c.end) {
			fmt.Fprintf(&b, "%s<%s>", shown[at:span.start], shown[span.start:span.end])
			at = span.end
		}
		b.Write(shown[at:])
		if b.String() != tt.shown {
			t.Errorf("%s is shown, want %s", b.String(), tt.shown)
		}
	}
}

// TestCropsOfCompoundsBehindParts has a last part of one word, in which several inner words end.
func TestCropsOfCompoundsBehindParts(t *testing.T) {
	const part = 1_049_600 // bytes, up to the first mark behind 1 MiB
	filler := strings.Repeat("word ", part/5)
	for _, compound := range []string{"한국전력공사", "สถานีรถไฟ", "nothing"} {
		v := viewOf(t, "", fmt.Sprintf(`{"id":1,"body":"%s%s"}`, filler, compound))
		concordance, err := v.Segments[0].Concordance(0, []byte(`"body"`))
		if err != nil || concordance == nil || concordance.Parts() != 2 {
			t.Fatal(concordance, err)
		}
		if err := v.Segments[0].Verify(); err != nil {
			t.Errorf("%s: %v", compound, err)
		}
		token := v.Analyzer.Tokens(nil, compound, nil, false)[0]
		words := query.Words{Word: token.Form, Forms: map[string]struct{}{token.Form: {}}, Chars: 2}
		f := &Formatter{scan: textScan{find: newHighlighter(v.Analyzer, &query.Highlights{Words: []query.Words{words}})}}
		f.cut.length, f.cut.perfect = 2, perfectScore(f.scan.find)
		if err := f.cutText([]byte(filler+compound), &pathOptions{}, concordance); err != nil {
			t.Errorf("%s: %v", compound, err)
			continue
		}
		if got, want := string(f.scan.text[f.cut.start:f.cut.end]), "word "+compound; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
