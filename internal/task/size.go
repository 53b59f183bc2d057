package task

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ParseSize reads a decimal number, optional blanks and an optional unit in
// any case: none, B, K, KB or KiB and so on up to E; …bit are bits.
func ParseSize(s string) (int64, error) {
	bad := fmt.Errorf("%q is not a size: use a number and a unit, such as 100 MB or 1 GiB", s)
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
