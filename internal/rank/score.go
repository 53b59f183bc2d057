package rank

import "slices"

// part is what one rule said of a document: rank of ranks (the higher the better) for
// the score, and what the details show beside.
type part struct {
	by    rule
	cost  uint64 // of rules that look at how the query matched, of a bucket
	rank  uint64
	ranks uint64
	value SortValue // of sorts; of the vector rule the similarity, OfNothing where there is no vector
}

// says returns what the part is.
func (p *part) says() ScoreKind { return p.by.traits().says }

// partOf returns what the rule said that adds up so much of occurrences, on the way to a bucket; nil when there is none.
func partOf(stack []part, judged uint8) *part {
	for i := range stack {
		if stack[i].by.traits().judged == judged {
			return &stack[i]
		}
	}
	return nil
}

// score combines parts: each rule subdivides the step of those before it. The numbers
// multiply exactly in 64 bits (the product stays far below 2^53 for ten words and hundreds of
// attributes), so equal costs give equal scores bit by bit.
// The vector rule leaves no room for others: the score is the similarity.
func score(parts []part) float64 {
	rank, ranks := uint64(1), uint64(1)
	for i := range parts {
		switch p := &parts[i]; p.says() {
		case BySimilarity:
			return p.value.Number
		case ByRelevance:
			rank = (rank-1)*p.ranks + p.rank
			ranks *= p.ranks
		}
	}
	return float64(rank) / float64(ranks)
}

// appendValues appends the sequence of values that hits with these parts are merged by.
func appendValues(dst []ScoreValue, parts []part) []ScoreValue {
	for len(parts) > 0 {
		if parts[0].by.traits().hidden {
			parts = parts[1:]
			continue
		}
		v, n := parts[0].by.value(parts)
		dst, parts = append(dst, v), parts[n:]
	}
	return dst
}

// spellingOf returns what the rule that breaks ties said, 0 where it is not asked: less comes first.
func spellingOf(parts []part) int {
	for i := range parts {
		if parts[i].by.traits().hidden {
			return int(parts[i].value.Number)
		}
	}
	return 0
}

// relevance is what rules have in common that look at how the query matched.
type relevance struct{}

// value is the score of the rule and of those like it that follow, as one.
func (relevance) value(parts []part) (ScoreValue, int) {
	n := 1
	for n < len(parts) && parts[n].says() == ByRelevance {
		n++
	}
	return ScoreValue{Kind: ByRelevance, Score: score(parts[:n])}, n
}

// skipped stands where the deadline passed before a rule.
type skipped struct{ relevance }

func (skipped) name() string { return "skipped" }

func (skipped) traits() *traits { return &skippedTraits }

var skippedTraits = traits{says: ByRelevance}

func (skipped) access(*search, *bucket, int) paths { return paths{} }

func (skipped) costs(_ *search, _ *list, _ int, costs []uint32) outcome {
	clear(costs)
	return outcome{ranks: 1}
}

func (skipped) details(d *detailWriter, _ []part) int {
	d.open("skipped")
	return 1
}

// areEqual reports whether two documents are equal under all rules.
func areEqual(a, b []part) bool {
	return slices.EqualFunc(a, b, func(a, b part) bool {
		switch {
		case a.by != b.by:
			return false
		case a.says() == ByField:
			return a.value.Compare(&b.value, false) == 0
		}
		return a.cost == b.cost
	})
}
