package index

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path"
	"runtime"
	"slices"
	"strings"
	"testing"

	"svc/internal/pace"
	"svc/internal/vfs"
	"svc/segment"
)

// segmentsOf returns the names and contents of the segments of an index, in the order of the manifest.
func segmentsOf(t *testing.T, b *bed, ix *Index) (names []string, files [][]byte) {
	t.Helper()
	v := held(ix.View())
	defer v.Release()
	for _, f := range v.files {
		text, err := vfs.ReadFile(b.fs, path.Join(ix.dir, segmentName(f.number)))
		if err != nil {
			t.Fatal(err)
		}
		names, files = append(names, segmentName(f.number)), append(files, text)
	}
	return names, files
}

// TestSegmentsDoNotDependOnTheScheduler imports the same documents with one processor and with several: every byte of every segment
// must be the same.
func TestSegmentsDoNotDependOnTheScheduler(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	rng := rand.New(rand.NewPCG(seed, 0))
	word := func() string { return fmt.Sprintf("w%d", int(1000*rng.Float64()*rng.Float64())) }
	var docs, again []string
	for i := range 3000 {
		doc := fmt.Sprintf(`{"id":%d,"t":"%s %s %s","n":%d,"o":{"k%d":"%s"}}`, i, word(), word(), word(), rng.IntN(50), i%7, word())
		docs = append(docs, doc)
		if i%3 == 0 {
			again = append(again, strings.Replace(doc, `"t":"`, `"t":"changed `, 1))
		}
	}
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	var wantNames []string
	var want [][]byte
	for _, processors := range []int{1, 2, 4, 1, 4} {
		runtime.GOMAXPROCS(processors)
		b := newBed(t, vfs.NewMem(), Options{MaxIndexingThreads: 3, MaxIndexingMemory: 1 << 20})
		b.c.builderBytes = 64 << 10
		ix := b.create("a")
		b.apply(ix, update(t, `{"filterableAttributes":["n","o"]}`))
		b.apply(ix, b.payload(docs...))
		b.apply(ix, b.payload(again...))
		names, files := segmentsOf(t, b, ix)
		b.close()
		if len(files) < 7 {
			t.Fatalf("%d segments: want several from one worker", len(files))
		}
		if want == nil {
			wantNames, want = names, files
		}
		if !slices.Equal(names, wantNames) {
			t.Fatalf("%d processors: segments %v, want %v", processors, names, wantNames)
		}
		for i := range files {
			if !bytes.Equal(files[i], want[i]) {
				t.Errorf("%d processors: segment %s has other bytes", processors, names[i])
			}
		}
	}
}

// TestAHandDoesNotGrowWithTheBatch deals documents to a worker that stays a few chunks behind another: its list must not keep what it has
// already taken. Runs start long and get shorter, and both workers get equally many documents.
func TestAHandDoesNotGrowWithTheBatch(t *testing.T) {
	const documents, chunk, behind = 1 << 18, 8, 16
	var states chunked[docState]
	changed := make([]int32, documents)
	for i := range changed {
		changed[i] = int32(i)
		states.add(docState{id: segment.DocID(i)})
	}
	d := newDeal(&queue{changed: changed, states: &states}, 2, 2, chunk, new(pace.Searches))
	var taken [2][]item
	for round := 0; len(taken[0])+len(taken[1]) < documents; round++ {
		for i := range taken {
			if i == 0 || round >= behind {
				taken[i] = d.take(taken[i], i)
			}
		}
		if round > 2*documents/chunk {
			t.Fatalf("workers took %d and %d documents of %d", len(taken[0]), len(taken[1]), documents)
		}
		if n := cap(d.mu.hands[1].items); n > 4*maxRunDocuments {
			t.Fatalf("round %d: the list of a worker %d chunks behind has capacity for %d documents", round, behind, n)
		}
	}
	var want [2][]segment.DocID
	longest := 0
	for next := 0; next < documents; {
		run := max(min((documents-next)/8, maxRunDocuments)/chunk, 1) * chunk
		longest = max(longest, run)
		for i := range want {
			for range min(run, documents-next) {
				want[i] = append(want[i], segment.DocID(next))
				next++
			}
		}
	}
	if longest != maxRunDocuments || len(want[0]) > len(want[1])+chunk {
		t.Fatalf("the longest run has %d documents, workers got %d and %d", longest, len(want[0]), len(want[1]))
	}
	for i, items := range taken {
		for k, it := range items {
			if it.id != want[i][k] {
				t.Fatalf("document %d of worker %d is %d, want %d", k, i, it.id, want[i][k])
			}
		}
	}
}
