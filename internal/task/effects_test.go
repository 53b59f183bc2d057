package task

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	"svc/internal/boltfile"
)

// sameMemory compares the roster in memory with what a start would read from the file.
func sameMemory(t *testing.T, q *Queue) {
	t.Helper()
	q.writing.Lock()
	defer q.writing.Unlock()
	r, err := load(q.db)
	if err != nil {
		t.Fatal(err)
	}
	var o outbox
	if err := o.load(q.db); err != nil {
		t.Fatal(err)
	}
	for _, d := range append(q.roster.differences(r), q.outbox.differences(&o)...) {
		t.Error(d)
	}
}

// TestMemoryFollowsTransactions runs random tasks of all kinds and forwarded requests, and compares memory with the file after each step.
func TestMemoryFollowsTransactions(t *testing.T) {
	seed := time.Now().UnixNano()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewSource(seed))
	h := newHistory(t, r)
	h.walk(t, func() { sameMemory(t, h.q) })
}

// walk runs random tasks of all kinds and forwarded requests, and calls check after each step.
func (h *history) walk(t *testing.T, check func()) {
	t.Helper()
	r := h.r
	there := uint32(7)
	var forwardedTasks []uint32
	names, batches, swaps := false, false, false // which cases occurred
	for range 80 {
		for range r.Intn(5) {
			h.enqueue(t)
		}
		if r.Intn(2) == 0 {
			n := New{IndexUID: "f", Content: CreateIndex{}, Forward: &Forward{Version: fmt.Sprint(len(forwardedTasks)), Remotes: []string{"b", "c", "d"}[:1+r.Intn(3)]}}
			n.Origin = &Origin{Remote: "a", TaskUID: uint32(len(forwardedTasks)), Version: "v"}
			forwardedTasks = append(forwardedTasks, enqueue(t, h.q, n).UID)
		}
		for _, remote := range []string{"b", "c", "d"} {
			e, err := h.q.Next(remote)
			if err != nil {
				t.Fatal(err)
			}
			if e != nil && r.Intn(2) == 0 {
				if err := h.q.Delivered(e.UID, remote, RemoteTask{UID: &there}, r.Intn(3) > 0); err != nil {
					t.Fatal(err)
				}
			}
		}
		if len(forwardedTasks) > 0 && r.Intn(20) == 0 {
			if err := h.q.Abandon("d", forwardedTasks[len(forwardedTasks)/2], nil); err != nil {
				t.Fatal(err)
			}
		}
		check()
		for range r.Intn(4) {
			if _, _, err := h.q.turn(); err != nil {
				t.Fatal(err)
			}
			check()
		}
		if t.Failed() {
			return
		}
		names = names || len(h.q.roster.names.all().texts) > 0
		batches = batches || !h.q.roster.batches.IsEmpty()
		swaps = swaps || !h.q.roster.byKind[IndexSwap].IsEmpty()
	}
	if !names || !batches || !swaps {
		t.Errorf("names %v, batches %v, swaps %v: the walk must reach all of them", names, batches, swaps)
	}
}

// TestOldOriginsAreForgotten stores more origins than the limit, several of them in one transaction.
func TestOldOriginsAreForgotten(t *testing.T) {
	o, _ := testOptions(t)
	q := paused(t, o)
	next := uint32(0)
	store := func(n int) {
		t.Helper()
		err := q.update(func(tx *txn) error {
			for range n {
				r := &request{New: New{IndexUID: "x", Content: CreateIndex{}, Origin: &Origin{Remote: "a", TaskUID: next, Version: "v"}}, content: []byte(`{}`)}
				if err := q.insert(tx, r, next, 1); err != nil {
					return err
				}
				next++
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	store(keptOrigins - 1)
	store(3)
	store(2)
	sameMemory(t, q)
	err := q.db.View(func(tx *boltfile.Tx) error {
		n := 0
		err := tx.Bucket(originBucket).ForEach(func(k, v []byte) error { n++; return nil })
		if n != keptOrigins || len(q.outbox.origins) != keptOrigins {
			t.Errorf("the file has %d origins, memory %d, want %d", n, len(q.outbox.origins), keptOrigins)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
