package index

import "sync/atomic"

// Work is what the indexes of a catalog have done since the start.
type Work struct {
	Documents   int64 // written to segments by batches, including those of rebuilt segments
	Merges      int64
	MergedBytes int64 // of the segments that merges made
}

type work struct{ documents, merges, mergedBytes atomic.Int64 }

// count takes up a change that was committed.
func (w *work) count(c *change) {
	for _, f := range c.add {
		changed, recast := c.recast[f]
		switch {
		case recast:
			w.documents.Add(int64(changed))
			w.mergedBytes.Add(f.Info().Bytes)
		case len(c.merge) > len(c.recast):
			w.mergedBytes.Add(f.Info().Bytes)
		default:
			w.documents.Add(int64(f.Rows()))
		}
	}
	if len(c.merge) > 0 {
		w.merges.Add(1)
	}
}

// Work returns the work done so far.
func (c *Catalog) Work() Work {
	return Work{Documents: c.work.documents.Load(), Merges: c.work.merges.Load(), MergedBytes: c.work.mergedBytes.Load()}
}
