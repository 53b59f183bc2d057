package resultcache

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
)

// values and others are kinds of the tests.
var (
	values = NewKind[any]("values of tests")
	others = NewKind[string]("other values of tests")
)

func value(f *Scope, key []byte) any {
	v, _ := values.Get(f, key)
	return v
}

func TestOwnersDoNotMeet(t *testing.T) {
	c := New(1 << 20)
	a, b := c.Scope(), c.Scope()
	values.Put(a, []byte("k"), 1, 10)
	if value(b, []byte("k")) != nil {
		t.Error("got a result of another owner")
	}
	values.Put(b, []byte("k"), 2, 10)
	values.Put(a, []byte("k"), 3, 10)
	if value(a, []byte("k")) != 3 || value(b, []byte("k")) != 2 {
		t.Errorf("%v, %v", value(a, []byte("k")), value(b, []byte("k")))
	}
	a.Close()
	if value(b, []byte("k")) != 2 {
		t.Error("lost with the results of another owner")
	}
	b.Close()
	if n := c.Bytes(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
}

func TestCacheIsBounded(t *testing.T) { testAgainstModel(t) }

// TestKeysOfOneHash makes many keys collide.
func TestKeysOfOneHash(t *testing.T) {
	defer func(bits uint64) { hashBits = bits }(hashBits)
	hashBits = shards*8 - 1
	testAgainstModel(t)
}

// testAgainstModel compares a cache with a map: cached results must be right, and the bound must hold. Some keys are too long for
// their entries.
func testAgainstModel(t *testing.T) {
	const most = 1 << 20
	c := New(most)
	r := rand.New(rand.NewPCG(1, 2))
	type key struct {
		scope int
		key   string
	}
	scopes := make([]*Scope, 5)
	for i := range scopes {
		scopes[i] = c.Scope()
	}
	want := map[key]int{}
	for n := range 50000 {
		name := r.IntN(3000)
		k := key{r.IntN(len(scopes)), strings.Repeat("long", name%13) + fmt.Sprint(name)}
		f := scopes[k.scope]
		switch r.IntN(10) {
		case 0:
			if r.IntN(300) == 0 {
				f.Close()
				scopes[k.scope] = c.Scope()
				for old := range want {
					if old.scope == k.scope {
						delete(want, old)
					}
				}
			}
		case 1, 2, 3:
			if name%3 == 0 {
				values.PutSpare(f, []byte(k.key), n, r.IntN(3000))
			} else {
				values.Put(f, []byte(k.key), n, r.IntN(1000))
			}
			if got := value(f, []byte(k.key)); got != n {
				t.Fatalf("put %d, got %v", n, got)
			}
			want[k] = n
		default:
			if got := value(f, []byte(k.key)); got != nil && got != want[k] {
				t.Fatalf("got %v, put %d", got, want[k])
			}
		}
		if b := c.Bytes(); n%500 == 0 && b > most {
			t.Fatalf("%d bytes", b)
		}
		for i := range c.shards {
			if s := &c.shards[i]; n%500 == 0 && (s.spare < 0 || s.spare > s.most/spareShare) {
				t.Fatalf("%d bytes of spare entries", s.spare)
			}
		}
	}
	if c.Bytes() < most/2 {
		t.Errorf("%d bytes kept", c.Bytes())
	}
	for _, f := range scopes {
		f.Close()
	}
	if n := c.Bytes(); n != 0 {
		t.Errorf("%d bytes are left", n)
	}
	for i := range c.shards {
		if s := &c.shards[i]; s.slab.used != 0 || len(s.slab.parts) > 2 || len(s.places) != 0 || len(s.owners) != 0 || s.byUse != [sizes + 1]ends{} || s.spare != 0 {
			t.Errorf("shard %d has entries left: %d, %d parts, %d hashes, %d owners", i, s.slab.used, len(s.slab.parts), len(s.places), len(s.owners))
		}
	}
}

// TestEntryIsTwoLines checks that an entry takes two cache lines, and that the counted size of an entry includes its places.
func TestEntryIsTwoLines(t *testing.T) {
	if n := reflect.TypeFor[entry]().Size(); n != 128 {
		t.Errorf("%d bytes", n)
	}
}

// TestOldestGoesFirst puts results of one size into a cache with room for some of them.
func TestOldestGoesFirst(t *testing.T) {
	c := New(shards * 400 << 10)
	f := c.Scope()
	const bytes, n = 10 << 10, shards * 120
	key := func(i int) []byte { return fmt.Append(nil, i) }
	used := func(i int) { // used before the later ones are put
		value(f, key(i))
	}
	for i := range n {
		values.Put(f, key(i), i, bytes)
		used(0)
	}
	stale := 0 // in shards with few entries
	for i := range n {
		switch kept := value(f, key(i)) != nil; {
		case i > 0 && i < n/10 && kept:
			stale++
		case (i == 0 || i > n-100) && !kept:
			t.Errorf("result %d of %d is not cached", i, n)
		}
	}
	if stale > 2 {
		t.Errorf("%d of the %d oldest results are cached", stale, n/10)
	}
}

// TestPagesOutlastBitmaps repeats queries whose bitmaps have no room, but whose pages have: the second round must find the pages.
func TestPagesOutlastBitmaps(t *testing.T) {
	f := New(64 << 20).Scope()
	const n = 2000
	key := func(kind string, i int) []byte { return fmt.Append(nil, kind, i) }
	for round := range 3 {
		pages, bitmaps := 0, 0
		for i := range n {
			if value(f, key("page", i)) != nil {
				pages++
			}
			if value(f, key("bitmap", i)) != nil {
				bitmaps++
			}
			values.Put(f, key("bitmap", i), i, 100<<10)
			values.Put(f, key("page", i), i, 1<<10)
		}
		if round > 0 && pages < n {
			t.Errorf("round %d: %d of %d pages, and %d bitmaps", round, pages, n, bitmaps)
		}
	}
	for i := range 80 * n { // pages that are not used again must not stay forever
		values.Put(f, key("other", i), i, 1<<10)
	}
	if value(f, key("page", 0)) != nil {
		t.Error("a page outlasts all others")
	}
}

// TestSpareEntriesLeaveRoom checks that spare entries do not displace others, except a few in an overfull shard, and that the most
// recently used spare ones stay.
func TestSpareEntriesLeaveRoom(t *testing.T) {
	f := New(shards * 1 << 20).Scope()
	const bytes, n = 10 << 10, shards * 200
	key := func(kind string, i int) []byte { return fmt.Append(nil, kind, i) }
	for i := range n / 4 {
		values.Put(f, key("other", i), i, bytes)
	}
	for i := range n {
		values.PutSpare(f, key("spare", i), i, bytes)
	}
	others, spare := 0, 0
	for i := range n {
		if i < n/4 && value(f, key("other", i)) != nil {
			others++
		}
		if value(f, key("spare", i)) != nil {
			if spare++; i < n/2 {
				t.Errorf("spare entry %d of %d is cached", i, n)
			}
		}
	}
	if others < n/4*99/100 || spare < shards*15 || spare > shards*(1<<20/spareShare/bytes) {
		t.Errorf("%d of %d others and %d spare entries are cached", others, n/4, spare)
	}
}

func TestTooLargeIsNotKept(t *testing.T) {
	f := New(1 << 20).Scope()
	values.Put(f, []byte("k"), 1, 1<<20)
	if value(f, []byte("k")) != nil {
		t.Error("kept")
	}
}

func TestFits(t *testing.T) {
	f := New(shards << 10).Scope()
	for _, c := range []struct {
		n, bytes int
		want     bool
	}{{0, 100, true}, {1, 512 - entryBytes, true}, {1, 513 - entryBytes, false}, {shards, 512 - entryBytes, true}, {shards + 1, 512 - entryBytes, false}} {
		if got := f.Fits(c.n, c.bytes); got != c.want {
			t.Errorf("%d results of %d bytes fit: %v", c.n, c.bytes, got)
		}
	}
}

func TestAdmit(t *testing.T) {
	f := New(1 << 20).Scope()
	if values.Admit(f, []byte("k")) || !values.Admit(f, []byte("k")) || values.Admit(f, []byte("l")) {
		t.Error("Admit must refuse a key the first time and admit it the second time")
	}
}

// TestKindsDoNotMeet uses one key under two kinds, with equal hashes in the second round.
func TestKindsDoNotMeet(t *testing.T) {
	defer func(bits uint64) { hashBits = bits }(hashBits)
	for range 2 {
		for _, key := range []string{"", "k", strings.Repeat("k", shortKey), strings.Repeat("k", shortKey+1)} {
			key, f := []byte(key), New(1<<20).Scope()
			values.Put(f, key, 1, 10)
			if v, ok := others.Get(f, key); ok {
				t.Errorf("%q under another kind: %q", key, v)
			}
			others.Put(f, key, "other", 10)
			if v, ok := others.Get(f, key); !ok || v != "other" {
				t.Errorf("%q: %q", key, v)
			}
			if v := value(f, key); v != 1 {
				t.Errorf("%q was put under another kind: %v", key, v)
			}
			if values.Admit(f, key); hashBits != 0 && others.Admit(f, key) {
				t.Errorf("%q was asked for under another kind", key)
			}
		}
		hashBits = 0
	}
}

// TestNamesOfKindsDiffer checks that a kind can be declared only once.
func TestNamesOfKindsDiffer(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("two kinds have the same name")
		}
	}()
	NewKind[int]("values of tests")
}

