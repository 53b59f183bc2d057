package query

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/internal/settings"
	"svc/internal/text"
	"svc/segment"
)

// emptyIndex makes an index without segments.
func emptyIndex(t *testing.T, update string) *Index {
	t.Helper()
	u, err := settings.ParseUpdate([]byte(update), settings.Features{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := settings.Default().Apply(u)
	if err != nil {
		t.Fatal(err)
	}
	a := text.New(text.Config{})
	return &Index{Settings: s, Fields: settings.Resolve([]string{"text"}, s, "id"), Analyzer: a, Synonyms: Synonyms(s, a), Cache: NewCache(resultcache.New(64 << 20))}
}

// testIndex makes an index of documents with one text each, in two segments.
func testIndex(t *testing.T, update string, docs []string) *Index {
	t.Helper()
	ix := emptyIndex(t, update)
	ix.Segments = textSegments(t, ix, [][]string{docs[:len(docs)/2], docs[len(docs)/2:]})
	return ix
}

func (ix *Index) read(q string) *Terms {
	return ix.Read(ix.Analyzer.Tokens(nil, q, nil, true), q, nil, nil)
}

func never() bool { return false }

// contains reports whether all rows of b are in a.
func contains(a, b *roaring.Bitmap) bool { return b.AndCardinality(a) == b.GetCardinality() }

// TestBuildStopsAtDeadline checks that a query whose deadline passes at any step finds a part of the full results: at least the exact
// words and all exclusions. It must not leave incomplete results in a cache.
func TestBuildStopsAtDeadline(t *testing.T) {
	setLimits(t, maxMisspelt, maxMisspelt) // otherwise the selection of words depends on the deadline
	defer func(n int) { paceSteps = n }(paceSteps)
	paceSteps = 40
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	letters := func(n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte("abc"[rnd.IntN(3)])
		}
		return b.String()
	}
	docs := make([]string, 300)
	for i := range docs {
		for range 6 {
			docs[i] += letters(1+rnd.IntN(6)) + " "
		}
	}
	for _, update := range []string{
		`{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":2,"twoTypos":4}},"synonyms":{"ab":["a b","ccc"]}}`,
		`{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":2,"twoTypos":4}},"proximityPrecision":"byAttribute","prefixSearch":"disabled"}`,
		`{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":2,"twoTypos":4}},"filterableAttributes":[{"attributePatterns":["*"],"features":{"infix":true}}]}`,
	} {
		whole := testIndex(t, update, docs)
		for _, q := range []string{"abca bcab ab", `"a b" abcab cabca`, `"a b c" -"a c" abcac`, "ab ba abccb"} {
			asked := 0
			full, err := whole.Build(context.Background(), whole.read(q), nil, func() bool { asked++; return false })
			if err != nil {
				t.Fatal(err)
			}
			if asked < 3 {
				t.Fatalf("%s: the clock was read %d times", q, asked)
			}
			for _, after := range []int{0, 1, asked / 2, asked - 1} {
				ix := *whole
				ix.Cache = NewCache(resultcache.New(64 << 20))
				left := after
				part, err := ix.Build(context.Background(), ix.read(q), nil, func() bool { left--; return left < 0 })
				if err != nil {
					t.Fatal(err)
				}
				if left < -len(part.Nodes) {
					t.Errorf("%s: the clock was read again after the deadline", q)
				}
				again, err := ix.Build(context.Background(), ix.read(q), nil, never)
				if err != nil {
					t.Fatal(err)
				}
				for n := range full.Nodes {
					for i := range full.Nodes[n].Segments {
						f, p, a := full.Nodes[n].Segments[i], part.Nodes[n].Segments[i], again.Nodes[n].Segments[i]
						if !contains(f.Any, p.Any) {
							t.Errorf("%s, deadline after %d: node %d finds more than without a deadline", q, after, n)
						}
						if !full.Nodes[n].Phrase && !p.Word.Equals(f.Word) {
							t.Errorf("%s, deadline after %d: node %d lacks its exact words", q, after, n)
						}
						for level := range Levels {
							if !a.At[level].Equals(f.At[level]) {
								t.Errorf("%s, deadline after %d: node %d was cached incomplete", q, after, n)
							}
						}
					}
				}
				for i := range full.Excluded {
					if !part.Excluded[i].Equals(full.Excluded[i]) {
						t.Errorf("%s, deadline after %d: exclusions are missing", q, after)
					}
				}
			}
		}
	}
}

// TestPhrasesAreWordsInARow checks the rows of phrases with and without stored neighbours.
func TestPhrasesAreWordsInARow(t *testing.T) {
	defer func(n, m int) { segment.NeighbourRows, segment.NeighbourSegmentRows = n, m }(segment.NeighbourRows, segment.NeighbourSegmentRows)
	segment.NeighbourSegmentRows = 0
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for range 30 {
		segment.NeighbourRows = []int{math.MaxInt, 20, 1}[rnd.IntN(3)]
		docs := make([]string, 2+rnd.IntN(300))
		words := []string{"a", "b", "b", "c", "d", "d", "d", "e"}
		for i := range docs {
			var b strings.Builder
			for range rnd.IntN([]int{6, 100}[rnd.IntN(2)]) {
				b.WriteString(words[rnd.IntN(len(words))] + " ")
			}
			docs[i] = b.String()
		}
		ix := testIndex(t, `{}`, docs)
		for range 20 {
			var phrase []string
			for n := 2 + rnd.IntN(3); len(phrase) < n; {
				phrase = append(phrase, words[rnd.IntN(len(words))])
			}
			m := (&resolver{ix, pace{stop: never}}).phrase(phrase, nil)
			for seg, part := range [][]string{docs[:len(docs)/2], docs[len(docs)/2:]} {
				for row, d := range part {
					want := inARow(strings.Fields(d), phrase)
					if got := m.Segments[seg].Rows.Contains(uint32(row)); got != want {
						t.Fatalf("%q in %q: %v, want %v (neighbours of words in %d rows are stored)", phrase, d, got, want, segment.NeighbourRows)
					}
				}
			}
		}
	}
}

// TestSplitsAreThoseOfMostDocuments checks that a word is split where most documents have the parts, and into its letters if any document
// has these in a row, with and without stored neighbours.
func TestSplitsAreThoseOfMostDocuments(t *testing.T) {
	defer func(n, m int) { segment.NeighbourRows, segment.NeighbourSegmentRows = n, m }(segment.NeighbourRows, segment.NeighbourSegmentRows)
	segment.NeighbourSegmentRows = 0
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 2))
	splits, abbreviations := 0, 0
	for range 30 {
		segment.NeighbourRows = []int{math.MaxInt, 20, 1}[rnd.IntN(3)]
		near := rnd.IntN(3) > 0
		docs := make([]string, 2+rnd.IntN(200))
		words := []string{"a", "ab", "b", "ba", "abb", "bb", "bab", "aab"}
		for i := range docs {
			var b strings.Builder
			for range rnd.IntN([]int{4, 40}[rnd.IntN(2)]) {
				b.WriteString(words[rnd.IntN(1+rnd.IntN(len(words)))] + " ")
			}
			docs[i] = b.String()
		}
		update := `{}`
		if !near {
			update = `{"proximityPrecision":"byAttribute"}`
		}
		ix := testIndex(t, update, docs)
		for range 20 {
			word := words[rnd.IntN(len(words))] + words[rnd.IntN(len(words))] + words[rnd.IntN(2)]
			best, most := 0, 0
			for at := 1; at < len(word); at++ {
				n := 0
				for _, d := range docs {
					text := strings.Fields(d)
					left, right := word[:at], word[at:]
					if near && inARow(text, []string{left, right}) || !near && slices.Contains(text, left) && slices.Contains(text, right) {
						n++
					}
				}
				if n > most {
					best, most = at, n
				}
			}
			m, err := (&resolver{ix, pace{stop: never}}).match(&pattern{words: []string{word}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			letters := strings.Split(word, "")
			abbreviates := near && 3 <= len(word) && len(word) <= maxLetters &&
				slices.ContainsFunc(docs, func(d string) bool { return inARow(strings.Fields(d), letters) })
			got := 0
			for _, p := range m.Levels[1].Phrases {
				if len(p.Words) > 2 {
					if !abbreviates || !slices.Equal(p.Words, letters) {
						t.Fatalf("%q is split into %q (neighbours of words in %d rows are stored, in a row: %v)", word, p.Words, segment.NeighbourRows, near)
					}
					abbreviates = false
					abbreviations++
					continue
				}
				got = len(p.Words[0])
				splits++
			}
			if abbreviates {
				t.Fatalf("%q is not split into letters (neighbours of words in %d rows are stored)", word, segment.NeighbourRows)
			}
			if got != best {
				t.Fatalf("%q is split at %d, want %d (neighbours of words in %d rows are stored, in a row: %v)", word, got, best, segment.NeighbourRows, near)
			}
		}
	}
	if splits < 20 || abbreviations < 5 {
		t.Errorf("%d words were split in two, %d into letters", splits, abbreviations)
	}
}

// inARow reports whether a text contains the words of a phrase consecutively.
func inARow(text, phrase []string) bool {
	for at := range text {
		if end := at + len(phrase); end <= len(text) && slices.Equal(text[at:end], phrase) {
			return true
		}
	}
	return false
}

// TestPhrasesAreFoundAfterDeadline checks that each phrase of a query is searched in the first documents, even after the deadline.
func TestPhrasesAreFoundAfterDeadline(t *testing.T) {
	defer func(n int) { paceSteps = n }(paceSteps)
	defer func(n, m int) { segment.NeighbourRows, segment.NeighbourSegmentRows = n, m }(segment.NeighbourRows, segment.NeighbourSegmentRows)
	segment.NeighbourSegmentRows = 0
	segment.NeighbourRows = math.MaxInt // no stored neighbours, so that positions are read
	paceSteps = 2 * 2 * phraseRows      // rows of two words that are read in two steps
	docs := slices.Repeat([]string{"a b c d"}, 6*phraseRows)
	ix := testIndex(t, `{}`, docs)
	g, err := ix.Build(context.Background(), ix.read(`"a b" "c d"`), nil, func() bool { return true })
	if err != nil {
		t.Fatal(err)
	}
	for n := range g.Nodes {
		if got := g.Nodes[n].Segments[0].Any.GetCardinality(); got != phraseRows {
			t.Errorf("phrase %d is found in %d documents, want %d", n, got, phraseRows)
		}
		if got := g.Nodes[n].Segments[1].Any.GetCardinality(); got != 0 {
			t.Errorf("phrase %d is found in %d documents of the second segment", n, got)
		}
	}
}

// TestBuildEndsWithTheContext checks that a cancelled request stops, even while it computes exclusions.
func TestBuildEndsWithTheContext(t *testing.T) {
	ix := testIndex(t, `{}`, []string{"a b", "b a", "a b", "c"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := ix.Build(ctx, ix.read(`c -"a b"`), nil, never); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
