package query

import "testing"

func BenchmarkAutomaton(b *testing.B) {
	a := newAutomaton("documentation", 2, true)
	w := []byte("documantaitions")
	for b.Loop() {
		a.distances(w)
	}
}
