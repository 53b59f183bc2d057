package segment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/vfs"
)

// benchDoc is a document of about 1 KiB whose words are distributed as in natural text.
type benchDoc struct {
	raw   []byte
	words [3][][]byte // by field: a name, a line, a text
	tags  [][]byte
	size  float64
}

var benchDocs = sync.OnceValue(func() []benchDoc {
	rng := rand.New(rand.NewPCG(3, 1))
	zipf := rand.NewZipf(rng, 1.1, 4, 60000)
	words := make([][]byte, 60001)
	syllables := strings.Fields("lib con ter pro per de re in ex com pu ta tion ment al ver sis tem da ta py go x un net work ser vice doc dev")
	for i := range words {
		var w strings.Builder
		for n := i + 7; n > 0; n /= len(syllables) {
			w.WriteString(syllables[n%len(syllables)])
		}
		words[i] = []byte(w.String())
	}
	docs := make([]benchDoc, 10000)
	for i := range docs {
		d := &docs[i]
		var raw strings.Builder
		fmt.Fprintf(&raw, `{"id":%d`, i)
		for f, n := range []int{2, 8, 60 + rng.IntN(80)} {
			fmt.Fprintf(&raw, `,"field%d":"`, f)
			for range n {
				w := words[zipf.Uint64()]
				d.words[f] = append(d.words[f], w)
				raw.Write(w)
				raw.WriteByte(' ')
			}
			raw.WriteByte('"')
		}
		for range rng.IntN(6) {
			d.tags = append(d.tags, words[rng.IntN(300)])
		}
		d.size = float64(rng.IntN(20000))
		fmt.Fprintf(&raw, `,"tags":%q,"size":%v}`, d.tags, d.size)
		d.raw = []byte(raw.String())
	}
	return docs
})

// fillBench adds documents and returns their number of words.
func fillBench(b *Builder, docs []benchDoc, first int) (words int) {
	for i := range docs {
		d := &docs[i]
		b.StartDoc(DocID(first+i), fmt.Append(nil, first+i), d.raw)
		for f := range d.words {
			b.Present(FieldID(f))
			for at, w := range d.words[f] {
				b.Word(FieldID(f), w, uint16(at))
			}
			b.WordCount(FieldID(f), len(d.words[f]))
			words += len(d.words[f])
		}
		for _, t := range d.tags {
			b.String(3, t, t)
		}
		b.Number(4, numeric.Of(d.size))
		b.EndDoc()
	}
	return words
}

var benchSegment = sync.OnceValue(func() vfs.FS {
	fs := vfs.NewMem()
	b := NewBuilder(BuilderOptions{Prefixes: true})
	fillBench(b, benchDocs(), 0)
	if _, err := b.Write(context.Background(), fs, "a.seg"); err != nil {
		panic(err)
	}
	return fs
})

func openBench(b *testing.B) *Reader {
	r := openSegment(b, benchSegment(), "a.seg")
	b.ReportAllocs()
	return r
}

func BenchmarkBuilderWords(b *testing.B) {
	docs := benchDocs()
	words := 0
	for b.Loop() {
		x := NewBuilder(BuilderOptions{})
		for i := range docs {
			x.row = uint32(i)
			for f := range docs[i].words {
				for at, w := range docs[i].words[f] {
					x.Word(FieldID(f), w, uint16(at))
				}
				words += len(docs[i].words[f])
			}
		}
	}
	b.ReportMetric(float64(words)/b.Elapsed().Seconds()/1e6, "Mwords/s")
}

