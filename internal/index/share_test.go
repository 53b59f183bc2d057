package index

import "testing"

// TestBuilderShare checks the memory of a segment builder for batches with no or a million known documents, and much or little memory.
func TestBuilderShare(t *testing.T) {
	million := chunked[docState]{}
	for range 1_000_000 {
		million.add(docState{})
	}
	known := int64(million.len()) * (docStateBytes + idBytes)
	tests := map[string]struct {
		memory     int64
		yielding   int // of 4 threads
		states     *chunked[docState]
		background bool
		most, want int64
	}{
		"much memory":                 {16 << 30, 0, nil, false, 64 << 20, 64 << 20},
		"threads that yield":          {16 << 30, 2, nil, false, 64 << 20, 48 << 20},
		"many documents, much memory": {16 << 30, 0, &million, false, 64 << 20, 64 << 20},
		"many documents, some memory": {256 << 20, 0, &million, false, 64 << 20, (128<<20 - known) / 4},
		"many documents, no memory":   {40 << 20, 0, &million, false, 64 << 20, (20 << 20 / 4) / 4},
		"little memory":               {40 << 20, 0, nil, false, 64 << 20, 20 << 20 / 4},
		"in the background":           {160 << 20, 0, nil, true, 64 << 20, 20 << 20 / 4},
	}
	for name, tt := range tests {
		o := Options{MaxIndexingMemory: tt.memory, MaxIndexingThreads: 4, YieldingThreads: tt.yielding}
		b := &batch{ix: &Index{options: &o}, background: tt.background}
		if tt.states != nil {
			b.states = *tt.states
		}
		if got := b.shareOf(4, tt.most); got != tt.want {
			t.Errorf("%s: %d bytes, want %d", name, got, tt.want)
		}
	}
}

// TestLaterSegmentsAreLarger checks the share before and after the first segments.
func TestLaterSegmentsAreLarger(t *testing.T) {
	for later, want := range map[int64]int64{0: 10, 5: 10, 17: 17} {
		k := &worker{w: &writer{share: 10, laterShare: later}}
		if got := k.share(); got != 10 {
			t.Errorf("first segment: %d bytes, want 10", got)
		}
		if k.flushed = earlySegments; k.share() != want {
			t.Errorf("later segments, with %d: %d bytes, want %d", later, k.share(), want)
		}
	}
}

// TestReservedSlotsFitTheMemory reserves as many ids as a batch may.
func TestReservedSlotsFitTheMemory(t *testing.T) {
	for _, memory := range []int64{0, 1 << 10, 1 << 20, 3 << 20, 100 << 20} {
		for _, background := range []bool{false, true} {
			b := &batch{ix: &Index{options: &Options{MaxIndexingMemory: memory}}, background: background}
			most := memory
			if background {
				most /= 4
			}
			var table idTable
			table.reserve(b.reservable())
			if n := int64(len(table.slots)) * idSlotBytes; n > max(most/8, minIDSlots*idSlotBytes) {
				t.Errorf("%d bytes of slots, the memory is %d", n, most)
			}
		}
	}
}
