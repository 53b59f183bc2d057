package network

import "testing"

// TestAnExportWithoutAViewIsDropped drops an export whose index could not be opened: it has no view.
func TestAnExportWithoutAViewIsDropped(t *testing.T) {
	x := &export{}
	e := exports{all: map[string]*export{"x": x}}
	e.drop()
	if e.all != nil || !e.mu.TryLock() || !x.mu.TryLock() {
		t.Errorf("left after drop: %v, or a lock that is held", e.all)
	}
}
