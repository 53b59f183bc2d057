package rank

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// TestGroupingAgainstAllHits compares the hits of groups with a selection from all hits: rounds of all lengths, several segments with
// deleted documents, attributes with many, few, several and missing values, and groups that are known before.
func TestGroupingAgainstAllHits(t *testing.T) {
	defer func(c, l, hits, rounds, read, noted, group, prune, sample, judged, few, bits int) {
		classRows, listRows, roundHits, maxGroupRounds, readRow, maxNoted, groupRows, pruneRows = c, l, hits, rounds, read, noted, group, prune
		pruneSample, rowsPerHit, fewGroups, maxBits = sample, judged, few, bits
	}(classRows, listRows, roundHits, maxGroupRounds, readRow, maxNoted, groupRows, pruneRows, pruneSample, rowsPerHit, fewGroups, maxBits)
	classRows = 2
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 1))
	var parts [][]*document
	deleted := map[segment.DocID]bool{}
	id := 0
	for _, size := range []int{120, 40, 9} {
		var part []*document
		for range size {
			pairs := []any{"title", []string{"red", "rad", "red hat", "hat red", "rad hat", "redhat", "blue"}[rng.IntN(7)], "price", float64(rng.IntN(20)), "kind", []string{"a", "b", "c"}[rng.IntN(3)]}
			for range rng.IntN(3) {
				pairs = append(pairs, "tag", []any{"x", "y", "z", 1.0, 2.5}[rng.IntN(5)])
			}
			if rng.IntN(5) > 0 { // classes of equal distance overlap
				pairs = append(pairs, "_geo", point{0, float64(rng.IntN(12)) * 0.6 / metresOfDegree})
			}
			part = append(part, doc(id, pairs...))
			if rng.IntN(6) == 0 {
				deleted[segment.DocID(id)] = true
			}
			id++
		}
		parts = append(parts, part)
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["price","kind","tag"],"sortableAttributes":["price","_geo"]}`), parts, deleted)
	ran, judged, told := taken{}, 0, 0 // judged: searches that judge more rows at once than other searches do
	paths := []accessPath{groupRounds, groupPrune}
	for n := 0; n < 100 || n < 2000 && (told == 0 || judged == 0 || ran.lacks(paths...)); n++ {
		roundHits, maxGroupRounds, readRow, maxNoted = 1+rng.IntN(8), rng.IntN(10), rng.IntN(2)*1000, rng.IntN(2)*1000
		groupRows, pruneRows, pruneSample = rng.IntN(3)*20, 1+rng.IntN(20), 1+rng.IntN(64)
		listRows, rowsPerHit, fewGroups, maxBits = 3, rng.IntN(3)*50, rng.IntN(8), rng.IntN(2)*1000
		if rng.IntN(2) == 0 {
			listRows = 50 + rng.IntN(100)
		}
		r := Request{Query: []string{"", "red", "red hat", "redd"}[rng.IntN(4)], Limit: 1000, MaxTotal: 1000, Scores: rng.IntN(2) == 0}
		if rng.IntN(3) == 0 {
			r.Sort = []SortKey{{Field: "price", Desc: rng.IntN(2) == 0}}
		}
		if rng.IntN(6) == 0 {
			r.Sort = append([]SortKey{{Geo: true, Desc: rng.IntN(2) == 0}}, r.Sort...)
		}
		all := mustSearch(t, ix, r)
		asked := &Grouping{Field: []string{"price", "kind", "tag", "none"}[rng.IntN(4)], New: rng.IntN(6), Hits: 1 + rng.IntN(4), Known: map[GroupKey]int{}}
		columns := GroupColumns(columnsOf(ix, asked.Field))
		missing := map[GroupKey]int{}
		for range rng.IntN(3) {
			if len(all.Hits) > 0 {
				h := &all.Hits[rng.IntN(len(all.Hits))]
				key := columns.AppendKeys(nil, h.Segment, h.Row)[0]
				asked.Known[key] = rng.IntN(4)
				missing[key] = asked.Known[key]
			}
		}
		var want []Hit
		places := map[GroupKey][]int32{} // indexes in want of the hits of groups
		var added []GroupKey
		for key := range asked.Known {
			places[key] = nil
		}
		met := 0
		for _, h := range all.Hits {
			kept := false
			for _, key := range columns.AppendKeys(nil, h.Segment, h.Row) {
				if _, ok := missing[key]; !ok && met < asked.New {
					met++
					missing[key] = asked.Hits
					added = append(added, key)
				}
				if missing[key] > 0 {
					missing[key]--
					places[key] = append(places[key], int32(len(want)))
					kept = true
				}
			}
			if kept {
				want = append(want, h)
			}
		}
		what := fmt.Sprintf("seed %d, search %d: %q, sort %v, scores %v, %+v, rounds of %d, %d at most", seed, n, r.Query, r.Sort, r.Scores, *asked, roundHits, maxGroupRounds)
		r.Grouping, r.Plan = asked, new(Plan)
		got := mustSearch(t, ix, r)
		ran.add(r.Plan)
		if slices.ContainsFunc(r.Plan.Steps, func(s Step) bool {
			return s.Rule == "attributeRank" && s.Path == string(rowByRow) && s.In > classRows*s.Calls
		}) {
			judged++
		}
		if !slices.EqualFunc(got.Hits, want, func(a, b Hit) bool { return a.ID == b.ID && a.Score == b.Score }) {
			t.Fatalf("%s:\nhits %s, want %s", what, found(got), found(&Result{Hits: want}))
		}
		if got.Total != all.Total {
			t.Fatalf("%s: a total of %d, want %d", what, got.Total, all.Total)
		}
		var others []GroupKey
		for _, of := range got.Groups {
			if want, ok := places[of.Key]; !ok || !slices.Equal(of.Hits, want) {
				t.Fatalf("%s: group %v has the hits %v, want %v", what, of.Key, of.Hits, want)
			}
			if _, ok := asked.Known[of.Key]; !ok {
				others = append(others, of.Key)
			}
			for seg, ord := range of.Ords {
				if ord != 0 && ord-2 != columns.Ordinal(seg, &of.Key) {
					t.Fatalf("%s: group %v has the ordinal %d in segment %d", what, of.Key, ord-2, seg)
				}
				if ord > 1 {
					told++
				}
			}
		}
		if len(got.Groups) != len(places) || !slices.Equal(others, added) {
			t.Fatalf("%s: %d groups, %v were seen, want %d and %v", what, len(got.Groups), others, len(places), added)
		}
	}
	if told == 0 {
		t.Error("no group has an ordinal")
	}
	if judged == 0 {
		t.Error("no search judged many rows of a bucket at once")
	}
	ran.wants(t, paths...)
}

// metresOfDegree is the length of a degree of the equator.
const metresOfDegree = 111194.927

// TestGroupsByDistance sorts by distance, then by price: documents within a metre of the nearest one are ordered by price, also if the
// nearest document's group is full.
func TestGroupsByDistance(t *testing.T) {
	defer func(n int) { pruneRows = n }(pruneRows)
	pruneRows = 1
	var part []*document
	for id, d := range []struct{ metres, price float64 }{{0, 9}, {0.6, 5}, {1.4, 1}} {
		part = append(part, doc(id, "kind", []string{"a", "b", "c"}[id], "price", d.price, "_geo", point{0, d.metres / metresOfDegree}))
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"],"sortableAttributes":["price","_geo"]}`), [][]*document{part}, nil)
	r := Request{Sort: []SortKey{{Geo: true}, {Field: "price"}}, Limit: 9, MaxTotal: 9}
	if got := found(mustSearch(t, ix, r)); got != "1 0 2" {
		t.Fatalf("all documents are %s", got)
	}
	r.Grouping = &Grouping{Field: "kind", New: 2, Hits: 1, Known: map[GroupKey]int{{Kind: TextKey, Text: "a"}: 0}}
	if got := found(mustSearch(t, ix, r)); got != "1 2" {
		t.Errorf("without the group of the nearest they are %s", got)
	}
}

