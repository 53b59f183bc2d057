package numeric

import (
	"testing"
	"time"
)

// TestDaysInTimeZones parses days whose first moment is not at 0:00, or of which there are two.
func TestDaysInTimeZones(t *testing.T) {
	for _, d := range []struct{ zone, day, want string }{
		{"UTC", "2024-02-29", "2024-02-29T00:00:00Z"},
		{"Europe/Paris", "2024-10-27", "2024-10-27T00:00:00+02:00"},
		{"America/Santiago", "2025-09-07", "2025-09-07T01:00:00-03:00"},
		{"America/Havana", "2025-03-09", "2025-03-09T01:00:00-04:00"},
		{"America/Havana", "2025-11-02", "2025-11-02T00:00:00-04:00"},
		{"Africa/Cairo", "2025-04-25", "2025-04-25T01:00:00+03:00"},
		{"Asia/Amman", "2021-10-29", "2021-10-29T00:00:00+03:00"},
		{"America/Toronto", "1919-03-31", "1919-03-31T00:30:00-04:00"},
		{"Pacific/Apia", "2011-12-30", "2011-12-31T00:00:00+14:00"},
	} {
		zone, err := time.LoadLocation(d.zone)
		if err != nil {
			t.Fatal(err)
		}
		second, ok := ParseDate([]byte(d.day), zone)
		if got := time.Unix(second, 0).In(zone).Format(time.RFC3339); !ok || got != d.want {
			t.Errorf("%s begins in %s at %s, want %s", d.day, d.zone, got, d.want)
		}
	}
}
