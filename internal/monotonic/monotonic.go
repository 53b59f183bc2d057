// Package monotonic keeps moments as numbers that are compared with later ones.
//
// Times of day must not be subtracted: after the clock of the machine was set back, they would say until it comes back that nothing has
// waited for long.
package monotonic

import "time"

// epoch is longer ago than any moment of a process. In tests with virtual time, moments are of the year 2000.
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

// Nanos returns the nanoseconds since a fixed moment before the process began, by the monotonic clock: more than 0, so that 0 can mean
// never. The differences of two results are durations.
func Nanos(t time.Time) int64 { return int64(t.Sub(epoch)) }
