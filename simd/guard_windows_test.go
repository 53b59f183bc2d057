package simd

import (
	"testing"
	"unsafe"

	"golang.org/x/sys/windows"
)

// guardedPages returns n bytes of memory, followed by more unreadable bytes.
func guardedPages(t *testing.T, n, more int) []byte {
	t.Helper()
	at, err := windows.VirtualAlloc(0, uintptr(n+more), windows.MEM_COMMIT|windows.MEM_RESERVE, windows.PAGE_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { windows.VirtualFree(at, 0, windows.MEM_RELEASE) })
	var before uint32
	if err := windows.VirtualProtect(at+uintptr(n), uintptr(more), windows.PAGE_NOACCESS, &before); err != nil {
		t.Fatal(err)
	}
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), n+more)
}
