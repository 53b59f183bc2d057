package aggregate

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"svc/internal/jsontext"
	"svc/internal/numeric"
	"svc/segment"
)

// key is what the documents of a bucket have in common: a value, or the place of an interval as a number.
type key struct {
	isNumber bool
	number   numeric.Value
	text     []byte // of a string: normalised
	shown    []byte // of a string: as a document spells it
}

// compare orders numbers by value, and after them strings by their normalised bytes.
func (k *key) compare(o *key) int {
	switch {
	case k.isNumber && o.isNumber:
		return k.number.Compare(o.number)
	case k.isNumber:
		return -1
	case o.isNumber:
		return 1
	}
	return cmp.Compare(string(k.text), string(o.text))
}

// selector says in which buckets a value is, and how these are shown.
type selector interface {
	// number returns the key of a number, and text that of a string. ok is false for values without a bucket.
	number(w *work, x numeric.Value) (k key, ok bool, err error)
	text(c *segment.Column, ord int) (k key, ok bool)
	// between calls f for the keys strictly between two neighbours, which documents need not have, until it fails.
	between(low, high key, f func(key) bool)
	// appendKey appends the members that say what a bucket holds, each with a comma behind it.
	appendKey(dst []byte, k *key) []byte
}

// several is a selector some of whose values are in several buckets, which are numbered and always shown.
type several interface {
	size() int
	each(x numeric.Value, f func(id uint32))
}

// intervals is a selector whose keys ascend with the numbers.
type intervals interface {
	// end returns where the key ends: numbers from one that has the key up to there, and without it, have the key, too.
	end(k key) float64
}

// none is the place of a bucket that there is not.
const none = math.MaxUint32

// buckets is the state of an aggregation with buckets. Its buckets are the groups of the nested ones.
type buckets struct {
	spec   *Spec
	by     selector
	all    several // nil: each value is in one bucket
	nested []node

	keys    []key
	numbers map[numeric.Value]uint32
	lastKey uint32 // the last number that was looked up: neighbours in a column are often in one interval
	texts   map[string]uint32
	indexed int // keys that the maps have; they get the others when they are asked

	parent, key []uint32 // by bucket: the group above, and the place of its key
	counts      []uint64 // by bucket: its documents
	first       []uint32 // by key: its bucket in group 0
	rest        map[uint64]uint32

	source      columnOf
	distinct    bool        // no two values of the segment have one key, and no other segment has given any
	ids         [2][]uint32 // by ordinal of the numbers and strings of the segment: place of the key + 1; 0: not known
	row         []uint32    // keys of a row
	ords        []uint32
	places      []uint32
	values      []numeric.Value
	out         pairs
	lastOf      uint64 // the last pair that was looked up in rest
	lastBucket  uint32
	byParent    []uint32 // buckets by the group above, while an answer is written
	parentStart []uint32
}

func newBuckets(a *Spec, by selector) *buckets {
	b := &buckets{spec: a, by: by, nested: a.Nested.newNodes(), lastOf: math.MaxUint64}
	if b.all, _ = by.(several); b.all != nil {
		for i := range b.all.size() {
			b.keys = append(b.keys, key{isNumber: true, number: numeric.Of(float64(i))})
		}
	}
	return b
}

func (b *buckets) open(w *work, c columnOf) error {
	for i := range b.ids {
		if err := w.hold(-4 * len(b.ids[i])); err != nil {
			return err
		}
		b.ids[i] = nil
	}
	b.source = c
	b.distinct = b.spec.kind.name == "terms" && len(b.keys) == 0
	return nil
}

// Bytes of a bucket and of a key, besides the text of the key.
const (
	bucketBytes = 56
	keyBytes    = 160
)

// unkeyed is the place of the key of a value without a bucket.
const unkeyed = math.MaxUint32 - 1

