package aggregate

import (
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"svc/internal/numeric"
	"svc/segment"
)

// calendar is an interval of dates.
type calendar struct {
	name string
	// of returns the first moment of the interval that t is in, in the time zone of t.
	of func(t time.Time) time.Time
	// next returns a moment in the interval behind the one that begins at t.
	next func(t time.Time) time.Time
	// length is the seconds of an interval in which clocks do not change; 0: intervals differ. One of them begins at the local second
	// first.
	length, first int64
}

// calendars are all intervals. Weeks begin on Monday.
var calendars = []calendar{
	clock("second", time.Second),
	clock("minute", time.Minute),
	clock("hour", time.Hour),
	fixed(dates("day", 0, 0, 1, func(t time.Time) (int, time.Month, int) { return t.Date() }), daySeconds, 0),
	fixed(dates("week", 0, 0, 7, func(t time.Time) (int, time.Month, int) { return t.Year(), t.Month(), t.Day() - (int(t.Weekday())+6)%7 }), 7*daySeconds, 4*daySeconds),
	dates("month", 0, 1, 0, func(t time.Time) (int, time.Month, int) { return t.Year(), t.Month(), 1 }),
	dates("quarter", 0, 3, 0, func(t time.Time) (int, time.Month, int) { return t.Year(), (t.Month()-1)/3*3 + 1, 1 }),
	dates("year", 1, 0, 0, func(t time.Time) (int, time.Month, int) { return t.Year(), 1, 1 }),
}

func calendarNames() string {
	names := make([]string, len(calendars))
	for i := range calendars {
		names[i] = "`" + calendars[i].name + "`"
	}
	return strings.Join(names, ", ")
}

// clock returns an interval of the time of day. Offsets from UTC are not always whole hours, so it rounds local time. A change of the
// offset begins an interval, also where clocks go back by half an hour: no time of day is in two intervals.
func clock(name string, d time.Duration) calendar {
	step := int64(d / time.Second)
	return fixed(calendar{
		name: name,
		of: func(t time.Time) time.Time {
			_, offset := t.Zone()
			local := t.Unix() + int64(offset)
			from := time.Unix(local-((local%step)+step)%step-int64(offset), 0).In(t.Location())
			if start, _ := t.ZoneBounds(); from.Before(start) {
				return start
			}
			return from
		},
		next: func(t time.Time) time.Time {
			next := t.Add(d)
			if _, end := t.ZoneBounds(); !end.IsZero() && end.Before(next) {
				return end
			}
			return next
		},
	}, step, 0)
}

// dates returns an interval of days. first returns the date of the first day of the interval that a time is in. Where clocks go back past
// midnight, times of the day before that follow the first midnight are in the next interval.
func dates(name string, years, months, days int, first func(time.Time) (int, time.Month, int)) calendar {
	begin := func(t time.Time) time.Time {
		year, month, day := first(t)
		return numeric.StartOfDay(year, month, day, t.Location())
	}
	// next steps to noon: all days have one.
	next := func(t time.Time) time.Time {
		return time.Date(t.Year()+years, t.Month()+time.Month(months), t.Day()+days, 12, 0, 0, 0, t.Location())
	}
	of := func(t time.Time) time.Time {
		from := begin(t)
		if end := begin(next(from)); !t.Before(end) {
			return end
		}
		return from
	}
	return calendar{name: name, of: of, next: next}
}

const daySeconds = 24 * 60 * 60

// fixed returns a calendar with intervals of equal length where clocks do not change.
func fixed(c calendar, length, first int64) calendar {
	c.length, c.first = length, first
	return c
}

// quick returns the interval that t is in. ok is false if intervals differ in length, or if clocks may change in this one or in the day
// before it. After such a change the interval may start earlier than its length says.
func (c *calendar) quick(t time.Time) (in interval, ok bool) {
	if c.length == 0 {
		return in, false
	}
	_, offset := t.Zone()
	into := (t.Unix() + int64(offset) - c.first) % c.length
	if into < 0 {
		into += c.length
	}
	in.from = t.Unix() - into
	in.to = in.from + c.length
	start, end := t.ZoneBounds()
	return in, (start.IsZero() || start.Unix() < in.from-daySeconds) && (end.IsZero() || in.to < end.Unix())
}

