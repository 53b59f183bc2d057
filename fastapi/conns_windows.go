package fastapi

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// gone reports whether the client has closed the connection. On Windows this is unknown until a write fails.
func (c *conn) gone() bool { return false }

// noRoomErrors are the errors of accepting a connection when there are too many.
var noRoomErrors = [...]syscall.Errno{windows.WSAEMFILE, windows.WSAENOBUFS, windows.ERROR_NOT_ENOUGH_MEMORY}
