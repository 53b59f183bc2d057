package aggregate

import (
	"cmp"
	"math"
	"slices"
	"strconv"

	"svc/internal/jsontext"
)

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

// appendBucket appends a bucket. at is −1 if it has no documents.
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

// appendTerms appends the first buckets in the requested order, and returns the number of values of documents in the others.
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

// sink restores the order of a heap whose root, the entry that comes last, has changed.
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
