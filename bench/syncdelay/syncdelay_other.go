//go:build !linux

package syncdelay

import (
	"errors"
	"os/exec"
	"time"
)

var errLinux = errors.New("syncs can be delayed only on Linux")

// Run only fails here.
func Run(*exec.Cmd, string, []string) error { return errLinux }

// Supervise only fails here.
func Supervise(time.Duration) error { return errLinux }
