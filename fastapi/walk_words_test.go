package fastapi

import (
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"svc/internal/query"
	"svc/internal/text"
)

// walkNode is a term of a query, or two or three terms joined to one word, with everything that it matches.
type walkNode struct {
	query.Term
	term, len, budget int
	parts             []string
	wide              bool // a short prefix of many words that counts as one word
	spread            bool // stop words are between its words
	levels            [3]map[string]bool
	phrases           [3][][]string
	inside            map[string]bool // words that contain the word, for fields with infix
}

// written returns the exact form of a node.
func (n *walkNode) written() string {
	if n.Stop {
		return text.StopEntry(n.Word)
	}
	return n.Word
}

// Levels of a node: not determined yet, or only the exact word counts.
const (
	walkAnyLevel = -1
	walkWordOnly = -2
)

// walkQuery is a query over the documents of a model.
type walkQuery struct {
	*walkModel
	*query.Terms
	nodes    []*walkNode
	ranks    []int    // order in which terms may be dropped
	on       []string // fields searched; nil: all
	synonyms map[string][][]string
	words    []string        // of all documents, sorted
	tolerant map[string]bool // words in a field that allows typos
}

func (m *walkModel) query(q, strategy string, on []string) *walkQuery {
	w := &walkQuery{walkModel: m, on: on, synonyms: m.set.synonyms()}
	if slices.Contains(on, "*") {
		w.on = nil
	}
	w.Terms = query.Read(m.set.analyzer.Tokens(nil, q, nil, true), q, m.set.PrefixSearch != "disabled")
	w.tolerant = map[string]bool{}
	for _, d := range m.docs {
		for word, spots := range d.words {
			if text.IsStopEntry(word) {
				continue
			}
			somewhere := slices.ContainsFunc(spots, func(s walkSpot) bool { return w.tolerates(s.field) })
			w.tolerant[word] = w.tolerant[word] || somewhere && !w.protected(word)
		}
	}
	w.words = slices.Sorted(maps.Keys(w.tolerant))
	for i, first := range w.Terms.Terms {
		w.add(&walkNode{Term: first, term: i, len: 1, parts: []string{first.Word}})
		if first.IsPhrase() {
			continue
		}
		joined := &walkNode{Term: first, term: i, len: 1, parts: []string{first.Word}}
		for _, next := range w.Terms.Terms[i+1 : min(i+3, len(w.Terms.Terms))] {
			gap := next.Start - joined.End - 1
			if next.IsPhrase() || gap != next.Skipped {
				break
			}
			longer := *joined
			longer.Word += next.Word
			longer.Stop = false
			longer.End, longer.Prefix = next.End, next.Prefix
			longer.len++
			longer.parts = append(slices.Clone(joined.parts), next.Word)
			joined = &longer
			if joined.spread = joined.spread || gap > 0; joined.spread { // stop words are in between, so only synonyms match
				joined.levels, joined.phrases, joined.budget, joined.Prefix = [3]map[string]bool{}, [3][][]string{}, 0, false
				if joined.phrases[0] = w.synonyms[strings.Join(joined.parts, " ")]; len(joined.phrases[0]) > 0 {
					w.nodes = append(w.nodes, joined)
				}
				continue
			}
			w.add(joined)
		}
	}
	w.rank(strategy)
	return w
}

func (w *walkQuery) tolerates(field string) bool { return !w.set.exact(field) }

// protected reports whether a word is a number, for which typos are disabled.
func (w *walkQuery) protected(word string) bool {
	return w.set.TypoTolerance.DisableOnNumbers && strings.IndexFunc(word, func(c rune) bool {
		return !unicode.IsNumber(c) && (c > unicode.MaxASCII || !unicode.IsPunct(c) && !unicode.IsSymbol(c))
	}) < 0
}

func (w *walkQuery) budget(word string) int {
	t := &w.set.TypoTolerance
	n := len([]rune(word))
	named := slices.ContainsFunc(t.DisableOnWords, func(x string) bool { return text.Fold(x) == word })
	switch {
	case !t.Enabled || n < t.MinWordSizeForTypos.OneTypo || named:
		return 0
	case n < t.MinWordSizeForTypos.TwoTypos:
		return 1
	}
	return 2
}

