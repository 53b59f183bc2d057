// Package socket reads and writes connections by calls of the system that the scheduler is not told of.
//
// A socket of Go never blocks, and yet package net has the scheduler prepare for each call to take long. While nothing runs that wakes the
// runtime's monitor, a thread which then looks every 20 µs whether there is something to do: beside a search that takes a third of a
// millisecond a sixth of all processor time.
//
// The monitor has its uses: it interrupts what runs for long, asks the network when all processors are busy, takes a processor from a call
// that does take long, and has memory given back. So connections go our way only while little else is to be done, and now and then not
// even then, and what may run for long calls WakeMonitor.
package socket

import (
	"net"
	"sync/atomic"
	"time"
)

// monitorEvery is in how much time the monitor is woken at least, as long as there are requests.
const monitorEvery = 20 * time.Millisecond

// woken is when it was woken last, in ns since 1970.
var woken atomic.Int64

// monitorIsDue reports whether the time has come to wake the monitor, and takes it for done.
func monitorIsDue() bool {
	now, last := time.Now().UnixNano(), woken.Load()
	return now-last >= int64(monitorEvery) && woken.CompareAndSwap(last, now)
}

// Wrap returns a connection that is read and written without the scheduler's being told whenever alone says that nothing else waits for a
// processor, where that is known how: of TCP, on Linux. Others it returns as they are. alone may be called from several goroutines.
func Wrap(c net.Conn, alone func() bool) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		return wrap(tcp, alone)
	}
	return c
}
