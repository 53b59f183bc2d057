//go:build !linux || race

package socket

// The race detector regards a write to a socket by one goroutine and a read from it by another as ordered. It only sees this order in
// the calls of package net.

import "net"

// Conn is a connection over TCP.
type Conn struct{ *net.TCPConn }

func wrap(tcp *net.TCPConn, _ func() bool) net.Conn { return tcp }

// WriteBoth writes a and then b. It returns how many bytes of both were written.
func (c *Conn) WriteBoth(a, b []byte) (int64, error) {
	both := net.Buffers{a, b}
	return both.WriteTo(c.TCPConn)
}

// WakeMonitor does nothing: calls of the system have woken it.
func WakeMonitor() {}
