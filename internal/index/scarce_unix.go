//go:build unix

package index

import "syscall"

// The errors of a process that may open no more files, and of one that gets no more memory or mappings, to open an index with.
var (
	noFiles  = []syscall.Errno{syscall.EMFILE, syscall.ENFILE}
	noMemory = []syscall.Errno{syscall.ENOMEM}
)
