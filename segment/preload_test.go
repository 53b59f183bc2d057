package segment

import "testing"

// TestPreload checks that data is loaded if it has at most the given number of cache lines.
func TestPreload(t *testing.T) {
	for _, test := range []struct {
		bytes, most int
		want        bool
	}{{0, 0, true}, {1, 0, true}, {cacheLine, 0, false}, {cacheLine, 1, true}, {100*cacheLine + 1, 99, false}, {100*cacheLine + 1, 100, true}} {
		if got := preload(make([]byte, test.bytes), test.most); got != test.want {
			t.Errorf("%d bytes, %d lines at most: read is %v, want %v", test.bytes, test.most, got, test.want)
		}
	}
}
