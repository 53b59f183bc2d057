package network

import "testing"

// An export whose index could not be opened has no view, and is dropped like the others.
func TestAnExportThatDidNotBeginIsDropped(t *testing.T) {
	x := &export{}
	e := exports{all: map[string]*export{"x": x}}
	e.drop()
	if e.all != nil || !e.mu.TryLock() || !x.mu.TryLock() {
		t.Errorf("left after drop: %v, or a lock that is held", e.all)
	}
}
