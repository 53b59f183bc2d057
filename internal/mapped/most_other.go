//go:build !linux

package mapped

import "math"

// mostMappings is the number of mappings from which small files are read instead. Other systems have no limit of their own.
var mostMappings = func() int64 { return math.MaxInt64 }
