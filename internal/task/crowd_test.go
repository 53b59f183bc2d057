package task

import (
	"context"
	"fmt"
	"path"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"svc/internal/commit"
	"svc/internal/vfs"
)

// roundLog is a log whose changes take some time. It records the number of tasks in each.
type roundLog struct {
	took  time.Duration
	sizes []int
}

func (l *roundLog) Do(c commit.Change, apply func() error) error {
	time.Sleep(l.took)
	l.sizes = append(l.sizes, len(c.Files))
	return apply()
}

// TestCallersShareCommitsOfALog checks that callers which return at once after each answer share one commit instead of
// alternating between two.
func TestCallersShareCommitsOfALog(t *testing.T) {
	const callers, rounds = 16, 6
	synctest.Test(t, func(t *testing.T) {
		o, _ := testOptions(t)
		log := &roundLog{took: 20 * time.Millisecond}
		o.Dir, o.FS, o.noSync = path.Join(o.Dir, "tasks"), commit.On(vfs.OS, o.Dir, log), true
		q, err := open(o)
		if err != nil {
			t.Fatal(err)
		}
		q.done.Add(1)
		go q.commit()
		var all sync.WaitGroup
		turn := make(chan bool, 1) // requests are read one at a time
		for caller := range callers {
			all.Go(func() {
				for i := range rounds {
					n := adding(t, q, "a", AddDocuments{MayCreate: true}, fmt.Sprint(caller, i))
					turn <- true
					time.Sleep(100 * time.Microsecond)
					<-turn
					time.Sleep(2 * time.Millisecond)
					enqueue(t, q, n)
				}
			})
		}
		all.Wait()
		if n := len(log.sizes); n > rounds+2 {
			t.Errorf("%d callers enqueued %d tasks each in %d commits: %v", callers, rounds, n, log.sizes)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestLateCallersJoinACommit checks that a caller which arrives while a group waits for the queue joins its commit.
func TestLateCallersJoinACommit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, _ := testOptions(t)
		log := &roundLog{}
		o.Dir, o.FS, o.noSync = path.Join(o.Dir, "tasks"), commit.On(vfs.OS, o.Dir, log), true
		q, err := open(o)
		if err != nil {
			t.Fatal(err)
		}
		defer q.Close()
		ctx, done := context.Background(), make(chan error, 1)
		go func() {
			_, err := q.Enqueue(ctx, adding(t, q, "a", AddDocuments{MayCreate: true}, "late"))
			done <- err
		}()
		synctest.Wait()
		n := adding(t, q, "a", AddDocuments{MayCreate: true}, "first")
		r := &request{New: n, done: make(chan struct{})}
		if r.Content, err = n.Content.(enqueued).enqueued(&n); err != nil {
			t.Fatal(err)
		}
		if r.content, err = encodeContent(r.Content); err != nil {
			t.Fatal(err)
		}
		group := q.store([]*request{r})
		if len(group) != 2 || len(log.sizes) != 1 || log.sizes[0] != 2 {
			t.Errorf("a group of %d, commits of %v", len(group), log.sizes)
		}
		for i, r := range group {
			if r.err != nil || r.task.UID != uint32(i) {
				t.Errorf("request %d: %v, %v", i, r.task, r.err)
			}
			close(r.done)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestAnsweredRequestsAreNotHeld checks that the slices which the committer reuses hold no payload of an answered request.
func TestAnsweredRequestsAreNotHeld(t *testing.T) {
	o, _ := testOptions(t)
	o.noSync = true
	q, err := open(o)
	if err != nil {
		t.Fatal(err)
	}
	q.done.Add(1)
	go q.commit()
	n := adding(t, q, "a", AddDocuments{MayCreate: true}, "a payload")
	held := weak.Make(n.Payload)
	enqueue(t, q, n)
	n = New{}
	for deadline := time.Now().Add(time.Minute); held.Value() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the payload of an answered request is held")
		}
		runtime.GC()
	}
	if err := q.Close(); err != nil {
		t.Error(err)
	}
}

func TestGather(t *testing.T) {
	const took = 20 * time.Millisecond
	const limit = took * 3 / 4
	for _, tt := range []struct {
		name      string
		crowd     crowd
		had       int
		come      []time.Duration // after the previous one
		close     bool
		group     int
		waited    time.Duration
		pause     int
		waitsNext bool
	}{
		{name: "one caller", crowd: crowd{callers: 1, took: took}, had: 1, group: 1, waitsNext: true},
		{name: "the first commit", had: 1, group: 1, waitsNext: true},
		{name: "most are there", crowd: crowd{callers: 8, took: took}, had: 6, group: 6, waitsNext: true},
		{name: "all come", crowd: crowd{callers: 3, took: took, pause: 8}, had: 1, come: []time.Duration{time.Millisecond, time.Millisecond}, group: 3, waited: 2 * time.Millisecond, waitsNext: true},
		{name: "some come late", crowd: crowd{callers: 3, took: took}, had: 1, come: []time.Duration{time.Millisecond, time.Second}, group: 2, waited: limit, pause: 8},
		{name: "none come, again", crowd: crowd{callers: 3, took: took, pause: 8}, had: 1, group: 1, waited: limit, pause: 24},
		{name: "the pause is bounded", crowd: crowd{callers: 3, took: took, pause: 40}, had: 1, group: 1, waited: limit, pause: maxRest},
		{name: "slow commits", crowd: crowd{callers: 3, took: time.Minute}, had: 1, group: 1, waited: maxGather, pause: 8},
		{name: "resting", crowd: crowd{callers: 3, took: took, pause: 8, rest: 2}, had: 1, group: 1, pause: 8},
		{name: "the queue is closed", crowd: crowd{callers: 3, took: took}, had: 1, close: true, group: 1, pause: 8},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, stop := context.WithCancelCause(context.Background())
				defer stop(nil)
				q := &Queue{requests: make(chan *request), ctx: ctx}
				if tt.close {
					stop(nil)
				}
				go func() {
					for _, after := range tt.come {
						select {
						case <-time.After(after):
							q.requests <- new(request)
						case <-ctx.Done():
						}
					}
				}()
				began, c := time.Now(), tt.crowd
				group := q.gather(make([]*request, tt.had), &c)
				if waited := time.Since(began); len(group) != tt.group || waited != tt.waited || c.pause != tt.pause || (c.rest == 0) != tt.waitsNext {
					t.Errorf("a group of %d after %v, then %+v", len(group), waited, c)
				}
			})
		})
	}
}
