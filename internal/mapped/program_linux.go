package mapped

import (
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ReleaseProgram unmaps the pages of the program file that were read so far, its code and constants. They stay in the system's cache,
// and the program maps the ones that it still uses again, 16 at a time. A start runs a little code of each package, and so maps
// nearly all of the file.
//
// It skips parts of the file with modified pages, because these would be lost: relocated ones (in a program built with
// -buildmode=pie), and those with breakpoints of a debugger or a tracer.
func ReleaseProgram() {
	name, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return
	}
	mappings, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		return
	}
	var start, end uintptr
	found := false
	for line := range bytes.Lines(mappings) {
		if f := bytes.Fields(line); len(f) > 0 && !bytes.HasSuffix(f[0], []byte(":")) {
			start, end, found = programPages(line, name)
		} else if found && unchanged(line) {
			_, _, _ = unix.Syscall(unix.SYS_MADVISE, start, end-start, unix.MADV_DONTNEED)
		}
	}
}

// unchanged reports whether a line of /proc/self/smaps says that all pages of a mapping equal those of its file.
func unchanged(line []byte) bool {
	f := bytes.Fields(line)
	return len(f) == 3 && string(f[0]) == "Anonymous:" && string(f[1]) == "0"
}

// programPages reads the first line of a mapping in /proc/self/smaps, such as
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
