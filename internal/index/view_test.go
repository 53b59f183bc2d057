package index

import (
	"maps"
	"testing"

	"svc/internal/vfs"
)

func TestFieldDistributionCountsFirstLevelFields(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer func() { b.close() }()
	ix := b.create("f")
	want := func(want map[string]int) {
		t.Helper()
		for range 2 {
			v := held(ix.View())
			if got := v.FieldDistribution(); !maps.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			v.Release()
			b.reopen()
			ix = b.c.Get("f")
		}
	}
	b.apply(ix, b.payload(
		`{"id":1,"hull":{"length":10,"paint":{"top":"x"}},"hull.paint":5,"none":null,"_vectors":{"a":null}}`,
		`{"id":2,"hull":"sold","hull.length":12}`,
		`{"id":3,"hull.length":{"of.it":1}}`,
		`{"id":4,"hull":{"length":3,"of.it":4}}`,
		`{"id":5,"a.b.c":1,"_geo":null}`))
	want(map[string]int{"id": 5, "hull": 3, "hull.paint": 1, "none": 1, "hull.length": 2, "a.b.c": 1, "_geo": 1})
	b.apply(ix, DeleteDocuments{[]string{"2", "5"}}, b.payload(`{"id":3}`, `{"id":6,"a":{"b":{"c":1}}}`))
	want(map[string]int{"id": 4, "hull": 2, "hull.paint": 1, "none": 1, "a": 1})
	b.apply(ix, Clear{})
	want(map[string]int{})
}
