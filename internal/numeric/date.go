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
		t, err = time.ParseInLocation(time.DateOnly, string(s), zone)
	} else {
		t, err = time.Parse(time.RFC3339, string(bytes.ToUpper(s)))
	}
	if err != nil {
		return 0, false
	}
	second = t.Unix()
	return second, second >= FirstSecond && second < EndSecond
}
