//go:build !linux

package mapped

import "math"

// mostMappings is from how many mappings on small files are read: other systems have no bound of their own.
var mostMappings = func() int64 { return math.MaxInt64 }
