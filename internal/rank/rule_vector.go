package rank

import (
	"cmp"
	"slices"

	"svc/segment"
)

// nearestFirst asks the vectors of each segment for the nearest ones.
const nearestFirst accessPath = "nearest vectors"

// VectorQuery makes a ranking semantic: the vector rule replaces all rules that look at how a query matches.
type VectorQuery struct {
	Embedder segment.EmbedderID
	Vectors  [][]float32 // the similarity of a document is that of its nearest vector to any of these
	Shift    *Shift      // nil: none
	Only     bool        // the vector rule is the only one, and documents without vectors are not found
}

// Shift spreads similarities over the scale. Mean is a typical similarity and Sigma the standard deviation.
type Shift struct{ Mean, Sigma float32 }

// apply returns the similarity as it is shown: Mean becomes 0.5.
func (s *Shift) apply(similarity float32) float32 {
	if s == nil {
		return similarity
	}
	const least = 0x1p-23 // of a document with a vector; 0 is for documents without
	x := 0.5 + (similarity-s.Mean)*0.4/s.Sigma
	switch {
	case x <= 0:
		return least
	case x > 1:
		return 1
	}
	return x
}

// near is a document with the similarity of its nearest vector.
type near struct {
	similarity float32
	segment    uint16
	row        uint32
}

// vector puts documents first whose vectors are more similar to those of the query.
type vector struct {
	shifted bool // different similarities may be shown as the same number
}

func (vector) name() string { return "vector" }

func (r vector) traits() *traits {
	if r.shifted {
		return &shiftedTraits
	}
	return &vectorTraits
}

var (
	vectorTraits  = traits{row: measureRow, says: BySimilarity, sets: true}
	shiftedTraits = traits{row: measureRow, says: BySimilarity, sets: true, rounds: true}
)

func (vector) access(*search, *bucket, int) paths { return paths{{atHand, openNearest}} }

func openNearest(s *search, b *bucket, i int) split {
	var w *vectorWalk
	return split{nearestFirst, func() (*bucket, verdict) {
		if w == nil {
			w = newVectorWalk(s, b, i)
		}
		return w.next()
	}}
}

func (vector) costs(s *search, l *list, _ int, costs []uint32) outcome {
	in := s.rowsOf(l.entries)
	found, _ := nearest(&s.job, vectors(&s.job, in), in, len(l.entries))
	var values []SortValue
	of := make(map[near]uint32, len(found)) // costs of documents, without their similarities
	for k, n := range found {
		if k == 0 || n.similarity != found[k-1].similarity {
			values = append(values, shownSimilarity(&s.request, n))
		}
		of[near{segment: n.segment, row: n.row}] = uint32(len(values) - 1)
	}
	for i, e := range l.entries {
		c, ok := of[near{segment: e.segment, row: e.row}]
		if !ok {
			c = uint32(len(values))
		}
		costs[i] = c
	}
	return outcome{values: append(values, SortValue{Class: OfNothing})}
}

func (vector) details(d *detailWriter, verdicts []verdict) int {
	d.open("vectorSort")
	if v := &verdicts[0].value; v.Class == OfNothing {
		d.null("similarity")
	} else {
		d.number("similarity", v.Number)
	}
	return 1
}

func (vector) value(verdicts []verdict) (ScoreValue, int) {
	return ScoreValue{Kind: BySimilarity, Score: verdicts[0].value.Number}, 1
}

// shownSimilarity is the similarity of a document as it is shown.
func shownSimilarity(s *request, n near) SortValue {
	return SortValue{Number: float64(s.r.Vectors.Shift.apply(n.similarity))}
}

// vectors returns the readers of the segments that have some of the documents.
func vectors(s *job, in rows) []*segment.Vectors {
	readers := make([]*segment.Vectors, len(s.ix.Segments))
	for seg, live := range s.ix.Segments {
		if in[seg] != nil {
			readers[seg] = live.Vectors(s.r.Vectors.Embedder)
		}
	}
	return readers
}

// approximate reports whether the nearest vectors are found by walking a graph, which misses some.
func approximate(v *segment.Vectors) bool { return v != nil && v.Linked() }

