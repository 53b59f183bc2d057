package aggregate

import (
	"cmp"
	"encoding/binary"
	"math"

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
	// appendKey appends the members that describe a bucket, each followed by a comma.
	appendKey(dst []byte, k *key) []byte
}

// several is a selector with values that are in several buckets. These are numbered and always shown.
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
	numbers numberIndex
	lastKey uint32 // the last number that was looked up: neighbours in a column are often in one interval
	texts   map[string]uint32
	indexed int // keys that the maps have; they get the others when they are asked

	near near // size 0: not a histogram of a column of single numbers without strings, or isNear was not asked

	parent, key []uint32 // by bucket: the group above, and the place of its key
	counts      []uint64 // by bucket: its documents
	first       []uint32 // by key: its bucket in group 0
	rest        map[uint64]uint32

	source      columnOf
	distinct    bool        // no two values of the segment have one key, and no other segment has given any
	ids         [2][]uint32 // by ordinal of the numbers and strings of the segment: place of the key + 1; 0: not known
	row         []uint32    // keys of a row
	ords        []uint32
	values      []numeric.Value
	floats      []float64
	rows        []uint32 // with groups: rows for nested nodes
	groups      []uint32
	lastOf      uint64 // the last pair that was looked up in rest
	lastBucket  uint32
	byParent    []uint32 // buckets by the group above, while an answer is written
	parentStart []uint32
}

// newBuckets returns the empty state of a bucket aggregation. If the selector has a fixed list of keys, they exist from the start.
func newBuckets(a *Spec, by selector) *buckets {
	b := &buckets{spec: a, by: by, nested: a.Nested.newNodes(), lastOf: math.MaxUint64}
	if b.all, _ = by.(several); b.all != nil {
		for i := range b.all.size() {
			b.keys = append(b.keys, key{isNumber: true, number: numeric.Of(float64(i))})
		}
	}
	return b
}

// open forgets the mapping from ordinals to keys, because ordinals belong to one segment.
func (b *buckets) open(w *work, c columnOf) error {
	for i := range b.ids {
		if err := w.hold(-4 * len(b.ids[i])); err != nil {
			return err
		}
		b.ids[i] = nil
	}
	b.source = c
	b.distinct = b.spec.kind.name == "terms" && len(b.keys) == 0
	b.near.forget()
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
		if old, ok := b.numbers.find(k.number); ok {
			b.lastKey = old
			return old, nil
		}
	} else if old, ok := b.texts[string(k.text)]; ok {
		// The same spelling is shown whichever segment or machine comes first.
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
		b.numbers.put(k.number, id)
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

// merge maps the keys of the other state to keys here, then its buckets to buckets here, and merges the
// nested states by that map.
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
func (b *buckets) appendPeer(w *work, dst []byte, _ int) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b.keys)))
	for i := range b.keys {
		w.rest(i)
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
		w.rest(i)
		dst = binary.AppendUvarint(dst, uint64(b.parent[i]))
		dst = binary.AppendUvarint(dst, uint64(b.key[i]))
		dst = binary.AppendUvarint(dst, n)
	}
	for _, n := range b.nested {
		dst = n.appendPeer(w, dst, len(b.counts))
	}
	return dst
}

// Bytes of the shortest key and bucket in a message.
const (
	leastKey    = 3
	leastBucket = 3
)

// readPeer reads keys, buckets and nested states. Keys that a selector with a fixed list cannot have spoil
// the message.
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
