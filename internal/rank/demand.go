package rank

import "slices"

// Access paths know only how many documents fill the page. The planner tells them; they never ask what the documents are for.

// wants reports whether more documents are needed.
func (c *page) wants() bool {
	return len(c.hits) < c.limit && (c.groups == nil || c.groups.wants())
}

// missing returns an upper bound of the number of documents that fill the page, including those before it.
func missing(s *search) int {
	if s.rounds != nil {
		return s.rounds.left
	}
	return s.out.skip + s.out.limit - len(s.out.hits)
}

// wanted returns how many documents of a bucket the page may still need.
func wanted(s *search, b *bucket) int { return min(missing(s), b.n) }

// fillable reports whether the page is full after as many documents as are missing: all may be hits, and none of them can be a
// duplicate or have a score below the threshold.
func fillable(s *search) bool {
	return s.rounds != nil || !s.wide && s.out.distinct == nil && s.out.groups == nil && s.r.Threshold == nil
}

// prunes reports whether documents of groups that have their hits are left out, so that only the first parts of a bucket matter.
func prunes(s *search) bool { return s.out.groups != nil && s.out.groups.prunes }

// asksAll reports whether every rule judges each document, even if it is alone in its bucket: for scores, for duplicates, or because
// the only rule says which documents have vectors.
func asksAll(s *search) bool {
	return s.scored || s.inRetry() || s.r.Vectors != nil && s.r.Vectors.Only
}

// skips reports whether a bucket of n documents lies before the page, so that its order does not matter. A semantic search still has
// to find out which documents have vectors: the others are no hits, and nothing is their duplicate. With distinct, the first of
// several duplicates is the one returned. So the order matters for documents with several values, and for counts.
func (c *page) skips(n int) bool {
	v := c.s.r.Vectors
	return n <= c.skip && c.s.rounds == nil && c.s.r.Threshold == nil && (v == nil || !v.Only) && (c.distinct == nil || unseen(c))
}

// passed returns how many documents of the least set are passed over, whatever order they have.
func passed(s *search) int {
	if c := &s.out; c.distinct == nil && c.groups == nil && c.skips(c.skip) {
		return c.skip
	}
	return 0
}

// dropRows removes documents from the candidates, because their scores are below the threshold.
func (c *page) dropRows(r rows) { c.candidates = c.candidates.andNot(r) }

// dedups reports whether duplicates are removed from a bucket before the rules from i on rank it. They may affect scores, and the order
// of others: classes of about equal distance begin at the nearest document. If documents are still to be skipped, duplicates affect
// which documents with several values are returned.
func dedups(s *search, b *bucket, i int) bool {
	return s.out.distinct != nil && s.rounds == nil && (!s.scored || alike(&s.request, b)) && unseen(&s.out) && b.n >= classRows &&
		!slices.ContainsFunc(s.rules[i:], func(r rule) bool { return r.traits().groups })
}

// hasAll reports whether all documents of a bucket are known to be duplicates, or in full groups.
func hasAll(s *search, b *bucket) bool {
	if s.out.groups != nil {
		return s.out.groups.hopeless(b.rows)
	}
	return s.out.distinct != nil && s.rounds == nil && s.r.Threshold == nil && s.out.distinct.unlike(b.rows).isEmpty()
}

// unseen reports whether the answer does not depend on which duplicates are skipped, because the number of remaining documents is the
// same.
func unseen(c *page) bool { return c.skip == 0 || c.s.r.HitsOnly && c.distinct.single() }

// alike reports whether the score of each document of a bucket is independent of the others in it.
func alike(s *request, b *bucket) bool {
	return b.narrowed && len(b.interpretations) == 1 && scoresAlone(s)
}

// scoresAlone reports whether rules score each document by itself, if all match the query in one way.
func scoresAlone(s *request) bool {
	exact := false // words may be known to be present as written
	for _, r := range s.rules {
		t := r.traits()
		if t.groups || t.typos && exact { // its score depends on how many typos the others may have
			return false
		}
		exact = exact || t.only&wordsAsWritten != 0
	}
	return true
}

// need is what some rules need of the documents that may not be hits.
type need uint8

const (
	needNothing         need = iota
	needInterpretations      // for the number of ranks of the first of these rules
	needDocuments
)

// needsOthers returns what the rules from i on need. one says that all documents have the same interpretation.
func needsOthers(s *request, i int, one bool) need {
	switch counts := func(r rule) bool { return r.traits().counts }; {
	case slices.ContainsFunc(s.rules[i:], func(r rule) bool { return r.traits().groups }):
		return needDocuments
	case !s.scored || !slices.ContainsFunc(s.rules[i:], counts):
		return needNothing
	case !scoresAlone(s):
		return needDocuments
	case one:
		return needNothing
	case slices.ContainsFunc(s.rules[i+1:], counts):
		return needDocuments
	}
	return needInterpretations
}

// rowsPerHit is how many rows are judged per missing hit of groups. (A variable, so that tests can change it.)
var rowsPerHit = 8

// ofPlaces is ofClasses for rules that judge rows by positions. For groups with many missing hits, most rows of a bucket are judged
// anyway.
func ofPlaces(s *search) effort {
	if g := s.out.groups; g != nil {
		return effort(max(classRows, min(listRows, rowsPerHit*g.misses()))) * judgeRow
	}
	return ofClasses()
}
