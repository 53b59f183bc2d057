package rank

import (
	"slices"
	"strconv"
	"strings"

	"svc/internal/apierr"
	"svc/internal/query"
	"svc/internal/settings"
)

// rule is one rule of a request. Each kind is a type in a file rule_*.go of its own. A rule holds values of the request and the
// settings, and no state of a search.
type rule interface {
	name() string    // in plans
	traits() *traits // the same for all rules of a kind

	// access returns the access paths that split a bucket by cost into sets, each with its effort. i is the index of the rule.
	// Alternatively, the costs of rows can be computed one by one.
	access(s *search, b *bucket, i int) paths

	// costs gives each entry of a list its cost.
	costs(s *search, l *list, i int, costs []uint32) outcome

	// details writes the object that explains verdicts[0], which is the rule's own, without its closing brace. It returns how many
	// verdicts this explains: a rule may be shown together with the next one.
	details(d *detailWriter, verdicts []verdict) int

	// value returns what hits of different rankings are compared by instead of verdicts[0], and how many verdicts this covers.
	value(verdicts []verdict) (ScoreValue, int)
}

// access is an access path to the costs of a bucket under rule i. open may decline.
type access struct {
	effort effort
	open   func(s *search, b *bucket, i int) split
}

// paths are access paths. Those without open do not exist.
type paths [2]access

// split is a bucket divided by an access path: next returns the next part, with the rule's verdict, and nil at the end.
type split struct {
	path accessPath
	next func() (*bucket, verdict)
}

// declined is no split.
var declined split

// traits are what other rules have to know about a rule. Rules look at traits and never at the type of a rule.
type traits struct {
	row        effort    // of computing the cost of a single row
	says       ScoreKind // kind of its verdicts; values of sorts are in no score
	adds       measure   // what it sums up over occurrences
	charge     charge    // adds it up
	fields     bool      // its costs follow from the fields that have the words, so buckets are split without reading positions
	order      orderOf   // how it orders documents before their positions are read; nil: it cannot, or nothing needs it
	only       aspects   // everything that it looks at, if that is little
	interprets bool      // it judges the interpretations of a bucket, so they have to be found first
	sets       bool      // it works on bitmaps if possible, so sorts before it produce bitmaps
	levels     bool      // it changes at which levels the nodes of a document count for later rules
	missing    bool      // its cost is the number of terms that a document misses
	typos      bool      // its cost is the number of typos of a document
	counts     bool      // how many ranks it has depends on the documents of the bucket
	groups     bool      // it may give the same cost to documents with different values
	hidden     bool      // it only breaks ties: scores, their details and values do not show it
	rounds     bool      // it may distinguish documents with equal values
}

// measure is what a rule sums up over occurrences. Rules with a measure are judged together, because they read the same occurrences.
type measure uint8

const (
	addsNothing measure = iota
	addsDistances
	addsWeights
	addsDisplacements
	measures
)

// charge adds the costs of the node nodes[k] to the sums of the rows of a batch. s.pos.Right has the occurrences of the node and
// s.pos.Left those of the previous node. one is scratch memory for one number per row.
type charge func(s *search, b *batch, nodes []int, k int, sum, one []uint32)

// orderOf returns classes whose costs add up to those of a rule, for the documents of a bucket with one interpretation. It returns
// none if all documents have the same cost.
type orderOf func(s *search, b *bucket) []*costClasses

// aspects are things that a rule may look at in a document.
type aspects uint8

const (
	startsAsWritten aspects = 1 << iota // whether a field equals the query as written, or begins with it
	wordsAsWritten                      // which words are present as written
)

// makeRule adds the rules for an entry of the settings' list to those of a request. It has a row for every kind.
var makeRule = [settings.RuleKinds]func(b *ruleBuilder, r settings.RankingRule){
	settings.Words:     func(b *ruleBuilder, _ settings.RankingRule) { b.addJudging() },
	settings.Typo:      func(b *ruleBuilder, _ settings.RankingRule) { b.addJudging(typo{}) },
	settings.Proximity: func(b *ruleBuilder, _ settings.RankingRule) { b.addJudging(proximity{}) },
	settings.Attribute: func(b *ruleBuilder, _ settings.RankingRule) {
		b.addJudging(attributeRank{with: wordPosition{}}, wordPosition{})
	},
	settings.AttributeRank: func(b *ruleBuilder, _ settings.RankingRule) { b.addUnordered(attributeRank{}) },
	settings.WordPosition:  func(b *ruleBuilder, _ settings.RankingRule) { b.addUnordered(wordPosition{}) },
	settings.Exactness: func(b *ruleBuilder, _ settings.RankingRule) {
		b.addJudging(exactAttribute{with: exactWords{}}, exactWords{})
	},
	settings.Sort:   func(b *ruleBuilder, _ settings.RankingRule) { b.addSort() },
	settings.Asc:    func(b *ruleBuilder, r settings.RankingRule) { b.addKey(&SortKey{Field: r.Field}) },
	settings.Desc:   func(b *ruleBuilder, r settings.RankingRule) { b.addKey(&SortKey{Field: r.Field, Desc: true}) },
	settings.Random: func(b *ruleBuilder, r settings.RankingRule) { b.add(random{r.Seed}) },
	settings.Score:  func(b *ruleBuilder, _ settings.RankingRule) { b.addScore() },
}