// place returns the place of a key, which it adds if it is new.
func (b *buckets) place(w *work, k key) (uint32, error) {
	if b.all != nil {
		return uint32(k.number.Float), nil
	}
	for ; b.indexed < len(b.keys); b.indexed++ {
		b.index(uint32(b.indexed))
	}
	if k.isNumber {
		if last := int(b.lastKey); last < len(b.keys) && b.keys[last].isNumber && b.keys[last].number == k.number {
			return b.lastKey, nil
		}
		if old, ok := b.numbers[k.number]; ok {
			b.lastKey = old
			return old, nil
		}
	} else if old, ok := b.texts[string(k.text)]; ok {
		// Whichever segment or machine comes first, the same spelling is shown.
		if s := b.keys[old].shown; string(k.shown) < string(s) {
			b.keys[old].shown = k.shown
		}
		return old, nil
	}
	return b.add(w, k)
}

// add adds a key that is new.
func (b *buckets) add(w *work, k key) (uint32, error) {
	if err := w.hold(keyBytes + len(k.text)); err != nil {
		return 0, err
	}
	b.keys = append(b.keys, k)
	return uint32(len(b.keys) - 1), nil
}

// index notes the place of a key in the maps.
func (b *buckets) index(id uint32) {
	switch k := &b.keys[id]; {
	case !k.isNumber:
		if b.texts == nil {
			b.texts = map[string]uint32{}
		}
		b.texts[string(k.text)] = id
	default:
		if b.numbers == nil {
			b.numbers = map[numeric.Value]uint32{}
		}
		b.numbers[k.number] = id
	}
}

// idOf returns the place of the key of a value of the segment.
func (b *buckets) idOf(w *work, strings bool, ord int) (uint32, error) {
	kind, size := 0, b.source.column.Numbers()
	if strings {
		kind, size = 1, b.source.column.Strings()
	}
	if ord >= size { // a forged segment may name others
		return unkeyed, nil
	}
	if b.ids[kind] == nil {
		if err := w.hold(4 * size); err != nil {
			return 0, err
		}
		b.ids[kind] = make([]uint32, size)
	}
	if id := b.ids[kind][ord]; id != 0 {
		return id - 1, nil
	}
	var k key
	var ok bool
	var err error
	if strings {
		k, ok = b.by.text(b.source.column, ord)
	} else if k, ok, err = b.by.number(w, b.source.column.Number(ord)); err != nil {
		return 0, err
	}
	id := uint32(unkeyed)
	switch {
	case !ok:
	case b.distinct:
		id, err = b.add(w, k)
	default:
		id, err = b.place(w, k)
	}
	if err != nil {
		return 0, err
	}
	b.ids[kind][ord] = id + 1
	return id, nil
}

// bucket returns the bucket of a key in a group, which it adds if it is new.
func (b *buckets) bucket(w *work, group, id uint32) (uint32, error) {
	of := uint64(group)<<32 | uint64(id)
	switch {
	case group == 0:
		for len(b.first) <= int(id) {
			b.first = append(b.first, none)
		}
		if at := b.first[id]; at != none {
			return at, nil
		}
	case of == b.lastOf:
		return b.lastBucket, nil
	default:
		if at, ok := b.rest[of]; ok {
			b.lastOf, b.lastBucket = of, at
			return at, nil
		}
	}
	if err := w.grouped(); err != nil {
		return 0, err
	}
	if err := w.hold(bucketBytes); err != nil {
		return 0, err
	}
	at := uint32(len(b.counts))
	b.parent, b.key, b.counts = append(b.parent, group), append(b.key, id), append(b.counts, 0)
	if group == 0 {
		b.first[id] = at
		return at, nil
	}
	if b.rest == nil {
		b.rest = map[uint64]uint32{}
	}
	b.rest[of], b.lastOf, b.lastBucket = at, of, at
	return at, nil
}

