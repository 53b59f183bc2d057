package index

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"svc/internal/vfs"
)

// expiryModel is the reference implementation of an index with a time to live.
type expiryModel struct {
	docs    map[string]string // by id, as JSON
	field   string            // "": documents do not expire
	seconds float64
}

// expired reports whether a document has expired at a moment.
func (m *expiryModel) expired(doc string, moment int64) bool {
	var fields map[string]any
	if err := json.Unmarshal([]byte(doc), &fields); err != nil {
		panic(err)
	}
	if m.field == "" {
		return false
	}
	inner, leaf, nested := strings.Cut(m.field, ".")
	value := fields[inner]
	if o, ok := value.(map[string]any); ok && nested {
		value = o[leaf]
	} else if nested {
		return false
	}
	list, ok := value.([]any)
	if !ok {
		list = []any{value}
	}
	numbers, over := 0, true
	for _, x := range list {
		if n, ok := x.(float64); ok {
			numbers++
			over = over && n+m.seconds <= float64(moment)
		}
	}
	return numbers > 0 && over
}

// left returns the documents that have not expired.
func (m *expiryModel) left(moment int64) map[string]string {
	left := maps.Clone(m.docs)
	maps.DeleteFunc(left, func(_, doc string) bool { return m.expired(doc, moment) })
	return left
}

// TestExpiryAgainstAModel writes, deletes, merges, changes the setting, and moves the clock in both directions at random.
func TestExpiryAgainstAModel(t *testing.T) {
	hidden, deleted := 0, 0
	for range 4 {
		h, d := testExpiryAgainstAModel(t, rand.Uint64())
		hidden, deleted = hidden+h, deleted+d
	}
	if hidden == 0 || deleted == 0 {
		t.Errorf("%d documents were hidden, %d deleted", hidden, deleted)
	}
}

func testExpiryAgainstAModel(t *testing.T, seed uint64) (hidden, deleted int) {
	random := rand.New(rand.NewPCG(seed, 0))
	now := int64(1_000_000)
	b := newBed(t, vfs.NewMem(), Options{Now: func() time.Time { return time.Unix(now, int64(random.IntN(1e9))) }})
	defer func() { b.close() }()
	ix := b.create("a")
	m := &expiryModel{docs: map[string]string{}}
	value := func() string {
		at := now + int64(random.IntN(120)) - 60
		switch random.IntN(8) {
		case 0:
			return fmt.Sprintf(`[%d, %d.5, "text"]`, at, at+int64(random.IntN(50)))
		case 1:
			return fmt.Sprintf("%d.25", at)
		case 2:
			return []string{`"never"`, "null", "[]", "-5", "1e300", "-1e300"}[random.IntN(6)]
		}
		return fmt.Sprint(at)
	}
	for step := range 80 {
		did := ""
		switch random.IntN(9) {
		case 0, 1, 2:
			var docs []string
			for range 1 + random.IntN(12) {
				id := fmt.Sprint("d", random.IntN(60))
				m.docs[id] = fmt.Sprintf(`{"id":%q,"end":%s,"at":{"made":%s}}`, id, value(), value())
				docs = append(docs, m.docs[id])
			}
			did = "add " + strings.Join(docs, ",")
			b.apply(ix, b.payload(docs...))
		case 3:
			id := fmt.Sprint("d", random.IntN(60))
			did = "delete " + id
			b.apply(ix, DeleteDocuments{[]string{id}})
			delete(m.docs, id)
		case 4:
			body := `{"timeToLive":null}`
			m.field, m.seconds = "", 0
			switch random.IntN(4) {
			case 0, 1:
				m.field, body = "end", `{"timeToLive":{"attribute":"end"}}`
			case 2:
				m.field, m.seconds, body = "at.made", 20, `{"timeToLive":{"attribute":"at.made","seconds":20}}`
			}
			did = body
			b.apply(ix, update(t, body))
		case 5:
			moment := now - int64(random.IntN(40))
			did = fmt.Sprint("delete what had expired at ", moment)
			// Earlier changes of the batch stay.
			id := fmt.Sprint("d", random.IntN(60))
			again := fmt.Sprintf(`{"id":%q,"end":0,"at":{"made":0}}`, id)
			left := m.left(moment)
			left[id] = again
			n := len(m.docs)
			if _, there := m.docs[id]; !there {
				n++
			}
			r := b.apply(ix, b.payload(again), DeleteExpired{moment})
			if want := n - len(left); r[1].Deleted != want {
				t.Fatalf("seed %d, step %d: %d documents were deleted, want %d", seed, step, r[1].Deleted, want)
			}
			deleted += r[1].Deleted
			m.docs = left
		case 6:
			did = "compact"
			b.compact(ix)
		case 7:
			did = "reopen"
			b.reopen()
			ix = b.c.Get("a")
		case 8:
			did = "evict"
			ix.evict()
		}
		for range 3 {
			now += int64(random.IntN(30)) - 5
			if now < 1_000_000 {
				now = 1_000_000
			}
			v := held(ix.View())
			want := m.left(now)
			got := documents(t, v)
			if !slices.Equal(slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want))) {
				v.Release()
				t.Fatalf("seed %d, step %d at %d, after %s: documents %v, want %v", seed, step, now, did, got, want)
			}
			if v.Documents() != len(want) {
				t.Errorf("seed %d: %d documents are counted, want %d", seed, v.Documents(), len(want))
			}
			for id := range m.docs {
				if _, _, found := v.Find([]byte(id)); found != (want[id] != "") {
					t.Errorf("seed %d: %s: found = %v", seed, id, found)
				}
			}
			if again := held(ix.ReadView()); again != v {
				t.Errorf("seed %d: two views within one second", seed)
				again.Release()
			} else {
				again.Release()
			}
			c, err := ix.Counts()
			if err != nil || c.Documents != len(want) || c.FieldDistribution["id"] != len(want) {
				t.Errorf("seed %d: statistics %+v, %v, want %d", seed, c, err, len(want))
			}
			hidden += len(m.docs) - len(want)
			v.Release()
			all := held(ix.PlainView())
			stored := documents(t, all)
			all.Release()
			if !slices.Equal(slices.Sorted(maps.Keys(stored)), slices.Sorted(maps.Keys(m.docs))) {
				t.Fatalf("seed %d, step %d, after %s: stored %v, want %v", seed, step, did, stored, m.docs)
			}
			any := slices.Contains(b.c.Expired(time.Unix(now, 0)), "a")
			if want := len(m.left(now)) < len(m.docs); any != want {
				t.Errorf("seed %d: expired documents exist: %v, want %v", seed, any, want)
			}
		}
	}
	return hidden, deleted
}

