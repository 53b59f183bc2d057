package aggregate

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"sort"

	"github.com/caio/go-tdigest/v4"

	"svc/internal/numeric"
)

const (
	// exactValues is the number of distinct values of a single group up to which percentiles are exact, and exactFew the number if
	// there are several groups. Beyond, a t-digest (T. Dunning, O. Ertl 2019) is used, which has an error in ranks.
	exactValues = 1 << 20
	exactFew    = 1 << 10
	// compression is the compression of t-digests. Ranks are off by up to 1 % in the middle, by less towards the ends.
	compression = 200
	// digestRuns is the maximum number of runs of neighbours to which a sorted list is reduced before it goes into a t-digest.
	digestRuns = 1 << 13
	// digestBytes is about what a t-digest takes.
	digestBytes = 64 << 10
)

// weighted is a value and how often it occurs.
type weighted struct {
	value float64
	times uint64
}

// quantiles are the values of a group.
type quantiles struct {
	list      []weighted // sorted up to sorted, each value there once
	sorted    int
	digest    *tdigest.TDigest // nil: the list has all values; else the list is empty
	low, high float64          // of the digest
}

// add adds values. most is up to how many different ones are listed.
func (q *quantiles) add(w *work, most int, values ...weighted) error {
	if q.digest != nil {
		return q.feed(values)
	}
	for _, v := range values {
		if len(q.list) == cap(q.list) {
			q.compact()
			if len(q.list) > most {
				if err := q.condense(w); err != nil {
					return err
				}
				return q.add(w, most, values...)
			}
			if more := max(4, len(q.list)); cap(q.list)-len(q.list) < more/2 {
				if err := q.reserve(w, more); err != nil {
					return err
				}
			}
		}
		q.list = append(q.list, v)
		values = values[1:]
	}
	return nil
}

// weightedBytes is the memory for a value of a list, including the space for a merge in two of three cases.
const weightedBytes = 24

// reserve makes room for more values of the list.
func (q *quantiles) reserve(w *work, more int) error {
	had := cap(q.list)
	q.list = slices.Grow(q.list, more)
	return w.hold(weightedBytes * (cap(q.list) - had))
}

// addRun adds values, which ascend.
func (q *quantiles) addRun(w *work, most int, values []numeric.Value, times []uint32) error {
	if q.digest != nil || len(q.list)+len(values) > cap(q.list) {
		for i, x := range values {
			if err := q.add(w, most, weighted{x.Float, uint64(times[i])}); err != nil {
				return err
			}
		}
		return nil
	}
	n := len(q.list)
	ascending, last := q.sorted == n, math.Inf(-1)
	if n > 0 {
		last = q.list[n-1].value
	}
	q.list = q.list[:n+len(values)]
	for i, x := range values {
		q.list[n+i] = weighted{x.Float, uint64(times[i])}
		ascending, last = ascending && x.Float > last, x.Float
	}
	if ascending {
		q.sorted = len(q.list)
	}
	return nil
}

func byValue(a, b weighted) int { return cmp.Compare(a.value, b.value) }

// compact sorts the list and joins equal values.
func (q *quantiles) compact() {
	if q.sorted == len(q.list) {
		return
	}
	run := q.list[q.sorted:]
	if !slices.IsSortedFunc(run, byValue) {
		slices.SortFunc(run, byValue)
	}
	kept := run[:0]
	for _, v := range run {
		if last := len(kept) - 1; last >= 0 && kept[last].value == v.value {
			kept[last].times = addCounts(kept[last].times, v.times)
		} else {
			kept = append(kept, v)
		}
	}
	if q.sorted > 0 {
		kept = slices.Clone(kept)
	}
	q.list = insert(q.list[:q.sorted], kept)
	q.sorted = len(q.list)
}

// insert adds a run to a list, which has room for it. Both ascend. It uses the run as scratch memory. A short run takes little more
// time than moving the values after the first new one.
func insert(list, run []weighted) []weighted {
	if len(list) == 0 || list[len(list)-1].value < run[0].value {
		return append(list, run...)
	}
	fresh, at := run[:0], 0
	places := make([]int, 0, len(run)) // of the values that are new, in list
	for _, v := range run {
		step := 1 // values of a long run are near each other
		for ; at+step < len(list) && list[at+step].value < v.value; step *= 2 {
			at += step
		}
		near, _ := slices.BinarySearchFunc(list[at:min(at+step, len(list))], v, byValue)
		at += near
		if at < len(list) && list[at].value == v.value {
			list[at].times = addCounts(list[at].times, v.times)
		} else {
			fresh, places = append(fresh, v), append(places, at)
		}
	}
	end := len(list)
	list = list[:end+len(fresh)]
	for i := len(fresh) - 1; i >= 0; i-- {
		copy(list[places[i]+i+1:], list[places[i]:end])
		list[places[i]+i], end = fresh[i], places[i]
	}
	return list
}

