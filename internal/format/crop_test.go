package format

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"svc/internal/query"
	"svc/internal/text"
)

// matchesOfAll returns the matches among all tokens of a text.
func matchesOfAll(h *highlighter, s string, tokens []text.Token) (matches []match) {
	var words []int
	for i := range tokens {
		if isWord(&tokens[i]) {
			words = append(words, i)
		}
	}
	has := func(token *text.Token, form string) bool {
		return token.Form == form || form != "" && token.Inner.Form == form
	}
	phraseAt := func(w int, form string) (phraseForm, int, int) {
		for _, p := range h.phrases[form] {
			n := len(p.words)
			if w+n <= len(words) && slices.EqualFunc(p.words[1:], words[w+1:w+n], func(form string, at int) bool { return has(&tokens[at], form) }) {
				last := &tokens[words[w+n-1]]
				end := last.End
				if last.Form != p.words[n-1] {
					end = last.Inner.End
				}
				return p, n, end
			}
		}
		return phraseForm{}, 0, 0
	}
	for w := 0; w < len(words); {
		first := &tokens[words[w]]
		if p, n, end := phraseAt(w, first.Form); n > 0 {
			matches = append(matches, match{words[w], words[w+n-1], w, w + n - 1, first.Start, end, p.first, p.last, -1, false, false})
			w += n
			continue
		}
		found, n := match{}, 1
		for i := range h.words {
			list := &h.words[i]
			end := first.End
			whole := first.Whole != "" && h.word(first.Form).list < 0 && h.word(first.Whole).list == i
			if h.analyzer.IsStopWord([]byte(s[first.Start:first.End])) {
				break
			}
			if n := list.prefixOf(first.Form); whole {
			} else if n > 0 {
				end = first.Start + h.analyzer.MarkedBytes(*first, s[first.Start:first.End], leadingBytes(first.Form[:n], list.Chars))
			} else if _, ok := list.Forms[first.Form]; !ok {
				continue
			}
			found = match{words[w], words[w], w, w, first.Start, end, list.First, list.Last, i, false, false}
			break
		}
		if found.end == 0 && first.Inner.Form != "" {
			start, end := first.Inner.Start, first.Inner.End
			if p, words, to := phraseAt(w, first.Inner.Form); words > 0 {
				found, n = match{0, 0, w, w + words - 1, start, to, p.first, p.last, -1, false, false}, words
			} else if i := slices.IndexFunc(h.words, func(list wordList) bool {
				_, ok := list.Forms[first.Inner.Form]
				return ok || list.prefixOf(first.Inner.Form) > 0
			}); i >= 0 {
				list := &h.words[i]
				if n := list.prefixOf(first.Inner.Form); n > 0 {
					end = start + h.analyzer.MarkedBytes(*first, s[start:end], leadingBytes(first.Inner.Form[:n], list.Chars))
				}
				found = match{0, 0, w, w, start, end, list.First, list.Last, i, false, false}
			}
			if last := len(matches) - 1; last >= 0 {
				found.start = max(found.start, matches[last].end)
			}
			if found.start >= found.end {
				found, n = match{}, 1
			} else {
				if last := len(matches) - 1; last < 0 || matches[last].lastWord < w-1 {
					found.firstWord, found.inner = found.firstWord-1, true
				}
				found.firstToken, found.lastToken = words[found.firstWord], words[found.lastWord]
			}
		}
		if found.end == 0 {
			found = partMatch(h, s, first, match{firstToken: words[w], lastToken: words[w], firstWord: w, lastWord: w}, matches)
		}
		if found.end > 0 {
			matches = append(matches, found)
		}
		w += n
	}
	return matches
}

// partMatch completes the match of a word with its parts, or returns none: by the first list that has one of them.
func partMatch(h *highlighter, s string, token *text.Token, m match, before []match) match {
	for i := range h.words {
		list := &h.words[i]
		for _, in := range token.Parts {
			end := in.End
			if n := list.prefixOf(in.Form); n > 0 {
				end = in.Start + h.analyzer.MarkedBytes(*token, s[in.Start:in.End], leadingBytes(in.Form[:n], list.Chars))
			} else if _, ok := list.Forms[in.Form]; !ok {
				continue
			}
			start := in.Start
			if last := len(before) - 1; last >= 0 && before[last].end > start {
				if start = before[last].end; start >= end {
					end = in.End
				}
			}
			m.start, m.end, m.firstTerm, m.lastTerm, m.list = start, end, list.First, list.Last, i
			return m
		}
	}
	return match{}
}

