package index

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// scarcities are the errors of a process that has no more files or memory to open an index with.
var scarcities = [...]syscall.Errno{windows.ERROR_TOO_MANY_OPEN_FILES, windows.ERROR_NOT_ENOUGH_MEMORY, windows.ERROR_OUTOFMEMORY,
	windows.ERROR_NO_SYSTEM_RESOURCES, windows.ERROR_COMMITMENT_LIMIT}
