//go:build !unix

package fastapi

import "time"

// cpuTime is unknown here: processor time is not tested.
func cpuTime() time.Duration { return 0 }
