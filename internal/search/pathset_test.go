package search

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// TestManyPaths compares sets of many paths, and lists of many names, with the same ones looked through one by one.
func TestManyPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 7))
	name := func(most int) string {
		parts := make([]string, 1+r.IntN(most))
		for i := range parts {
			parts[i] = string(rune('a'+r.IntN(4))) + strings.Repeat("x", r.IntN(2))
		}
		return strings.Join(parts, ".")
	}
	for range 300 {
		paths := make([]string, fewPaths+1+r.IntN(20))
		for i := range paths {
			paths[i] = name(4)
		}
		many, cover := newPathSet(paths), newCovering(paths)
		if many.many == nil || cover.many == nil {
			t.Fatal("they are looked through one by one")
		}
		few := covering{few: paths}
		for range 50 {
			path := name(5)
			if got, want := cover.first(path), few.first(path); got != want {
				t.Fatalf("%q covers %q: place %d, want %d", paths, path, got, want)
			}
		}
		descend(t, r, name, many, pathSet{few: paths}, 3)
	}
}

func descend(t *testing.T, r *rand.Rand, name func(int) string, many, few pathSet, depth int) {
	for range 20 {
		key := []byte(name(2))
		below, some, whole := many.under(key)
		wantBelow, wantSome, wantWhole := few.under(key)
		// Once a path ends at a key nobody asks what is below it.
		if whole != wantWhole || !whole && some != wantSome {
			t.Fatalf("%s: %t %t, want %t %t", key, some, whole, wantSome, wantWhole)
		}
		if some && !whole && depth > 0 {
			descend(t, r, name, below, wantBelow, depth-1)
		}
	}
}

func TestOneOf(t *testing.T) {
	var list []string
	for i := range 3 * fewPaths {
		list = append(list, strings.Repeat("a", i))
		is := oneOf(list)
		for n := range 3*fewPaths + 1 {
			if x := strings.Repeat("a", n); is(x) != slices.Contains(list, x) {
				t.Fatalf("%d names, %q: %t", len(list), x, is(x))
			}
		}
	}
}
