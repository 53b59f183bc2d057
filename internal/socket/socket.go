// Package socket reads and writes connections by raw system calls, which the scheduler of Go does not see.
//
// A socket of Go never blocks. Nevertheless package net tells the scheduler before each call that it may take long. This wakes the monitor
// of the runtime, a thread that then looks for work every 20 µs. Next to searches of a third of a millisecond, it takes a sixth of all
// processor time.
//
// The monitor is needed: it interrupts long work, polls the network when all processors are busy, takes a processor from a call that does
// take long, and returns memory. So connections use raw calls only while little else waits for a processor, and not always even then
// (monitorEvery). Code that may run for long calls WakeMonitor.
package socket

import (
	"net"
	"sync/atomic"
	"time"
)

// monitorEvery is the maximum time between two wake-ups of the monitor as long as there are requests.
const monitorEvery = 20 * time.Millisecond

// epoch is when the program started. woken is when the monitor was woken last, in ns since then by the monotonic clock: if the time of
// day is set back, the monitor must not sleep until it comes back.
var (
	epoch = time.Now()
	woken atomic.Int64
)

// monitorIsDue reports whether it is time to wake the monitor, and records that as done.
func monitorIsDue() bool { return monitorIsDueAt(int64(time.Since(epoch))) }

// monitorIsDueAt is monitorIsDue at a time in ns since epoch.
func monitorIsDueAt(now int64) bool {
	last := woken.Load()
	return now-last >= int64(monitorEvery) && woken.CompareAndSwap(last, now)
}

// Wrap returns a connection whose reads and writes bypass the scheduler while alone returns true, which means that nothing else needs
// a processor. It supports TCP on Linux, and returns other connections unchanged. alone may be called by several goroutines.
func Wrap(c net.Conn, alone func() bool) net.Conn {
	if tcp, ok := c.(*net.TCPConn); ok {
		return wrap(tcp, alone)
	}
	return c
}
