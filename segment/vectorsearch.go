package segment

import (
	"cmp"
	"math"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
	"svc/simd"
)

// Scored is a row with the similarity of its best vector to a query: (1 + cosine) ⁄ 2, or of binary
// embedders the share of equal bits.
type Scored struct {
	Row        Row
	Similarity float32
}

// compareScored orders by falling similarity, then by row.
func compareScored(a, b Scored) int {
	return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Row, b.Row))
}

// leastNorms is the product of two norms up to which a cosine is not computed: the epsilon of float32.
const leastNorms = 1.0 / (1 << 23)

// similarityOf returns 1 − (1 − cosine) ⁄ 2 of a dot product and the product of the norms.
func similarityOf(dot, norms float32) float32 {
	if norms <= leastNorms {
		return 1
	}
	cos := min(max(dot/norms, -1), 1)
	return 1 - (1-cos)/2
}

// wideSimilarity computes in 64 bits, for vectors whose squares leave the range of float32. What is
// no number then, because a component is none, is similar to nothing.
func wideSimilarity(a, b []float32) float32 {
	var dot, aa, bb float64
	for i := range a {
		x, y := float64(a[i]), float64(b[i])
		dot, aa, bb = dot+x*y, aa+x*x, bb+y*y
	}
	norms := math.Sqrt(aa) * math.Sqrt(bb)
	if norms <= leastNorms {
		return 1
	}
	cos := min(max(dot/norms, -1), 1)
	if math.IsNaN(cos) {
		return 0
	}
	return float32(1 - (1-cos)/2)
}

// vectorSearch is one search under way, with its scratch memory.
type vectorSearch struct {
	v    *Vectors
	q    []float32
	norm float32  // of q
	bits []uint64 // of q, for a binary embedder

	normal []float32
	code   []int8
	found  []ann.Neighbour
	packed []byte
	best   []Scored
	// unit times a score of codes is about the cosine; margin is more than it is wrong by.
	unit, margin float32
}

var vectorSearches = sync.Pool{New: func() any { return new(vectorSearch) }}

// errorDeviations is how many standard deviations of the error of rounding to codes a margin has.
const errorDeviations = 5

// Search appends the k rows whose best vectors are most similar to q, best first, equal ones by
// ascending row; allowed (nil: all) restricts the rows. Similarities are exact; that a row is missed is
// possible in segments with a graph, on average for two in a hundred of the best at most. A query of
// another length than the embedder's dimensions finds nothing.
func (v *Vectors) Search(dst []Scored, q []float32, k int, allowed *roaring.Bitmap) []Scored {
	return v.SearchEffort(dst, q, k, 0, allowed)
}

// usualEffort is how many candidates a walk through a graph keeps at least.
const usualEffort = 100

// SearchEffort is Search with another effort: how many candidates a walk through a graph keeps, at least
// those that k asks for; 0 for the usual one. More misses less and takes longer.
func (v *Vectors) SearchEffort(dst []Scored, q []float32, k, effort int, allowed *roaring.Bitmap) []Scored {
	if k <= 0 || v.vectors == 0 || len(q) != v.shape.Dimensions {
		return dst
	}
	candidates := v.vectors
	if allowed != nil {
		if allowed = v.vectorsOf(allowed); allowed.GetCardinality() == 0 {
			return dst
		}
		if candidates = int(allowed.GetCardinality()); candidates == v.vectors {
			allowed = nil
		}
	}
	s := vectorSearches.Get().(*vectorSearch)
	defer vectorSearches.Put(s)
	s.begin(v, q)
	// A row may come with several of its vectors.
	wanted := k * max(1, v.vectors/max(1, v.entries))
	if effort == 0 {
		effort = max(usualEffort, 2*wanted)
	}
	switch {
	case v.codes == nil || candidates <= max(directVectors, 2*wanted) || s.norm < shortQuery:
		s.direct(k, allowed)
	case !s.walk(k, max(effort, wanted), candidates, allowed):
		s.scan(k, wanted, candidates, allowed)
	}
	return append(dst, s.best...)
}

