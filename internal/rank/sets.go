package rank

// set has documents that wait to be returned or refined. The rules before depth have judged all of them, and that is all that is
// known of their keys. The rule at depth has not judged them yet, or has judged each of them.
//
// A set is a bucket or a list. When it is the least one, it is refined: the planner pulls the parts of the rule from it one by one,
// the best first, and each part becomes a set of its own.
type set struct {
	depth int
	whole bool // it is not searched in rounds
	mark  mark

	bucket *bucket // nil: a list
	parts  *parts  // of the bucket; nil: the rule has not split it yet
	list   list
	runs   runs    // of the list
	rounds *rounds // of a bucket that is searched in rounds
}

// parts are what an access path has left of a bucket.
type parts struct {
	next  func() (*bucket, verdict)
	taken []rows
	alone []entry  // the documents of taken parts that have no rows
	look  int      // after how many parts it is looked whether the others are all duplicates
	last  *verdict // under invariant.Enabled
}

// runs are the entries of a list from begin on, in the order of their costs.
type runs struct {
	outcome
	costs []uint32 // nil: the rule has not judged them yet
	begin int
}

// mark is up to where the memory of lists is taken.
type mark struct{ entries, numbers, values int }

// push adds a set. It comes before all others, because it is a part of the least one.
func (s *search) push(w set) {
	w.mark = mark{s.list.entries.Mark(), s.list.numbers.Mark(), s.sorting.distinct.Mark()}
	s.sets = append(s.sets, w)
}

// drop forgets the sets from the n-th on.
func (s *scratch) drop(n int) {
	if n == len(s.sets) {
		return
	}
	m := s.sets[n].mark
	s.list.entries.Release(m.entries)
	s.list.numbers.Release(m.numbers)
	s.sorting.distinct.Release(m.values)
	clear(s.sets[n:])
	s.sets = s.sets[:n]
}

// pop takes the least set out.
func (s *scratch) pop() set {
	n := len(s.sets) - 1
	w := s.sets[n]
	s.drop(n)
	return w
}

// below reports whether the score of the rules so far is below the threshold. Later rules can only lower it.
func (s *search) below() bool {
	return s.r.Threshold != nil && s.stack[len(s.stack)-1].says().IsScore() && score(s.stack) < *s.r.Threshold
}

// lazySet has documents that were not looked up, because they contain words of the query with typos that were not expanded. It waits
// with the other sets, under a lower bound of its key.
type lazySet struct {
	bound  []uint64 // costs of the first rules: its documents have at least these; nil: there is no such set
	expand func()   // looks the documents up, and makes them wait with all others that are not hits
}

// unknown returns the number of typos from which on documents were not looked up, or 0 if all were.
func (l *lazySet) unknown() uint64 {
	if l.bound == nil {
		return 0
	}
	return l.bound[len(l.bound)-1]
}

// isNext reports whether a document of the set may come before those of the least set.
func (l *lazySet) isNext(stack []verdict) bool {
	for i, least := range l.bound {
		if i == len(stack) {
			return false
		}
		if c := stack[i].cost; c != least {
			return c > least
		}
	}
	return true
}

// cachedSet has the cached first hits of a query in large segments. They wait with the documents of small segments. The other
// documents of large segments wait as a set without rows, which comes after the last cached hit.
type cachedSet struct {
	hits   *topHits // nil: none are cached
	m      *memo
	left   int    // hits to come; the uncached ones follow the last
	expand func() // makes all documents wait that are not hits
}

// isNext reports whether the uncached documents are next.
func (c *cachedSet) isNext() bool { return c.hits != nil && c.left == 0 && !c.hits.all }

// see records a hit. It reports whether hits equal to it can be next: an uncached one may come before them.
func (c *cachedSet) see(seg int) bool {
	if c.hits != nil && c.m.places[seg] >= 0 {
		c.left--
	}
	return !c.isNext()
}
