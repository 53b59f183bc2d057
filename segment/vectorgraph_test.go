package segment

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/ann"
	"svc/internal/apierr"
	"svc/internal/vfs"
	"svc/simd"
)

// coded is an embedder with codes and, for enough vectors, a graph.
var coded = EmbedderShape{ID: 4, Dimensions: 48}

// clusteredDocs makes documents with clustered vectors, 1 to most each, like those of embedding models.
func clusteredDocs(rng *rand.Rand, e EmbedderShape, first DocID, n, most int) []*doc {
	centers := rand.New(rand.NewPCG(11, 0))
	center := make([]float32, 40*e.Dimensions)
	for i := range center {
		center[i] = float32(centers.NormFloat64())
	}
	docs := make([]*doc, n)
	for i := range docs {
		d := &doc{id: first + DocID(i), externalID: fmt.Sprintf("d%d", int(first)+i), raw: "{}"}
		var v DocVectors
		for range 1 + rng.IntN(most) {
			at := rng.IntN(40) * e.Dimensions
			for j := range e.Dimensions {
				v.Vectors = append(v.Vectors, center[at+j]+float32(rng.NormFloat64()))
			}
		}
		v.Given = rng.IntN(2) == 0
		d.vectors = map[EmbedderID]DocVectors{e.ID: v}
		docs[i] = d
	}
	return docs
}

func segmentOfVectors(t testing.TB, fs vfs.FS, name string, docs []*doc, e EmbedderShape) *Reader {
	t.Helper()
	b := NewBuilder(BuilderOptions{Embedders: []EmbedderShape{e}, GraphThreads: 2})
	for _, d := range docs {
		b.StartDoc(d.id, []byte(d.externalID), []byte(d.raw))
		for e, v := range d.vectors {
			b.Vectors(e, v)
		}
		b.EndDoc()
	}
	if _, err := b.Write(context.Background(), fs, name); err != nil {
		t.Fatal(err)
	}
	return openSegment(t, fs, name)
}

// graphRecall returns the recall@10 of searches with little effort, among all rows or one row in every.
func graphRecall(t *testing.T, v *Vectors, docs []*doc, rng *rand.Rand, every int) float64 {
	t.Helper()
	const k, queries, effort = 10, 40, 45
	var missed []int
	for range queries {
		q := clusteredDocs(rng, v.shape, 0, 1, 1)[0].vectors[v.shape.ID].Vectors
		var allowed *roaring.Bitmap
		if every > 1 {
			allowed = roaring.New()
			for row := range uint32(len(docs)) {
				if rng.IntN(every) == 0 {
					allowed.Add(row)
				}
			}
		}
		missed = append(missed, checkFound(t, v.SearchEffort(nil, q, k, effort, allowed), twinSearch(docs, v.shape, q, allowed), k))
	}
	return recallOf(missed, k)
}

// recallOf returns the recall of queries, each of which missed some of its k best rows. It ignores the worst tenth: about one in a hundred
// graphs of clustered rows misses a cluster, and with it all of the few queries near it.
func recallOf(missed []int, k int) float64 {
	slices.Sort(missed)
	missed = missed[:len(missed)-len(missed)/10]
	sum := 0
	for _, n := range missed {
		sum += n
	}
	return 1 - float64(sum)/float64(k*len(missed))
}

// TestWalksPassForbiddenRows checks the recall if a few rows are forbidden, at random or around the query.
func TestWalksPassForbiddenRows(t *testing.T) {
	defer lowerThresholds(100, 500)()
	for _, most := range []int{1, 3} {
		rng := rand.New(rand.NewPCG(7, uint64(most)))
		fs := vfs.NewMem()
		docs := clusteredDocs(rng, coded, 0, 3000, most)
		v := segmentOfVectors(t, fs, fmt.Sprintf("%d.seg", most), docs, coded).Vectors(coded.ID)
		const k = 10
		for _, forbidden := range []int{1, 30, 300, 700} {
			for _, near := range []bool{false, true} {
				var missed []int
				for range 30 {
					q := clusteredDocs(rng, coded, 0, 1, 1)[0].vectors[coded.ID].Vectors
					allowed := roaring.New()
					allowed.AddRange(0, uint64(len(docs)))
					if near {
						for _, x := range twinSearch(docs, coded, q, nil)[:forbidden] {
							allowed.Remove(uint32(x.Row))
						}
					} else {
						for _, row := range rng.Perm(len(docs))[:forbidden] {
							allowed.Remove(uint32(row))
						}
					}
					missed = append(missed, checkFound(t, v.SearchEffort(nil, q, k, 45, allowed), twinSearch(docs, coded, q, allowed), k))
				}
				if recall := recallOf(missed, k); recall < 0.95 {
					t.Errorf("%d rows forbidden, near the query: %v, up to %d vectors a row: recall %.3f", forbidden, near, most, recall)
				}
			}
		}
	}
}

