package rank

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// judged is a document in the reference implementation.
type judged struct {
	*document
	similarity float32 // −1: no vector
}

// similar is the reference similarity of a document's nearest vector.
func similar(d *document, queries [][]float32) float64 {
	best := -1.0
	for at := 0; at < len(d.vectors); at += testEmbedder.Dimensions {
		v := d.vectors[at : at+testEmbedder.Dimensions]
		for _, q := range queries {
			dot, vv, qq := 0.0, 0.0, 0.0
			for i := range v {
				dot, vv, qq = dot+float64(v[i]*q[i]), vv+float64(v[i]*v[i]), qq+float64(q[i]*q[i])
			}
			s := 1.0
			if vv*qq > 0 {
				s = (1 + dot/math.Sqrt(vv*qq)) / 2
			}
			best = max(best, s)
		}
	}
	return best
}

// exact returns the segment's similarity of one row, whose last bits decide about equality.
func exact(t *testing.T, ix *Index, d *document, queries [][]float32) float32 {
	for _, s := range ix.Segments {
		for row := range s.Rows() {
			if s.DocID(segment.Row(row)) != d.id || s.Deleted != nil && s.Deleted.ContainsInt(row) {
				continue
			}
			best := float32(-1)
			for _, q := range queries {
				for _, x := range s.Vectors(testEmbedder.ID).Search(nil, q, 1, roaring.BitmapOf(uint32(row))) {
					best = max(best, x.Similarity)
				}
			}
			if want := similar(d, queries); math.Abs(float64(best)-want) > 1e-6 {
				t.Fatalf("similarity of document %d is %v, want %v", d.id, best, want)
			}
			return best
		}
	}
	t.Fatalf("no document %d", d.id)
	return 0
}

// keyOrder compares two documents by a sort on price, which has only numbers.
func keyOrder(a, b *document, desc bool) int {
	value := func(d *document) (float64, bool) {
		all := d.values["price"]
		if len(all) == 0 {
			return 0, false
		}
		x := all[0].(float64)
		for _, v := range all {
			if desc {
				x = max(x, v.(float64))
			} else {
				x = min(x, v.(float64))
			}
		}
		return x, true
	}
	x, hasX := value(a)
	y, hasY := value(b)
	switch {
	case !hasX || !hasY:
		if hasX == hasY {
			return 0
		}
		if hasX {
			return -1
		}
		return 1
	case desc:
		return cmp.Compare(y, x)
	}
	return cmp.Compare(x, y)
}

// slowSemantic ranks all documents one by one. before and after are the directions of sorts on price before and after the vector
// rule; 0: no sort.
func slowSemantic(docs []judged, r *Request, before, after int) (hits []judged, total int) {
	if r.Vectors.Only {
		before, after = 0, 0
	}
	sorted := func(dir int, a, b judged) int {
		if dir == 0 {
			return 0
		}
		return keyOrder(a.document, b.document, dir < 0)
	}
	if before != 0 {
		after = 0 // a field is sorted by only once
	}
	docs = slices.Clone(docs)
	slices.SortFunc(docs, func(a, b judged) int {
		return cmp.Or(sorted(before, a, b), cmp.Compare(b.similarity, a.similarity), sorted(after, a, b), cmp.Compare(a.id, b.id))
	})
	skip := min(r.Offset, r.MaxTotal)
	limit := min(r.Limit, r.MaxTotal-skip)
	cutFrom := 0
	if r.Exhaustive && r.Threshold != nil {
		cutFrom, skip, limit = skip, 0, r.MaxTotal
	}
	dropped := map[segment.DocID]bool{}
	seen := map[any]bool{}
	// groups splits a sorted list where documents differ.
	groups := func(all []judged, differ func(a, b judged) bool) (list [][]judged) {
		for i := range all {
			if i == 0 || differ(all[i-1], all[i]) {
				list = append(list, nil)
			}
			list[len(list)-1] = append(list[len(list)-1], all[i])
		}
		return list
	}
	for _, outer := range groups(docs, func(a, b judged) bool { return sorted(before, a, b) != 0 }) {
	near:
		for _, near := range groups(outer, func(a, b judged) bool { return a.similarity != b.similarity }) {
			for _, leaf := range groups(near, func(a, b judged) bool { return sorted(after, a, b) != 0 }) {
				if len(hits) == limit || r.Vectors.Only && near[0].similarity < 0 {
					break near
				}
				if r.Threshold != nil && shown(r, leaf[0]) < *r.Threshold {
					for _, d := range outer {
						if d.similarity <= leaf[0].similarity {
							dropped[d.id] = true
						}
					}
					break near
				}
				for _, d := range leaf {
					if r.Distinct != "" && len(d.values[r.Distinct]) > 0 {
						v := d.values[r.Distinct][0]
						if seen[v] {
							continue
						}
						seen[v] = true
					}
					if skip > 0 {
						skip--
					} else if len(hits) < limit {
						hits = append(hits, d)
					}
				}
			}
		}
	}
	counted := map[any]bool{}
	for _, d := range slices.SortedFunc(slices.Values(docs), func(a, b judged) int { return cmp.Compare(a.id, b.id) }) {
		if dropped[d.id] {
			continue
		}
		if r.Distinct != "" && len(d.values[r.Distinct]) > 0 {
			v := d.values[r.Distinct][0]
			if counted[v] && (r.Exhaustive || seen[v]) {
				continue
			}
			counted[v] = true
		}
		total++
	}
	if r.Exhaustive && r.Threshold != nil {
		hits = hits[min(cutFrom, len(hits)):]
		hits = hits[:min(len(hits), r.Limit)]
	}
	return hits, min(total, r.MaxTotal)
}

