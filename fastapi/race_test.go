//go:build race

package fastapi

// raceDetector is true with the race detector, which changes allocations.
const raceDetector = true
