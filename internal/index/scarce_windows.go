package index

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// The errors of a process that may open no more files, and of one that gets no more memory or mappings, to open an index with.
var (
	noFiles  = []syscall.Errno{windows.ERROR_TOO_MANY_OPEN_FILES}
	noMemory = []syscall.Errno{windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY, windows.ERROR_NO_SYSTEM_RESOURCES,
		windows.ERROR_COMMITMENT_LIMIT}
)
