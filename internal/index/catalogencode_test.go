package index

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"svc/internal/vfs"
)

// TestCatalogIsEncodedAsByTheLibrary compares random contents.
func TestCatalogIsEncodedAsByTheLibrary(t *testing.T) {
	random := rand.New(rand.NewPCG(rand.Uint64(), 1))
	for range 300 {
		f := catalogFile{entries: entries{Indexes: map[string]*uint64{}}, Next: random.Uint64(), Last: catalogChange{Batch: random.Uint64N(9), What: "delete <a>", Documents: random.IntN(3)}}
		for range random.IntN(20) {
			n := random.Uint64N(1 << random.IntN(64))
			if f.Indexes[fmt.Sprintf("Index-%d_%x", random.IntN(50), random.IntN(50))] = &n; random.IntN(4) == 0 {
				f.Indexes[fmt.Sprint("gone", random.IntN(20))] = nil
			}
		}
		if random.IntN(2) == 0 {
			f.Base, f.Aliases = random.Uint64(), map[string]*string{}
			for range random.IntN(5) {
				uid := fmt.Sprint("i", random.IntN(50))
				f.Aliases[fmt.Sprint("alias", random.IntN(9))] = &uid
				f.Aliases[fmt.Sprint("past", random.IntN(9))] = nil
			}
		}
		got, err := f.appendJSON(nil)
		want, wrong := json.Marshal(&f)
		if err != nil || wrong != nil || string(got) != string(want) {
			t.Fatalf("got  %s\nwant %s, %v, %v", got, want, err, wrong)
		}
		var back catalogFile
		if err := json.Unmarshal(got, &back); err != nil || len(back.Indexes) != len(f.Indexes) || !reflect.DeepEqual(back.Last, f.Last) {
			t.Fatalf("%s is read as %+v, %v", got, back, err)
		}
	}
}

// BenchmarkCreateAmongMany creates an index in a catalog of many.
func BenchmarkCreateAmongMany(b *testing.B) {
	for _, n := range []int{100, 3_000, 10_000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			c, err := OpenCatalog("c", Options{FS: vfs.NewMem()})
			if err != nil {
				b.Fatal(err)
			}
			defer c.Close()
			d := c.draft()
			for i := range n {
				d.place(fmt.Sprintf("customer-%d", i), d.next)
				d.next++
			}
			if err := c.write(d); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				d := c.draft()
				d.place(fmt.Sprintf("later-%d", i%2_000), d.next)
				d.next++
				if err := c.write(d); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