// add computes what a node matches.
func (w *walkQuery) add(n *walkNode) {
	w.nodes = append(w.nodes, n)
	for level := range n.levels { // a joined node has those of the node that it was copied from
		n.levels[level], n.phrases[level] = map[string]bool{}, nil
	}
	if n.IsPhrase() {
		n.phrases[0] = [][]string{n.Phrase}
		return
	}
	n.budget = max(0, w.budget(n.Word)-(n.len-1))
	typed := []rune(n.Word)
	var whole, longer [3][]string // by level: corrections, and words with a misspelt prefix
	prefixed, asTyped := 0, false // asTyped: some word starts with the exact prefix
	n.levels[0][n.Word], n.levels[0][n.written()] = true, true
	if n.Stop && slices.ContainsFunc(w.docs, func(d *walkDoc) bool { return d.words[n.written()] != nil }) {
		asTyped = true
	}
	for _, word := range w.words {
		switch {
		case word == n.Word:
			asTyped = asTyped || n.len == 1 || w.tolerant[word]
		case n.Prefix && strings.HasPrefix(word, n.Word):
			asTyped = asTyped || n.len == 1 || !w.protected(word)
		}
		if n.Prefix && strings.HasPrefix(word, n.Word) {
			n.levels[0][word] = true
			if w.tolerant[word] {
				prefixed++
			}
		}
		if n.budget == 0 || !w.tolerant[word] {
			continue
		}
		letters := []rune(word)
		typos := walkDistance(typed, letters, n.Prefix)
		if letters[0] != typed[0] {
			typos++
			if typos != 2 {
				continue
			}
		}
		switch {
		case typos == 0 || typos > n.budget:
		case walkDistance(typed, letters, false) > walkDistance(typed, letters, n.Prefix):
			longer[typos] = append(longer[typos], word)
		default:
			whole[typos] = append(whole[typos], word)
		}
	}
	for level, most := range map[int]int{1: 150, 2: 50} {
		w.mostFrequent(n, level, whole[level], most)
		more := longer[level]
		if most -= len(n.levels[level]); asTyped {
			more = more[:min(len(more), most)]
		} else {
			most = 1000
		}
		w.mostFrequent(n, level, more, most)
	}
	n.wide = n.Prefix && len(n.Word) <= 4 && prefixed >= 100
	n.inside = map[string]bool{}
	if n.len == 1 && !n.Stop && len(typed) >= 3 {
		for _, word := range w.words {
			if word != n.Word && strings.Contains(word, n.Word) && !(n.Prefix && strings.HasPrefix(word, n.Word)) &&
				slices.ContainsFunc(w.docs, func(d *walkDoc) bool { return slices.ContainsFunc(d.words[word], w.partly) }) {
				n.inside[word], n.budget = true, 2
			}
		}
	}
	total := 0
	for _, value := range w.synonyms[n.Word][:min(50, len(w.synonyms[n.Word]))] {
		if total+len(value) <= 100 {
			total += len(value)
			n.phrases[0] = append(n.phrases[0], value)
		}
	}
	if n.len > 1 {
		n.phrases[0] = append(n.phrases[0], w.synonyms[strings.Join(n.parts, " ")]...)
	}
	var split []string
	most := 0
	for at := range n.Word {
		if at == 0 {
			continue
		}
		halves := []string{n.Word[:at], n.Word[at:]}
		count := 0
		for _, d := range w.docs {
			if w.hasPhrase(d, halves) {
				count++
			}
		}
		if count > most {
			most, split = count, halves
		}
	}
	if split != nil && !slices.Equal(split, n.parts) {
		n.phrases[1] = [][]string{split}
	}
}

// mostFrequent adds the most frequent of some words to a level of a node.
func (w *walkQuery) mostFrequent(n *walkNode, level int, words []string, most int) {
	documents := map[string]int{}
	for _, word := range words {
		for _, d := range w.docs {
			if slices.ContainsFunc(d.words[word], func(s walkSpot) bool { return w.tolerates(s.field) }) {
				documents[word]++
			}
		}
	}
	slices.SortStableFunc(words, func(a, b string) int { return documents[b] - documents[a] })
	for _, word := range words[:min(most, len(words))] {
		n.levels[level][word] = true
	}
}

// walkDistance is the number of letters inserted, deleted, changed or swapped with the next one. For a prefix it is the distance to the
// nearest prefix of b.
func walkDistance(a, b []rune, prefix bool) int {
	t := make([][]int, len(b)+1)
	best := math.MaxInt
	for j := range t {
		t[j] = make([]int, len(a)+1)
		for i := range t[j] {
			if i == 0 || j == 0 {
				t[j][i] = i + j
				continue
			}
			changed := 1
			if a[i-1] == b[j-1] {
				changed = 0
			}
			t[j][i] = min(t[j-1][i]+1, t[j][i-1]+1, t[j-1][i-1]+changed)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				t[j][i] = min(t[j][i], t[j-2][i-2]+1)
			}
		}
		if prefix {
			best = min(best, t[j][len(a)])
		}
	}
	return min(best, t[len(b)][len(a)])
}

// hasPhrase reports whether a searched field has the words consecutively.
func (w *walkQuery) hasPhrase(d *walkDoc, words []string) bool {
	if w.set.ProximityPrecision == "byAttribute" {
		for i, word := range words {
			if !slices.ContainsFunc(d.words[word], w.searched) {
				return false
			}
			for _, other := range words[i+1 : min(i+3, len(words))] {
				if !slices.ContainsFunc(d.words[word], func(a walkSpot) bool {
					return slices.ContainsFunc(d.words[other], func(b walkSpot) bool { return a.field == b.field && w.searched(a) })
				}) {
					return false
				}
			}
		}
		return true
	}
	return slices.ContainsFunc(d.words[words[0]], func(first walkSpot) bool {
		for i, word := range words {
			if !slices.Contains(d.words[word], walkSpot{first.field, first.position + i}) {
				return false
			}
		}
		return w.searched(first)
	})
}

