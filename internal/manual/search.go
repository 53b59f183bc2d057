package manual

import (
	"fmt"
	"html"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
)

// SearchPath answers the searches over the documents.
const SearchPath = Root + "/search"

const (
	maxQuery   = 200 // bytes of a query that are read
	maxWords   = 8   // of a query that are searched for
	maxFound   = 30  // sections that are shown
	maxPerPage = 4   // of them of one page
	aroundWord = 110 // bytes of text that are shown on each side of a word
)

// searcher finds sections of documents: a heading and the text up to the next one.
type searcher struct {
	sections []section
	words    []string    // of all sections, sorted
	lists    [][]posting // of the sections that have a word, by the place of the word
}

type section struct {
	at      string // path and anchor
	title   string
	parents string // titles above it
	text    string
	page    string
	share   float64 // what its score is multiplied by
	bonus   float64 // added to 1 for a title with all words of the query, before the score is multiplied by it
}

// posting says how much a word counts in a section.
type posting struct {
	section int
	weight  float64
}

// People look for pages. So rows of long tables, such as names in other engines, come after them.
const (
	rowShare  = .6 // of their scores
	pageBonus = 1.6

	migration = "docs/MIGRATION.md" // its rows are such names: their share counts twice
)

// The weights of a word by where it stands.
const (
	inTitle   = 6
	inName    = 4 // of a row
	inParents = 1
	inText    = 1
)

// newSearcher reads all documents.
func (m *Manual) newSearcher() (*searcher, error) {
	s := &searcher{}
	lists := map[string][]posting{}
	for _, file := range slices.Sorted(maps.Keys(m.titles)) {
		d, err := m.document(file)
		if err != nil {
			return nil, err
		}
		at, pageShare := pathOf(file), 1.0
		if innerOf(file) {
			pageShare = .5
		}
		var above [7]string // titles by level
		for _, h := range d.headings {
			if !h.row {
				clear(above[h.level:])
			}
			var parents []string
			for _, title := range above {
				if title != "" {
					parents = append(parents, title)
				}
			}
			if !h.row {
				above[h.level] = h.title
			}
			own := section{at: at, title: h.title, parents: strings.Join(parents, " › "), text: h.text, page: at, share: pageShare, bonus: 1}
			switch {
			case h.row:
				own.share *= rowShare
				if file == migration {
					own.share *= rowShare
				}
			case h.level == 1:
				own.bonus = pageBonus
			}
			if h.level > 1 {
				own.at += "#" + h.id
			}
			weights := map[string]float64{}
			add := func(text string, weight float64) {
				times := map[string]int{}
				eachWord(text, func(word string, _, _ int) { times[word]++ })
				for word, n := range times {
					weights[word] += weight * (1 + math.Log2(float64(n))/2)
				}
			}
			if h.row {
				add(own.title, inName)
			} else {
				add(own.title, inTitle)
			}
			add(own.parents, inParents)
			add(own.text, inText)
			for word, weight := range weights {
				lists[word] = append(lists[word], posting{len(s.sections), weight})
			}
			s.sections = append(s.sections, own)
		}
	}
	for word := range lists {
		s.words = append(s.words, word)
	}
	slices.Sort(s.words)
	for _, word := range s.words {
		s.lists = append(s.lists, lists[word])
	}
	return s, nil
}

// eachWord calls f for each word of a text, in lower case: letters and digits. Names of parameters are words as a whole and in parts:
// maxTotalHits is also max, Total and Hits. from and to are the place of the word.
func eachWord(text string, f func(word string, from, to int)) {
	from, last := -1, rune(0)
	var parts []int // where a part after the first begins
	end := func(to int) {
		if from < 0 {
			return
		}
		f(strings.ToLower(text[from:to]), from, to)
		if len(parts) > 0 {
			for i, part := range append([]int{from}, parts...) {
				until := to
				if i < len(parts) {
					until = parts[i]
				}
				f(strings.ToLower(text[part:until]), part, until)
			}
			parts = parts[:0]
		}
		from = -1
	}
	for i, r := range text {
		if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
			end(i)
		} else if from < 0 {
			from = i
		} else if unicode.IsUpper(r) && unicode.IsLower(last) {
			parts = append(parts, i)
		}
		last = r
	}
	end(len(text))
}

