//go:build unix

package simd

import (
	"testing"

	"golang.org/x/sys/unix"
)

// guardedPages returns n bytes of memory, followed by more unreadable bytes.
func guardedPages(t *testing.T, n, more int) []byte {
	t.Helper()
	m, err := unix.Mmap(-1, 0, n+more, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Munmap(m) })
	if err := unix.Mprotect(m[n:], unix.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	return m
}
