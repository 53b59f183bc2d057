package segment

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
	"svc/internal/mapped"
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
	switch {
	case a.Similarity > b.Similarity:
		return -1
	case a.Similarity < b.Similarity:
		return 1
	}
	return cmp.Compare(a.Row, b.Row)
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

// wideSimilarity computes in 64 bits, for vectors whose squares exceed float32. A vector with a component that is not a number is
// similar to no other.
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

// vectorSearch is one search in progress, with its scratch memory.
type vectorSearch struct {
	v    *Vectors
	q    []float32
	norm float32 // of q
	code []int8  // of q; its bits for a binary embedder
	// unit times a score of codes is about the cosine; margin is more than it is wrong by.
	unit, margin float32
	perfect      int64 // the score of a code like that of q

	normal   []float32
	bytes    []int8 // memory for code
	packed   []byte
	found    []ann.Neighbour
	rows     *roaring.Bitmap // of those found only these count; nil: all do
	gathered *FilterSigns    // of the rows that may be found; nil: none
	ids      []uint32
	best     []Scored

	dots, squares []float32
	wide          []float32 // a row of half precision
	offset        []float32 // the query less the centre of the signs
	offsetCode    []int8    // and its code
	differ        []int32
	pruner        vectorPruner
}

var vectorSearches = sync.Pool{New: func() any { return new(vectorSearch) }}

const (
	// errorDeviations is how many standard deviations of the error of rounding to codes a margin has.
	errorDeviations = 5

	// walkShare: a walk costs at least as much as a scan of so many rows for each step of its effort, or wanted vector. allowedShare:
	// the same if only some rows may be found and the walk leads through the others, too.
	walkShare    = 48
	allowedShare = 84

	// usualCode: a scan of longer codes is compared with one of signs, which is an eighth, rather than with a walk.
	usualCode = 384

	// looseShare: if at most one in so many rows is excluded, a walk skips excluded rows and builds no list of allowed vectors. If
	// vectors have the numbers of their rows, no list is needed, and a walk that knows the allowed rows is faster.
	looseShare = 4

	// passedOver is how many of the nearest a walk expects to pass over, even if very few rows are.
	passedOver = 2

	// From usualGraph vectors, and from usualDimensions dimensions on, a walk of the same effort finds less.
	usualGraph      = 1 << 15
	usualDimensions = 1 << 9

	// fewDimensions: rows of fewer have more neighbours that are about as near, and a walk of the same effort finds less.
	fewDimensions = 1 << 6
)

// Search appends the k rows whose best vectors are most similar to q, best first, equal ones by ascending row. allowed restricts the
// rows (nil: all rows). Similarities are exact. In segments with a graph, a search may miss rows: on average, at most two of the
// hundred best. A query whose length is not the number of dimensions finds nothing.
func (v *Vectors) Search(dst []Scored, q []float32, k int, allowed *roaring.Bitmap) []Scored {
	return v.search(dst, q, k, 0, allowed, nil)
}

// SearchEffort is Search with another effort: the number of steps without a new best vector after which a walk through a graph ends,
// or 0 for the default. A higher effort misses fewer rows and takes longer.
func (v *Vectors) SearchEffort(dst []Scored, q []float32, k, effort int, allowed *roaring.Bitmap) []Scored {
	return v.search(dst, q, k, effort, allowed, nil)
}

func (v *Vectors) search(dst []Scored, q []float32, k, effort int, allowed *roaring.Bitmap, gathered *FilterSigns) []Scored {
	if k <= 0 || v.vectors == 0 || len(q) != v.shape.Dimensions {
		return dst
	}
	s := vectorSearches.Get().(*vectorSearch)
	defer s.end()
	s.begin(v, q)
	s.gathered = gathered
	// A row may come with several of its vectors.
	wanted := k * ((v.vectors + v.entries - 1) / v.entries)
	if effort == 0 {
		effort = v.effortFor(wanted)
	}
	candidates := v.vectors
	if allowed != nil {
		if s.walkPast(k, wanted, effort, allowed) {
			return append(dst, s.best...)
		}
		allowed = v.vectorsOf(allowed)
		if candidates = int(allowed.GetCardinality()); candidates == 0 {
			return dst
		}
		if candidates == v.vectors {
			allowed = nil
		}
	}
	switch {
	case v.codes == nil && !v.shape.Binary || candidates <= max(directVectors, 2*wanted) || s.norm < shortQuery:
		s.direct(k, allowed)
	default:
		s.encode()
		if !s.glance(k, wanted, allowed) && !s.walk(k, wanted, effort, candidates, allowed) {
			s.scan(k, wanted, candidates, allowed)
		}
	}
	return append(dst, s.best...)
}

