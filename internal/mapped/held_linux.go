package mapped

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// residency returns for each page of some bytes, which begin with a page, whether it is in memory, in bit 0. It returns nil if the
// system does not report this. For files of other users, the system reports all pages as in memory.
func residency(pages []byte, pageBytes int) []byte {
	in := make([]byte, (len(pages)+pageBytes-1)/pageBytes)
	if _, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(pages))), uintptr(len(pages)), uintptr(unsafe.Pointer(unsafe.SliceData(in)))); failed != 0 {
		return nil
	}
	return in
}