// rowKeys finds the keys of a row, each once.
func (b *buckets) rowKeys(w *work, row segment.Row) error {
	b.row = b.row[:0]
	c := b.source.column
	if c.Numbers() > 0 {
		b.ords = c.RowNumbers(b.ords[:0], row)
		for _, ord := range b.ords {
			if b.all != nil {
				if int(ord) < c.Numbers() {
					b.all.each(c.Number(int(ord)), func(id uint32) { b.row = append(b.row, id) })
				}
				continue
			}
			id, err := b.idOf(w, false, int(ord))
			if err != nil {
				return err
			}
			b.row = append(b.row, id)
		}
	}
	if b.all == nil && c.Strings() > 0 {
		b.ords = c.RowStrings(b.ords[:0], row)
		for _, ord := range b.ords {
			id, err := b.idOf(w, true, int(ord))
			if err != nil {
				return err
			}
			b.row = append(b.row, id)
		}
	}
	if len(b.row) > 1 {
		slices.Sort(b.row)
		b.row = slices.Compact(b.row)
	}
	if last := len(b.row) - 1; last >= 0 && b.row[last] == unkeyed {
		b.row = b.row[:last]
	}
	return nil
}

func (b *buckets) walk(w *work, p pairs) error {
	if b.source.column == nil {
		return nil
	}
	b.out.rows, b.out.groups = b.out.rows[:0], b.out.groups[:0]
	if strings, ok := b.single(); ok {
		if err := b.walkSingle(w, p, strings); err != nil {
			return err
		}
		return b.pass(w)
	}
	for i, row := range p.rows {
		if i == 0 || row != p.rows[i-1] {
			if err := b.rowKeys(w, segment.Row(row)); err != nil {
				return err
			}
		}
		for _, id := range b.row {
			at, err := b.bucket(w, p.group(i), id)
			if err != nil {
				return err
			}
			b.counts[at]++
			if len(b.nested) > 0 {
				b.out.rows, b.out.groups = append(b.out.rows, row), append(b.out.groups, at)
			}
		}
		if len(b.out.rows) >= batch {
			if err := b.pass(w); err != nil {
				return err
			}
		}
	}
	return b.pass(w)
}

// single reports whether all values are numbers, or all are strings, and no row has two of them.
func (b *buckets) single() (strings, ok bool) {
	c := b.source.column
	switch {
	case b.all != nil:
		return false, false
	case c.Strings() == 0:
		return false, c.SingleNumbers()
	case c.Numbers() == 0:
		return true, c.SingleStrings()
	}
	return false, false
}

// walkSingle walks rows with one value at most.
func (b *buckets) walkSingle(w *work, p pairs, strings bool) (err error) {
	c, kind := b.source.column, 0
	if strings {
		b.ords, b.places = c.EachString(b.ords[:0], b.places[:0], p.rows)
		kind = 1
	} else {
		b.ords, b.places = c.EachNumber(b.ords[:0], b.places[:0], p.rows)
	}
	for i, ord := range b.ords {
		id := uint32(0)
		if ids := b.ids[kind]; ids != nil {
			id = ids[ord]
		}
		if id == 0 {
			if id, err = b.idOf(w, strings, int(ord)); err != nil {
				return err
			}
			id++
		}
		if id--; id == unkeyed {
			continue
		}
		place := b.places[i]
		at := uint32(none)
		if p.groups == nil && int(id) < len(b.first) {
			at = b.first[id]
		}
		if at == none {
			if at, err = b.bucket(w, p.group(int(place)), id); err != nil {
				return err
			}
		}
		b.counts[at]++
		if len(b.nested) > 0 {
			b.out.rows, b.out.groups = append(b.out.rows, p.rows[place]), append(b.out.groups, at)
		}
	}
	return nil
}

// pass hands the rows of buckets over to the nested aggregations.
func (b *buckets) pass(w *work) error {
	if len(b.out.rows) == 0 {
		return nil
	}
	for _, n := range b.nested {
		if err := n.walk(w, b.out); err != nil {
			return err
		}
	}
	b.out.rows, b.out.groups = b.out.rows[:0], b.out.groups[:0]
	return w.step()
}

