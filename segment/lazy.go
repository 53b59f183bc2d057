package segment

import (
	"sync"
	"sync/atomic"
)

// lazy is a part of a section that is opened on first use. Opening may panic with damage, and then the next call tries again.
type lazy[T any] struct {
	made   atomic.Pointer[T]
	making sync.Mutex
}

// get returns the value, made by the first caller. Later callers take no lock. make runs under the lock, so
// it must not ask for the same value.
func (l *lazy[T]) get(make func() *T) *T {
	if v := l.made.Load(); v != nil {
		return v
	}
	l.making.Lock()
	defer l.making.Unlock()
	v := l.made.Load()
	if v == nil {
		v = make()
		l.made.Store(v)
	}
	return v
}

// forget makes the next call make it again.
func (l *lazy[T]) forget() { l.made.Store(nil) }