// TestSignsOfAllowedRowsAreCompared checks that searches among many allowed rows of a small segment compare signs, with few misses. Files
// of earlier versions have signs that are not centred. If their vectors share a large mean, codes are compared instead.
func TestSignsOfAllowedRowsAreCompared(t *testing.T) {
	defer lowerThresholds(256, 2000)()
	rng := testRand(t)
	docs, shared := clusteredDocs(rng, wide, 0, 4000, 1), clusteredDocs(rng, wide, 0, 4000, 1)
	for _, d := range shared {
		addMean(d.vectors[wide.ID].Vectors)
	}
	usual, biased := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, wide), segmentOfVectors(t, vfs.NewMem(), "a.seg", shared, wide)
	for _, test := range []struct {
		name   string
		r      *Reader
		docs   []*doc
		change func(v *Vectors)
		signs  bool
	}{
		{"usual", usual, docs, func(*Vectors) {}, true},
		{"a mean", biased, shared, func(*Vectors) {}, true},
		{"not centred", usual, docs, notCentred, true},
		{"not centred, mean unknown", usual, docs, func(v *Vectors) { notCentred(v); v.cosine = 0 }, false},
		{"not centred, a mean", biased, shared, notCentred, false},
		{"not centred, a mean, cold", biased, shared, func(v *Vectors) { notCentred(v); asIfCold(v.r) }, false},
	} {
		v := test.r.Vectors(wide.ID)
		if mean := v.cosine > 0.7; mean != (test.r == biased) || v.cosine <= 0 || v.cosine > 0.8 {
			t.Errorf("%s: mean cosine %v", test.name, v.cosine)
		}
		cosine := v.cosine
		test.change(v)
		compared, touchRows, touch := 0, v.signs.TouchRows, v.signs.Touch
		v.signs.TouchRows = func(rows []uint32) {
			compared += len(rows)
			touchRows(rows)
		}
		v.signs.Touch = func(words []uint64) {
			compared += len(words)
			touch(words)
		}
		const k = 10
		var missed []int
		for range 30 {
			q := clusteredDocs(rng, wide, 0, 1, 1)[0].vectors[wide.ID].Vectors
			if test.r == biased {
				addMean(q)
			}
			allowed := roaring.New()
			for row := range uint32(len(docs)) {
				if rng.IntN(10) > 0 {
					allowed.Add(row)
				}
			}
			want := 0
			if test.signs && simd.HasSignsKernel() {
				want = int(allowed.GetCardinality())
			}
			compared = 0
			found := v.Search(nil, q, k, allowed)
			if compared != want {
				t.Fatalf("%s: the signs of %d rows of %d are compared, want %d", test.name, compared, allowed.GetCardinality(), want)
			}
			missed = append(missed, checkFound(t, found, twinSearch(test.docs, wide, q, allowed), k))
		}
		if recall := recallOf(missed, k); recall < 0.97 {
			t.Errorf("%s: recall %.3f", test.name, recall)
		}
		v.cosine = cosine
	}
}

// TestLinesOfSignsAreCompared checks that rows of 128 dimensions are compared by cache lines.
func TestLinesOfSignsAreCompared(t *testing.T) {
	defer lowerThresholds(256, 2000)()
	rng := testRand(t)
	for _, dimensions := range []int{128, 96} {
		compareLines(t, rng, EmbedderShape{ID: 6, Dimensions: dimensions})
	}
}

func compareLines(t *testing.T, rng *rand.Rand, shape EmbedderShape) {
	docs := clusteredDocs(rng, shape, 0, 4000, 1)
	for _, d := range docs {
		addMean(d.vectors[shape.ID].Vectors)
	}
	v := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, shape).Vectors(shape.ID)
	read := 0
	v.signs.Touch = func(words []uint64) { read += len(words) }
	v.signs.TouchRows = func([]uint32) { t.Error("rows are compared one by one") }
	var missed []int
	const k = 5
	for range 30 {
		q := clusteredDocs(rng, shape, 0, 1, 1)[0].vectors[shape.ID].Vectors
		addMean(q)
		allowed := roaring.New()
		for row := range uint32(len(docs)) {
			if rng.IntN(10) > 0 {
				allowed.Add(row)
			}
		}
		missed = append(missed, checkFound(t, v.Search(nil, q, k, allowed), twinSearch(docs, shape, q, allowed), k))
	}
	if recall := recallOf(missed, k); recall < 0.95 || read < 30*len(v.signs.Words) {
		t.Errorf("%d dimensions: recall %.3f, %d words of signs are read", shape.Dimensions, recall, read)
	}
}

