package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"svc/segment"
)

const infixText = `"filterableAttributes":[{"attributePatterns":["text"],"features":{"infix":true}}]`

func TestWordsInsideOthers(t *testing.T) {
	docs := []string{"keyboard", "board", "boarding", "surfboards", "boarx", "skateboard keyboard", "ab4711x", "4711"}
	for _, c := range []struct {
		settings, query string
		levels          [Levels]string // the documents
	}{
		{infixText, "board ", [Levels]string{"1", "4", "0 2 3 5"}},
		{infixText, "board", [Levels]string{"1 2", "4", "0 3 5"}}, // boarding starts with it
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

// TestFrequentWordsInsideOthersAreFound has more words than candidates, and the most frequent one is last in byte order.
func TestFrequentWordsInsideOthersAreFound(t *testing.T) {
	setLimits(t, 30, 8)
	var docs []string
	for i := range 100 {
		docs = append(docs, fmt.Sprintf("a%ding", i))
	}
	docs = append(docs, "string", "string", "zing")
	ix := testIndex(t, "{"+infixText+"}", docs)
	g, err := ix.Build(context.Background(), ix.read("ing "), nil, never)
	if err != nil {
		t.Fatal(err)
	}
	v := &g.Nodes[0]
	if !slices.Contains(v.forms.inside, "string") || len(v.forms.inside) != maxInsideWords {
		t.Errorf("%q count", v.forms.inside)
	}
}

// TestShortSearchesBuildTheListOfWords has searches too short for a scan of the whole dictionary.
func TestShortSearchesBuildTheListOfWords(t *testing.T) {
	defer func(n, words int) { paceSteps, wordBlockWords = n, words }(paceSteps, wordBlockWords)
	paceSteps, wordBlockWords = 20, 5
	ix := emptyIndex(t, "{"+infixText+`,"typoTolerance":{"enabled":false}}`)
	var docs []string
	for i := range 300 {
		docs = append(docs, fmt.Sprintf("word%d", i))
	}
	ix.Segments = textSegments(t, ix, [][]string{docs})
	for searches := 1; ; searches++ {
		looks := 0
		late := false
		_, err := ix.Build(context.Background(), ix.read("xyz "), nil, func() bool { looks++; late = late || looks > 4; return late })
		if err != nil {
			t.Fatal(err)
		}
		if !late {
			if searches < 3 {
				t.Errorf("%d searches scanned all words", searches)
			}
			return
		}
		if searches > 100 {
			t.Fatal("no search reached the end of the dictionary")
		}
	}
}

// insideWords is the reference for words that contain another one: it tests each word of each segment. exact reports that the candidates
// of all segments were all words.
func insideWords(parts [][]string, gone []segment.Live, asked string, prefix bool) (words []string, exact bool) {
	exact = true
	live := map[string]int{}
	for i, part := range parts {
		rows, here := map[string]int{}, map[string]int{}
		for row, doc := range part {
			in := strings.Fields(doc)
			slices.Sort(in)
			for _, w := range slices.Compact(in) {
				if at := strings.Index(w, asked); at < 0 || at == 0 && (w == asked || prefix) {
					continue
				}
				if rows[w]++; !gone[i].Deleted.Contains(uint32(row)) {
					here[w]++
				}
			}
		}
		candidates := slices.Sorted(maps.Keys(rows))
		slices.SortStableFunc(candidates, func(a, b string) int { return cmp.Compare(rows[b], rows[a]) })
		if len(candidates) > maxInsideCandidates {
			candidates, exact = candidates[:maxInsideCandidates], false
		}
		for _, w := range candidates {
			if here[w] > 0 {
				live[w] += here[w]
			}
		}
	}
	words = slices.Sorted(maps.Keys(live))
	if len(words) > maxInsideWords {
		slices.SortStableFunc(words, func(a, b string) int { return cmp.Compare(live[b], live[a]) })
		words = words[:maxInsideWords]
		slices.Sort(words)
	}
	return words, exact
}

// TestWordsInsideOthersAgainstDictionary compares the words that contain a word with insideWords, for random distributions of
// words over blocks.
func TestWordsInsideOthersAgainstDictionary(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	setLimits(t, 30, 8)
	defer func(n, words int) { wordBlockBytes, wordBlockWords = n, words }(wordBlockBytes, wordBlockWords)
	limited, cut := 0, 0
	for range 12 {
		wordBlockBytes, wordBlockWords = 1+r.IntN(60), 1+r.IntN(30)
		ix := emptyIndex(t, `{`+infixText+`,"typoTolerance":{"enabled":false}}`)
		parts, _ := fewLetters{r}.fill(t, ix, 11)
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
			want, exact := insideWords(parts, ix.Segments, asked, prefix)
			if len(want) == maxInsideWords {
				limited++
			}
			if !exact {
				cut++
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
		t.Errorf("%d queries exceeded the limit of words, %d the limit of candidates", limited, cut)
	}
}
