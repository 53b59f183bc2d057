package query

import (
	"cmp"
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

const infixText = `"filterableAttributes":[{"attributePatterns":["text"],"features":{"infix":true}}]`

func TestWordsInsideOthers(t *testing.T) {
	docs := []string{"keyboard", "board", "boarding", "surfboards", "boarx", "skateboard keyboard", "ab4711x", "4711"}
	for _, c := range []struct {
		settings, query string
		levels          [Levels]string // the documents
	}{
		{infixText, "board ", [Levels]string{"1", "4", "0 2 3 5"}},
		{infixText, "board", [Levels]string{"1 2", "4", "0 3 5"}}, // boarding begins with it
		{infixText, "keyboar ", [Levels]string{"", "0 5", ""}},
		{infixText, "oard ", [Levels]string{"", "", "0 1 2 3 5"}}, // board, too, at one typo, which is its first letter
		{infixText, "4711 ", [Levels]string{"7", "", "6"}},
		{infixText, "ar ", [Levels]string{"", "", ""}}, // too short
		{infixText, `"board" "oard"`, [Levels]string{"1", "", ""}},
		{infixText + `,"typoTolerance":{"enabled":false}`, "oard ", [Levels]string{"", "", "0 1 2 3 5"}},
		{infixText + `,"typoTolerance":{"disableOnNumbers":true,"disableOnAttributes":["text"]}`, "711 ", [Levels]string{"", "", "6 7"}},
		{infixText + `,"searchableAttributes":["other"]`, "oard ", [Levels]string{"", "", ""}},
		{`"filterableAttributes":["text"]`, "board ", [Levels]string{"1", "4", ""}},
	} {
		ix := testIndex(t, "{"+c.settings+"}", docs)
		g, err := ix.Build(context.Background(), ix.read(c.query), nil, never)
		if err != nil {
			t.Fatal(err)
		}
		checkGraph(g)
		v := &g.Nodes[0]
		for level, want := range c.levels {
			var got []string
			for i := range ix.Segments {
				for _, row := range v.Segments[i].At[level].ToArray() {
					got = append(got, string(rune('0'+int(row)+i*len(docs)/2)))
				}
			}
			if s := strings.Join(got, " "); s != want {
				t.Errorf("%s, %q: documents %q at level %d, want %q", c.settings, c.query, s, level, want)
			}
		}
	}
}

// The words that contain a word are those that a look at each word of the dictionary gives, however documents lie in segments and
// words in blocks.
func TestWordsInsideOthersAgainstDictionary(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	setLimits(t, 30, 8)
	defer func(n int) { wordBlockBytes = n }(wordBlockBytes)
	limited, cut := 0, 0
	for range 12 {
		wordBlockBytes = 1 + r.IntN(60)
		ix := emptyIndex(t, `{`+infixText+`,"typoTolerance":{"enabled":false}}`)
		parts, documents := fewLetters{r}.fill(t, ix, 11)
		for range 40 {
			asked := fewLetters{r}.word(3 + r.IntN(2))
			prefix := r.IntN(2) == 0
			q := asked
			if !prefix {
				q += " "
			}
			g, err := ix.Build(context.Background(), ix.read(q), nil, never)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, w := range slices.Sorted(maps.Keys(documents)) {
				if at := strings.Index(w, asked); at > 0 || at == 0 && w != asked && !prefix {
					want = append(want, w)
				}
			}
			if len(want) > maxMisspelt {
				want = want[:maxMisspelt]
				cut++
			}
			if len(want) > maxInsideWords {
				slices.SortStableFunc(want, func(a, b string) int { return cmp.Compare(documents[b], documents[a]) })
				want = want[:maxInsideWords]
				slices.Sort(want)
				limited++
			}
			v := &g.Nodes[0]
			if !slices.Equal(v.forms.inside, want) {
				t.Fatalf("%q: %q contain it, want %q", q, v.forms.inside, want)
			}
			for i, part := range parts {
				for row, doc := range part {
					found := slices.ContainsFunc(strings.Fields(doc), func(w string) bool { return slices.Contains(want, w) })
					if found != v.Segments[i].At[2].Contains(uint32(row)) && !v.Segments[i].At[0].Contains(uint32(row)) && !v.Segments[i].At[1].Contains(uint32(row)) {
						t.Fatalf("%q in %q: %v, want %v", q, doc, !found, found)
					}
				}
			}
		}
	}
	if limited == 0 || cut == 0 {
		t.Errorf("%d queries were in more words than count, %d in more than are looked at", limited, cut)
	}
}