// notCentred replaces the signs by those of earlier versions.
func notCentred(v *Vectors) {
	v.centred, v.signs = false, ann.Signs{Stride: v.signs.Stride, Dimensions: v.shape.Dimensions, Touch: func([]uint64) {}, TouchRows: func([]uint32) {}}
	clear(v.centre)
	for code := range slices.Chunk(v.codes, v.quantizer.Stride()) {
		v.signs.Words = ann.AppendSigns(v.signs.Words, code, v.centre)
	}
}

// addMean moves a vector of clusteredDocs so that its cosine with others is about 0.75.
func addMean(vector []float32) {
	for i := range vector {
		vector[i] += float32(4*(i%2) - 2 + i%3)
	}
}

func checkRecall(t *testing.T, v *Vectors, docs []*doc, rng *rand.Rand) {
	t.Helper()
	for _, every := range []int{1, 2, 10, 100} {
		recall := graphRecall(t, v, docs, rng, every)
		t.Logf("recall %.3f with one row in %d allowed", recall, every)
		if recall < 0.95 {
			t.Error("the recall is too low")
		}
	}
}

func TestSearchThroughAGraph(t *testing.T) {
	defer lowerThresholds(256, 2000)()
	for name, c := range map[string]struct {
		shape EmbedderShape
		rows  int
		most  int // vectors per row
	}{
		"codes":                  {coded, 2500, 1},
		"codes, several vectors": {coded, 1300, 3},
		"half precision":         {EmbedderShape{ID: 4, Dimensions: 49, Half: true}, 2500, 2},
		"bits":                   {EmbedderShape{ID: 4, Dimensions: 200, Binary: true}, 2500, 1},
	} {
		t.Run(name, func(t *testing.T) {
			rng := testRand(t)
			docs := clusteredDocs(rng, c.shape, 5, c.rows, c.most)
			docs[17].vectors = nil
			r := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, c.shape)
			v := r.Vectors(c.shape.ID)
			if g, err := v.graph(); g == nil || err != nil {
				t.Fatal("there is no graph", err)
			}
			if err := r.Verify(); err != nil {
				t.Fatal(err)
			}
			checkRecall(t, v, docs, rng)
			var s vectorSearch
			s.begin(v, docs[0].vectors[c.shape.ID].Vectors[:c.shape.Dimensions])
			s.encode()
			if !s.walk(10, 10, 45, v.vectors, nil) {
				t.Error("the graph is not walked")
			}
			if found := v.Search(nil, docs[0].vectors[c.shape.ID].Vectors[:c.shape.Dimensions], c.rows-10, nil); len(found) != c.rows-10 {
				t.Errorf("of %d rows, all but 9 were requested and %d found", c.rows-1, len(found))
			}
		})
	}
}

// TestARowWithMostOfTheVectors has one row whose vectors fill the candidate pool of a walk.
func TestARowWithMostOfTheVectors(t *testing.T) {
	defer lowerThresholds(256, 2000)()
	rng := testRand(t)
	docs := clusteredDocs(rng, coded, 5, 2500, 1)
	q := docs[9].vectors[coded.ID].Vectors
	many := &doc{id: 9000, externalID: "many", raw: "{}"}
	var v DocVectors
	for range 400 {
		for _, x := range q {
			v.Vectors = append(v.Vectors, x+float32(rng.NormFloat64())/100)
		}
	}
	many.vectors = map[EmbedderID]DocVectors{coded.ID: v}
	docs = append(docs, many)
	r := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, coded)
	for _, allowed := range []*roaring.Bitmap{nil, r.Vectors(coded.ID).Rows()} {
		if missed := checkFound(t, r.Vectors(coded.ID).SearchEffort(nil, q, 10, 50, allowed), twinSearch(docs, coded, q, allowed), 10); missed > 0 {
			t.Errorf("%d of 10 are missed", missed)
		}
	}
}

