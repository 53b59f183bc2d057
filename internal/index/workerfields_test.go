package index

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"svc/segment"
)

// TestWorkerFields asks for fields in the order of the first document, and in others. The handles must be those of the map.
func TestWorkerFields(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 11))
	k := &worker{handles: make(map[string]int), builder: segment.NewBuilder(segment.BuilderOptions{})}
	names := []string{"_geo", "_geojson"}
	for i := range 30 {
		names = append(names, fmt.Sprintf("f%d", i/2), fmt.Sprintf("f%d.a", i/2))
	}
	rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	names = slices.Compact(names)
	for i, name := range names {
		if _, ok := k.handles[name]; ok {
			continue
		}
		k.handles[name] = len(k.fields)
		k.fields = append(k.fields, fieldState{name: name, id: segment.FieldID(i), geo: name == "_geo" || name == "_geojson"})
	}
	predicted, others := 0, 0
	for id := range 300 {
		k.builder.StartDoc(segment.DocID(id), []byte("a"), []byte("{}"))
		k.begin(nil)
		geo := false
		var touched []int
		for i := 0; i < len(k.fields); i++ {
			switch rng.IntN(12) {
			case 0:
				i += rng.IntN(4)
			case 1:
				i -= rng.IntN(3)
			}
			i = max(0, min(i, len(k.fields)-1))
			name := k.fields[i].name
			if k.next < len(k.fields) && k.fields[k.next].name == name {
				predicted++
			} else {
				others++
			}
			geo = geo || name == "_geo" || name == "_geojson"
			if !slices.Contains(touched, i) {
				touched = append(touched, i)
			}
			if h := k.Field([]byte(name)); h != i || k.handles[name] != i {
				t.Fatalf("seed %d: field %s has the handle %d, want %d", seed, name, h, i)
			}
		}
		if !slices.Equal(k.touched, touched) || k.geo != geo {
			t.Fatalf("seed %d: touched %v and a place %t, want %v and %t", seed, k.touched, k.geo, touched, geo)
		}
		k.builder.EndDoc()
	}
	if predicted < 1000 || others < 100 {
		t.Errorf("%d fields were predicted, %d were not", predicted, others)
	}
}
