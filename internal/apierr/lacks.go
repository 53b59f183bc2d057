package apierr

import "syscall"

// lack is a failure of the machine that its owner can mend.
type lack struct {
	errno  syscall.Errno
	code   Code
	advice string
}

const (
	diskFull   = "The disk is full: make room on it, and try again."
	quotaFull  = "The disk quota is used up: raise it or make room, and try again."
	tooMany    = "The process may not open more files: raise its limit, and start it again."
	allTooMany = "The machine may not open more files: raise its limit, and try again."
	noMemory   = "The process gets no more memory, or may not map more files: give it more memory, or raise the limit of its memory maps."
	diskFails  = "The disk cannot be read or written: look after it."
	readOnly   = "The file system is read-only: mount it for writing, and try again."
)