// TestExpiryBesideWrites reads while documents expire, are written and evicted, and the clock advances.
func TestExpiryBesideWrites(t *testing.T) {
	var now atomic.Int64
	now.Store(1000)
	b := newBed(t, vfs.NewMem(), Options{Now: func() time.Time { return time.Unix(now.Load(), 0) }})
	defer b.close()
	ix := b.create("a")
	var docs []string
	for i := range 200 {
		docs = append(docs, fmt.Sprintf(`{"id":"d%d","end":%d}`, i, 1000+i))
	}
	b.apply(ix, update(t, `{"timeToLive":{"attribute":"end"}}`), b.payload(docs...))
	done := make(chan struct{})
	var reading sync.WaitGroup
	defer reading.Wait()
	defer close(done)
	for range 3 {
		reading.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				early := now.Load()
				v := held(ix.View())
				n := v.Documents()
				late := now.Load()
				v.Release()
				if most, least := 199-int(early-1000), 199-int(late-1000); n > most || n < least {
					t.Errorf("between %d and %d: %d documents, want %d to %d", early, late, n, least, most)
					return
				}
			}
		})
	}
	for i := range 150 {
		now.Add(1)
		switch i % 10 {
		case 3:
			b.apply(ix, b.payload(fmt.Sprintf(`{"id":"d%d","end":%d}`, i, 1000+i)))
		case 7:
			ix.evict()
		}
	}
}

func BenchmarkExpire(b *testing.B) {
	now := int64(1_000_000)
	bed := newBed(b, vfs.NewMem(), Options{Now: func() time.Time { return time.Unix(now, 0) }})
	defer bed.close()
	ix := bed.create("a")
	var docs []string
	for i := range 1_000_000 {
		docs = append(docs, fmt.Sprintf(`{"id":%d,"end":%d}`, i, 1_000_000+i/100))
	}
	bed.apply(ix, update(b, `{"timeToLive":{"attribute":"end"}}`), bed.payload(docs...))
	for b.Loop() { // 100 documents expire in each second
		now++
		v := held(ix.View())
		v.Release()
	}
}
