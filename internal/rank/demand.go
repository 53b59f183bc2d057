package rank

// What access paths know of the page is how many documents it takes to fill it. The planner tells them; they never ask for what.

// wants reports whether more documents are needed.
func (c *page) wants() bool {
	return len(c.hits) < c.limit && (c.groups == nil || c.groups.wants())
}

// missing returns how many documents it takes at most to fill the page, those before it included.
func missing(s *search) int {
	if s.retry != nil {
		return s.retry.left
	}
	return s.out.skip + s.out.limit - len(s.out.hits)
}

// wanted returns how many documents of a bucket the page may still need.
func wanted(s *search, b *bucket) int { return min(missing(s), b.n) }

// fillable reports whether as many documents as are missing fill the page: none of them turns out to be a duplicate, or to score too low.
func fillable(s *search) bool {
	return s.retry != nil || s.out.distinct == nil && s.out.groups == nil && s.r.Threshold == nil
}

// asksAll reports whether all rules are asked of each document, be it alone in its bucket: for scores, for duplicates, or because the only
// rule tells which documents have vectors.
func asksAll(s *search) bool {
	return s.scored || s.retry != nil && s.out.groups == nil || s.r.Vectors != nil && s.r.Vectors.Only
}

// skips reports whether a bucket of n documents lies before the page, so that its order does not matter. A
// semantic search has to look which of them have vectors: others are no hits, and no document is a duplicate of them. Of duplicates the
// first one is kept, so their order matters to documents with several values, and to what is counted.
func (c *page) skips(n int) bool {
	v := c.s.r.Vectors
	return n <= c.skip && c.s.retry == nil && c.s.r.Threshold == nil && (v == nil || !v.Only) && (c.distinct == nil || unseen(c))
}

// dropRows takes documents out of the candidates: their score is under the threshold.
func (c *page) dropRows(r rows) { c.candidates = c.candidates.andNot(r) }

// dedups reports whether duplicates are taken out of a bucket before it is ranked. To scores they may matter. Where some documents are
// still to be passed over, they matter to which of those are kept that have several values.
func dedups(s *search, b *bucket) bool {
	return s.out.distinct != nil && s.retry == nil && (!s.scored || alike(&s.request, b)) && unseen(&s.out) && b.n >= classRows
}

// hasAll reports whether all documents of a bucket are known to be duplicates, or of groups that have their hits.
func hasAll(s *search, b *bucket) bool {
	if s.out.groups != nil {
		return s.out.groups.hopeless(b.rows)
	}
	return s.out.distinct != nil && s.retry == nil && s.r.Threshold == nil && s.out.distinct.unlike(b.rows).isEmpty()
}

// unseen reports whether nobody sees which documents of those that share a value are passed over: how many remain is the same.
func unseen(c *page) bool { return c.skip == 0 || c.s.r.HitsOnly && c.distinct.single() }

// alike reports whether the scores of documents of a bucket say nothing of the others in it.
func alike(s *request, b *bucket) bool {
	return b.narrowed && len(b.interpretations) == 1 && scoresAlone(s)
}

// scoresAlone reports whether rules score each document by itself, if all match the query in one way.
func scoresAlone(s *request) bool {
	exact := false // words may be known to be there as they are written
	for _, r := range s.rules {
		t := r.traits()
		if t.groups || t.typos && exact { // which counts the typos that the others may have
			return false
		}
		exact = exact || t.only&wordsAsWritten != 0
	}
	return true
}

// rowsPerHit is how many rows are judged for each hit that groups miss. (A variable, so that tests can change it.)
var rowsPerHit = 8

// ofPlaces is ofClasses for rules that judge rows by positions. Of groups that miss many hits, most rows of a bucket are judged anyway.
func ofPlaces(s *search) effort {
	if g := s.out.groups; g != nil {
		return effort(max(classRows, min(listRows, rowsPerHit*g.misses()))) * judgeRow
	}
	return ofClasses()
}
