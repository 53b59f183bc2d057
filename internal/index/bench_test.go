package index

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"svc/internal/vfs"
)

// generated returns n documents of about a kilobyte, as payload lines.
func generated(n int) []byte {
	r := rand.New(rand.NewPCG(1, 2))
	vocabulary := make([]string, 30000)
	for i := range vocabulary {
		w := make([]byte, 3+r.IntN(8))
		for j := range w {
			w[j] = byte('a' + r.IntN(26))
		}
		vocabulary[i] = string(w)
	}
	var out bytes.Buffer
	text := func(words int) {
		for i := range words {
			if i > 0 {
				out.WriteByte(' ')
			}
			// The square makes low words frequent, as in natural language.
			x := r.Float64()
			out.WriteString(vocabulary[int(x*x*x*float64(len(vocabulary)))])
		}
	}
	for i := range n {
		fmt.Fprintf(&out, `{"id":%d,"name":"`, i)
		text(2)
		out.WriteString(`","summary":"`)
		text(8)
		out.WriteString(`","description":"`)
		text(110)
		fmt.Fprintf(&out, `","section":"s%d","size":%d,"tags":["t%d","t%d"]}`+"\n", r.IntN(40), r.IntN(100000), r.IntN(300), r.IntN(300))
	}
	return out.Bytes()
}

const benchSettings = `{"searchableAttributes":["name","summary","description"],"filterableAttributes":["section","size","tags"],"sortableAttributes":["name"]}`

func benchBed(b *testing.B) (*bed, *Index) {
	b.Chdir(b.TempDir())
	t := newBed(b, vfs.OS, Options{MaxIndexingThreads: 2})
	ix := t.create("bench")
	t.apply(ix, update(b, benchSettings))
	return t, ix
}

func BenchmarkApply(b *testing.B) {
	const n = 10000
	lines := generated(n)
	b.SetBytes(int64(len(lines)))
	for b.Loop() {
		b.StopTimer()
		t, ix := benchBed(b)
		if err := vfs.WriteFile(vfs.OS, "payloads/all", lines); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		t.apply(ix, AddDocuments{Payload: "payloads/all", Documents: n})
		b.StopTimer()
		t.close()
		b.StartTimer()
	}
	b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds(), "docs/s")
}

func BenchmarkApplyOneDocument(b *testing.B) {
	const n = 20000
	lines := generated(n)
	t, ix := benchBed(b)
	defer t.close()
	if err := vfs.WriteFile(vfs.OS, "payloads/all", lines); err != nil {
		b.Fatal(err)
	}
	t.apply(ix, AddDocuments{Payload: "payloads/all", Documents: n})
	each := bytes.SplitAfter(lines, []byte("\n"))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		if err := vfs.WriteFile(vfs.OS, "payloads/one", each[i%n]); err != nil {
			b.Fatal(err)
		}
		if i%4 == 3 {
			t.compact(ix)
		}
		t.batch++
		b.StartTimer()
		if _, err := ix.Apply(context.Background(), t.batch, []Op{AddDocuments{Payload: "payloads/one", Documents: 1}}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkPatchOneField changes one field of one document, and BenchmarkIncrements makes 20,000 increments in one batch.
func BenchmarkPatchOneField(b *testing.B) { benchmarkPatch(b, 1) }
func BenchmarkIncrements(b *testing.B)    { benchmarkPatch(b, 20000) }

func benchmarkPatch(b *testing.B, operations int) {
	const n = 20000
	t, ix := benchBed(b)
	defer t.close()
	if err := vfs.WriteFile(vfs.OS, "payloads/all", generated(n)); err != nil {
		b.Fatal(err)
	}
	t.apply(ix, AddDocuments{Payload: "payloads/all", Documents: n})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		var lines bytes.Buffer
		for k := range operations {
			fmt.Fprintf(&lines, "{\"id\":%d,\"increment\":{\"size\":1}}\n", (i*7919+k*104729)%n)
		}
		if err := vfs.WriteFile(vfs.OS, "payloads/some", lines.Bytes()); err != nil {
			b.Fatal(err)
		}
		if i%4 == 3 {
			t.compact(ix)
		}
		t.batch++
		b.StartTimer()
		results, err := ix.Apply(context.Background(), t.batch, []Op{PatchDocuments{Payload: "payloads/some", Operations: operations}}, nil)
		if err != nil || results[0].Patched.Changed != operations {
			b.Fatalf("%+v, %v", results, err)
		}
	}
	b.ReportMetric(float64(operations)*float64(b.N)/b.Elapsed().Seconds(), "operations/s")
}

// BenchmarkAddSortable makes an indexed attribute sortable.
func BenchmarkAddSortable(b *testing.B) {
	const n = 20000
	t, ix := benchBed(b)
	defer t.close()
	if err := vfs.WriteFile(vfs.OS, "payloads/all", generated(n)); err != nil {
		b.Fatal(err)
	}
	t.apply(ix, AddDocuments{Payload: "payloads/all", Documents: n})
	for b.Loop() {
		t.apply(ix, update(b, `{"sortableAttributes":["name","summary"]}`))
		b.StopTimer()
		t.apply(ix, update(b, `{"sortableAttributes":["name"]}`))
		b.StartTimer()
	}
}
