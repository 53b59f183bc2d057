package segment

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"testing"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// zeroSource makes builds of the same documents equal: addDoc draws the signs of zeros.
type zeroSource struct{}

func (zeroSource) Uint64() uint64 { return 0 }

// spoolsIn returns the options of a builder that prefers temporary files in fsys to memory.
func spoolsIn(fsys vfs.FS) BuilderOptions {
	spools := 0
	return BuilderOptions{Columns: []FieldID{77}, Prefixes: true, Embedders: testEmbedders, Spool: func() (*mapped.Spool, error) {
		spools++
		return mapped.NewSpool(fsys, fmt.Sprintf("spool-%d", spools))
	}}
}

// compareSections compares the bytes of all sections of two segments but some.
func compareSections(t *testing.T, r, other *Reader, except ...tag) {
	t.Helper()
	if len(r.sections) != len(other.sections) {
		t.Errorf("%d sections, want %d", len(r.sections), len(other.sections))
	}
	for _, s := range r.sections {
		if !slices.Contains(except, s.tag) && !bytes.Equal(r.sectionOf(s.tag, s.aux), other.sectionOf(s.tag, s.aux)) {
			t.Errorf("section %v differs", s.tag)
		}
	}
}

// TestSpilledWords builds segments of random documents with all words in memory, with words in runs, and by a merge of a segment per run.
// The sections must have the same bytes, with these exceptions: which states dictionaries share depends on an estimate of their words, and
// the compression of documents on the documents that were added before.
func TestSpilledWords(t *testing.T) {
	defer lowerThresholds(1<<20, 1<<20)()
	defer func(resident, streamed, filtered int) {
		residentBytes, streamedWords, filteredWords = resident, streamed, filtered
	}(residentBytes, streamedWords, filteredWords)
	residentBytes, filteredWords = 100, 10
	rng := testRand(t)
	shared, most, apart := 0, 0, 0
	for round := range 16 {
		fsys := vfs.NewMem()
		docs := randomDocs(rng, 2+rng.IntN(150))
		restore := smallNeighbours(1+rng.IntN(500), 1+rng.IntN(5000), 1+rng.IntN(100))
		streamedWords = rng.IntN(2) << 20
		o := spoolsIn(fsys)
		o.Prefixes = round%4 > 0
		plain, spilled, part := NewBuilder(o), NewBuilder(o), NewBuilder(o)
		var in []Live
		endPart := func() {
			if part.Rows() == 0 {
				return
			}
			name := fmt.Sprintf("part-%d.seg", len(in))
			if _, err := part.Write(t.Context(), fsys, name); err != nil {
				t.Fatal(err)
			}
			part.Reset()
			in = append(in, Live{Reader: openSegment(t, fsys, name)})
		}
		runs := 0
		for i, d := range docs {
			for _, b := range []*Builder{plain, spilled, part} {
				addDoc(b, rand.New(zeroSource{}), d)
			}
			if rng.IntN(len(docs)) > 20 || i < len(docs)-1 && rng.IntN(5) == 0 {
				continue
			}
			if done, err := spilled.Spill(math.MaxInt64); err != nil || done != (runs < maxWordRuns) {
				t.Fatalf("spilled with %d runs: %v, %v", runs, done, err)
			} else if done {
				runs++
				if spilled.words.words.count > 0 || len(spilled.runs.runs) != runs {
					t.Fatalf("%d words are in memory, %d runs of %d in the file", spilled.words.words.count, len(spilled.runs.runs), runs)
				}
				endPart()
			}
		}
		endPart()
		for b, name := range map[*Builder]string{plain: "plain.seg", spilled: "a.seg"} {
			if _, err := b.Write(t.Context(), fsys, name); err != nil {
				t.Fatal(err)
			}
		}
		if runs > 0 && spilled.runs.entries > plain.words.words.count {
			shared++ // words in several runs
		}
		most = max(most, runs)
		r := openSegment(t, fsys, "a.seg")
		compareSections(t, r, openSegment(t, fsys, "plain.seg"), tagTerms, tagSums)
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
		checkSegment(t, r, docs, rng)
		if _, err := Merge(t.Context(), fsys, "merged.seg", in, MergeOptions{Prefixes: o.Prefixes}); err != nil {
			t.Fatal(err)
		}
		merged := openSegment(t, fsys, "merged.seg")
		compareSections(t, r, merged, tagTerms, tagSums, tagDocs, tagDocIndex, tagDicts, tagVectors)
		if runs > 0 && len(r.section(tagNeighbours)) > 0 {
			apart++
		}
		for _, b := range []*Builder{plain, spilled, part} {
			b.Reset()
		}
		restore()
		if names, err := fsys.List("."); err != nil || slices.ContainsFunc(names, func(name string) bool { return !strings.HasSuffix(name, ".seg") }) {
			t.Fatalf("left: %v %v", names, err)
		}
	}
	if shared < 5 || apart < 5 || most < maxWordRuns {
		t.Errorf("words were in several runs %d times, with neighbours %d times, in up to %d runs", shared, apart, most)
	}
}

