package query

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
)

// TestVariantsFindEachOther checks that each way to write a word finds the others, and that the matching parts are highlighted.
func TestVariantsFindEachOther(t *testing.T) {
	for _, group := range [][]string{
		{"USA", "U.S.A.", "u.s.a"}, {"nato", "N.A.T.O.", "n.a.t.o"}, {"UNESCO", "U.N.E.S.C.O."}, {"США", "С.Ш.А."}, {"СССР", "С.С.С.Р."},
		{"コンピューター", "こんぴゅーたー", "ｺﾝﾋﾟｭｰﾀｰ"}, {"チョコレート", "ちょこれーと"}, {"スパゲッティ", "すぱげってぃ"}, {"パソコン", "ぱそこん"}, {"テレビ", "てれび"}, {"ホテル", "ほてる"},
		{"½", "1/2", "1⁄2"}, {"¾", "3/4"}, {"1½", "1 1/2"}, {"⅒", "1/10"},
	} {
		docs := append([]string{"x", "1 3", "い ん", "u n s"}, group...)
		ix := testIndex(t, `{}`, docs)
		for _, query := range group {
			found := findsAll(t, ix, query)
			for i, d := range docs {
				if want := slices.Contains(group, d); found[i] != want {
					t.Errorf("%s finds %s: %v, want %v", query, d, found[i], want)
				}
			}
		}
	}
}

// findsAll returns which documents match all terms of a query, without the last one as a prefix.
func findsAll(t *testing.T, ix *Index, query string) []bool {
	t.Helper()
	terms := ix.read(query)
	for i := range terms.Terms {
		terms.Terms[i].Prefix = false
	}
	g, err := ix.Build(context.Background(), terms, nil, never)
	if err != nil {
		t.Fatal(err)
	}
	checkGraph(g)
	var found []bool
	for seg, s := range ix.Segments {
		reached := make([]*roaring.Bitmap, len(g.Terms)+1) // rows that match the terms before each place
		for i := range reached {
			reached[i] = roaring.New()
		}
		reached[0].AddRange(0, uint64(s.Rows()))
		for k := range g.Nodes {
			v := &g.Nodes[k]
			reached[v.Term+v.Len].Or(roaring.And(reached[v.Term], v.Segments[seg].Any))
		}
		for row := range s.Rows() {
			found = append(found, reached[len(g.Terms)].Contains(uint32(row)))
		}
	}
	return found
}

// TestVariantsOfTerms checks the readings that random queries get against their text.
func TestVariantsOfTerms(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	ix := testIndex(t, `{}`, []string{"a", "b"})
	parts := []string{"a", "B", "c", "ab", "1", "2", "3", "12", "½", "1½", "a.", "B.", "c.", "a.", "B.", "/", "/", " ", " ", "テレビ", "てれび", "ー", "北"}
	abbreviations, fractions := 0, 0
	for range 20_000 {
		var b strings.Builder
		for range 1 + rnd.IntN(10) {
			b.WriteString(parts[rnd.IntN(len(parts))])
		}
		query := b.String()
		terms := ix.read(query)
		for _, r := range terms.readings {
			last := &terms.Terms[r.term+r.n-1]
			raw := strings.ToLower(query[terms.Terms[r.term].from:last.to])
			switch {
			case strings.Contains(raw, "."):
				if letters := strings.Split(raw, "."); len(letters) != r.n || r.n <= maxGram || r.n > maxLetters || !slices.Equal(r.words, []string{strings.Join(letters, "")}) {
					t.Fatalf("%q: %q is read as %q", query, raw, r.words)
				}
				abbreviations++
			case strings.Contains(raw, "/"):
				if !slices.Equal(r.words, []string{strings.NewReplacer(" ", "", "/", "⁄").Replace(raw)}) {
					t.Fatalf("%q: %q is read as %q", query, raw, r.words)
				}
				fractions++
			case strings.Contains(raw, "½") && r.n == 1:
				if want := strings.Fields(strings.NewReplacer("½", " 1 2").Replace(raw)); !slices.Equal(r.words, want) {
					t.Fatalf("%q: %q is read as %q, want %q", query, raw, r.words, want)
				}
				fractions++
			}
		}
		for from := range query { // abbreviations are found wherever they stand
			rest := query[from:]
			if len(rest) < 9 || rest[1] != '.' || rest[3] != '.' || rest[5] != '.' || strings.ContainsAny(query, "½北テてー") || from > 0 && query[from-1] != ' ' || rest[7] != ' ' {
				continue
			}
			if letters := []string{rest[:1], rest[2:3], rest[4:5], rest[6:7]}; !slices.ContainsFunc(letters, func(l string) bool { return !strings.Contains("aBc", l) }) &&
				!slices.ContainsFunc(terms.readings, func(r reading) bool { return r.n == 4 && terms.Terms[r.term].from == from }) {
				t.Fatalf("%q has no reading of %q", query, letters)
			}
		}
	}
	if abbreviations < 20 || fractions < 100 {
		t.Errorf("%d abbreviations and %d fractions", abbreviations, fractions)
	}
}
