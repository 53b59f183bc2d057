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

	"svc/internal/resultcache"
	"svc/internal/text"
	"svc/internal/vfs"
	"svc/segment"
)

// textSegments writes segments of documents with one text each.
func textSegments(t *testing.T, ix *Index, parts [][]string) []segment.Live {
	t.Helper()
	fs := vfs.NewMem()
	var out []segment.Live
	id := 0
	for n, part := range parts {
		b := segment.NewBuilder(segment.BuilderOptions{Prefixes: true})
		for _, d := range part {
			b.StartDoc(segment.DocID(id), fmt.Append(nil, id), []byte("{}"))
			id++
			addText(b, ix, "text", d)
			b.EndDoc()
		}
		out = append(out, written(t, b, fs, fmt.Sprintf("%d.seg", n)))
	}
	return out
}

// addText adds a text to the open document.
func addText(b *segment.Builder, ix *Index, name, content string) {
	field, _ := ix.Fields.ID(name)
	var p text.Positions
	p.Visit()
	ix.Analyzer.Index(&p, []byte(content), nil, func(w []byte, at uint16) { b.Word(field, w, at) })
	b.WordCount(field, p.Words())
}

// written writes a segment and opens it until the end of the test.
func written(t *testing.T, b *segment.Builder, fs vfs.FS, name string) segment.Live {
	t.Helper()
	if _, err := b.Write(context.Background(), fs, name); err != nil {
		t.Fatal(err)
	}
	r, err := segment.Open(fs, name)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return segment.Live{Reader: r}
}

// TestSegmentCachesAcrossViews searches a series of views, with more and more deleted documents and other segments, and compares the
// results with those of a view without caches.
func TestSegmentCachesAcrossViews(t *testing.T) {
	for name, update := range map[string]string{
		"plain":          `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":3,"twoTypos":5}},"synonyms":{"abcab":["a b"]}}`,
		"exact fields":   `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":3,"twoTypos":5},"disableOnAttributes":["other"]}}`,
		"in no position": `{"typoTolerance":{"minWordSizeForTypos":{"oneTypo":3,"twoTypos":5}},"proximityPrecision":"byAttribute"}`,
	} {
		t.Run(name, func(t *testing.T) {
			const seed, few = 5, 15
			setLimits(t, 40, few)
			r := rand.New(rand.NewPCG(seed, 1))
			word := func(most int) string {
				var b strings.Builder
				for range 1 + r.IntN(most) {
					b.WriteByte("abcd"[r.IntN(4)])
				}
				return b.String()
			}
			ix := emptyIndex(t, update)
			parts := make([][]string, 6)
			for i := range parts {
				for range []int{400, 300, 3, 1, 20, 5}[i] {
					text := ""
					for range 1 + r.IntN(8) {
						text += word(7) + " "
					}
					parts[i] = append(parts[i], text)
				}
			}
			all := textSegments(t, ix, parts)
			memory := resultcache.New(16 << 20)
			scopes := make([]*resultcache.Scope, len(all))
			for i := range scopes {
				scopes[i] = memory.Scope()
			}
			var queries []string
			for range 60 {
				q := []string{word(7), word(7) + " " + word(3), `"` + word(2) + " " + word(2) + `"`, word(2)}[r.IntN(4)]
				queries = append(queries, q)
			}
			full := 0
			for round := range 12 {
				view, fresh := *ix, *ix
				var kept []*resultcache.Scope
				for i := range all {
					if round > 0 {
						gone := roaring.New()
						if all[i].Deleted != nil {
							gone = all[i].Deleted.Clone()
						}
						for range all[i].Rows() / 12 {
							gone.Add(uint32(r.IntN(all[i].Rows())))
						}
						all[i].Deleted = gone
					}
					if r.IntN(4) > 0 {
						view.Segments = append(view.Segments, all[i])
						kept = append(kept, scopes[i])
					}
				}
				fresh.Segments = view.Segments
				view.Cache, fresh.Cache = NewCache(memory, kept...), NewCache(resultcache.New(16<<20))
				for _, q := range queries {
					got, err := view.Build(context.Background(), view.read(q), nil, never)
					if err != nil {
						t.Fatal(err)
					}
					want, err := fresh.Build(context.Background(), fresh.read(q), nil, never)
					if err != nil {
						t.Fatal(err)
					}
					for n := range want.Nodes {
						if what := different(&view, &got.Nodes[n], &want.Nodes[n]); what != "" {
							t.Fatalf("seed %d, round %d, %s, node %d: %s differ from those without caches", seed, round, q, n, what)
						}
						if f := want.Nodes[n].forms; f != nil && slices.ContainsFunc(f.lists, func(words []string) bool { return len(words) == few }) {
							full++
						}
					}
				}
				view.Cache.Close()
			}
			if full == 0 {
				t.Error("no list of misspelt words was full")
			}
		})
	}
}

// different names the results in which two nodes differ; "": none.
func different(ix *Index, a, b *Node) string {
	switch {
	case a.Exists != b.Exists:
		return "existence"
	case a.Wide != b.Wide:
		return "width"
	}
	for i := range a.Segments {
		live := ix.Segments[i].LiveRows()
		same := func(p, q *roaring.Bitmap) bool { return roaring.And(p, live).Equals(roaring.And(q, live)) }
		for l := range Levels {
			if !same(a.Segments[i].At[l], b.Segments[i].At[l]) {
				return fmt.Sprintf("rows at level %d of segment %d", l, i)
			}
		}
		if !same(a.Segments[i].Any, b.Segments[i].Any) || !same(a.Segments[i].Word, b.Segments[i].Word) {
			return "rows"
		}
	}
	if (a.forms == nil) != (b.forms == nil) {
		return "forms"
	}
	if a.forms != nil {
		p, q := a.forms.resolve(), b.forms.resolve()
		if !maps.Equal(p.set, q.set) || !slices.Equal(p.prefixes, q.prefixes) {
			return "forms"
		}
	}
	return ""
}