func BenchmarkBuildAndWrite(b *testing.B) {
	for _, n := range []int{1, 100, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			docs := benchDocs()[:n]
			b.ReportAllocs()
			for b.Loop() {
				x := NewBuilder(BuilderOptions{Prefixes: true})
				fillBench(x, docs, 0)
				if _, err := x.Write(context.Background(), vfs.NewMem(), "a.seg"); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "docs/s")
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	fs := benchSegment()
	for b.Loop() {
		r, err := Open(fs, "a.seg")
		if err != nil {
			b.Fatal(err)
		}
		r.Close()
	}
}

// BenchmarkAppendDocument reads documents at random: uncached, and cached among a few that are read often.
func BenchmarkAppendDocument(b *testing.B) {
	r := openBench(b)
	rng := rand.New(rand.NewPCG(1, 2))
	var buf []byte
	var err error
	b.Run("cold", func(b *testing.B) {
		for b.Loop() {
			if buf, err = r.docs.append(buf[:0], uint32(rng.IntN(r.Rows()))); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("often", func(b *testing.B) {
		for b.Loop() {
			if buf, err = r.AppendDocument(buf[:0], Row(rng.IntN(1000))); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTermAndRows(b *testing.B) {
	r := openBench(b)
	for _, rank := range []int{0, 10, 200, 5000} {
		w := benchDocs()[0].words[2][0]
		if rank > 0 {
			w = benchDocs()[rank].words[1][3]
		}
		p, _ := r.Term(w)
		b.Run(fmt.Sprintf("%s-%d", w, p.Rows().GetCardinality()), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				p, ok := r.Term(w)
				if !ok || p.Rows().IsEmpty() {
					b.Fatal("no rows")
				}
			}
		})
	}
}

// BenchmarkPositions reads the positions of a frequent word in all its rows, and in every 37th row.
func BenchmarkPositions(b *testing.B) {
	r := openBench(b)
	p, _ := r.Term(benchDocs()[0].words[2][0])
	f, _ := p.Find(2)
	rows := f.Rows().ToArray()
	for _, step := range []int{1, 37} {
		b.Run(fmt.Sprint(step), func(b *testing.B) {
			var dst []uint16
			n := 0
			for b.Loop() {
				reader := f.Positions()
				for i := 0; i < len(rows); i += step {
					dst = reader.Append(dst[:0], Row(rows[i]))
					n++
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(n), "ns/row")
		})
	}
}

func BenchmarkPrefix(b *testing.B) {
	r := openBench(b)
	for b.Loop() {
		p, ok := r.Prefix([]byte("li"))
		if !ok || p.Rows().IsEmpty() {
			b.Fatal("no rows")
		}
	}
}

func BenchmarkTermsWalk(b *testing.B) {
	r := openBench(b)
	words := 0
	for b.Loop() {
		it := r.Terms([]byte("li"), []byte("lj"), nil)
		for it.Next() {
			words++
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(words), "ns/word")
}

func BenchmarkMerge(b *testing.B) {
	fs := vfs.NewMem()
	docs := benchDocs()
	var in []Live
	var size int64
	for i := range 4 {
		x := NewBuilder(BuilderOptions{Prefixes: true})
		fillBench(x, docs[i*2500:][:2500], i*2500)
		name := fmt.Sprintf("%d.seg", i)
		info, err := x.Write(context.Background(), fs, name)
		if err != nil {
			b.Fatal(err)
		}
		size += info.Bytes
		in = append(in, Live{Reader: openSegment(b, fs, name)})
	}
	b.SetBytes(size)
	for b.Loop() {
		if _, err := Merge(context.Background(), fs, "out.seg", in, MergeOptions{Prefixes: true}); err != nil {
			b.Fatal(err)
		}
	}
}

// benchVectors are clustered vectors of 384 dimensions, with components of unequal weight like those of embedding models.
var benchVectors = sync.OnceValue(func() []float32 {
	const rows, d, centers = 20000, 384, 300
	rng := rand.New(rand.NewPCG(5, 1))
	random := func(v []float32, weight float64) {
		for i := range v {
			v[i] += float32(rng.NormFloat64() * weight / (1 + float64(i)/16))
		}
	}
	center := make([]float32, centers*d)
	for c := range centers {
		random(center[c*d:(c+1)*d], 1)
	}
	all := make([]float32, rows*d)
	for row := range rows {
		v := all[row*d : (row+1)*d]
		c := rng.IntN(centers)
		copy(v, center[c*d:(c+1)*d])
		random(v, 0.7)
	}
	return all
})

var benchEmbedder = EmbedderShape{ID: 1, Dimensions: 384}

func fillBenchVectors(b *Builder, first, rows int) {
	all, d := benchVectors(), benchEmbedder.Dimensions
	for i := first; i < first+rows; i++ {
		b.StartDoc(DocID(i), fmt.Append(nil, i), []byte("{}"))
		b.Vectors(benchEmbedder.ID, DocVectors{Vectors: all[i*d : (i+1)*d]})
		b.EndDoc()
	}
}

// vectorSegment returns a segment of some benchVectors.
func vectorSegment(b *testing.B, first, rows int) *Reader {
	fs := vfs.NewMem()
	x := NewBuilder(BuilderOptions{Embedders: []EmbedderShape{benchEmbedder}})
	fillBenchVectors(x, first, rows)
	if _, err := x.Write(context.Background(), fs, "a.seg"); err != nil {
		b.Fatal(err)
	}
	return openSegment(b, fs, "a.seg")
}

// BenchmarkVectorsWrite writes 4,000 vectors: codes without a graph. With a graph, package ann would dominate the time.
func BenchmarkVectorsWrite(b *testing.B) {
	x := NewBuilder(BuilderOptions{Embedders: []EmbedderShape{benchEmbedder}})
	fillBenchVectors(x, 0, 4000)
	b.SetBytes(4000 * 384 * 4)
	for b.Loop() {
		f, err := createFile(vfs.NewMem(), "a.seg", nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := buildVectors(context.Background(), x, f); err != nil {
			b.Fatal(err)
		}
		if _, err := f.finish(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkVectorsSearch(b *testing.B) {
	v := vectorSegment(b, 0, 20000).Vectors(benchEmbedder.ID)
	all, d := benchVectors(), benchEmbedder.Dimensions
	for _, every := range []int{1, 2, 10, 100, 1000} {
		allowed := roaring.New()
		for row := 0; row < 20000; row += every {
			allowed.Add(uint32(row))
		}
		for name, search := range map[string]func(s *vectorSearch, q []float32){
			"search": func(s *vectorSearch, q []float32) { s.best = v.Search(s.best[:0], q, 20, allowed) },
			"direct": func(s *vectorSearch, q []float32) { s.begin(v, q); s.direct(20, allowed) },
		} {
			b.Run(fmt.Sprintf("one-in-%d/%s", every, name), func(b *testing.B) {
				b.ReportAllocs()
				s, n := new(vectorSearch), 0
				for b.Loop() {
					n = (n + 7) % 20000
					search(s, all[n*d:(n+1)*d])
				}
			})
		}
	}
}

// BenchmarkVectorsSearchAfterDeletions deletes a number of rows per thousand.
func BenchmarkVectorsSearchAfterDeletions(b *testing.B) {
	v := vectorSegment(b, 0, 20000).Vectors(benchEmbedder.ID)
	all, d := benchVectors(), benchEmbedder.Dimensions
	for _, deleted := range []int{0, 1, 10, 100} {
		live := roaring.New()
		live.AddRange(0, 20000)
		for row := range 20000 {
			if row*7919%1000 < deleted {
				live.Remove(uint32(row))
			}
		}
		b.Run(fmt.Sprintf("%d", deleted), func(b *testing.B) {
			var best []Scored
			n := 0
			for b.Loop() {
				n = (n + 7) % 20000
				best = v.Search(best[:0], all[n*d:(n+1)*d], 20, live)
			}
		})
	}
}

// BenchmarkVectorsFirstSearch measures the first search of a segment that was just opened.
func BenchmarkVectorsFirstSearch(b *testing.B) {
	r := vectorSegment(b, 0, 20000)
	all, d := benchVectors(), benchEmbedder.Dimensions
	for b.Loop() {
		r.Vectors(benchEmbedder.ID).link.forget()
		r.Vectors(benchEmbedder.ID).Search(nil, all[:d], 20, nil)
	}
}

// BenchmarkVectorsMerge merges segments of 16,000 and 4,000 vectors.
func BenchmarkVectorsMerge(b *testing.B) {
	in := []Live{{Reader: vectorSegment(b, 0, 16000)}, {Reader: vectorSegment(b, 16000, 4000)}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Merge(context.Background(), vfs.NewMem(), "out.seg", in, MergeOptions{}); err != nil {
			b.Fatal(err)
		}
	}
}