func TestMergeExtendsTheLargestGraph(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng := testRand(t)
	mem := vfs.NewMem()
	all := clusteredDocs(rng, coded, 5, 2600, 2)
	var parts [3][]*doc
	for i, d := range all {
		part := 0
		if i > 800 {
			part = min(2, rng.IntN(12))
		}
		parts[2-part] = append(parts[2-part], d)
	}
	var in []Live
	var live []*doc
	for i, docs := range parts {
		l := Live{Reader: segmentOfVectors(t, mem, fmt.Sprintf("%d.seg", i), docs, coded), Deleted: roaring.New()}
		for row, d := range docs {
			if rng.IntN(10) == 0 {
				l.Deleted.Add(uint32(row))
			} else {
				live = append(live, d)
			}
		}
		in = append(in, l)
	}
	slices.SortFunc(live, func(a, b *doc) int { return int(a.id) - int(b.id) })
	if _, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{GraphThreads: 2}); err != nil {
		t.Fatal(err)
	}
	r := openSegment(t, mem, "out.seg")
	if err := r.Verify(); err != nil {
		t.Fatal(err)
	}
	v := r.Vectors(coded.ID)
	for row, d := range live {
		if got, _ := v.Row(nil, Row(row)); !slices.Equal(got.Vectors, d.vectors[coded.ID].Vectors) {
			t.Fatalf("row %d has other vectors", row)
		}
	}
	checkRecall(t, v, live, rng)

	// A single input without deleted rows is copied.
	if _, err := Merge(context.Background(), mem, "copy.seg", []Live{{Reader: r}}, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	c := openSegment(t, mem, "copy.seg")
	for _, tag := range []tag{tagVectors, tagVectorSets, tagCodes, tagGraph} {
		if p := c.sectionOf(tag, uint32(coded.ID)); p == nil || !bytes.Equal(p, r.sectionOf(tag, uint32(coded.ID))) {
			t.Errorf("section %v is not copied", tag)
		}
	}
	// A cancelled merge stops while it links.
	ctx, cancel := context.WithCancel(context.Background())
	o := MergeOptions{Throttle: func(int) error { cancel(); return nil }}
	if _, err := Merge(ctx, mem, "stop.seg", in, o); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustNotExist(t, mem, "stop.seg")
}

