package index

import (
	"context"
	"slices"

	"svc/internal/embed"
	"svc/segment"
)

// ApplyBeside is Apply for changes outside of batches, which the caller repeats after an interruption. No interrupted
// batch may be pending, because its results are dropped.
func (ix *Index) ApplyBeside(ctx context.Context, ops []Op, p Progress) ([]OpResult, error) {
	return ix.applyCounted(ctx, nil, ops, p, new(embed.Stats))
}

// DocIDs returns the numbers of the live documents whose external ids pass, in ascending order.
func (v *View) DocIDs(keep func(id []byte) bool) []uint32 {
	var ids []uint32
	for _, s := range v.Segments {
		for it := s.LiveRows().Iterator(); it.HasNext(); {
			row := segment.Row(it.Next())
			if keep(s.ExternalID(row)) {
				ids = append(ids, uint32(s.DocID(row)))
			}
		}
	}
	slices.Sort(ids)
	return ids
}
