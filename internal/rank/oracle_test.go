package rank

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"

	"svc/internal/numeric"
	"svc/internal/query"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// oracle ranks documents directly by the definitions, without postings, bitmaps or laziness. It shares with the engine the parsing of
// queries, the arithmetic of scores and the printing of details, which have their own tests.
type oracle struct {
	ix *Index
	// ranking has the searchable attributes of the settings, grouped by rank; nil means all.
	ranking [][]string
	docs    []*stored
	words   []string // of the dictionary, sorted
	nodes   []*onode
	terms   []query.Term
	ranks   []int
	r       *Request
	on      map[string]bool // searched fields
	s       search          // rules and collector state only
	inside  int             // matches of documents by a part of a word
}

type stored struct {
	*document
	at    map[string][]spot
	count map[string]int
}

type spot struct {
	field    string
	position int
}

type onode struct {
	query.Term
	term, len, budget int
	words             []string // of an n-gram
	exists, wide      bool
	spread            bool
	levels            [3]map[string]bool
	phrases           [3][][]string
	inside            map[string]bool // words that contain the word, for fields with infix
}

// written returns the exact form of a node.
func (n *onode) written() string {
	if n.Stop {
		return text.StopEntry(n.Word)
	}
	return n.Word
}

func newOracle(ix *Index, docs []*document) *oracle {
	o := &oracle{ix: ix, ranking: rankingOf(ix.Settings)}
	dictionary := map[string]bool{}
	for _, d := range docs {
		x := &stored{document: d, at: map[string][]spot{}, count: map[string]int{}}
		for _, f := range d.fields() {
			if !ix.Fields.InfoOf(f).Searchable {
				continue
			}
			var p text.Positions
			for _, v := range d.values[f] {
				p.Visit()
				s, ok := v.(string)
				if !ok {
					s = formatNumber(v.(float64))
				}
				ix.Analyzer.Index(&p, []byte(s), nil, func(w []byte, at uint16) {
					x.at[string(w)] = append(x.at[string(w)], spot{f, int(at)})
					if !text.IsStopEntry(w) {
						dictionary[string(w)] = true
					}
				})
			}
			x.count[f] = p.Words()
		}
		o.docs = append(o.docs, x)
	}
	slices.SortFunc(o.docs, func(a, b *stored) int { return cmp.Compare(a.id, b.id) })
	for w := range dictionary {
		o.words = append(o.words, w)
	}
	slices.Sort(o.words)
	return o
}

func rankingOf(s *settings.Settings) (ranking [][]string) {
	raw, err := s.One("searchable-attributes")
	var entries []any
	if err != nil || json.Unmarshal(raw, &entries) != nil {
		panic(fmt.Sprint("no searchable attributes: ", string(raw), err))
	}
	for _, entry := range entries {
		switch entry := entry.(type) {
		case string:
			if entry == "*" {
				return nil
			}
			ranking = append(ranking, []string{entry})
		case []any:
			var names []string
			for _, name := range entry {
				names = append(names, name.(string))
			}
			ranking = append(ranking, names)
		}
	}
	return ranking
}

// weight is the position of the first group of attributes that includes the field, or a larger value.
func (o *oracle) weight(field string) int {
	return max(0, slices.IndexFunc(o.ranking, func(names []string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return field == name || strings.HasPrefix(field, name+".") })
	}))
}

func (o *oracle) tolerant(f string) bool { return !o.ix.Fields.InfoOf(f).Exact }

func (o *oracle) protected(w string) bool {
	if !o.ix.Settings.TypoTolerance.DisableOnNumbers {
		return false
	}
	return strings.IndexFunc(w, func(c rune) bool {
		return !unicode.IsNumber(c) && (c > 127 || !unicode.IsPunct(c) && !unicode.IsSymbol(c))
	}) < 0
}

// candidate reports whether a word is a possible correction.
func (o *oracle) candidate(w string) bool {
	return !o.protected(w) && slices.ContainsFunc(o.docs, func(d *stored) bool {
		return slices.ContainsFunc(d.at[w], func(s spot) bool { return o.tolerant(s.field) })
	})
}

func (o *oracle) budget(w string) int {
	t := o.ix.Settings.TypoTolerance
	n := len([]rune(w))
	if !t.Enabled || n < int(t.OneTypo) || slices.ContainsFunc(t.DisableOnWords, func(x string) bool { return text.Fold(x) == w }) {
		return 0
	}
	if n < int(t.TwoTypos) {
		return 1
	}
	return 2
}

