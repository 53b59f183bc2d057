package index

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// TestFiltersSeeTheBatch applies random operations as one batch, and one by one to another index. Results and documents must be the same,
// no temporary file may stay, and filters must delete documents of their own batch.
func TestFiltersSeeTheBatch(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 7))
	b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 2})
	defer b.close()
	const open = `{"filterableAttributes":["kind","n","o.p","late*","list","_geo"],"sortableAttributes":["_geo"]}`
	values := []string{`1`, `1.0`, `2`, `-3.5`, `9007199254740993`, `"1"`, `"Ärger"`, `"arger"`, `"x y"`, `true`, `null`, `[]`, `{}`, `[1,"x y",null]`, `""`}
	filters := []string{"kind = 1", "kind = 'x y'", "kind = arger", "kind IS NULL", "kind IS EMPTY", "kind EXISTS", "NOT kind EXISTS", "kind != 1", "n > 1", "n = 9007199254740993",
		"n 0 TO 2", "kind IN [1, true]", "o.p = 2", "o.p EXISTS", "late1 = 1", "late2 EXISTS", "list = 2", "_geoRadius(10, 10, 200000)", "kind STARTS WITH x", "nothing = 1", "kind ="}
	pick := func(list []string) string { return list[rnd.IntN(len(list))] }
	document := func() string {
		var d strings.Builder
		fmt.Fprintf(&d, `{"id":%d`, rnd.IntN(30))
		for _, field := range []string{"kind", "n", "list"} {
			if rnd.IntN(2) == 0 {
				fmt.Fprintf(&d, `,%q:%s`, field, pick(values))
			}
		}
		switch rnd.IntN(6) {
		case 0:
			fmt.Fprintf(&d, `,"o":{"p":%s}`, pick(values))
		case 1:
			fmt.Fprintf(&d, `,"o.p":%s`, pick(values))
		case 2:
			fmt.Fprintf(&d, `,"late%d":%s`, rnd.IntN(3), pick(values))
		case 3:
			fmt.Fprintf(&d, `,"_geo":{"lat":%d,"lng":10}`, 9+rnd.IntN(4))
		}
		return d.String() + "}"
	}
	ofBatch := 0
	for round := range 60 {
		together, apart := b.create(fmt.Sprintf("together%d", round)), b.create(fmt.Sprintf("apart%d", round))
		for _, ix := range []*Index{together, apart} {
			b.apply(ix, update(t, open))
			b.apply(ix, b.payload(`{"id":99,"kind":1,"n":1,"list":1,"o":{"p":1},"_geo":{"lat":0,"lng":0}}`)) // != needs a field that has existed
		}
		for range 3 { // batches
			var ops []Op
			for range 1 + rnd.IntN(60) {
				switch rnd.IntN(10) {
				case 0, 1, 2, 3:
					var docs []string
					for range 1 + rnd.IntN(4) {
						docs = append(docs, document())
					}
					op := b.payload(docs...)
					op.Merge, op.SkipCreation = rnd.IntN(2) == 0, rnd.IntN(8) == 0
					ops = append(ops, op)
				case 4:
					ops = append(ops, DeleteDocuments{[]string{fmt.Sprint(rnd.IntN(30)), fmt.Sprint(rnd.IntN(30))}})
				default:
					ops = append(ops, DeleteByFilter{fmt.Appendf(nil, "%q", pick(filters))})
				}
			}
			v := held(together.View())
			before := documents(t, v)
			v.Release()
			got := b.try(together, ops...)
			for i, op := range ops {
				want := b.try(apart, op)[0]
				if fmt.Sprint(got[i].Err) != fmt.Sprint(want.Err) || got[i].Deleted != want.Deleted || got[i].Indexed != want.Indexed {
					t.Fatalf("operation %d of %d, %T %s: %+v, one by one %+v", i, len(ops), op, op, got[i], want)
				}
				if _, ok := op.(DeleteByFilter); ok && len(before) <= 1 {
					ofBatch += max(got[i].Deleted-1, 0)
				}
			}
			v, w := held(together.View()), held(apart.View())
			if x, y := documents(t, v), documents(t, w); !maps.Equal(x, y) {
				t.Errorf("documents %v, one by one %v", x, y)
			}
			files := len(v.files)
			v.Release()
			w.Release()
			segments := 0
			for _, name := range list(t, b.fs, together.dir) {
				if strings.HasSuffix(name, ".seg") {
					segments++
				}
			}
			if b.compact(together) == 0 && segments > files {
				t.Errorf("%d segment files of %d segments", segments, files)
			}
		}
	}
	if ofBatch == 0 {
		t.Error("no filter deleted a document of its own batch")
	}
}