// tally counts by ordinal where that counts documents: nothing is nested, and no document has two values in one bucket.
func (b *buckets) tally(w *work) (bool, error) {
	c, walked := b.source.column, walkedKey
	if _, ok := b.by.(intervals); ok {
		walked = walkedInterval
	}
	switch {
	case c == nil:
		return true, nil
	case len(b.nested) > 0, !b.source.tallies(c.Numbers()+c.Strings(), walked):
		return false, nil
	}
	if b.spec.kind.name != "terms" && !(c.SingleNumbers() && (c.Strings() == 0 || b.all != nil)) {
		return false, nil
	}
	for _, strings := range []bool{false, true} {
		if strings && (b.all != nil || c.Strings() == 0) || !strings && c.Numbers() == 0 {
			continue
		}
		counts := b.source.counts(strings)
		if by, ok := b.by.(intervals); ok && !strings {
			if err := b.tallyIntervals(w, &counts, by); err != nil {
				return true, err
			}
			continue
		}
		err := counts.Each(func(ords, times []uint32) error {
			for i, ord := range ords {
				if b.all != nil {
					b.row = b.row[:0]
					b.all.each(c.Number(int(ord)), func(id uint32) { b.row = append(b.row, id) })
				} else {
					id, err := b.idOf(w, strings, int(ord))
					if err != nil {
						return err
					}
					b.row = append(b.row[:0], id)
				}
				for _, id := range b.row {
					if id == unkeyed {
						continue
					}
					at, err := b.bucket(w, 0, id)
					if err != nil {
						return err
					}
					b.counts[at] += uint64(times[i])
				}
			}
			return w.step()
		})
		if err != nil {
			return true, err
		}
	}
	return true, nil
}

// tallyIntervals counts numbers in ascending order, so that it looks for a bucket once.
func (b *buckets) tallyIntervals(w *work, counts *Ordinals, by intervals) error {
	at, end := uint32(none), math.Inf(-1)
	return counts.Each(func(ords, times []uint32) error {
		b.values = b.source.column.NumbersAt(b.values[:0], ords)
		for i, x := range b.values {
			if !(x.Float < end) {
				k, ok, err := b.by.number(w, x)
				if err != nil {
					return err
				}
				if at, end = none, math.Inf(-1); ok {
					id, err := b.place(w, k)
					if err != nil {
						return err
					}
					if at, err = b.bucket(w, 0, id); err != nil {
						return err
					}
					end = by.end(k)
				}
			}
			if at != none {
				b.counts[at] += uint64(times[i])
			}
		}
		return w.step()
	})
}

func (b *buckets) merge(w *work, from node, to []uint32) error {
	o := from.(*buckets)
	ids := make([]uint32, len(o.keys))
	for i, k := range o.keys {
		var err error
		if ids[i], err = b.place(w, k); err != nil {
			return err
		}
	}
	at := make([]uint32, len(o.counts))
	for i := range o.counts {
		var err error
		if at[i], err = b.bucket(w, to[o.parent[i]], ids[o.key[i]]); err != nil {
			return err
		}
		b.counts[at[i]] = addCounts(b.counts[at[i]], o.counts[i])
	}
	return mergeAll(w, b.nested, o.nested, at)
}

// appendPeer appends the keys, then each bucket with the group above it, then the nested states.
func (b *buckets) appendPeer(dst []byte, _ int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.keys)))
	for i := range b.keys {
		k := &b.keys[i]
		if k.isNumber {
			dst = appendNumber(append(dst, 1), k.number)
			continue
		}
		dst = appendText(append(dst, 0), k.text)
		if string(k.shown) == string(k.text) {
			dst = append(dst, 0)
		} else {
			dst = appendText(dst, k.shown)
		}
	}
	dst = binary.AppendUvarint(dst, uint64(len(b.counts)))
	for i, n := range b.counts {
		dst = binary.AppendUvarint(dst, uint64(b.parent[i]))
		dst = binary.AppendUvarint(dst, uint64(b.key[i]))
		dst = binary.AppendUvarint(dst, n)
	}
	for _, n := range b.nested {
		dst = n.appendPeer(dst, len(b.counts))
	}
	return dst
}