func editDistance(a, b []rune, prefix bool) int {
	t := make([][]int, len(b)+1)
	best := math.MaxInt
	for j := range t {
		t[j] = make([]int, len(a)+1)
		for i := range t[j] {
			if i == 0 || j == 0 {
				t[j][i] = i + j
				continue
			}
			t[j][i] = min(t[j-1][i], t[j][i-1], t[j-1][i-1]) + 1
			if a[i-1] == b[j-1] {
				t[j][i] = min(t[j][i], t[j-1][i-1])
			}
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

func (o *oracle) derive(n *onode) {
	for l := range n.levels {
		n.levels[l] = map[string]bool{}
	}
	if n.IsPhrase() {
		n.phrases[0] = [][]string{n.Phrase}
		return
	}
	w := n.Word
	gram := n.len > 1
	for _, d := range o.docs {
		for _, s := range d.at[n.written()] {
			n.exists = n.exists || !gram || o.tolerant(s.field) && !o.protected(w)
		}
	}
	n.levels[0][w], n.levels[0][n.written()] = true, true
	n.budget = o.budget(w)
	if gram {
		n.budget = max(0, n.budget-n.len+1)
	}
	all, k := 0, 0
	if n.Prefix {
		for _, x := range o.words {
			if strings.HasPrefix(x, w) && o.candidate(x) {
				all++
			}
			if x != w && strings.HasPrefix(x, w) && (!gram || !o.protected(x)) {
				if k++; len(w) <= 4 || k <= 1000 {
					n.levels[0][x] = true
				}
			}
		}
	}
	q := []rune(w)
	n.wide = n.Prefix && len(w) <= 4 && all >= 100
	var whole, longer [3][]string // by level: corrections, and words with a misspelt prefix
	for _, x := range o.words {
		if n.budget == 0 || !o.candidate(x) {
			continue
		}
		r := []rune(x)
		d := editDistance(q, r, n.Prefix)
		same := r[0] == q[0]
		level := 0
		switch {
		case d == 1 && same:
			level = 1
		case n.budget == 2 && (d == 1 && !same || d == 2 && same):
			level = 2
		default:
			continue
		}
		if editDistance(q, r, false) > d {
			longer[level] = append(longer[level], x)
		} else {
			whole[level] = append(whole[level], x)
		}
	}
	for level, most := range map[int]int{1: 150, 2: 50} {
		o.mostFrequent(n, level, whole[level], most)
		more := longer[level]
		if most -= len(n.levels[level]); n.exists || k > 0 {
			more = more[:min(len(more), most)]
		} else { // no word starts with the typed prefix
			most = 1000
		}
		o.mostFrequent(n, level, more, most)
	}
	syn := o.synonyms()
	total := 0
	for i, s := range syn[w] {
		if i < 50 && total+len(s) <= 100 {
			total += len(s)
			n.phrases[0] = append(n.phrases[0], s)
		}
	}
	if gram {
		n.phrases[0] = append(n.phrases[0], syn[strings.Join(n.words, " ")]...)
	}
	if !gram && !n.Stop && len(q) >= 3 {
		n.inside = map[string]bool{}
		for _, x := range o.words {
			if at := strings.Index(x, w); x != w && (at > 0 || at == 0 && !n.Prefix) && slices.ContainsFunc(o.docs, func(d *stored) bool { return o.isInside(d, x) }) {
				n.inside[x], n.budget = true, 2
			}
		}
	}
	best := 0
	var split []string
	for at := range w {
		if at == 0 {
			continue
		}
		c := 0
		for _, d := range o.docs {
			if o.phraseMatches(d, []string{w[:at], w[at:]}) {
				c++
			}
		}
		if c > best {
			best, split = c, []string{w[:at], w[at:]}
		}
	}
	if split != nil && !slices.Equal(split, n.words) {
		n.phrases[1] = [][]string{split}
	}
	letters := strings.Split(w, "")
	apart := !gram && len(letters) >= 3 && len(letters) <= 6 && !o.byAttribute() && !strings.ContainsFunc(w, func(r rune) bool { return !unicode.IsLower(r) })
	if apart && slices.ContainsFunc(o.docs, func(d *stored) bool { return o.phraseMatches(d, letters) }) {
		n.phrases[1] = append(n.phrases[1], letters)
	}
}

func (o *oracle) infix(field string) bool {
	f := o.ix.Fields.InfoOf(field)
	return f.Searchable && f.Infix
}

// isInside reports whether a document has a word in a field with infix.
func (o *oracle) isInside(d *stored, word string) bool {
	return slices.ContainsFunc(d.at[word], func(s spot) bool { return o.infix(s.field) })
}

// mostFrequent adds the most frequent of some words to a level of a node.
func (o *oracle) mostFrequent(n *onode, level int, words []string, most int) {
	documents := func(w string) (count int) {
		for _, d := range o.docs {
			if slices.ContainsFunc(d.at[w], func(s spot) bool { return o.tolerant(s.field) }) {
				count++
			}
		}
		return count
	}
	slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(documents(b), documents(a)) })
	for _, w := range words[:min(most, len(words))] {
		n.levels[level][w] = true
	}
}

func (o *oracle) synonyms() map[string][][]string {
	m := map[string][][]string{}
	read := func(s string, stops bool) []string {
		var w []string
		for _, t := range o.ix.Analyzer.Tokens(nil, s, nil, true) {
			switch {
			case t.Kind == text.Word:
				w = append(w, t.Form)
			case t.Kind == text.StopWord && stops:
				w = append(w, text.StopEntry(t.Form))
			}
		}
		return w
	}
	for k, values := range o.ix.Settings.Synonyms.Map() {
		key := strings.Join(read(k, false), " ")
		if key == "" { // only stop words
			var plain []string
			for _, w := range read(k, true) {
				plain = append(plain, text.FormOf(w))
			}
			key = strings.Join(plain, " ")
		}
		for _, v := range values {
			if w := read(v, true); len(w) > 0 && key != "" {
				m[key] = append(m[key], w)
			}
		}
	}
	for k := range m {
		slices.SortFunc(m[k], slices.Compare[[]string])
		m[k] = slices.CompactFunc(m[k], slices.Equal[[]string])
	}
	return m
}

func (o *oracle) byAttribute() bool {
	return o.ix.Settings.ProximityPrecision == settings.ByAttribute
}

// phraseMatches reports whether a searched field has the words consecutively.
func (o *oracle) phraseMatches(d *stored, words []string) bool {
	if o.byAttribute() {
		for i, w := range words {
			if !o.isSearched(d.at[w]) {
				return false
			}
			for j := i + 1; j < len(words) && j <= i+2; j++ {
				if !o.together(d.at[w], d.at[words[j]]) {
					return false
				}
			}
		}
		return true
	}
	return slices.ContainsFunc(d.at[words[0]], func(first spot) bool {
		if !o.searched(first.field) {
			return false
		}
		for i, w := range words {
			if !slices.Contains(d.at[w], spot{first.field, first.position + i}) {
				return false
			}
		}
		return true
	})
}

// together reports whether two words are in one searched field.
func (o *oracle) together(a, b []spot) bool {
	for _, x := range a {
		for _, y := range b {
			if x.field == y.field && o.searched(x.field) {
				return true
			}
		}
	}
	return false
}

func anyField(string) bool { return true }

func (o *oracle) searched(f string) bool { return o.on == nil || o.on[f] }

// isSearched reports whether a word occurs in a searched field.
func (o *oracle) isSearched(at []spot) bool {
	return slices.ContainsFunc(at, func(s spot) bool { return o.searched(s.field) })
}

// level returns the best level at which a document matches a node, or −1.
func (o *oracle) level(d *stored, n *onode) int {
	for l := range n.levels {
		for w := range n.levels[l] {
			exactToo := l == 0 && n.len == 1
			if !exactToo && o.protected(w) {
				continue
			}
			for _, s := range d.at[w] {
				if o.searched(s.field) && (exactToo || o.tolerant(s.field)) {
					return l
				}
			}
		}
		for _, p := range n.phrases[l] {
			if o.phraseMatches(d, p) {
				return l
			}
		}
	}
	for w := range n.inside {
		if slices.ContainsFunc(d.at[w], func(s spot) bool { return o.searched(s.field) && o.infix(s.field) }) {
			o.inside++
			return 2
		}
	}
	return -1
}

// hasWord reports whether the document has the exact form of the node.
func (o *oracle) hasWord(d *stored, n *onode) bool {
	if n.IsPhrase() {
		return o.phraseMatches(d, n.Phrase)
	}
	return o.isSearched(d.at[n.written()])
}

// reading is an interpretation of the query for one document.
type reading struct {
	nodes []*onode
	level []int // −1: any; wordOnly
	drops int
	order int
}

type candidate struct {
	d        *stored
	readings []reading
}

func (o *oracle) rankOf(n *onode) int {
	r := 0
	for _, x := range o.ranks[n.term : n.term+n.len] {
		r = max(r, x)
	}
	return r
}

func (o *oracle) readings(d *stored) []reading {
	var out []reading
	order := 0
	var walk func(term, dropped, drops int, nodes []*onode)
	walk = func(term, dropped, drops int, nodes []*onode) {
		order++
		if term == len(o.terms) {
			r := reading{nodes: slices.Clone(nodes), drops: drops, order: order}
			for range nodes {
				r.level = append(r.level, -1)
			}
			out = append(out, r)
			return
		}
		for _, n := range o.nodes {
			if n.term == term && o.rankOf(n) >= dropped && o.level(d, n) >= 0 {
				walk(term+n.len, dropped, drops, append(nodes, n))
			}
		}
		if o.ranks[term] != query.Mandatory {
			walk(term+1, max(dropped, o.ranks[term]), drops+1, nodes)
		}
	}
	walk(0, 0, 0, nil)
	return out
}

// rank answers a request over the live documents.
func (o *oracle) rank(r *Request) (hits []Hit, candidates []segment.DocID) {
	o.r = r
	o.s = search{job: job{request: request{r: r, scored: r.Scores || r.Details || r.Threshold != nil}, findings: findings{ix: o.ix}}}
	prefix := o.ix.Settings.PrefixSearch != settings.PrefixDisabled
	terms := query.Read(o.ix.Analyzer.Tokens(nil, r.Query, nil, true), r.Query, prefix)
	o.terms = terms.Terms
	o.nodes, o.on = nil, nil
	if r.SearchOn != nil && !slices.Contains(r.SearchOn, "*") && r.Query != "" {
		o.on = map[string]bool{}
		for _, f := range r.SearchOn {
			o.on[f] = true
		}
	}
	for i := range o.terms {
		for n := 1; n <= 3 && i+n <= len(o.terms); n++ {
			x := &onode{Term: o.terms[i], term: i, len: n, words: []string{o.terms[i].Word}}
			ok := true
			for k := i + 1; k < i+n; k++ {
				t := o.terms[k]
				gap := t.Start - o.terms[k-1].End - 1
				ok = ok && !t.IsPhrase() && !o.terms[i].IsPhrase() && gap == t.Skipped
				x.spread = x.spread || gap > 0
				x.Word += t.Word
				x.words = append(x.words, t.Word)
				x.End, x.Prefix = t.End, t.Prefix
			}
			if x.spread { // stop words are in between, so only synonyms match
				if x.phrases[0] = o.synonyms()[strings.Join(x.words, " ")]; ok && len(x.phrases[0]) > 0 {
					x.Stop, x.Prefix = false, false
					o.nodes = append(o.nodes, x)
				}
				continue
			}
			if ok && len(x.Word) <= 250 {
				x.Stop = x.Stop && n == 1
				o.derive(x)
				o.nodes = append(o.nodes, x)
			}
		}
	}
	o.ranks = o.removal()
	if err := makeRules(&o.s, len(o.terms) == 0); err != nil {
		panic(err)
	}

	if len(o.terms) > 0 {
		o.s.rules = append(o.s.rules, &spelling{}) // breaks ties
	}

	var all []*candidate
	for _, d := range o.docs {
		if o.negative(d, terms) {
			continue
		}
		c := &candidate{d: d}
		if len(o.terms) > 0 {
			if c.readings = o.readings(d); len(c.readings) == 0 {
				continue
			}
		}
		all = append(all, c)
	}
	x := &collecting{o: o, gone: map[segment.DocID]bool{}, limit: r.Limit, skip: r.Offset}
	if r.Exhaustive && r.Threshold != nil {
		x.skip, x.limit = 0, r.MaxTotal
	}
	if x.limit > 0 {
		x.bucket(all, 0, false, false, nil)
	}
	for _, c := range all {
		if !x.gone[c.d.id] {
			candidates = append(candidates, c.d.id)
		}
	}
	if r.Distinct != "" && r.Exhaustive {
		seen := map[any]bool{}
		candidates = slices.DeleteFunc(candidates, func(id segment.DocID) bool { return !o.first(o.byID(id), seen) })
	}
	hits = x.hits
	if r.Exhaustive && r.Threshold != nil {
		hits = hits[min(r.Offset, len(hits)):]
		hits = hits[:min(r.Limit, len(hits))]
	}
	return hits, candidates
}

func (o *oracle) byID(id segment.DocID) *stored {
	i := slices.IndexFunc(o.docs, func(d *stored) bool { return d.id == id })
	return o.docs[i]
}

// first reports whether no value of the distinct field was seen, and then records them.
func (o *oracle) first(d *stored, seen map[any]bool) bool {
	var keys []any
	for _, v := range d.values[o.r.Distinct] {
		switch v := v.(type) {
		case string:
			if k := string(text.FacetKey(nil, []byte(v))); k != "" {
				keys = append(keys, k)
			}
		default:
			keys = append(keys, v)
		}
	}
	for _, k := range keys {
		if seen[k] {
			return false
		}
	}
	for _, k := range keys {
		seen[k] = true
	}
	return true
}

func (o *oracle) negative(d *stored, t *query.Terms) bool {
	for _, w := range t.NegativeWords {
		if o.isSearched(d.at[w]) {
			return true
		}
	}
	return slices.ContainsFunc(t.NegativePhrases, func(p []string) bool { return o.phraseMatches(d, p) })
}

func (o *oracle) removal() []int {
	ranks := make([]int, len(o.terms))
	phrase := false
	for i, t := range o.terms {
		phrase = phrase || t.IsPhrase()
		switch o.r.Strategy {
		case query.All:
			ranks[i] = query.Mandatory
		case query.Last:
			ranks[i] = len(o.terms) - i
		}
	}
	if o.r.Strategy == query.All {
		return ranks
	}
	if o.r.Strategy == query.Frequency {
		counts := make([]int, len(o.terms))
		for i := range counts {
			for _, d := range o.docs {
				if slices.ContainsFunc(o.nodes, func(n *onode) bool {
					return n.term <= i && i < n.term+n.len && o.level(d, n) >= 0
				}) {
					counts[i]++
				}
			}
			if counts[i] == 0 {
				counts[i] = math.MaxInt
			}
		}
		for i := range counts {
			higher := map[int]bool{}
			for _, c := range counts {
				if c > counts[i] {
					higher[c] = true
				}
			}
			ranks[i] = 1 + len(higher)
		}
	}
	most := 0
	for _, r := range ranks {
		most = max(most, r)
	}
	for i, t := range o.terms {
		if phrase && t.IsPhrase() || !phrase && ranks[i] == most {
			ranks[i] = query.Mandatory
		}
	}
	return ranks
}

// collecting is the bucket sort of the oracle.
type collecting struct {
	o           *oracle
	skip, limit int
	hits        []Hit
	gone        map[segment.DocID]bool
	seen        map[any]bool
}

func (x *collecting) full() bool { return len(x.hits) == x.limit }

func (x *collecting) add(cs []*candidate, verdicts []verdict) {
	r := x.o.r
	for _, c := range cs {
		if r.Distinct != "" {
			if x.seen == nil {
				x.seen = map[any]bool{}
			}
			if !x.o.first(c.d, x.seen) {
				continue
			}
			// Other documents with one of its values are dropped.
			for _, d := range x.o.docs {
				if d != c.d && x.shares(c.d, d) {
					x.gone[d.id] = true
				}
			}
		}
		if x.skip > 0 {
			x.skip--
			continue
		}
		if x.full() {
			continue
		}
		h := Hit{ID: c.d.id}
		if r.Scores {
			h.Score = score(verdicts)
		}
		if r.Details {
			h.Details = appendDetails(nil, verdicts, func() []float64 { return x.o.scoreShares(c.d) })
		}
		x.hits = append(x.hits, h)
	}
}

func (x *collecting) shares(a, b *stored) bool {
	seen := map[any]bool{}
	x.o.first(a, seen)
	return !x.o.first(b, seen)
}

func (x *collecting) bucket(cs []*candidate, rule int, narrowed, entered bool, verdicts []verdict) {
	o := x.o
	if len(cs) == 0 || x.full() {
		return
	}
	if len(cs) <= x.skip && o.r.Threshold == nil && o.r.Distinct == "" || rule == len(o.s.rules) || len(cs) == 1 && !o.s.scored {
		x.add(cs, verdicts)
		return
	}
	r := o.s.rules[rule]
	_, isWords := r.(words)
	graph := r.traits().says == ByRelevance
	if graph && !isWords && !entered {
		for _, c := range cs { // only readings that miss the fewest words count
			fewest := slices.MinFunc(c.readings, func(a, b reading) int { return cmp.Compare(a.drops, b.drops) }).drops
			c.readings = slices.DeleteFunc(c.readings, func(r reading) bool { return r.drops > fewest })
		}
		x.bucket(cs, rule, narrowed, true, verdicts)
		return
	}
	worded := slices.ContainsFunc(verdicts, func(p verdict) bool { _, ok := p.by.(words); return ok })
	costs, m, values := o.judge(cs, r, narrowed, worded)
	order := make([]int, len(cs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(costs[i], costs[j]) })
	if graph {
		entered = true
		_, isExact := r.(exactAttribute)
		narrowed = narrowed || !isExact
	}
	for i := 0; i < len(order); {
		var sub []*candidate
		cost := costs[order[i]]
		j := i
		for ; j < len(order) && costs[order[j]] == cost; j++ {
			sub = append(sub, cs[order[j]])
		}
		p := verdict{by: r, rank: uint64(m - cost), ranks: uint64(m)}
		if values != nil {
			p.value = values[order[i]]
		}
		next := append(slices.Clone(verdicts), p)
		if o.r.Threshold != nil && graph && score(next) < *o.r.Threshold {
			for _, k := range order[i:] {
				x.gone[cs[k].d.id] = true
			}
			return
		}
		x.bucket(sub, rule+1, narrowed, entered, next)
		if x.full() {
			return
		}
		i = j
	}
}

// judge computes the costs of documents under a rule, and narrows their readings.
func (o *oracle) judge(cs []*candidate, r rule, narrowed, worded bool) (costs []int, m int, values []SortValue) {
	costs = make([]int, len(cs))
	covered := func(c *candidate) int {
		if !worded { // documents with different numbers of words are still together
			return len(o.terms)
		}
		return len(o.terms) - c.readings[0].drops
	}
	best := func(cost func(d *stored, rd *reading) int) {
		for i, c := range cs {
			costs[i] = math.MaxInt
			var kept []reading
			for k := range c.readings {
				n := cost(c.d, &c.readings[k])
				if n < costs[i] {
					costs[i], kept = n, nil
				}
				if n == costs[i] {
					kept = append(kept, c.readings[k])
				}
			}
			c.readings = kept
		}
	}
	switch r := r.(type) {
	case words:
		removable, phraseWords := 0, 0
		for i, t := range o.terms {
			if o.ranks[i] != query.Mandatory {
				removable++
			}
			if t.IsPhrase() {
				phraseWords += t.Words()
			}
		}
		m = 1 + max(0, phraseWords-1) + removable
		best(func(_ *stored, rd *reading) int { return rd.drops })
	case typo:
		m = 1 + o.most(cs, narrowed, func(n *onode, level int) int {
			if n.IsPhrase() || level == wordOnly && n.budget > 0 {
				return 0
			}
			return max(n.budget, 1) + gramBase(n)
		}, 0)
		best(func(d *stored, rd *reading) int {
			sum := 0
			level := make([]int, len(rd.nodes))
			for i, n := range rd.nodes {
				level[i] = o.level(d, n)
				if rd.level[i] == wordOnly {
					level[i] = 0
				}
				sum += level[i] + gramBase(n)
				if rd.level[i] == wordOnly {
					level[i] = wordOnly
				}
			}
			rd.level = level
			return sum
		})
	case proximity:
		m = 1 + o.most(cs, narrowed, func(n *onode, _ int) int { return n.len - 1 }, 3)
		best(func(d *stored, rd *reading) int {
			sum := 0
			for i, n := range rd.nodes {
				sum += n.len - 1
				if i > 0 && rd.nodes[i-1].End+1 == n.Start {
					sum += o.pair(d, rd, i-1, i)
				}
			}
			return sum
		})
	case attributeRank:
		w := max(len(o.ranking), 1) - 1
		m = 1 + covered(cs[0])*w
		best(func(d *stored, rd *reading) int {
			sum := 0
			for i, n := range rd.nodes {
				least := w
				words, phrases := o.allowed(d, rd, i)
				for _, p := range phrases {
					words = append(words, p[0])
				}
				for _, x := range words {
					for _, s := range d.at[x] {
						if o.searched(s.field) {
							least = min(least, o.weight(s.field))
						}
					}
				}
				sum += n.len * least
			}
			return sum
		})
	case wordPosition:
		m = 1 + 10*covered(cs[0])
		best(func(d *stored, rd *reading) int {
			sum := 0
			for i, n := range rd.nodes {
				least := 10 * n.len
				words, phrases := o.allowed(d, rd, i)
				try := func(x string, counts func(field string) bool) {
					for _, s := range d.at[x] {
						if !counts(s.field) {
							continue
						}
						c := 0
						for k := range n.len {
							c += slowPositionCost(slowBucket(s.position), int(n.Start), k)
						}
						least = min(least, c)
					}
				}
				for _, x := range words {
					try(x, anyField)
				}
				for _, p := range phrases {
					try(p[0], o.searched)
				}
				sum += least
			}
			return sum
		})
	case exactAttribute:
		m = 3
		for i, c := range cs {
			costs[i] = o.exactAttribute(c)
		}
	case exactWords:
		m = 1 + covered(cs[0])
		exact := func(d *stored, rd *reading, i int) bool {
			n := rd.nodes[i]
			return n.len == 1 && (n.IsPhrase() || rd.level[i] <= 0 || rd.level[i] == wordOnly) && o.hasWord(d, n)
		}
		best(func(d *stored, rd *reading) int {
			sum := 0
			for i, n := range rd.nodes {
				if !exact(d, rd, i) {
					sum += n.len
				}
			}
			return sum
		})
		for _, c := range cs {
			for k := range c.readings {
				rd := &c.readings[k]
				rd.level = slices.Clone(rd.level)
				for i, n := range rd.nodes {
					if !n.IsPhrase() && exact(c.d, rd, i) {
						rd.level[i] = wordOnly
					}
				}
			}
		}
	case *fieldSort:
		values = make([]SortValue, len(cs))
		for i, c := range cs {
			values[i] = o.value(c.d, r)
		}
		for i := range cs {
			below := 0
			for j := range cs {
				if values[j].Compare(&values[i], r.desc) < 0 {
					below++
				}
			}
			costs[i] = below
		}
	case random:
		values = make([]SortValue, len(cs))
		for i, c := range cs {
			values[i] = placeValue(shuffle(r.seed, c.d.id))
			for _, other := range cs {
				if shuffle(r.seed, other.d.id) < shuffle(r.seed, c.d.id) {
					costs[i]++
				}
			}
		}
	case *functionScore:
		levels := o.r.Scoring.Functions.Levels
		values = make([]SortValue, len(cs))
		for i, c := range cs {
			level := o.scoreLevel(c.d)
			costs[i] = levels - 1 - level
			values[i] = NumberValue(numeric.Value{Float: float64(level) / float64(levels-1)})
		}
	case *spelling:
		values = make([]SortValue, len(cs))
		for i, c := range cs {
			costs[i] = 1000 + o.spelling(c.d) // more than the number of words
			values[i] = NumberValue(numeric.Value{Float: float64(o.spelling(c.d))})
		}
	default:
		panic(fmt.Sprintf("the oracle does not know %T, a rule that rank has", r))
	}
	return costs, m, values
}

func gramBase(n *onode) int {
	if n.len == 1 {
		return 0
	}
	return n.len
}

// most is the largest sum over readings: those required by the documents, or all readings of the query.
func (o *oracle) most(cs []*candidate, narrowed bool, of func(n *onode, level int) int, extra int) int {
	sum := func(nodes []*onode, level []int) int {
		n := 0
		for i, v := range nodes {
			l := -1
			if level != nil {
				l = level[i]
			}
			n += of(v, l)
			if i > 0 && nodes[i-1].End+1 == v.Start {
				n += extra
			}
		}
		return n
	}
	best := 0
	if narrowed {
		for _, c := range cs {
			first := slices.MinFunc(c.readings, func(a, b reading) int { return o.before(a.nodes, b.nodes) })
			best = max(best, sum(first.nodes, first.level))
		}
		return best
	}
	var walk func(term int, nodes []*onode)
	walk = func(term int, nodes []*onode) {
		if term == len(o.terms) {
			best = max(best, sum(nodes, nil))
		}
		for _, n := range o.nodes {
			if n.term == term {
				walk(term+n.len, append(nodes, n))
			}
		}
	}
	walk(0, nil)
	return best
}

// before orders readings by their first difference: the earlier term, then the shorter node.
func (o *oracle) before(a, b []*onode) int {
	for i := range min(len(a), len(b)) {
		if c := cmp.Or(cmp.Compare(a[i].term, b[i].term), cmp.Compare(a[i].len, b[i].len)); c != 0 {
			return c
		}
	}
	return cmp.Compare(len(b), len(a))
}

// allowed returns the words and phrases of a node that count for a document.
func (o *oracle) allowed(d *stored, rd *reading, i int) (words []string, phrases [][]string) {
	n := rd.nodes[i]
	if rd.level[i] == wordOnly && !n.wide {
		return []string{n.written()}, nil
	}
	for l := range n.levels {
		if rd.level[i] == wordOnly {
			if l == 0 {
				words = slices.Collect(maps.Keys(n.levels[0]))
			}
			continue
		}
		if rd.level[i] >= 0 && rd.level[i] != l {
			continue
		}
		for w := range n.levels[l] {
			if !(n.len > 1 && o.protected(w)) {
				words = append(words, w)
			}
		}
		for _, p := range n.phrases[l] {
			if o.phraseMatches(d, p) {
				phrases = append(phrases, p)
			}
		}
		if l == 2 {
			words = slices.AppendSeq(words, maps.Keys(n.inside))
		}
	}
	return words, phrases
}

func (o *oracle) pair(d *stored, rd *reading, i, j int) int {
	left, leftPhrases := o.allowed(d, rd, i)
	right, rightPhrases := o.allowed(d, rd, j)
	cost := 3
	try := func(x, y string, both bool) {
		for _, a := range d.at[x] {
			for _, b := range d.at[y] {
				if a.field != b.field || !both && !o.searched(a.field) { // phrases count only in searched fields
					continue
				}
				switch gap := b.position - a.position; {
				case o.byAttribute():
					cost = 0
				case gap == 0:
				case gap > 0:
					cost = min(cost, gap-1)
				case both:
					cost = min(cost, -gap)
				}
			}
		}
	}
	for _, x := range left {
		for _, y := range right {
			try(x, y, true)
		}
		for _, p := range rightPhrases {
			try(x, p[0], false)
		}
	}
	for _, p := range leftPhrases {
		x := p[len(p)-1]
		for _, y := range right {
			try(x, y, false)
		}
		for _, q := range rightPhrases {
			try(x, q[0], false)
		}
	}
	return cost
}

func slowBucket(p int) int {
	switch {
	case p < 16:
		return p
	case p < 24:
		return 24
	case p <= 32:
		return 32
	}
	b := 64
	for b < p {
		b *= 2
	}
	return min(b, 65535)
}

func slowPositionCost(b, q, more int) int {
	d := b - q
	if d < 0 {
		d = -d
	}
	for cost, last := range []int{0, 1, 4, 7, 11, 16, 24, 64, 256, 1024} {
		if d+more <= last {
			return cost
		}
	}
	return 10
}

func (o *oracle) exactAttribute(c *candidate) int {
	byTerm := map[int]*onode{}
	for k := range c.readings {
		for i, n := range c.readings[k].nodes {
			l := c.readings[k].level[i]
			if n.len == 1 && byTerm[n.term] == nil && (n.IsPhrase() || n.exists && (l <= 0 || l == wordOnly)) {
				byTerm[n.term] = n
			}
		}
	}
	type want struct {
		word   string
		at     int
		counts func(field string) bool
	}
	var wants []want
	slots := 0
	for t := 0; byTerm[t] != nil; t++ {
		n := byTerm[t]
		delete(byTerm, t)
		slots += n.Words()
		if !n.IsPhrase() {
			wants = append(wants, want{n.written(), int(n.Start), anyField})
		}
		for k, w := range n.Phrase {
			wants = append(wants, want{w, int(n.Start) + k, o.searched})
		}
	}
	if len(byTerm) > 0 || len(wants) == 0 {
		return 2
	}
	cost := 2
	for f, count := range c.d.count {
		if !o.searched(f) {
			continue
		}
		ok := true
		for _, w := range wants {
			ok = ok && slices.ContainsFunc(c.d.at[w.word], func(s spot) bool {
				return s.field == f
			}) && slices.ContainsFunc(c.d.at[w.word], func(s spot) bool {
				return w.counts(s.field) && slowBucket(s.position) == slowBucket(w.at)
			})
		}
		switch {
		case ok && count == slots && slots <= 30:
			cost = 0
		case ok:
			cost = min(cost, 1)
		}
	}
	return cost
}

func (o *oracle) value(d *stored, r *fieldSort) SortValue {
	best := SortValue{Class: OfNothing}
	for _, v := range d.values[r.field] {
		x := SortValue{Class: OfNothing}
		switch v := v.(type) {
		case float64:
			x = SortValue{Class: OfNumber, Number: v}
		case string:
			if k := text.FacetKey(nil, []byte(v)); len(k) > 0 {
				x = SortValue{Class: OfText, Text: bytes.Clone(k)}
			}
		}
		if x.Compare(&best, r.desc) < 0 {
			best = x
		}
	}
	return best
}

// spelling is the sum of −1 for each word typed with accents that the document has so, and 1 for each word typed without accents that has
// some everywhere in it. A prefix without accents counts as a word.
func (o *oracle) spelling(d *stored) (sum int) {
	for i := range o.terms {
		t := &o.terms[i]
		forms := t.Phrase
		if forms == nil {
			forms = []string{t.Word}
		}
		for k, form := range forms {
			typed := form
			if t.Spellings != nil {
				typed = t.Spellings[k]
			}
			sum += o.spellingOf(d, form, typed, t.Prefix && typed != form)
		}
	}
	return sum
}

func (o *oracle) spellingOf(d *stored, form, typed string, prefix bool) int {
	means := func(written, query string) bool {
		return written == query || prefix && strings.HasPrefix(written, query)
	}
	spelt := map[spot]string{}
	for w, at := range d.at {
		if rest, ok := strings.CutPrefix(w, "\x00\x00"); ok {
			of, spelling, _ := strings.Cut(rest, "\x00")
			for _, s := range at {
				if means(of, form) {
					spelt[s] = spelling
				}
			}
		}
	}
	plain, accents := false, false
	for w, at := range d.at {
		if text.IsStopEntry(w) || !means(w, form) {
			continue
		}
		for _, s := range at {
			spelling, ok := spelt[s]
			switch {
			case !o.searched(s.field) || !o.ix.Fields.InfoOf(s.field).Searchable:
			case typed != form && ok && means(spelling, typed):
				return -1
			case ok && !means(spelling, typed):
				accents = true
			default:
				plain = true
			}
		}
	}
	if typed == form && accents && !plain {
		return 1
	}
	return 0
}