func (s *vectorSearch) begin(v *Vectors, q []float32) {
	s.v, s.q, s.norm, s.pruner, s.best, s.rows = v, q, 1, vectorPruner{}, s.best[:0], nil
	if v.shape.Binary {
		s.packed = appendPacked(s.packed[:0], q, len(q))
		return
	}
	s.norm = float32(math.Sqrt(float64(simd.Dot(q, q))))
}

// encode makes the query's code.
func (s *vectorSearch) encode() {
	v, q := s.v, s.q
	if v.shape.Binary {
		s.code, s.perfect = alias[int8](s.packed), 0
		return
	}
	s.normal = appendNormal(s.normal[:0], q)
	scale, stored := queryScale(s.normal), v.quantizer.Scale
	s.code = ann.Quantizer{Dimensions: len(q), Scale: scale}.AppendCode(s.bytes[:0], s.normal)
	s.bytes = s.code
	s.unit, s.perfect = 1/(scale*stored), int64(scale*stored)
	// The error of each product of components is a component times the rounding error of the other one. The variance of a rounding
	// error is 1 ⁄ 12.
	s.margin = errorDeviations * float32(math.Sqrt(float64(1/(scale*scale)+1/(stored*stored))/12))
}

// queryScale returns the scale of the code of a query; no component is clipped.
func queryScale(q []float32) float32 { return 127 / max(simd.Largest(q), 1e-3) }

// end gives the scratch memory back, without what belongs to others.
func (s *vectorSearch) end() {
	s.v, s.q, s.rows, s.gathered = nil, nil, nil, nil
	vectorSearches.Put(s)
}

// bitSimilarity returns the share of equal bits of two rows that differ in so many bits.
func (v *Vectors) bitSimilarity(differ int64) float32 {
	return 1 - float32(differ)/float32(64*v.shape.words())
}

// atMost returns the maximum similarity of a vector whose code has this score.
func (s *vectorSearch) atMost(score int32) float32 {
	if s.v.shape.Binary {
		return s.v.bitSimilarity(-int64(score))
	}
	return (1 + float32(score)*s.unit + s.margin) / 2
}

// similarity returns the similarity to a vector, given its dot product with the query and its sum of squares.
func (s *vectorSearch) similarity(dot, squares float32, vector int) float32 {
	norms := s.norm * float32(math.Sqrt(float64(squares)))
	if dot-dot != 0 || norms-norms != 0 {
		full := s.v.shape.numbers(s.wide, s.v.bytes(vector, vector+1))
		if s.v.shape.Half {
			s.wide = full
		}
		return wideSimilarity(s.q, full)
	}
	return similarityOf(dot, norms)
}

// vectorPruner excludes vectors that are clearly less similar than the worst of the k best so far. It compares squares of cosines,
// which takes neither a root nor a quotient. The zero value excludes none.
type vectorPruner struct {
	floor       float32 // square of the least cosine, times the square of the norm of the query
	least, most float32 // sums of squares outside of this range are left to similarity
}

// prune sets the pruner to exclude vectors that are less similar than worst.
func (s *vectorSearch) prune(worst float32) {
	const less = 1 - 1e-4 // a margin above rounding errors
	cos, qq := (2*worst-1)*less, s.norm*s.norm
	s.pruner = vectorPruner{}
	if cos > 0 && qq-qq == 0 {
		s.pruner = vectorPruner{floor: cos * cos * qq, least: 2 * leastNorms * leastNorms / qq, most: ordinary / qq}
	}
}

// ordinary is a product of squared norms, or the absolute value of a dot product, that is far from overflowing.
const ordinary = 1e15

