//go:build unix

package fastapi

import (
	"syscall"
	"time"
)

// cpuTime returns how long processors have worked for the process: what else the machine does is not in it.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