// directVectors is up to how many candidates full rows are compared at once.
const directVectors = 64

func (s *vectorSearch) begin(v *Vectors, q []float32) {
	s.v, s.q, s.best = v, q, s.best[:0]
	if v.shape.Binary {
		s.packed = appendPacked(s.packed[:0], q, len(q))
		s.bits = alias[uint64](s.packed)
		s.norm = 1
		return
	}
	s.norm = float32(math.Sqrt(float64(simd.Dot(q, q))))
	if v.codes == nil {
		return
	}
	// The query has a scale of its own: nothing of it is cut off.
	s.normal = appendNormal(s.normal[:0], q)
	largest := float32(0)
	for _, x := range s.normal {
		largest = max(largest, x, -x)
	}
	scale := 127 / max(largest, 1e-3)
	s.code = ann.Quantizer{Dimensions: len(q), Scale: scale}.AppendCode(s.code[:0], s.normal)
	stored := v.quantizer.Scale
	s.unit = 1 / (scale * stored)
	// Each product of components is wrong by the other one times an error of rounding, whose variance is 1 ⁄ 12.
	s.margin = errorDeviations * float32(math.Sqrt(float64(1/(scale*scale)+1/(stored*stored))/12))
}

// similarity compares the query with the full row of a vector.
func (s *vectorSearch) similarity(vector uint32) float32 {
	row := s.v.bytes(int(vector), int(vector)+1)
	if s.bits != nil && s.v.shape.Binary {
		bits := alias[uint64](row)
		return 1 - float32(simd.Hamming(s.bits, bits))/float32(64*len(bits))
	}
	full := alias[float32](row)
	dot, norms := simd.Dot(s.q, full), s.norm*float32(math.Sqrt(float64(simd.Dot(full, full))))
	if dot-dot != 0 || norms-norms != 0 {
		return wideSimilarity(s.q, full)
	}
	return similarityOf(dot, norms)
}

// direct compares the full rows of all candidates.
func (s *vectorSearch) direct(k int, allowed *roaring.Bitmap) {
	top := topRows{keep: k, heap: s.best[:0]}
	last := Scored{Similarity: -1}
	add := func(vector uint32) {
		x := Scored{Row(s.v.owner(int(vector))), s.similarity(vector)}
		if x.Row == last.Row && last.Similarity >= 0 {
			last.Similarity = max(last.Similarity, x.Similarity)
			return
		}
		top.add(last)
		last = x
	}
	if allowed == nil {
		for i := range uint32(s.v.vectors) {
			add(i)
		}
	} else {
		var some [256]uint32
		for it := allowed.ManyIterator(); ; {
			n := it.NextMany(some[:])
			if n == 0 {
				break
			}
			for _, i := range some[:n] {
				add(i)
			}
		}
	}
	top.add(last)
	s.best = top.heap
	slices.SortFunc(s.best, compareScored)
}

// walk searches the graph; it reports whether there is one, it is worth it, and it found enough.
func (s *vectorSearch) walk(k, effort, candidates int, allowed *roaring.Bitmap) bool {
	if s.v.encoded == nil || candidates < effort*50 {
		return false
	}
	g, err := s.v.graph()
	if err != nil {
		return false // what is scanned instead is sound
	}
	s.found = g.Search(s.found[:0], s.code, effort, allowed)
	s.addOutliers(allowed)
	s.rescore(k)
	return len(s.best) >= min(k, candidates)
}

// scan compares codes of all candidates, as many as it takes until the full rows of the best ones
// show that no other can be among the k.
func (s *vectorSearch) scan(k, wanted, candidates int, allowed *roaring.Bitmap) {
	for keep := wanted + wanted/2 + 32; keep < candidates/4; keep *= 4 {
		s.found = ann.Scan(s.found[:0], s.v.coded(), s.code, keep, allowed)
		s.best = s.best[:0]
		s.addOutliers(allowed)
		if s.rescore(k) {
			return
		}
	}
	s.direct(k, allowed)
}

