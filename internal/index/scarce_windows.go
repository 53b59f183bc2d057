package index

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// The errors of opening an index when the process may open no more files, or gets no more memory or mappings.
var (
	noFiles  = []syscall.Errno{windows.ERROR_TOO_MANY_OPEN_FILES}
	noMemory = []syscall.Errno{windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY, windows.ERROR_NO_SYSTEM_RESOURCES,
		windows.ERROR_COMMITMENT_LIMIT}
)