// shown is the score of a document.
func shown(r *Request, d judged) float64 {
	if d.similarity < 0 {
		return 0
	}
	s := d.similarity
	if shift := r.Vectors.Shift; shift != nil {
		s = 0.5 + (s-shift.Mean)*0.4/shift.Sigma
		s = min(1, max(s, 0x1p-23))
	}
	return float64(s)
}

func TestSemanticEqualsPlainEvaluation(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	ran := taken{}
	vector := func() []float32 {
		v := make([]float32, testEmbedder.Dimensions)
		for i := range v {
			v[i] = float32(rng.IntN(4) - 1)
		}
		v[rng.IntN(len(v))] = 1
		return v
	}
	for range 150 {
		before, after := rng.IntN(3)-1, rng.IntN(3)-1
		rules := `"words","typo","proximity"`
		name := map[int]string{1: `"price:asc"`, -1: `"price:desc"`}
		if before != 0 {
			rules = name[before] + "," + rules
		}
		if after != 0 {
			rules += "," + name[after]
		}
		s := parseSettings(t, `{"rankingRules": [`+rules+`], "sortableAttributes": ["price"], "filterableAttributes": ["kind"]}`)
		n := 1 + rng.IntN(120)
		parts := make([][]*document, 1+rng.IntN(3))
		gone := map[segment.DocID]bool{}
		var live []*document
		for id := range n {
			pairs := []any{"title", "x"}
			for range rng.IntN(3) {
				pairs = append(pairs, "price", rng.IntN(3))
			}
			if rng.IntN(4) > 0 {
				pairs = append(pairs, "kind", fmt.Sprint(rng.IntN(6)))
			}
			d := doc(id, pairs...)
			for range rng.IntN(3) {
				d.vectors = append(d.vectors, vector()...)
			}
			p := rng.IntN(len(parts))
			parts[p] = append(parts[p], d)
			if rng.IntN(8) == 0 {
				gone[d.id] = true
			} else {
				live = append(live, d)
			}
		}
		ix := build(t, s, parts, gone)
		for range 8 {
			queries := [][]float32{vector()}
			if rng.IntN(3) == 0 {
				queries = append(queries, vector())
			}
			r := &Request{Universe: universe(ix), Vectors: &VectorQuery{Embedder: testEmbedder.ID, Vectors: queries, Only: rng.IntN(4) == 0},
				Offset: rng.IntN(8), Limit: rng.IntN(30), MaxTotal: 1000, Scores: true, Details: rng.IntN(2) == 0, Values: true}
			if rng.IntN(2) == 0 {
				r.Offset, r.MaxTotal = 0, 1+rng.IntN(40)
			}
			r.Exhaustive = rng.IntN(2) == 0
			if rng.IntN(3) == 0 {
				r.Distinct = "kind"
			}
			if rng.IntN(3) == 0 {
				r.Vectors.Shift = &Shift{Mean: 0.5, Sigma: 0.5}
			}
			if rng.IntN(3) == 0 {
				threshold := float64(rng.IntN(11)) / 10
				r.Threshold = &threshold
			}
			var docs []judged
			for _, d := range live {
				if rng.IntN(4) == 0 { // the filter excludes it
					for i, seg := range ix.Segments {
						for row := range seg.Rows() {
							if seg.DocID(segment.Row(row)) == d.id {
								r.Universe[i].Remove(uint32(row))
							}
						}
					}
					continue
				}
				j := judged{d, -1}
				if len(d.vectors) > 0 {
					j.similarity = exact(t, ix, d, queries)
				}
				docs = append(docs, j)
			}
			if len(docs) == 0 {
				continue
			}
			compareSemantic(t, ran, ix, r, docs, before, after)
		}
	}
	ran.wants(t, nearestFirst, rowByRow)
}

