package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/rank"
	"svc/segment"
)

// TestGroupCounts compares the groups of documents, and their number, with a reference that reads each document, for segments where
// counting also marks groups as seen and for others. Documents in two segments have no, one or several values.
func TestGroupCounts(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	l := newLibrary(t)
	l.put("a", `{"filterableAttributes":["brand","price","tags","filled"]}`)
	id := 0
	for _, size := range []int{160, 60} {
		var docs []string
		for range size {
			id++
			doc := fmt.Sprintf(`{"id":%d,"filled":"f%d","tags":["x%d",%d]`, id, r.IntN(6), r.IntN(3), r.IntN(3))
			if r.IntN(9) > 0 {
				doc += fmt.Sprintf(`,"brand":"b%d","price":%d`, r.IntN(7), r.IntN(5))
			}
			docs = append(docs, doc+"}")
		}
		l.put("a", "", docs...)
	}
	v := held(l.c.Get("a").View())
	defer v.Release()
	once := 0
	for n := range 100 {
		attribute := []string{"brand", "price", "tags", "filled", "none"}[n%5]
		rows := groupedRows{view: v, columns: columnsIn(v, attribute)}
		want := map[rank.GroupKey]int{}
		for seg, s := range v.Segments {
			in := roaring.New()
			for row := range s.Rows() {
				if r.IntN([]int{2, 20}[n/5%2]) == 0 {
					in.Add(uint32(row))
					for _, key := range rows.columns.AppendKeys(nil, seg, segment.Row(row)) {
						want[key]++
					}
				}
			}
			rows.all = append(rows.all, in)
		}
		if n%3 > 0 {
			rows.counted = make([]valueCounts, len(v.Segments))
		}
		page := []*group{{key: rank.GroupKey{Kind: rank.TextKey, Text: "unknown"}}}
		for key := range want {
			if r.IntN(5) > 0 {
				page = append(page, &group{key: key})
			}
		}
		if err := rows.count(context.Background(), page); err != nil {
			t.Fatal(err)
		}
		for _, one := range page {
			if one.count != want[one.key] {
				t.Fatalf("seed %d: %+v of %s has %d documents, want %d", seed, one.key, attribute, one.count, want[one.key])
			}
			for seg := range v.Segments { // already looked up where documents were counted
				if got, want := one.ordinal(rows.columns, seg), rows.columns.Ordinal(seg, &one.key); got != want {
					t.Fatalf("seed %d: %+v of %s has ordinal %d in segment %d, want %d", seed, one.key, attribute, got, seg, want)
				}
			}
		}
		for seg := range v.Segments {
			if _, ok := rows.countsOf(seg); ok {
				once++
			}
		}
		most := 1 + r.IntN(12)
		met, err := rows.meet(context.Background(), most)
		if err != nil {
			t.Fatal(err)
		}
		if got := met.total(most); got != min(most, len(want)) {
			t.Fatalf("seed %d: %d groups of %s, want %d, at most %d", seed, got, attribute, len(want), most)
		}
	}
	if once < 20 {
		t.Errorf("documents of %d segments were counted and marked at once", once)
	}
}
