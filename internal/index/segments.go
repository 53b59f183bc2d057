package index

import (
	"slices"
	"time"
)

// SegmentState is what an index has in one of its segment files.
type SegmentState struct {
	Number        uint64
	Rows, Deleted int
	Bytes         int64 // of the file
	DocumentBytes int64 // of the documents, deleted ones too, uncompressed
	Merging       bool
}

// MergeState is a merge that runs.
type MergeState struct {
	Segments []uint64 // numbers of its inputs
	Bytes    int64    // of their files
	Began    time.Time
}

// Segments returns the segments of the index as it is now, in its order, and the merges that run on them.
func (ix *Index) Segments() ([]SegmentState, []MergeState, error) {
	v, err := ix.PlainView()
	if err != nil {
		return nil, nil, err
	}
	defer v.Release()
	states := make([]SegmentState, len(v.files))
	for i, f := range v.files {
		info := f.Info()
		states[i] = SegmentState{Number: f.number, Rows: info.Rows, Deleted: info.Rows - liveCount(v.Segments[i]), Bytes: info.Bytes, DocumentBytes: info.DocumentBytes, Merging: ix.merges.isBusy(f)}
	}
	return states, ix.merges.states(), nil
}

// Merges returns how many merges run on the segments of the index.
func (ix *Index) Merges() int { return ix.merges.count() }

// states describes the merges that run, the oldest first.
func (g *gate) states() []MergeState {
	g.mu.Lock()
	defer g.mu.Unlock()
	var all []MergeState
	for m := range g.mu.running {
		s := MergeState{Began: m.began}
		for _, f := range m.inputs {
			s.Segments = append(s.Segments, f.number)
			s.Bytes += f.Info().Bytes
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b MergeState) int { return a.Began.Compare(b.Began) })
	return all
}

// SearchCache returns the size of the cache of results for all indexes, and the numbers of hits and misses since the start.
func (c *Catalog) SearchCache() (bytes int64, hits, misses uint64) {
	hits, misses = c.results.Counts()
	return c.results.Bytes(), hits, misses
}