// idle are words of questions that do not help to find the answer.
var idle = map[string]bool{"a": true, "an": true, "and": true, "are": true, "as": true, "at": true, "be": true, "can": true, "do": true, "does": true, "for": true, "how": true, "i": true, "in": true, "is": true, "it": true, "my": true, "of": true, "on": true, "or": true, "svc": true, "the": true, "to": true, "what": true, "when": true, "where": true, "which": true, "with": true, "you": true}

// queryWords are the words of a query that are searched for.
func queryWords(query string) []string {
	var all, telling []string
	for _, part := range strings.FieldsFunc(strings.ToLower(query), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if slices.Contains(all, part) {
			continue
		}
		all = append(all, part)
		if !idle[part] {
			telling = append(telling, part)
		}
	}
	if len(telling) == 0 {
		telling = all
	}
	return telling[:min(len(telling), maxWords)]
}

// match is a word of the documents that matches a word of a query, and how well.
type match struct {
	word  int
	share float64
}

// matches returns the words that begin with a word or, if there are none, those that differ by one or two typos.
func (s *searcher) matches(word string) (found []match) {
	first, _ := slices.BinarySearch(s.words, word)
	for i := first; i < len(s.words) && strings.HasPrefix(s.words[i], word); i++ {
		share := .6
		if rest := s.words[i][len(word):]; rest == "" || rest == "s" { // of one thing or of several
			share = 1
		}
		found = append(found, match{i, share})
	}
	if most := typosOf(word); len(found) == 0 && most > 0 {
		for i, other := range s.words {
			if d := distance(word, other, most); d <= most {
				found = append(found, match{i, .5 / float64(d)})
			}
		}
	}
	return found
}

// typosOf is how many typos a word may have.
func typosOf(word string) int {
	switch n := len(word); {
	case n < 4 || n > 40:
		return 0
	case n < 8:
		return 1
	}
	return 2
}

// distance counts the bytes to insert, delete, replace or swap with their neighbour, to make b of a. Above most it is most + 1.
func distance(a, b string, most int) int {
	if len(a)-len(b) > most || len(b)-len(a) > most {
		return most + 1
	}
	var rows [3][64]int // the row of i, and the two before
	if len(b) >= len(rows[0]) {
		return most + 1
	}
	for j := range len(b) + 1 {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		row, before := &rows[i%3], &rows[(i-1)%3]
		row[0] = i
		least := i
		for j := 1; j <= len(b); j++ {
			d := before[j-1]
			if a[i-1] != b[j-1] {
				d++
			}
			d = min(d, before[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[(i-2)%3][j-2]+1)
			}
			row[j] = d
			least = min(least, d)
		}
		if least > most {
			return most + 1
		}
	}
	return min(rows[len(a)%3][len(b)], most+1)
}

// hit is a section that was found.
type hit struct {
	*section
	words int // of the query that it has
	score float64
}

// find returns the best sections, and the matching words of the documents. Sections with more words of the query come first.
func (s *searcher) find(query string) (hits []hit, meant map[string]bool) {
	meant = map[string]bool{}
	scores := make([]hit, len(s.sections))
	best := make([]float64, len(s.sections)) // for one word
	for _, word := range queryWords(query) {
		clear(best)
		for _, m := range s.matches(word) {
			meant[s.words[m.word]] = true
			list := s.lists[m.word]
			rare := math.Log2(1 + float64(len(s.sections))/float64(len(list)))
			for _, p := range list {
				best[p.section] = max(best[p.section], m.share*rare*p.weight)
			}
		}
		for i, score := range best {
			if score > 0 {
				scores[i].words++
				scores[i].score += score
			}
		}
	}
	for i := range scores {
		if scores[i].words > 0 {
			scores[i].section = &s.sections[i]
			scores[i].score *= s.sections[i].share * (1 + s.sections[i].bonus*titled(s.sections[i].title, meant))
			hits = append(hits, scores[i])
		}
	}
	slices.SortStableFunc(hits, func(a, b hit) int {
		switch {
		case a.words != b.words:
			return b.words - a.words
		case a.score > b.score:
			return -1
		case a.score < b.score:
			return 1
		}
		return 0
	})
	perPage := map[string]int{}
	hits = slices.DeleteFunc(hits, func(h hit) bool {
		perPage[h.page]++
		return perPage[h.page] > maxPerPage
	})
	return hits[:min(len(hits), maxFound)], meant
}

