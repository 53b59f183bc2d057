package search

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/cespare/xxhash/v2"

	"svc/internal/resultcache"
	"svc/segment"
)

// If a facet has about as many values as there are documents, nearly all of its counts are one. Only values of several rows, in one
// segment or in several, can have larger counts: its repeats. They are few, and cached with the segments. A new segment is compared
// with the others once. A segment that is removed may leave values that no longer repeat, which does no harm.

// columnRepeats are kept with a segment.
var columnRepeats = resultcache.NewKind[*repeats]("values that a column shares with those of other segments")

// columnKey returns the key of a column: the strings of a field, or its numbers.
func columnKey(field segment.FieldID, strings bool) []byte {
	key := binary.LittleEndian.AppendUint16(nil, uint16(field))
	if strings {
		return append(key, 1)
	}
	return append(key, 0)
}

// maxRepeats is the number of a segment's values up to which repeats are cached. (A variable, so that tests can lower it.)
var maxRepeats = 1 << 15

// repeats are values of a column.
type repeats struct {
	compared []uint64 // the segments it was compared with, by the numbers of their scopes, ascending
	ords     []uint32 // the values of several rows in the segment, or in it and one of those; ascending
	many     bool     // there are too many: ords has none
}

// facetColumn is the column of a segment, as numbers or as strings.
type facetColumn struct {
	segment int // its place in the view
	column  *segment.Column
	strings bool
	size    int
	scope   *resultcache.Scope
}

// repeated returns the values of several rows in the segment.
func (c *facetColumn) repeated() []uint32 {
	if c.strings {
		return c.column.RepeatedStrings(nil)
	}
	return c.column.RepeatedNumbers(nil)
}

// compare compares a value with one of another column.
func (c *facetColumn) compare(ord int, o *facetColumn, other int) int {
	if c.strings {
		return bytes.Compare(c.column.String(ord), o.column.String(other))
	}
	return c.column.Number(ord).Compare(o.column.Number(other))
}

// hash returns 32 bits of a value.
func (c *facetColumn) hash(ord int) uint32 {
	if c.strings {
		return uint32(xxhash.Sum64(c.column.String(ord)))
	}
	return uint32(c.column.Number(ord).Hash() >> 32)
}

// repeatsOf returns the repeats of each column. The columns are those of one field in all segments of a view. It returns false if
// there are too many repeats.
func repeatsOf(columns []facetColumn, field segment.FieldID) ([][]uint32, bool) {
	if len(columns) == 0 {
		return nil, true
	}
	key := columnKey(field, columns[0].strings)
	known := make([]*repeats, len(columns))
	owners := make([]uint64, len(columns))
	for i := range columns {
		owners[i] = columns[i].scope.Owner()
		known[i], _ = columnRepeats.Get(columns[i].scope, key)
		if known[i] != nil && known[i].many {
			return nil, false
		}
	}
	if found := compareColumns(columns, known, owners); found != nil {
		sorted := slices.Sorted(slices.Values(owners))
		for i, ords := range found {
			known[i] = &repeats{compared: sorted, ords: ords}
			if known[i].many = len(ords) > maxRepeats; known[i].many {
				known[i].ords = nil
			}
			columnRepeats.Put(columns[i].scope, key, known[i], 4*len(known[i].ords)+8*len(sorted)+64)
		}
	}
	all := make([][]uint32, len(columns))
	for i, k := range known {
		if k.many {
			return nil, false
		}
		all[i] = k.ords
	}
	return all, true
}

// compareColumns completes the repeats of columns. It returns the repeats of each, or nil if known is complete.
func compareColumns(columns []facetColumn, known []*repeats, owners []uint64) [][]uint32 {
	missing := func(i, j int) bool {
		if known[i] == nil {
			return true
		}
		_, ok := slices.BinarySearch(known[i].compared, owners[j])
		return !ok
	}
	total, work, none := 0, 0, true
	for i := range columns {
		total += columns[i].size
		if known[i] == nil {
			none = false
		}
		for j := range i {
			if missing(i, j) || missing(j, i) {
				none = false
				work += min(columns[i].size, columns[j].size)
			}
		}
	}
	if none {
		return nil
	}
	found := make([][]uint32, len(columns))
	for i := range columns {
		if known[i] != nil {
			found[i] = slices.Clone(known[i].ords)
			continue
		}
		found[i] = columns[i].repeated()
	}
	// Looking a value up takes some 20 random comparisons; hashing it takes about as long as one.
	const lookUp = 16
	if work*lookUp > total && total < math.MaxUint32 {
		joinColumns(columns, total, found)
	} else {
		for i := range columns {
			for j := range i {
				if missing(i, j) || missing(j, i) {
					eachCommon(&columns[i], &columns[j], func(a, b int) {
						found[i], found[j] = append(found[i], uint32(a)), append(found[j], uint32(b))
					})
				}
			}
		}
	}
	for i := range found {
		slices.Sort(found[i])
		found[i] = slices.Clip(slices.Compact(found[i]))
	}
	return found
}

// eachCommon calls f for the ordinals of the values that both columns have.
func eachCommon(a, b *facetColumn, f func(a, b int)) {
	if a.size > b.size {
		eachCommon(b, a, func(x, y int) { f(y, x) })
		return
	}
	at := 0 // in b
	for ord := 0; ord < a.size && at < b.size; ord++ {
		// From where the last one was found, in steps that double.
		low, step := at, 1
		for low+step < b.size && a.compare(ord, b, low+step) > 0 {
			low += step
			step *= 2
		}
		n, same := findValue(a, ord, b, low, min(low+step+1, b.size))
		if at = n; same {
			f(ord, n)
		}
	}
}

// findValue returns the first ordinal of b in [low, high) whose value is not below the value of an ordinal of a, and whether it is
// equal.
func findValue(a *facetColumn, ord int, b *facetColumn, low, high int) (int, bool) {
	for low < high {
		middle := int(uint(low+high) / 2)
		switch c := a.compare(ord, b, middle); {
		case c == 0:
			return middle, true
		case c > 0:
			low = middle + 1
		default:
			high = middle
		}
	}
	return low, false
}

// joinColumns adds to found the values that several columns have, and a few others: values are matched by 32 bits of their hashes.
func joinColumns(columns []facetColumn, total int, found [][]uint32) {
	shift := 32 - min(bits.Len(uint(2*total)), 31)
	table := make([]uint64, 1<<(32-shift)) // hashes, and below them the places of values, counted through all columns from 1
	again := make([]uint64, total/64+1)
	place := uint64(0)
	for i := range columns {
		for ord := range columns[i].size {
			h := columns[i].hash(ord)
			place++
			for slot := int(h >> shift); ; slot = (slot + 1) & (len(table) - 1) {
				e := table[slot]
				if e == 0 {
					table[slot] = uint64(h)<<32 | place
					break
				}
				if uint32(e>>32) == h {
					first := e & math.MaxUint32
					again[first/64] |= 1 << (first % 64)
					again[place/64] |= 1 << (place % 64)
					break
				}
			}
		}
	}
	place = 0
	for i := range columns {
		for ord := range columns[i].size {
			place++
			if again[place/64]>>(place%64)&1 != 0 {
				found[i] = append(found[i], uint32(ord))
			}
		}
	}
}
