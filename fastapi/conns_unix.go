//go:build unix

package fastapi

import (
	"crypto/tls"
	"syscall"
)

// gone reports whether the client has closed the connection: everything it sent has been read, and it will send no more.
func (c *conn) gone() bool {
	nc := c.Conn
	if secure, ok := nc.(*tls.Conn); ok {
		nc = secure.NetConn()
	}
	sc, ok := nc.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		var one [1]byte
		n, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		ended = n == 0 && err == nil || err == syscall.ECONNRESET
	})
	return ended || err != nil
}

// noRoomErrors are the errors of accepting a connection when there are too many.
var noRoomErrors = [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM}
