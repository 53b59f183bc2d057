package query

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/settings"
	"svc/internal/vfs"
	"svc/segment"
)

// denseSettings determine in which fields words count.
var denseSettings = map[string]string{
	"plain":              `{` + denseTypos + `}}`,
	"exact field":        `{` + denseTypos + `,"disableOnAttributes":["other"]}}`,
	"searchable field":   `{` + denseTypos + `},"searchableAttributes":["text"]}`,
	"inside others":      `{` + denseTypos + `},"filterableAttributes":[{"attributePatterns":["*"],"features":{"infix":true}}]}`,
	"inside one's words": `{` + denseTypos + `},` + infixText + `}`,
	"inside and exact":   `{` + denseTypos + `,"disableOnAttributes":["text"]},` + infixText + `}`,
}

const denseTypos = `"typoTolerance":{"minWordSizeForTypos":{"oneTypo":2,"twoTypos":4}`

// denseDocs returns documents of two fields each, and their words.
func denseDocs(rnd *rand.Rand, n int) (docs [][2]string, words []string) {
	docs = make([][2]string, n)
	for i := range docs {
		for range 5 {
			text := &docs[i][rnd.IntN(2)]
			for range 2 + rnd.IntN(4) {
				*text += "abcd"[rnd.IntN(4):][:1]
			}
			*text += " "
		}
		words = append(words, strings.Fields(docs[i][0]+docs[i][1])...)
	}
	return docs, words
}

// denseFields returns a subset of the fields of denseDocs; nil means all.
func denseFields(rnd *rand.Rand) FieldSet {
	return []FieldSet{nil, nil, {true, false}, {false, true}, {true, true}}[rnd.IntN(5)]
}

// fieldsIndex makes an index of documents with two texts each, in two segments. The segments have all words, also of fields that are
// not searchable.
func fieldsIndex(t *testing.T, update string, docs [][2]string) *Index {
	t.Helper()
	names := []string{"text", "other"}
	ix := emptyIndex(t, update)
	ix.Fields = settings.Resolve(names, ix.Settings, "id")
	fs := vfs.NewMem()
	for n, part := range [][][2]string{docs[:len(docs)/2], docs[len(docs)/2:]} {
		b := segment.NewBuilder(segment.BuilderOptions{Prefixes: true})
		for row, d := range part {
			id := n*len(docs) + row
			b.StartDoc(segment.DocID(id), fmt.Append(nil, id), []byte("{}"))
			for k, name := range names {
				addText(b, ix, name, d[k])
			}
			b.EndDoc()
		}
		ix.Segments = append(ix.Segments, written(t, b, fs, fmt.Sprintf("%d.seg", n)))
	}
	return ix
}

// TestDenseLevels compares the rows of typos that are collected in bits with the rows of the postings.
func TestDenseLevels(t *testing.T) {
	defer func(n int) { denseShare = n }(denseShare)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	denseShare = 0 // uses sets only
	several, phrases, inside, elsewhere := 0, 0, 0, 0
	lacking := func() bool { return several == 0 || phrases == 0 || inside == 0 || elsewhere == 0 }
	names := slices.Sorted(maps.Keys(denseSettings))
	for n := 0; n < len(names) || n < 20*len(names) && lacking(); n++ {
		name := names[n%len(names)]
		docs, words := denseDocs(rnd, 300)
		ix := fieldsIndex(t, denseSettings[name], docs)
		for range 40 {
			fields := denseFields(rnd)
			g, err := ix.Build(context.Background(), ix.read(words[rnd.IntN(len(words))]), fields, never)
			if err != nil {
				t.Fatal(err)
			}
			in := ix.in(fields)
			of := wordFields{in, ix.tolerant(in), ix.infix(in)}
			m := g.Nodes[0].Match
			for i, s := range ix.Segments {
				var want [Levels]*roaring.Bitmap
				any := roaring.New()
				for level := range Levels {
					want[level] = roaring.New()
					others, within := m.Levels[level].parts(i)
					in := of.tolerant
					if level == 0 {
						in = of.all
					}
					elsewhere += addRows(want[level], others, in)
					elsewhere += addRows(want[level], within, of.infix)
					inside += len(within)
					for _, p := range m.Levels[level].Phrases {
						want[level].Or(p.Segments[i].Rows)
						phrases += int(p.Segments[i].Rows.GetCardinality())
					}
					want[level].AndNot(any)
					any.Or(want[level])
				}
				for by, got := range map[string]SegmentRows{"sets": m.Segments[i], "bits": denseOf(t, s, m, i, of)} {
					for level := range Levels {
						if !got.At[level].Equals(want[level]) {
							t.Fatalf("%s, fields %v, %s: level %d has %v, want %v", name, fields, by, level, got.At[level], want[level])
						}
					}
					if !got.Any.Equals(any) {
						t.Fatalf("%s, fields %v, %s: all levels have %v, want %v", name, fields, by, got.Any, any)
					}
				}
				if !want[1].IsEmpty() && !want[2].IsEmpty() {
					several++
				}
			}
		}
	}
	if lacking() {
		t.Errorf("%d segments had rows at two levels, %d rows had split words, %d words were inside others, and %d times other fields had one",
			several, phrases, inside, elsewhere)
	}
}

// addRows adds the rows of words in some fields, and returns the number of other fields with them.
func addRows(to *roaring.Bitmap, words []segment.Posting, fields FieldSet) (others int) {
	for _, p := range words {
		for k := range p.Fields() {
			if f := p.Field(k); fields.Has(f.ID()) {
				to.Or(f.Rows())
			} else {
				others++
			}
		}
	}
	return others
}

// denseOf collects the rows of a match in a segment in bits.
func denseOf(t *testing.T, s segment.Live, m *Match, i int, fields wordFields) SegmentRows {
	denseShare = 1 << 30
	defer func() { denseShare = 0 }()
	first := m.Segments[i].At[0]
	r := SegmentRows{At: [Levels]*roaring.Bitmap{first, noRows, noRows}, Any: first}
	if _, ok := r.addDense(s, m.Levels[1:], 1, i, fields); !ok {
		t.Fatal("bits were not used")
	}
	return r
}
