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

	"github.com/RoaringBitmap/roaring/v2"

	"svc/segment"
)

// setLimits sets how many misspelt words, and words that contain another, are examined and counted, until the end of the test.
func setLimits(t *testing.T, looked, counted int) {
	words, longer, inside, all, candidates := maxTypoWords, maxLongerWords, maxInsideWords, maxMisspelt, maxInsideCandidates
	t.Cleanup(func() {
		maxTypoWords, maxLongerWords, maxInsideWords, maxMisspelt, maxInsideCandidates = words, longer, inside, all, candidates
	})
	maxTypoWords, maxLongerWords, maxInsideWords, maxMisspelt, maxInsideCandidates = [Levels]int{1: counted, 2: counted - 1}, 2*counted, counted, looked, looked
}

// slowTypos returns, by level, the reference corrections of a misspelt word: words that match as a whole, and those with a matching
// prefix. documents has the number of live documents of each word. limited reports whether more were found than count, and cut whether
// more were found than are examined.
func slowTypos(asked string, budget int, prefix bool, documents map[string]int) (words [Levels]map[string]bool, limited, cut bool) {
	var found [runKinds][]string
	q := []rune(asked)
	for _, w := range slices.Sorted(maps.Keys(documents)) {
		x := []rune(w)
		edits, whole := slowDistance(q, x, prefix), slowDistance(q, x, false)
		kind := runKind(edits)
		switch {
		case edits == 0 || edits > budget || x[0] != q[0] && (edits > 1 || budget < 2):
			continue
		case x[0] != q[0]:
			kind = two
		}
		if whole > edits {
			kind += toLonger
		}
		if found[kind] = append(found[kind], w); len(found[kind]) > maxMisspelt {
			found[kind], cut = found[kind][:maxMisspelt], true
		}
	}
	asTyped := false
	for w := range documents {
		asTyped = asTyped || w == asked || prefix && strings.HasPrefix(w, asked)
	}
	for level := 1; level < Levels; level++ {
		words[level] = map[string]bool{}
		take := func(list []string, most int) {
			limited = limited || len(list) > most
			slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(documents[b], documents[a]) })
			for _, w := range list[:min(len(list), most)] {
				words[level][w] = true
			}
		}
		take(found[level], maxTypoWords[level])
		longer, most := found[runKind(level)+toLonger], maxLongerWords
		if asTyped { // the first ones up to the limit
			most = maxTypoWords[level] - len(words[level])
			longer = longer[:min(len(longer), most)]
		}
		take(longer, most)
	}
	return words, limited, cut
}

// fewLetters makes words of few letters, so that many are similar.
type fewLetters struct{ *rand.Rand }

func (r fewLetters) word(n int) string {
	var b strings.Builder
	for range n {
		b.WriteByte("abc"[min(r.IntN(3), r.IntN(4))])
	}
	return b.String()
}

// fill adds some segments of random documents to an index, a quarter of them deleted, with words shorter than longest letters. It returns
// the documents by segment, and the number of live documents of each word.
func (r fewLetters) fill(t *testing.T, ix *Index, longest int) (parts [][]string, documents map[string]int) {
	t.Helper()
	parts = make([][]string, 1+r.IntN(4))
	for i := range parts {
		for range 1 + r.IntN(150) {
			var words []string
			for range 1 + r.IntN(4) {
				words = append(words, r.word(2+r.IntN(longest-2)))
			}
			parts[i] = append(parts[i], strings.Join(words, " "))
		}
	}
	ix.Segments = textSegments(t, ix, parts)
	documents = map[string]int{}
	for i, part := range parts {
		gone := roaring.New()
		for row, doc := range part {
			if r.IntN(4) == 0 {
				gone.Add(uint32(row))
				continue
			}
			words := strings.Fields(doc)
			slices.Sort(words)
			for _, w := range slices.Compact(words) {
				documents[w]++
			}
		}
		ix.Segments[i].Deleted = gone
	}
	return parts, documents
}

// TestMisspeltWordsAgainstDictionary compares corrections with slowTypos, for random distributions of documents over segments.
func TestMisspeltWordsAgainstDictionary(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	setLimits(t, 30, 8)
	limited, cut := 0, 0
	for range 12 {
		ix := emptyIndex(t, `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":3,"twoTypos":5}}}`)
		_, documents := fewLetters{r}.fill(t, ix, 9)
		for range 40 {
			asked := fewLetters{r}.word(3 + r.IntN(4))
			prefix := r.IntN(2) == 0
			q := asked
			if !prefix {
				q += " "
			}
			g, err := ix.Build(context.Background(), ix.read(q), nil, never)
			if err != nil {
				t.Fatal(err)
			}
			v := &g.Nodes[0]
			want, isLimited, isCut := slowTypos(asked, v.Budget, prefix, documents)
			for level := 1; level < Levels; level++ {
				got := map[string]bool{}
				for i := range ix.Segments {
					for w := range documents {
						if p, ok := ix.Segments[i].Term([]byte(w)); ok && slices.ContainsFunc(v.Levels[level].Postings[i], p.Same) {
							got[w] = true
						}
					}
				}
				if !maps.Equal(got, want[level]) {
					t.Fatalf("%q, prefix %v, level %d: %v, want %v", asked, prefix, level, slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want[level])))
				}
			}
			if isLimited {
				limited++
			}
			if isCut {
				cut++
			}
		}
	}
	if limited == 0 || cut == 0 {
		t.Errorf("%d queries exceeded the limit of words that count, %d the limit of examined words", limited, cut)
	}
}

// TestWholeWordsPrecedePrefixMatches checks that a misspelt prefix of very many words still finds all words that match as a whole.
func TestWholeWordsPrecedePrefixMatches(t *testing.T) {
	setLimits(t, 20, 5)
	var docs []string
	for a := 'a'; a <= 'h'; a++ {
		for b := 'a'; b <= 'z'; b++ {
			docs = append(docs, "sams"+string(a)+"ng"+string(b), "astrams"+string(a)+"ng"+string(b)+"x")
		}
	}
	docs = append(docs, "samsung", "astramsunk", "samsizg")
	ix := testIndex(t, `{}`, docs)
	for _, c := range []struct{ query, word string }{{"samsing", "samsung"}, {"samsing", "samsizg"}, {"astramsing", "astramsunk"}} {
		g, err := ix.Build(context.Background(), ix.read(c.query), nil, never)
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for i, s := range ix.Segments {
			if p, ok := s.Term([]byte(c.word)); ok {
				found = found || slices.ContainsFunc(slices.Concat(g.Nodes[0].Levels[1].Postings[i], g.Nodes[0].Levels[2].Postings[i]), func(q segment.Posting) bool { return q.Same(p) })
			}
		}
		if !found {
			t.Errorf("%s does not find %s", c.query, c.word)
		}
	}
}
