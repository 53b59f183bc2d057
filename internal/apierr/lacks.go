package apierr

import "syscall"

// lack is a failure of the machine that its owner can mend.
type lack struct {
	errno  syscall.Errno
	code   Code
	advice string
}

const (
	diskFull   = "The disk is full: free space and try again."
	quotaFull  = "The disk quota is exhausted: raise it or free space, and try again."
	tooMany    = "The process cannot open more files: raise its limit and restart it."
	allTooMany = "The machine cannot open more files: raise its limit and try again."
	noMemory   = "The process cannot allocate more memory or map more files: give it more memory, or raise the limit of memory maps."
	diskFails  = "The disk cannot be read or written: check the disk."
	readOnly   = "The file system is read-only: mount it for writing, and try again."
)