// addOutliers compares the query with the candidates whose codes do not stand for them.
func (s *vectorSearch) addOutliers(allowed *roaring.Bitmap) {
	for _, i := range s.v.outliers {
		if int(i) < s.v.vectors && (allowed == nil || allowed.Contains(i)) {
			s.best = append(s.best, Scored{Row(s.v.owner(int(i))), s.similarity(i)})
		}
	}
}

// rescore compares the query with the full rows of what was found, best code first, until those that
// are left are further away than the k best by more than their codes can be wrong. It reports whether that is so.
func (s *vectorSearch) rescore(k int) bool {
	step := k + k/4 + 8
	for next := 0; next < len(s.found); {
		end := min(next+step, len(s.found))
		for _, c := range s.found[next:end] {
			s.best = append(s.best, Scored{Row(s.v.owner(int(c.Row))), s.similarity(c.Row)})
		}
		next, step = end, k/4+8
		s.settle(k)
		left := s.found[min(next, len(s.found)-1)]
		if estimate := (1 + float32(left.Score)*s.unit + s.margin) / 2; len(s.best) == k && estimate < s.best[k-1].Similarity {
			return true
		}
	}
	s.settle(k)
	return false
}

// settle sorts what was compared, keeping the best of each row and k at most.
func (s *vectorSearch) settle(k int) {
	if s.v.ends != nil || len(s.v.outliers) > 0 {
		slices.SortFunc(s.best, func(a, b Scored) int {
			return cmp.Or(cmp.Compare(a.Row, b.Row), cmp.Compare(b.Similarity, a.Similarity))
		})
		s.best = slices.CompactFunc(s.best, func(a, b Scored) bool { return a.Row == b.Row })
	}
	slices.SortFunc(s.best, compareScored)
	s.best = s.best[:min(k, len(s.best))]
}

// topRows keeps the best of what it is shown, in a heap with the worst on top.
type topRows struct {
	keep int
	heap []Scored
}

func (t *topRows) add(x Scored) {
	if x.Similarity < 0 {
		return
	}
	if len(t.heap) < t.keep {
		t.heap = append(t.heap, x)
		for i := len(t.heap) - 1; i > 0; {
			parent := (i - 1) / 2
			if compareScored(t.heap[i], t.heap[parent]) <= 0 {
				break
			}
			t.heap[i], t.heap[parent] = t.heap[parent], t.heap[i]
			i = parent
		}
		return
	}
	if compareScored(x, t.heap[0]) >= 0 {
		return
	}
	t.heap[0] = x
	for i := 0; ; {
		child := 2*i + 1
		if child >= len(t.heap) {
			return
		}
		if child+1 < len(t.heap) && compareScored(t.heap[child+1], t.heap[child]) > 0 {
			child++
		}
		if compareScored(t.heap[child], t.heap[i]) <= 0 {
			return
		}
		t.heap[i], t.heap[child] = t.heap[child], t.heap[i]
		i = child
	}
}

// vectorsOf returns the vectors of rows.
func (v *Vectors) vectorsOf(rows *roaring.Bitmap) *roaring.Bitmap {
	if v.rows == nil && v.ends == nil {
		if rows.IsEmpty() || int(rows.Maximum()) < v.vectors {
			return rows
		}
		inside := rows.Clone()
		inside.RemoveRange(uint64(v.vectors), 1<<32)
		return inside
	}
	b := roaring.New()
	from, to := 0, 0 // a stretch of vectors
	var some [256]uint32
	for it := rows.ManyIterator(); ; {
		n := it.NextMany(some[:])
		if n == 0 {
			b.AddRange(uint64(from), uint64(to))
			return b
		}
		for _, row := range some[:n] {
			entry, ok := v.find(Row(row))
			if !ok {
				continue
			}
			first, end := v.span(entry)
			if first != to {
				b.AddRange(uint64(from), uint64(to))
				from = first
			}
			to = end
		}
	}
}
