package segment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/vfs"
)

// element is the reference copy of an element.
type element struct {
	scope       FieldID
	arrays      int
	present     []FieldID
	numbers     []numeric.Value // of field 31
	strings     []string        // of field 32
	late        []string        // added after nested elements
	null, empty bool            // of field 31
	point       *[2]float64
	inside      []*element
}

func randomElements(rng *rand.Rand, scope FieldID, arrays int) (all []*element) {
	for range rng.IntN(5) {
		e := &element{scope: scope, arrays: arrays, null: rng.IntN(6) == 0, empty: rng.IntN(6) == 0}
		for range rng.IntN(3) {
			e.present = append(e.present, FieldID(30+rng.IntN(3)))
			e.numbers = append(e.numbers, randomNumber(rng, 31))
			e.strings = append(e.strings, randomWord(rng))
		}
		if rng.IntN(4) == 0 {
			e.late = []string{randomWord(rng)}
		}
		if rng.IntN(4) == 0 {
			e.point = &[2]float64{rng.Float64()*180 - 90, rng.Float64()*360 - 180}
		}
		if scope < 22 {
			e.inside = randomElements(rng, scope+1, arrays+rng.IntN(2))
		}
		all = append(all, e)
	}
	return all
}

func addElements(b *Builder, all []*element) {
	for _, e := range all {
		b.EnterElement(e.scope, e.arrays)
		for _, f := range e.present {
			b.ElementPresent(f)
		}
		for _, x := range e.numbers {
			b.ElementNumber(31, x)
		}
		for _, s := range e.strings {
			b.ElementString(32, []byte(s), []byte(original(s)))
		}
		if e.null {
			b.ElementNull(31, e.arrays)
		}
		b.ElementNull(33, e.arrays+1) // in an array, so it is not a null of the element
		if e.empty {
			b.ElementEmpty(31, e.arrays)
		}
		addElements(b, e.inside)
		for _, s := range e.late {
			b.ElementString(32, []byte(s), []byte(original(s)))
		}
		if e.point != nil {
			b.ElementPoint(e.arrays, e.point[0], e.point[1])
			b.ElementPoint(e.arrays, 1, 1) // the first point is kept
		}
		b.LeaveElement()
	}
}

// elementsText prints all contents of a segment's elements.
func elementsText(e *Elements) string {
	var b strings.Builder
	if e == nil {
		return ""
	}
	for f := FieldID(20); f < 24; f++ {
		scope := e.Scope(f)
		fmt.Fprintln(&b, "scope", f, scope.ToArray(), e.Rows(scope).ToArray(), e.Of(e.Rows(scope)).Contains(0))
		for inner := f; inner < 24; inner++ {
			fmt.Fprintln(&b, "within", f, inner, e.Within(e.Scope(inner), scope, false).ToArray(), e.Within(e.Scope(inner), scope, true).ToArray())
		}
	}
	for f := FieldID(30); f < 34; f++ {
		fmt.Fprintln(&b, "present", f, e.Present(f).ToArray())
		c := e.Column(f)
		if c == nil {
			continue
		}
		fmt.Fprintln(&b, "column", f, c.Null().ToArray(), c.Empty().ToArray())
		for i := range e.Len() {
			for _, ord := range c.RowNumbers(nil, Row(i)) {
				fmt.Fprint(&b, i, c.Number(int(ord)), " ")
			}
			for _, ord := range c.RowStrings(nil, Row(i)) {
				fmt.Fprint(&b, i, string(c.String(int(ord))), " ")
			}
		}
		rows := roaring.New()
		for ord := range c.Numbers() {
			c.AddNumberRows(rows, ord, ord+1)
		}
		for ord := range c.Strings() {
			c.AddStringRows(rows, ord, ord+1)
		}
		fmt.Fprintln(&b, rows.ToArray())
	}
	if g := e.Geo(); g != nil {
		for i := range e.Len() {
			if lat, lng, ok := g.Point(Row(i)); ok {
				fmt.Fprint(&b, i, lat, lng, " ")
			}
		}
		rows := roaring.New()
		g.AddRowsInBox(rows, 45, -90, -45, 90)
		fmt.Fprintln(&b, rows.ToArray())
	}
	return b.String()
}