// excludes reports whether a vector with this dot product and sum of squares is excluded.
func (s *vectorPruner) excludes(dot, squares float32) bool {
	return (dot <= 0 || dot*dot < s.floor*squares) && squares > s.least && squares < s.most && dot > -ordinary
}

// compare appends the rows of the vectors in s.ids to best, with their similarities, except those that the pruner excludes.
func (s *vectorSearch) compare() {
	v, n := s.v, len(s.ids)
	if v.shape.Binary {
		v.touchRows(s.ids)
		s.differ = slices.Grow(s.differ[:0], n)[:n]
		simd.HammingGather(s.differ, alias[uint64](s.packed), alias[uint64](v.full), s.ids)
		for at, i := range s.ids {
			s.best = append(s.best, Scored{Row(v.owner(int(i))), v.bitSimilarity(int64(s.differ[at]))})
		}
		return
	}
	s.score()
	for at := range s.dots {
		if !s.pruner.excludes(s.dots[at], s.squares[at]) {
			s.best = append(s.best, s.scored(at))
		}
	}
}

// score computes the dot products and sums of squares of the vectors that s.ids names.
func (s *vectorSearch) score() {
	n := len(s.ids)
	s.v.touchRows(s.ids)
	s.dots, s.squares = slices.Grow(s.dots[:0], n)[:n], slices.Grow(s.squares[:0], n)[:n]
	if s.v.shape.Half {
		simd.DotSquaresGatherHalf(s.dots, s.squares, s.q, alias[uint16](s.v.full), s.ids)
		return
	}
	simd.DotSquaresGather(s.dots, s.squares, s.q, alias[float32](s.v.full), s.ids)
}

// scored returns the row of the vector s.ids[at], with this vector's similarity.
func (s *vectorSearch) scored(at int) Scored {
	i := int(s.ids[at])
	return Scored{Row(s.v.owner(i)), s.similarity(s.dots[at], s.squares[at], i)}
}

// compareBest is compare for a sorted best of at most k rows, and keeps it sorted. No row occurs twice.
func (s *vectorSearch) compareBest(k int) {
	if s.v.shape.Binary {
		before := len(s.best)
		s.compare()
		s.insert(k, before)
		return
	}
	s.score()
	for at := range s.dots {
		if s.pruner.excludes(s.dots[at], s.squares[at]) {
			continue
		}
		before := len(s.best)
		s.best = append(s.best, s.scored(at))
		if s.insert(k, before); len(s.best) == k {
			s.prune(s.best[k-1].Similarity)
		}
	}
}

// direct compares the full rows of all candidates.
func (s *vectorSearch) direct(k int, allowed *roaring.Bitmap) {
	const some = 256
	ids := slices.Grow(s.ids[:0], some)[:some]
	s.best = s.best[:0]
	worst := float32(-1) // of the k best so far
	compare := func(n int) {
		s.ids = ids[:n]
		if s.v.ends == nil {
			s.compareBest(k)
			return
		}
		before := len(s.best)
		s.compare()
		better := slices.DeleteFunc(s.best[before:], func(x Scored) bool { return x.Similarity < worst })
		if s.best = s.best[:before+len(better)]; len(s.best) >= k+2*some {
			if s.settle(k); len(s.best) == k {
				worst = s.best[k-1].Similarity
				s.prune(worst)
			}
		}
	}
	if allowed == nil {
		for at := 0; at < s.v.vectors; at += some {
			n := min(some, s.v.vectors-at)
			for i := range n {
				ids[i] = uint32(at + i)
			}
			compare(n)
		}
	} else {
		for it := allowed.ManyIterator(); ; {
			n := it.NextMany(ids)
			if n == 0 {
				break
			}
			compare(n)
		}
	}
	s.pruner = vectorPruner{}
	if s.v.ends != nil {
		s.settle(k)
	}
}

// insert merges the rows from a place on, without duplicates, into the sorted rows before it, and keeps at most k.
func (s *vectorSearch) insert(k, from int) {
	n := from
	for _, x := range s.best[from:] {
		if n == k && compareScored(s.best[k-1], x) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(s.best[:n], x, compareScored)
		n = min(n+1, k)
		copy(s.best[at+1:n], s.best[at:])
		s.best[at] = x
	}
	s.best = s.best[:n]
}

