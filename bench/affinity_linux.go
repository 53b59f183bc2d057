package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOn starts a command that may run on the first n of the processors that this program may run on, 0 for all.
func startOn(n int, c *exec.Cmd) error {
	if n == 0 {
		return c.Start()
	}
	// A child inherits the processors of the thread that starts it.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, some unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("cannot read the set of processors: %w", err)
	}
	for cpu := 0; some.Count() < n; cpu++ {
		if some.Count() == all.Count() {
			return fmt.Errorf("there are no %d processors", n)
		}
		if all.IsSet(cpu) {
			some.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		return fmt.Errorf("cannot hold the server to %d processors: %w", n, err)
	}
	if err := c.Start(); err != nil {
		_ = unix.SchedSetaffinity(0, &all)
		return err
	}
	if err := unix.SchedSetaffinity(0, &all); err != nil {
		return fmt.Errorf("cannot go back to all processors: %w", err)
	}
	return nil
}
