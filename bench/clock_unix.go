//go:build unix

package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// Times since some beginning.
func wallTime() time.Duration    { return clock(unix.CLOCK_MONOTONIC) }
func threadTime() time.Duration  { return clock(unix.CLOCK_THREAD_CPUTIME_ID) }
func processTime() time.Duration { return clock(unix.CLOCK_PROCESS_CPUTIME_ID) }

func clock(id int32) time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(id, &t); err != nil {
		panic(err) // every Unix of svc has these clocks
	}
	return time.Duration(t.Nano())
}
