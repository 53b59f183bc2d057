package selection

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestManyPaths compares sets of many paths, and lists of many names, with a scan of them.
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
		paths := make([]string, FewPaths+1+r.IntN(20))
		for i := range paths {
			paths[i] = name(4)
		}
		many, cover := newPathSet(paths), NewCovering(paths)
		if many.many == nil || cover.many == nil {
			t.Fatal("the set is scanned")
		}
		few := Covering{few: paths}
		for range 50 {
			path := name(5)
			if got, want := cover.First(path), few.First(path); got != want {
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
		// Below a path that ends at a key, the answer is not used.
		if whole != wantWhole || !whole && some != wantSome {
			t.Fatalf("%s: %t %t, want %t %t", key, some, whole, wantSome, wantWhole)
		}
		if some && !whole && depth > 0 {
			descend(t, r, name, below, wantBelow, depth-1)
		}
	}
}

// TestDisplayedPaths compares sets of many displayed attributes with a scan of them.
func TestDisplayedPaths(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	name := func() string {
		parts := make([]string, 1+r.IntN(3))
		for i := range parts {
			parts[i] = []string{"a", "b", "ab", "a-", "a0", "\U0010ffff"}[r.IntN(6)]
		}
		return strings.Join(parts, ".")
	}
	for range 2000 {
		var displayed []string
		for range 1 + r.IntN(3*FewPaths) {
			displayed = append(displayed, name())
		}
		d, path := NewDisplayed(displayed), name()
		var want []string
		whole := false
		for _, at := range displayed {
			whole = whole || at == path || strings.HasPrefix(path, at+".")
			if strings.HasPrefix(at, path+".") {
				want = append(want, at)
			}
		}
		if whole {
			want = []string{path}
		}
		got := d.AppendWithin(nil, path)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Fatalf("%q of %q: %q, want %q", path, displayed, got, want)
		}
	}
}

// TestSelectionEndsEarly selects from random objects with few paths, where the walk may end before the object, and with many, where it
// reads to the end.
func TestSelectionEndsEarly(t *testing.T) {
	r := rand.New(rand.NewPCG(43, 7))
	names := []string{"a", "b", "c", "a.b", "ab", `q"`}
	var object func(depth int) string
	object = func(depth int) string {
		var members []string
		for _, i := range r.Perm(len(names))[:r.IntN(len(names)+1)] {
			value := "1"
			switch n := r.IntN(4); {
			case n == 0 && depth > 0:
				value = object(depth - 1)
			case n == 1 && depth > 0:
				value = "[" + object(depth-1) + ",2," + object(depth-1) + "]"
			}
			members = append(members, strconv.Quote(names[i])+":"+value)
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	for range 3000 {
		var few []string
		for range 1 + r.IntN(4) {
			path := names[r.IntN(len(names))]
			for r.IntN(3) == 0 {
				path += "." + names[r.IntN(len(names))]
			}
			few = append(few, path)
		}
		many := slices.Clone(few)
		for len(many) <= FewPaths {
			many = append(many, "none"+strconv.Itoa(len(many)))
		}
		doc := object(2)
		got, err := Of(few).AppendParts(nil, []byte(doc))
		want, err2 := Of(many).AppendParts(nil, []byte(doc))
		if err != nil || err2 != nil || string(got) != string(want) {
			t.Fatalf("%q of %s: %s, %v, want %s, %v", few, doc, got, err, want, err2)
		}
	}

	// Invalid JSON that is not reached shows that the walk ended.
	for _, test := range []struct {
		paths []string
		whole bool
	}{{[]string{"b", "a"}, true}, {[]string{"a", "c"}, false}, {[]string{"a", "b.c"}, false}} {
		_, err := Of(test.paths).AppendParts(nil, []byte(`{"a":1,"b":2,"x`))
		if (err == nil) != test.whole {
			t.Errorf("%q: %v", test.paths, err)
		}
	}
}