// Bytes of the shortest key and bucket in a message.
const (
	leastKey    = 3
	leastBucket = 3
)

func (b *buckets) readPeer(w *work, r Reader, groups int) error {
	n := r.Items(leastKey)
	if b.all != nil && n != len(b.keys) {
		r.Spoil()
		return nil
	}
	if err := r.Hold(n * keyBytes); err != nil {
		return err
	}
	b.keys = make([]key, n)
	for i := range b.keys {
		if err := r.Step(); err != nil {
			return err
		}
		k := &b.keys[i]
		if k.isNumber = r.Byte() != 0; k.isNumber {
			k.number = r.Exact()
			if b.all != nil && k.number != numeric.Of(float64(i)) {
				r.Spoil()
				return nil
			}
			continue
		}
		if k.text = r.Text(); b.all != nil {
			r.Spoil()
			return nil
		}
		if k.shown = r.Text(); len(k.shown) == 0 {
			k.shown = k.text
		}
	}
	count := r.Items(leastBucket)
	if err := r.Hold(count * bucketBytes); err != nil {
		return err
	}
	b.parent, b.key, b.counts = make([]uint32, count), make([]uint32, count), make([]uint64, count)
	for i := range b.counts {
		if err := r.Step(); err != nil {
			return err
		}
		if err := w.grouped(); err != nil {
			r.Spoil()
			return nil
		}
		b.parent[i], b.key[i], b.counts[i] = uint32(r.Int(max(groups-1, 0))), uint32(r.Int(max(n-1, 0))), uint64(r.Int(maxCount))
		if groups == 0 || n == 0 {
			r.Spoil()
			return nil
		}
	}
	for _, nested := range b.nested {
		if err := nested.readPeer(w, r, count); err != nil {
			return err
		}
	}
	return nil
}

// of returns the buckets of a group.
func (b *buckets) of(group int) []uint32 {
	if b.parentStart == nil { // counting sort
		groups := 0
		for _, p := range b.parent {
			groups = max(groups, int(p)+1)
		}
		b.parentStart = make([]uint32, groups+2)
		for _, p := range b.parent {
			b.parentStart[p+2]++
		}
		for g := 2; g < len(b.parentStart); g++ {
			b.parentStart[g] += b.parentStart[g-1]
		}
		b.byParent = make([]uint32, len(b.parent))
		for i, p := range b.parent {
			b.byParent[b.parentStart[p+1]] = uint32(i)
			b.parentStart[p+1]++
		}
	}
	if group+1 >= len(b.parentStart) {
		return nil
	}
	return b.byParent[b.parentStart[group]:b.parentStart[group+1]]
}

// appendJSON shows the buckets of a group.
func (b *buckets) appendJSON(r *render, group int) {
	r.dst = append(r.dst, `{"buckets":[`...)
	other := uint64(0)
	switch {
	case b.all != nil:
		b.appendAll(r, group)
	case b.spec.kind.name == "terms":
		other = b.appendTerms(r, group)
	default:
		b.appendIntervals(r, group)
	}
	r.dst = append(r.dst, ']')
	if b.spec.kind.name == "terms" {
		r.dst = strconv.AppendUint(append(r.dst, `,"otherCount":`...), other, 10)
	}
	r.dst = append(r.dst, '}')
}

