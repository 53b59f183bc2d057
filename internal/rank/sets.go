package rank

// set is documents that wait for their turn. What is known of their keys is what the rules before depth said of all of them. Nobody asked
// the rule at depth yet, or it has said something of each.
//
// Sets are a bucket or a list first. When one is the least, it is refined: the rule's parts are pulled from it one by one, the best first,
// and each is a set of its own.
type set struct {
	depth int
	whole bool // no retry looks for its first documents
	mark  mark

	bucket *bucket // nil: a list
	parts  *parts  // of the bucket; nil: nobody asked the rule
	list   list
	runs   runs   // of the list
	retry  *retry // has bucket searched again and again
}

// parts are what an access path has left of a bucket.
type parts struct {
	next  func() (*bucket, verdict)
	taken []rows
	look  int      // after how many parts it is looked whether the others are all duplicates
	last  *verdict // under invariant.Enabled
}

// runs are the entries of a list from begin on, in the order of their costs.
type runs struct {
	outcome
	costs []uint32 // nil: nobody asked the rule
	begin int
}

// mark is up to where the memory of lists is taken.
type mark struct{ entries, numbers, values int }

// push has a set wait. It comes before all others: it is part of the one that was the least.
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

// below reports whether the score of the rules so far is under the threshold. Later rules can only lower it.
func (s *search) below() bool {
	return s.r.Threshold != nil && s.stack[len(s.stack)-1].says().IsScore() && score(s.stack) < *s.r.Threshold
}

// lazySet is documents that nobody looked for: words of the query are misspelt in them in ways that were not expanded. It waits with the
// other sets, under a bound of its key.
type lazySet struct {
	bound  []uint64 // costs of the first rules: its documents have these, or greater ones; nil: there is no such set
	expand func()   // looks for the documents, and has them wait with all others that are no hits
}

// unknown returns from how many typos on nobody looked for documents; 0: they were all looked for.
func (l *lazySet) unknown() uint64 {
	if l.bound == nil {
		return 0
	}
	return l.bound[len(l.bound)-1]
}

// isNext reports whether a document of the set may come before those of the set that is the least.
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

// cachedSet is the first hits of a query in large segments. They wait with the documents of small segments. The others in large segments
// wait as a set without rows, of which it is known that it comes behind the last hit that was cached.
type cachedSet struct {
	hits   *topHits // nil: none are cached
	m      *memo
	left   int    // hits to come; behind the last one the others are next
	expand func() // has all documents wait that are no hits
}

// isNext reports whether the documents are next that were not cached.
func (c *cachedSet) isNext() bool { return c.hits != nil && c.left == 0 && !c.hits.all }

// see notes a hit. It reports whether those equal to it can be next: an uncached one may come before them.
func (c *cachedSet) see(seg int) bool {
	if c.hits != nil && c.m.places[seg] >= 0 {
		c.left--
	}
	return !c.isNext()
}