// effortFor returns the effort of a walk for the wanted number of vectors. With it, recall was measured to be at least 98 %. It grows
// with the size of the graph and the dimensions.
func (v *Vectors) effortFor(wanted int) int {
	effort := wanted/4 + 38
	if v.shape.Dimensions < fewDimensions {
		effort += effort / 3
	}
	effort += effort * bits.Len(uint(v.vectors/usualGraph)) / 6
	return effort + effort*bits.Len(uint(v.shape.Dimensions/usualDimensions))/3
}

// reach returns the reach of a walk of some effort for the wanted number of vectors.
func (s *vectorSearch) reach(wanted, effort int) ann.Reach {
	r := ann.Reach{Pool: wanted + wanted/4 + 8*effort, Wanted: wanted, Patience: effort, Perfect: s.perfect}
	if !s.v.shape.Binary {
		r.Blur = int64(s.margin / s.unit)
	}
	return r
}

// walkPast walks if nearly all rows are allowed, for example if only a few are deleted, and skips the others. It returns true if this
// is the case and it found enough. If signs are compared, it leaves vectors that are numbered like their rows to walk.
func (s *vectorSearch) walkPast(k, wanted, effort int, rows *roaring.Bitmap) bool {
	v := s.v
	others := v.r.rows - int(rows.GetCardinality()) // with a vector or without one
	if v.encoded == nil || v.comparesSigns() && (v.rows == nil && v.ends == nil || v.signsInstead()) || s.norm < shortQuery || looseShare*others > v.entries {
		return false
	}
	s.encode()
	s.rows = rows
	defer func() { s.rows = nil }()
	return s.glance(k, wanted, nil) || s.walk(k, wanted, effort+effort*others/(v.entries-others), v.vectors, nil)
}

// counts reports whether the row of a vector may be found.
func (s *vectorSearch) counts(vector uint32) bool {
	return s.rows == nil || s.rows.Contains(s.v.owner(int(vector)))
}

// walk searches the graph. It returns true if there is one, the walk is worthwhile, and it found enough.
func (s *vectorSearch) walk(k, wanted, effort, candidates int, allowed *roaring.Bitmap) bool {
	if s.v.encoded == nil {
		return false
	}
	g, err := s.v.graph()
	if err != nil {
		return false // scanning still works
	}
	reach := s.reach(wanted, effort)
	if s.rows != nil {
		reach.Wanted += passedOver + wanted*(s.v.r.rows-int(s.rows.GetCardinality()))/s.v.entries*2
	}
	share := walkShare
	if allowed != nil {
		share = allowedShare
	}
	scans := allowed == nil && s.rows == nil && s.v.scansSigns(reach)
	signs, instead := ann.Signs{}, scans || s.v.signsInstead()
	compares := instead || allowed != nil && s.v.comparesSigns()
	if compares || s.v.comparesSigns() && s.v.signs.Forecast() {
		signs = s.signsOf()
		signs.Instead = instead
		if s.gathered != nil {
			signs.Gathered = &s.gathered.signs
		}
	}
	if compares {
		share = share * usualCode / max(usualCode, s.v.shape.Dimensions)
	}
	for ; candidates >= share*max(reach.Wanted, reach.Patience); reach = reach.Times(4) {
		look, among := 0, allowed
		keep := s.v.keptBySigns(reach.Wanted, candidates)
		if scans { // a greater effort misses less
			keep = max(keep, keep*effort/s.v.effortFor(wanted))
		}
		if compares && keep <= candidates/keptShare {
			if look = keep; allowed == nil {
				among = s.v.all
			}
		}
		err := mapped.Guard(func() error {
			s.found = g.Search(s.found[:0], s.code, reach, among, signs, look)
			return nil
		})
		if err != nil {
			return false // of the graph, or of the codes, which a scan meets as well
		}
		if s.rows != nil && !s.passOver(wanted, reach.Wanted) {
			continue
		}
		s.best = s.best[:0]
		s.addOutliers(allowed)
		s.rescore(k)
		if len(s.best) == k {
			s.complete(k)
			return true
		}
	}
	return false
}

