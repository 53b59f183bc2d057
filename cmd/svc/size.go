package main

import (
	"fmt"
	"runtime"
	"strconv"
	"strings"
	"time"

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

// days is a time, written as "30d", "36h" or "1h30m".
type days time.Duration

func (d *days) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	if n, ok := strings.CutSuffix(s, "d"); ok {
		if count, err := strconv.ParseUint(n, 10, 15); err == nil {
			*d = days(time.Duration(count) * 24 * time.Hour)
			return nil
		}
	} else if took, err := time.ParseDuration(s); err == nil {
		*d = days(took)
		return nil
	}
	return fmt.Errorf("%q is not a duration: use a number and d or h, such as 30d or 12h", s)
}

// threads is a number of threads; 0 stands for the default.
type threads int

// UnmarshalText reads a number, "unlimited" or nothing.
func (t *threads) UnmarshalText(text []byte) error {
	switch s := strings.TrimSpace(string(text)); strings.ToLower(s) {
	case "":
		*t = 0
	case "unlimited":
		*t = threads(runtime.GOMAXPROCS(0))
	default:
		n, err := strconv.ParseUint(s, 10, 16)
		if err != nil || n == 0 {
			return fmt.Errorf("%q is not a number of threads: use a number from 1, or unlimited", s)
		}
		*t = threads(n)
	}
	return nil
}