// titled is the share of the words of a title, from 0 to 1, that match. A section whose title has only matching words is probably the
// wanted one.
func titled(title string, meant map[string]bool) float64 {
	all, ours := 0, 0
	eachWord(title, func(word string, _, _ int) {
		if idle[word] {
			return
		}
		all++
		if meant[word] {
			ours++
		}
	})
	if all == 0 {
		return 0
	}
	return float64(ours) / float64(all)
}

// Search makes the page with the results for a query, which may be any text.
func (m *Manual) Search(query string) (Page, error) {
	found, err := m.found()
	if err != nil {
		return Page{}, err
	}
	query = strings.TrimSpace(strings.ToValidUTF8(query[:min(len(query), maxQuery)], ""))
	hits, meant := found.find(query)
	var b strings.Builder
	b.WriteString("<h1>Search the docs</h1>\n")
	switch {
	case query == "":
		b.WriteString("<p>Type what you look for, such as <a href=\"" + SearchPath + "?q=typos\">typos</a> or <a href=\"" + SearchPath + "?q=restore+a+dump\">restore a dump</a>.</p>\n")
	case len(hits) == 0:
		fmt.Fprintf(&b, "<p>Nothing is found for “%s”. Try other words, or pick one of <a href=\"#pages\">all pages</a>.</p>\n", html.EscapeString(query))
	default:
		shown := fmt.Sprintf("%d sections", len(hits))
		if len(hits) == 1 {
			shown = "1 section"
		}
		fmt.Fprintf(&b, "<p class=\"soft\">%s for “%s”</p>\n<ol class=\"found\">\n", shown, html.EscapeString(query))
		for _, h := range hits {
			fmt.Fprintf(&b, "<li><a href=\"%s\">%s</a> <span class=\"soft\">%s</span>\n<p>%s</p></li>\n", html.EscapeString(h.at), html.EscapeString(h.title), html.EscapeString(h.parents), excerpt(h.text, meant))
		}
		b.WriteString("</ol>\n")
	}
	title := "Search the docs · svc"
	if query != "" {
		title = query + " · svc docs"
	}
	return Page{htmlType, m.frame(title, "", query, "", b.String())}, nil
}

// sentences calls f for each sentence of a text, or line of it.
func sentences(text string, f func(sentence string)) {
	from := 0
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			f(text[from:i])
			from = i + 1
		case (c == '.' || c == '?' || c == '!') && i+1 < len(text) && text[i+1] == ' ' && i+2 < len(text) && unicode.IsUpper(rune(text[i+2])):
			f(text[from : i+1])
			from = i + 2
		}
	}
	f(text[from:])
}

// telling is the first of the sentences of a text that have the most of the words that are meant.
func telling(text string, meant map[string]bool) (sentence string) {
	most := -1
	sentences(text, func(s string) {
		words := map[string]bool{}
		eachWord(s, func(word string, _, _ int) {
			if meant[word] {
				words[word] = true
			}
		})
		if s != "" && len(words) > most {
			most, sentence = len(words), s
		}
	})
	return sentence
}

// excerpt returns the sentence of a text with the most matching words, as HTML with marks. It crops a long sentence around the first
// match.
func excerpt(text string, meant map[string]bool) string {
	text = telling(text, meant)
	first := -1
	eachWord(text, func(word string, from, _ int) {
		if first < 0 && meant[word] {
			first = from
		}
	})
	from, to := max(first-aroundWord, 0), len(text)
	if len(text) <= 2*aroundWord {
		from = 0
	}
	if from > 0 {
		from += strings.IndexByte(text[from:first]+" ", ' ') + 1
		from = min(from, first)
	}
	if until := from + 2*aroundWord; until < to {
		if to = strings.LastIndexByte(text[:until], ' '); to <= max(first, from) {
			to = until
		}
	}
	text, rest := text[from:to], to < len(text)
	text = strings.ToValidUTF8(text, "")
	var b strings.Builder
	if from > 0 {
		b.WriteString("… ")
	}
	done := 0
	eachWord(text, func(word string, from, to int) {
		if from >= done && meant[word] {
			b.WriteString(html.EscapeString(text[done:from]) + "<mark>" + html.EscapeString(text[from:to]) + "</mark>")
			done = to
		}
	})
	b.WriteString(html.EscapeString(text[done:]))
	if rest {
		b.WriteString(" …")
	}
	return b.String()
}
