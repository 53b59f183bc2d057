package main

import (
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// startOn starts a command on the first n of the processors that this program may use. If n is negative, it takes the last -n, and if n is
// 0, all.
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
	var list []int
	for cpu := 0; len(list) < all.Count(); cpu++ {
		if all.IsSet(cpu) {
			list = append(list, cpu)
		}
	}
	first, last := 0, n
	if n < 0 {
		first, last = len(list)+n, len(list)
	}
	if first < 0 || last > len(list) {
		return fmt.Errorf("there are only %d processors", len(list))
	}
	for _, cpu := range list[first:last] {
		some.Set(cpu)
	}
	if err := unix.SchedSetaffinity(0, &some); err != nil {
		return fmt.Errorf("cannot hold the server to %d processors: %w", len(list[first:last]), err)
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
