package task

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"svc/internal/apierr"
)

// appendTime writes a timestamp as JSON text: RFC 3339 in UTC, up to nine
// fraction digits without trailing zeros; null for the zero time.
func appendTime(b []byte, t time.Time) []byte {
	if t.IsZero() {
		return append(b, "null"...)
	}
	b = append(b, '"')
	b = t.UTC().AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}

// appendDuration writes finished − started as JSON text: days, then the rest in
// seconds with 0, 3, 6 or 9 fraction digits; null when unfinished or negative.
func appendDuration(b []byte, started, finished time.Time) []byte {
	if started.IsZero() || finished.IsZero() || finished.Before(started) {
		return append(b, "null"...)
	}
	d := finished.Sub(started)
	days := d / (24 * time.Hour)
	d -= days * 24 * time.Hour
	b = append(b, `"P`...)
	if days > 0 {
		b = strconv.AppendInt(b, int64(days), 10)
		b = append(b, 'D')
	}
	if days == 0 || d > 0 {
		b = append(b, 'T')
		b = strconv.AppendInt(b, int64(d/time.Second), 10)
		if frac := int64(d % time.Second); frac > 0 {
			digits := 9
			for digits > 3 && frac%1000 == 0 {
				frac /= 1000
				digits -= 3
			}
			b = append(b, '.')
			text := strconv.FormatInt(frac, 10)
			b = append(b, strings.Repeat("0", digits-len(text))...)
			b = append(b, text...)
		}
		b = append(b, 'S')
	}
	return append(b, '"')
}

// ParseBefore parses a date for a filter on what happened before it: RFC 3339 with an offset, or a day in UTC, which stands for its
// first moment. code is the error code of the parameter. A parsed date is never the zero time.
func ParseBefore(text string, code apierr.Code) (time.Time, error) { return parseDate(text, 0, code) }

// ParseAfter reads a date of a filter that wants what happened after it. Of a day, nothing is after it but the next one.
func ParseAfter(text string, code apierr.Code) (time.Time, error) {
	return parseDate(text, 24*time.Hour, code)
}

// rfc3339 is stricter than time.Parse, which accepts hours with one digit, a comma before the fraction, and offsets of 24 hours and
// more.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

// parseDate reads a date; of a day it gives the moment that is shift after its midnight.
func parseDate(text string, shift time.Duration, code apierr.Code) (time.Time, error) {
	t, err := time.Parse(time.DateOnly, text)
	switch {
	case err == nil:
		t = t.Add(shift)
	case rfc3339.MatchString(text):
		t, err = time.Parse(time.RFC3339Nano, strings.ToUpper(text))
	}
	if err == nil {
		if t.IsZero() {
			t = t.Add(1)
		}
		return t, nil
	}
	return time.Time{}, apierr.New(code, "`%s` is not a date. Use YYYY-MM-DD, or a time such as 2006-01-02T15:04:05Z (RFC 3339, with an offset).", text)
}

// sizeUnits in growing order, decimal and binary mixed.
var sizeUnits = []struct {
	name  string
	bytes float64
}{
	{"B", 1}, {"KB", 1e3}, {"KiB", 1 << 10}, {"MB", 1e6}, {"MiB", 1 << 20}, {"GB", 1e9}, {"GiB", 1 << 30},
	{"TB", 1e12}, {"TiB", 1 << 40}, {"PB", 1e15}, {"PiB", 1 << 50}, {"EB", 1e18}, {"EiB", 1 << 60},
}

// FormatSize writes a number of bytes in the largest unit, decimal or binary, that does not exceed it.
func FormatSize(bytes int64) string {
	unit := sizeUnits[0]
	for _, u := range sizeUnits[1:] {
		if float64(bytes) >= u.bytes {
			unit = u
		}
	}
	return strconv.FormatFloat(float64(bytes)/unit.bytes, 'f', -1, 64) + " " + unit.name
}
