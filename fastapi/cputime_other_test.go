//go:build !unix

package fastapi

import "time"

// cpuTime is not known here: costs in time are not tested.
func cpuTime() time.Duration { return 0 }