// passOver removes excluded rows from found. It reports whether enough remain of the best ones, which the walk took for
// the wanted hits.
func (s *vectorSearch) passOver(wanted, best int) bool {
	enough := 0
	for _, n := range s.found[:min(best, len(s.found))] {
		if s.counts(n.Row) {
			enough++
		}
	}
	s.found = slices.DeleteFunc(s.found, func(n ann.Neighbour) bool { return !s.counts(n.Row) })
	return enough >= wanted
}

// complete compares all vectors of the best rows: the walk may have missed the best of a row that has several.
func (s *vectorSearch) complete(k int) {
	if s.v.ends == nil {
		return
	}
	s.ids = s.ids[:0]
	for _, x := range s.best {
		if entry, ok := s.v.find(x.Row); ok {
			for i, end := s.v.span(entry); i < end; i++ {
				s.ids = append(s.ids, uint32(i))
			}
		}
	}
	s.compare()
	s.settle(k)
}

// scan compares the codes of all candidates. It keeps more and more of the best ones, until the full rows show that no other can be
// among the k.
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

// addOutliers compares the query with the candidates whose codes do not represent them.
func (s *vectorSearch) addOutliers(allowed *roaring.Bitmap) {
	s.ids = s.ids[:0]
	for _, i := range s.v.outliers {
		if int(i) < s.v.vectors && (allowed == nil || allowed.Contains(i)) && s.counts(i) {
			s.ids = append(s.ids, i)
		}
	}
	s.compare()
}

// rescore compares the query with the full rows of found, best code first, until the rest is further away than the k best
// by more than the error of codes. It reports whether it got that far.
func (s *vectorSearch) rescore(k int) bool {
	step := k + k/4 + 8
	s.fetch(min(len(s.found), step), min(len(s.found), 2*step))
	for next := 0; next < len(s.found); {
		end := min(next+step, len(s.found))
		s.ids = s.ids[:0]
		for _, c := range s.found[next:end] {
			s.ids = append(s.ids, c.Row)
		}
		s.compare()
		s.settle(k)
		// Of equal ones those that are left are in higher rows.
		if next, step = end, k/4+8; len(s.best) == k && s.atMost(s.found[min(next, len(s.found)-1)].Score) <= s.best[k-1].Similarity {
			return true
		}
	}
	s.settle(k)
	return false
}

// fetch requests the full rows of the first n found vectors, unless those of the first few are in memory. These are compared first,
// and mostly they are enough.
func (s *vectorSearch) fetch(few, n int) {
	b, width := &s.v.r.blocks, s.v.shape.rowBytes()
	if b.sound.Load() || b.file == nil {
		return
	}
	s.ids = s.ids[:0]
	for _, c := range s.found[:n] {
		s.ids = append(s.ids, c.Row)
	}
	if s.v.r.waits(s.v.full, width, s.ids[:few]) {
		b.fetch(s.v.full, width, s.ids)
	}
}

// settle sorts the compared vectors, keeping the best of each row, and at most k.
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
	dense := make([]uint64, (v.vectors+63)/64)
	entry := 0
	var some [256]uint32
	for it := rows.ManyIterator(); ; {
		n := it.NextMany(some[:])
		if n == 0 {
			return roaring.FromDense(dense, false)
		}
		for _, row := range some[:n] {
			if entry = v.findFrom(entry, row); entry == v.entries {
				break
			}
			if v.rows != nil && v.rows[entry] != row {
				continue
			}
			for i, end := v.span(entry); i < end; i++ {
				dense[i/64] |= 1 << (i % 64)
			}
		}
	}
}

// findFrom returns the first entry, not before one that is known to be none after it, of the row or one after it.
func (v *Vectors) findFrom(entry int, row uint32) int {
	if v.rows == nil {
		return min(int(row), v.entries)
	}
	step := 1
	for entry+step < v.entries && v.rows[entry+step] < row {
		entry, step = entry+step, 2*step
	}
	end := min(entry+step+1, v.entries)
	i, _ := slices.BinarySearch(v.rows[min(entry, end):end], row)
	return entry + i
}
