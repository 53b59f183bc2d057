package rank

// words puts documents first that have more words of the query.
type words struct{ relevance }

func (words) name() string { return "words" }

func (words) traits() *traits { return &wordsTraits }

var wordsTraits = traits{row: compareRow, says: ByRelevance, sets: true, missing: true}

func (words) access(*search, *bucket, int) paths { return paths{{atHand, openTerms}} }

func openTerms(s *search, b *bucket, _ int) split {
	var missing func() (*bucket, int)
	return split{termSets, func() (*bucket, part) {
		if missing == nil {
			missing = byMissing(&s.view, b)
		}
		sub, cost := missing()
		switch {
		case sub == nil:
			return nil, part{}
		case s.unknown > 0 && (cost > 0 || !tells(s, sub)):
			s.untold = true
			return nil, part{}
		}
		sub.narrowed = true
		return sub, part{cost: uint64(cost), rank: s.wordsMax - uint64(cost), ranks: s.wordsMax}
	}}
}

// costs: each document has those interpretations only that miss the fewest terms.
func (words) costs(s *search, l *list, _ int, costs []uint32) outcome {
	for i := range costs {
		costs[i] = uint32(len(s.graph.Terms) - s.list.paths[s.list.sets[l.entries[i].paths][0]].terms)
	}
	return outcome{ranks: s.wordsMax, narrows: true, misses: true}
}

func (words) details(d *detailWriter, parts []part) int {
	p := &parts[0]
	d.open("words")
	d.integer("matchingWords", p.rank)
	d.integer("maxMatchingWords", p.ranks)
	d.score(p)
	return 1
}

// tells reports whether the documents of a bucket, which have all words, fill the page before any that nobody looked for.
func tells(s *search, b *bucket) bool {
	b.levels = typoLevelsOf(&s.view, b)
	n := 0
	next := b.byTypos(b.levels)
	for sub, cost := next(); sub != nil; sub, cost = next() {
		if cost >= s.unknown {
			return false
		}
		if n += sub.n; n >= missing(s) {
			return true
		}
	}
	return false
}