func compareSemantic(t *testing.T, ran taken, ix *Index, r *Request, docs []judged, before, after int) {
	t.Helper()
	got, err := ran.search(ix, r)
	if err != nil {
		t.Fatal(err)
	}
	want, total := slowSemantic(docs, r, before, after)
	describe := func() string {
		threshold := -1.0
		if r.Threshold != nil {
			threshold = *r.Threshold
		}
		return fmt.Sprintf("%d documents, sorts %d %d, offset %d, limit %d, at most %d, exhaustive %v, distinct %q, threshold %v, %+v",
			len(docs), before, after, r.Offset, r.Limit, r.MaxTotal, r.Exhaustive, r.Distinct, threshold, *r.Vectors)
	}
	ids := ""
	for i, d := range want {
		if i > 0 {
			ids += " "
		}
		ids += fmt.Sprint(d.id)
	}
	if found(got) != ids {
		t.Fatalf("%s: found %s, want %s", describe(), found(got), ids)
	}
	if got.Total != total {
		t.Fatalf("%s: total %d, want %d", describe(), got.Total, total)
	}
	for i, h := range got.Hits {
		if score := shown(r, want[i]); math.Abs(h.Score-score) > 1e-6 {
			t.Fatalf("%s: score of %d is %v, want %v", describe(), h.ID, h.Score, score)
		}
		at := slices.IndexFunc(h.Values, func(v ScoreValue) bool { return v.Kind == BySimilarity })
		if at < 0 || h.Values[at].Score != h.Score {
			t.Fatalf("%s: values of %d are %+v", describe(), h.ID, h.Values)
		}
		if r.Details {
			var d struct {
				VectorSort struct {
					Order      int
					Similarity *float64
				}
			}
			if err := json.Unmarshal(h.Details, &d); err != nil || d.VectorSort.Order != at ||
				(d.VectorSort.Similarity == nil) != (want[i].similarity < 0) || d.VectorSort.Similarity != nil && *d.VectorSort.Similarity != h.Score {
				t.Fatalf("%s: details of %d are %s (%v)", describe(), h.ID, h.Details, err)
			}
		}
	}
}

func TestShift(t *testing.T) {
	shift := &Shift{Mean: .75, Sigma: .1}
	for _, c := range []struct{ similarity, want float32 }{{.75, .5}, {.85, .9}, {.5, 1.1920929e-7}, {1, 1}, {0, 1.1920929e-7}} {
		if got := shift.apply(c.similarity); math.Abs(float64(got-c.want)) > 1e-6 || (c.want < 1e-6) != (got < 1e-6) {
			t.Errorf("%v becomes %v, want %v", c.similarity, got, c.want)
		}
	}
	if got := (*Shift)(nil).apply(.3); got != .3 {
		t.Errorf("without a shift .3 becomes %v", got)
	}
}

// TestDistinctCandidatesAreNeverNil checks that a segment of duplicates only has an empty bitmap of candidates, not nil.
func TestDistinctCandidatesAreNeverNil(t *testing.T) {
	s := parseSettings(t, `{"filterableAttributes": ["kind"]}`)
	ix := build(t, s, [][]*document{{doc(0, "kind", "a")}, {doc(1, "kind", "a")}}, nil)
	for _, exhaustive := range []bool{false, true} {
		d := NewDistinct(ix, "kind")
		d.Keep(0, 0)
		got := d.Candidates(universe(ix), exhaustive, math.MaxInt)
		for i, want := range []uint64{1, 0} {
			if got[i] == nil || got[i].GetCardinality() != want {
				t.Errorf("exhaustive %v: candidates of segment %d are %v, want %d", exhaustive, i, got[i], want)
			}
		}
	}
}

// TestDistinctOfSemanticSearchPastTheEnd checks that documents without vectors, which are not hits of a semantic search, do not count as
// duplicates, even on pages past the end.
func TestDistinctOfSemanticSearchPastTheEnd(t *testing.T) {
	with := doc(2, "kind", "b")
	with.vectors = []float32{1, 0, 0}
	ix := build(t, parseSettings(t, `{"filterableAttributes": ["kind"]}`), [][]*document{{doc(0, "kind", "a"), doc(1, "kind", "a"), with}}, nil)
	for _, offset := range []int{0, 5} {
		r := &Request{Vectors: &VectorQuery{Embedder: testEmbedder.ID, Vectors: [][]float32{{1, 0, 0}}, Only: true},
			Offset: offset, Limit: 10, MaxTotal: 1000, Distinct: "kind"}
		got, err := Search(context.Background(), ix, r)
		if err != nil {
			t.Fatal(err)
		}
		if want := max(0, 1-offset); len(got.Hits) != want || got.Total != 3 {
			t.Errorf("offset %d: %d hits of %d, want %d of 3", offset, len(got.Hits), got.Total, want)
		}
	}
}
