package search

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"svc/internal/format"
)

// TestCachedCropsAgreeWithWholeTexts requests crops of long texts repeatedly, between changes of documents and settings and with or
// without the texts themselves, and compares them with crops of whole texts.
func TestCachedCropsAgreeWithWholeTexts(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	words := strings.Fields("command line tool kubernetes fast python unix like system graphical user interface naïve über the a of to 日本 x-ray tools systems")
	body := func() string {
		var b strings.Builder
		for b.Len() < 70_000+rng.IntN(60_000) {
			if rng.IntN(40) == 0 {
				b.WriteString(words[rng.IntN(len(words))])
			} else {
				b.WriteString([]string{"lorem", "ipsum", "dolor", "sit", "amet"}[rng.IntN(5)])
			}
			b.WriteString([]string{" ", " ", " ", ". ", ", ", "-", "x"}[rng.IntN(7)])
		}
		return b.String()
	}
	l := newLibrary(t)
	put := func(change string, ids ...int) {
		var docs []string
		for _, id := range ids {
			docs = append(docs, fmt.Sprintf(`{"id":%d,"title":"t","body":%q,"more":%q}`, id, body(), body()))
		}
		l.put("a", change, docs...)
	}
	put(`{"searchableAttributes":["title","body","more"]}`, 0, 1, 2, 3)
	queries := []string{"command line tool", "fast python", `"unix like" system`, "gra", "tools", "uber naive", "interface the", "nowhere"}
	for round := range 40 {
		switch rng.IntN(8) {
		case 0:
			put("", rng.IntN(5))
		case 1:
			put(`{"separatorTokens":` + []string{`["x"]`, `["lorem"]`, `[]`}[rng.IntN(3)] + `}`)
		case 2:
			put(`{"nonSeparatorTokens":` + []string{`["-"]`, `[]`}[rng.IntN(2)] + `}`)
		case 3:
			put(`{"dictionary":` + []string{`["fast python"]`, `[]`}[rng.IntN(2)] + `}`)
		case 4:
			put(`{"localizedAttributes":` + []string{`[{"attributePatterns":["body"],"locales":["deu"]}]`, `null`}[rng.IntN(2)] + `}`)
		}
		r := Request{Query: queries[rng.IntN(len(queries))], AttributesToRetrieve: []string{"id"}, AttributesToCrop: []string{"body", "more:3"}, CropLength: 1 + rng.IntN(12), CropMarker: "…"}
		if rng.IntN(2) == 0 {
			r.AttributesToHighlight = []string{"body"}
		}
		whole := r
		whole.AttributesToRetrieve = []string{"id", "body", "more"}
		want := l.croppedAsWhole(&r)
		wantWhole := l.croppedAsWhole(&whole)
		for i := range 4 {
			r, want := r, want
			if i%2 == rng.IntN(2) {
				r, want = whole, wantWhole
			}
			got, err := l.search("a", r, nil)
			if err != nil || len(got) != len(want) {
				t.Fatalf("round %d: %d hits, %v; want %d", round, len(got), err, len(want))
			}
			for i := range got {
				_, a, _ := strings.Cut(got[i], `"_formatted":`)
				if b := want[i] + "}"; a != b || a == "" {
					t.Fatalf("round %d: %q shows of hit %d\n%s\nwant\n%s", round, r.Query, i, a, b)
				}
			}
		}
	}
}

// croppedAsWhole returns the _formatted members of hits in the index a, computed from whole texts.
func (l *library) croppedAsWhole(r *Request) (formatted []string) {
	l.t.Helper()
	v := held(l.c.Get("a").View())
	defer v.Release()
	asked := *r
	asked.Limit, asked.HighlightPreTag, asked.HighlightPostTag = 20, "<em>", "</em>"
	found, err := Search(context.Background(), v, &asked)
	if err != nil {
		l.t.Fatal(err)
	}
	f := format.New(&v.Outline, asked.format(), found.result.Highlights())
	for _, h := range found.result.Hits {
		doc, err := v.Segments[h.Segment].AppendDocument(nil, h.Row)
		if err != nil {
			l.t.Fatal(err)
		}
		text, err := f.AppendFormatted(nil, h.Segment, h.Row, doc, nil)
		if err != nil {
			l.t.Fatal(err)
		}
		formatted = append(formatted, string(text))
	}
	return formatted
}

// TestCropsBehindHiddenTexts crops all displayed attributes, and shows none uncropped. A long text whose attribute is not displayed, but
// would be below it, is read only at its beginning, too. Texts behind it are cropped as without it.
func TestCropsBehindHiddenTexts(t *testing.T) {
	long := strings.Repeat("filler words here ", 5000)
	for _, displayed := range []string{`["a.b", "z"]`, `["z"]`, `["z", "c.d", "a.b.c"]`} {
		l := newLibrary(t)
		l.put("i", `{"displayedAttributes": `+displayed+`}`, fmt.Sprintf(`{"id": 1, "a": %q, "c": %q, "z": %q}`, long, long, long+"red hat end"))
		r := Request{Query: "red hat", Limit: 9, AttributesToRetrieve: []string{"id"}, AttributesToCrop: []string{"*"}, CropLength: 4, CropMarker: "~"}
		if got, want := fmt.Sprint(l.answer("i", r).Hits[0].Formatted), "map[z:~here red hat end]"; got != want {
			t.Errorf("displayed %s: %s, want %s", displayed, got, want)
		}
	}
}
