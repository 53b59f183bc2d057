package mapped

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReleaseProgram unmaps the pages of the program file that were read so far, its code and constants. The system's cache of
// files still has them, and the program maps those again that it still uses, 16 at a time. A start runs a little code of each
// package, and so maps nearly all of the file.
func ReleaseProgram() {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil || !bytes.Contains(status, []byte("\nTracerPid:\t0\n")) {
		return // the breakpoints of a debugger are in these pages
	}
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		return
	}
	for line := range bytes.Lines(maps) {
		if start, end, ok := programPages(line, name); ok {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
		}
	}
}

// programPages reads a line of /proc/self/maps, such as
//
//	00400000-01a74000 r-xp 00000000 fe:00 9979366      /usr/local/bin/svc
//
// It returns the addresses if they are of the file with this name, and cannot be written to.
func programPages(line []byte, name string) (start, end uintptr, ok bool) {
	const addresses, access, path = 0, 1, 5
	fields := bytes.Fields(line)
	if len(fields) <= path || len(fields[access]) != 4 || fields[access][1] != '-' || fields[access][3] != 'p' {
		return 0, 0, false
	}
	at := bytes.Index(line, fields[path]) // it may have spaces
	if string(bytes.TrimSuffix(line[at:], []byte("\n"))) != name {
		return 0, 0, false
	}
	first, last, _ := bytes.Cut(fields[addresses], []byte("-"))
	a, err := strconv.ParseUint(string(first), 16, 64)
	if err != nil {
		return 0, 0, false
	}
	b, err := strconv.ParseUint(string(last), 16, 64)
	return uintptr(a), uintptr(b), err == nil && a < b
}
