package numeric

import (
	"bytes"
	"time"
)

// The years 0 to 9999 are dates: seconds since 1970 from FirstSecond on, and before EndSecond.
var (
	FirstSecond = time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
	EndSecond   = time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
)

// ParseDate parses a date in RFC 3339, with letters of either case, or a day alone, which is in the time zone. It returns whole
// seconds since 1970.
func ParseDate(s []byte, zone *time.Location) (second int64, ok bool) {
	if len(s) < len(time.DateOnly) || len(s) > len(time.RFC3339Nano)+10 || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	var t time.Time
	var err error
	if len(s) == len(time.DateOnly) {
		if t, err = time.Parse(time.DateOnly, string(s)); err == nil {
			t = StartOfDay(t.Year(), t.Month(), t.Day(), zone)
		}
	} else {
		t, err = time.Parse(time.RFC3339, string(bytes.ToUpper(s)))
	}
	if err != nil {
		return 0, false
	}
	second = t.Unix()
	return second, second >= FirstSecond && second < EndSecond
}

// StartOfDay returns the first moment of a day in a time zone. Where clocks go forward at midnight, that is later than 0:00. Where they
// go back over it, it is the first of two midnights. Of a day that a time zone leaves out, it is the first moment of the next one.
func StartOfDay(year int, month time.Month, day int, zone *time.Location) time.Time {
	t := time.Date(year, month, day, 0, 0, 0, 0, zone)
	wanted := time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
	start, end := t.ZoneBounds()
	if t.Day() != wanted.Day() && !end.IsZero() {
		return end
	}
	if start.IsZero() {
		return t
	}
	if h, m, s := t.Clock(); h+m+s > 0 {
		return start
	}
	_, now := t.Zone()
	_, before := start.Add(-time.Second).Zone()
	if first := t.Add(time.Duration(now-before) * time.Second); first.Before(start) {
		return first
	}
	return t
}