// TestSetOfNearlyAllStays checks that a set is not pruned if hardly any of its first documents are in full groups.
func TestSetOfNearlyAllStays(t *testing.T) {
	defer func(n, sample int) { readRow, pruneSample = n, sample }(readRow, pruneSample)
	readRow, pruneSample = 0, 64
	var part []*document
	for id := range 200 {
		part = append(part, doc(id, "kind", []string{"a", "b"}[min(id%10, 1)]))
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"]}`), [][]*document{part}, nil)
	in := roaring.New()
	in.AddRange(0, 200)
	g := newGrouping(ix, &Grouping{Field: "kind", New: 1}, new(groupMemory))
	g.add(GroupKey{Kind: TextKey, Text: "a"}, 0)
	if got := g.without(0, in); got != in {
		t.Errorf("%d of 200 documents are left", cardinality(got))
	}
	if pruneSample = 8; g.without(0, in).GetCardinality() != 180 { // an eighth of the sampled documents
		t.Error("documents of a full group stay in a set")
	}
}

// TestGroupsOfRows compares rows pruned by reading their values with rows pruned by marking the rows of groups.
func TestGroupsOfRows(t *testing.T) {
	defer func(n, sample int) { readRow, pruneSample = n, sample }(readRow, pruneSample)
	pruneSample = pruneBatch
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 2))
	var part []*document
	for id := range 300 {
		var pairs []any
		if rng.IntN(5) > 0 {
			pairs = append(pairs, "kind", []string{"a", "b", "c", "d"}[rng.IntN(4)])
		}
		if rng.IntN(5) > 0 {
			pairs = append(pairs, "price", float64(rng.IntN(100)))
		}
		for range rng.IntN(3) {
			pairs = append(pairs, "tag", []any{"x", "y", "z", 1.0, 2.5}[rng.IntN(5)])
		}
		part = append(part, doc(id, pairs...))
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["price","kind","tag"]}`), [][]*document{part}, nil)
	for n := range 100 {
		field := []string{"price", "kind", "tag"}[n%3]
		g := newGrouping(ix, &Grouping{Field: field, New: 1}, new(groupMemory))
		in := roaring.New()
		for row := range uint32(300) {
			if rng.IntN(3) > 0 {
				in.Add(row)
			}
		}
		for range rng.IntN(9) {
			key := g.columns.AppendKeys(nil, 0, segment.Row(rng.IntN(300)))[0]
			if g.find(&key) == nil {
				g.add(key, rng.IntN(2))
			}
		}
		g.add(GroupKey{Kind: TextKey, Text: "unknown"}, rng.IntN(2))
		readRow = 0
		if _, ok := g.read(0, in, func(int) bool { return true }); !ok {
			t.Fatal("the values of rows are not read")
		}
		without := g.without(0, in)
		g.new = g.New // there are enough
		of := g.of(0, in)
		readRow = 1000
		for _, c := range []struct {
			what      string
			got, want *roaring.Bitmap
		}{{"of", of, g.of(0, in)}, {"without", without, g.without(0, in)}} {
			if cardinality(c.got) != cardinality(c.want) || c.want != nil && !c.got.Equals(c.want) {
				t.Fatalf("seed %d, %s %v of %q: %v, want %v", seed, c.what, g.met, field, c.got, c.want)
			}
		}
	}
}

// TestGroupsStopAtDeadline searches for the group of the last document, which comes after many equal documents of another group,
// until the deadline.
func TestGroupsStopAtDeadline(t *testing.T) {
	defer func(n, prune int) { clockRows, pruneRows = n, prune }(clockRows, pruneRows)
	clockRows, pruneRows = 16, 1000
	var part []*document
	for id := range 60 {
		part = append(part, doc(id, "kind", []string{"a", "b"}[id/59]))
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"]}`), [][]*document{part}, nil)
	for _, late := range []bool{false, true} {
		want := 2
		r := Request{Limit: 100, MaxTotal: 100, Grouping: &Grouping{Field: "kind", New: 2, Hits: 1}}
		if late {
			r.Deadline, want = time.Now().Add(-time.Second), 1
		}
		got := mustSearch(t, ix, r)
		if len(got.Hits) != want || got.Degraded != late {
			t.Errorf("late %v: %d hits, want %d, degraded %v", late, len(got.Hits), want, got.Degraded)
		}
	}
}

