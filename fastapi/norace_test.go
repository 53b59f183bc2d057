//go:build !race

package fastapi

const raceDetector = false