// condense puts the list, which is compact, into a t-digest.
func (q *quantiles) condense(w *work) error {
	if err := w.hold(digestBytes); err != nil {
		return err
	}
	digest, err := tdigest.New(tdigest.Compression(compression))
	if err != nil {
		return err
	}
	list := q.list
	q.digest, q.low, q.high = digest, math.Inf(1), math.Inf(-1)
	q.list, q.sorted = nil, 0
	if len(list) == 0 {
		return nil
	}
	q.low, q.high = list[0].value, list[len(list)-1].value
	// A run of neighbours is as good as its members: a centroid of the digest has many times as many.
	if run := len(list) / digestRuns; run > 1 {
		for i := range digestRuns + 1 {
			part := list[min(i*run, len(list)):min((i+1)*run, len(list))]
			if i == digestRuns {
				part = list[min(i*run, len(list)):]
			}
			if len(part) == 0 {
				break
			}
			joined, times := 0.0, uint64(0)
			for _, v := range part {
				times = addCounts(times, v.times)
				joined += (v.value - joined) * (float64(v.times) / float64(times))
			}
			if math.IsNaN(joined) || math.IsInf(joined, 0) { // of values that are too far apart
				joined = part[len(part)/2].value
			}
			if err := q.digest.AddWeighted(joined, times); err != nil {
				return err
			}
		}
		return nil
	}
	return q.feed(list)
}

// feed puts values into the digest.
func (q *quantiles) feed(values []weighted) error {
	for _, v := range values {
		q.low, q.high = min(q.low, v.value), max(q.high, v.value)
		if err := q.digest.AddWeighted(v.value, v.times); err != nil {
			return err
		}
	}
	return nil
}

// merge adds the values of others.
func (q *quantiles) merge(w *work, most int, o *quantiles) error {
	if o.digest == nil {
		return q.add(w, most, o.list...)
	}
	if q.digest == nil {
		q.compact()
		if err := q.condense(w); err != nil {
			return err
		}
	}
	q.low, q.high = min(q.low, o.low), max(q.high, o.high)
	var err error
	o.digest.ForEachCentroid(func(mean float64, times uint64) bool {
		err = q.digest.AddWeighted(mean, times)
		return err == nil
	})
	return err
}

// empty reports whether there are no values.
func (q *quantiles) empty() bool { return q.digest == nil && len(q.list) == 0 }

// at returns the values at percents of the ranks from 0 to n−1. Between two ranks a value is between theirs, in proportion.
func (q *quantiles) at(percents []float64) []float64 {
	values := make([]float64, len(percents))
	if q.digest != nil {
		for i, percent := range percents {
			values[i] = max(q.low, min(q.high, q.digest.Quantile(percent/100)))
		}
		return values
	}
	q.compact()
	const stride = 256
	var ends []uint64 // ends[i]: how many ranks list[:stride·(i+1)] has
	total := uint64(0)
	for i, v := range q.list {
		if total = addCounts(total, v.times); i%stride == stride-1 {
			ends = append(ends, total)
		}
	}
	for i, percent := range percents {
		rank := percent / 100 * float64(total-1)
		below := uint64(rank)
		part, seen := sort.Search(len(ends), func(i int) bool { return ends[i] > below }), uint64(0)
		if part > 0 {
			seen = ends[part-1]
		}
		at := part * stride
		for ; at < len(q.list)-1; at++ {
			if seen = addCounts(seen, q.list[at].times); below < seen {
				break
			}
		}
		at = min(at, len(q.list)-1)
		values[i] = q.list[at].value
		if share := rank - float64(below); share > 0 && below+1 >= seen && at+1 < len(q.list) {
			values[i] = values[i]*(1-share) + q.list[at+1].value*share
		}
	}
	return values
}

// appendPeer appends the values, or the centroids of their digest.
func (q *quantiles) appendPeer(dst []byte) []byte {
	q.compact()
	if q.digest == nil && len(q.list) > exactFew { // it would be a large message
		condensed := quantiles{list: q.list, sorted: q.sorted}
		if err := condensed.condense(new(work)); err == nil {
			return condensed.appendPeer(dst)
		}
	}
	if q.digest == nil {
		return appendWeighted(append(dst, 0), q.list)
	}
	var centroids []weighted
	q.digest.ForEachCentroid(func(mean float64, times uint64) bool {
		centroids = append(centroids, weighted{mean, times})
		return true
	})
	return appendWeighted(appendFloat(appendFloat(append(dst, 1), q.low), q.high), centroids)
}

func appendWeighted(dst []byte, list []weighted) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(list)))
	for _, v := range list {
		dst = binary.AppendUvarint(appendFloat(dst, v.value), v.times)
	}
	return dst
}

// leastWeighted is the length of the shortest value, in bytes.
const leastWeighted = 9

// readPeer reads values into an empty group.
func (q *quantiles) readPeer(w *work, r Reader) error {
	condensed := r.Byte() != 0
	if condensed {
		low, high := r.Float(), r.Float()
		if err := q.condense(w); err != nil {
			return err
		}
		q.low, q.high = low, high
	}
	n, total := r.Items(leastWeighted), uint64(0)
	if err := r.Hold(16 * n); err != nil {
		return err
	}
	list := make([]weighted, 0, n)
	for range n {
		if err := r.Step(); err != nil {
			return err
		}
		v := weighted{r.Float(), uint64(r.Int(maxCount))}
		if total += v.times; v.times == 0 || total > maxCount {
			r.Spoil()
			return nil
		}
		list = append(list, v)
	}
	if condensed {
		return q.feed(list)
	}
	q.list = list
	return nil
}
