package mapped

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// residency returns for each page of some bytes, which begin with one, whether it is in memory, in bit 0; nil where the system does not
// tell. The system does not report on files of other users: all their pages count.
func residency(pages []byte, pageBytes int) []byte {
	in := make([]byte, (len(pages)+pageBytes-1)/pageBytes)
	if _, _, failed := unix.Syscall(unix.SYS_MINCORE, uintptr(unsafe.Pointer(unsafe.SliceData(pages))), uintptr(len(pages)), uintptr(unsafe.Pointer(unsafe.SliceData(in)))); failed != 0 {
		return nil
	}
	return in
}
