package mapped

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// held reports whether a page is in memory, and what is read of it there. Of files of others, which the system does not tell
// about, all pages are.
func held(page []byte) bool {
	var in byte
	_, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(page))), uintptr(len(page)), uintptr(unsafe.Pointer(&in)))
	return failed != 0 || in&1 != 0
}
