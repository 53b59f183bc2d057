package embed

import (
	"sync"
	"sync/atomic"
	"time"

	"svc/internal/apierr"
)

var calls, failedCalls atomic.Uint64

// Calls returns the number of calls of the process to providers, for documents and for queries, and how many of them failed.
func Calls() (total, failed uint64) { return calls.Load(), failedCalls.Load() }

// patience: calls are retried this long before they are reported. slowAfter: after waiting this long for providers in total, work no
// longer delays other indexes. svc cannot distinguish a slow provider from one that never answers, and a slow one must not change the
// order of tasks, which clients rely on. (Variables, so that tests can lower them.)
var (
	patience  = time.Second
	slowAfter = 10 * time.Second
)

// Stats counts calls to providers and measures how long callers wait for them. The zero Stats is ready to use. It is safe for
// concurrent use. A nil Stats counts only for Calls.
type Stats struct {
	// Changed is called, without a lock, when the work becomes slow and when trouble begins or ends; nil: none.
	Changed func()
	// Retries is how often calls were retried before the work was interrupted: their waits continue from there.
	Retries int

	mu            sync.Mutex
	total, failed uint64
	last          string

	waits   map[*wait]struct{} // calls, from their first try to their last
	began   time.Time          // when the first of them did
	waited  time.Duration      // before that
	slow    bool
	clock   *time.Timer // while a caller waits: reports the work as slow
	trouble int         // of waits: calls in trouble
}

// Trouble says why work waits: a provider fails, and calls are retried.
type Trouble struct {
	Reason  *apierr.Error // of the try that failed last
	Since   time.Time     // when the first try of the call that waits longest failed
	Retries int           // of the call with the most retries
	Next    time.Time     // when the next retry is due
}

// wait is a call, with its tries.
type wait struct {
	s      *Stats
	began  time.Time
	failed time.Time // when the first try did; zero: none did
	stuck  bool      // it is in trouble
	last   Trouble
}

// Counts returns the number of calls and of failures, including failures that were retried successfully, and the error of the last
// failure, or "".
func (s *Stats) Counts() (total, failed uint64, lastError string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total, s.failed, s.last
}

// Slow reports whether the work has waited for providers longer than others should wait for it.
func (s *Stats) Slow() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.slow
}

// Trouble returns why the work waits; ok is false when no call fails.
func (s *Stats) Trouble() (t Trouble, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.trouble == 0 {
		return t, false
	}
	latest := time.Time{}
	for w := range s.waits {
		if !w.stuck {
			continue
		}
		if t.Since.IsZero() || w.failed.Before(t.Since) {
			t.Since = w.failed
		}
		if t.Next.IsZero() || w.last.Next.Before(t.Next) {
			t.Next = w.last.Next
		}
		t.Retries = max(t.Retries, w.last.Retries)
		if w.last.Since.After(latest) {
			latest, t.Reason = w.last.Since, w.last.Reason
		}
	}
	return t, true
}

// count counts a try.
func (s *Stats) count(err error) {
	calls.Add(1)
	if err != nil {
		failedCalls.Add(1)
	}
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.total++
	if err != nil {
		s.failed++
		s.last = err.Error()
	}
}

// begin records that a caller waits for a call, until end.
func (s *Stats) begin() *wait {
	if s == nil {
		return nil
	}
	w := &wait{s: s, began: time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waits == nil {
		s.waits = map[*wait]struct{}{}
	}
	if len(s.waits) == 0 {
		s.began = w.began
		if !s.slow {
			s.clock = time.AfterFunc(slowAfter-s.waited, s.late)
		}
	}
	s.waits[w] = struct{}{}
	return w
}

// late makes the work slow.
func (s *Stats) late() {
	s.mu.Lock()
	slow := !s.slow && len(s.waits) > 0
	s.slow = s.slow || slow
	s.mu.Unlock()
	s.tell(slow)
}

func (s *Stats) tell(changed bool) {
	if changed && s.Changed != nil {
		s.Changed()
	}
}

// retries returns how often the call was retried before.
func (w *wait) retries() int {
	if w == nil {
		return 0
	}
	return w.s.Retries
}

// retry notes that a try failed, and that the next one, the so-manieth that is a repetition, follows after a pause.
func (w *wait) retry(failed *callError, retries int, pause time.Duration) {
	if w == nil {
		return
	}
	now := time.Now()
	w.s.mu.Lock()
	if w.failed.IsZero() {
		w.failed = now
	}
	w.last = Trouble{Reason: failed.user().shown, Since: now, Retries: retries, Next: now.Add(pause)}
	began := false
	if !w.stuck && now.Sub(w.began)+pause >= patience {
		w.stuck = true
		w.s.trouble++
		began = w.s.trouble == 1
	}
	w.s.mu.Unlock()
	w.s.tell(began)
}

// end notes that the call is over.
func (w *wait) end() {
	if w == nil {
		return
	}
	s := w.s
	s.mu.Lock()
	delete(s.waits, w)
	if len(s.waits) == 0 {
		s.waited += time.Since(s.began)
		if s.clock != nil {
			s.clock.Stop()
		}
	}
	if w.stuck {
		s.trouble--
	}
	ended := w.stuck && s.trouble == 0
	s.mu.Unlock()
	s.tell(ended)
}