// scoreInterval scores all matches of a run at once; runSums updates scores match by match.
func scoreInterval(matches []match) intervalScore {
	var s intervalScore
	var terms termSet
	for i, m := range matches {
		for t := m.firstTerm; t <= m.lastTerm; t++ {
			if terms.add(t) {
				s.terms++
			}
		}
		words := m.lastWord - m.firstWord
		if m.inner {
			words--
		}
		s.closeness -= words
		s.ordered += words
		if i == 0 {
			continue
		}
		previous := matches[i-1]
		s.closeness -= min(farthest, m.firstWord-previous.lastWord)
		if m.firstTerm > previous.firstTerm {
			s.ordered++
		}
	}
	return s
}

// bestOfAll returns the run of matches that a crop shows, chosen among all matches of a text.
func bestOfAll(matches []match, length int) []match {
	if len(matches) == 0 {
		return nil
	}
	var best []match
	consider := func(i, j int) {
		if run := matches[i : j+1]; best == nil || scoreInterval(best).less(scoreInterval(run)) {
			best = run
		}
	}
	i := 0
	for j := range matches {
		if matches[j].lastWord-matches[i].firstWord < length {
			continue
		}
		if j > 0 {
			consider(i, j-1)
		}
		for i < j && matches[j].lastWord-matches[i].firstWord >= length {
			i++
		}
	}
	end := len(matches) - 1
	if i < end || matches[end].lastWord-matches[i].firstWord < length {
		consider(i, end)
	}
	if best == nil {
		best = matches[:1]
	}
	return best
}

// textParts splits a text into parts of any length.
type textParts struct {
	text string
	rng  *rand.Rand
}

func (p *textParts) More() bool { return p.text != "" }

func (p *textParts) Append(dst []byte) ([]byte, error) {
	n := 0
	for range 1 + p.rng.IntN(300) {
		_, size := utf8.DecodeRuneInString(p.text[n:])
		n += size
	}
	dst = append(dst, p.text[:n]...)
	p.text = p.text[n:]
	return dst, nil
}

// TestCropsAgreeWithWholeTexts compares crops and highlights, which read no more of a text than necessary, with those of all tokens.
func TestCropsAgreeWithWholeTexts(t *testing.T) {
	cropsAgree(t, 3848137532482560630, 950)  // with this seed, a run continues after text that is skipped
	cropsAgree(t, 13130604340522731726, 310) // with this seed, an inner word begins within the last word shown, after a partial match
	cropsAgree(t, rand.Uint64(), 3000)
}

