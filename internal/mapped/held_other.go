//go:build !linux

package mapped

// held is not known elsewhere: as if all were in memory.
func held([]byte) bool { return true }