// TestListsArePrunedOncePerState checks that a list is pruned again only after a group became full or there are enough groups.
func TestListsArePrunedOncePerState(t *testing.T) {
	defer func(n int) { pruneRows = n }(pruneRows)
	pruneRows = 1
	var part []*document
	for id := range 8 {
		part = append(part, doc(id, "kind", []string{"a", "b", "c", "d"}[id%4]))
	}
	ix := build(t, parseSettings(t, `{"filterableAttributes":["kind"]}`), [][]*document{part}, nil)
	s := &search{}
	s.r = &Request{}
	g := newGrouping(ix, &Grouping{Field: "kind", New: 3, Hits: 1}, new(groupMemory))
	g.prunes = true
	list := func() (all []entry) {
		for row := range uint32(8) {
			all = append(all, entry{row: row})
		}
		return all
	}
	state := 0
	for i, step := range []struct {
		row  segment.Row // the row that becomes a hit
		left int
	}{{0, 6}, {1, 4}, {2, 0}} { // the third group is the last one, and all are full
		g.keep(0, step.row, i)
		entries, next := g.pruneList(s, list(), state)
		if len(entries) != step.left || next == state {
			t.Fatalf("step %d: %d entries are left, want %d; state %d after %d", i, len(entries), step.left, next, state)
		}
		state = next
		if again, same := g.pruneList(s, list(), state); len(again) != 8 || same != state {
			t.Errorf("step %d: a list is pruned again in the same state", i)
		}
	}
}

// TestEntriesInTheOrderOfIDs merges entries of several segments, some of them empty.
func TestEntriesInTheOrderOfIDs(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	rng := rand.New(rand.NewPCG(seed, 3))
	parts := make([][]*document, 4)
	for id := range 80 {
		k := rng.IntN(len(parts))
		parts[k] = append(parts[k], doc(id, "title", "a"))
	}
	parts = slices.DeleteFunc(parts, func(p []*document) bool { return len(p) == 0 })
	ix := build(t, parseSettings(t, `{}`), parts, nil)
	for range 50 {
		var e []entry
		var want []segment.DocID
		for seg, part := range parts {
			if rng.IntN(4) == 0 {
				continue
			}
			for row := range part {
				if rng.IntN(3) > 0 {
					e = append(e, entry{segment: uint16(seg), row: uint32(row)})
					want = append(want, ix.Segments[seg].DocID(segment.Row(row)))
				}
			}
		}
		slices.Sort(want)
		var got []segment.DocID
		for m := newEntryMerge(ix, e); m.next(); {
			got = append(got, ix.Segments[m.segment].DocID(segment.Row(m.row)))
		}
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: ids %v, want %v", seed, got, want)
		}
	}
}
