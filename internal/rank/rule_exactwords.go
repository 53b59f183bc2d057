package rank

// exactWords is the second half of exactness: it puts documents first that have more words as written.
type exactWords struct{ relevance }

func (exactWords) name() string { return "exactWords" }

func (exactWords) traits() *traits { return &exactWordsTraits }

var exactWordsTraits = traits{row: judgeRow, says: ByRelevance, only: wordsAsWritten, interprets: true, sets: true, levels: true}

func (exactWords) access(s *search, b *bucket, i int) paths {
	// Later rules would need to know per document whether each node matches as the word itself.
	if !b.hasOneInterpretation() || s.setsFollow(i) {
		return paths{}
	}
	return paths{{ofClasses(), openExactWords}}
}

func openExactWords(s *search, b *bucket, _ int) split {
	var items []*costClasses
	for _, v := range b.interpretations[0].nodes {
		items = append(items, exactWordClasses(&s.findings, v))
	}
	sums := bySums(b, items, 0, 1+b.terms)
	sums.path = wordSets
	return sums
}

func (exactWords) costs(s *search, l *list, _ int, costs []uint32) outcome {
	eachInterpretation(s, l, costs, func(b *batch, nodes []int, costs []uint32) { exactWordsCosts(&s.findings, b, nodes, costs) })
	keepWords(s, l)
	return outcome{narrows: true, relabels: true, ranks: uint64(1 + l.terms)}
}

func (exactWords) details(d *detailWriter, verdicts []verdict) int {
	p := &verdicts[0]
	d.open("exactness")
	d.integer("matchingWords", p.rank-1)
	d.integer("maxMatchingWords", p.ranks-1)
	d.score(p)
	return 1
}

// exactWordClasses are the documents that have a node as written.
func exactWordClasses(s *findings, n int) *costClasses {
	v := &s.graph.Nodes[n]
	c := &costClasses{rest: v.Len, covered: make(rows, len(v.Segments))}
	if v.Len == 1 {
		for i := range c.covered {
			c.covered[i] = v.Segments[i].Word
		}
		c.costs, c.rows = []int{0}, []rows{c.covered}
	}
	return c
}

// exactWordsCosts charges each node that the document does not have as written.
func exactWordsCosts(s *findings, b *batch, nodes []int, costs []uint32) {
	clear(costs)
	for _, n := range nodes {
		v := &s.graph.Nodes[n]
		word := v.Segments[b.segment].Word
		for i, row := range b.rows {
			if v.Len > 1 || !s.hasExactForm(b, n) || !word.Contains(row) {
				costs[i] += uint32(v.Len)
			}
		}
	}
}

// keepWords reduces each node that was found as written to the word alone.
func keepWords(s *search, l *list) {
	for i := range l.entries {
		e := &l.entries[i]
		for _, p := range s.list.sets[e.interpretations] {
			for _, n := range s.list.interpretations[p].nodes {
				v := &s.graph.Nodes[n]
				if v.Len == 1 && !v.Phrase && (!l.fixed || e.levels.Of(n) == 0) && v.Segments[e.segment].Word.Contains(e.row) {
					e.levels.Set(n, wordOnly)
				}
			}
		}
	}
}
