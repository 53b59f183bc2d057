package main

import (
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
)

// size is a number of bytes, written as "100 MB", "1.5GiB" or "800 kbit".
type size int64

func (s *size) UnmarshalText(text []byte) error {
	n, err := parseSize(string(text))
	if err != nil {
		return err
	}
	*s = size(n)
	return nil
}

// parseSize reads a decimal number, optional blanks and an optional unit in
// any case: none, B, K, KB or KiB and so on up to E; …bit are bits.
func parseSize(s string) (int64, error) {
	bad := fmt.Errorf("%q is not a size: write a number and a unit, such as 100 MB or 1 GiB", s)
	s = strings.TrimSpace(s)
	digits := len(s) - len(strings.TrimLeft(s, "0123456789."))
	n, err := strconv.ParseFloat(s[:digits], 64)
	if err != nil {
		return 0, bad
	}
	unit := strings.ToLower(strings.TrimSpace(s[digits:]))
	factor := 1.0
	unit, isBits := strings.CutSuffix(unit, "bit")
	if isBits {
		factor = 1.0 / 8
	} else {
		unit = strings.TrimSuffix(unit, "b")
	}
	base := 1000.0
	if prefix, ok := strings.CutSuffix(unit, "i"); ok && prefix != "" {
		base, unit = 1024, prefix
	}
	if unit != "" {
		power := strings.Index("kmgtpe", unit)
		if power < 0 || len(unit) != 1 {
			return 0, bad
		}
		factor *= math.Pow(base, float64(power+1))
	}
	n *= factor
	if n >= math.MaxInt64 {
		return 0, bad
	}
	return int64(n), nil
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
