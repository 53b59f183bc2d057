package segment

import (
	"context"
	"testing"

	"svc/internal/vfs"
)

func init() { filteredWords = 40 } // so that most tests have a filter

// TestTermFilter checks that a dictionary of many words has a filter, that merges rebuild it during or after the write, and that
// Verify checks it.
func TestTermFilter(t *testing.T) {
	for _, words := range []int{streamedWords, 0} {
		testTermFilter(t, words)
	}
}

func testTermFilter(t *testing.T, streamed int) {
	defer func(n int) { streamedWords = n }(streamedWords)
	streamedWords = streamed
	fs := vfs.NewMem()
	in := mergeInputs(t, fs, 60)
	if _, err := Merge(context.Background(), fs, "merged", in, MergeOptions{}); err != nil {
		t.Fatal(err)
	}
	merged, err := Open(fs, "merged")
	if err != nil {
		t.Fatal(err)
	}
	defer merged.Close()
	for _, r := range []*Reader{in[0].Reader, merged} {
		if len(r.section(tagTermFilter)) == 0 {
			t.Fatalf("%d words have no filter", r.Words())
		}
		if err := r.Verify(); err != nil {
			t.Fatal(err)
		}
	}
	filter := merged.section(tagTermFilter)
	filter[len(filter)/2] ^= 1
	if err := merged.verifyWords(); err == nil {
		t.Error("Verify accepts a filter of other words")
	}
}