// checkElements compares each element of a segment with the documents.
func checkElements(t *testing.T, r *Reader, docs []*doc) {
	t.Helper()
	e := r.Elements()
	n := 0
	check := func(what string, got, want any) {
		t.Helper()
		if g, w := fmt.Sprint(got), fmt.Sprint(want); g != w {
			t.Fatalf("%s of element %d: got %.300s, want %.300s", what, n, g, w)
		}
	}
	type outer struct {
		*element
		n uint32
	}
	var walk func(row int, all []*element, in []outer)
	walk = func(row int, all []*element, in []outer) {
		for _, want := range all {
			own := roaring.BitmapOf(uint32(n))
			check("row", e.Rows(own).ToArray(), []int{row})
			check("elements of the row", e.Of(roaring.BitmapOf(uint32(row))).Contains(uint32(n)), true)
			for f := FieldID(20); f < 24; f++ {
				check("scope", e.Scope(f).Contains(uint32(n)), f == want.scope)
			}
			direct := true
			inner := want
			for i := len(in) - 1; i >= 0; i-- {
				direct = direct && in[i].arrays == inner.arrays
				inner = in[i].element
				check("what it is within", e.Within(own, e.Scope(in[i].scope), false).ToArray(), []uint32{in[i].n})
				check("what it is directly within", e.Within(own, e.Scope(in[i].scope), true).Contains(in[i].n), direct)
			}
			for f := FieldID(30); f < 33; f++ {
				check("presence", e.Present(f).Contains(uint32(n)), slices.Contains(want.present, f))
			}
			var numbers []numeric.Value
			texts := []string{}
			null, empty := false, false
			if c := e.Column(31); c != nil {
				for _, ord := range c.RowNumbers(nil, Row(n)) {
					numbers = append(numbers, c.Number(int(ord)))
				}
				null, empty = c.Null().Contains(uint32(n)), c.Empty().Contains(uint32(n))
			}
			if c := e.Column(32); c != nil {
				for _, ord := range c.RowStrings(nil, Row(n)) {
					texts = append(texts, string(c.String(int(ord))))
				}
			}
			sorted := slices.Clone(want.numbers)
			slices.SortFunc(sorted, numeric.Value.Compare)
			check("numbers", numbers, slices.Compact(sorted))
			check("null", null, want.null)
			check("empty", empty, want.empty)
			words := slices.Concat(want.strings, want.late)
			slices.Sort(words)
			check("strings", texts, slices.Compact(words))
			lat, lng, ok := 0.0, 0.0, false
			if g := e.Geo(); g != nil {
				lat, lng, ok = g.Point(Row(n))
			}
			check("point", ok, want.point != nil)
			if ok {
				check("place", [2]float64{lat, lng}, *want.point)
			}
			n++
			walk(row, want.inside, append(slices.Clip(in), outer{want, uint32(n - 1)}))
		}
	}
	for row, d := range docs {
		if len(d.elements) > 0 && e == nil {
			t.Fatal("there are no elements")
		}
		walk(row, d.elements, nil)
	}
	if e != nil {
		for step := range 4 { // by bits, except for small sets
			some := roaring.BitmapOf(uint32(e.Len() + step))
			for i := 0; i < e.Len(); i += 1 + step {
				some.Add(uint32(i))
			}
			check("rows of many", e.Rows(some).ToArray(), e.AppendRows(nil, some.ToArray()))
			marked := make([]uint64, len(docs)/64+1)
			e.MarkRows(marked, some.ToDense())
			check("marked rows of many", roaring.FromDense(marked, true).ToArray(), e.AppendRows(nil, some.ToArray()))
			rows, of := roaring.New(), []uint32{}
			for i := range uint32(e.Len()) {
				if row := e.Rows(roaring.BitmapOf(i)).Minimum(); row%uint32(step+1) == 0 {
					rows.Add(row)
					of = append(of, i)
				}
			}
			check("elements of many rows", e.Of(rows).ToArray(), of)
			listed := maxListedElements
			maxListedElements = step
			check("elements of many rows by bits", e.Of(rows).ToArray(), of)
			maxListedElements = listed
		}
		check("number", e.Len(), n)
		if e.Column(33) != nil && !e.Column(33).Null().IsEmpty() {
			t.Fatal("a null in an array counts as a null of the element")
		}
	}
}

// TestMergeDropsFieldsOfElements merges without some fields of elements.
func TestMergeDropsFieldsOfElements(t *testing.T) {
	fs := vfs.NewMem()
	fixedSegment(t, fs, "a.seg")
	in := openSegment(t, fs, "a.seg")
	_, err := Merge(context.Background(), fs, "b.seg", []Live{{Reader: in}}, MergeOptions{KeepElement: func(f FieldID) bool { return f == 8 }})
	if err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, fs, "b.seg")
	if e := r.Elements(); e.Len() != 4 || e.Column(6) != nil || e.Column(8) == nil || e.Column(8).Numbers() != 1 {
		t.Errorf("%d elements", e.Len())
	}
	if err := r.Verify(); err != nil {
		t.Error(err)
	}
}
