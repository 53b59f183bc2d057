package segment

import (
	"bytes"
	"testing"
)

// TestGrow checks that a buffer keeps its bytes, and is replaced by one of twice the size, or a quarter more above 4 MiB.
func TestGrow(t *testing.T) {
	for _, tt := range []struct{ length, size, n, want int }{
		{0, 0, 0, 0}, {0, 0, 7, 7}, {3, 8, 5, 8}, {3, 8, 6, 16}, {3, 8, 60, 63},
		{doubledBytes - 1, doubledBytes - 1, 1, 2*doubledBytes - 2}, {doubledBytes, doubledBytes, 1, doubledBytes + doubledBytes/4},
		{1, doubledBytes, 2 * doubledBytes, 2*doubledBytes + 1},
	} {
		dst := append(make([]byte, 0, tt.size), bytes.Repeat([]byte("x"), tt.length)...)
		got := Grow(dst, tt.n)
		if !bytes.Equal(got, dst) || cap(got) != tt.want {
			t.Errorf("%d of %d bytes, %d more: %d of %d bytes, want %d", tt.length, tt.size, tt.n, len(got), cap(got), tt.want)
		}
		if tt.length > 0 && tt.want == tt.size && &got[0] != &dst[0] {
			t.Errorf("%d of %d bytes, %d more: the buffer was copied", tt.length, tt.size, tt.n)
		}
	}
}
