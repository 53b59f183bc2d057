//go:build unix

package index

import "syscall"

// The errors of opening an index when the process may open no more files, or gets no more memory or mappings.
var (
	noFiles  = []syscall.Errno{syscall.EMFILE, syscall.ENFILE}
	noMemory = []syscall.Errno{syscall.ENOMEM}
)