// makeRules makes the list of a request from the settings.
func makeRules(s *search, placeholder bool) error {
	b := ruleBuilder{s: &s.job, placeholder: placeholder}
	withSort := slices.ContainsFunc(s.ix.Settings.RankingRules, func(r settings.RankingRule) bool { return r.Kind == settings.Sort })
	if len(s.r.Sort) > 0 && !withSort {
		return apierr.New("invalid_search_sort", "This index does not sort: add `sort` to its `rankingRules` to use the `sort` parameter.")
	}
	if v := s.r.Vectors; v != nil && v.Only {
		s.rules = []rule{vector{shifted: v.Shift != nil}}
		return nil
	}
	for _, r := range s.ix.Settings.RankingRules {
		makeRule[r.Kind](&b, r)
	}
	s.rules = b.rules
	return nil
}

type ruleBuilder struct {
	s           *job
	placeholder bool
	rules       []rule
	fields      []string // that rules sort by
	scores      bool     // a rule adds score functions
}

// addUnordered adds rules that look at how the query matched, each once. A semantic search has the vector rule instead.
func (b *ruleBuilder) addUnordered(rules ...rule) {
	if b.s.r.Vectors != nil {
		rules = []rule{vector{shifted: b.s.r.Vectors.Shift != nil}}
	} else if b.placeholder {
		return
	}
	b.add(rules...)
}

// add adds rules, each once.
func (b *ruleBuilder) add(rules ...rule) {
	for _, r := range rules {
		if !slices.Contains(b.rules, r) {
			b.rules = append(b.rules, r)
		}
	}
}

// addJudging adds rules that compare documents with equally many words of the query. It adds words before them, unless no word may be
// missing.
func (b *ruleBuilder) addJudging(rules ...rule) {
	if b.s.r.Vectors != nil || b.s.r.Strategy != query.All {
		b.addUnordered(words{})
	}
	b.addUnordered(rules...)
}

// addSort adds what the request sorts by.
func (b *ruleBuilder) addSort() {
	for i := range b.s.r.Sort {
		b.addKey(&b.s.r.Sort[i])
	}
}

// addScore adds the rule of the score functions, once.
func (b *ruleBuilder) addScore() {
	if s := b.s.r.Scoring; s != nil && len(s.Functions.Functions) > 0 && !b.scores {
		b.scores = true
		b.rules = append(b.rules, &functionScore{s})
	}
}

// addKey adds the rule of one key of sort. A field counts once, with its first key.
func (b *ruleBuilder) addKey(k *SortKey) {
	order := ":asc"
	if k.Desc {
		order = ":desc"
	}
	if k.Geo {
		key := "_geoPoint(" + formatNumber(k.Lat) + ", " + formatNumber(k.Lng) + ")" + order
		b.rules = append(b.rules, &geoSort{key: key, desc: k.Desc, point: point{k.Lat, k.Lng}})
		return
	}
	displayed := b.s.ix.Settings.DisplayedAttributes
	if k.Elements != nil {
		key := k.Elements.String()
		if slices.Contains(b.fields, key) {
			return
		}
		b.fields = append(b.fields, key)
		shows := func(name string) bool { return k.Field == name || strings.HasPrefix(k.Field, name+".") }
		hidden := displayed != nil && !slices.ContainsFunc(displayed, shows)
		b.rules = append(b.rules, &elementSort{fieldSort{field: k.Field, key: key + order, hidden: hidden, desc: k.Desc}, k.Elements})
		return
	}
	if slices.Contains(b.fields, k.Field) {
		return
	}
	b.fields = append(b.fields, k.Field)
	hidden := displayed != nil && !slices.Contains(displayed, k.Field)
	b.rules = append(b.rules, &fieldSort{field: k.Field, key: k.Field + order, hidden: hidden, desc: k.Desc})
}

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