// TestSpillingThatFails has each operation of a build with runs fail in turn. Either the segment is the same, or the build reports the
// error and succeeds when it is tried again.
func TestSpillingThatFails(t *testing.T) {
	defer lowerThresholds(1<<20, 1<<20)()
	defer smallNeighbours(100, 100, 100)()
	rng := testRand(t)
	docs := randomDocs(rng, 60)
	mem := vfs.NewMem()
	var before func(vfs.Op) error
	fsys := vfs.Hook(mem, func(o vfs.Op) error {
		if before == nil {
			return nil
		}
		return before(o)
	})
	stayed, failed, inMemory := 0, 0, 0
	build := func() (content []byte, err error) {
		_ = mem.Remove("a.seg") // of the build before
		b := NewBuilder(spoolsIn(fsys))
		defer b.Reset()
		for i, d := range docs {
			if addDoc(b, rand.New(zeroSource{}), d); i == 20 || i == 40 {
				done, err := b.Spill(math.MaxInt64)
				if err != nil {
					t.Fatal(err)
				}
				if !done {
					stayed++
				}
			}
		}
		if _, err = b.Write(t.Context(), fsys, "a.seg"); err != nil {
			if names, e := mem.List("."); e != nil || slices.Contains(names, "a.seg") {
				t.Fatalf("%v: left %v (%v)", err, names, e)
			}
			if before = nil; !errors.Is(err, syscall.ENOSPC) {
				t.Fatal(err)
			}
			failed++
			if _, err := b.Write(t.Context(), fsys, "a.seg"); err != nil {
				t.Fatal(err)
			}
		}
		if len(b.runs.runs) == 0 {
			inMemory++
		}
		return vfs.ReadFile(mem, "a.seg")
	}
	read := func() *Reader {
		content, err := build()
		if err != nil {
			t.Fatal(err)
		}
		r, err := openBytes(t, content)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	want := read()
	defer want.Close()
	if inMemory > 0 {
		t.Fatal("nothing was spilled")
	}
	for at := int64(0); ; at++ {
		past := 0
		fail := vfs.FailFrom(at, 1, nil, syscall.ENOSPC)
		before = func(o vfs.Op) error {
			if o.Kind == vfs.OpRemove { // the next open removes what is left
				return nil
			}
			err := fail(o)
			if err != nil {
				past++
			}
			return err
		}
		got := read()
		before = nil
		compareSections(t, want, got, tagTerms, tagSums) // as in TestSpilledWords
		if err := got.Verify(); err != nil {
			t.Fatalf("operation %d failed: %v", at, err)
		}
		if err := got.Close(); err != nil {
			t.Fatal(err)
		}
		if past == 0 {
			break
		}
	}
	if stayed == 0 || failed < 3 || inMemory == 0 {
		t.Errorf("words stayed in memory %d times, up to the end %d times, writes failed %d times", stayed, inMemory, failed)
	}
}

// TestSpillWaitsForRoom checks that a builder does not spill if little room would be gained, and that it stops with its throttle.
func TestSpillWaitsForRoom(t *testing.T) {
	stop := errors.New("stop")
	var throttled error
	fsys := vfs.NewMem()
	o := spoolsIn(fsys)
	o.Throttle = func(int) error { return throttled }
	b := NewBuilder(o)
	defer b.Reset()
	rng := testRand(t)
	for _, d := range randomDocs(rng, 200) {
		addDoc(b, rng, d)
	}
	b.words.settle()
	rest := b.MemoryBytes() - b.words.memoryBytes() + int64(b.words.words.count)*runEntryBytes
	words := b.words.words.count
	if done, err := b.Spill(4 * (rest/3 - 1)); done || err != nil || b.words.words.count != words {
		t.Fatal(done, err)
	}
	throttled = stop
	if done, err := b.Spill(2 * rest); done || !errors.Is(err, stop) || b.words.words.count != words {
		t.Fatal(done, err)
	}
	throttled = nil
	if done, err := b.Spill(2 * rest); !done || err != nil || b.words.words.count != 0 || b.MemoryBytes() > rest {
		t.Fatal(done, err, b.MemoryBytes(), rest)
	}
	without := NewBuilder(BuilderOptions{})
	without.StartDoc(0, []byte("0"), []byte(`{}`))
	without.Word(0, []byte("word"), 0)
	without.EndDoc()
	if done, err := without.Spill(math.MaxInt64); done || err != nil {
		t.Fatal(done, err)
	}
}
