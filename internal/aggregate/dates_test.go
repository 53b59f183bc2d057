package aggregate

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"svc/internal/numeric"
)

// TestIntervalsOfDates asks for the intervals of seconds around changes of clocks: also changes by half an hour, at midnight, and past
// midnight, so that a day or an hour occurs twice. An interval has its seconds, depends on no earlier value, and ends where the next
// one begins.
func TestIntervalsOfDates(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, around := range []struct {
		zone string
		at   string
	}{
		{"Europe/Paris", "2024-10-27T01:00:00Z"},
		{"Australia/Lord_Howe", "2024-04-06T15:00:00Z"}, // 2:00 becomes 1:30
		{"Australia/Lord_Howe", "2024-10-05T15:30:00Z"},
		{"Asia/Amman", "2021-10-28T22:00:00Z"}, // 1:00 becomes 0:00
		{"Atlantic/Azores", "2024-10-27T01:00:00Z"},
		{"Asia/Beirut", "2024-10-26T21:00:00Z"},       // 0:00 becomes 23:00
		{"America/Santiago", "2025-09-07T04:00:00Z"},  // 0:00 becomes 1:00
		{"America/St_Johns", "2010-11-07T02:31:00Z"},  // 0:01 becomes 23:01
		{"America/Toronto", "1919-03-31T04:30:00Z"},   // 23:30 becomes 0:30
		{"America/New_York", "1883-11-18T17:00:00Z"},  // by less than four minutes
		{"Pacific/Apia", "2011-12-30T10:00:00Z"},      // a day less
		{"Pacific/Kwajalein", "1969-09-30T13:00:00Z"}, // a day more
	} {
		zone, err := time.LoadLocation(around.zone)
		if err != nil {
			t.Fatal(err)
		}
		at, err := time.Parse(time.RFC3339, around.at)
		if err != nil {
			t.Fatal(err)
		}
		if start, _ := at.In(zone).ZoneBounds(); !start.Equal(at) {
			t.Fatalf("%s has no change at %s", around.zone, around.at)
		}
		for i := range calendars {
			spec := &Spec{calendar: &calendars[i], zone: zone, perUnit: 1}
			used, list := dateHistogram{spec, new(known)}, []int64{}
			for range 250 {
				list = append(list, at.Unix()+r.Int64N(60*3600)-30*3600)
			}
			ends := map[int64]int64{}
			for _, s := range list {
				k, _ := used.second(s)
				from, to := int64(k.number.Float), used.known.last.to
				alone := dateHistogram{spec, new(known)}
				if l, _ := alone.second(s); l.number != k.number || alone.known.last.to != to || s < from || s >= to {
					t.Fatalf("%s, %s: %s is in %v alone, and in %v after others", around.zone, calendars[i].name, time.Unix(s, 0).In(zone), alone.known.last, used.known.last)
				}
				ends[from] = to
			}
			var shown, want []int64
			for from := range ends {
				want = append(want, from)
			}
			slices.Sort(want)
			first, last := want[0], want[len(want)-1]
			used.between(key{number: numeric.OfInt(first)}, key{number: numeric.OfInt(last)}, func(k key) bool {
				shown = append(shown, int64(k.number.Float))
				return true
			})
			for i, from := range want[:len(want)-1] {
				if next := want[i+1]; ends[from] > next {
					t.Fatalf("%s, %s: intervals %s to %s and from %s overlap", around.zone, calendars[i].name, time.Unix(from, 0).In(zone), time.Unix(ends[from], 0).In(zone), time.Unix(next, 0).In(zone))
				}
				if i > 0 && !slices.Contains(shown, from) {
					t.Fatalf("%s, %s: %s is not between others", around.zone, calendars[i].name, time.Unix(from, 0).In(zone))
				}
			}
		}
	}
}

// TestQuickIntervals compares intervals of equal length with those of the calendar.
func TestQuickIntervals(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	quick, slow := map[string]int{}, 0
	for _, name := range []string{"UTC", "Europe/Paris", "Australia/Lord_Howe", "Asia/Kathmandu", "America/St_Johns", "Africa/Cairo", "Pacific/Apia"} {
		zone, err := time.LoadLocation(name)
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			at := time.Unix(r.Int64N(200*365*daySeconds)-70*365*daySeconds, 0).In(zone)
			for i := range calendars {
				c := &calendars[i]
				got, ok := c.quick(at)
				if !ok {
					slow++
					continue
				}
				from := c.of(at)
				if want := (interval{from.Unix(), c.end(from).Unix()}); got != want {
					t.Fatalf("%s, %s: %s is in %v, want %v", name, c.name, at, got, want)
				}
				quick[c.name]++
			}
		}
	}
	if len(quick) != 5 || slow == 0 {
		t.Errorf("quick intervals %v, %d others", quick, slow)
	}
}
