package invariant

import "testing"

func TestFailSaysWhatBroke(t *testing.T) {
	defer func() {
		if got, want := recover(), "invariant broken: 2 rows, want 3"; got != want {
			t.Errorf("panic %v, want %q", got, want)
		}
	}()
	Fail("%d rows, want %d", 2, 3)
}