func TestBuildStopsWhenCancelled(t *testing.T) {
	rng := testRand(t)
	mem := vfs.NewMem()
	b := NewBuilder(BuilderOptions{Embedders: []EmbedderShape{coded}})
	for i, d := range clusteredDocs(rng, coded, 0, 10, 1) {
		b.StartDoc(DocID(i), []byte(d.externalID), nil)
		b.Vectors(coded.ID, d.vectors[coded.ID])
		b.EndDoc()
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := b.Write(ctx, mem, "a.seg"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	mustNotExist(t, mem, "a.seg")
}

func TestDamagedGraphIsNotFollowed(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng := testRand(t)
	mem := vfs.NewMem()
	docs := clusteredDocs(rng, coded, 5, 1500, 1)
	segmentOfVectors(t, mem, "a.seg", docs, coded)
	data := readFile(t, mem, "a.seg")
	data[sectionOf(data, tagGraph).offset+4] ^= 0x40 // changes the number of rows
	fixChecksums(data)
	r, err := openBytes(t, data)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if err := r.Verify(); !apierr.IsCorruption(err) || !strings.Contains(err.Error(), "vgrf") {
		t.Fatal(err)
	}
	checkRecall(t, r.Vectors(coded.ID), docs, rng)
}

func TestBuilderRefusesInvalidEntries(t *testing.T) {
	for want, add := range map[string]func(b *Builder){
		"embedder 9 is unknown":     func(b *Builder) { b.Vectors(9, DocVectors{}) },
		"5 numbers are no vectors":  func(b *Builder) { b.Vectors(3, DocVectors{Vectors: make([]float32, 5)}) },
		"1 fragments for 2 vectors": func(b *Builder) { b.Vectors(3, DocVectors{Vectors: make([]float32, 6), Fragments: []uint16{1}}) },
		"fragment 65532 of embedder": func(b *Builder) {
			b.Vectors(3, DocVectors{Vectors: make([]float32, 3), Fragments: []uint16{MaxFragments}})
		},
	} {
		mem := vfs.NewMem()
		b := NewBuilder(BuilderOptions{Embedders: testEmbedders})
		b.StartDoc(1, []byte("a"), nil)
		add(b)
		b.EndDoc()
		if _, err := b.Write(context.Background(), mem, "a.seg"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		mustNotExist(t, mem, "a.seg")
		b.Reset()
		if _, err := b.Write(context.Background(), mem, "a.seg"); err != nil {
			t.Errorf("after Reset: %v", err)
		}
	}
}

// TestMergeChangesVectors replaces vectors of rows, drops those of one embedder, and makes those of others binary or half precision.
func TestMergeChangesVectors(t *testing.T) {
	for _, deleted := range []bool{false, true} {
		rng := testRand(t)
		mem := vfs.NewMem()
		docs := randomDocs(rng, 500)
		l := Live{Reader: buildSegment(t, mem, "a.seg", rng, docs, false)}
		if deleted {
			l.Deleted = roaring.BitmapOf(0, 7, 499)
			docs = slices.Concat(docs[1:7], docs[8:499])
		}
		added := EmbedderShape{ID: 5, Dimensions: 2}
		packed := EmbedderShape{ID: 900, Dimensions: 40, Binary: true}
		halved := EmbedderShape{ID: 3, Dimensions: 3, Half: true}
		whole := EmbedderShape{ID: 12, Dimensions: 5}
		replaced := NewVectorSet(len(docs), halved, true)
		fresh := NewVectorSet(len(docs), added, false)
		for row, d := range docs {
			delete(d.vectors, 1)
			if v, ok := d.vectors[12]; ok { // rounded vectors stay rounded
				v.Vectors = keptOf(testEmbedders[3], v.Vectors)
				d.vectors[12] = v
			}
			if rng.IntN(3) == 0 {
				d.vectors[3] = randomVectors(rng, testEmbedders[:1])[3]
				replaced.Add(Row(row), d.vectors[3])
			}
			if rng.IntN(3) == 0 {
				d.vectors[5] = randomVectors(rng, []EmbedderShape{added})[5]
				fresh.Add(Row(row), d.vectors[5])
			}
		}
		if replaced.MemoryBytes() == 0 {
			t.Error("a set of vectors has a size of 0")
		}
		o := MergeOptions{
			KeepVectors: func(e EmbedderID) bool { return e != 1 },
			Vectors:     []*VectorSet{fresh, NewVectorSet(len(docs), packed, true), NewVectorSet(len(docs), whole, true), replaced},
		}
		if _, err := Merge(context.Background(), mem, "b.seg", []Live{l}, o); err != nil {
			t.Fatal(err)
		}
		b := openSegment(t, mem, "b.seg")
		if err := b.Verify(); err != nil {
			t.Fatal(err)
		}
		if b.Vectors(1) != nil {
			t.Error("embedder 1 still has vectors")
		}
		embedders := []EmbedderShape{halved, added, packed, whole, testEmbedders[4]}
		checkVectors(t, b, docs, embedders, rng)

		// A merge also converts the vectors of inputs that are not yet binary or half precision.
		more := randomDocs(rng, 100)
		for i, d := range more {
			d.id = docs[len(docs)-1].id + 1 + DocID(i)
			d.externalID = fmt.Sprintf("doc-%d", d.id)
			delete(d.vectors, 1)
		}
		l = Live{Reader: buildSegment(t, mem, "c.seg", rng, more, false)}
		if _, err := Merge(context.Background(), mem, "d.seg", []Live{{Reader: b}, l}, MergeOptions{}); err != nil {
			t.Fatal(err)
		}
		d := openSegment(t, mem, "d.seg")
		if err := d.Verify(); err != nil {
			t.Fatal(err)
		}
		embedders[3] = testEmbedders[3]
		checkVectors(t, d, slices.Concat(docs, more), embedders, rng)
	}
}

func TestMergeRefusesVectorsThatDoNotFit(t *testing.T) {
	mem := vfs.NewMem()
	in := mergeInputs(t, mem, 60)[:1]
	rows := in[0].Rows()
	bad := NewVectorSet(rows, testEmbedders[0], true)
	bad.Add(0, DocVectors{Vectors: []float32{1}})
	beyond := NewVectorSet(rows, testEmbedders[0], true)
	beyond.Add(Row(rows), DocVectors{})
	backwards := NewVectorSet(rows, testEmbedders[0], true)
	backwards.Add(3, DocVectors{})
	backwards.Add(2, DocVectors{})
	good := NewVectorSet(rows, testEmbedders[0], true)
	for want, sets := range map[string][]*VectorSet{
		"vectors of 5 rows":   {NewVectorSet(5, testEmbedders[0], true)},
		"no vectors of 3":     {bad},
		"for row 20 of 20":    {beyond},
		"come after":          {backwards},
		"two sets":            {good, good},
		"4 and 3 dimensions":  {NewVectorSet(rows, EmbedderShape{ID: 3, Dimensions: 4}, true)},
		"only bits were kept": {NewVectorSet(rows, EmbedderShape{ID: 1, Dimensions: 70}, true)},
	} {
		if _, err := Merge(context.Background(), mem, "out.seg", in, MergeOptions{Vectors: sets}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
		mustNotExist(t, mem, "out.seg")
	}
}