func (w *walkQuery) searched(s walkSpot) bool { return w.on == nil || slices.Contains(w.on, s.field) }

// partly reports whether words at a position match by their parts.
func (w *walkQuery) partly(s walkSpot) bool { return w.set.infix(s.field) }

// counts reports whether a word of a node counts at its position.
func (w *walkQuery) counts(n *walkNode, level int, word string, s walkSpot) bool {
	return level == 0 && n.len == 1 || !w.protected(word) && w.tolerates(s.field)
}

// level is the best level at which a document matches a node, −1 for none.
func (w *walkQuery) level(d *walkDoc, n *walkNode) int {
	for level := range n.levels {
		for word := range d.words {
			if n.levels[level][word] && slices.ContainsFunc(d.words[word], func(s walkSpot) bool {
				return w.searched(s) && w.counts(n, level, word, s)
			}) {
				return level
			}
		}
		if slices.ContainsFunc(n.phrases[level], func(p []string) bool { return w.hasPhrase(d, p) }) {
			return level
		}
	}
	for word := range n.inside {
		if slices.ContainsFunc(d.words[word], func(s walkSpot) bool { return w.searched(s) && w.partly(s) }) {
			return 2
		}
	}
	return -1
}

// isTyped reports whether a document has the exact form of a node.
func (w *walkQuery) isTyped(d *walkDoc, n *walkNode) bool {
	if n.IsPhrase() {
		return w.hasPhrase(d, n.Phrase)
	}
	return slices.ContainsFunc(d.words[n.written()], w.searched)
}

// accents is the sum of −1 for each word typed with accents that the document has so, and 1 for each word typed without accents that has
// some everywhere in it. A prefix without accents counts as a word.
func (w *walkQuery) accents(d *walkDoc) (sum int) {
	for _, t := range w.Terms.Terms {
		forms := t.Phrase
		if !t.IsPhrase() {
			forms = []string{t.Word}
		}
		for i, form := range forms {
			typed := form
			if t.Spellings != nil {
				typed = t.Spellings[i]
			}
			sum += w.accentsOf(d, form, typed, t.Prefix && typed != form)
		}
	}
	return sum
}

func (w *walkQuery) accentsOf(d *walkDoc, form, typed string, prefix bool) int {
	means := func(written, asked string) bool {
		return written == asked || prefix && strings.HasPrefix(written, asked)
	}
	spelt := map[walkSpot]string{} // where the word has another spelling
	for word, spots := range d.words {
		if rest, ok := strings.CutPrefix(word, string(text.AppendSpellingRange(nil, "", true))); ok {
			of, spelling, _ := strings.Cut(rest, "\x00")
			for _, s := range spots {
				if means(of, form) {
					spelt[s] = spelling
				}
			}
		}
	}
	plain, others := false, false
	for word, spots := range d.words {
		if text.IsStopEntry(word) || !means(word, form) {
			continue
		}
		for _, s := range spots {
			spelling, ok := spelt[s]
			switch {
			case !w.searched(s):
			case typed != form && ok && means(spelling, typed):
				return -1
			case ok && !means(spelling, typed):
				others = true
			default:
				plain = true
			}
		}
	}
	if typed == form && others && !plain {
		return 1
	}
	return 0
}

// excluded reports whether a negative term excludes a document.
func (w *walkQuery) excluded(d *walkDoc) bool {
	return slices.ContainsFunc(w.NegativeWords, func(word string) bool { return slices.ContainsFunc(d.words[word], w.searched) }) ||
		slices.ContainsFunc(w.NegativePhrases, func(p []string) bool { return w.hasPhrase(d, p) })
}

// rank determines the order in which terms may be dropped.
func (w *walkQuery) rank(strategy string) {
	terms := w.Terms.Terms
	w.ranks = make([]int, len(terms))
	phrase := slices.ContainsFunc(terms, func(t query.Term) bool { return t.IsPhrase() })
	frequencies := make([]int, len(terms))
	for i := range terms {
		for _, d := range w.docs {
			if strategy == "frequency" && slices.ContainsFunc(w.nodes, func(n *walkNode) bool {
				return n.term <= i && i < n.term+n.len && w.level(d, n) >= 0
			}) {
				frequencies[i]++
			}
		}
		if frequencies[i] == 0 {
			frequencies[i] = math.MaxInt
		}
	}
	distinct := slices.Clone(frequencies)
	slices.Sort(distinct)
	distinct = slices.Compact(distinct)
	slices.Reverse(distinct)
	for i := range terms {
		switch strategy {
		case "all":
			w.ranks[i] = query.Mandatory
		case "frequency":
			w.ranks[i] = 1 + slices.Index(distinct, frequencies[i])
		default:
			w.ranks[i] = len(terms) - i
		}
	}
	last := 0
	for _, r := range w.ranks {
		last = max(last, r)
	}
	for i := range terms {
		if terms[i].IsPhrase() || !phrase && w.ranks[i] == last {
			w.ranks[i] = query.Mandatory
		}
	}
}
