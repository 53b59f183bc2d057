package rank

// bucket is a set of documents that are equal under the rules so far.
type bucket struct {
	rows rows
	n    int // documents

	// interpretations are those alive; nil before the first rule that
	// looks at them. narrowed: only those that some document needs, found by a rule.
	interpretations []interpretation
	narrowed        bool
	terms           int // covered by each interpretation; before the rule words, at most

	// fixed: the typo rule has charged each document one level a node, its best; typos is the largest sum of them.
	fixed bool
	typos int

	byCost []rows // of the universe: see reached
	less   rows   // hits that are among byCost, but not among rows
	raw    bool   // deleted rows, which n leaves out, are among rows and those of byCost that miss the most terms

	pruned int // documents of full groups were left out at this state of grouping; 0: never
}

// countIn returns how many documents of a bucket are in a segment.
func countIn(s *findings, b *bucket, seg int) int {
	if b.raw {
		return liveIn(s, b.rows, seg)
	}
	return cardinality(b.rows[seg])
}

// rowsOfAll returns the documents of a bucket, be it raw.
func rowsOfAll(s *findings, b *bucket) rows {
	if b.raw {
		return s.live(b.rows)
	}
	return b.rows
}

// isNode reports whether all documents are reached by one node of one term.
func (b *bucket) isNode() bool {
	return len(b.interpretations) == 1 && len(b.interpretations[0].nodes) == 1 && b.terms == 1
}

// hasOneInterpretation reports whether the documents of a bucket are reached by one interpretation, as cost classes want it.
func (b *bucket) hasOneInterpretation() bool { return len(b.interpretations) == 1 }

// part returns the part of a bucket that has some of its rows and is alike in all else.
func (b *bucket) part(r rows) *bucket {
	sub := *b
	sub.rows, sub.n, sub.byCost, sub.less = r, r.count(), nil, nil
	if len(b.interpretations) > 0 {
		sub.interpretations = make([]interpretation, 0, len(b.interpretations))
		for _, p := range b.interpretations {
			if len(b.interpretations) == 1 {
				p.rows = r
			} else if p.rows = p.rows.and(r); p.rows.isEmpty() {
				continue
			}
			sub.interpretations = append(sub.interpretations, p)
		}
	}
	return &sub
}
