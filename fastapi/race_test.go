//go:build race

package fastapi

// raceDetector says that what is allocated is not what it would be.
const raceDetector = true