func TestStampsAreStable(t *testing.T) {
	f := New(1 << 20).Scope()
	a, b := f.Stamp([]byte("a")), f.Stamp([]byte("b"))
	if a == b || f.Stamp([]byte("a")) != a || f.Stamp([]byte("b")) != b {
		t.Error("stamps change, or are alike")
	}
}

func TestManyGoroutines(t *testing.T) {
	c := New(1 << 16)
	shared := c.Scope()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			own := c.Scope()
			for i := range 2000 {
				k := fmt.Append(nil, i%100)
				values.Put(own, k, i, 50)
				if v := value(shared, k); v != nil && v != i%100 {
					t.Errorf("got %v under %s", v, k)
				}
				values.Put(shared, k, i%100, 50)
				values.Admit(shared, k)
			}
			if g%2 == 0 {
				own.Close()
			}
		})
	}
	wg.Wait()
}

// TestSizeOfSets checks that the charged size covers the rows of a set, and a bit more per container.
func TestSizeOfSets(t *testing.T) {
	b := roaring.New()
	for i := range uint32(200000) {
		b.Add(7 * i)
	}
	if n, bytes := int(b.GetSizeInBytes()), Size(b); bytes < n || bytes > n+200+64*22 {
		t.Errorf("%d bytes for %d of rows in at most 22 containers", bytes, n)
	}
	if Overhead(roaring.New()) == 0 {
		t.Error("an empty set has no size")
	}
}

// TestPartsAtOnce checks that callers which find the slab full at the same time make room once.
func TestPartsAtOnce(t *testing.T) {
	defer func(bits uint64) { hashBits = bits }(hashBits)
	hashBits = 0 // one shard
	c := New(1 << 32)
	f := c.Scope()
	var putting sync.WaitGroup
	for g := range 16 {
		putting.Go(func() {
			for i := range 200 {
				values.Put(f, fmt.Appendf(nil, "%d %d", g, i), i, 10)
			}
		})
	}
	putting.Wait()
	s := &c.shards[0]
	if want := (s.slab.used + slabEntries - 1) / slabEntries; s.slab.used != 3200 || len(s.slab.parts) != want {
		t.Errorf("%d entries in %d parts, want %d", s.slab.used, len(s.slab.parts), want)
	}
}

// TestSetsOfTenMillionRowsFit checks that with the default budget, the largest sets of rows of a segment with ten million rows are cached.
func TestSetsOfTenMillionRowsFit(t *testing.T) {
	if f := New(128 << 20).Scope(); !f.Fits(1, 10_000_000/8*11/10) {
		t.Error("a bit for each of ten million rows does not fit")
	}
}
