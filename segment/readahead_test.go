package segment

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	"svc/internal/apierr"
	"svc/internal/mapped"
	"svc/internal/vfs"
)

// TestDamageAfterReadAhead checks that searches never use a damaged block that was read ahead.
func TestDamageAfterReadAhead(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng := testRand(t)
	name := filepath.Join(t.TempDir(), "a.seg")
	docs := clusteredDocs(rng, coded, 5, 1500, 1)
	segmentOfVectors(t, vfs.OS, name, docs, coded)
	sound, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	q := docs[7].vectors[coded.ID].Vectors
	want := twinSearch(docs, coded, q, nil)
	met := map[tag]int{}
	for _, tag := range []tag{tagGraph, tagCodes, tagVectors} {
		s := sectionOf(sound, tag)
		for at := s.offset; at < s.offset+s.length; at += 2048 {
			damaged := append([]byte(nil), sound...)
			damaged[at+int64(rng.IntN(int(min(2048, s.offset+s.length-at))))] ^= 1 << rng.IntN(8)
			file := filepath.Join(t.TempDir(), fmt.Sprint(at))
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
			r, err := Open(vfs.OS, file)
			if err != nil {
				t.Fatal(err)
			}
			told := false
			r.OnDamage(func(*apierr.Corruption) { told = true })
			r.ReadAhead()
			r.ahead.reading.Wait()
			var found []Scored
			err = mapped.Guard(func() error {
				found = r.Vectors(coded.ID).SearchEffort(nil, q, 10, 30, nil)
				return nil
			})
			switch {
			case err == nil:
				if missed := checkFound(t, found, want, 10); missed > 2 {
					t.Errorf("byte %d of %v: %d of 10 are missed", at, tag, missed)
				}
			case !apierr.IsCorruption(err):
				t.Fatal(err)
			}
			if told {
				met[tag]++
			} else if err != nil {
				t.Errorf("byte %d of %v: %v is not reported", at, tag, err)
			}
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, tag := range []tag{tagGraph, tagCodes, tagVectors} {
		if met[tag] == 0 {
			t.Errorf("no search found damage of %v", tag)
		}
	}
}

// TestCloseEndsReadingAhead closes several files in different stages of the read-ahead, and checks that no file stays open.
func TestCloseEndsReadingAhead(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	name := filepath.Join(t.TempDir(), "a.seg")
	docs := clusteredDocs(testRand(t), coded, 5, 1500, 1)
	r := segmentOfVectors(t, vfs.OS, name, docs, coded)
	if parts, _ := r.walked(); len(parts) != 5 {
		t.Errorf("%d ranges are read ahead, want the graph, the codes, their signs, the row lists, and the data beside rows", len(parts))
	}
	before, left := mapped.Count(), aheadLeft.Load()
	aheadOne <- struct{}{} // makes all files wait
	var waiting sync.WaitGroup
	for i := range 20 {
		r, err := Open(vfs.OS, name)
		if err != nil {
			t.Fatal(err)
		}
		r.ReadAhead()
		waiting.Go(func() {
			if i%2 == 0 {
				r.ahead.reading.Wait()
			}
			if err := r.Close(); err != nil {
				t.Error(err)
			}
			if asked := r.ahead.asked.Load(); asked != (i%2 == 0) {
				t.Errorf("file %d: everything was requested: %v", i, asked)
			}
		})
	}
	for mapped.Count() > before+10 { // the others are closed while they wait
		runtime.Gosched()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if AwaitReadAhead(ended) {
		t.Error("AwaitReadAhead does not wait for a queued file")
	}
	<-aheadOne
	if !AwaitReadAhead(t.Context()) || !AwaitReadAhead(ended) {
		t.Error("AwaitReadAhead waits without a file being read")
	}
	waiting.Wait()
	if n := mapped.Count(); n != before {
		t.Errorf("%d files are open, %d before", n, before)
	}
	if n := aheadLeft.Load(); n != left {
		t.Errorf("%d bytes may be read ahead, %d before", n, left)
	}
}

// TestReadingAheadStartsOnce checks that concurrent calls start one read-ahead, and that none starts after an inspection found damage.
func TestReadingAheadStartsOnce(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	name := filepath.Join(t.TempDir(), "a.seg")
	r := segmentOfVectors(t, vfs.OS, name, clusteredDocs(testRand(t), coded, 5, 1500, 1), coded)
	var others sync.WaitGroup
	for range 4 {
		others.Go(r.ReadAhead)
	}
	others.Go(r.forget)
	others.Wait()
	r.ReadAhead()
	r.ahead.reading.Wait()
	if r.ahead.checked.Load() {
		t.Error("blocks count as checked after forget")
	}
	damaged := openSegment(t, vfs.OS, name)
	damaged.forget()
	if damaged.ReadAhead(); damaged.ahead.end != nil {
		t.Error("a damaged file is read ahead")
	}
}

// TestReadAheadMarksBlocks checks that searches do not recheck blocks that were read ahead, until forget, and that the bound limits the
// bytes read ahead.
func TestReadAheadMarksBlocks(t *testing.T) {
	defer lowerThresholds(256, 1000)()
	rng := testRand(t)
	docs := clusteredDocs(rng, coded, 5, 1500, 1)
	r := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, coded)
	r.ReadAhead()
	r.ahead.reading.Wait()
	if !r.ahead.asked.Load() || !r.ahead.checked.Load() {
		t.Fatal("the file is not read ahead")
	}
	parts, total := r.walked()
	for _, s := range parts {
		if at, end := r.blocks.missing(int(s.offset), int(s.length)); at != end {
			t.Errorf("blocks %d to %d of %v are not marked as checked", at, end, s.tag)
		}
	}
	if r.ahead.taken != total {
		t.Errorf("%d bytes are taken, want %d", r.ahead.taken, total)
	}
	checkRecall(t, r.Vectors(coded.ID), docs, rng)
	r.forget()
	if r.ahead.checked.Load() {
		t.Error("blocks count as checked after forget")
	}
	checkRecall(t, r.Vectors(coded.ID), docs, rng)

	// The bound ends the read-ahead within the first file, and no other file is read.
	const less = 3 << blockBits
	defer aheadLeft.Store(aheadLeft.Swap(total - less))
	for i := range 2 {
		beyond, err := openBytes(t, r.data)
		if err != nil {
			t.Fatal(err)
		}
		defer beyond.Close()
		beyond.ReadAhead()
		beyond.ahead.reading.Wait()
		if beyond.ahead.asked.Load() || beyond.ahead.checked.Load() || aheadLeft.Load() != 0 {
			t.Errorf("file %d: %d more bytes may be read ahead, or all were requested or checked", i, aheadLeft.Load())
		}
		missing := 0
		for _, s := range parts {
			at, end := beyond.blocks.missing(int(s.offset), int(s.length))
			missing += end - at
		}
		if few := missing <= less>>blockBits+1; few != (i == 0) || missing == 0 {
			t.Errorf("file %d: %d blocks are not marked as checked", i, missing)
		}
		checkRecall(t, beyond.Vectors(coded.ID), docs, rng)
	}
}

// TestReadAheadOfForgedCounts checks that arbitrary counts in a section's head cause no reads outside the section.
func TestReadAheadOfForgedCounts(t *testing.T) {
	rng := testRand(t)
	docs := clusteredDocs(rng, coded, 5, 300, 1)
	r := segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, coded)
	s := sectionOf(r.data, tagVectors)
	if got := r.besideRows(s); got.offset+got.length != s.offset+s.length || got.length != 300 {
		t.Errorf("besideRows returns %d bytes up to %d, want the 300 kinds of entries up to %d", got.length, got.offset+got.length, s.offset+s.length)
	}
	r.data = append([]byte(nil), r.data...)
	for range 1000 {
		for i := range vectorHeadBytes {
			r.data[s.offset+int64(i)] = byte(rng.Uint32())
			if rng.IntN(4) > 0 {
				r.data[s.offset+int64(i)] = byte(255 * rng.IntN(2))
			}
		}
		if got := r.besideRows(s); got.offset < s.offset || got.length <= 0 || got.offset+got.length != s.offset+s.length {
			t.Fatalf("% x: from %d, %d bytes of %d", r.data[s.offset:s.offset+16], got.offset-s.offset, got.length, s.length)
		}
	}
}

func TestMissingBlocks(t *testing.T) {
	docs := clusteredDocs(rand.New(rand.NewPCG(1, 1)), coded, 5, 300, 1)
	b := &segmentOfVectors(t, vfs.NewMem(), "a.seg", docs, coded).blocks
	b.forget()
	for _, i := range []int{2, 3, 5} {
		b.markRight(i)
	}
	for _, c := range []struct{ at, n, from, to int }{
		{0, 1, 0, 1},
		{4095, 2, 0, 2},
		{2 * blockBytes, 2 * blockBytes, 4, 4},        // both are checked
		{3*blockBytes + 9, 4 * blockBytes, 4, 8},      // the first and one inside are checked
		{4*blockBytes + 9, blockBytes, 4, 5},          // the last is checked
		{1*blockBytes + 4095, 4*blockBytes + 1, 1, 5}, // up to the last byte before block 6
		{5 * blockBytes, blockBytes, 6, 6},            // checked
		{6*blockBytes - 1, 1, 6, 6},                   // checked
		{6 * blockBytes, 3 * blockBytes, 6, 9},        // none is checked
	} {
		if from, to := b.missing(c.at, c.n); from != c.from || to != c.to {
			t.Errorf("of %d bytes at %d blocks %d to %d are missing, want %d to %d", c.n, c.at, from, to, c.from, c.to)
		}
	}
}
