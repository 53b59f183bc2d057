package index

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/vfs"
)

// TestInfixIndexes checks which columns get an infix index: those of new segments, of merged segments, and of old ones when the setting
// changes, without rewriting other segments.
func TestInfixIndexes(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	rng := rand.New(rand.NewPCG(1, 1))
	id := 0
	put := func(fields ...string) {
		var docs []string
		for range 40 {
			id++
			doc := fmt.Sprintf(`{"id":%d`, id)
			for _, f := range fields {
				var text strings.Builder
				for range 500 {
					fmt.Fprint(&text, rng.IntN(10000))
				}
				doc += fmt.Sprintf(`,%q:%q`, f, text.String())
			}
			docs = append(docs, doc+"}")
		}
		b.apply(ix, b.payload(docs...))
	}
	infix := func(names string) string {
		return `{"attributePatterns":[` + names + `],"features":{"infix":true}}`
	}
	check := func(when string, want ...string) {
		t.Helper()
		v, err := ix.View()
		if err != nil {
			t.Fatal(err)
		}
		defer v.Release()
		var got []string
		for _, s := range v.Segments {
			text := fmt.Sprint(s.Rows())
			for _, name := range []string{"t", "u", "n"} {
				if id, ok := v.Fields.ID(name); ok {
					if c := s.Column(id); c != nil && c.Infixed() {
						text += " " + name
					}
				}
			}
			got = append(got, text)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %q, want %q", when, got, want)
		}
	}
	b.apply(ix, update(t, `{"filterableAttributes":["t",`+infix(`"u"`)+`]}`))
	put("t", "u", "n") // fields that are new in the batch
	put("t")
	check("built", "40 u", "40")
	files := b.filesOf(ix, segSuffix)
	b.apply(ix, update(t, `{"filterableAttributes":["t",`+infix(`"u","n"`)+`]}`))
	check("in a file of columns", "40 u n", "40")
	if got := b.filesOf(ix, segSuffix); fmt.Sprint(got) != fmt.Sprint(files) || len(b.filesOf(ix, colSuffix)) != 1 {
		t.Errorf("segments %v were rewritten for a new column, now %v", files, got)
	}
	b.apply(ix, update(t, `{"filterableAttributes":["t","u"]}`))
	check("turned off", "40 u n", "40") // the next merge drops them
	b.apply(ix, update(t, `{"filterableAttributes":[`+infix(`"t"`)+`]}`))
	check("turned on", "40 t", "40 t")
	b.apply(ix, update(t, `{"filterableAttributes":[`+infix(`"t","u"`)+`]}`))
	check("turned on for a column of one segment", "40 t u", "40 t")
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	f, err := ix.mergeFiles(t.Context(), v, v.Segments, nil, nil, unthrottled)
	if err != nil {
		t.Fatal(err)
	}
	defer f.discard()
	for _, name := range []string{"t", "u"} {
		if id, _ := v.Fields.ID(name); !f.Column(id).Infixed() {
			t.Errorf("merged: the column %s has no index", name)
		}
	}
}

// TestInfixIndexOfAColumnThatIsUsedAgain sets infix for a column that a segment still has from earlier settings, without the index.
func TestInfixIndexOfAColumnThatIsUsedAgain(t *testing.T) {
	b := newBed(t, vfs.NewMem(), Options{})
	defer b.close()
	ix := b.create("a")
	b.apply(ix, update(t, `{"filterableAttributes":["t"]}`))
	rng := rand.New(rand.NewPCG(1, 1))
	var docs []string
	for id := range 40 {
		var text strings.Builder
		for range 500 {
			fmt.Fprint(&text, rng.IntN(10000))
		}
		docs = append(docs, fmt.Sprintf(`{"id":%d,"t":%q}`, id, text.String()))
	}
	b.apply(ix, b.payload(docs...))
	b.apply(ix, update(t, `{"filterableAttributes":[]}`))
	b.apply(ix, update(t, `{"filterableAttributes":[{"attributePatterns":["t"],"features":{"infix":true}}]}`))
	v, err := ix.View()
	if err != nil {
		t.Fatal(err)
	}
	defer v.Release()
	field, _ := v.Fields.ID("t")
	if c := v.Segments[0].Column(field); c == nil || !c.Infixed() {
		t.Error("the column has no infix index")
	}
}
