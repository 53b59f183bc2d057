package segment

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"time"

	"svc/internal/mapped"
	"svc/internal/vfs"
)

// largeSegment returns a segment that is large enough to get advice.
func largeSegment(t *testing.T) *Reader {
	rng := testRand(t)
	docs := randomDocs(rng, 50)
	large := make([]byte, 2*leastScattered)
	for i := range large {
		large[i] = 'a' + byte(rng.UintN(26))
	}
	docs[0].raw, docs[0].text = fmt.Sprintf(`{"large":"%s"}`, large), ""
	return buildSegment(t, vfs.OS, filepath.Join(t.TempDir(), "a.seg"), rng, docs, true)
}

// TestColdFiles varies the share of a file that is in memory.
func TestColdFiles(t *testing.T) {
	for what, c := range map[string]struct {
		missing int // samples that are not in memory
		cold    bool
	}{"warm": {0, false}, "mostly in memory": {coldSamples/2 - 1, false}, "half": {coldSamples / 2, true}, "cold": {coldSamples, true}} {
		t.Run(what, func(t *testing.T) {
			r := largeSegment(t)
			asked := 0
			r.holds = func(int64) bool { asked++; return asked > c.missing }
			if got := r.becomeCold(); got != c.cold || mapped.PageByPage() != c.cold {
				t.Fatalf("cold %t, page by page %t", got, mapped.PageByPage())
			}
			r.file.SetCold(false)
			if asked != coldSamples || mapped.PageByPage() {
				t.Fatalf("%d samples, page by page %t", asked, mapped.PageByPage())
			}
		})
	}
}

// TestColdFilesAreReadAhead reads a cold file ahead. Pages are mapped one by one until that ends.
func TestColdFilesAreReadAhead(t *testing.T) {
	r := largeSegment(t)
	f, err := os.Open(r.file.Name())
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Sync(); err != nil { // dirty pages stay in memory
		t.Fatal(err)
	}
	docs := r.section(tagDocs)
	at, n := int64(r.blocks.offset(docs)), int64(len(docs))
	missed := false
	for end := time.Now().Add(time.Second); !missed && time.Now().Before(end); time.Sleep(time.Millisecond) {
		runtime.KeepAlive(slices.Max(docs)) // unmapped pages would stay in memory
		r.file.Advise(at, n, mapped.PageOut)
		missed = len(r.file.Missing(at, n)) > 0
	}
	r.holds = func(int64) bool { return false }
	aheadOne <- struct{}{} // another file is read
	r.ReadAhead()
	if !mapped.PageByPage() {
		t.Error("the file is not cold while it waits for its turn")
	}
	<-aheadOne
	r.ahead.reading.Wait()
	if mapped.PageByPage() {
		t.Error("the file is cold after it was read")
	}
	if !missed {
		t.Skip("this system ignores requests to drop pages")
	}
	if left := r.file.Missing(at, n); len(left) > 0 {
		t.Errorf("not in memory: %v", left)
	}
}

// TestReadingOfColdFilesEnds checks that closing a file ends its read-ahead, and that none starts while files do not fit into memory.
func TestReadingOfColdFilesEnds(t *testing.T) {
	r := largeSegment(t)
	r.holds = func(int64) bool { return false }
	aheadOne <- struct{}{} // another file is read
	r.ReadAhead()
	if !mapped.PageByPage() {
		t.Error("the file is not cold while it waits for its turn")
	}
	r.ahead.stop()
	<-aheadOne
	if mapped.PageByPage() {
		t.Error("the file is cold after its reading ended")
	}
	r = largeSegment(t)
	r.holds = func(int64) bool { return false }
	crowd(t)
	if r.becomeCold() {
		t.Error("a file is cold while files do not fit into memory")
	}
	r.warm() // returns at once
}
