package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"

	"svc/internal/task"
)

// size is a number of bytes, written as "100 MB", "1.5GiB" or "800 kbit".
type size int64

func (s *size) UnmarshalText(text []byte) error {
	n, err := task.ParseSize(string(text))
	if err != nil {
		return err
	}
	*s = size(n)
	return nil
}

// threads is a number of threads; 0 stands for the default.
type threads int

// UnmarshalText reads a number, "unlimited" or nothing.
func (t *threads) UnmarshalText(text []byte) error {
	switch s := strings.TrimSpace(string(text)); strings.ToLower(s) {
	case "":
		*t = 0
	case "unlimited":
		*t = threads(runtime.NumCPU())
	default:
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is not a number of threads: write one from 1, or unlimited", s)
		}
		*t = threads(n)
	}
	return nil
}