func cropsAgree(t *testing.T, seed uint64, rounds int) {
	t.Helper()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	pick := func(list ...string) string { return list[rng.IntN(len(list))] }
	inner := 0 // matches of inner words
	word := func() string {
		b := make([]rune, 1+rng.IntN(5))
		for i := range b {
			b[i] = []rune("abcdeABs.éßÉœ\x01_9")[rng.IntN(10+rng.IntN(6))]
		}
		return string(b)
	}
	for round := range rounds {
		config := text.Config{}
		switch rng.IntN(6) {
		case 0:
			config.Dictionary = []string{"a b", "ab. a"}
		case 1:
			config.Separators = []string{"x", "a", "é"}
		case 2:
			config.NonSeparators = []string{" "}
		}
		vocabulary := make([]string, 3+rng.IntN(30))
		for i := range vocabulary {
			vocabulary[i] = word()
		}
		chinese := rng.IntN(4) == 0 // with inner words
		if chinese {
			vocabulary = append(vocabulary[:rng.IntN(4)], "大学生", "飞机场", "飞", "学", "机场", "学生宿舍", "二十二时", "电影院")
		}
		if rng.IntN(4) == 0 {
			vocabulary = append(vocabulary[:rng.IntN(4)], "서울대학교에서", "대학교", "학교", "한국전력공사", "มีประวัติศาสตร์", "ประวัติ", "สถานีรถไฟ", "สถานี")
		}
		h := &query.Highlights{}
		analyzer := text.New(config)
		form := func(s string) string {
			var b strings.Builder
			for _, token := range analyzer.Tokens(nil, s, nil, false) {
				if n := len(token.Parts); n > 0 && rng.IntN(2) == 0 {
					return token.Parts[rng.IntN(n)].Form
				}
				if chinese && rng.IntN(3) == 0 {
					return token.Form
				}
				if token.Inner.Form != "" && rng.IntN(2) == 0 {
					return token.Inner.Form
				}
				b.WriteString(token.Form)
			}
			return b.String()
		}
		rare := fmt.Sprintf("zq%d", rng.IntN(3))
		asked := func() string {
			if rng.IntN(2) == 0 {
				return rare
			}
			return form(vocabulary[rng.IntN(len(vocabulary))])
		}
		term := 0
		for range rng.IntN(4) {
			last := term + rng.IntN(2)
			if rng.IntN(3) == 0 {
				p := query.Phrase{First: term, Last: last}
				for range 1 + rng.IntN(4) {
					p.Words = append(p.Words, pick(asked(), asked(), ""))
				}
				h.Phrases = append(h.Phrases, p)
			} else {
				w := query.Words{Word: asked(), Forms: map[string]struct{}{}, Chars: 1 + rng.IntN(3), First: term, Last: last}
				for range rng.IntN(3) {
					w.Forms[asked()] = struct{}{}
				}
				if rng.IntN(3) == 0 {
					w.Prefixes = []string{w.Word}
				}
				w.Forms[w.Word] = struct{}{}
				h.Words = append(h.Words, w)
			}
			term += 1 + rng.IntN(2)
		}
		var b strings.Builder
		far := rng.IntN(4) == 0 // words of no query separate the others
		for range rng.IntN(1 + 400*rng.IntN(4)) {
			switch {
			case far && rng.IntN(30) > 0:
				b.WriteString(pick("vun", "wot", "Übung", "xml", "yps", "für", "’tis", "日本", "да"))
			case rng.IntN(20) == 0:
				b.WriteString(rare)
			default:
				b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
			}
			if b.WriteString(pick(" ", " ", " ", ". ", ", ", "\n", " - ", "x", "  ", "—")); chinese && rng.IntN(2) == 0 {
				b.WriteString(vocabulary[rng.IntN(len(vocabulary))])
			}
		}
		s := b.String()
		var locales text.Locales
		switch rng.IntN(8) {
		case 0:
			locales = text.Locales{"deu"}
		case 1:
			locales = text.Locales{"eng", "deu", "swe"}
		}
		find := newHighlighter(analyzer, h)
		tokens := analyzer.Tokens(nil, s, locales, false)
		want := matchesOfAll(find, s, tokens)
		length := 1 + rng.IntN(1+rng.IntN(30*(1+rng.IntN(2)*rng.IntN(40))))

		f := &Formatter{scan: textScan{find: find}}
		places := func(list []match) (spans []byteSpan) {
			for _, m := range list {
				spans = append(spans, byteSpan{m.start, m.end})
			}
			return spans
		}
		for _, m := range want {
			if m.inner {
				inner++
			}
		}
		var got []match
		if err := f.scan.each([]byte(s), locales, &f.cut.clock, func(m match) error { got = append(got, m); return nil }); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(places(got), places(want)) {
			for i, m := range places(want) {
				if i == len(got) || places(got)[i] != m {
					t.Fatalf("round %d: %+v misses %q at %d of %q; %d matches were found", round, h, s[m.start:m.end], m.start, s[max(0, m.start-20):min(len(s), m.end+20)], len(got))
				}
			}
		}
		f.cut.perfect, f.cut.length = perfectScore(find), length
		known, rest := []byte(s), continuation(nil)
		if rng.IntN(2) == 0 {
			parts := &textParts{text: s, rng: rng}
			if known, _ = parts.Append(nil); parts.More() {
				rest = parts
			}
		}
		f.cut.find(&f.scan, known, rest, locales)
		start, end := cropWindow(tokens, 0, bestOfAll(want, length), length)
		shown := slices.DeleteFunc(slices.Clone(want), func(m match) bool { return m.end <= start || m.start >= end })
		if f.cut.start != start || f.cut.end != end || !slices.Equal(places(f.cut.shown), places(shown)) || !strings.HasPrefix(s, string(f.scan.text)) {
			t.Fatalf("round %d: a crop of %q to %d words for %+v\nshows %d to %d with %v,\nwant  %d to %d with %v", round, s, length, h,
				f.cut.start, f.cut.end, places(f.cut.shown), start, end, places(shown))
		}
	}
	if inner < rounds/10 {
		t.Errorf("%d inner words were found", inner)
	}
}

// BenchmarkCrop crops a megabyte to ten words: both words adjacent near the start, a best place that is never certain, and a text without
// one of the words.
func BenchmarkCrop(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 0))
	words := strings.Fields(`the of and to in is was for on as by with at from that it his her an were which this be or had first are
		one their its after new who they two have has been also other when during there into all may more time some only many over most
		between made about known such season then team later second while part called used years city played however would under state`)
	var body strings.Builder
	for body.Len() < 1<<20 {
		body.WriteString(words[rng.IntN(len(words))])
		body.WriteString([]string{" ", " ", " ", " ", ", ", ". "}[rng.IntN(6)])
	}
	for _, c := range []struct{ name, query, text string }{
		{"together", "clock tower", "A clock tower. " + body.String()},
		{"apart", "clock tower", "A clock. " + body.String() + " A tower."},
		{"one", "clock tower", body.String() + " A tower."},
		{"frequent", "after the", body.String()},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			s := []byte(c.text)
			f := &Formatter{scan: textScan{find: newHighlighter(text.New(text.Config{}), highlights(c.query))}}
			f.cut.perfect, f.cut.length = perfectScore(f.scan.find), 10
			for b.Loop() {
				f.cut.find(&f.scan, s, nil, nil)
			}
		})
	}
}
