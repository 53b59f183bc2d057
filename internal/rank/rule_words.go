package rank

// words puts documents first that have more words of the query.
type words struct{ relevance }

func (words) name() string { return "words" }

func (words) traits() *traits { return &wordsTraits }

var wordsTraits = traits{row: compareRow, says: ByRelevance, sets: true, missing: true}

func (words) access(*search, *bucket, int) paths { return paths{{atHand, openTerms}} }

// openTerms splits by the number of terms that are missing.
func openTerms(s *search, b *bucket, _ int) split {
	var missing func() (*bucket, int)
	return split{termSets, func() (*bucket, verdict) {
		if missing == nil {
			missing = byMissing(&s.findings, b)
		}
		sub, cost := missing()
		if sub == nil {
			return nil, verdict{}
		}
		sub.narrowed = true
		return sub, verdict{cost: uint64(cost), rank: s.wordsMax - uint64(cost), ranks: s.wordsMax}
	}}
}

// costs keeps for each document only the interpretations that miss the fewest terms.
func (words) costs(s *search, l *list, _ int, costs []uint32) outcome {
	for i := range costs {
		costs[i] = uint32(len(s.graph.Terms) - s.list.interpretations[s.list.sets[l.entries[i].interpretations][0]].terms)
	}
	return outcome{ranks: s.wordsMax, narrows: true, misses: true}
}

func (words) details(d *detailWriter, verdicts []verdict) int {
	p := &verdicts[0]
	d.open("words")
	d.integer("matchingWords", p.rank)
	d.integer("maxMatchingWords", p.ranks)
	d.score(p)
	return 1
}