// interval returns the interval that t is in.
func (c *calendar) interval(t time.Time) interval {
	if in, ok := c.quick(t); ok {
		return in
	}
	from := c.of(t)
	return interval{from.Unix(), c.end(from).Unix()}
}

// end returns the first moment behind an interval that begins at t.
func (c *calendar) end(t time.Time) time.Time { return c.of(c.next(t)) }

// dateHistogram has a bucket for each interval of the calendar in a time zone. Its key is its first second since 1970.
type dateHistogram struct {
	spec  *Spec
	known *known
}

// interval is one that a value was in.
type interval struct{ from, to int64 } // seconds

// known are intervals that the calendar was asked for.
type known struct {
	last interval   // that of the last value: columns give values in their order
	list []interval // ascending
}

const maxKnown = 1024

func newDateHistogram(a *Spec) node { return newBuckets(a, dateHistogram{a, new(known)}) }

// second returns the key of a second. ok is false outside the years 0 to 9999.
func (d dateHistogram) second(s int64) (key, bool) {
	if s < numeric.FirstSecond || s >= numeric.EndSecond {
		return key{}, false
	}
	if k := d.known; s < k.last.from || s >= k.last.to {
		at := sort.Search(len(k.list), func(i int) bool { return k.list[i].to > s })
		if at < len(k.list) && k.list[at].from <= s {
			k.last = k.list[at]
		} else {
			k.last = d.spec.calendar.interval(time.Unix(s, 0).In(d.spec.zone))
			if len(k.list) < maxKnown {
				k.list = slices.Insert(k.list, at, k.last)
			}
		}
	}
	return key{isNumber: true, number: numeric.OfInt(d.known.last.from)}, true
}

func (d dateHistogram) number(_ *work, x numeric.Value) (key, bool, error) {
	s := math.Floor(x.Float / d.spec.perUnit)
	if !(math.Abs(s) < 1<<53) {
		return key{}, false, nil
	}
	if s*d.spec.perUnit > x.Float { // the quotient was rounded up
		s--
	}
	k, ok := d.second(int64(s))
	return k, ok, nil
}

// end returns the end of the interval of the last value, which has the given key.
func (d dateHistogram) end(key) float64 {
	return float64(min(d.known.last.to, numeric.EndSecond)) * d.spec.perUnit
}

// text parses a date in RFC 3339, or a day alone, which is in the time zone. Normalised strings are in lower case.
func (d dateHistogram) text(c *segment.Column, ord int) (key, bool) {
	second, ok := numeric.ParseDate(c.String(ord), d.spec.zone)
	if !ok {
		return key{}, false
	}
	return d.second(second)
}

// between steps through the calendar, not through seconds: days and months differ in length, also by the time
// zone.
func (d dateHistogram) between(low, high key, f func(key) bool) {
	for at := int64(low.number.Float); ; {
		next := d.spec.calendar.end(time.Unix(at, 0).In(d.spec.zone)).Unix()
		if next <= at || next >= int64(high.number.Float) || !f(key{isNumber: true, number: numeric.OfInt(next)}) {
			return
		}
		at = next
	}
}

// appendKey shows the beginning as text, and both ends in the unit of the attribute, as filters compare them.
func (d dateHistogram) appendKey(dst []byte, k *key) []byte {
	from := time.Unix(int64(k.number.Float), 0).In(d.spec.zone)
	to := d.spec.calendar.end(from)
	dst = from.AppendFormat(append(dst, `"key":"`...), time.RFC3339)
	return appendEnds(append(dst, `",`...), float64(from.Unix())*d.spec.perUnit, float64(to.Unix())*d.spec.perUnit)
}
