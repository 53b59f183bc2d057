package rank

import (
	"encoding/binary"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/resultcache"
	"svc/segment"
)

// filterSigns is cached by embedder and filter key. A nil value says that there are no signs to gather.
var filterSigns = resultcache.NewKind[*segment.FilterSigns]("signs of the rows of a filter")

// signsOfFilter returns the signs of the rows of a segment that the filter allows, including deleted rows, or nil. It gathers them
// when a filter is used for the second time.
func signsOfFilter(s *job, seg int, v *segment.Vectors) *segment.FilterSigns {
	if !s.filters() || s.r.Filter.Key() == nil || s.ix.Cache == nil {
		return nil
	}
	scope := s.ix.Cache.OfFile(seg)
	if scope == nil {
		return nil
	}
	var buf [128]byte
	key := append(binary.AppendUvarint(buf[:0], uint64(s.r.Vectors.Embedder)), s.r.Filter.Key()...)
	if signs, ok := filterSigns.Get(scope, key); ok || !filterSigns.Admit(scope, key) {
		return signs
	}
	all := roaring.New()
	all.AddRange(0, uint64(s.ix.Segments[seg].Rows()))
	rows := s.r.Filter.Among(seg, all, true)
	if s.late() { // the filter may not have been evaluated to its end
		return nil
	}
	signs := v.GatherSigns(rows)
	filterSigns.PutSpare(scope, key, signs, signs.Bytes())
	return signs
}
