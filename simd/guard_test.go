package simd

import (
	"os"
	"testing"
	"unsafe"
)

// guarded returns a slice of n elements that ends at an unreadable page.
func guarded[T any](t *testing.T, n int) []T {
	t.Helper()
	var zero T
	size := int(unsafe.Sizeof(zero)) * n
	page := os.Getpagesize()
	pages := (size + page - 1) / page * page
	m := guardedPages(t, pages, page)
	if n == 0 {
		return []T{}
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&m[pages-size])), n)
}
