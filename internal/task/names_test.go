package task

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"
)

// TestNames compares random changes of clones with plain maps. Earlier clones must not change.
func TestNames(t *testing.T) {
	for range 4 {
		seed := rand.Uint64()
		r := rand.New(rand.NewPCG(seed, 1))
		n, want := newNames(), newNameTable()
		var next nameID
		check := func(n *names, want nameTable) {
			t.Helper()
			got := n.all()
			each := map[string]nameID{}
			n.each(func(uid string, id nameID) { each[uid] = id })
			if !maps.Equal(got.texts, want.texts) || !maps.Equal(got.ids, want.ids) || !maps.Equal(each, want.ids) {
				t.Fatalf("seed %d: %v, each %v, want %v", seed, got, each, want)
			}
		}
		var before *names
		var beforeWant nameTable
		for range 200 {
			if r.IntN(3) > 0 {
				before, beforeWant = n, nameTable{maps.Clone(want.texts), maps.Clone(want.ids)}
				n = n.clone()
			}
			uid := fmt.Sprint("i", r.IntN(50))
			id, ok := want.ids[uid]
			if got, has := n.id(uid); has != ok || ok && got != id {
				t.Fatalf("seed %d: the id of %s is %d, %v, want %d, %v", seed, uid, got, has, id, ok)
			}
			switch {
			case !ok:
				n.set(next, uid)
				want.texts[next], want.ids[uid] = uid, next
				next++
			case r.IntN(2) == 0:
				n.remove(id)
				delete(want.texts, id)
				delete(want.ids, uid)
			default: // a swap
				other := fmt.Sprint("i", r.IntN(50))
				to, ok := want.ids[other]
				if !ok {
					continue
				}
				n.set(id, other)
				n.set(to, uid)
				want.texts[id], want.ids[other], want.texts[to], want.ids[uid] = other, id, uid, to
			}
			if n.text(id) != want.texts[id] || n.next != next {
				t.Fatalf("seed %d: %d is %q, want %q; the next id is %d, want %d", seed, id, n.text(id), want.texts[id], n.next, next)
			}
			check(n, want)
			if before != nil && before != n {
				check(before, beforeWant)
			}
		}
	}
}

// TestClonesOfNamesAreSmall checks that adding names one by one copies few of the earlier names.
func TestClonesOfNamesAreSmall(t *testing.T) {
	n, copied := newNames(), 0
	const all = 10_000
	for i := range all {
		before := len(n.base.ids)
		if n = n.clone(); len(n.base.ids) != before {
			copied += len(n.base.ids)
		} else {
			copied += len(n.since.ids)
		}
		n.set(nameID(i), fmt.Sprint(i))
	}
	if copied > 300*all { // twice the square root, and the cost of doubling
		t.Errorf("%d names: %d copies", all, copied)
	}
}
