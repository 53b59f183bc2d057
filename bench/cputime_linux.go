package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is the processor time of a process, to the nanosecond: /proc reports it in hundredths of a second.
func cpuTime(pid int) time.Duration {
	const sched = 2 // CPUCLOCK_SCHED: the id of a process's clock is its complement above three bits, see clock_getcpuclockid(3)
	var t unix.Timespec
	if err := unix.ClockGettime(int32(^pid<<3|sched), &t); err != nil {
		return 0 // it has ended
	}
	return time.Duration(t.Nano())
}
