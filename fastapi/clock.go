package fastapi

import "time"

// epoch is longer ago than what clock compares, so that 0 by clock means never. (In tests with virtual time it is the year 2000.)
var epoch = time.Now().Add(-100 * 365 * 24 * time.Hour)

// clock returns the nanoseconds since epoch by the monotonic clock. Times of day must not be subtracted: after the clock of the machine
// was set back, they would say until it comes back that nothing has waited for long.
func clock(t time.Time) int64 { return int64(t.Sub(epoch)) }
