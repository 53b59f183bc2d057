//go:build linux && !race

package socket

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Conn is a connection over TCP.
type Conn struct {
	*net.TCPConn
	raw   syscall.RawConn
	alone func() bool

	reading sync.Mutex // guards what follows, up to writing
	in      []byte
	got     int
	readErr unix.Errno
	read    func(fd uintptr) bool // c.tryRead, made once

	writing  sync.Mutex // guards the rest
	out      [2][]byte
	left     net.Buffers // of out
	vector   [2]unix.Iovec
	put      int64
	writeErr unix.Errno
	write    func(fd uintptr) bool // c.tryWrite
}

func wrap(tcp *net.TCPConn, alone func() bool) net.Conn {
	raw, err := tcp.SyscallConn()
	if err != nil { // it has no file, whose methods say so better
		return tcp
	}
	c := &Conn{TCPConn: tcp, raw: raw, alone: alone}
	c.read, c.write = c.tryRead, c.tryWrite
	return c
}

// Read implements net.Conn.
func (c *Conn) Read(b []byte) (int, error) {
	if len(b) == 0 || !c.alone() || monitorIsDue() {
		return c.TCPConn.Read(b)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	c.in, c.got, c.readErr = b, 0, 0
	err := c.raw.Read(c.read) // waits while tryRead returns false
	c.in = nil
	if err = c.failure("read", err, c.readErr); err == nil && c.got == 0 {
		err = io.EOF
	}
	return c.got, err
}

// tryRead reads the available bytes. It returns false if there are none yet.
func (c *Conn) tryRead(fd uintptr) bool {
	for {
		n, _, errno := unix.RawSyscall(unix.SYS_READ, fd, uintptr(unsafe.Pointer(&c.in[0])), uintptr(len(c.in)))
		switch errno {
		case 0:
			c.got = int(n)
			return true
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			c.readErr = errno
			return true
		}
	}
}

// Write implements net.Conn.
func (c *Conn) Write(b []byte) (int, error) {
	if !c.alone() {
		return c.TCPConn.Write(b)
	}
	n, err := c.WriteBoth(b, nil)
	return int(n), err
}

// WriteBoth writes a and then b, together if there is room. It returns how many bytes of both were written.
func (c *Conn) WriteBoth(a, b []byte) (int64, error) {
	c.writing.Lock()
	defer c.writing.Unlock()
	c.out, c.put, c.writeErr = [2][]byte{a, b}, 0, 0
	if !c.alone() {
		c.left = c.out[:]
		n, err := c.left.WriteTo(c.TCPConn)
		c.out, c.left = [2][]byte{}, nil
		return n, err
	}
	err := c.raw.Write(c.write) // waits while tryWrite returns false
	c.out, c.vector = [2][]byte{}, [2]unix.Iovec{}
	return c.put, c.failure("write", err, c.writeErr)
}

// tryWrite writes what fits, and returns false if more is left.
func (c *Conn) tryWrite(fd uintptr) bool {
	for {
		parts := 0
		for _, b := range c.out {
			if len(b) > 0 {
				c.vector[parts].Base = &b[0]
				c.vector[parts].SetLen(len(b))
				parts++
			}
		}
		if parts == 0 {
			return true
		}
		n, _, errno := unix.RawSyscall(unix.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&c.vector[0])), uintptr(parts))
		switch errno {
		case 0:
			c.put += int64(n)
			ofFirst := min(int(n), len(c.out[0]))
			c.out = [2][]byte{c.out[0][ofFirst:], c.out[1][int(n)-ofFirst:]}
		case unix.EINTR:
		case unix.EAGAIN:
			return false
		default:
			c.writeErr = errno
			return true
		}
	}
}

// failure returns what package net would, when to wait for a call failed with err, or the call with errno. It is nil where both are.
func (c *Conn) failure(call string, err error, errno unix.Errno) error {
	var waiting *net.OpError // of the operation "raw-read" or "raw-write"
	switch {
	case errno != 0:
		err = os.NewSyscallError(call, errno)
	case errors.As(err, &waiting):
		err = waiting.Err
	case err == nil:
		return nil
	}
	return &net.OpError{Op: call, Net: "tcp", Source: c.LocalAddr(), Addr: c.RemoteAddr(), Err: err}
}

// WakeMonitor wakes the runtime's monitor if it sleeps.
func WakeMonitor() {
	_, _, _ = unix.Syscall(unix.SYS_GETPPID, 0, 0, 0) // any system call that the scheduler sees
}
