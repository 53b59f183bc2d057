package rank

import "slices"

// verdict is the result of one rule for a document: rank of ranks (the higher the better) for the score, and what the details show.
type verdict struct {
	by    rule
	cost  uint64 // for rules that look at how the query matched: within a bucket
	rank  uint64
	ranks uint64
	value SortValue // for sorts; for the vector rule the similarity, or OfNothing without a vector
}

// says returns the kind of the verdict.
func (p *verdict) says() ScoreKind { return p.by.traits().says }

// score combines verdicts: each rule subdivides the step of the rules before it. The numbers multiply exactly in 64 bits (the product
// stays far below 2^53 for ten words and hundreds of attributes), so equal costs give equal scores bit by bit. With the vector rule
// the score is the similarity alone.
func score(verdicts []verdict) float64 {
	rank, ranks := uint64(1), uint64(1)
	for i := range verdicts {
		switch p := &verdicts[i]; p.says() {
		case BySimilarity:
			return p.value.Number
		case ByRelevance:
			rank = (rank-1)*p.ranks + p.rank
			ranks *= p.ranks
		}
	}
	return float64(rank) / float64(ranks)
}

// appendValues appends the sequence of values by which hits with these verdicts are merged.
func appendValues(dst []ScoreValue, verdicts []verdict) []ScoreValue {
	for len(verdicts) > 0 {
		if verdicts[0].by.traits().hidden {
			verdicts = verdicts[1:]
			continue
		}
		v, n := verdicts[0].by.value(verdicts)
		dst, verdicts = append(dst, v), verdicts[n:]
	}
	return dst
}

// spellingOf returns the verdict of the rule that breaks ties, or 0 without it. Smaller ones come first.
func spellingOf(verdicts []verdict) int {
	for i := range verdicts {
		if verdicts[i].by.traits().hidden {
			return int(verdicts[i].value.Number)
		}
	}
	return 0
}

// relevance is embedded by rules that look at how the query matched.
type relevance struct{}

// value returns one score for this rule and the rules of the same kind that follow.
func (relevance) value(verdicts []verdict) (ScoreValue, int) {
	n := 1
	for n < len(verdicts) && verdicts[n].says() == ByRelevance {
		n++
	}
	return ScoreValue{Kind: ByRelevance, Score: score(verdicts[:n])}, n
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

func (skipped) details(d *detailWriter, _ []verdict) int {
	d.open("skipped")
	return 1
}

// areEqual reports whether two documents are equal under all rules.
func areEqual(a, b []verdict) bool {
	return slices.EqualFunc(a, b, func(a, b verdict) bool {
		switch {
		case a.by != b.by:
			return false
		case a.says() == ByField:
			return a.value.Compare(&b.value, false) == 0
		}
		return a.cost == b.cost
	})
}
