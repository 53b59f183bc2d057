//go:build !linux || !amd64

package powercut

import (
	"errors"
	"os"
	"os/exec"
)

// Supported reports whether programs can be followed here.
func Supported() bool { return false }

// Run cannot follow programs on this system.
func Run(*exec.Cmd, Options, func(*os.Process)) error { return errors.ErrUnsupported }
