//go:build !linux

package main

import (
	"errors"
	"os/exec"
)

// startOn starts a command, on all processors: only on Linux it can be held to some of them.
func startOn(n int, c *exec.Cmd) error {
	if n != 0 {
		return errors.New("a server can be held to some processors only on Linux")
	}
	return c.Start()
}
