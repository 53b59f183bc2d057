package shard

import (
	"fmt"
	"testing"
)

// TestScores compares scores with those of a standard XXH3 library.
func TestScores(t *testing.T) {
	names := []string{"s1", "s2", "s3"}
	for _, tt := range []struct {
		id     string
		scores [3]uint64
		of2    string
		of3    string
	}{
		{"1", [3]uint64{0xd3b699fc34918657, 0x0ff465b7ad08d556, 0x5f5f233413e8d8a1}, "s1", "s1"},
		{"5", [3]uint64{0x865cda133a9962f1, 0xad7f6b436c926abb, 0xdb48936df08eb5c8}, "s2", "s3"},
		{"6", [3]uint64{0x5f3edea7a14bf7d3, 0xff8f8ab24998c1e1, 0xa3386e46836fd968}, "s2", "s2"},
		{"9", [3]uint64{0xa87811271677e315, 0x4c20a30bca44a71d, 0xcd581246d1f74cc9}, "s1", "s3"},
		{"movie-42", [3]uint64{0x2ed035ab7c1022a1, 0xe3fc9c1bf9ea34a6, 0xf71a94f2a1b5b08b}, "s2", "s3"},
	} {
		for i, name := range names {
			if got := Score(nil, name, []byte(tt.id)); got != tt.scores[i] {
				t.Errorf("score of %s for %s: %016x, want %016x", name, tt.id, got, tt.scores[i])
			}
		}
		two, three := NewRing(names[:2]), NewRing([]string{"s3", "s1", "s2", "s1"})
		if got := two.Names()[two.Owner([]byte(tt.id))]; got != tt.of2 {
			t.Errorf("with two shards, %s owns %s, want %s", got, tt.id, tt.of2)
		}
		if got := three.Names()[three.Owner([]byte(tt.id))]; got != tt.of3 {
			t.Errorf("with three shards, %s owns %s, want %s", got, tt.id, tt.of3)
		}
		if got := Winner(names, tt.id); got != tt.of3 {
			t.Errorf("%s wins %s, want %s", got, tt.id, tt.of3)
		}
	}
	if Winner(nil, "x") != "" || !NewRing(names).Has("s2") || NewRing(names).Has("s4") {
		t.Error("names are not looked up")
	}
}

// TestAddingAShard checks that a new shard takes only documents that it owns from others, and that documents are spread evenly.
func TestAddingAShard(t *testing.T) {
	before, after := NewRing([]string{"a", "b", "c"}), NewRing([]string{"a", "b", "c", "new"})
	counts := map[string]int{}
	const n = 20000
	for i := range n {
		id := fmt.Appendf(nil, "doc-%d", i)
		was, is := before.Names()[before.Owner(id)], after.Names()[after.Owner(id)]
		if was != is && is != "new" {
			t.Fatalf("%s moved from %s to %s", id, was, is)
		}
		counts[is]++
	}
	for name, got := range counts {
		if got < n/4*9/10 || got > n/4*11/10 {
			t.Errorf("%s has %d of %d documents", name, got, n)
		}
	}
}

func BenchmarkOwner(b *testing.B) {
	r := NewRing([]string{"east", "north", "south", "west"})
	id := []byte("0195a3c2-7c1e-7a30-bb1f-0f2b7e6c9a11")
	b.ReportAllocs()
	for b.Loop() {
		r.Owner(id)
	}
}

// TestANilRingHasNoShard asks a nil ring, as a request for documents of a shard does if there is no network.
func TestANilRingHasNoShard(t *testing.T) {
	var none *Ring
	if none.Has("a") {
		t.Error("a nil ring has a shard")
	}
}
