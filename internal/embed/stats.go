package embed

import (
	"sync"
	"sync/atomic"
)

var calls, failedCalls atomic.Uint64

// Calls returns the calls that the process has made to providers, of documents and of queries, and those of them that failed.
func Calls() (total, failed uint64) { return calls.Load(), failedCalls.Load() }

// Stats counts calls to providers. The zero Stats is ready; it may be used from several goroutines.
type Stats struct {
	mu            sync.Mutex
	total, failed uint64
	last          string
}

// Counts returns the calls made and those of them that failed, also if a later try did not, and
// the error of the last one that failed, "" when there is none.
func (s *Stats) Counts() (total, failed uint64, lastError string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.total, s.failed, s.last
}

// count counts a call, with a nil Stats for Calls alone.
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
