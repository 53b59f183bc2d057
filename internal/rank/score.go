package rank

// part is what one rule said of a document: rank of ranks (the higher the better) for
// the score, and what the details show beside.
type part struct {
	rule  int // index in search.rules
	kind  ruleKind
	cost  uint64 // of rules that look at how the query matched, of a bucket
	rank  uint64
	ranks uint64
	value SortValue // of sorts; of the vector rule the similarity, OfNothing where there is no vector
}

// counts reports whether the part is in the score: sorts are not.
func (p *part) counts() bool { return p.kind != ruleSort && p.kind != ruleGeo }

// score combines parts: each rule subdivides the step of those before it. The numbers
// multiply exactly in 64 bits (the product stays far below 2^53 for ten words and hundreds of
// attributes), so equal costs give equal scores bit by bit.
// The vector rule leaves no room for others: the score is the similarity.
func score(parts []part) float64 {
	rank, ranks := uint64(1), uint64(1)
	for i := range parts {
		p := &parts[i]
		if p.kind == ruleVector {
			return p.value.Number
		}
		if !p.counts() {
			continue
		}
		rank = (rank-1)*p.ranks + p.rank
		ranks *= p.ranks
	}
	return float64(rank) / float64(ranks)
}
