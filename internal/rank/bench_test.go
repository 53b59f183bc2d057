package rank

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/query"
	"svc/internal/resultcache"
)

// corpus is an index of generated documents with a Zipf distribution of words, in two segments.
type corpus struct {
	ix    *Index
	words []string // ordered by frequency
	*rand.Rand
}

func (c *corpus) word(z *rand.Zipf) string { return c.words[z.Uint64()] }

var (
	corpusOnce   sync.Once
	sharedCorpus *corpus
)

func newCorpus(b *testing.B) *corpus {
	corpusOnce.Do(func() {
		c := &corpus{Rand: rand.New(rand.NewPCG(3, 3))}
		seen := map[string]bool{}
		for len(c.words) < 20000 {
			var w strings.Builder
			for range 1 + c.IntN(4) {
				w.WriteByte("bcdfglmnprst"[c.IntN(12)])
				w.WriteByte("aeiou"[c.IntN(5)])
			}
			if !seen[w.String()] {
				seen[w.String()] = true
				c.words = append(c.words, w.String())
			}
		}
		z := rand.NewZipf(c.Rand, 1.1, 3, uint64(len(c.words)-1))
		text := func(n int) string {
			list := make([]string, n)
			for i := range list {
				list[i] = c.word(z)
			}
			return strings.Join(list, " ")
		}
		var docs []*document
		for i := range 20000 {
			docs = append(docs, doc(i, "name", text(2), "summary", text(8), "description", text(60), "size", c.IntN(5000), "kind", c.word(z)))
		}
		s := parseSettings(b, `{"searchableAttributes":["name","summary","description"],"sortableAttributes":["size"],"filterableAttributes":["size","kind"]}`)
		c.ix = build(detached{b}, s, [][]*document{docs[:15000], docs[15000:]}, nil)
		sharedCorpus = c
	})
	return sharedCorpus
}

// detached lets a benchmark leave its fixtures to the next one.
type detached struct{ testing.TB }

func (detached) Cleanup(func()) {}

// BenchmarkSearch measures each kind of search. cold: it is the first one with its words on a view.
func BenchmarkSearch(b *testing.B) {
	c := newCorpus(b)
	z := rand.NewZipf(rand.New(rand.NewPCG(4, 4)), 1.1, 30, uint64(len(c.words)-1))
	misspell := func(w string) string { return w[:len(w)/2] + "x" + w[len(w)/2:] }
	few := make([]*roaring.Bitmap, len(c.ix.Segments))
	for i, s := range c.ix.Segments {
		few[i] = roaring.New()
		for row := range s.Rows() {
			if row%3 == 0 {
				few[i].Add(uint32(row))
			}
		}
	}
	for _, k := range []struct {
		name string
		make func() Request
	}{
		{"one word", func() Request { return Request{Query: c.word(z)} }},
		{"three words", func() Request { return Request{Query: fmt.Sprint(c.word(z), " ", c.word(z), " ", c.word(z))} }},
		{"prefix", func() Request { w := c.word(z); return Request{Query: w[:min(len(w), 1+len(w)%4)]} }},
		{"typo and word", func() Request { return Request{Query: misspell(c.word(z)) + " " + c.word(z)} }},
		{"phrase", func() Request { return Request{Query: `"` + c.word(z) + " " + c.word(z) + `"`} }},
		{"word, filter, sort", func() Request {
			return Request{Query: c.word(z), Universe: few, Sort: []SortKey{{Field: "size", Desc: true}}}
		}},
		{"two words, distinct", func() Request { return Request{Query: c.word(z) + " " + c.word(z), Distinct: "kind"} }},
		{"word, scores", func() Request { return Request{Query: c.word(z), Scores: true} }},
		{"placeholder, filter", func() Request { return Request{Universe: few} }},
	} {
		var requests []*Request
		for range 200 {
			r := k.make()
			r.Limit, r.MaxTotal = 20, 1000
			requests = append(requests, &r)
		}
		run := func(b *testing.B, cold bool) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				ix := *c.ix
				if cold {
					ix.Cache = query.NewCache(resultcache.New(64 << 20))
				}
				if _, err := Search(context.Background(), &ix, requests[i%len(requests)]); err != nil {
					b.Fatal(err)
				}
			}
		}
		b.Run(k.name+"/cold", func(b *testing.B) { run(b, true) })
		b.Run(k.name+"/warm", func(b *testing.B) { run(b, false) })
	}
}
