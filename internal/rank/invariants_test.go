package rank

import (
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
)

// TestInvariantsAreChecked violates each invariant once.
func TestInvariantsAreChecked(t *testing.T) {
	ix := build(t, parseSettings(t, `{}`), [][]*document{{doc(3, "title", "a b"), doc(5, "title", "a"), doc(7, "title", "b")}}, nil)
	deleted := *ix
	deleted.Segments = append(deleted.Segments[:0:0], ix.Segments...)
	deleted.Segments[0].Deleted = roaring.BitmapOf(1)
	set := func(all ...uint32) rows { return rows{roaring.BitmapOf(all...)} }
	two := &query.Graph{Nodes: []query.Node{{Term: 0, Len: 1}, {Term: 1, Len: 1}}}
	on := func(ix *Index) *search {
		return &search{job: job{request: request{r: &Request{}}, findings: findings{ix: ix, graph: two}}, scratch: scratch{memory: new(memory)}}
	}
	path1 := interpretation{nodes: []int{0, 1}, terms: 2, rows: set(0, 1)}
	whole := &bucket{rows: set(0, 1), n: 2, terms: 2, interpretations: []interpretation{path1}}
	costs := func(cost uint64) verdict { return verdict{by: typo{}, cost: cost, ranks: 3} }
	one, two1 := costs(1), costs(2)
	entries := func(all ...uint32) (e []entry) {
		for _, row := range all {
			e = append(e, entry{row: row})
		}
		return e
	}
	classes := func() *segmentClasses {
		c := &segmentClasses{costs: []int{0, 2}, rows: []*roaring.Bitmap{roaring.BitmapOf(0), roaring.BitmapOf(1)}}
		c.sum = c.checksum()
		return c
	}
	hits := func(ix *Index, all ...Hit) {
		var o hitOrder
		for _, h := range all {
			o.check(ix, h, []verdict{one})
		}
	}

	checkBucket(on(ix), whole)
	checkPart(whole, set(1), []rows{set(0)}, &one, &two1)
	checkList(on(ix), typo{}, entries(0, 2, 1), []uint32{0, 0, 1}, &outcome{})
	checkClasses("typo", []*segmentClasses{nil, classes()})
	hits(ix, Hit{Row: 0, ID: 3}, Hit{Row: 1, ID: 5})
	similar := func(first, second verdict) { // of document 5, then of document 3
		var o hitOrder
		o.check(ix, Hit{Row: 1, ID: 5}, []verdict{first})
		o.check(ix, Hit{Row: 0, ID: 3}, []verdict{second})
	}
	far, without := verdict{by: vector{}}, verdict{by: vector{}, value: SortValue{Class: OfNothing}}
	similar(far, without)
	shifted := verdict{by: vector{shifted: true}}
	similar(shifted, shifted)
	for want, breach := range map[string]func(){
		"a bucket of 1 documents says that it has 2":   func() { checkBucket(on(ix), &bucket{rows: set(0), n: 2}) },
		"a bucket has row 3 of segment 0, which has 3": func() { checkBucket(on(ix), &bucket{rows: set(3), n: 1}) },
		"a bucket has deleted rows of segment 0":       func() { checkBucket(on(&deleted), &bucket{rows: set(1), n: 1}) },
		"leads to documents outside its bucket": func() {
			checkBucket(on(ix), &bucket{rows: set(0), n: 1, terms: 2, interpretations: []interpretation{path1}})
		},
		"no interpretation leads to 1 of the 3 documents": func() {
			checkBucket(on(ix), &bucket{rows: set(0, 1, 2), n: 3, terms: 2, interpretations: []interpretation{path1}})
		},
		"covers 2 terms, says 2, and its bucket 1": func() {
			checkBucket(on(ix), &bucket{rows: set(0, 1), n: 2, terms: 1, interpretations: []interpretation{path1}})
		},
		"a part has 1 documents that its bucket has not": func() { checkPart(whole, set(2), nil, nil, &one) },
		"two parts have a document in common":            func() { checkPart(whole, set(1), []rows{set(1)}, nil, &one) },
		"a part with cost 1":                             func() { checkPart(whole, set(1), nil, &two1, &one) },
		"a list has row 3 of segment 0":                  func() { checkList(on(ix), typo{}, entries(3), []uint32{0}, &outcome{}) },
		"typo: cost 1 comes behind 2":                    func() { checkList(on(ix), typo{}, entries(0, 1), []uint32{2, 1}, &outcome{}) },
		"typo: row 0 of segment 0 comes behind row 1":    func() { checkList(on(ix), typo{}, entries(1, 0), []uint32{2, 2}, &outcome{}) },
		"cost 1 stands for one of 1 values":              func() { checkList(on(ix), typo{}, entries(0), []uint32{1}, &outcome{values: []SortValue{{}}}) },
		"row 0 of segment 0 is document 3, not 4":        func() { hits(ix, Hit{Row: 0, ID: 4}) },
		"document 5 is deleted":                          func() { hits(&deleted, Hit{Row: 1, ID: 5}) },
		"document 3 comes behind 5, and no rule tells":   func() { hits(ix, Hit{Row: 1, ID: 5}, Hit{Row: 0, ID: 3}) },
		"document 5 comes behind 3, and typo puts it first": func() {
			var o hitOrder
			o.check(ix, Hit{Row: 0, ID: 3}, []verdict{two1})
			o.check(ix, Hit{Row: 1, ID: 5}, []verdict{one})
		},
		"document 3 comes behind 5, and vector puts it first": func() { similar(without, far) },
		"document 3 comes behind 5, and no rule":              func() { similar(far, far) },
		"classes were changed": func() {
			c := classes()
			c.rows[0].Add(7)
			checkClasses("typo", []*segmentClasses{c})
		},
		"classes with cost 0 come behind 2": func() {
			c := classes()
			c.costs[0], c.costs[1] = 2, 0
			checkClasses("typo", []*segmentClasses{c})
		},
		"two classes have a document in common": func() {
			c := classes()
			c.rows[0].Add(1)
			c.sum = c.checksum()
			checkClasses("typo", []*segmentClasses{c})
		},
		"a search has changed a bitmap": func() {
			s := on(ix)
			s.graph = new(query.Graph)
			s.r.Live = []*roaring.Bitmap{roaring.BitmapOf(1)}
			sums := checkShared(&s.findings, s.r, nil)
			s.r.Live[0].Add(2)
			checkShared(&s.findings, s.r, sums)
		},
	} {
		func() {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("%q, want %q", got, want)
				}
			}()
			breach()
		}()
	}
}
