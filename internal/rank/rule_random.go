package rank

import (
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"svc/internal/numeric"
	"svc/internal/settings"
	"svc/segment"
)

// firstShuffled reads the documents with the lowest hashes.
const firstShuffled accessPath = "lowest places of the shuffle"

// random shuffles documents: it orders them by a hash of their ids. The order depends only on the seed and the ids, so pages are
// parts of one list, and documents keep their order when others are added or removed and when segments merge.
type random struct{ seed uint64 }

func (r random) name() string {
	return settings.RankingRule{Kind: settings.Random, Seed: r.seed}.String()
}

func (random) traits() *traits { return &randomTraits }

var randomTraits = traits{row: lookUpValue, says: ByField}

func (r random) access(s *search, b *bucket, i int) (p paths) {
	if b.interpretations == nil && s.setsFollow(i) {
		p[0] = access{effort(b.n) * lookUpValue, openRows}
	}
	if b.n > listRows {
		p[1] = access{effort(b.n) * compareRow, r.openFirst}
	}
	return p
}

// costs numbers the places that the seed gives the rows.
func (r random) costs(s *search, l *list, _ int, costs []uint32) outcome {
	all := make([]uint32, len(costs))
	for i := range l.entries {
		e := &l.entries[i]
		costs[i] = r.place(s, int(e.segment), e.row)
	}
	copy(all, costs)
	slices.Sort(all)
	all = slices.Compact(all)
	values := make([]SortValue, len(all))
	for i, place := range all {
		values[i] = placeValue(place)
	}
	for i, place := range costs {
		at, _ := slices.BinarySearch(all, place)
		costs[i] = uint32(at)
	}
	return outcome{values: values}
}

func (r random) details(d *detailWriter, verdicts []verdict) int {
	d.open(r.name())
	d.number("value", verdicts[0].value.Number)
	return 1
}

func (random) value(verdicts []verdict) (ScoreValue, int) {
	return ScoreValue{Kind: ByField, Sort: verdicts[0].value}, 1
}

// place is the position of a row in the shuffled order of an index, from 0 to 2³²−1. About two documents in 2³² share a place.
func (r random) place(s *search, seg int, row uint32) uint32 {
	return shuffle(r.seed, s.ix.Segments[seg].DocID(segment.Row(row)))
}

// shuffle hashes an id: the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func shuffle(seed uint64, id segment.DocID) uint32 {
	x := (seed ^ uint64(id)*0x9e3779b97f4a7c15) + 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return uint32(x >> 32)
}

func placeValue(place uint32) SortValue { return NumberValue(numeric.Value{Float: float64(place)}) }

// shuffleSpare is how many rows are expected among the places that are read first, per row that the page needs.
const shuffleSpare = 4

// openFirst returns rows by place without sorting all of them: those with the lowest places first, then some more.
func (r random) openFirst(s *search, b *bucket, _ int) split {
	const places = 1 << 32
	var found []shuffled
	from, n := uint64(0), shuffleSpare*max(wanted(s, b), 1)
	return split{firstShuffled, func() (*bucket, verdict) {
		for len(found) == 0 && from < places {
			to := min(from+places/uint64(b.n)*uint64(n)+1, places)
			found = r.shuffledIn(s, b, from, to)
			from, n = to, n*shuffleSpare
		}
		if len(found) == 0 {
			return nil, verdict{}
		}
		of, first := make(rows, len(b.rows)), found[0].place
		for ; len(found) > 0 && found[0].place == first; found = found[1:] {
			if of[found[0].segment] == nil {
				of[found[0].segment] = roaring.New()
			}
			of[found[0].segment].Add(found[0].row)
		}
		return b.part(of), verdict{value: placeValue(first)}
	}}
}

// shuffled is a row by its place.
type shuffled struct{ place, segment, row uint32 }

// shuffledIn returns the rows of a bucket whose places are in a range, in order.
func (r random) shuffledIn(s *search, b *bucket, from, to uint64) (found []shuffled) {
	for seg, in := range b.rows {
		if in == nil {
			continue
		}
		for it := in.Iterator(); it.HasNext(); {
			row := it.Next()
			if p := r.place(s, seg, row); uint64(p) >= from && uint64(p) < to {
				found = append(found, shuffled{p, uint32(seg), row})
			}
		}
	}
	slices.SortFunc(found, func(a, b shuffled) int { return int(a.place) - int(b.place) })
	return found
}
