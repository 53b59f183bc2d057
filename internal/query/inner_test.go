package query

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/internal/text"
	"svc/internal/vfs"
	"svc/segment"
)

// TestInnerWordsWithAPrefix searches for a prefix that more inner words begin with than count. It finds the documents of the first ones in
// byte order that live documents have, however the documents are spread over segments, and also after documents are deleted.
func TestInnerWordsWithAPrefix(t *testing.T) {
	defer func(n int) { maxParts = n }(maxParts)
	maxParts = 5
	const docs = 60
	r := rand.New(rand.NewPCG(1, 2))
	ix := emptyIndex(t, `{}`)
	prefix := ix.read("대").Terms[0].Word
	forms := make([]string, docs) // of the inner word of each document
	for i := range forms {
		forms[i] = ix.read(fmt.Sprintf("대%c", '가'+28*rune(r.IntN(40)))).Terms[0].Word
	}
	for _, sizes := range [][]int{{docs}, {20, docs - 20}, {50, 7, docs - 57}} {
		fs := vfs.NewMem()
		var segments []segment.Live
		memory := resultcache.New(64 << 20)
		var scopes []*resultcache.Scope
		at := 0
		for _, n := range sizes {
			b := segment.NewBuilder(segment.BuilderOptions{Prefixes: true})
			for range n {
				b.StartDoc(segment.DocID(at), fmt.Append(nil, at), []byte("{}"))
				b.Word(0, []byte(ix.read("한국").Terms[0].Word), 0)
				b.Word(0, []byte(text.PartEntry(forms[at])), 0)
				b.WordCount(0, 1)
				b.EndDoc()
				at++
			}
			live := written(t, b, fs, fmt.Sprintf("%d.seg", at))
			live.Deleted = roaring.New()
			segments, scopes = append(segments, live), append(scopes, memory.Scope())
		}
		for round := range 8 {
			view := *ix
			view.Segments, view.Cache = slices.Clone(segments), NewCache(memory, scopes...)
			g, err := view.Build(context.Background(), view.read("대"), nil, never)
			if err != nil {
				t.Fatal(err)
			}
			var live []string
			dead := make([]bool, docs)
			first := 0
			for i, n := range sizes {
				for row := range n {
					if dead[first+row] = segments[i].Deleted.Contains(uint32(row)); !dead[first+row] {
						live = append(live, forms[first+row])
					}
				}
				first += n
			}
			slices.Sort(live)
			live = slices.Compact(live)
			if round == 0 && (len(live) <= maxParts || prefix == "") {
				t.Fatalf("%d inner words begin with %q", len(live), prefix)
			}
			live = live[:min(len(live), maxParts)]
			first = 0
			for i, n := range sizes {
				for row := range n {
					doc := first + row
					_, want := slices.BinarySearch(live, forms[doc])
					if got := g.Nodes[0].Segments[i].At[0].Contains(uint32(row)); !dead[doc] && got != want {
						t.Errorf("%v, round %d: document %d with %q is found: %t", sizes, round, doc, forms[doc], got)
					}
				}
				first += n
			}
			// The documents of the first words are deleted in the next view.
			first = 0
			for i, n := range sizes {
				deleted := segments[i].Deleted.Clone()
				for row := range n {
					if _, is := slices.BinarySearch(live, forms[first+row]); is && r.IntN(3) > 0 {
						deleted.Add(uint32(row))
					}
				}
				segments[i].Deleted = deleted
				first += n
			}
		}
	}
}