// vectorWalk divides a bucket into groups of equal similarity. It finds the nearest documents that are still needed, and more if they
// prove too few; documents without vectors follow. What a walk misses depends on how many documents it looks for. So with a graph it
// takes the steps of the first page, wherever the page is, and all pages are parts of the same list.
type vectorWalk struct {
	s       *search
	b       *bucket
	readers []*segment.Vectors
	left    rows
	k       int    // documents to look for
	found   []near // the nearest; after these are used up, all that were found
	at      int    // of found
	more    bool
	over    bool

	// alone says that a document with a similarity of its own becomes a hit at once. The walk then returns it as a part without rows,
	// because bitmaps are expensive to make.
	alone bool
	part  bucket // the last such part
	entry [1]entry
}

// newVectorWalk returns the walk of rule i through a bucket.
func newVectorWalk(s *search, b *bucket, i int) *vectorWalk {
	w := &vectorWalk{s: s, b: b, readers: vectors(&s.job, b.rows), left: b.rows, k: wanted(s, b), more: true}
	if n := s.r.PageSize; n > 0 && slices.ContainsFunc(w.readers, approximate) {
		w.k = min(n, s.r.MaxTotal, b.n)
	}
	w.alone = (i+1 == len(s.rules) || !asksAll(s)) && s.rounds == nil && s.out.distinct == nil && s.out.groups == nil
	if s.out.distinct != nil {
		w.k *= 2 // some will be duplicates
	}
	return w
}

func (w *vectorWalk) next() (*bucket, verdict) {
	for w.at == len(w.found) {
		if w.at > 0 {
			w.left = w.left.andNot(rowsNear(w.found, len(w.left)))
			w.found, w.at = nil, 0
		}
		switch {
		case w.more:
			w.found, w.more = nearest(&w.s.job, w.readers, w.left, w.k)
			w.k *= 4
		case w.over || w.s.r.Vectors.Only:
			return nil, verdict{}
		default:
			w.over = true
			return w.b.part(w.left), verdict{value: SortValue{Class: OfNothing}}
		}
	}
	begin := w.at
	for w.at++; w.at < len(w.found) && w.found[w.at].similarity == w.found[begin].similarity; {
		w.at++
	}
	n := w.found[begin]
	said := verdict{value: shownSimilarity(&w.s.request, n)}
	if w.alone && w.at == begin+1 {
		w.entry[0] = entry{row: n.row, segment: n.segment}
		w.part = bucket{n: 1, entries: w.entry[:]}
		return &w.part, said
	}
	return w.b.part(rowsNear(w.found[begin:w.at], len(w.left))), said
}

// nearest returns about k of the remaining documents, the nearest first and equally near ones by segment and row. Groups of equally
// near ones are complete. more says that there are others with vectors.
func nearest(s *job, readers []*segment.Vectors, left rows, k int) (found []near, more bool) {
	var scored []segment.Scored
	signs := make([]*segment.FilterSigns, len(readers))
	for seg, v := range readers {
		if v != nil && left[seg] != nil {
			signs[seg] = signsOfFilter(s, seg, v)
		}
	}
	cut := float32(-1) // documents no farther than this may be missing
	for _, q := range s.r.Vectors.Vectors {
		for seg, v := range readers {
			if v == nil || left[seg] == nil {
				continue
			}
			allowed := left[seg]
			if int(allowed.GetCardinality()) == s.ix.Segments[seg].Rows() {
				allowed = nil
			}
			scored = v.SearchGathered(scored[:0], q, k+1, allowed, signs[seg])
			if len(scored) > k {
				cut, more = max(cut, scored[k].Similarity), true
			}
			for _, x := range scored {
				found = append(found, near{x.Similarity, uint16(seg), uint32(x.Row)})
			}
		}
	}
	if len(s.r.Vectors.Vectors) > 1 {
		found = bestNear(found)
	}
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), cmp.Compare(a.segment, b.segment), cmp.Compare(a.row, b.row))
	})
	if more {
		n, _ := slices.BinarySearchFunc(found, cut, func(x near, cut float32) int { return cmp.Compare(cut, x.similarity) })
		found = found[:n]
	}
	return found, more
}

// bestNear keeps each document once, with its best similarity.
func bestNear(found []near) []near {
	slices.SortFunc(found, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.segment, b.segment), cmp.Compare(a.row, b.row), cmp.Compare(b.similarity, a.similarity))
	})
	return slices.CompactFunc(found, func(a, b near) bool { return a.segment == b.segment && a.row == b.row })
}

// rowsNear returns documents as a set.
func rowsNear(found []near, segments int) rows {
	numbers := make([][]uint32, segments)
	for _, n := range found {
		numbers[n.segment] = append(numbers[n.segment], n.row)
	}
	return ofLists(numbers)
}