// appendBucket appends a bucket; at is −1 where there are no documents.
func (b *buckets) appendBucket(r *render, k *key, at int) {
	if !r.bucket() {
		return
	}
	if last := r.dst[len(r.dst)-1]; last != '[' {
		r.dst = append(r.dst, ',')
	}
	n, group := uint64(0), math.MaxInt
	if at >= 0 {
		n, group = b.counts[at], at
	}
	r.dst = b.by.appendKey(append(r.dst, '{'), k)
	r.dst = strconv.AppendUint(append(r.dst, `"count":`...), n, 10)
	if b.spec.Nested != nil {
		r.dst = append(r.dst, `,"aggregations":`...)
		r.set(b.spec.Nested, b.nested, group)
	}
	r.dst = append(r.dst, '}')
}

// appendAll shows a bucket for each key, in their order.
func (b *buckets) appendAll(r *render, group int) {
	at := make([]int, len(b.keys))
	for i := range at {
		at[i] = -1
	}
	if group != math.MaxInt {
		for _, i := range b.of(group) {
			at[b.key[i]] = int(i)
		}
	}
	for i := range b.keys {
		b.appendBucket(r, &b.keys[i], at[i])
	}
}

// appendTerms shows the first buckets in the order that was asked for, and returns how many values of documents the others have.
func (b *buckets) appendTerms(r *render, group int) (other uint64) {
	if group == math.MaxInt {
		return 0
	}
	before := func(x, y uint32) int {
		c := 0
		if !b.spec.byKey {
			c = cmp.Compare(b.counts[x], b.counts[y])
		} else {
			c = b.keys[b.key[x]].compare(&b.keys[b.key[y]])
		}
		if !b.spec.rising {
			c = -c
		}
		if c == 0 {
			c = b.keys[b.key[x]].compare(&b.keys[b.key[y]])
		}
		return c
	}
	var top []uint32 // a heap, the last one first, once it is full
	for _, i := range b.of(group) {
		if b.counts[i] < uint64(b.spec.minCount) {
			other = addCounts(other, b.counts[i])
			continue
		}
		switch {
		case len(top) < b.spec.limit:
			if top = append(top, i); len(top) == b.spec.limit {
				for at := len(top)/2 - 1; at >= 0; at-- {
					sink(top, at, before)
				}
			}
		case before(i, top[0]) < 0:
			other = addCounts(other, b.counts[top[0]])
			top[0] = i
			sink(top, 0, before)
		default:
			other = addCounts(other, b.counts[i])
		}
	}
	slices.SortFunc(top, before)
	for _, i := range top {
		b.appendBucket(r, &b.keys[b.key[i]], int(i))
	}
	return other
}

// sink restores a heap whose first entry comes last in the order.
func sink(heap []uint32, at int, before func(x, y uint32) int) {
	for 2*at+1 < len(heap) {
		child := 2*at + 1
		if child+1 < len(heap) && before(heap[child], heap[child+1]) < 0 {
			child++
		}
		if before(heap[at], heap[child]) >= 0 {
			return
		}
		heap[at], heap[child] = heap[child], heap[at]
		at = child
	}
}

// appendIntervals shows the buckets in the order of their keys, and those between them if minCount is 0.
func (b *buckets) appendIntervals(r *render, group int) {
	if group == math.MaxInt {
		return
	}
	list := b.of(group)
	slices.SortFunc(list, func(x, y uint32) int { return b.keys[b.key[x]].compare(&b.keys[b.key[y]]) })
	for i, at := range list {
		if i > 0 && b.spec.minCount == 0 {
			b.by.between(b.keys[b.key[list[i-1]]], b.keys[b.key[at]], func(k key) bool {
				b.appendBucket(r, &k, -1)
				return r.err == nil
			})
		}
		if b.counts[at] >= uint64(b.spec.minCount) {
			b.appendBucket(r, &b.keys[b.key[at]], int(at))
		}
	}
}

// appendName appends the name of a member and its colon.
func appendName(dst []byte, name string) []byte { return append(jsontext.AppendQuoted(dst, name), ':') }
