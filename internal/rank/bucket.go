package rank

// bucket is a set of documents that are equal under the rules so far.
type bucket struct {
	rows rows
	n    int // documents

	// entries holds the documents of a part that has no rows. It is valid until the next part is pulled.
	entries []entry

	// interpretations are the live ones; nil before the first rule that looks at them. narrowed says that a rule has reduced them to
	// those that some document needs.
	interpretations []interpretation
	narrowed        bool
	terms           int // covered by each interpretation, or at most that many before the rule words

	// fixed says that the typo rule has reduced each node of a document to one level, the best; typos is the largest sum of them.
	fixed bool
	typos int

	byCost []rows // of the universe: see reached
	less   rows   // hits that are in byCost but not in rows
	raw    bool   // rows, and those of byCost that miss the most terms, include deleted rows, which n does not count

	chosen  bool             // all may be hits
	counted []interpretation // that the number of ranks of the next rule depends on, also of documents that may not be hits; nil: interpretations

	pruned int // documents of full groups were removed at this state of grouping; 0: never
}

// countIn returns the number of documents of a bucket in a segment.
func countIn(s *findings, b *bucket, seg int) int {
	if b.raw {
		return liveIn(s, b.rows, seg)
	}
	return cardinality(b.rows[seg])
}

// rowsOfAll returns the documents of a bucket, which may be raw.
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

// hasOneInterpretation reports whether one interpretation reaches all documents of the bucket, as cost classes require.
func (b *bucket) hasOneInterpretation() bool { return len(b.interpretations) == 1 }

// part returns the part of a bucket with the given rows, with all other properties equal.
func (b *bucket) part(r rows) *bucket {
	sub := *b
	sub.rows, sub.n, sub.byCost, sub.less, sub.counted = r, r.count(), nil, nil, nil
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
